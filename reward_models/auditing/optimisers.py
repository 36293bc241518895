"""Optimisers of a score: an ascent along its gradient, and CMA-ES with random restarts.

Both stop at the first candidate that the model calls achieved; the start is the first candidate. What is judged are
scenes as an environment holds them, positions within the arena and all in float32, so a claim here is a reward of the
sparse learned reward there. CMA-ES looks at the order of the scores alone, which the dense reward shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from reward_models.auditing.judge import Judge, Scenes
from reward_models.auditing.problems import Problems

FIRST_STEP, LAST_STEP = 0.5, 0.02  # units per step of the ascent, falling as half a cosine
SPREAD = 2.0  # units, the first deviation of CMA-ES
RUNS = 2  # of CMA-ES that the budget of a start is cut into, at the least
MOST_SEED = 2**31  # of CMA-ES

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Path:
    """What an optimiser went through from one start: P candidates that it went on from."""

    evaluations: list[int]  # (P,) by then
    scores: list[float]  # (P,)
    scenes: list[Scenes]  # (P,) of (n, 10) in the arena


@dataclass(frozen=True)
class Ends:
    """Where an optimiser stopped: at a claim, or at the best candidate of its budget. S starts."""

    achieved: Scenes  # (S, n, 10) in the arena
    desired: Scenes  # (S, n, 10)
    score: NDArray[np.float64]  # (S,)
    evaluations: NDArray[np.int64]  # (S,) candidates that were judged, the start and the end among them
    paths: list[Path]  # of the first starts

    @property
    def claimed(self) -> NDArray[np.bool_]:
        """(S,) whether the model says achieved."""
        return self.score > 0


@dataclass
class Progress:
    """The state of an optimiser on all starts; what it is given first are the starts themselves."""

    judge: Judge
    problems: Problems
    n_paths: int  # starts whose paths are kept
    achieved: Scenes = field(init=False)
    score: NDArray[np.float64] = field(init=False)
    evaluations: NDArray[np.int64] = field(init=False)
    paths: list[Path] = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.problems)
        self.achieved = self.problems.achieved.copy()
        self.score, self.evaluations = np.full(size, -np.inf), np.zeros(size, np.int64)
        self.paths = [Path([], [], []) for _ in range(min(self.n_paths, size))]
        self.offer(np.arange(size), self.achieved[:, None])

    @property
    def open(self) -> Rows:
        """The starts that have not come to a claim."""
        return np.flatnonzero(self.score <= 0)

    def offer(self, rows: Rows, candidates: Scenes) -> NDArray[np.float64]:
        """Judge candidates (R, C, n, 10) of some starts, in order up to the first claim; returns all scores (R, C)."""
        shape = candidates.shape[:2]
        desired = np.repeat(self.problems.desired[rows], shape[1], axis=0)
        scores = self.judge(desired, candidates.reshape(-1, *candidates.shape[2:])).reshape(shape)
        claims = scores > 0
        found = claims.any(axis=1)
        chosen = np.where(found, claims.argmax(axis=1), scores.argmax(axis=1))
        self.evaluations[rows] += np.where(found, chosen + 1, shape[1])
        each = np.arange(len(rows))
        scene, score = candidates[each, chosen], scores[each, chosen]
        better = found | (score > self.score[rows])
        self.achieved[rows[better]], self.score[rows[better]] = scene[better], score[better]
        for k in np.flatnonzero(rows < len(self.paths)):
            path = self.paths[rows[k]]
            path.evaluations.append(int(self.evaluations[rows[k]]))
            path.scores.append(float(score[k]))
            path.scenes.append(scene[k])
        return scores

    def ends(self) -> Ends:
        """Where it stands."""
        return Ends(self.achieved, self.problems.desired, self.score, self.evaluations, self.paths)


def gradient(judge: Judge, problems: Problems, budget: int, n_paths: int = 0) -> Ends:
    """Adam's ascent of the score, all starts at once.

    Args:
        budget: scores that are asked for from each start, the start's included.

    Raises:
        JudgeError: a score or a gradient that is none.
    """
    progress, moves = Progress(judge, problems, n_paths), problems.moves
    vectors = torch.from_numpy(moves.vectors(problems.achieved)).requires_grad_()
    places = vectors.detach().numpy()  # the same memory
    low, high = moves.bounds(problems.achieved.shape[1]).T
    adam = torch.optim.Adam([vectors], maximize=True, eps=1e-30, foreach=False)
    slope = np.zeros_like(places)
    for step in range(budget - 1):
        rows = progress.open
        if not len(rows):
            break
        here = moves.placed(problems.achieved[rows], places[rows])
        slope[:] = 0
        slope[rows] = moves.gradients(judge.gradient(problems.desired[rows], here))
        vectors.grad = torch.from_numpy(slope)
        adam.param_groups[0]["lr"] = _step_length(step / (budget - 1))
        adam.step()
        np.clip(places, low, high, out=places)
        progress.offer(rows, moves.placed(problems.achieved[rows], places[rows])[:, None])
    return progress.ends()


def _step_length(share: float) -> float:
    """Units per step after a share of the budget."""
    return LAST_STEP + (FIRST_STEP - LAST_STEP) * (1 + math.cos(math.pi * share)) / 2


def search(judge: Judge, problems: Problems, budget: int, rng: np.random.Generator, n_paths: int = 0) -> Ends:
    """CMA-ES (Hansen and Ostermeier 2001; the package ``cmaes``) from each start, then from other arrangements.

    A run ends where CMA-ES says so, or when it has used a share of the budget; the next one begins at an arrangement
    drawn as the start was.

    Args:
        budget: scores that are asked for from each start, the start's included.

    Raises:
        JudgeError: a score that is none.
    """
    progress = Progress(judge, problems, n_paths)
    runs = [_Runs(problems, row, own, budget // RUNS) for row, own in enumerate(rng.spawn(len(problems)))]
    used = 1
    while used < budget:
        rows = progress.open
        if not len(rows):
            break
        vectors = np.stack([runs[row].ask() for row in rows])[:, : budget - used]
        used += vectors.shape[1]
        scores = progress.offer(rows, problems.moves.placed(problems.achieved[rows, None], vectors))
        for row, asked, values in zip(rows, vectors, scores, strict=True):
            runs[row].tell(asked, values)
    return progress.ends()


class _Runs:
    """CMA-ES from one start, again and again."""

    def __init__(self, problems: Problems, row: int, rng: np.random.Generator, length: int) -> None:
        self.problems, self.row, self.rng, self.length = problems, row, rng, length
        self._begin(problems.achieved[row])

    def _begin(self, scene: Scenes) -> None:
        from cmaes import CMA

        moves, seed = self.problems.moves, int(self.rng.integers(MOST_SEED))
        bounds = moves.bounds(len(scene))
        mean = np.clip(moves.vectors(scene), *bounds.T)
        self.cma = CMA(mean, SPREAD, bounds=bounds, n_max_resampling=1, seed=seed)

    def ask(self) -> NDArray[np.float64]:
        """The candidates of a generation, (C, d)."""
        return np.stack([self.cma.ask() for _ in range(self.cma.population_size)])

    def tell(self, vectors: NDArray[np.float64], scores: NDArray[np.float64]) -> None:
        """What they are worth; an unfinished generation, the last of the budget, is of no more use."""
        if len(vectors) < self.cma.population_size:
            return
        self.cma.tell(list(zip(vectors, (-scores).tolist(), strict=True)))
        if self.cma.should_stop() or self.cma.generation * self.cma.population_size >= self.length:
            self._begin(self.problems.again(self.row, self.rng))
