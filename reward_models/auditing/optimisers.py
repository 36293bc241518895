"""Optimisers of a score: an ascent along its gradient, and CMA-ES with random restarts.

Both stop at the first candidate that the model calls achieved; the start is the first candidate. What is judged are
scenes as an environment holds them, positions within the arena and all in float32, so a claim here is a reward of the
sparse learned reward there. CMA-ES looks at the order of the scores alone, which the dense reward shares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reward_models.auditing.ascent import Restarts, Rows, Scored, Vectors, ascend, evolve
from reward_models.auditing.judge import Judge, Scenes
from reward_models.auditing.problems import Problems

FIRST_STEP, LAST_STEP = 0.5, 0.02  # units per step of the ascent, falling as half a cosine
SPREAD = 2.0  # units, the first deviation of CMA-ES
RUNS = 2  # of CMA-ES that the budget of a start is cut into, at the least


@dataclass(frozen=True)
class Path:
    """What an optimiser went through from one start: P candidates that it went on from."""

    evaluations: list[int]  # (P,) by then
    scores: list[float]  # (P,)
    scenes: list[Scenes]  # (P,) of (n, 10) in the arena


@dataclass(frozen=True)
class Ends(Scored):
    """Where an optimiser stopped: at a claim, or at the best candidate of its budget. S starts."""

    achieved: Scenes  # (S, n, 10) in the arena
    desired: Scenes  # (S, n, 10)
    score: NDArray[np.float64]  # (S,)
    evaluations: NDArray[np.int64]  # (S,) candidates that were judged, the start and the end among them
    paths: list[Path]  # of the first starts


@dataclass
class Progress(Scored):
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
    places = moves.vectors(problems.achieved)
    low, high = moves.bounds(problems.achieved.shape[1]).T

    def slopes(rows: Rows) -> Vectors:
        here = moves.placed(problems.achieved[rows], places[rows])
        return moves.gradients(judge.gradient(problems.desired[rows], here))

    def offer(rows: Rows) -> None:
        np.clip(places, low, high, out=places)
        progress.offer(rows, moves.placed(problems.achieved[rows], places[rows])[:, None])

    ascend(progress, places, budget, (FIRST_STEP, LAST_STEP), slopes, offer)
    return progress.ends()


def search(judge: Judge, problems: Problems, budget: int, rng: np.random.Generator, n_paths: int = 0) -> Ends:
    """CMA-ES (Hansen and Ostermeier 2001; the package ``cmaes``) from each start, then from other arrangements.

    A run ends where CMA-ES says so, or when it has used a share of the budget; the next one begins at an arrangement
    drawn as the start was.

    Args:
        budget: scores that are asked for from each start, the start's included.

    Raises:
        JudgeError: a score that is none.
    """
    progress, moves = Progress(judge, problems, n_paths), problems.moves
    bounds = moves.bounds(problems.achieved.shape[1])

    def within(scene: Scenes) -> Vectors:
        return np.clip(moves.vectors(scene), *bounds.T)

    def again(row: int, numbers: np.random.Generator) -> Vectors:
        return within(problems.again(row, numbers))

    runs = [
        Restarts(within(problems.achieved[row]), partial(again, row), SPREAD, budget // RUNS, own, bounds)
        for row, own in enumerate(rng.spawn(len(problems)))
    ]
    evolve(
        progress,
        runs,
        budget,
        lambda rows, vectors: progress.offer(rows, moves.placed(problems.achieved[rows, None], vectors)),
    )
    return progress.ends()
