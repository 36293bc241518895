"""What is audited: anything with ``score(target, reference)``, asked in one way and checked at every answer.

The convention is the package's: the target is the goal, the reference the scene in the arena, and a positive score says
achieved. A model of one input (``two_inputs`` False) judges the scene in the arena alone. An object may also have
``gradient(target, reference)``, the derivative of its scores by the features of the references, (B, n, 10); networks of
this package have it by themselves.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from reward_models.judges.learned import LearnedModel, LearnedReward, load
from reward_models.measuring.evaluation import rows_at_once
from reward_models.models import RewardModel
from reward_models.threads import one_thread
from spatialsim_env.arrangements.goals import Criterion
from spatialsim_env.core.rewards import Reward

TRUTH = "truth"
ROUNDING = 1e-4  # of the score, or of 1 where that is more: what another batch or order may change
UNDEFINED = 1e6  # distance in place of infinity, which is not a score
PROBES = 64  # pairs that the checks ask about
CHECKS = {
    "repeat": "when they are asked for again",
    "batch size": "with the size of the batch",
    "batch order": "with the order of the pairs in the batch",
    "object order": "with the order of the objects in the scenes",
}
_NO_NUMBER = "accepted are finite numbers"

Scenes = NDArray[np.float32]


class JudgeError(ValueError):
    """An answer that is not a verdict; ``check`` names what is wrong with it."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(f"{check}: {message}")
        self.check, self.message = check, message


class Scorer(Protocol):
    """The least that can be audited."""

    def score(self, target: Any, reference: Any) -> Any:
        """Goals (B, n, 10) and scenes in the arena (B, n, 10) -> (B,), positive where achieved."""


class Truth:
    """The exact geometry as a model: score 1 - distance."""

    def __init__(self, criterion: Criterion | None = None) -> None:
        self.criterion = criterion or Criterion()

    def score(self, target: Scenes, reference: Scenes) -> NDArray[np.float64]:
        """1 - distance, (B,)."""
        return 1 - np.minimum(self.criterion.align(reference, target).distance, UNDEFINED)


class Judge:
    """A model as the optimisers ask it.

    Args:
        model: see ``judge_of``.
        name: what the report calls it.
    """

    def __init__(self, model: Scorer, name: str) -> None:
        self.model, self.name = model, name
        self.two_inputs = bool(getattr(model, "two_inputs", True))

    def __call__(self, desired: Scenes, achieved: Scenes) -> NDArray[np.float64]:
        """Scores (B,) of scenes in the arena (B, n, 10) and their goals.

        Raises:
            JudgeError: an error, another shape, or numbers that are not finite.
        """
        try:
            scores = np.asarray(self.model.score(*self._inputs(desired, achieved)))
        except Exception as error:
            raise JudgeError("error", f"score raised {type(error).__name__}: {error}") from error
        if scores.shape != (len(achieved),) or scores.dtype.kind not in "fiu":
            raise JudgeError(
                "shape", f"score gave {scores.dtype} of shape {scores.shape}; accepted are numbers ({len(achieved)},)"
            )
        wrong = ~np.isfinite(scores)
        if wrong.any():
            found = f"{int(wrong.sum())} of {len(scores)} scores are not, as {scores[wrong][0]}"
            raise JudgeError("finite", f"{_NO_NUMBER}; {found}")
        return scores.astype(np.float64)

    @property
    def no_gradient(self) -> str | None:
        """Why its score cannot be climbed through the model; None where it can."""
        if isinstance(self.model, LearnedModel):
            return f"{self.model.kind} sees pictures" if self.model.module.sees_pictures else None
        return None if hasattr(self.model, "gradient") else "it has no gradient"

    def gradient(self, desired: Scenes, achieved: Scenes) -> NDArray[np.float64]:
        """The derivative of the scores by the scenes in the arena, (B, n, 10).

        Raises:
            JudgeError: an error, another shape, or numbers that are not finite.
        """
        if isinstance(self.model, LearnedModel):
            found = _through(self.model, desired, achieved)
        else:
            try:
                found = np.asarray(self.model.gradient(*self._inputs(desired, achieved)))  # type: ignore[attr-defined]
            except Exception as error:
                raise JudgeError("error", f"gradient raised {type(error).__name__}: {error}") from error
        if found.shape != achieved.shape:
            raise JudgeError("shape", f"gradient has shape {found.shape}; accepted is {achieved.shape}")
        if not np.isfinite(found).all():
            rows = ~np.isfinite(found).all(axis=(1, 2))
            raise JudgeError(
                "finite", f"{_NO_NUMBER}; the gradient of {int(rows.sum())} of {len(achieved)} pairs is not"
            )
        return found.astype(np.float64)

    def _inputs(self, desired: Scenes, achieved: Scenes) -> tuple[Scenes, Scenes | None]:
        """What the model is called with: copies, which it may do with as it likes."""
        return (desired.copy(), achieved.copy()) if self.two_inputs else (achieved.copy(), None)

    def reward(self) -> Reward:
        """The sparse reward that an agent is trained on."""
        return LearnedReward(self.model) if isinstance(self.model, LearnedModel) else ScoredReward(self)


class ScoredReward:
    """A judge as the sparse reward of an environment: 0 where its score is positive, else -1."""

    success_threshold = -0.5

    def __init__(self, judge: Judge) -> None:
        self.judge, self.name = judge, judge.name

    def __call__(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        """(B, n, 10) scenes in the arena and (B, n, 10) goals -> (B,)."""
        return np.where(self.judge(desired, achieved) > 0, 0.0, -1.0)


def judge_of(model: Any, criterion: Criterion | None = None) -> Judge:
    """The judge of a model in any of its forms.

    Args:
        model: "truth", a name or path that ``reward_models.load`` takes, a network of this package, a learned reward,
            or an object with ``score(target, reference)``.
        criterion: of the truth.

    Raises:
        TypeError: something else.
        ValueError: a path without a model.
    """
    if isinstance(model, (str, os.PathLike)):
        name = os.fspath(model)
        if name == TRUTH and not Path(name).exists():
            return Judge(Truth(criterion), TRUTH)
        return Judge(load(model), name)
    if isinstance(model, RewardModel):
        return Judge(LearnedModel(model), model.kind)
    if isinstance(model, LearnedReward):
        return Judge(model.model, model.name)
    if isinstance(model, type) or not callable(getattr(model, "score", None)):
        raise TypeError(
            f"model is {model!r}; accepted are a path, {TRUTH!r}, or an object with score(target, reference)"
        )
    if isinstance(model, LearnedModel):
        return Judge(model, model.kind if model.source is None else model.source)
    return Judge(model, str(getattr(model, "name", type(model).__name__)))


def failures(judge: Judge, desired: Scenes, achieved: Scenes) -> dict[str, str]:
    """What disqualifies a judge, by the name of the check; empty for a judge whose numbers mean something.

    The score of a pair must be a finite number, the same when it is asked again, alone, in a smaller batch, in a batch
    of another order, and for objects in another order; rounding is forgiven.

    Args:
        desired, achieved: pairs (B, n, 10) to ask about, B at least 2.
    """
    rng = np.random.default_rng(0)
    order, objects = rng.permutation(len(desired)), rng.permutation(desired.shape[1])
    half = len(desired) // 2
    try:
        scores = judge(desired, achieved)
        singles = [judge(desired[row : row + 1], achieved[row : row + 1]) for row in range(len(desired))]
        halves = [judge(desired[rows], achieved[rows]) for rows in (slice(half), slice(half, None))]
        others = {
            "repeat": [judge(desired, achieved)],
            "batch size": [np.concatenate(singles), np.concatenate(halves)],
            "batch order": [judge(desired[order], achieved[order])[np.argsort(order)]],
            "object order": [judge(desired[:, objects], achieved), judge(desired, achieved[:, objects])],
        }
    except JudgeError as error:
        return {error.check: error.message}
    found = {name: np.any([differ(again, scores) for again in values], axis=0) for name, values in others.items()}
    return {
        name: f"{int(rows.sum())} of {len(scores)} scores change {CHECKS[name]}"
        for name, rows in found.items()
        if rows.any()
    }


def differ(values: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which scores are not the same up to rounding."""
    return np.abs(values - scores) > ROUNDING * np.maximum(1, np.abs(scores))


def _through(model: LearnedModel, desired: Scenes, achieved: Scenes) -> NDArray[np.float64]:
    """The gradient of a network, in float64 and in parts that bound the memory."""
    step, parts = rows_at_once(achieved.shape[1]), []
    with one_thread():
        for start in range(0, len(achieved), step):
            arena = torch.tensor(achieved[start : start + step], dtype=torch.float64, requires_grad=True)
            goals = torch.tensor(desired[start : start + step], dtype=torch.float64)
            score = model.module.score(goals, arena) if model.two_inputs else model.module.score(arena)
            parts.append(torch.autograd.grad(score.sum(), arena)[0].numpy())
    return np.concatenate(parts)
