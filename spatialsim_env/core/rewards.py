"""Rewards: stateless batched functions of what is achieved and what is desired; truth and learned are one kind.

A reward is found by name: ``sparse`` and ``dense`` are the truth's; every other name is offered to the resolvers
that installed packages list under the entry-point group ``spatialsim_env.rewards``, so this package never imports
the networks.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.goals import FARTHEST, Criterion

ENTRY_POINTS = "spatialsim_env.rewards"
SCENES = "2D scenes"  # what a reward judges whose attribute ``world`` says nothing else


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

    def __call__(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        """(B, n, 10) scenes in the arena and (B, n, 10) goals -> (B,)."""


def sparse_from_distance(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 where achieved, else -1."""
    return np.where(distance <= 1, 0.0, -1.0)


def dense_from_distance(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """-min(distance, 20)."""
    return -np.minimum(distance, FARTHEST)


_VALUES: dict[str, tuple[Callable[[NDArray[np.float64]], NDArray[np.float64]], float]] = {
    "sparse": (sparse_from_distance, -0.5),
    "dense": (dense_from_distance, -1.0),
}
TRUTHS = tuple(_VALUES)


@dataclass(frozen=True)
class TruthReward:
    """The exact geometry as reward; scenes of different objects are not achieved.

    Raises:
        ValueError: an unknown name.
    """

    name: str = "sparse"  # or "dense"
    criterion: Criterion = field(default_factory=Criterion)
    world = SCENES

    def __post_init__(self) -> None:
        if self.name not in _VALUES:
            raise ValueError(f"the truth's reward is {self.name!r}; accepted are {', '.join(TRUTHS)}")

    @property
    def success_threshold(self) -> float:
        return _VALUES[self.name][1]

    def from_distance(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """The reward as a function of the truth's distance, (B,) -> (B,)."""
        return _VALUES[self.name][0](distance)

    def __call__(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        return self.from_distance(self.criterion.align(achieved, desired).distance)


def resolve(name: str, criterion: Criterion | None = None, world: str | None = None) -> Reward:
    """The reward of a name or path.

    Args:
        name: "sparse" or "dense" for the truth, else what an installed resolver knows: "hub:NAME", a path.
        criterion: of the truth's rewards.
        world: what a learned reward must judge, ``SCENES`` or "relations in 3D"; None for either.

    Raises:
        TypeError: not a string. Live objects go in through ``env.unwrapped.set_reward``.
        ValueError: no resolver knows the name, or it judges another world.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"reward is a {type(name).__name__}; accepted are names ({', '.join(TRUTHS)}, a path of a model). "
            "A live object goes in through env.unwrapped.set_reward(obj)"
        )
    if name in _VALUES:
        return TruthReward(name, criterion or Criterion())
    missing: ImportError | None = None
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            resolver = entry.load()
        except ImportError as error:
            missing = error
            continue
        reward = resolver(name)
        if reward is not None:
            found = getattr(reward, "world", SCENES)
            if world not in (None, found):
                raise ValueError(f"reward {name!r} judges {found}; the environment has {world}")
            return reward
    if missing is not None and (os.sep in name or ":" in name or os.path.exists(name)):
        raise ImportError(f'reward {name!r} needs the networks: pip install "spatialsim-env[learn]" ({missing})')
    raise ValueError(f"reward {name!r} is unknown; accepted are {', '.join(TRUTHS)}, or a path of a model")
