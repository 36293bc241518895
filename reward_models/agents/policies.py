"""Policies of an environment: the protocol, the scripted expert and chance."""

from __future__ import annotations

import copy
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.expert import Expert
from spatialsim_env.arrangements.scene import as_batch


class Policy(Protocol):
    """A model of stable-baselines3, or anything that predicts as one."""

    def predict(self, observation: Any, *, deterministic: bool = True) -> tuple[NDArray[Any], Any]:
        """Actions for a batch of observations."""


class ExpertPolicy:
    """The scripted expert of an environment (protocol ``Policy``): an upper bound.

    Args:
        env: an environment, single or of many copies, whose rules and criterion it knows.
    """

    def __init__(self, env: Any) -> None:
        world = env.unwrapped.world
        self.expert = Expert(world.dynamics, world.truth.criterion)

    def predict(self, observation: Any, *, deterministic: bool = True) -> tuple[NDArray[Any], None]:
        """Actions for a batch of observations; always the same ones for the same scenes."""
        achieved, desired = (as_batch(observation[key])[0] for key in ("achieved_goal", "desired_goal"))
        return self.expert(achieved, desired), None


class RandomPolicy:
    """Actions drawn from the action space, a stream for each episode.

    Args:
        space: of the actions of one environment.
        seeds: of the episodes.
    """

    def __init__(self, space: gym.Space[Any], seeds: range) -> None:
        self.spaces = [copy.deepcopy(space) for _ in seeds]
        for own, seed in zip(self.spaces, seeds, strict=True):
            own.seed(seed)

    def predict(self, observation: Any, *, deterministic: bool = True) -> tuple[NDArray[Any], None]:
        return np.stack([space.sample() for space in self.spaces]), None


def make_policy(policy: Policy | str, env: Any, seeds: range) -> Policy:
    """Make a named policy of an environment, single or of many copies; any other policy stays as it is.

    Args:
        seeds: of the episodes that are played side by side.

    Raises:
        ValueError: a policy of another name.
    """
    if not isinstance(policy, str):
        return policy
    if policy == "expert":
        return ExpertPolicy(env)
    if policy == "random":
        return RandomPolicy(getattr(env, "single_action_space", env.action_space), seeds)
    raise ValueError(f'policy is {policy!r}; accepted are "random", "expert" and what has a predict method')
