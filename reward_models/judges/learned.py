"""A trained model as a function on numpy arrays, and as a reward, in every world.

Every evaluation is done in float64 and rounded to float32: sums in another order, which is what another batch size
means, differ far below that rounding, so the value of a row does not depend on the batch around it. A float32
forward pass would. What differs between worlds is how a question becomes tensors: ``scenes`` and ``relations``.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from reward_models import models
from reward_models.judges import shipped
from reward_models.judges.relations import RelationReader
from reward_models.judges.scenes import SceneReader
from reward_models.models import RelationModel, RewardModel, checkpoint

KINDS = ("sparse", "dense")


class LearnedModel:
    """A trained network that judges numpy arrays, in float64. It keeps a copy of its own, which nothing changes.

    A copy of it is it itself; a pickle carries what it was loaded by, or its weights where it is in no file.

    Args:
        task: what it was trained for.
        source: what ``load`` finds it by, "hub:NAME" or a path; None for a model that is in no file.

    Raises:
        ValueError: a model of relations that needs what scenes lack.
    """

    def __init__(
        self,
        model: RewardModel | RelationModel,
        task: Mapping[str, Any] | None = None,
        source: str | os.PathLike[str] | None = None,
    ) -> None:
        self.module: Any = copy.deepcopy(model).to("cpu", torch.float64).eval().requires_grad_(False)
        self.task = dict(task or {})
        self.source = None if source is None else locate(source)
        self.reader = _reader_of(model.kind)(self.module, self.task)

    @property
    def kind(self) -> str:
        """Name of the model in the registry."""
        return self.module.kind

    @property
    def world(self) -> str:
        """The world whose goals it judges."""
        return self.reader.world

    @property
    def two_inputs(self) -> bool:
        """True where it compares achieved with desired goals; else it knows one goal."""
        return self.reader.two_inputs

    @property
    def fixed_goal(self) -> NDArray[np.float32] | None:
        """The goal (n, 10) that a model of one input recognises, where its file says so."""
        return self.reader.fixed_goal

    @classmethod
    def loaded(cls, path_or_name: str | os.PathLike[str]) -> LearnedModel:
        """The model of a name of the hub, "hub:NAME", or of its folder or one of its two files.

        Raises:
            checkpoint.CheckpointError: a file is missing, damaged or not a model; an unknown name.
            ValueError: a model of relations that needs what scenes lack.
        """
        source = locate(path_or_name)
        stored = shipped.load(source) if shipped.is_name(source) else checkpoint.load(source)
        return cls(stored.model, stored.task, source)

    def score(self, achieved: ArrayLike, desired: ArrayLike | None = None) -> NDArray[np.float32]:
        """Score the belief that the achieved goal is the desired one.

        Args:
            achieved: arrangements: the scenes in the arena, in any form of ``scene.as_batch``; relations: (B, 77).
            desired: the goals, likewise; not used by models of one input.

        Returns:
            (B,) logits; positive says achieved.

        Raises:
            SceneError: not goals of its world, or different numbers of them.
            ValueError: no goals for a model of two inputs; a predicate that the model does not know.
        """
        return self.answer(self.reader.question(achieved, desired))

    def probability(self, achieved: ArrayLike, desired: ArrayLike | None = None) -> NDArray[np.float32]:
        """``score`` as a probability: (B,) in 0..1."""
        return self.reader.logits(self.reader.question(achieved, desired)).sigmoid().to(torch.float32).numpy()

    def answer(self, question: Any) -> NDArray[np.float32]:
        """``score`` of a question of its world."""
        return self.reader.logits(question).to(torch.float32).numpy()

    @classmethod
    def _rebuilt(
        cls, kind: str, settings: Mapping[str, Any], weights: Mapping[str, NDArray[Any]], task: Mapping[str, Any]
    ) -> LearnedModel:
        model = models.create(kind, settings).double()
        model.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
        return cls(model, task, None)

    def __deepcopy__(self, memo: dict[int, Any]) -> LearnedModel:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.source is not None:
            return type(self).loaded, (self.source,)
        weights = {name: value.numpy() for name, value in self.module.state_dict().items()}
        return type(self)._rebuilt, (self.kind, self.module.config.to_json(), weights, self.task)


load = LearnedModel.loaded


def _reader_of(kind: str) -> Any:
    """The class that asks models of a kind."""
    return SceneReader if kind in models.REGISTRY else RelationReader


class LearnedReward:
    """A trained model as the reward of an environment (protocol ``spatialsim_env.core.rewards.Reward``).

    ``sparse`` is 0 where the model's logit is positive, else -1; ``dense`` is its probability minus 1. Scenes that
    do not hold the same shapes are not achieved, as under the truth. Given a path or "hub:NAME", the model is loaded at
    the first call, in each process by itself; a pickle carries the path or the name alone.

    Args:
        model: a model, the path of one, or "hub:NAME".
        kind: "sparse" or "dense".

    Raises:
        ValueError: another kind.
    """

    success_threshold = -0.5

    def __init__(self, model: LearnedModel | str | os.PathLike[str], kind: str = "sparse") -> None:
        if kind not in KINDS:
            raise ValueError(f"a learned reward is {kind!r}; accepted are {', '.join(KINDS)}")
        self.kind = kind
        self._model: LearnedModel | None = None
        if isinstance(model, LearnedModel):
            self._model, self.source = model, model.source
        else:
            self.source = locate(model)

    @property
    def folder(self) -> Path | None:
        """Folder of its model; None for a model that is in no file."""
        if self.source is None:
            return None
        return shipped.folder(self.source) if shipped.is_name(self.source) else Path(self.source)

    @property
    def world(self) -> str:
        """The world whose goals it judges, read off the model's file where it is not loaded yet."""
        if self._model is None and self.folder is not None:
            return _reader_of(checkpoint.read_info(self.folder)["kind"]).world
        return self.model.world

    @property
    def name(self) -> str:
        """Name for ``resolve``; the kind of a model that is in no file."""
        base = self.source if self.source is not None else self.model.kind
        return base if self.kind == "sparse" else f"{base}:{self.kind}"

    @property
    def model(self) -> LearnedModel:
        """The model, loaded if it is not yet."""
        if self._model is None:
            assert self.source is not None
            self._model = LearnedModel.loaded(self.source)
        return self._model

    def __call__(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        """Goals as the environment packs them, (B, n, 10) in 2D and (B, 77) in 3D -> (B,).

        Raises:
            SceneError: other shapes, or what is not a scene.
            ValueError: a goal that a model of one input is not of, or a predicate that the model does not know.
        """
        rows = self.model.reader.comparable(achieved, desired, self.name)
        judge = self.model.score if self.kind == "sparse" else self.model.probability
        judged = np.full(len(achieved), -np.inf)
        judged[rows] = judge(achieved[rows], desired[rows])
        if self.kind == "sparse":
            return np.where(judged > 0, 0.0, -1.0)
        return np.maximum(judged, 0).astype(np.float64) - 1.0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"_model": None} if self.source is not None else {})


def resolve(spec: str) -> LearnedReward | None:
    """The learned reward of a name, for ``spatialsim_env.core.rewards.resolve``.

    Args:
        spec: a shipped model or the path of one, as ``hub:matching`` or ``runs/demo/matching``; ``:dense`` behind it
            makes it dense.

    Returns:
        None where the name is neither.

    Raises:
        checkpoint.CheckpointError: a path without a model; a name that the hub does not have, or a file of it changed.
        ValueError: an unknown kind after the colon.
    """
    if shipped.is_name(spec):
        name, colon, kind = spec.removeprefix(shipped.PREFIX).partition(":")
        checkpoint.read_info(shipped.check_folder(name))
        return LearnedReward(shipped.PREFIX + name, kind if colon else "sparse")
    path, kind = spec, "sparse"
    base, colon, ending = spec.rpartition(":")
    if colon and (ending in KINDS or Path(base).exists()):
        path, kind = base, ending
    if "/" not in path and os.sep not in path and not Path(path).exists():
        return None
    checkpoint.read_info(path)
    return LearnedReward(path, kind)


def locate(source: str | os.PathLike[str]) -> str:
    """A name of the hub, or the folder of a model as it is found from every working directory."""
    text = os.fspath(source)
    return text if shipped.is_name(text) else str(checkpoint.folder_of(text).resolve())
