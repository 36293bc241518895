"""One contract over every negative, and the closed form of each."""

from __future__ import annotations

import numpy as np
import pytest

from spatialsim_env.arrangements import goals, negatives, scene, similarities
from spatialsim_env.arrangements.alignment import CRITERIA
from spatialsim_env.arrangements.env import DiscriminationEnv
from spatialsim_env.arrangements.negatives import (
    Displaced,
    DisplacedFew,
    Mirrored,
    MisScaled,
    Mixture,
    Poses,
    Redrawn,
    Twisted,
    by_name,
)
from spatialsim_env.arrangements.scene import COLOR, ORIENTATION, POSITION, SHAPE, SIZE
from tests.spatialsim_env import chance

N_MAX = 8
EVERY = [*negatives.REGISTRY.values(), Mirrored(reflect_orientation=False), Displaced(1.5, 10.0)]
every = pytest.mark.parametrize("negative", EVERY, ids=[*negatives.NAMES, "mirrored_angles_kept", "displaced_less"])


def some_scenes(size: int = 300, n_objects=(3, N_MAX), seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return scene.sample(rng.integers(n_objects[0], n_objects[1] + 1, size), n_objects[1], rng)


def numbers_for(negative, scenes: np.ndarray, seed: int = 1) -> np.ndarray:
    shape = (len(scenes), negative.n_uniform(scenes.shape[1]))
    return np.random.default_rng(seed).random(shape, np.float32)


def as_points(scenes: np.ndarray) -> np.ndarray:
    return scenes[..., POSITION].astype(np.float64) @ np.array([1, 1j])


def about_the_barycentre(scenes: np.ndarray) -> np.ndarray:
    """Complex positions (B, n) relative to the mean of the objects; padding at 0."""
    center = scene.barycenter(scenes.astype(np.float64)) @ np.array([1, 1j])
    return np.where(scene.present(scenes), as_points(scenes) - center, 0)


# --- the contract ---------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("n_objects", [(3, N_MAX), (1, 2)])
def test_objects_stay_who_they_are(negative, n_objects):
    scenes = some_scenes(300, n_objects)
    before = scenes.copy()
    out = negative(scenes, numbers_for(negative, scenes))
    assert np.array_equal(scenes, before)
    assert not np.shares_memory(out, scenes)
    assert (out.shape, out.dtype) == (scenes.shape, np.float32)
    for column in (SHAPE, SIZE, COLOR):
        assert np.array_equal(out[..., column], scenes[..., column])
    assert not out[~scene.present(scenes)].any()
    turned = (out[..., ORIENTATION] != scenes[..., ORIENTATION]).any(axis=1)
    assert turned.any() == negative.turns
    scene.validate(out)


@every
def test_a_hundred_objects(negative):
    scenes = some_scenes(20, (100, 100))
    out = negative(scenes, numbers_for(negative, scenes))
    scene.validate(out)
    assert (scene.count(out) == 100).all()
    for criterion in negative.criteria:
        assert not goals.achieved(out, scenes, criterion).all()


@every
def test_the_order_of_the_batch_changes_nothing(negative):
    scenes = some_scenes()
    numbers = numbers_for(negative, scenes)
    order = np.random.default_rng(4).permutation(len(scenes))
    assert np.array_equal(negative(scenes[order], numbers[order]), negative(scenes, numbers)[order])


@pytest.mark.parametrize("name", ["mirrored", "twisted", "mis_scaled", "radius_matched"])
def test_the_order_of_the_objects_does_not_matter_where_none_is_drawn_by_its_place(name):
    """Up to float32: 1e-4 by the arc cosine of a chain that barely closes."""
    scenes = some_scenes(200, (N_MAX, N_MAX))
    numbers = numbers_for(by_name(name), scenes)
    order = np.random.default_rng(4).permutation(N_MAX)
    after, expected = by_name(name)(scenes[:, order], numbers), by_name(name)(scenes, numbers)[:, order]
    assert np.allclose(after, expected, atol=2e-3)


@every
def test_a_pure_function_of_scenes_and_numbers(negative):
    """The same bits again, alone and in a batch."""
    scenes = some_scenes()
    numbers = numbers_for(negative, scenes)
    out = negative(scenes, numbers)
    assert np.array_equal(negative(scenes, numbers), out)
    for k in range(0, len(scenes), 10):
        assert np.array_equal(negative(scenes[k : k + 1], numbers[k : k + 1])[0], out[k])
    assert negative(scenes[:0], numbers[:0]).shape == (0, N_MAX, scene.N_FEATURES)


@every
@pytest.mark.parametrize("n_max", [3, 30])
def test_every_declared_number_matters(negative, n_max):
    """In full scenes each number changes some scene of a batch."""
    scenes = some_scenes(200, (n_max, n_max))
    numbers = numbers_for(negative, scenes)
    out = negative(scenes, numbers)
    for k in range(numbers.shape[1]):
        other = numbers.copy()
        other[:, k] = (other[:, k] + 0.5) % 1
        assert not np.array_equal(negative(scenes, other), out), f"number {k} is not used"


@every
def test_wrong_under_its_criteria(negative):
    """Mostly: no negative promises it, but most of each are."""
    scenes = some_scenes(1000)
    goal = similarities.sample(len(scenes), np.random.default_rng(2)).apply(scenes)
    out = negative(scenes, numbers_for(negative, scenes))
    for criterion in CRITERIA:
        passed = goals.achieved(out, goal, criterion).mean()
        if criterion in negative.criteria:
            assert passed < 0.05
        elif negative.name != "mixture":
            assert passed == 1


@every
def test_names(negative):
    assert by_name(negative.name).name == negative.name
    assert by_name(negative) is negative
    assert set(negative.criteria) <= set(CRITERIA)
    assert "similarity" in negative.criteria
    hash(negative)


def test_registry():
    assert tuple(negatives.REGISTRY) == negatives.NAMES
    assert {"redrawn", "displaced", "mirrored", "twisted", "mis_scaled"} < set(negatives.NAMES)
    assert all(name == negative.name for name, negative in negatives.REGISTRY.items())


def test_displacements_within_the_tolerance_are_negatives_by_construction_only():
    tolerance = goals.TOLERANCES.position
    for kind in (Displaced, DisplacedFew):
        assert kind(0.0, tolerance).by_construction
        assert not kind(0.0, 1.01 * tolerance).by_construction
    assert not any(negative.by_construction for negative in negatives.REGISTRY.values())
    assert Mixture((Redrawn(), Displaced(0.4, 0.4))).by_construction
    scenes = some_scenes(1000)
    within = Displaced(tolerance, tolerance)
    assert goals.achieved(within(scenes, numbers_for(within, scenes)), scenes).all()


@pytest.mark.parametrize("max_turn", [None, 0.0])
@pytest.mark.parametrize("criterion", CRITERIA)
@every
def test_environments_accept_it_as_a_start_or_say_why_not(negative, criterion, max_turn):
    """A start that is accepted is never achieved; a refusal names it."""
    options = {"n_objects": (3, N_MAX), "criterion": criterion, "max_turn": max_turn, "start": negative}
    turns_for_nothing = negative.turns and max_turn == 0 and criterion == "similarity"
    if criterion not in negative.criteria or turns_for_nothing:
        with pytest.raises(ValueError, match=f"^start .*{negative.name}.* (is achieved already|turns objects)"):
            DiscriminationEnv(**options)
        return
    env = DiscriminationEnv(**options)
    for seed in range(20):
        assert not env.reset(seed=seed)[1]["is_success"]


def test_a_start_within_the_tolerance_is_refused_when_it_begins():
    env = DiscriminationEnv(5, start=Displaced(0.4, 0.4))
    with pytest.raises(RuntimeError, match="starts made by 'displaced' is achieved already; choose another start"):
        env.reset(seed=0)


def test_unknown_names():
    for name in ("swirled", "redrawn+swirled", "swirled+redrawn"):
        with pytest.raises(ValueError, match="negative 'swirled' is unknown; accepted are redrawn"):
            by_name(name)
    for other in (None, 3, ("redrawn", "twisted")):
        with pytest.raises(TypeError, match="accepted are a name"):
            by_name(other)


@pytest.mark.parametrize("kind", [Displaced, Twisted, MisScaled])
@pytest.mark.parametrize("bounds", [(3.0, 2.0), (-1.0, 2.0), (2.0, np.inf), (np.nan, 2.0), (2.0, np.nan)])
def test_bad_ranges(kind, bounds):
    with pytest.raises(ValueError, match="has the range"):
        kind(*bounds)


def test_a_scale_below_one_is_refused():
    with pytest.raises(ValueError, match=r"accepted is 1.0 <= low"):
        MisScaled(0.5, 2.0)


# --- closed forms ---------------------------------------------------------------------------------------------------


def test_redrawn_positions_are_uniform_over_the_place_of_each_object():
    scenes = some_scenes(5000, (4, 4))
    out = Redrawn()(scenes, numbers_for(Redrawn(), scenes))
    assert np.array_equal(out[..., ORIENTATION], scenes[..., ORIENTATION])
    size = out[..., SIZE, None].astype(np.float64)
    place = (out[..., POSITION] - size) / (20 - 2 * size)
    for axis in range(2):
        assert chance.uniform_fits(place[..., axis], 0, 1)
    both = np.concatenate([place, (scenes[..., POSITION] - size) / (20 - 2 * size)], axis=-1).reshape(len(scenes), -1)
    assert np.abs(np.corrcoef(both.T) - np.eye(16)).max() < chance.of_mean(1.0, len(scenes))


def test_poses_redraw_angles_too():
    scenes = some_scenes(5000, (4, 4))
    numbers = numbers_for(Poses(), scenes)
    out = Poses()(scenes, numbers)
    assert np.array_equal(out[..., POSITION], Redrawn()(scenes, numbers[:, :8])[..., POSITION])
    assert chance.uniform_fits(out[..., ORIENTATION], 0, 2 * np.pi)
    turn = (out[..., ORIENTATION] - scenes[..., ORIENTATION]).astype(np.float64) % (2 * np.pi)
    assert chance.uniform_fits(turn, 0, 2 * np.pi)


@pytest.mark.parametrize(("low", "high"), [(5.0, 20.0), (1.5, 10.0), (0.4, 0.4), (0.0, 1.0)])
def test_displaced_moves_one_object_by_the_distance(low, high):
    scenes = some_scenes(4000, (3, 6))
    negative = Displaced(low, high)
    step = as_points(negative(scenes, numbers_for(negative, scenes))) - as_points(scenes)
    moved = np.abs(step) > 0
    if low > 0:
        assert (moved.sum(axis=1) == 1).all()
    length, direction = np.abs(step[moved]), np.angle(step[moved])
    assert length.min() >= low - 1e-5
    assert length.max() <= high + 1e-5
    if low < high:
        assert chance.uniform_fits(length, low, high)
    assert chance.uniform_fits(direction, -np.pi, np.pi)
    for n in range(3, 7):  # every object has the same chance
        chosen = moved[(scene.count(scenes) == n) & moved.any(axis=1)].argmax(axis=1)
        rates = np.bincount(chosen, minlength=n) / len(chosen)
        assert np.abs(rates - 1 / n).max() < chance.of_rate(1 / n, len(chosen))


@pytest.mark.parametrize("reflect", [True, False])
def test_mirrored_reflects_the_picture(reflect):
    """Complex positions about the barycentre become minus their conjugates; a direction theta becomes pi - theta."""
    scenes = some_scenes()
    negative = Mirrored(reflect)
    out = negative(scenes, numbers_for(negative, scenes))
    assert np.allclose(about_the_barycentre(out), -about_the_barycentre(scenes).conj(), atol=1e-4)
    assert np.allclose(scene.barycenter(out), scene.barycenter(scenes), atol=1e-4)
    here = scene.present(scenes)
    before, after = (np.exp(1j * x[here][:, ORIENTATION].astype(np.float64)) for x in (scenes, out))
    assert np.allclose(after, -before.conj() if reflect else before, atol=1e-5)
    twice = negative(out, numbers_for(negative, scenes))
    assert np.allclose(as_points(twice), as_points(scenes), atol=1e-4)


def test_twisted_turns_positions_only():
    scenes = some_scenes(4000)
    negative = Twisted()
    out = negative(scenes, numbers_for(negative, scenes))
    before, after = about_the_barycentre(scenes), about_the_barycentre(out)
    z = (before.conj() * after).sum(axis=1) / (np.abs(before) ** 2).sum(axis=1)
    assert np.allclose(after, z[:, None] * before, atol=1e-4)
    assert np.allclose(np.abs(z), 1, atol=1e-5)
    assert np.array_equal(out[..., ORIENTATION], scenes[..., ORIENTATION])
    assert chance.uniform_fits(np.abs(np.angle(z)), negative.low, negative.high)
    assert abs((np.angle(z) > 0).mean() - 0.5) < chance.of_rate(0.5, len(scenes))


def test_mis_scaled_stretches_positions_only():
    scenes = some_scenes(4000)
    negative = MisScaled()
    out = negative(scenes, numbers_for(negative, scenes))
    before, after = about_the_barycentre(scenes), about_the_barycentre(out)
    factor = np.sqrt((np.abs(after) ** 2).sum(axis=1) / (np.abs(before) ** 2).sum(axis=1))
    assert np.allclose(after, factor[:, None] * before, atol=1e-4)
    assert chance.uniform_fits(np.abs(np.log(factor)), np.log(negative.low), np.log(negative.high))
    assert abs((factor > 1).mean() - 0.5) < chance.of_rate(0.5, len(scenes))


@pytest.mark.parametrize("negative", [Twisted(), MisScaled()])
def test_only_similarity_sees_what_sizes_and_angles_do_not_follow(negative):
    scenes = some_scenes(1000)
    goal = similarities.sample(len(scenes), np.random.default_rng(3)).apply(scenes)
    out = negative(scenes, numbers_for(negative, scenes))
    assert goals.distance(out, goal, "positions").max() < 0.01
    assert goals.achieved(out, goal, "similarity").mean() < 0.02
    assert negative.criteria == ("similarity",)


def test_a_mixture_takes_each_part_equally_often():
    mixture = by_name("redrawn+twisted+mirrored")
    assert [part.name for part in mixture.parts] == ["redrawn", "twisted", "mirrored"]
    assert mixture.n_uniform(N_MAX) == 1 + 2 * N_MAX
    assert mixture.criteria == ("similarity",)
    assert mixture.turns
    assert not Mixture((Redrawn(), Twisted())).turns
    scenes = some_scenes(3000)
    numbers = numbers_for(mixture, scenes)
    out = mixture(scenes, numbers)
    took = [(part(scenes, numbers[:, 1 : 1 + part.n_uniform(N_MAX)]) == out).all(axis=(1, 2)) for part in mixture.parts]
    assert (np.sum(took, axis=0) == 1).all()
    assert np.abs(np.mean(took, axis=1) - 1 / 3).max() < chance.of_rate(1 / 3, len(scenes))


def test_a_mixture_needs_parts():
    with pytest.raises(ValueError, match="at least one part"):
        Mixture(())
