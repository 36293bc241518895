"""A trained model of relations as a function on numpy scenes, and as a reward of ``SpatialSim-Relation3D-v0``.

Evaluation is in float64 and rounded to float32, so the value of a row does not depend on the batch around it; see
``reward_models.judges.learned``. A goal that requires several predicates is achieved where the least of their logits is
positive.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from reward_models import models
from reward_models.judges.learned import LearnedReward, Trained
from reward_models.models import RelationModel, checkpoint
from reward_models.models.relations.inputs import from_scenes
from reward_models.threads import one_thread
from spatialsim_env.relations.scene import SceneError
from spatialsim_env.relations.vocabulary import PREDICATES
from spatialsim_env.relations.world import goals
from spatialsim_env.relations.world.rewards import WORLD

READABLE = ("boxes3d", "raw", "aligned")  # what a model may need that a scene of boxes has
AT_ONCE = 4096  # scenes judged at a time


class LearnedRelation(Trained):
    """A trained model of relations that judges numpy scenes. It keeps a copy of its own, which nothing changes.

    Args:
        task: what it was trained for; ``predicates`` are the names of its classes, ``vocabulary.PREDICATES`` without.
        source: what ``load`` finds it by, "hub:NAME" or a path; None for a model that is in no file.

    Raises:
        ValueError: a model that needs names of categories, boxes in a picture or pictures, which scenes lack.
    """

    def __init__(
        self, model: RelationModel, task: Mapping[str, Any] | None = None, source: str | os.PathLike[str] | None = None
    ) -> None:
        lacking = [name for name in model.needs if name not in READABLE]
        if lacking:
            raise ValueError(
                f"{model.kind} needs {', '.join(lacking)}, which a scene of boxes does not have; "
                f"accepted are models that need {', '.join(READABLE)}"
            )
        super().__init__(model, task, source)

    @classmethod
    def _check(cls, model: Any, source: str) -> None:
        """Refuse a model of 2D scenes."""
        if not isinstance(model, RelationModel):
            raise checkpoint.CheckpointError(
                f"{source} is a model of 2D scenes, {model.kind!r}; accepted here are {', '.join(models.RELATIONS)}"
            )

    @property
    def predicates(self) -> tuple[str, ...]:
        """Predicates that it judges, by class index."""
        return tuple(self.task.get("predicates", PREDICATES))

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """Its class index of each of ``vocabulary.PREDICATES``, (30,); -1 for what it does not know."""
        known = {name: index for index, name in enumerate(self.predicates)}
        return np.array([known.get(name, -1) for name in PREDICATES])

    def score(
        self, scenes: NDArray[Any], observers: NDArray[Any], predicate: str | Sequence[str] | ArrayLike
    ) -> NDArray[np.float32]:
        """Score the belief that a predicate holds.

        Args:
            scenes: (B, 2, 19).
            observers: (B, 9).
            predicate: a name, or indices (B,) in ``vocabulary.PREDICATES``.

        Returns:
            (B,) logits; positive says that it holds.

        Raises:
            SceneError: not scenes or observers.
            ValueError: a predicate that the model does not know.
        """
        if isinstance(predicate, str):
            if predicate not in PREDICATES:
                raise ValueError(f"predicate is {predicate!r}; accepted are {', '.join(PREDICATES)}")
            predicate = np.full(len(scenes), PREDICATES.index(predicate))
        which = self.classes[np.asarray(predicate, np.int64)]
        if (which < 0).any():
            name = PREDICATES[int(np.asarray(predicate)[(which < 0).argmax()])]
            raise ValueError(f"{self.kind} does not know {name!r}; accepted are {', '.join(self.predicates)}")
        parts = [
            self._logits(scenes[i : i + AT_ONCE], observers[i : i + AT_ONCE], which[i : i + AT_ONCE])
            for i in range(0, len(scenes), AT_ONCE)
        ]
        return torch.cat(parts).to(torch.float32).numpy() if parts else np.zeros(0, np.float32)

    def _logits(self, scenes: NDArray[Any], observers: NDArray[Any], which: NDArray[np.int64]) -> Tensor:
        with one_thread(), torch.inference_mode():
            rows, eyes = (np.asarray(x, np.float64) for x in (scenes, observers))
            return self.module(from_scenes(rows, eyes, which, self.module.needs, dtype=torch.float64))


def load(path_or_name: str | os.PathLike[str]) -> LearnedRelation:
    """A trained model of relations: "hub:NAME", else its folder or one of its two files.

    Raises:
        checkpoint.CheckpointError: a file is missing, damaged or not a model of relations; an unknown name.
        ValueError: a model that scenes have too little for.
    """
    return LearnedRelation.loaded(path_or_name)


class RelationReward(LearnedReward):
    """A trained model of relations as the reward of an environment (protocol ``spatialsim_env.rewards.Reward``).

    ``sparse`` is 0 where the least logit of what is required is positive, else -1; ``dense`` is its probability
    minus 1. Given a path or "hub:NAME", the model is loaded at the first call, in each process by itself; a pickle
    carries the path or the name alone.

    Args:
        model: a model, the path of one, or "hub:NAME".
        kind: "sparse" or "dense".

    Raises:
        ValueError: another kind.
    """

    world = WORLD
    Model = LearnedRelation

    def __call__(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        """Goals (B, 77) that are achieved and desired -> (B,).

        Raises:
            SceneError: other shapes, or what is not a scene.
            ValueError: a predicate that the model does not know.
        """
        if achieved.ndim != 2 or achieved.shape[-1] != goals.N_GOAL:
            raise SceneError(f"goals have shape {achieved.shape}; {self.name} judges relations, (B, {goals.N_GOAL})")
        least = self.least_logits(achieved, goals.required(desired))
        if self.kind == "sparse":
            return np.where(least > 0, 0.0, -1.0)
        return torch.from_numpy(least).sigmoid().to(torch.float32).double().numpy() - 1.0

    def least_logits(self, achieved: NDArray[Any], flags: goals.Flags) -> NDArray[np.float64]:
        """The least logit of what is required (B, 30), (B,); infinite where nothing is."""
        rows, which = np.nonzero(flags)
        scenes, observers = goals.state(achieved)
        logits = np.full(flags.shape, np.inf)
        logits[rows, which] = self.model.score(scenes[rows], observers[rows], which)
        return goals.least(logits, flags)
