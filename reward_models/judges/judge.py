"""Whatever scores goals as a judge: lifted once, asked in one way, checked at every answer.

A user brings a model by name, a network, a reward, or any object with ``score(achieved, desired)`` on packed goals,
(B, n, 10) in 2D and (B, 77) in 3D, positive where it says achieved. An object with ``two_inputs = False`` judges what
is achieved alone. One with ``gradient(achieved, desired)``, the derivative of its scores by what is achieved, can be
climbed.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reward_models.judges.learned import LearnedModel, LearnedReward
from reward_models.models import RelationModel, RewardModel
from spatialsim_env.core.judges import Flags, Floats
from spatialsim_env.core.rewards import Reward, Sparse

TRUTH = "truth"
POSITIVE = np.nextafter(np.float64(0), np.float64(1))  # the threshold of models: the least number above 0
ROUNDING = 1e-4  # of the score, or of 1 where that is more: what another batch or order may change
CHECKS = {
    "repeat": "when they are asked for again",
    "batch size": "with the size of the batch",
    "batch order": "with the order of the pairs in the batch",
    "object order": "with the order of the objects in the scenes",
}
ORDER = "score(achieved, desired)"
_OLD_NAMES = {"target", "reference"}


class JudgeError(ValueError):
    """An answer that is not a verdict; ``check`` names what is wrong with it."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(f"{check}: {message}")
        self.check, self.message = check, message


class Scorer(Protocol):
    """The least that can be judged, audited or measured."""

    def score(self, achieved: Any, desired: Any) -> Any:
        """Score achieved and desired goals, B of each -> (B,), positive where they are the same."""


class Lifted:
    """A judge (protocol ``spatialsim_env.core.judges.Judge``) whose answers are checked.

    Args:
        answer: question -> scores (B,).
        model: what it was lifted from.
        name: what a report calls it.
        world: the name of the world that it judges.
        threshold: the least score that says achieved.
    """

    def __init__(
        self, answer: Callable[[Any], Any], model: Any, name: str, world: str, threshold: np.float64 = POSITIVE
    ) -> None:
        self.answer, self.model, self.name, self.world, self.threshold = answer, model, name, world, threshold
        self.two_inputs = bool(getattr(model, "two_inputs", True))
        self.fixed_goal = getattr(model, "fixed_goal", None)

    def score(self, question: Any) -> Floats:
        """Score a question, (B,).

        Raises:
            JudgeError: an error, another shape, or numbers that are not finite.
        """
        return numbers("score", partial(self.answer, question), (len(question.desired),))

    def achieved(self, question: Any) -> Flags:
        """Decide a question, (B,)."""
        return self.score(question) >= self.threshold

    def gradient(self, achieved: NDArray[Any], desired: NDArray[Any]) -> Floats:
        """The derivative of the scores by what is achieved, which an object from outside gives.

        Raises:
            JudgeError: an error, another shape, or numbers that are not finite.
        """
        asked = partial(self.model.gradient, *_inputs(self.model, achieved, desired))
        return numbers("gradient", asked, achieved.shape)

    def reward(self) -> Reward:
        """The sparse reward that an agent is trained on."""
        return LearnedReward(self.model) if isinstance(self.model, LearnedModel) else Sparse(self, self.name)


def of(model: Any, world: Any) -> Lifted:
    """Lift what a user brings to a judge.

    Args:
        model: "truth", a name or path that ``reward_models.load`` takes, a network of this package, a reward, or an
            object with ``score(achieved, desired)``.
        world: its ``name``, and its ``truth``, a judge.

    Raises:
        TypeError: something else, or an object that takes its arguments in another order.
        ValueError: a path without a model, or a model of another world.
    """
    if isinstance(model, (str, os.PathLike)):
        name = os.fspath(model)
        if name == TRUTH and not Path(name).exists():
            return world.truth
        return _of_network(LearnedModel.loaded(model), name, world)
    if isinstance(model, (RewardModel, RelationModel)):
        return _of_network(LearnedModel(model), model.kind, world)
    if isinstance(model, LearnedReward):
        return _of_network(model.model, model.name, world)
    if isinstance(model, LearnedModel):
        return _of_network(model, model.source or model.kind, world)
    if isinstance(model, Lifted):
        return model
    name = str(getattr(model, "name", type(model).__name__))
    if not isinstance(model, type) and callable(getattr(model, "score", None)):
        require_order(model)
        return Lifted(partial(_scores, model), model, name, world.name)
    if not isinstance(model, type) and callable(model) and hasattr(model, "success_threshold"):
        _require_world(model, name, world)
        return Lifted(partial(_beyond, model), model, name, world.name, np.float64(0))
    raise TypeError(f"model is {model!r}; accepted are a path, {TRUTH!r}, a reward, or an object with {ORDER}")


def require_order(model: Any) -> None:
    """Refuse an object whose functions take the goal first, or what no goals are.

    Raises:
        TypeError: it is one.
    """
    for name in ("score", "gradient"):
        function = getattr(model, name, None)
        if function is None:
            continue
        taken = inspect.signature(function).parameters
        if _OLD_NAMES & set(taken) or "scenes" in taken:
            raise TypeError(
                f"{type(model).__name__}.{name}({', '.join(taken)}) has arguments of an order that is not accepted any "
                f"more; give {name}(achieved, desired): first what is achieved (reference), then the goal (target)"
            )


def _of_network(model: LearnedModel, name: str, world: Any) -> Lifted:
    _require_world(model, name, world)
    return Lifted(model.answer, model, name, world.name)


def _require_world(model: Any, name: str, world: Any) -> None:
    if getattr(model, "world", world.name) != world.name:
        raise ValueError(f"{name} judges {model.world}; accepted here is what judges {world.name}")


def _inputs(model: Any, achieved: NDArray[Any], desired: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Copy the inputs of an object from outside, which may change them."""
    return achieved.copy(), desired.copy() if getattr(model, "two_inputs", True) else None


def _scores(model: Scorer, question: Any) -> Any:
    return model.score(*_inputs(model, question.achieved, question.desired))


def _beyond(reward: Reward, question: Any) -> Any:
    """Margin of a reward beyond its success threshold."""
    return reward(question.achieved, question.desired) - reward.success_threshold


def numbers(name: str, asked: Callable[[], Any], shape: tuple[int, ...]) -> Floats:
    """Ask for numbers.

    Raises:
        JudgeError: an error, another shape, or numbers that are not finite.
    """
    try:
        values = np.asarray(asked())
    except Exception as error:
        raise JudgeError("error", f"{name} raised {type(error).__name__}: {error}") from error
    if values.shape != shape or values.dtype.kind not in "fiu":
        raise JudgeError("shape", f"{name} gave {values.dtype} of shape {values.shape}; accepted are numbers {shape}")
    wrong = ~np.isfinite(values)
    if wrong.any():
        rows = wrong.reshape(len(wrong), -1).any(axis=1)
        others = f"{name} gave others in {rows.sum()} of {len(rows)} rows, as {values[wrong].flat[0]}"
        raise JudgeError("finite", f"accepted are finite numbers; {others}")
    return values.astype(np.float64)


def failures(judge: Lifted, question: Any, equal: Mapping[str, Sequence[Any]] | None = None) -> dict[str, str]:
    """Collect a judge's failures, by the name of the check; empty for a judge whose numbers mean something.

    The score of a pair must be a finite number, the same when it is asked again, alone, in a smaller batch and in a
    batch of another order; rounding is forgiven.

    Args:
        question: pairs to ask about, at least 2.
        equal: by the name of another check, questions that have the same scores.
    """
    size = len(question.desired)
    order, half = np.random.default_rng(0).permutation(size), size // 2
    try:
        scores = judge.score(question)
        alone = [judge.score(question.rows(slice(row, row + 1))) for row in range(size)]
        halves = [judge.score(question.rows(part)) for part in (slice(half), slice(half, None))]
        others = {
            "repeat": [judge.score(question)],
            "batch size": [np.concatenate(alone), np.concatenate(halves)],
            "batch order": [judge.score(question.rows(order))[np.argsort(order)]],
            **{check: [judge.score(same) for same in questions] for check, questions in (equal or {}).items()},
        }
    except JudgeError as error:
        return {error.check: error.message}
    changed = {name: np.any([differ(again, scores) for again in values], axis=0) for name, values in others.items()}
    return {
        name: f"{int(rows.sum())} of {len(scores)} scores change {CHECKS[name]}"
        for name, rows in changed.items()
        if rows.any()
    }


def checked(judge: Lifted, question: Any, equal: Mapping[str, Sequence[Any]] | None = None) -> Lifted:
    """Return a judge whose answers are verdicts; see ``failures``.

    Raises:
        JudgeError: they are not.
    """
    for check, message in failures(judge, question, equal).items():
        raise JudgeError(check, message)
    return judge


def differ(values: Floats, scores: Floats) -> Flags:
    """Mask of the scores that differ by more than rounding."""
    return np.abs(values - scores) > ROUNDING * np.maximum(1, np.abs(scores))
