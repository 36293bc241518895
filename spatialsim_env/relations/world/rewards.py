"""The rule's margin as reward; learned models of relations come in by name (``rewards.resolve`` of the package).

A reward of relations takes goals as ``goals`` has them: achieved (B, 77), desired (B, 77) -> (B,). What is
required is read off the desired goal's flags, everything else off the achieved one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.core import rewards
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.world import goals

TRUTHS = ("sparse", "dense")
HIGHEST = 1.0  # of the dense reward; a predicate that holds by a whole unit of its margin holds by enough
LOWEST = -6.0  # of the dense reward; 400 contact tolerances, farther than the room is wide
WORLD = "relations in 3D"  # what a reward of relations says in its attribute ``world`` that it judges


def sparse_from_margin(margin: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 where the least margin is positive, else -1."""
    return np.where(margin > 0, 0.0, -1.0)


def dense_from_margin(margin: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least margin m up to 1; below 0 it is -log(1 - m), down to -6.

    The unit of a contact is 0.02 m, so a margin of -50 is a metre; the logarithm keeps a slope from across the room
    and the order of margins.
    """
    return np.clip(np.where(margin > 0, margin, -np.log1p(np.maximum(-margin, 0))), LOWEST, HIGHEST)


_VALUES = {"sparse": (sparse_from_margin, -0.5), "dense": (dense_from_margin, float(np.nextafter(0, 1)))}


@dataclass(frozen=True)
class RelationTruth:
    """The rules of ``predicates`` as reward.

    Raises:
        ValueError: an unknown name.
    """

    name: str = "sparse"  # or "dense"
    world = WORLD

    def __post_init__(self) -> None:
        if self.name not in TRUTHS:
            raise ValueError(f"the truth's reward is {self.name!r}; accepted are {', '.join(TRUTHS)}")

    @property
    def success_threshold(self) -> float:
        """The reward from which on it says achieved."""
        return _VALUES[self.name][1]

    def from_margin(self, margin: NDArray[np.float64]) -> NDArray[np.float64]:
        """The reward as a function of the least margin of what is required, (B,) -> (B,)."""
        return _VALUES[self.name][0](margin)

    def __call__(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        """Goals (B, 77) that are achieved and desired -> (B,)."""
        margins = predicates.margins(*goals.state(achieved))
        return self.from_margin(goals.least(margins, goals.required(desired)))


def resolve(name: str) -> rewards.Reward:
    """The reward of a name or path.

    Args:
        name: "sparse" or "dense" for the rules, else what an installed resolver knows: "hub:NAME", a path.

    Raises:
        TypeError: not a string. Live objects go in through ``env.unwrapped.set_reward``.
        ValueError: no resolver knows the name, or it is a model of 2D scenes.
    """
    if isinstance(name, str) and name in TRUTHS:
        return RelationTruth(name)
    return rewards.resolve(name, world=WORLD)
