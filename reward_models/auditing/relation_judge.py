"""What is audited: anything that scores a predicate of a scene, asked in one way and checked at every answer.

A judge is given scenes (B, 2, 19), observers (B, 9) and indices (B,) in ``vocabulary.PREDICATES`` and gives scores
(B,), positive where it says that the predicate holds. Networks that read boxes in space can also be climbed: their
score is differentiable by the subject's pose.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reward_models.auditing.judge import CHECKS, TRUTH, JudgeError, differ
from reward_models.judges.learned_relations import LearnedRelation, RelationReward, load
from reward_models.models import RelationModel
from reward_models.threads import one_thread
from spatialsim_env.relations import scene
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.scene import CENTER, HALF, KIND, OBJECT, SUBJECT

Array = NDArray[Any]
N_POSE = 6  # of the subject: centre in metres, then a rotation vector in the world's axes, radians


class Scorer(Protocol):
    """The least that can be audited."""

    def score(self, scenes: Any, observers: Any, predicate: Any) -> Any:
        """(B, 2, 19), (B, 9), (B,) -> (B,), positive where the predicate holds."""


class Rule:
    """The rules as a model: their margins are the scores."""

    def score(self, scenes: Array, observers: Array, predicate: Array) -> NDArray[np.float64]:
        """Margins (B,)."""
        return predicates.margin_of(predicate, scenes, observers)


class RelationJudge:
    """A model as the optimisers ask it.

    Args:
        model: see ``judge_of``.
        name: what the report calls it.
    """

    def __init__(self, model: Scorer, name: str) -> None:
        self.model, self.name = model, name

    def __call__(self, scenes: Array, observers: Array, which: Array) -> NDArray[np.float64]:
        """Scores (B,).

        Raises:
            JudgeError: an error, another shape, or numbers that are not finite.
        """
        rows, eyes = (np.array(x, np.float64) for x in (scenes, observers))
        try:
            scores = np.asarray(self.model.score(rows, eyes, which.copy()))
        except Exception as error:
            raise JudgeError("error", f"score raised {type(error).__name__}: {error}") from error
        if scores.shape != (len(scenes),) or scores.dtype.kind not in "fiu":
            raise JudgeError(
                "shape", f"score gave {scores.dtype} {scores.shape}; accepted are numbers ({len(scenes)},)"
            )
        if not np.isfinite(scores).all():
            wrong = scores[~np.isfinite(scores)]
            raise JudgeError("finite", f"accepted are finite numbers; {len(wrong)} scores are not, as {wrong[0]}")
        return scores.astype(np.float64)

    @property
    def no_gradient(self) -> str | None:
        """Why its score cannot be climbed through the model; None where it can."""
        if not isinstance(self.model, LearnedRelation):
            return "it is no network of this package"
        return None if self.model.module.needs == ("boxes3d",) else f"{self.model.kind} does not read boxes in space"

    def gradient(self, scenes: Array, observers: Array, which: Array, poses: Array) -> NDArray[np.float64]:
        """The derivative (B, 6) of the scores by the subjects' poses (B, 6), which are told from scenes (B, 2, 19).

        Raises:
            JudgeError: numbers that are not finite.
        """
        assert isinstance(self.model, LearnedRelation)
        pose = torch.tensor(poses, dtype=torch.float64, requires_grad=True)
        with one_thread():
            inputs = posed_inputs(scenes, observers, pose)
            inputs["predicate"] = torch.from_numpy(self.model.classes[which])
            found = torch.autograd.grad(self.model.module(inputs).sum(), pose)[0].numpy()
        if not np.isfinite(found).all():
            raise JudgeError("finite", "accepted are finite numbers; a gradient is not")
        return found


def posed(scenes: Array, poses: Array) -> NDArray[np.float64]:
    """Scenes (B, 2, 19) with their subjects in poses (B, 6): the centre, and a turn of the axes that they have."""
    out = np.array(scenes, np.float64)
    turn = torch.matrix_exp(_crossing(torch.from_numpy(np.array(poses[:, 3:], np.float64)))).numpy()
    axes = turn @ scene.rotation(out[:, SUBJECT])
    subject = out[:, SUBJECT]
    out[:, SUBJECT] = scene.objects(poses[:, :3], axes, subject[:, HALF], scene.kind(subject))
    return out


def posed_inputs(scenes: Array, observers: Array, poses: Tensor) -> dict[str, Tensor]:
    """The inputs of ``inputs.from_scenes`` for models that read boxes in space, of ``posed`` scenes, differentiable."""
    numbers = [np.asarray(x, np.float64) for x in (scenes, observers)]
    view = torch.from_numpy(scene.eye_rotation(numbers[1]))
    eye = torch.from_numpy(numbers[1][:, scene.EYE].copy())
    first, second = (torch.from_numpy(scene.rotation(numbers[0][:, row])) for row in (SUBJECT, OBJECT))
    turns = torch.stack([torch.matrix_exp(_crossing(poses[:, 3:])) @ first, second], dim=1)
    still = torch.from_numpy(numbers[0][:, OBJECT, CENTER].copy())
    centers = torch.stack([poses[:, :3], still], dim=1)
    seen = torch.einsum("bki,bjk->bji", view, centers - eye[:, None])
    axes = torch.einsum("bki,bjkl->bjil", view, turns)
    half = torch.from_numpy(numbers[0][..., HALF].copy())
    kinds = torch.from_numpy(numbers[0][..., KIND].copy())
    return {"boxes3d": torch.cat([seen, axes.flatten(2), half], dim=-1), "up": view[:, 2], "kinds": kinds}


def _crossing(vectors: Tensor) -> Tensor:
    """The matrices (B, 3, 3) that take the cross product with vectors (B, 3)."""
    x, y, z = vectors.unbind(-1)
    zero = torch.zeros_like(x)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=-1).unflatten(-1, (3, 3))


def judge_of(model: Any) -> RelationJudge:
    """The judge of a model in any of its forms.

    Args:
        model: "truth" for the rules, a name or path of a model of relations, a network of this package, a learned
            reward, or an object with ``score(scenes, observers, predicate)``.

    Raises:
        TypeError: something else.
        ValueError: a path without a model of relations, or one that scenes have too little for.
    """
    if isinstance(model, (str, os.PathLike)):
        name = os.fspath(model)
        return RelationJudge(Rule() if name == TRUTH and not Path(name).exists() else load(model), name)
    if isinstance(model, RelationModel):
        return RelationJudge(LearnedRelation(model), model.kind)
    if isinstance(model, RelationReward):
        return RelationJudge(model.model, model.name)
    if isinstance(model, type) or not callable(getattr(model, "score", None)):
        accepted = f"a path, {TRUTH!r}, or an object with score(scenes, observers, predicate)"
        raise TypeError(f"model is {model!r}; accepted are {accepted}")
    if isinstance(model, LearnedRelation):
        return RelationJudge(model, model.source or model.kind)
    return RelationJudge(model, str(getattr(model, "name", type(model).__name__)))


def failures(judge: RelationJudge, scenes: Array, observers: Array, which: Array) -> dict[str, str]:
    """What disqualifies a judge, by the name of the check; empty for a judge whose numbers mean something.

    The score of a scene must be a finite number, the same when it is asked again, alone and in a batch of another
    order; rounding is forgiven.
    """
    order = np.random.default_rng(0).permutation(len(scenes))
    try:
        scores = judge(scenes, observers, which)
        rows = [slice(row, row + 1) for row in range(len(scenes))]
        others = {
            "repeat": judge(scenes, observers, which),
            "batch size": np.concatenate([judge(scenes[row], observers[row], which[row]) for row in rows]),
            "batch order": judge(scenes[order], observers[order], which[order])[np.argsort(order)],
        }
    except JudgeError as error:
        return {error.check: error.message}
    found = {name: differ(again, scores) for name, again in others.items()}
    return {
        name: f"{int(rows.sum())} of {len(scores)} scores change {CHECKS[name]}"
        for name, rows in found.items()
        if rows.any()
    }
