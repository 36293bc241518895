"""The ranges of the similarity between reference scene and goal."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import spatialsim_env
from spatialsim_env.arrangements import goals, scene, similarities
from spatialsim_env.arrangements.scene import ORIENTATION, POSITION, SIZE
from spatialsim_env.arrangements.world import GOAL_SCALES, feature_bounds

DISCRIM, IDENT = QUALIFIED = [f"spatialsim_env:{env_id}" for env_id in spatialsim_env.ENV_IDS]
NARROW = {"goal_scale": (2.1, 2.3), "goal_angle": (1.0, 1.5)}  # the scales are none of the benchmark's


def scales_and_angles(arena, goal):
    """How much larger and how far turned the objects of goals are, (B, n) each; redrawn starts keep both."""
    matching = goals.Criterion().align(arena, goal).matching
    matched = np.take_along_axis(goal, matching[..., None], axis=1)
    return matched[..., SIZE] / arena[..., SIZE], matched[..., ORIENTATION] - arena[..., ORIENTATION]


@pytest.mark.parametrize("env_id", QUALIFIED)
@pytest.mark.parametrize("ranges", [NARROW, {"goal_scale": (0.1, 0.1), "goal_angle": (0, 0)}, {}], ids=str)
def test_goals_are_scaled_and_turned_within_the_ranges(env_id, ranges):
    env = gym.make(env_id, n_objects=5, **ranges)
    scenes = [env.reset(seed=seed) and env.unwrapped.scenes for seed in range(40)]
    arena, goal = (np.stack(part) for part in zip(*scenes, strict=True))
    found = scales_and_angles(arena, goal)
    accepted = ranges.get("goal_scale", similarities.SCALES), ranges.get("goal_angle", similarities.ANGLES)
    for values, (low, high) in zip(found, accepted, strict=True):
        assert np.allclose(values, values[:, :1], atol=1e-4)  # one similarity for all objects of a goal
        assert values.min() >= low - 1e-4
        assert values.max() <= high + 1e-4
        if env_id == DISCRIM:
            assert np.ptp(values) >= 0.8 * (high - low)


@pytest.mark.parametrize("env_id", QUALIFIED)
def test_the_defaults_are_the_benchmarks_bit_for_bit(env_id):
    env, named = gym.make(env_id), gym.make(env_id, goal_scale=(0.5, 2.0), goal_angle=(0.0, 2 * np.pi))
    for seed in range(10):
        one, other = env.reset(seed=seed)[0], named.reset(seed=seed)[0]
        assert all(np.array_equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("env_id", QUALIFIED)
def test_the_goal_alone_depends_on_the_ranges(env_id):
    one, other = (gym.make(env_id, n_objects=4, **ranges).reset(seed=3)[0] for ranges in ({}, NARROW))
    assert np.array_equal(one["achieved_goal"], other["achieved_goal"])
    assert not np.array_equal(one["desired_goal"], other["desired_goal"])


@pytest.mark.parametrize("env_id", QUALIFIED)
def test_a_spec_keeps_the_ranges_through_json(env_id):
    env = gym.make(env_id, n_objects=4, **NARROW)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.world.episodes == env.unwrapped.world.episodes
    assert np.array_equal(again.reset(seed=1)[0]["desired_goal"], env.reset(seed=1)[0]["desired_goal"])


@pytest.mark.parametrize("scale", GOAL_SCALES)
def test_the_outermost_scales_stay_in_the_space_and_keep_the_truth(scale):
    low, high = feature_bounds()
    rng = np.random.default_rng(0)
    reference = scene.sample([30] * 200, 30, rng)
    reference[:, 0, POSITION], reference[:, 1:, POSITION] = 0.5, 19.5  # one object in each of two opposite corners
    reference[..., SIZE] = 2  # the largest
    numbers = rng.random((200, similarities.N_UNIFORM), np.float32)
    numbers[:, 2:] = rng.integers(0, 2, (200, 2)) * (1 - 2.0**-24)  # translations at the ends of their range
    goal = similarities.from_uniform(numbers, (scale, scale)).apply(reference)
    assert (goal >= low).all()
    assert (goal <= high).all()
    plain = scene.sample([5] * 200, 5, rng)
    assert goals.distance(plain, similarities.from_uniform(numbers, (scale, scale)).apply(plain)).max() < 0.01


@pytest.mark.parametrize("env_id", QUALIFIED)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("goal_scale", (2.0, 0.5)),
        ("goal_scale", (0.0, 1.0)),
        ("goal_scale", (0.5, 2.6)),
        ("goal_scale", 1.0),
        ("goal_scale", (1.0,)),
        ("goal_scale", "12"),
        ("goal_scale", (True, 2.0)),
        ("goal_scale", None),
        ("goal_angle", (np.nan, 1.0)),
        ("goal_angle", (-0.1, 1.0)),
        ("goal_angle", (0.0, 6.3)),
        ("goal_angle", (2.0, 1.0)),
        ("goal_angle", (0.0, "pi")),
    ],
)
def test_ranges_that_are_none_are_named(env_id, name, value):
    for make in (gym.make, gym.make_vec):
        with pytest.raises(ValueError, match=rf"{name} is .*; accepted is a pair \(low, high\) within \(0.*, low"):
            make(env_id, **{name: value})
