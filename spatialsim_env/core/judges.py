"""Questions, moments and judges: what is asked, what is known of an episode, who answers.

A *question* is two batches of goals, achieved and desired. A *moment* is a question with the state of the world and the
truth's distance. A *judge* scores questions; the truth, a trained network, a rule and the ideal observer are judges of
one kind.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

Array = NDArray[Any]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Question(Protocol):
    """B pairs of goals, as arrays with the batch first."""

    @property
    def achieved(self) -> Array:
        """The goals that the world shows now, (B, ...)."""

    @property
    def desired(self) -> Array:
        """The goals that are to be reached, (B, ...)."""

    def rows(self, rows: Any) -> Self:
        """Select some pairs, by index or mask."""


class Moment(Question, Protocol):
    """B episodes at one moment."""

    @property
    def state(self) -> Array:
        """What the dynamics moves, (B, ...)."""

    @property
    def distance(self) -> Floats:
        """The truth's distance, (B,)."""

    @property
    def shown(self) -> tuple[Array, Array]:
        """The two arrays (B, ...) that say how the world lies."""

    def replaced(self, rows: Any, others: Self) -> Self:
        """Put ``others`` in the place of some episodes, by index or mask."""


M = TypeVar("M", bound=Moment)
M_co = TypeVar("M_co", bound=Moment, covariant=True)
M_contra = TypeVar("M_contra", bound=Moment, contravariant=True)
Q_contra = TypeVar("Q_contra", bound=Question, contravariant=True)


class Rows:
    """B things at once: the base of frozen dataclasses with arrays (B, ...), never written to.

    Fields that are no arrays are the same for all.
    """

    def rows(self, rows: Any) -> Self:
        """Select some, by index or mask."""
        return type(self)(*(part[rows] if isinstance(part, np.ndarray) else part for part in self._parts()))

    def replaced(self, rows: Any, others: Self) -> Self:
        """Put ``others`` in the place of some, by index or mask."""
        parts = [part.copy() if isinstance(part, np.ndarray) else part for part in self._parts()]
        for part, other in zip(parts, others._parts(), strict=True):
            if isinstance(part, np.ndarray):
                part[rows] = other
        return type(self)(*parts)

    def _parts(self) -> list[Any]:
        return [getattr(self, part.name) for part in fields(self)]  # type: ignore[arg-type]


@dataclass(frozen=True)
class Pairs(Rows):
    """The plainest question: two arrays of goals."""

    achieved: Array  # (B, ...)
    desired: Array  # (B, ...)


class Judge(Protocol[Q_contra]):
    """Scores questions: a score of at least ``threshold`` says "achieved".

    The score of a row depends on that row alone, bit for bit, and not on the batch around it.
    """

    @property
    def name(self) -> str:
        """The name by which it is found, or a name of your own."""

    @property
    def world(self) -> str:
        """The name of the world whose goals it judges."""

    @property
    def threshold(self) -> np.float64:
        """The least score that says "achieved"."""

    @property
    def fixed_goal(self) -> Array | None:
        """The only goal that it knows; None where it judges any."""

    def score(self, question: Q_contra) -> Floats:
        """Score a question, (B,)."""

    def achieved(self, question: Q_contra) -> Flags:
        """Decide a question, (B,): ``score(question) >= threshold``."""


class Shaped(Judge[Q_contra], Protocol[Q_contra]):
    """A judge that also has a shaped score for dense rewards."""

    @property
    def shaped_threshold(self) -> float:
        """The least shaped score that says "achieved"."""

    def shaped(self, question: Q_contra) -> Floats:
        """Score a question with a slope from afar, (B,)."""


class Truth(Shaped[Question], Protocol[M]):
    """The exact judge of a world; it makes moments of questions, and a moment of its own keeps what is computed."""

    def asked(self, question: Question) -> M:
        """Make a moment of a question; a moment that this truth has made is returned as it is."""

    def moved(self, now: M, state: Array) -> M:
        """Make the moment after a step that led to ``state``."""
