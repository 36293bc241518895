"""Optimisers of a score, whatever is moved: Adam's ascent along its gradient, and CMA-ES with restarts.

Both stop at the first candidate that the model calls achieved; the start is the first candidate. What is judged is what
an environment can hold, in float32, so a claim here is a reward of the sparse learned reward there. CMA-ES looks at the
order of the scores alone, which the dense reward shares. A candidate that no environment would hold has a *cost*: it is
no claim, whatever its score.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from reward_models.auditing.moves import Moves
from reward_models.judges.judge import Lifted
from spatialsim_env.core.judges import Flags, Floats

MOST_SEED = 2**31  # of CMA-ES

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Path:
    """Path of an optimiser from one start: the P candidates that it kept."""

    evaluations: list[int]  # (P,) by then
    scores: list[float]  # (P,)
    achieved: list[NDArray[Any]]  # (P,) goals that were achieved there


@dataclass(frozen=True)
class Ends:
    """Ends of an optimiser from S starts: at a claim, or at the best candidate of its budget."""

    question: Any  # S pairs
    score: Floats  # (S,)
    claimed: Flags  # (S,) whether the model says achieved
    evaluations: NDArray[np.int64]  # (S,) candidates that were judged, the start and the end among them
    paths: list[Path]  # of the first starts


@dataclass
class Progress:
    """The state of an optimiser on all starts; what it is given first are the starts themselves."""

    judge: Lifted
    moves: Moves
    starts: Any  # a question of S pairs, truly not achieved
    n_paths: int = 0  # starts whose paths are kept
    best: Any = field(init=False)  # a question of S pairs
    score: Floats = field(init=False)
    evaluations: NDArray[np.int64] = field(init=False)
    paths: list[Path] = field(init=False)

    def __post_init__(self) -> None:
        self.best = self.starts
        size = len(self.starts.desired)
        self.score, self.evaluations = np.full(size, -np.inf), np.zeros(size, np.int64)
        self.paths = [Path([], [], []) for _ in range(min(self.n_paths, size))]
        self.judge_candidates(np.arange(size), self.starts)

    @property
    def claimed(self) -> Flags:
        """(S,) whether the model says achieved."""
        return self.score >= self.judge.threshold

    @property
    def open(self) -> Rows:
        """The starts that have not come to a claim."""
        return np.flatnonzero(~self.claimed)

    def offer(self, rows: Rows, vectors: Floats) -> Floats:
        """Judge candidates (R, C, d) of some starts, in order up to the first claim; returns all scores (R, C)."""
        each = np.repeat(rows, vectors.shape[1])
        candidates = self.moves.placed(self.starts.rows(each), vectors.reshape(len(each), -1))
        return self.judge_candidates(rows, candidates)

    def judge_candidates(self, rows: Rows, candidates: Any) -> Floats:
        """The same of a question of R times C pairs."""
        scores, cost = self.judge.score(candidates), self.moves.cost(candidates)
        values = np.where(cost > 0, np.minimum(scores, 0) - cost, scores).reshape(len(rows), -1)
        claims = values >= self.judge.threshold
        claiming = claims.any(axis=1)
        chosen = np.where(claiming, claims.argmax(axis=1), values.argmax(axis=1))
        self.evaluations[rows] += np.where(claiming, chosen + 1, values.shape[1])
        each = np.arange(len(rows))
        score, picked = values[each, chosen], candidates.rows(each * values.shape[1] + chosen)
        better = score > self.score[rows]
        self.best = self.best.replaced(rows[better], picked.rows(better))
        self.score[rows[better]] = score[better]
        for k in np.flatnonzero(rows < len(self.paths)):
            path = self.paths[rows[k]]
            path.evaluations.append(int(self.evaluations[rows[k]]))
            path.scores.append(float(score[k]))
            path.achieved.append(picked.achieved[k])
        return values

    def ends(self) -> Ends:
        """Return its ends so far."""
        return Ends(self.best, self.score, self.claimed, self.evaluations, self.paths)


def gradient(judge: Lifted, moves: Moves, starts: Any, budget: int, n_paths: int = 0) -> Ends:
    """Adam's ascent of the score, all open starts at once; the length of a step falls as half a cosine.

    Args:
        starts: a question of S pairs.
        budget: scores that are asked for from each start, the start's included.
        n_paths: starts whose paths are kept.

    Raises:
        JudgeError: a score or a gradient that is none.
    """
    progress, places = Progress(judge, moves, starts, n_paths), moves.vectors(starts)
    vectors = torch.from_numpy(places).requires_grad_()
    adam = torch.optim.Adam([vectors], maximize=True, eps=1e-30, foreach=False)
    slope = np.zeros_like(places)
    for step in range(budget - 1):
        rows = progress.open
        if not len(rows):
            break
        begun = starts.rows(rows)
        slope[:] = 0
        slope[rows] = moves.slopes(judge, begun, places[rows])
        vectors.grad = torch.from_numpy(slope)
        adam.param_groups[0]["lr"] = _step_length(step / (budget - 1), *moves.steps)
        adam.step()
        places[rows] = moves.within(begun, places[rows])
        progress.offer(rows, places[rows][:, None])
    return progress.ends()


def _step_length(share: float, first: float, last: float) -> float:
    """The length of a step after a share of the budget."""
    return last + (first - last) * (1 + math.cos(math.pi * share)) / 2


def search(judge: Lifted, moves: Moves, starts: Any, budget: int, rng: np.random.Generator, n_paths: int = 0) -> Ends:
    """CMA-ES (Hansen and Ostermeier 2001; the package ``cmaes``) from each start, then from elsewhere.

    A run ends where CMA-ES says so, or when it has used a share of the budget.

    Args:
        starts: a question of S pairs.
        budget: scores that are asked for from each start, the start's included.
        rng: of all runs.
        n_paths: starts whose paths are kept.

    Raises:
        JudgeError: a score that is none.
    """
    progress = Progress(judge, moves, starts, n_paths)
    runs = []
    for row, own in enumerate(rng.spawn(len(starts.desired))):
        begun = starts.rows(slice(row, row + 1))
        bounds = moves.bounds(begun)
        first = np.clip(moves.vectors(begun)[0], *bounds.T)
        runs.append(Restarts(first, partial(moves.again, begun), moves.spread, budget // moves.runs, own, bounds))
    used = 1
    while used < budget:
        rows = progress.open
        if not len(rows):
            break
        vectors = np.stack([runs[row].ask() for row in rows])[:, : budget - used]
        used += vectors.shape[1]
        scores = progress.offer(rows, vectors)
        for row, asked, values in zip(rows, vectors, scores, strict=True):
            runs[row].tell(asked, values)
    return progress.ends()


class Restarts:
    """CMA-ES from one start, again and again.

    Args:
        vector: (d,), where the first run begins.
        elsewhere: where the next one does, given the random numbers.
        spread: the first deviation.
        length: candidates after which a run ends, at the least; or when CMA-ES says so.
        rng: of the restarts.
        bounds: (d, 2).
    """

    def __init__(
        self,
        vector: Floats,
        elsewhere: Callable[[np.random.Generator], Floats],
        spread: float,
        length: int,
        rng: np.random.Generator,
        bounds: Floats,
    ) -> None:
        self.elsewhere, self.spread, self.length, self.rng, self.bounds = elsewhere, spread, length, rng, bounds
        self._begin(vector)

    def _begin(self, vector: Floats) -> None:
        from cmaes import CMA

        seed = int(self.rng.integers(MOST_SEED))
        self.cma = CMA(vector, self.spread, bounds=self.bounds, n_max_resampling=1, seed=seed)

    def ask(self) -> Floats:
        """The candidates of a generation, (C, d)."""
        return np.stack([self.cma.ask() for _ in range(self.cma.population_size)])

    def tell(self, vectors: Floats, scores: Floats) -> None:
        """Learn what candidates are worth; an unfinished generation, the last of the budget, is of no more use."""
        if len(vectors) < self.cma.population_size:
            return
        self.cma.tell(list(zip(vectors, (-scores).tolist(), strict=True)))
        if self.cma.should_stop() or self.cma.generation * self.cma.population_size >= self.length:
            self._begin(self.elsewhere(self.rng))
