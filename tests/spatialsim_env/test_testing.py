"""The shipped assertions: each accepts what it should and has a function that must fail it."""

from __future__ import annotations

import numpy as np
import pytest

from spatialsim_env import testing
from spatialsim_env.arrangements import goals, scene
from spatialsim_env.arrangements.env import DiscriminationEnv
from spatialsim_env.arrangements.scene import POSITION
from spatialsim_env.arrangements.truth import SceneTruth
from spatialsim_env.core.rewards import TRUTHS

PAIRS = testing.example_pairs()
FIRST, SECOND = PAIRS.reference.astype(np.float64), PAIRS.target.astype(np.float64)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def spread(first, second):
    """Knows positions only, depends on scale and padding."""
    return first[..., POSITION].std(axis=(1, 2)) + second[..., POSITION].std(axis=(1, 2))


def first_object(first, second):
    return first[:, 0, scene.SIZE]


def of_the_batch(first, second):
    return first[..., scene.SIZE].sum(axis=1) - first[..., scene.SIZE].mean()


def changing(first, second):
    second[:, 0, scene.SIZE] += 1
    return second[:, 0, scene.SIZE].copy()


def test_the_truth_has_every_invariance():
    # at the mirrored angle a start of the fit may tip either way: compare where the truth is near a decision
    near = goals.distance(FIRST, SECOND) < 20
    first, second = FIRST[near], SECOND[near]
    testing.assert_similarity_invariant(goals.distance, first, second, rng(), sides="second")
    testing.assert_permutation_invariant(goals.distance, FIRST, SECOND, rng())
    testing.assert_padding_invariant(goals.distance, FIRST, SECOND)
    testing.assert_batch_independent(goals.distance, FIRST, SECOND)
    testing.assert_pure(goals.distance, FIRST, SECOND)


def test_each_assertion_catches_its_offender():
    for sides in ("first", "second", "both"):
        with pytest.raises(AssertionError, match="similarity"):
            testing.assert_similarity_invariant(spread, FIRST, SECOND, rng(), sides=sides)
    with pytest.raises(AssertionError, match="order"):
        testing.assert_permutation_invariant(first_object, FIRST, SECOND, rng())
    with pytest.raises(AssertionError, match="padding"):
        testing.assert_padding_invariant(spread, FIRST, SECOND)
    with pytest.raises(AssertionError, match="of 64 pairs"):
        testing.assert_batch_independent(of_the_batch, FIRST, SECOND)
    with pytest.raises(AssertionError, match=r"differ|changed"):
        testing.assert_pure(changing, FIRST, SECOND.copy())
    with pytest.raises(AssertionError, match="global random state"):
        testing.assert_pure(lambda a, b: np.zeros(len(a)) + 0 * np.random.rand(), FIRST, SECOND)  # noqa: NPY002


@pytest.mark.parametrize("name", TRUTHS)
def test_truth_rewards_keep_the_contract(name):
    testing.assert_reward(TRUTHS[name](SceneTruth()))


class Broken:
    """A reward with one thing wrong."""

    name, success_threshold = "broken", -0.5

    def __init__(self, function):
        self.function = function

    def __call__(self, achieved, desired):
        return self.function(achieved, desired)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, d: [0.0] * len(a), "returns an array"),
        (lambda a, d: np.zeros(3), "shape"),
        (lambda a, d: np.zeros(len(a), bool), "bool"),
        (lambda a, d: np.full(len(a), np.nan), "not finite"),
        (lambda a, d: np.ones(len(a)), "at most 0"),
        (lambda a, d: -np.abs(of_the_batch(a, d)).astype(np.float64), "pairs are evaluated"),
    ],
)
def test_broken_rewards_are_caught(function, message):
    with pytest.raises(AssertionError, match=message):
        testing.assert_reward(Broken(function))


class Careless(DiscriminationEnv):
    """Returns another reward than compute_reward."""

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward - 1, terminated, truncated, info


def test_a_careless_environment_is_caught():
    with pytest.raises(AssertionError, match="compute_reward differs"):
        testing.assert_environment(Careless())
