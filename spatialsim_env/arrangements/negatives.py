"""Every way to make a wrong configuration.

A negative is a pure function of scenes and uniform numbers, batched: ``negative(scenes, numbers)`` with scenes
(B, n, 10) and numbers (B, ``n_uniform(n)``) in [0, 1). It changes the arrangement and keeps which objects there are.
The same functions make the negative samples of a task and the starts of episodes. None of them promises that the
result is wrong under the truth: ``tasks`` and the environment certify where that is wanted. Those that keep what a
rule of thumb looks at are in ``hard_negatives.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.alignment import CRITERIA
from spatialsim_env.arrangements.goals import TOLERANCES
from spatialsim_env.arrangements.hard_negatives import RadiusMatched, SpreadMatched, Swapped
from spatialsim_env.arrangements.scene import ORIENTATION, POSITION, TURN, barycenter, count, present, redraw

Scenes = NDArray[np.float32]


class Negative(Protocol):
    """Protocol of a negative."""

    @property
    def name(self) -> str:
        """Its name in the registry."""

    @property
    def turns(self) -> bool:
        """True where orientations change too."""

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria of ``goals`` under which the result is wrong."""

    @property
    def by_construction(self) -> bool:
        """True where the label holds by construction alone: the change lies within the truth's tolerance."""

    def n_uniform(self, n_max: int) -> int:
        """Count the uniform numbers that one scene of up to ``n_max`` objects takes."""

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        """Wrong configurations of the same objects: (B, n, 10), (B, n_uniform(n)) -> (B, n, 10)."""


def _check_range(name: str, low: float, high: float, least: float = 0.0, most: float = 1e6) -> None:
    if not least <= low <= high <= most:
        raise ValueError(f"{name} has the range ({low}, {high}); accepted is {least} <= low <= high <= {most}")


@dataclass(frozen=True)
class Redrawn:
    """The benchmark's negative (section 2.2): every position drawn anew, U[size, 20 - size] per coordinate."""

    name: str = field(default="redrawn", init=False)
    criteria = CRITERIA
    turns = False
    by_construction = False

    def n_uniform(self, n_max: int) -> int:
        return 2 * n_max

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        return redraw(scenes, numbers)


@dataclass(frozen=True)
class Poses:
    """Positions and orientations drawn anew; the start of episodes in which the agent must turn objects."""

    name: str = field(default="poses", init=False)
    criteria = CRITERIA
    turns = True
    by_construction = False

    def n_uniform(self, n_max: int) -> int:
        return 3 * n_max

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        n = scenes.shape[1]
        out = Redrawn()(scenes, numbers[:, : 2 * n])
        out[..., ORIENTATION] = TURN * numbers[:, 2 * n :] * present(scenes)
        return out


@dataclass(frozen=True)
class Displaced:
    """One object moved by a distance U[low, high] in a random direction; the authors' variant moves by 5 to 20."""

    low: float = 5.0  # units
    high: float = 20.0  # units
    name: str = field(default="displaced", init=False)
    criteria = CRITERIA
    turns = False

    def __post_init__(self) -> None:
        _check_range("displaced", self.low, self.high)

    @property
    def by_construction(self) -> bool:
        return self.high <= TOLERANCES.position

    def n_uniform(self, n_max: int) -> int:
        return 3

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        moved = _nth_present(scenes, numbers[:, 0])
        distance = self.low + (self.high - self.low) * numbers[:, 1]
        angle = TURN * numbers[:, 2]
        step = np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=-1)
        out = scenes.copy()
        out[..., POSITION] += moved[..., None] * step[:, None, :].astype(np.float32)
        return out


@dataclass(frozen=True)
class DisplacedFew:
    """A few objects moved, each as ``Displaced`` moves one; their number is uniform in 1..most, or all of fewer."""

    low: float = 5.0  # units
    high: float = 20.0  # units
    most: int = 3  # objects
    name: str = field(default="displaced_few", init=False)
    criteria = CRITERIA
    turns = False

    def __post_init__(self) -> None:
        _check_range("displaced_few", self.low, self.high)
        if isinstance(self.most, bool) or not isinstance(self.most, (int, np.integer)) or self.most < 1:
            raise ValueError(f"most is {self.most!r}; accepted is an int from 1")

    @property
    def by_construction(self) -> bool:
        return self.high <= TOLERANCES.position

    def n_uniform(self, n_max: int) -> int:
        return 1 + 3 * n_max

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        mask = present(scenes)
        keys, distance, angle = np.split(numbers[:, 1:], 3, axis=1)
        rank = np.argsort(np.argsort(np.where(mask, keys, np.inf), axis=1), axis=1)
        moved = (rank < 1 + (numbers[:, :1] * self.most).astype(np.int64)) & mask
        distance, angle = (self.low + (self.high - self.low) * distance) * moved, TURN * angle
        out = scenes.copy()
        out[..., POSITION] += np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=-1)
        return out


@dataclass(frozen=True)
class Mirrored:
    """The arrangement reflected about a vertical axis through its barycentre.

    Orientations are reflected along (theta -> pi - theta, the mirror image of the picture) or kept as they are.
    """

    reflect_orientation: bool = True
    name: str = field(default="mirrored", init=False)
    criteria = CRITERIA
    by_construction = False

    @property
    def turns(self) -> bool:
        return self.reflect_orientation

    def n_uniform(self, n_max: int) -> int:
        return 0

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        mask = present(scenes)
        out = scenes.copy()
        x = POSITION.start
        out[..., x] = (2 * barycenter(scenes)[..., 0] - scenes[..., x]) * mask
        if self.reflect_orientation:
            out[..., ORIENTATION] = np.mod(np.pi - scenes[..., ORIENTATION], np.float32(TURN)) * mask
        return out


@dataclass(frozen=True)
class Twisted:
    """Positions turned about the barycentre by an angle that the orientations do not follow.

    The angle is U[low, high] with a random sign. Wrong under ``similarity`` only.
    """

    low: float = 0.7  # radians
    high: float = np.pi  # radians
    name: str = field(default="twisted", init=False)
    criteria = ("similarity",)
    turns = False
    by_construction = False

    def __post_init__(self) -> None:
        _check_range("twisted", self.low, self.high, most=np.pi)

    def n_uniform(self, n_max: int) -> int:
        return 2

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        angle = (self.low + (self.high - self.low) * numbers[:, 0]) * np.where(numbers[:, 1] < 0.5, -1, 1)
        return _turn_and_scale(scenes, angle, np.ones_like(angle))


@dataclass(frozen=True)
class MisScaled:
    """Positions scaled about the barycentre by a factor that the sizes do not follow.

    The factor is exp(U[log low, log high]), inverted in half of the cases. Wrong under ``similarity`` only.
    """

    low: float = 1.5
    high: float = 3.0
    name: str = field(default="mis_scaled", init=False)
    criteria = ("similarity",)
    turns = False
    by_construction = False

    def __post_init__(self) -> None:
        _check_range("mis_scaled", self.low, self.high, least=1.0)

    def n_uniform(self, n_max: int) -> int:
        return 2

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        log = np.log(self.low) + (np.log(self.high) - np.log(self.low)) * numbers[:, 0]
        factor = np.exp(log * np.where(numbers[:, 1] < 0.5, -1, 1))
        return _turn_and_scale(scenes, np.zeros_like(factor), factor)


@dataclass(frozen=True)
class Mixture:
    """Each scene takes one of the parts, with equal probability."""

    parts: tuple[Negative, ...] = (
        Redrawn(),
        Displaced(low=1.5, high=10.0),
        Mirrored(),
        Twisted(),
        MisScaled(),
    )
    name: str = field(default="mixture", init=False)

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a mixture needs at least one part")

    @property
    def turns(self) -> bool:
        return any(part.turns for part in self.parts)

    @property
    def criteria(self) -> tuple[str, ...]:
        return tuple(name for name in CRITERIA if all(name in part.criteria for part in self.parts))

    @property
    def by_construction(self) -> bool:
        return any(getattr(part, "by_construction", False) for part in self.parts)

    def n_uniform(self, n_max: int) -> int:
        return 1 + max(part.n_uniform(n_max) for part in self.parts)

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        choice = (numbers[:, 0] * len(self.parts)).astype(np.int64)
        out = scenes.copy()
        for index, part in enumerate(self.parts):
            rows = choice == index
            out[rows] = part(scenes[rows], numbers[rows, 1 : 1 + part.n_uniform(scenes.shape[1])])
        return out


REGISTRY: dict[str, Negative] = {
    negative.name: negative
    for negative in (
        Redrawn(),
        Poses(),
        Displaced(),
        DisplacedFew(),
        Mirrored(),
        Twisted(),
        MisScaled(),
        Swapped(),
        SpreadMatched(),
        RadiusMatched(),
        Mixture(),
    )
}
NAMES = tuple(REGISTRY)


def by_name(negative: str | Negative) -> Negative:
    """A negative by its name, "a+b" for the even mixture of several; an object is passed through.

    Raises:
        TypeError: neither a name nor a negative.
        ValueError: an unknown name.
    """
    if not isinstance(negative, str):
        if isinstance(negative, type) or not (callable(negative) and hasattr(negative, "n_uniform")):
            raise TypeError(f"negative is {negative!r}; accepted are a name or an object such as Redrawn()")
        return negative
    names = negative.split("+")
    unknown = [name for name in names if name not in REGISTRY]
    if unknown:
        raise ValueError(f"negative {unknown[0]!r} is unknown; accepted are {', '.join(NAMES)}, or several joined by +")
    return REGISTRY[names[0]] if len(names) == 1 else Mixture(tuple(REGISTRY[name] for name in names))


def _nth_present(scenes: Scenes, numbers: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Mask (B, n) of one object per scene, uniform among those present, from uniform numbers (B,)."""
    rank = np.cumsum(present(scenes), axis=-1) - 1
    chosen = (numbers * count(scenes)).astype(np.int64)
    return (rank == chosen[:, None]) & present(scenes)


def _turn_and_scale(scenes: Scenes, angle: NDArray[Any], factor: NDArray[Any]) -> Scenes:
    """Positions turned and scaled about the barycentre; nothing else changes."""
    center = barycenter(scenes)
    offset = scenes[..., POSITION] - center
    cosine, sine = ((factor * f(angle)).astype(np.float32)[:, None] for f in (np.cos, np.sin))
    turned = np.stack(
        [cosine * offset[..., 0] - sine * offset[..., 1], sine * offset[..., 0] + cosine * offset[..., 1]], axis=-1
    )
    out = scenes.copy()
    out[..., POSITION] = np.where(present(scenes)[..., None], center + turned, 0)
    return out
