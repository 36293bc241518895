"""The closed form of each hard negative; the contract over all negatives is in ``test_negatives.py``."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialsim_env.arrangements import goals, scene
from spatialsim_env.arrangements.hard_negatives import RadiusMatched, SpreadMatched, Swapped
from spatialsim_env.arrangements.negatives import Mirrored
from spatialsim_env.arrangements.scene import COLOR, ORIENTATION, POSITION, SHAPE, SIZE
from tests.spatialsim_env import chance

checked = settings(deadline=None, max_examples=60)
seeds, sizes = st.integers(0, 2**31), st.integers(1, 100)


def some_scenes(size: int, n_objects: tuple[int, int], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return scene.sample(rng.integers(n_objects[0], n_objects[1] + 1, size), n_objects[1], rng)


def made(negative, scenes: np.ndarray, seed: int = 1) -> np.ndarray:
    numbers = np.random.default_rng(seed).random((len(scenes), negative.n_uniform(scenes.shape[1])), np.float32)
    return negative(scenes, numbers)


def about_the_barycentre(scenes: np.ndarray) -> np.ndarray:
    """Complex positions (B, n) relative to the mean of the objects; padding at 0."""
    scenes = scenes.astype(np.float64)
    points = (scenes[..., POSITION] - scene.barycenter(scenes)) @ np.array([1, 1j])
    return np.where(scene.present(scenes), points, 0)


def same_look(one: np.ndarray, other: np.ndarray) -> bool:
    return bool((one[SHAPE] == other[SHAPE]).all() and np.abs(one[COLOR] - other[COLOR]).max() <= 0.05)


# --- swapped --------------------------------------------------------------------------------------------------------


@checked
@given(seeds, sizes)
def test_swapped_exchanges_two_places_and_nothing_else(seed, n):
    scenes = some_scenes(3, (1, n), seed)
    for before, after in zip(scenes, made(Swapped(), scenes, seed), strict=True):
        changed = np.flatnonzero((before != after).any(axis=1))
        rest = [k for k in range(scene.N_FEATURES) if not POSITION.start <= k < POSITION.stop]
        assert np.array_equal(after[:, rest], before[:, rest])
        held = before[scene.present(before)]
        if all(same_look(held[0], other) for other in held[1:]) and len(held) < 3:
            assert len(changed) == 0
            continue
        first, second = changed
        assert np.array_equal(after[first, POSITION], before[second, POSITION])
        assert np.array_equal(after[second, POSITION], before[first, POSITION])
        assert not same_look(before[first], before[second])


def test_every_pair_is_swapped_equally_often():
    scenes = some_scenes(6000, (4, 4))
    changed = (made(Swapped(), scenes) != scenes).any(axis=-1)
    codes, counts = np.unique(changed @ np.array([1, 2, 4, 8]), return_counts=True)
    assert len(codes) == 6
    assert np.abs(counts / len(scenes) - 1 / 6).max() < chance.of_rate(1 / 6, len(scenes)) + 0.002  # 0.05^3 look alike


def test_objects_that_look_alike_are_not_swapped():
    scenes = some_scenes(500, (4, 4))
    scenes[:, 1:3, SHAPE], scenes[:, 1:3, COLOR] = scenes[:, :1, SHAPE], scenes[:, :1, COLOR]
    changed = (made(Swapped(), scenes) != scenes).any(axis=-1)
    assert (changed[:, :3].sum(axis=1) == 1).all()
    assert changed[:, 3].all()
    scenes[:, 3, SHAPE], scenes[:, 3, COLOR] = scenes[:, 0, SHAPE], scenes[:, 0, COLOR]
    assert np.array_equal(made(Swapped(), scenes), scenes)


def test_the_last_pair_of_many_is_within_reach():
    """Uniform numbers next to 1 times 4,950 pairs round to 4,950 in float32."""
    scenes = some_scenes(1, (100, 100))
    scenes[..., SHAPE] = (1, 0, 0)
    scenes[..., COLOR] = 0
    scenes[0, 98, COLOR], scenes[0, 99, COLOR] = 0.5, 1.0
    out = Swapped()(scenes, np.full((1, 1), np.nextafter(np.float32(1), np.float32(0))))
    assert np.flatnonzero((out != scenes).any(axis=-1)[0]).tolist() == [98, 99]


# --- spread and radii -----------------------------------------------------------------------------------------------


@checked
@given(seeds, st.integers(2, 100))
def test_spread_matched_keeps_the_spread(seed, n):
    scenes = some_scenes(3, (2, n), seed)
    before, after = (about_the_barycentre(x) for x in (scenes, made(SpreadMatched(), scenes, seed)))
    assert np.allclose(np.linalg.norm(after, axis=1), np.linalg.norm(before, axis=1), rtol=1e-5)


def test_spread_matched_is_redrawn_up_to_scale():
    """Positions U[size, 20 - size] after a scaling about the barycentre; one object is just drawn anew."""
    scenes = some_scenes(2000, (6, 6))
    numbers = np.random.default_rng(1).random((len(scenes), 12), np.float32)
    size = scenes[..., SIZE, None].astype(np.float64)
    drawn = ((size + (20 - 2 * size) * numbers.reshape(-1, 6, 2)) @ np.array([1, 1j])).T
    drawn = (drawn - drawn.mean(axis=0)).T
    after = about_the_barycentre(SpreadMatched()(scenes, numbers))
    factor = np.linalg.norm(after, axis=1, keepdims=True) / np.linalg.norm(drawn, axis=1, keepdims=True)
    assert np.allclose(after, factor * drawn, atol=1e-4)
    alone = made(SpreadMatched(), scenes[:, :1])
    assert chance.uniform_fits((alone[..., POSITION] - size[:, :1]) / (20 - 2 * size[:, :1]), 0, 1)


@checked
@given(seeds, sizes)
def test_radius_matched_keeps_every_distance_and_the_barycentre(seed, n):
    scenes = some_scenes(3, (1, n), seed)
    out = made(RadiusMatched(), scenes, seed)
    before, after = about_the_barycentre(scenes), about_the_barycentre(out)
    assert np.allclose(np.abs(after), np.abs(before), atol=1e-4)
    assert np.allclose(scene.barycenter(out), scene.barycenter(scenes), atol=1e-4)


def test_radius_matched_turns_every_object_by_itself():
    """Seen from the barycentre: directions are uniform, and those of two objects not those they had."""
    scenes = some_scenes(4000, (6, 6))
    before, after = (about_the_barycentre(x) for x in (scenes, made(RadiusMatched(), scenes)))
    assert all(chance.uniform_fits(np.angle(after[:, k]), -np.pi, np.pi) for k in range(6))
    turn = after / before
    assert np.abs(turn.mean(axis=0)).max() < chance.of_mean(1.0, len(scenes))
    apart = np.angle(turn[:, 1:] / turn[:, :1])
    assert (np.abs(apart) < 0.1).mean() < 0.06  # 0.2 of 2 pi: 0.032 if they were independent


def test_radius_matched_mirrors_three_objects():
    """Up to a turn the mirror image is the one other arrangement with the same distances."""
    scenes = scene.pad(some_scenes(500, (3, 3)), 5)
    out = made(RadiusMatched(), scenes)
    mirrored = about_the_barycentre(Mirrored()(scenes, np.empty((500, 0), np.float32)))
    after = about_the_barycentre(out)
    turn = (mirrored.conj() * after).sum(axis=1, keepdims=True) / (np.abs(mirrored) ** 2).sum(axis=1, keepdims=True)
    assert np.allclose(after, turn * mirrored, atol=1e-2)  # the angle of a flat triangle is the root of a rounding


@pytest.mark.parametrize("lengths", [[0, 0, 0, 0], [1, 1, 1, 3], [1, 2, 3, 0], [5, 5, 0, 0], [1, 1, 1, 1]])
def test_chains_that_barely_close(lengths):
    """Objects on one line, on one point, or where one distance is the sum of the others."""
    places = {3: [-3, 1, 1, 1], 2: [3, -1, -2, 0]}.get(max(lengths[-1], lengths[1]), np.array(lengths) * [1, -1, 1, -1])
    scenes = some_scenes(50, (4, 4))
    scenes[..., POSITION] = np.array([[10 + x, 10] for x in places], np.float32)
    out = made(RadiusMatched(), scenes)
    assert np.isfinite(out).all()
    before, after = about_the_barycentre(scenes), about_the_barycentre(out)
    assert np.allclose(np.abs(after), np.abs(before), atol=2e-3)


# --- what they leave for the truth ----------------------------------------------------------------------------------


@pytest.mark.parametrize("negative", [Swapped(), SpreadMatched(), RadiusMatched()], ids=lambda negative: negative.name)
@pytest.mark.parametrize("n", [8, 30, 100])
def test_the_truth_sees_them(negative, n):
    scenes = some_scenes(300, (n, n))
    assert goals.achieved(made(negative, scenes), scenes).mean() < 0.03
    assert np.array_equal(made(negative, scenes)[..., ORIENTATION], scenes[..., ORIENTATION])
