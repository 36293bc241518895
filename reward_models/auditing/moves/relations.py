"""Moves of a relation: the subject's pose. The subject stays in the room and out of the object.

A vector (6,) is the centre in metres, then a turn from how the subject began: a rotation vector in the world's axes,
``METRES_PER_RADIAN`` times its radians.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reward_models.judges.judge import Lifted, numbers
from reward_models.judges.learned import LearnedModel
from reward_models.judges.relations import Situations
from reward_models.threads import one_thread
from spatialsim_env.core.judges import Floats
from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import boxes
from spatialsim_env.relations.scene import CENTER, HALF, KIND, OBJECT, ROOM, SUBJECT
from spatialsim_env.relations.world.dynamics import TOUCHING, fitted

METRES_PER_RADIAN = 0.5  # a turn is as far as this displacement
AROUND = 1.5  # metres along x and y from the object that a run of CMA-ES begins within, and its height at most
OVERLAP = 1e3  # what an overlap costs, beside its depth in metres
UNITS = np.array([1.0, 1.0, 1.0, *[METRES_PER_RADIAN] * 3])


class PoseMoves:
    """The pose of the subject. An ascent may lead through overlaps; claims are made without."""

    name = "pose"
    steps = (0.1, 0.002)  # metres
    spread = 0.3  # metres
    runs = 4

    def vectors(self, question: Situations) -> Floats:
        """(B, 6), with no turn."""
        centers = question.scenes[:, SUBJECT, CENTER]
        return np.concatenate([centers, np.zeros((len(centers), 3))], axis=1, dtype=np.float64)

    def placed(self, question: Situations, vectors: Floats) -> Situations:
        """Scenes with their subjects in the room, in float32."""
        scenes = posed(question.scenes, vectors / UNITS)
        scenes[:, SUBJECT] = fitted(scenes[:, SUBJECT])
        return replace(question, scenes=scenes.astype(np.float32))

    def within(self, question: Situations, vectors: Floats) -> Floats:
        """Centres brought into the room."""
        fitting = self.placed(question, vectors).scenes[:, SUBJECT, CENTER]
        return np.concatenate([fitting, vectors[:, 3:]], axis=1)

    def bounds(self, question: Situations) -> Floats:
        """None, (6, 2): what is outside is brought inside when it is placed."""
        return np.tile([-np.inf, np.inf], (6, 1))

    def cost(self, question: Situations) -> Floats:
        """Of an overlap of subject and object, growing with its depth."""
        depth = boxes.apart(question.scenes)[1]
        return np.where(depth > TOUCHING, OVERLAP * (1 + depth), 0.0)

    def no_gradient(self, judge: Lifted) -> str | None:
        """Why a judge's score cannot be climbed; None where it can."""
        if not isinstance(judge.model, LearnedModel):
            return "it is no network of this package"
        return None if judge.model.module.needs == ("boxes3d",) else f"{judge.model.kind} does not read boxes in space"

    def slopes(self, judge: Lifted, question: Situations, vectors: Floats) -> Floats:
        """The derivative (B, 6) of the scores by the vectors.

        Raises:
            JudgeError: numbers that are not finite.
        """
        return numbers("gradient", lambda: _through(judge.model, question, vectors / UNITS), vectors.shape) / UNITS

    def again(self, question: Situations, rng: np.random.Generator) -> Floats:
        """A pose about the object, (6,)."""
        center = question.scenes[0, OBJECT, CENTER] + rng.uniform(-AROUND, AROUND, 3)
        center[2] = rng.uniform(0, min(AROUND, ROOM[2]))
        turn = rng.uniform(-np.pi, np.pi, 3) * (0.25, 0.25, 1.0)  # mostly about the vertical
        return np.concatenate([center, turn * METRES_PER_RADIAN])


def _through(model: LearnedModel, question: Situations, poses: Floats) -> Floats:
    """The gradient of a network by the subjects' poses (B, 6), of goals of one predicate."""
    pose = torch.tensor(poses, dtype=torch.float64, requires_grad=True)
    with one_thread():
        inputs = posed_inputs(question.scenes, question.observers, pose)
        inputs["predicate"] = torch.from_numpy(model.reader.classes[question.required.argmax(axis=1)])
        return torch.autograd.grad(model.module(inputs).sum(), pose)[0].numpy()


def posed(scenes: NDArray[Any], poses: Floats) -> Floats:
    """Scenes (B, 2, 19) with their subjects in poses (B, 6): the centre, and a turn of the axes that they have."""
    out = np.array(scenes, np.float64)
    turn = torch.matrix_exp(_crossing(torch.from_numpy(np.array(poses[:, 3:], np.float64)))).numpy()
    axes = turn @ scene.rotation(out[:, SUBJECT])
    subject = out[:, SUBJECT]
    out[:, SUBJECT] = scene.objects(poses[:, :3], axes, subject[:, HALF], scene.kind(subject))
    return out


def posed_inputs(scenes: NDArray[Any], observers: NDArray[Any], poses: Tensor) -> dict[str, Tensor]:
    """The inputs of ``inputs.from_scenes`` for models that read boxes in space, of ``posed`` scenes, differentiable."""
    arrays = [np.asarray(x, np.float64) for x in (scenes, observers)]
    view = torch.from_numpy(scene.eye_rotation(arrays[1]))
    eye = torch.from_numpy(arrays[1][:, scene.EYE].copy())
    first, second = (torch.from_numpy(scene.rotation(arrays[0][:, row])) for row in (SUBJECT, OBJECT))
    turns = torch.stack([torch.matrix_exp(_crossing(poses[:, 3:])) @ first, second], dim=1)
    still = torch.from_numpy(arrays[0][:, OBJECT, CENTER].copy())
    centers = torch.stack([poses[:, :3], still], dim=1)
    seen = torch.einsum("bki,bjk->bji", view, centers - eye[:, None])
    axes = torch.einsum("bki,bjkl->bjil", view, turns)
    half = torch.from_numpy(arrays[0][..., HALF].copy())
    kinds = torch.from_numpy(arrays[0][..., KIND].copy())
    return {"boxes3d": torch.cat([seen, axes.flatten(2), half], dim=-1), "up": view[:, 2], "kinds": kinds}


def _crossing(vectors: Tensor) -> Tensor:
    """The matrices (B, 3, 3) that take the cross product with vectors (B, 3)."""
    x, y, z = vectors.unbind(-1)
    zero = torch.zeros_like(x)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=-1).unflatten(-1, (3, 3))
