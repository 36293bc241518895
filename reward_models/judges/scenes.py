"""Questions about arrangements as tensors: scenes, or pictures of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from reward_models.models import RewardModel
from reward_models.models.batch import pictures_at_once, rows_at_once, seen_by
from reward_models.models.scorers import scorer_of
from reward_models.threads import one_thread
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.scene import SHAPE, SIZE, SceneError, as_batch, present, validate
from spatialsim_env.core.judges import Pairs
from spatialsim_env.registry import SCENES


class SceneReader:
    """Asks a network of scenes; one of one input judges the scene in the arena alone.

    Args:
        module: the network, in float64.
        task: what it was trained for.
    """

    world = SCENES

    def __init__(self, module: RewardModel, task: Mapping[str, Any]) -> None:
        self.module = module
        self.two_inputs = module.two_inputs
        known = task.get("reference")
        self.fixed_goal = None if known is None else np.asarray(known, np.float32)
        self._scorer = scorer_of(module)

    def question(self, achieved: ArrayLike, desired: ArrayLike | None) -> Pairs:
        """Check scenes in any form of ``scene.as_batch``; one scene on one side serves a whole batch on the other.

        Raises:
            SceneError: not scenes, or different numbers of them.
            ValueError: no goals for a model of two inputs.
        """
        arena = _checked(achieved, "achieved")
        if not self.two_inputs:
            return Pairs(arena, arena)
        if desired is None:
            raise ValueError(f"{self.module.kind} compares two scenes: give the desired one")
        goal = _checked(desired, "desired")
        if len({len(arena), len(goal)} - {1}) > 1:
            raise SceneError(f"{len(arena)} achieved and {len(goal)} desired scenes; give equal numbers, or one")
        return Pairs(arena, goal)

    def logits(self, question: Any) -> Tensor:
        """(B,) in float64; positive says achieved."""
        # the networks take the transformed scene first, which is the goal
        scenes = (question.desired, question.achieved) if self.two_inputs else (question.achieved,)
        size = max(map(len, scenes)) if all(map(len, scenes)) else 0
        if self._scorer is not None:
            rows = (np.broadcast_to(x, (size, *x.shape[1:])) for x in scenes)
            return torch.from_numpy(self._scorer(*(np.require(x, np.float64, ["C", "W"]) for x in rows)))
        tensors = [seen_by(self.module, x, torch.float64) for x in scenes]
        if self.module.sees_pictures:
            step = pictures_at_once(tensors[0].shape[-1])
        else:
            step = rows_at_once(max(x.shape[1] for x in tensors))
        tensors = [x.expand(size, *x.shape[1:]) for x in tensors]
        with one_thread(), torch.inference_mode():
            parts = [self.module.score(*(x[i : i + step] for x in tensors)) for i in range(0, size, step)]
            return torch.cat(parts) if parts else torch.empty(0, dtype=torch.float64)

    def comparable(self, achieved: NDArray[Any], desired: NDArray[Any], name: str) -> NDArray[np.bool_]:
        """Mask (B,) of pairs in which both scenes hold objects, as many of each shape and all of some size.

        Args:
            name: of the model, for what is raised.

        Raises:
            ValueError: a model of one input, and a goal that is not the one it knows up to similarity.
        """
        if not self.two_inputs:
            self._check_goals(desired, name)
        counts = [np.einsum("bnk->bk", scenes[..., SHAPE]) for scenes in (achieved, desired)]
        sized = [((scenes[..., SIZE] > 0) == present(scenes)).all(axis=1) for scenes in (achieved, desired)]
        return (counts[0] == counts[1]).all(axis=-1) & counts[0].any(axis=-1) & sized[0] & sized[1]

    def _check_goals(self, desired: NDArray[Any], name: str) -> None:
        """Refuse goals that a model of one input knows nothing of."""
        remedy = "use a two-input model, which compares any two scenes"
        if self.fixed_goal is None:
            raise ValueError(f"{name} has one input and its file does not say which reference it knows; {remedy}")
        try:
            same = goals.achieved(self.fixed_goal[None], desired)
        except SceneError as error:
            raise ValueError(f"{name} knows one reference scene; the goal is another: {error}; {remedy}") from error
        if not same.all():
            raise ValueError(f"{name} knows one reference scene and goal {int((~same).argmax())} is another; {remedy}")


def _checked(scenes: ArrayLike, name: str) -> NDArray[Any]:
    batch, _ = as_batch(scenes, name)
    validate(batch, name)
    return batch
