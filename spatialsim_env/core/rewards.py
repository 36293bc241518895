"""Rewards: stateless batched functions of what is achieved and what is desired; truth and learned are one kind.

A reward is found by name: ``sparse`` and ``dense`` are those of a world's truth; every other name is offered to the
resolvers that installed packages list under the entry-point group ``spatialsim_env.rewards``, so this package never
imports the networks.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np

from spatialsim_env.core.judges import Array, Floats, Judge, Pairs, Question, Shaped
from spatialsim_env.core.world import World

ENTRY_POINTS = "spatialsim_env.rewards"


class Reward(Protocol):
    """Protocol of a reward.

    The value of a row depends on that row alone, bit for bit, and not on the batch around it.
    """

    @property
    def name(self) -> str:
        """The name under which ``resolve`` finds it, or a name of your own."""

    @property
    def success_threshold(self) -> float:
        """A value of at least this says "achieved"."""

    def __call__(self, achieved: Array, desired: Array) -> Floats:
        """Goals that are achieved and desired, as the world packs them, (B, ...) each -> (B,)."""


@dataclass(frozen=True)
class Sparse:
    """0 where a judge says achieved, else -1."""

    judge: Judge[Any]
    name: str = "sparse"
    success_threshold = -0.5

    @property
    def world(self) -> str:
        """The name of the world that it judges."""
        return self.judge.world

    def of(self, question: Question) -> Floats:
        """Reward a question, (B,); what a moment knows already is not computed again."""
        return np.where(self.judge.achieved(question), 0.0, -1.0)

    def __call__(self, achieved: Array, desired: Array) -> Floats:
        return self.of(Pairs(achieved, desired))


@dataclass(frozen=True)
class Dense:
    """The shaped score of a judge."""

    judge: Shaped[Any]
    name: str = "dense"

    @property
    def success_threshold(self) -> float:
        """A value of at least this says "achieved"."""
        return self.judge.shaped_threshold

    @property
    def world(self) -> str:
        """The name of the world that it judges."""
        return self.judge.world

    def of(self, question: Question) -> Floats:
        """Reward a question, (B,); what a moment knows already is not computed again."""
        return self.judge.shaped(question)

    def __call__(self, achieved: Array, desired: Array) -> Floats:
        return self.of(Pairs(achieved, desired))


TRUTHS: dict[str, Callable[[Any], Reward]] = {"sparse": Sparse, "dense": Dense}


def resolve(name: str, world: World[Any]) -> Reward:
    """Find the reward of a name or path for a world.

    Args:
        name: "sparse" or "dense" for the truth, else what an installed resolver knows: "hub:NAME", a path.

    Raises:
        TypeError: not a string. Live objects go in through ``env.unwrapped.set_reward``.
        ValueError: no resolver knows the name.
        ImportError: the resolver that may know the name cannot be imported.
    """
    if isinstance(name, str) and name in TRUTHS:
        return TRUTHS[name](world.truth)
    return installed(name)


def installed(name: str) -> Reward:
    """Find the reward of a name or path that the truth does not have.

    Raises:
        TypeError, ValueError, ImportError: see ``resolve``.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"reward is a {type(name).__name__}; accepted are names ({', '.join(TRUTHS)}, a path of a model). "
            "A live object goes in through env.unwrapped.set_reward(obj)"
        )
    missing: ImportError | None = None
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            resolver = entry.load()
        except ImportError as error:
            missing = error
            continue
        reward = resolver(name)
        if reward is not None:
            return reward
    if missing is not None and (os.sep in name or ":" in name or os.path.exists(name)):
        raise ImportError(
            f'reward {name!r} needs the networks: pip install "spatialsim-env[learn]" ({missing})'
        ) from missing
    unknown = f"reward {name!r} is unknown; accepted are {', '.join(TRUTHS)}, or a path of a model"
    raise ValueError(unknown if missing is None else f"{unknown}, which needs what is missing ({missing})") from missing
