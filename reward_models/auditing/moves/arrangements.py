"""Moves of an arrangement: all x and y in units, then all angles in units too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from reward_models.judges.judge import Lifted, numbers
from reward_models.judges.learned import LearnedModel
from reward_models.models.batch import rows_at_once
from reward_models.threads import one_thread
from spatialsim_env.arrangements import negatives
from spatialsim_env.arrangements.goals import TOLERANCES
from spatialsim_env.arrangements.scene import ARENA, ORIENTATION, POSITION
from spatialsim_env.core.judges import Floats, Pairs

UNITS_PER_RADIAN = TOLERANCES.position / TOLERANCES.orientation  # a tolerance is as far in every direction


@dataclass(frozen=True)
class SceneMoves:
    """Positions, or positions and orientations, of the scenes in the arena."""

    name: str
    start: str  # how the arena looks at first, a name from ``negatives``
    turns: bool  # whether orientations are among it
    steps = (0.5, 0.02)  # units
    spread = 2.0  # units
    runs = 2

    def vectors(self, question: Any) -> Floats:
        """(B, d)."""
        return self._stacked(question.achieved, UNITS_PER_RADIAN)

    def _stacked(self, scenes: NDArray[Any], factor: float) -> Floats:
        parts = [scenes[..., POSITION].reshape(len(scenes), -1)]
        if self.turns:
            parts.append(scenes[..., ORIENTATION] * factor)
        return np.concatenate(parts, axis=-1, dtype=np.float64)

    def placed(self, question: Any, vectors: Floats) -> Pairs:
        """Scenes within the arena, in float32."""
        scenes = np.array(question.achieved)
        places = 2 * scenes.shape[1]
        scenes[..., POSITION] = np.clip(vectors[:, :places], 0, ARENA).reshape(len(scenes), -1, 2)
        if self.turns:
            scenes[..., ORIENTATION] = vectors[:, places:] / UNITS_PER_RADIAN
        return Pairs(scenes, question.desired)

    def within(self, question: Any, vectors: Floats) -> Floats:
        """Positions within the arena."""
        return np.clip(vectors, *self.bounds(question).T)

    def bounds(self, question: Any) -> Floats:
        """The arena; angles have none, (d, 2)."""
        n = question.achieved.shape[1]
        positions = np.tile([0.0, ARENA], (2 * n, 1))
        angles = np.tile([-np.inf, np.inf], (n * self.turns, 1))
        return np.concatenate([positions, angles])

    def cost(self, question: Any) -> Floats:
        """Nothing: an arena holds every arrangement."""
        return np.zeros(len(question.desired))

    def no_gradient(self, judge: Lifted) -> str | None:
        """Why a judge's score cannot be climbed; None where it can."""
        if isinstance(judge.model, LearnedModel):
            return f"{judge.model.kind} sees pictures" if judge.model.module.sees_pictures else None
        return None if hasattr(judge.model, "gradient") else "it has no gradient"

    def slopes(self, judge: Lifted, question: Any, vectors: Floats) -> Floats:
        """The derivative (B, d), through a network or by the judge's own gradient.

        Raises:
            JudgeError: an error, another shape, or numbers that are not finite.
        """
        return self._derivatives(slopes_of(judge, self.placed(question, vectors)))

    def _derivatives(self, scenes: Floats) -> Floats:
        """Derivatives by the features (B, n, 10) -> by the vector (B, d)."""
        parts = [scenes[..., POSITION].reshape(len(scenes), -1)]
        if self.turns:
            parts.append(scenes[..., ORIENTATION] / UNITS_PER_RADIAN)
        return np.concatenate(parts, axis=-1, dtype=np.float64)

    def again(self, question: Any, rng: np.random.Generator) -> Floats:
        """Another arrangement of the objects of one start, drawn as the start was, (d,)."""
        negative = negatives.by_name(self.start)
        scenes = question.achieved
        drawn = negative(scenes, rng.random((1, negative.n_uniform(scenes.shape[1])), np.float32))
        return self.within(question, self.vectors(Pairs(drawn, question.desired)))[0]


MOVES = {moves.name: moves for moves in (SceneMoves("positions", "redrawn", False), SceneMoves("poses", "poses", True))}


def slopes_of(judge: Lifted, question: Any) -> Floats:
    """The derivative of the scores by the features of the scenes in the arena, (B, n, 10).

    Raises:
        JudgeError: an error, another shape, or numbers that are not finite.
    """
    if not isinstance(judge.model, LearnedModel):
        return judge.gradient(question.achieved, question.desired)
    return numbers("gradient", lambda: _through(judge.model, question), question.achieved.shape)


def _through(model: LearnedModel, question: Any) -> Floats:
    """The gradient of a network, in float64 and in parts that bound the memory."""
    step, parts = rows_at_once(question.achieved.shape[1]), []
    with one_thread():
        for start in range(0, len(question.achieved), step):
            part = slice(start, start + step)
            arena = torch.tensor(question.achieved[part], dtype=torch.float64, requires_grad=True)
            goals = torch.tensor(question.desired[part], dtype=torch.float64)
            score = model.module.score(goals, arena) if model.two_inputs else model.module.score(arena)
            parts.append(torch.autograd.grad(score.sum(), arena)[0].numpy())
    return np.concatenate(parts)
