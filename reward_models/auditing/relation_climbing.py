"""Optimisers of a predicate's score over the subject's pose: an ascent of its gradient, and CMA-ES with restarts.

Both stop at the first candidate that the model says the predicate holds in; the start is the first candidate. What is
judged are scenes as the environment holds them, in float32, the subject in the room and not in the object, so a claim
here is a reward of the sparse learned reward there. A candidate with an overlap is no claim, whatever its score.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reward_models.auditing.ascent import Restarts, Rows, Scored, Vectors, ascend, evolve
from reward_models.auditing.relation_judge import N_POSE, Array, RelationJudge, posed
from spatialsim_env.relations.geometry import boxes
from spatialsim_env.relations.scene import CENTER, OBJECT, ROOM, SUBJECT
from spatialsim_env.relations.world.dynamics import TOUCHING, fitted

METRES_PER_RADIAN = 0.5  # a turn is as far as this displacement
FIRST_STEP, LAST_STEP = 0.1, 0.002  # metres per step of the ascent, falling as half a cosine
SPREAD = 0.3  # metres, the first deviation of CMA-ES
AROUND = 1.5  # metres along x and y from the object that a run of CMA-ES begins within, and its height at most
RUNS = 4  # of CMA-ES that the budget of a start is cut into, at the least
OVERLAP = 1e3  # what an overlap costs in CMA-ES, beside its depth in metres
LEAST_SCORE = -1e9  # of a start that has no candidate without an overlap


@dataclass(frozen=True)
class Starts:
    """S starts: scenes that an episode begins with and the predicate that is wanted."""

    scenes: NDArray[np.float32]  # (S, 2, 19)
    observers: NDArray[np.float32]  # (S, 9)
    which: NDArray[np.int64]  # (S,) indices in vocabulary.PREDICATES

    def __len__(self) -> int:
        return len(self.scenes)

    def poses(self) -> NDArray[np.float64]:
        """The subjects' poses (S, 6) in units of the optimisers: metres, and radians as metres."""
        return np.concatenate([self.scenes[:, SUBJECT, CENTER], np.zeros((len(self), 3))], axis=1, dtype=np.float64)


@dataclass(frozen=True)
class Ends(Scored):
    """Where an optimiser stopped: at a claim, or at the best candidate of its budget."""

    starts: Starts
    scenes: NDArray[np.float32]  # (S, 2, 19)
    score: NDArray[np.float64]  # (S,)
    evaluations: NDArray[np.int64]  # (S,) candidates that were judged, the start and the end among them


@dataclass
class Progress(Scored):
    """The state of an optimiser on all starts; what it is given first are the starts themselves."""

    judge: RelationJudge
    starts: Starts
    scenes: NDArray[np.float32] = field(init=False)
    score: NDArray[np.float64] = field(init=False)
    evaluations: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.starts)
        self.scenes = self.starts.scenes.copy()
        self.score, self.evaluations = np.full(size, LEAST_SCORE), np.zeros(size, np.int64)
        self.offer(np.arange(size), self.starts.poses()[:, None])

    def placed(self, rows: Array, vectors: Array) -> NDArray[np.float32]:
        """Scenes (R, 2, 19) of some starts with what vectors (R, 6) say, as an environment would hold them."""
        poses = vectors / _UNITS
        scenes = posed(self.starts.scenes[rows], poses)
        scenes[:, SUBJECT] = fitted(scenes[:, SUBJECT])
        return scenes.astype(np.float32)

    def offer(self, rows: Array, vectors: Array) -> NDArray[np.float64]:
        """Judge candidates (R, C, 6) of some starts, in order up to the first claim.

        Returns:
            All scores (R, C), those of candidates with an overlap below any other.
        """
        shape = vectors.shape[:2]
        each = np.repeat(rows, shape[1])
        scenes = self.placed(each, vectors.reshape(-1, N_POSE))
        scores = self.judge(scenes, self.starts.observers[each], self.starts.which[each])
        depth = boxes.apart(scenes)[1]
        overlap = depth > TOUCHING
        values = np.where(overlap, np.minimum(scores, 0) - OVERLAP * (1 + depth), scores).reshape(shape)
        claims = values > 0
        found = claims.any(axis=1)
        chosen = np.where(found, claims.argmax(axis=1), values.argmax(axis=1))
        self.evaluations[rows] += np.where(found, chosen + 1, shape[1])
        at = np.arange(len(rows))
        better = values[at, chosen] > self.score[rows]
        self.scenes[rows[better]] = scenes.reshape(*shape, *scenes.shape[1:])[at, chosen][better]
        self.score[rows[better]] = values[at, chosen][better]
        return values

    def ends(self) -> Ends:
        """Where it stands."""
        return Ends(self.starts, self.scenes, self.score, self.evaluations)


_UNITS = np.array([1.0, 1.0, 1.0, *[METRES_PER_RADIAN] * 3])


def gradient(judge: RelationJudge, starts: Starts, budget: int) -> Ends:
    """Adam's ascent of the score, all starts at once. It may lead through overlaps; claims are made without.

    Args:
        budget: scores that are asked for from each start, the start's included.

    Raises:
        JudgeError: a score or a gradient that is none.
    """
    progress, places = Progress(judge, starts), starts.poses()

    def slopes(rows: Rows) -> Vectors:
        told = starts.scenes[rows], starts.observers[rows], starts.which[rows]
        return judge.gradient(*told, places[rows] / _UNITS) / _UNITS

    def offer(rows: Rows) -> None:
        places[rows, :3] = progress.placed(rows, places[rows])[:, SUBJECT, CENTER]
        progress.offer(rows, places[rows][:, None])

    ascend(progress, places, budget, (FIRST_STEP, LAST_STEP), slopes, offer)
    return progress.ends()


def search(judge: RelationJudge, starts: Starts, budget: int, rng: np.random.Generator) -> Ends:
    """CMA-ES (Hansen and Ostermeier 2001; the package ``cmaes``) from each start, then from poses about the object.

    A run ends where CMA-ES says so, or when it has used a share of the budget.

    Args:
        budget: scores that are asked for from each start, the start's included.

    Raises:
        JudgeError: a score that is none.
    """
    progress, first = Progress(judge, starts), starts.poses()
    runs = [
        Restarts(first[row], partial(_about_the_object, starts.scenes[row]), SPREAD, budget // RUNS, own)
        for row, own in enumerate(rng.spawn(len(starts)))
    ]
    evolve(progress, runs, budget, progress.offer)
    return progress.ends()


def _about_the_object(scene: NDArray[np.float32], rng: np.random.Generator) -> Vectors:
    """A pose about the object, (6,)."""
    center = scene[OBJECT, CENTER] + rng.uniform(-AROUND, AROUND, 3)
    center[2] = rng.uniform(0, min(AROUND, ROOM[2]))
    turn = rng.uniform(-np.pi, np.pi, 3) * (0.25, 0.25, 1.0)  # mostly about the vertical
    return np.concatenate([center, turn * METRES_PER_RADIAN])
