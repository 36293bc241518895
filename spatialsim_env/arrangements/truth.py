"""The truth about arrangements as a judge, and moments of episodes, which keep what it has computed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.goals import FARTHEST, Criterion
from spatialsim_env.core.judges import Array, Flags, Floats, Question, Rows
from spatialsim_env.registry import SCENES

UNDEFINED = 1e6  # distance in place of infinity, which is not a score


@dataclass(frozen=True)
class SceneMoment(Rows):
    """B episodes at one moment."""

    achieved: NDArray[np.float32]  # (B, n_max, 10) in the arena, present objects first
    desired: NDArray[np.float32]  # (B, n_max, 10) the transformed scene
    matching: NDArray[np.int64]  # (B, n_max) row of desired for each row of achieved
    interchangeable: NDArray[np.bool_]  # (B,) whether appearance leaves more than one matching
    distance: NDArray[np.float64]  # (B,) the truth's distance
    criterion: Criterion  # of the truth

    @property
    def state(self) -> NDArray[np.float32]:
        """What the dynamics moves: the scenes in the arena, (B, n_max, 10)."""
        return self.achieved

    @property
    def shown(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The scenes in the arena and the goals, (B, n_max, 10) each."""
        return self.achieved, self.desired


@dataclass(frozen=True)
class SceneTruth:
    """The exact geometry as a judge: score 1 - distance; scenes of different objects are not achieved."""

    criterion: Criterion = field(default_factory=Criterion)

    name = "truth"
    world = SCENES
    threshold = np.float64(0)
    shaped_threshold = -1.0
    fixed_goal = None

    def asked(self, question: Question) -> SceneMoment:
        """Make a moment of a question; a moment that this truth has made is returned as it is."""
        if isinstance(question, SceneMoment) and question.criterion == self.criterion:
            return question
        fit = self.criterion.align(question.achieved, question.desired)
        return SceneMoment(
            question.achieved, question.desired, fit.matching, fit.interchangeable, fit.distance, self.criterion
        )

    def moved(self, now: SceneMoment, state: Array) -> SceneMoment:
        """Make the moment after a step that led to scenes (B, n_max, 10) in the arena."""
        distance = self.criterion.distances(state, now.desired, now.matching)
        if now.interchangeable.any():
            rows = np.flatnonzero(now.interchangeable)
            distance[rows] = self.criterion.align(state[rows], now.desired[rows]).distance
        return SceneMoment(state, now.desired, now.matching, now.interchangeable, distance, now.criterion)

    def score(self, question: Question) -> Floats:
        """Score a question, (B,): 1 - distance."""
        return 1 - np.minimum(self.asked(question).distance, UNDEFINED)

    def achieved(self, question: Question) -> Flags:
        """Decide a question, (B,): distance <= 1."""
        return self.asked(question).distance <= 1

    def shaped(self, question: Question) -> Floats:
        """Score a question with a slope from afar, (B,): -min(distance, 20)."""
        return -np.minimum(self.asked(question).distance, FARTHEST)
