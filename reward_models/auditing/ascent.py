"""What every optimiser of the audits does, whatever is moved: Adam's ascent of a score, and CMA-ES with restarts.

What is moved, where it may go and what a candidate is worth is said by callbacks (``optimisers`` in 2D,
``relations.climbing`` in 3D).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

MOST_SEED = 2**31  # of CMA-ES

Rows = NDArray[np.intp]
Vectors = NDArray[np.float64]


class Scored:
    """The best score (S,) of each start so far; positive where the model says achieved, which is a claim."""

    score: NDArray[np.float64]

    @property
    def claimed(self) -> NDArray[np.bool_]:
        """(S,) whether the model says achieved."""
        return self.score > 0

    @property
    def open(self) -> Rows:
        """The starts that have not come to a claim."""
        return np.flatnonzero(~self.claimed)


def ascend(
    progress: Scored,
    places: Vectors,
    budget: int,
    steps: tuple[float, float],
    slopes: Callable[[Rows], Vectors],
    offer: Callable[[Rows], Any],
) -> None:
    """Adam's ascent of the score, all open starts at once.

    Args:
        progress: knows which starts are open.
        places: (S, d), where the starts are; they are moved in place.
        budget: scores that are asked for from each start, the start's included.
        steps: length of the first and of the last step, falling as half a cosine.
        slopes: the derivatives (R, d) of the scores at the places of some starts.
        offer: brings the places of some starts within their bounds and has them judged.
    """
    vectors = torch.from_numpy(places).requires_grad_()
    adam = torch.optim.Adam([vectors], maximize=True, eps=1e-30, foreach=False)
    slope = np.zeros_like(places)
    for step in range(budget - 1):
        rows = progress.open
        if not len(rows):
            break
        slope[:] = 0
        slope[rows] = slopes(rows)
        vectors.grad = torch.from_numpy(slope)
        adam.param_groups[0]["lr"] = _step_length(step / (budget - 1), *steps)
        adam.step()
        offer(rows)


def _step_length(share: float, first: float, last: float) -> float:
    """The length of a step after a share of the budget."""
    return last + (first - last) * (1 + math.cos(math.pi * share)) / 2


def evolve(
    progress: Scored, runs: Sequence[Restarts], budget: int, offer: Callable[[Rows, Vectors], NDArray[np.float64]]
) -> None:
    """CMA-ES from each open start, a generation at a time.

    Args:
        progress: knows which starts are open.
        runs: one for each start.
        budget: scores that are asked for from each start, the start's included.
        offer: has candidates (R, C, d) of some starts judged, and returns their scores (R, C).
    """
    used = 1
    while used < budget:
        rows = progress.open
        if not len(rows):
            break
        vectors = np.stack([runs[row].ask() for row in rows])[:, : budget - used]
        used += vectors.shape[1]
        scores = offer(rows, vectors)
        for row, asked, values in zip(rows, vectors, scores, strict=True):
            runs[row].tell(asked, values)


class Restarts:
    """CMA-ES (Hansen and Ostermeier 2001; the package ``cmaes``) from one start, again and again.

    Args:
        vector: (d,), where the first run begins.
        elsewhere: where the next one does, given the random numbers.
        spread: the first deviation.
        length: candidates after which a run ends, at the least; or when CMA-ES says so.
        rng: of the restarts.
        bounds: (d, 2), or None.
    """

    def __init__(
        self,
        vector: Vectors,
        elsewhere: Callable[[np.random.Generator], Vectors],
        spread: float,
        length: int,
        rng: np.random.Generator,
        bounds: Vectors | None = None,
    ) -> None:
        self.elsewhere, self.spread, self.length, self.rng, self.bounds = elsewhere, spread, length, rng, bounds
        self._begin(vector)

    def _begin(self, vector: Vectors) -> None:
        from cmaes import CMA

        seed = int(self.rng.integers(MOST_SEED))
        self.cma = CMA(vector, self.spread, bounds=self.bounds, n_max_resampling=1, seed=seed)

    def ask(self) -> Vectors:
        """The candidates of a generation, (C, d)."""
        return np.stack([self.cma.ask() for _ in range(self.cma.population_size)])

    def tell(self, vectors: Vectors, scores: NDArray[np.float64]) -> None:
        """What they are worth; an unfinished generation, the last of the budget, is of no more use."""
        if len(vectors) < self.cma.population_size:
            return
        self.cma.tell(list(zip(vectors, (-scores).tolist(), strict=True)))
        if self.cma.should_stop() or self.cma.generation * self.cma.population_size >= self.length:
            self._begin(self.elsewhere(self.rng))
