"""Moves: the part of a question that an optimiser may change, as a vector; one file a world."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from reward_models.judges.judge import Lifted
from spatialsim_env.core.judges import Floats


class Moves(Protocol):
    """B questions as vectors (B, d), and back."""

    @property
    def name(self) -> str:
        """Name of the moves in a report."""

    @property
    def steps(self) -> tuple[float, float]:
        """Length of the first and of the last step of an ascent."""

    @property
    def spread(self) -> float:
        """The first deviation of CMA-ES."""

    @property
    def runs(self) -> int:
        """Runs of CMA-ES that the budget of a start is cut into, at the least."""

    def vectors(self, question: Any) -> Floats:
        """Encode the achieved goals as vectors (B, d)."""

    def placed(self, question: Any, vectors: Floats) -> Any:
        """The questions with what vectors (B, d) say, as an environment would hold them."""

    def within(self, question: Any, vectors: Floats) -> Floats:
        """The vectors (B, d) with what lies outside of what is allowed brought inside."""

    def bounds(self, question: Any) -> Floats:
        """Lowest and highest value of each number of a vector, (d, 2)."""

    def cost(self, question: Any) -> Floats:
        """Distance of each question from those that an environment holds, (B,); 0 where it holds it."""

    def no_gradient(self, judge: Lifted) -> str | None:
        """Why a judge's score cannot be climbed; None where it can."""

    def slopes(self, judge: Lifted, question: Any, vectors: Floats) -> Floats:
        """The derivative (B, d) of the scores by the vectors.

        Raises:
            JudgeError: numbers that are not finite.
        """

    def again(self, question: Any, rng: np.random.Generator) -> Floats:
        """Another vector (d,) for one question to begin from."""
