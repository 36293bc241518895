"""Matching and fits against brute force over all permutations and against textbook solutions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from spatialsim_env.arrangements import scene, similarities
from spatialsim_env.arrangements.alignment import (
    CRITERIA,
    MAX_ENUMERATED,
    OK,
    ORIENTATIONS,
    SHAPES_DIFFER,
    Alignment,
    align,
    distances,
)
from spatialsim_env.arrangements.negatives import Redrawn
from spatialsim_env.arrangements.scene import COLOR, ORIENTATION, POSITION, SHAPE, SIZE
from spatialsim_env.arrangements.tasks import Discrimination
from tests.spatialsim_env import literal

TOLERANCES = literal.TOLERANCES
RESULTS = ("status", "matching", "interchangeable", "scale", "angle", "translation", "residuals", "distance")


def scenes_of(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    return scene.sample(np.full(size, n), n, rng).astype(np.float64)


def equal_objects(n: int, size: int, rng: np.random.Generator, groups: int = 1) -> np.ndarray:
    """Scenes whose objects nothing but position tells apart, in ``groups`` colours."""
    scenes = scenes_of(n, size, rng)
    scenes[..., SHAPE], scenes[..., SIZE], scenes[..., ORIENTATION] = [0, 0, 1], 1, 0
    scenes[..., COLOR] = (np.arange(n) % groups / groups)[:, None]
    return scenes


def noisy(scenes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The benchmark's perturbation."""
    return np.stack([literal.perturbed(rows, rng.standard_normal((len(rows), 7))) for rows in scenes])


def moved(scenes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Goals made of the scenes: under random similarities, in another order."""
    order = np.argsort(rng.random(scenes.shape[:2]), axis=1)[..., None]
    return similarities.sample(len(scenes), rng).apply(np.take_along_axis(scenes, order, axis=1))


def over_all_matchings(achieved: np.ndarray, desired: np.ndarray, criterion: str) -> float:
    """Least distance over every permutation of n equal objects."""
    n = len(achieved)
    orders = np.array(list(itertools.permutations(range(n))))
    pairs = (np.broadcast_to(x, (len(orders), n, scene.N_FEATURES)) for x in (achieved, desired))
    return float(align(*pairs, TOLERANCES, criterion, matching=orders).distance.min())


# --- matching -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([0.01, 0.1, 0.3]))
def test_matching_costs_least(seed, n, noise):
    """Against all permutations; colours differ so much that nearest partners often collide."""
    rng = np.random.default_rng(seed)
    desired = scenes_of(n, 1, rng)
    achieved = desired[:, rng.permutation(n)].copy()
    achieved[..., COLOR] += noise * rng.standard_normal(achieved[..., COLOR].shape)
    table = np.array([[literal.cost(a, g) for g in desired[0]] for a in achieved[0]])
    least = min(sum(table[i, j] for i, j in enumerate(order)) for order in itertools.permutations(range(n)))
    found = align(achieved, desired, TOLERANCES)
    assert found.status[0] == OK
    assert sorted(found.matching[0]) == list(range(n))
    if not found.interchangeable[0]:  # else a dearer colour match may lie nearer
        assert np.isclose(table[np.arange(n), found.matching[0]].sum(), least)
    assert (achieved[0, :, SHAPE] == desired[0, found.matching[0]][:, SHAPE]).all()


def test_the_order_of_a_shuffled_copy_is_found():
    rng = np.random.default_rng(0)
    desired = scenes_of(8, 200, rng)
    order = np.argsort(rng.random((200, 8)), axis=1)
    found = align(np.take_along_axis(desired, order[..., None], axis=1), desired, TOLERANCES)
    alone = ~found.interchangeable
    assert alone.mean() > 0.9
    assert np.array_equal(found.matching[alone], order[alone])


def test_padding_is_matched_with_nothing():
    rng = np.random.default_rng(1)
    short = scenes_of(3, 1, rng)
    wide = np.zeros((1, 5, scene.N_FEATURES))
    wide[:, [0, 2, 4]] = short
    for achieved, desired in ((short, wide), (wide, short), (wide, wide)):
        found = align(achieved, desired, TOLERANCES)
        here = scene.present(scene.pad(achieved, 5))[0]
        assert (found.matching[0][~here] == -1).all()
        assert scene.present(scene.pad(desired, 5))[0][found.matching[0][here]].all()
        assert not found.residuals[0][~here].any()
        assert found.distance[0] < 1e-9


def test_different_objects_have_a_status_and_distance_inf():
    rng = np.random.default_rng(2)
    three = scenes_of(3, 1, rng)
    other = three.copy()
    other[0, 1, SHAPE] = np.roll(other[0, 1, SHAPE], 1)
    fewer = three.copy()
    fewer[0, 2] = 0
    for criterion in CRITERIA:
        assert align(three, other, TOLERANCES, criterion).status[0] == SHAPES_DIFFER
        for desired in (other, fewer, np.zeros_like(three)):
            found = align(three, desired, TOLERANCES, criterion)
            assert found.status[0] != OK
            assert found.distance[0] == np.inf


def test_shapes_outweigh_colours():
    """Two objects whose colours are swapped between their shapes are matched by shape."""
    desired = scenes_of(2, 1, np.random.default_rng(3))
    desired[0, :, SHAPE] = [[1, 0, 0], [0, 1, 0]]
    desired[0, :, COLOR] = [[0, 0, 0], [1, 1, 1]]
    achieved = desired.copy()
    achieved[0, :, COLOR] = desired[0, ::-1, COLOR]
    assert align(achieved, desired, TOLERANCES).matching[0].tolist() == [0, 1]


# --- interchangeable objects ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(("n", "pairs"), [(2, 4), (3, 4), (4, 3), (5, 1)])
def test_equal_objects_against_the_literal_truth(n, pairs, criterion):
    rng = np.random.default_rng(4)
    achieved = equal_objects(n, 2 * pairs, rng)
    desired = moved(np.concatenate([noisy(achieved[:pairs], rng), equal_objects(n, pairs, rng)]), rng)
    fast = align(achieved, desired, TOLERANCES, criterion)
    slow = [literal.distance(a, g, criterion) for a, g in zip(achieved, desired, strict=True)]
    assert fast.interchangeable.all()
    assert np.allclose(fast.distance, slow, rtol=1e-7)


def test_seven_equal_objects_against_the_literal_truth():
    rng = np.random.default_rng(5)
    achieved = equal_objects(7, 1, rng)
    desired = moved(noisy(achieved, rng), rng)
    fast = align(achieved, desired, TOLERANCES, "positions").distance[0]
    assert np.isclose(fast, literal.distance(achieved[0], desired[0], "positions"), rtol=1e-7)
    assert fast <= 1


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n", [6, 7])
def test_equal_objects_against_all_permutations(n, criterion):
    rng = np.random.default_rng(6)
    achieved = equal_objects(n, 8, rng)
    desired = moved(np.concatenate([noisy(achieved[:4], rng), equal_objects(n, 4, rng)]), rng)
    for a, g in zip(achieved, desired, strict=True):
        assert np.isclose(
            align(a[None], g[None], TOLERANCES, criterion).distance[0], over_all_matchings(a, g, criterion)
        )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_groups_of_equal_objects(criterion):
    """Two colours of three: 36 matchings, against the literal truth; sizes and angles differ within a colour."""
    rng = np.random.default_rng(7)
    achieved = equal_objects(6, 4, rng, groups=2)
    achieved[..., SIZE] = rng.uniform(0.5, 2, (4, 6))
    desired = moved(noisy(achieved, rng), rng)
    fast = align(achieved, desired, TOLERANCES, criterion).distance
    slow = [literal.distance(a, g, criterion) for a, g in zip(achieved, desired, strict=True)]
    assert np.allclose(fast, slow, rtol=1e-7)
    assert (fast <= 1).all()


def test_five_deviations_of_colour_make_interchangeable():
    """Swapped objects are told apart beyond 0.05 in a channel; chains count as one class."""
    rng = np.random.default_rng(8)
    desired = equal_objects(3, 1, rng)
    achieved = desired[:, [1, 2, 0]].copy()
    for step, same in ((0.049, True), (0.051, False)):
        for scenes in (achieved, desired):
            scenes[0, :, COLOR.start] = 0.2 + step * np.arange(3)
        found = align(achieved, desired, TOLERANCES)
        assert found.interchangeable[0] == same
        assert (found.distance[0] < 1e-9) == same


@pytest.mark.parametrize("criterion", CRITERIA)
def test_beyond_7_factorial_the_distance_is_an_upper_bound(criterion):
    """Eight equal objects have 40,320 matchings."""
    rng = np.random.default_rng(9)
    achieved = equal_objects(8, 4, rng)
    desired = moved(np.concatenate([noisy(achieved[:2], rng), equal_objects(8, 2, rng)]), rng)
    assert MAX_ENUMERATED == 5040
    for k, (a, g) in enumerate(zip(achieved, desired, strict=True)):
        found, least = align(a[None], g[None], TOLERANCES, criterion).distance[0], over_all_matchings(a, g, criterion)
        assert found >= least * (1 - 1e-9)
        if k < 2:
            assert np.isclose(found, least)  # a true arrangement is found


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    ("n", "groups"), [(8, 1), (12, 1), (12, 2), (20, 1), (21, 1), (22, 1), (26, 1), (30, 1), (30, 3)]
)
def test_many_equal_objects_find_the_noiseless_truth(n, groups, criterion):
    """The number of matchings passes 2^63 at 21 objects."""
    rng = np.random.default_rng(n)
    achieved = equal_objects(n, 1, rng, groups)
    found = align(achieved, moved(achieved, rng), TOLERANCES, criterion)
    assert found.interchangeable[0]
    assert sorted(found.matching[0]) == list(range(n))
    assert found.distance[0] < 1e-9


@pytest.mark.parametrize("criterion", CRITERIA)
def test_many_equal_objects_find_the_noisy_truth(criterion):
    """The search is not exact, but with the benchmark's noise it misses none of these."""
    rng = np.random.default_rng(18)
    achieved = equal_objects(8, 30, rng)
    assert align(achieved, moved(noisy(achieved, rng), rng), TOLERANCES, criterion).distance.max() <= 1


def test_many_equal_objects_of_two_sizes_on_the_same_places():
    """A small one on every large one: positions leave 2^5 matchings, sizes one."""
    rng = np.random.default_rng(19)
    achieved = equal_objects(10, 5, rng)
    achieved[:, 5:, POSITION] = achieved[:, :5, POSITION]
    achieved[:, 5:, SIZE] = 0.5
    assert align(achieved, moved(achieved, rng), TOLERANCES).distance.max() < 1e-9


@pytest.mark.parametrize("criterion", CRITERIA)
def test_many_objects_of_two_colours_keep_their_colours(criterion):
    """Two that exchange places are out of place, though a matching across colours would fit."""
    rng = np.random.default_rng(20)
    achieved = equal_objects(12, 5, rng, groups=2)
    desired = achieved.copy()
    desired[:, :2, POSITION] = achieved[:, 1::-1, POSITION]
    found = align(achieved, moved(desired, rng), TOLERANCES, criterion)
    assert found.distance.min() > 1


def test_equal_objects_on_one_point_or_two():
    rng = np.random.default_rng(10)
    for n in (3, 9):
        for places in (1, 2):
            achieved = equal_objects(n, 1, rng)
            achieved[..., POSITION] = 5 + 3 * (np.arange(n) % places)[:, None]
            desired = moved(achieved, rng)
            likely = align(achieved, desired, TOLERANCES).distance[0]
            positions = align(achieved, desired, TOLERANCES, "positions").distance[0]
            assert likely < 1e-9
            assert positions == np.inf if places == 1 else positions < 1e-9


# --- fits -----------------------------------------------------------------------------------------------------------


def test_the_similarity_itself_is_found():
    rng = np.random.default_rng(11)
    achieved = scenes_of(5, 100, rng)
    similarity = similarities.sample(100, rng)
    desired = similarity.apply(achieved)
    for criterion in CRITERIA:
        fit = align(achieved, desired, TOLERANCES, criterion)
        assert np.allclose(fit.scale * similarity.scale, 1)
        assert np.allclose(np.exp(1j * (fit.angle + similarity.angle)), 1)
        assert fit.distance.max() < 1e-9
        matched = np.take_along_axis(desired, fit.matching[..., None], axis=1)[..., POSITION] @ np.array([1, 1j])
        back = (fit.scale * np.exp(1j * fit.angle))[:, None] * matched + (fit.translation @ np.array([1, 1j]))[:, None]
        assert np.allclose(back, achieved[..., POSITION] @ np.array([1, 1j]))


def test_the_similarity_fit_is_the_likeliest():
    """Five steps end where a general optimiser does, on the likelihood written with explicit residuals."""
    samples = Discrimination((2, 8), balanced=True).sample(60, np.random.default_rng(12))
    right = samples[samples.label == 1]
    fit = align(right.reference, right.target, TOLERANCES)
    for k in range(len(right)):
        a = literal.drop_padding(right.reference[k])
        g = right.target[k].astype(np.float64)[fit.matching[k][: len(a)]]
        period = literal.periods(g, "number")
        there = np.array([np.log(fit.scale[k]), fit.angle[k]])
        best = minimize(lambda p, a=a, g=g, period=period: (literal.stacked(a, g, period, p)[0] ** 2).sum(), there)
        assert np.allclose(best.x, there, atol=1e-5)


def test_the_position_fit_is_umeyamas():
    rng = np.random.default_rng(13)
    achieved, desired = scenes_of(5, 50, rng), scenes_of(5, 50, rng)
    desired[..., SHAPE], desired[..., COLOR] = achieved[..., SHAPE], achieved[..., COLOR]
    fit = align(achieved, desired, TOLERANCES, "positions")
    for k in range(50):
        g = desired[k, fit.matching[k]]
        scale, angle = literal.umeyama(achieved[k, :, POSITION], g[:, POSITION])
        assert np.isclose(fit.scale[k], scale)
        assert np.isclose(np.exp(1j * (fit.angle[k] - angle)), 1)
        factor = max(1, np.exp(np.log(achieved[k, :, SIZE] / g[:, SIZE]).mean()) / scale)
        left = np.array(literal.residuals_of(achieved[k], g, scale, angle, "number"))
        assert np.allclose(fit.residuals[k], left * [factor, 1, 1])


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(3, 8))
def test_reflections_never_match(seed, n):
    """The mirror image lies at the distance of its best rotation, though a reflection would fit exactly."""
    rng = np.random.default_rng(seed)
    achieved = scenes_of(n, 1, rng)
    desired = achieved.copy()
    desired[..., POSITION.start] *= -1
    points = achieved[0, :, POSITION] @ np.array([1, 1j])
    points -= points.mean()
    mirrored = -points.conj()
    z = np.vdot(mirrored, points) / np.vdot(mirrored, mirrored).real
    left = np.abs(points - z * mirrored).max() * max(1, 1 / abs(z))
    found = align(achieved, desired, TOLERANCES, "positions")
    if not found.interchangeable[0]:
        assert np.isclose(found.distance[0], left, rtol=1e-6)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("equal", [False, True])
def test_a_lopsided_figure_and_its_mirror_image(equal, criterion):
    """An F of seven objects, whether or not they can be told apart."""
    rng = np.random.default_rng(14)
    achieved = equal_objects(7, 1, rng) if equal else scenes_of(7, 1, rng)
    achieved[..., ORIENTATION] = 0
    achieved[0, :, POSITION] = [[2, 2], [2, 6], [2, 10], [2, 14], [6, 14], [10, 14], [6, 10]]
    desired = achieved.copy()
    desired[..., POSITION.start] *= -1
    assert align(achieved, moved(achieved, rng), TOLERANCES, criterion).distance[0] < 1e-9
    assert align(achieved, moved(desired, rng), TOLERANCES, criterion).distance[0] > 1


def test_a_line_is_its_own_mirror_image():
    achieved = scenes_of(4, 1, np.random.default_rng(15))
    achieved[0, :, POSITION] = [[2, 2], [5, 5], [11, 11], [12, 12]]
    desired = achieved.copy()
    desired[..., POSITION.start] *= -1
    assert align(achieved, desired, TOLERANCES, "positions").distance[0] < 1e-9


# --- batches --------------------------------------------------------------------------------------------------------


def mixed_bag() -> tuple[np.ndarray, np.ndarray]:
    """Pairs of every kind: benchmark pairs, equal objects to enumerate and to search, different objects."""
    rng = np.random.default_rng(16)
    samples = Discrimination((1, 9)).sample(60, rng)
    few, many = equal_objects(4, 3, rng), equal_objects(9, 2, rng)
    circles = many.copy()
    circles[..., SHAPE] = [0, 1, 0]
    achieved = np.concatenate([samples.reference, scene.pad(few, 9), many, samples.reference[:5], many])
    desired = [samples.target, scene.pad(moved(few, rng), 9), moved(many, rng), samples.target[5:10], circles]
    desired = np.concatenate(desired)
    order = rng.permutation(len(achieved))
    return achieved[order], desired[order]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_pair_does_not_depend_on_its_batch(criterion, orientation):
    achieved, desired = mixed_bag()
    whole = align(achieved, desired, TOLERANCES, criterion, orientation)
    assert len(set(whole.status)) == 3
    backwards = align(achieved[::-1], desired[::-1], TOLERANCES, criterion, orientation)
    assert_same(whole, Alignment(**{name: getattr(backwards, name)[::-1] for name in RESULTS}))
    for k in range(len(achieved)):
        alone = align(achieved[k : k + 1], desired[k : k + 1], TOLERANCES, criterion, orientation)
        assert_same(Alignment(**{name: getattr(whole, name)[k : k + 1] for name in RESULTS}), alone)


def assert_same(one: Alignment, other: Alignment) -> None:
    """Bit for bit, where the fields are defined."""
    assert np.array_equal(one.status, other.status)
    assert np.array_equal(one.distance, other.distance)
    fine = one.status == OK
    for name in RESULTS:
        assert np.array_equal(getattr(one, name)[fine], getattr(other, name)[fine]), name


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_given_matching_gives_what_the_search_found(criterion):
    achieved, desired = mixed_bag()
    found = align(achieved, desired, TOLERANCES, criterion)
    fine = found.status == OK
    given_it = align(achieved[fine], desired[fine], TOLERANCES, criterion, matching=found.matching[fine])
    assert np.array_equal(given_it.distance, found.distance[fine])
    assert np.array_equal(given_it.residuals, found.residuals[fine])


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_distances_of_known_matchings_are_those_of_the_fit(criterion, orientation):
    """The same bits, for scenes of several sizes, near their goals and far from them."""
    pairs = Discrimination((1, 8)).sample(500, np.random.default_rng(0))
    achieved, desired = np.array(pairs.reference), pairs.target
    matching = align(achieved, desired, TOLERANCES, criterion, orientation).matching
    expected = align(achieved, desired, TOLERANCES, criterion, orientation, matching).distance
    found = distances(achieved, desired, matching, TOLERANCES, criterion, orientation)
    assert np.array_equal(found, expected)
    assert (found <= 1).any()
    assert (found > 1).any()


def test_arguments_are_kept():
    rng = np.random.default_rng(17)
    achieved = equal_objects(8, 1, rng)
    desired = Redrawn()(achieved.astype(np.float32), rng.random((1, 16), np.float32)).astype(np.float64)
    matching = np.arange(8)[None]
    before = achieved.copy(), desired.copy(), matching.copy()
    for known in (None, matching):
        align(achieved, desired, TOLERANCES, matching=known)
    assert all(np.array_equal(x, y) for x, y in zip((achieved, desired, matching), before, strict=True))
