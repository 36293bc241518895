"""The rules about relations as a judge, and moments of episodes, which keep the margins that it has computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.core.judges import Array, Flags, Floats, Question, Rows
from spatialsim_env.registry import RELATIONS
from spatialsim_env.relations.vocabulary import PREDICATES
from spatialsim_env.relations.world import goals

HIGHEST = 1.0  # of the shaped score; a predicate that holds by a whole unit of its margin holds by enough
LOWEST = -6.0  # of the shaped score; 400 contact tolerances, farther than the room is wide


@dataclass(frozen=True)
class RelationMoment(Rows):
    """B episodes at one moment."""

    scenes: NDArray[np.float32]  # (B, 2, 19)
    observers: NDArray[np.float32]  # (B, 9)
    required: Flags  # (B, 30)
    margins: NDArray[np.float64]  # (B, 30) of the predicates
    distance: NDArray[np.float64]  # (B,) minus the least margin of what is required

    @property
    def achieved(self) -> NDArray[np.float32]:
        """The goals that are achieved, (B, 77); an array of its own."""
        return goals.pack(self.margins > 0, self.scenes, self.observers)

    @property
    def desired(self) -> NDArray[np.float32]:
        """The goals that are required, (B, 77); an array of its own."""
        return goals.desired(self.required)

    @property
    def state(self) -> NDArray[np.float32]:
        """What the dynamics moves: the scenes, (B, 2, 19)."""
        return self.scenes

    @property
    def shown(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The scenes (B, 2, 19) and their observers (B, 9)."""
        return self.scenes, self.observers

    def goal_names(self, row: int) -> tuple[str, ...]:
        """Names of what an episode requires."""
        return tuple(PREDICATES[index] for index in np.flatnonzero(self.required[row]))


def judged(scenes: NDArray[np.float32], observers: NDArray[np.float32], required: Flags) -> RelationMoment:
    """Judge episodes with scenes (B, 2, 19), seen by observers (B, 9), that require (B, 30)."""
    margins = goals.margins(scenes, observers)
    return RelationMoment(scenes, observers, required, margins, -goals.least(margins, required))


@dataclass(frozen=True)
class RelationTruth:
    """The rules of ``predicates`` as a judge: the score is the least margin m of what is required.

    What is required is read off the desired goal's flags, everything else off the achieved one.
    """

    name = "truth"
    world = RELATIONS
    threshold = np.nextafter(np.float64(0), np.float64(1))
    shaped_threshold = float(np.nextafter(0, 1))
    fixed_goal = None

    def asked(self, question: Question) -> RelationMoment:
        """Make a moment of a question; a moment is returned as it is."""
        if isinstance(question, RelationMoment):
            return question
        scenes, observers = (part.astype(np.float32) for part in goals.state(question.achieved))
        return judged(scenes, observers, goals.required(question.desired))

    def moved(self, now: RelationMoment, state: Array) -> RelationMoment:
        """Make the moment after a step that led to scenes (B, 2, 19)."""
        return judged(state, now.observers, now.required)

    def score(self, question: Question) -> Floats:
        """Score a question, (B,): m."""
        return -self.asked(question).distance

    def achieved(self, question: Question) -> Flags:
        """Decide a question, (B,): m > 0."""
        return self.asked(question).distance < 0

    def shaped(self, question: Question) -> Floats:
        """Score a question with a slope from afar, (B,): m up to 1; below 0 it is -log(1 - m), down to -6.

        The unit of a contact is 0.02 m, so a margin of -50 is a metre; the logarithm keeps a slope from across the room
        and the order of margins.
        """
        margin = self.score(question)
        return np.clip(np.where(margin > 0, margin, -np.log1p(np.maximum(-margin, 0))), LOWEST, HIGHEST)
