import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reward_models.agents.extractor import FAR, FEATURES_PER_OBJECT, NEAR, PlacedGoalExtractor, match, place_goal
from spatialsim_env.arrangements import goals, scene, similarities
from spatialsim_env.arrangements.negatives import Redrawn
from spatialsim_env.arrangements.scene import ARENA, N_FEATURES, ORIENTATION, POSITION, SIZE, TURN

WAY, BENT, ERROR, PRESENCE = slice(2, 4), slice(4, 6), slice(6, 8), 8
seeds = st.integers(0, 2**32 - 1)


def pairs(seed, size=16, n_max=6, low=2):
    """Achieved scenes and goals: the same objects redrawn, transformed; float64."""
    rng = np.random.default_rng(seed)
    reference = scene.sample(rng.integers(low, n_max + 1, size), n_max, rng)
    achieved = Redrawn()(reference, rng.random((size, 2 * n_max), np.float32))
    achieved[..., ORIENTATION] *= rng.random((size, n_max))
    desired = similarities.sample(size, rng).apply(reference.astype(np.float64))
    return achieved.astype(np.float64), desired, rng


def features(achieved, desired):
    return place_goal(torch.from_numpy(achieved), torch.from_numpy(desired)).numpy()


def places(achieved, desired):
    return achieved[..., POSITION] + FAR * features(achieved, desired)[..., WAY]


@given(seeds)
def test_the_order_of_the_goal_does_not_matter(seed):
    achieved, desired, rng = pairs(seed)
    permuted = desired[:, rng.permutation(desired.shape[1])]
    np.testing.assert_allclose(features(achieved, permuted), features(achieved, desired), atol=1e-9)


@given(seeds)
def test_a_similarity_of_the_goal_does_not_matter(seed):
    achieved, desired, rng = pairs(seed)
    moved = similarities.sample(len(desired), rng).apply(desired)
    np.testing.assert_allclose(features(achieved, moved), features(achieved, desired), atol=1e-6)


@given(seeds)
def test_a_permutation_of_the_achieved_objects_permutes_the_rows(seed):
    achieved, desired, rng = pairs(seed)
    order = rng.permutation(achieved.shape[1])
    np.testing.assert_allclose(features(achieved[:, order], desired), features(achieved, desired)[:, order], atol=1e-9)


@given(seeds)
def test_nothing_is_left_to_do_where_the_goal_is_achieved(seed):
    rng = np.random.default_rng(seed)
    achieved = scene.sample(rng.integers(1, 7, 16), 6, rng).astype(np.float64)
    desired = similarities.sample(16, rng).apply(achieved)
    np.testing.assert_allclose(features(achieved, desired)[..., 2:8], 0, atol=1e-6)


@given(seeds)
def test_objects_in_their_places_achieve_the_goal(seed):
    achieved, desired, _ = pairs(seed)
    achieved[..., ORIENTATION] = 0
    desired[..., ORIENTATION] = np.random.default_rng(seed).uniform(0, TURN, (len(desired), 1)) * scene.present(desired)
    way = features(achieved, desired)[..., WAY]
    assert (np.abs(way).max(axis=(1, 2)) > 1e-3).all()
    achieved[..., POSITION] = places(achieved, desired)
    assert goals.distance(achieved, desired).max() < 1e-4


def test_an_object_out_of_place_has_the_way_back_and_the_barycentre_its_share():
    achieved, rng = scene.sample([4], 4, np.random.default_rng(0)).astype(np.float64), np.random.default_rng(1)
    achieved[..., POSITION] = 10 + 0.2 * (achieved[..., POSITION] - 10)
    desired = similarities.sample(1, rng).apply(achieved)
    step = np.array([1.2, -0.8])
    achieved[0, 2, POSITION] += step
    expected = np.tile(step / 4, (4, 1))
    expected[2] -= step
    out = features(achieved, desired)[0]
    np.testing.assert_allclose(out[:, WAY] * FAR, expected, atol=1e-6)
    np.testing.assert_allclose(out[:, BENT], np.tanh(expected / NEAR), atol=1e-6)


def test_orientation_errors_are_measured_from_the_common_angle():
    achieved = scene.sample([2], 2, np.random.default_rng(0)).astype(np.float64)
    desired = similarities.sample(1, np.random.default_rng(1)).apply(achieved)
    achieved[0, :, ORIENTATION] += [0.4, -0.4]
    out = features(achieved, desired)[0]
    np.testing.assert_allclose(
        out[:, ERROR], [[np.sin(0.4), np.cos(0.4) - 1], [-np.sin(0.4), np.cos(0.4) - 1]], atol=1e-6
    )


@given(seeds)
def test_places_are_in_the_arena_where_they_fit_and_centred_where_not(seed):
    achieved, desired, rng = pairs(seed)
    achieved[..., SIZE] *= rng.uniform(0.3, 2, (len(achieved), 1))
    mask = scene.present(achieved)[..., None]
    achieved[..., POSITION] = rng.uniform(0, ARENA, (len(achieved), 1, 2)) * mask
    place = places(achieved, desired)
    low = np.where(mask, place, np.inf).min(axis=1)
    high = np.where(mask, place, -np.inf).max(axis=1)
    fits = high - low <= ARENA
    assert (low[fits] >= -1e-6).all()
    assert (high[fits] <= ARENA + 1e-6).all()
    np.testing.assert_allclose((low + high)[~fits], ARENA, atol=1e-6)


def test_padding_is_zero_and_changes_nothing():
    achieved, desired, _ = pairs(5, n_max=3, low=3)
    out = features(scene.pad(achieved, 7), scene.pad(desired, 7))
    np.testing.assert_allclose(out[:, :3], features(achieved, desired), atol=1e-12)
    assert (out[:, 3:] == 0).all()
    assert (out[:, :3, PRESENCE] == 1).all()


@pytest.mark.parametrize("case", ["empty", "one point", "opposite angles", "other objects"])
def test_degenerate_scenes_have_finite_features(case):
    achieved, desired, _ = pairs(7, n_max=2)
    if case == "empty":
        achieved, desired = np.zeros_like(achieved), np.zeros_like(desired)
    elif case == "one point":
        achieved[..., POSITION], desired[..., POSITION] = 3.0, -8.0
    elif case == "opposite angles":
        achieved[..., ORIENTATION], desired[..., ORIENTATION] = [0, np.pi], 0
    else:
        desired = pairs(8, n_max=2)[1]
    assert np.isfinite(features(achieved, desired)).all()


def test_matching_is_the_truths():
    env = gym.make("spatialsim_env:SpatialSim-Discrim-v0", n_objects=8)
    for seed in range(50):
        env.reset(seed=seed)
        achieved, desired = env.unwrapped.scenes
        truth = goals.Criterion().align(achieved[None], desired[None]).matching
        assert (match(torch.from_numpy(achieved[None]), torch.from_numpy(desired[None])).numpy() == truth).all()


def test_objects_that_look_the_same_have_a_row_each():
    rng = np.random.default_rng(0)
    scenes = scene.sample(np.full(8, 5), 5, rng)
    scenes[:4, 1:4, :SIZE] = scenes[:4, :1, :SIZE]
    scenes[:4, 1:4, scene.COLOR] = scenes[:4, :1, scene.COLOR]
    columns = match(torch.from_numpy(scenes), torch.from_numpy(scenes[:, ::-1].copy())).numpy()
    assert (np.sort(columns, axis=1) == np.arange(5)).all()
    assert (columns[:, 4] == 0).all()


def test_the_module_flattens_reads_no_observation_and_has_no_weights():
    env = gym.make("spatialsim_env:SpatialSim-Discrim-v0", n_objects=(2, 4))
    extractor = PlacedGoalExtractor(env.observation_space)
    observation = {key: torch.from_numpy(value)[None] for key, value in env.reset(seed=0)[0].items()}
    out = extractor(observation)
    assert out.shape == (1, extractor.features_dim) == (1, 4 * FEATURES_PER_OBJECT)
    assert (extractor({**observation, "observation": torch.full((1, 4 * N_FEATURES), torch.nan)}) == out).all()
    assert not list(extractor.parameters())
