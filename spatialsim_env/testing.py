"""Assertions about scenes, rewards and environments, for this package's tests and for yours.

The functions under test take two batches of scenes, (B, n, 10) each, and return (B,): a reward called as
``reward(achieved, desired)``, a model's ``score(target, reference)``, the truth's distance. Each assertion raises
AssertionError with the largest difference that it found.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from spatialsim_env.arrangements import similarities
from spatialsim_env.arrangements.scene import pad
from spatialsim_env.arrangements.tasks import Discrimination, Samples, shuffle
from spatialsim_env.core.rewards import Reward

PairFunction = Callable[[Any, Any], Any]


def example_pairs(size: int = 64, seed: int = 0, n_objects: int | tuple[int, int] = (3, 8)) -> Samples:
    """Benchmark pairs to try a function on; half of them are the same configuration."""
    return Discrimination(n_objects, balanced=True).sample(size, np.random.default_rng(seed))


def assert_similarity_invariant(
    function: PairFunction,
    first: NDArray[Any],
    second: NDArray[Any],
    rng: np.random.Generator,
    sides: str = "both",
    atol: float = 1e-6,
) -> None:
    """The value stays when the scenes of ``sides`` ("first", "second", or "both", by one similarity) are moved.

    Hand it float64 scenes: in float32 the transformation itself costs six digits.
    """
    similarity = similarities.sample(len(first), rng)
    moved_first = similarity.apply(first) if sides in ("first", "both") else first
    moved_second = similarity.apply(second) if sides in ("second", "both") else second
    _assert_close(function(first, second), function(moved_first, moved_second), atol, f"a similarity of {sides}")


def assert_permutation_invariant(
    function: PairFunction, first: NDArray[Any], second: NDArray[Any], rng: np.random.Generator, atol: float = 1e-6
) -> None:
    """The value stays when the objects of each scene are listed in other orders, present ones first."""
    orders = (shuffle(scenes, rng.random(scenes.shape[:2], np.float32)) for scenes in (first, second))
    _assert_close(function(first, second), function(*orders), atol, "the order of the objects")


def assert_padding_invariant(
    function: PairFunction, first: NDArray[Any], second: NDArray[Any], rows: int = 3, atol: float = 1e-6
) -> None:
    """The value stays when rows of padding are added."""
    padded = (pad(scenes, scenes.shape[1] + rows) for scenes in (first, second))
    _assert_close(function(first, second), function(*padded), atol, f"{rows} rows of padding")


def assert_batch_independent(function: PairFunction, first: NDArray[Any], second: NDArray[Any]) -> None:
    """The value of a pair is the same bits alone, in a part of the batch, and in the batch reversed."""
    whole = np.asarray(function(first, second))
    for size in (1, 2, 3, len(first) // 2):
        part = np.asarray(function(first[:size], second[:size]))
        assert np.array_equal(part, whole[:size]), f"values change when {size} of {len(first)} pairs are evaluated"
    backwards = np.asarray(function(first[::-1], second[::-1]))
    assert np.array_equal(backwards[::-1], whole), "values change with the order of the batch"


def assert_pure(function: PairFunction, first: NDArray[Any], second: NDArray[Any]) -> None:
    """Twice the same bits; the arguments and NumPy's global random state stay as they are."""
    copies = first.copy(), second.copy()
    state = global_random_state()
    one, two = np.array(function(first, second)), np.array(function(first, second))
    assert np.array_equal(one, two), "two calls with the same arguments differ"
    assert np.array_equal(first, copies[0]), "the first argument was changed"
    assert np.array_equal(second, copies[1]), "the second argument was changed"
    assert state == global_random_state(), "NumPy's global random state was changed"


def global_random_state() -> bytes:
    """NumPy's global random state, which nothing here may touch."""
    return pickle.dumps(np.random.get_state())  # noqa: NPY002


def assert_reward(reward: Reward, samples: Samples | None = None) -> None:
    """The contract of ``rewards.Reward``: shape, type, finite, pure, independent of batch and of padding."""
    pairs = samples or example_pairs()
    achieved, desired = np.array(pairs.reference), pairs.target
    values = reward(achieved, desired)
    assert isinstance(values, np.ndarray), f"a reward returns an array, not {type(values).__name__}"
    assert values.shape == (len(pairs),), f"{len(pairs)} pairs gave values of shape {values.shape}"
    assert np.issubdtype(values.dtype, np.floating), f"values are {values.dtype}, not a floating type"
    assert np.isfinite(values).all(), "values are not finite"
    assert values.max() <= 0, f"a reward is at most 0, not {values.max()}"
    assert isinstance(reward.name, str), f"name is {reward.name!r}, not a string"
    assert np.isfinite(reward.success_threshold), f"success_threshold is {reward.success_threshold}"
    assert_pure(reward, achieved, desired)
    assert_batch_independent(reward, achieved, desired)
    assert_padding_invariant(reward, achieved, desired)


def assert_environment(env: gym.Env[Any, Any], seed: int = 0, steps: int = 100) -> None:
    """Gymnasium's checker with warnings as errors, and the contract of goal-conditioned environments.

    Over an episode of random and of corner actions: observations stay in their space, the reward is
    ``compute_reward`` of the two goals, and ``info`` agrees with the truth that it reports.
    """
    world: Any = env.unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(world, skip_render_check=True)
        observation, info = world.reset(seed=seed)
        assert world.observation_space.contains(observation), "reset leaves the observation space"
        assert not info["is_success"], "an episode begins with its goal achieved"
        world.action_space.seed(seed)
        for step in range(steps):
            observation, reward, terminated, truncated, info = world.step(_action(world.action_space, step))
            assert world.observation_space.contains(observation), f"step {step} leaves the observation space"
            assert type(reward) is float, f"the reward is a {type(reward).__name__}"
            assert type(terminated) is bool, f"terminated is a {type(terminated).__name__}"
            assert type(truncated) is bool, f"truncated is a {type(truncated).__name__}"
            goals = observation["achieved_goal"], observation["desired_goal"]
            assert reward == world.compute_reward(*goals, info), f"step {step}: compute_reward differs from the reward"
            batches = [world.world.goals.batch(goal)[0] for goal in goals]
            reached = bool(world.world.truth.achieved(world.world.goals.question(*batches))[0])
            assert info["is_success"] == reached == (info["reward_true"] == 0), f"info is {info}"
            if terminated:
                break


def _action(space: gym.Space[Any], step: int) -> Any:
    """A random action, or every third time a corner of the space."""
    action = space.sample()
    return np.sign(action).astype(action.dtype) if step % 3 == 2 and isinstance(space, gym.spaces.Box) else action


def _assert_close(before: Any, after: Any, atol: float, change: str) -> None:
    before, after = np.asarray(before, np.float64), np.asarray(after, np.float64)
    differs = ~((before == after) | (np.abs(before - after) <= atol * np.maximum(1, np.abs(before))))
    worst = np.abs(before - after)[differs]
    assert not differs.any(), f"{change} changes {differs.sum()} of {differs.size} values, by up to {worst.max()}"
