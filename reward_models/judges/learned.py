"""A trained model as a function on numpy arrays, and as a reward.

Every evaluation is done in float64 and rounded to float32: sums in another order, which is what another batch size
means, differ far below that rounding, so the value of a row does not depend on the batch around it. A float32
forward pass would. The networks that are used most have a compiled function for it (``models/scorers.py``).
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from reward_models import models
from reward_models.judges import shipped
from reward_models.measuring.evaluation import rows_at_once
from reward_models.models import RewardModel, checkpoint
from reward_models.models.batch import pictures_at_once, seen_by
from reward_models.models.scorers import scorer_of
from reward_models.threads import one_thread
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.scene import SHAPE, SIZE, SceneError, as_batch, present, validate
from spatialsim_env.core.rewards import SCENES

KINDS = ("sparse", "dense")


class Trained:
    """A trained network that judges numpy arrays, in float64. It keeps a copy of its own, which nothing changes.

    A copy of it is it itself; a pickle carries what it was loaded by, or its weights where it is in no file.
    """

    def __init__(self, model: Any, task: Mapping[str, Any] | None, source: str | os.PathLike[str] | None) -> None:
        self._module = copy.deepcopy(model).to("cpu", torch.float64).eval().requires_grad_(False)
        self.task = dict(task or {})
        self.source = None if source is None else settled(source)

    @property
    def module(self) -> Any:
        """The network itself, in float64."""
        return self._module

    @property
    def kind(self) -> str:
        """Name of the model in the registry."""
        return self._module.kind

    @classmethod
    def loaded(cls, path_or_name: str | os.PathLike[str]) -> Any:
        """The model of a name of the hub, "hub:NAME", or of its folder or one of its two files.

        Raises:
            checkpoint.CheckpointError: a file is missing, damaged or not a model of this kind; an unknown name.
        """
        source = settled(path_or_name)
        stored = shipped.load(source) if shipped.is_name(source) else checkpoint.load(source)
        cls._check(stored.model, source)
        return cls(stored.model, stored.task, source)

    @classmethod
    def _check(cls, model: Any, source: str) -> None:
        """Refuse a stored model that judges other things."""

    @classmethod
    def _rebuilt(
        cls, kind: str, settings: Mapping[str, Any], weights: Mapping[str, NDArray[Any]], task: Mapping[str, Any]
    ) -> Any:
        model = models.create(kind, settings).double()
        model.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
        return cls(model, task, None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Trained:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.source is not None:
            return type(self).loaded, (self.source,)
        weights = {name: value.numpy() for name, value in self._module.state_dict().items()}
        return type(self)._rebuilt, (self.kind, self._module.config.to_json(), weights, self.task)


class LearnedModel(Trained):
    """A trained model that judges numpy scenes. It keeps a copy of its own, which nothing changes.

    Args:
        task: what it was trained for.
        source: what ``load`` finds it by, "hub:NAME" or a path; None for a model that is in no file.
    """

    def __init__(
        self, model: RewardModel, task: Mapping[str, Any] | None = None, source: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__(model, task, source)
        self._scorer = scorer_of(self._module)

    @classmethod
    def _check(cls, model: Any, source: str) -> None:
        """Refuse a model of relations, which judges other things than arrangements."""
        if model.kind not in models.REGISTRY:
            raise checkpoint.CheckpointError(
                f"{source} is a model of relations in 3D, {model.kind!r}; accepted here is a model of scenes: "
                f"{', '.join(models.REGISTRY)}. Relations have rewards of their own, in reward_models.relations"
            )

    @property
    def two_inputs(self) -> bool:
        """True where it compares two scenes; else it knows one reference scene."""
        return self._module.two_inputs

    @property
    def reference(self) -> NDArray[np.float32] | None:
        """The scene (n, 10) that a model of one input recognises, where its file says so."""
        scene = self.task.get("reference")
        return None if scene is None else np.asarray(scene, np.float32)

    def score(self, target: ArrayLike, reference: ArrayLike | None = None) -> NDArray[np.float32]:
        """Score the belief that target and reference show the same configuration.

        Args:
            target: the transformed scenes, in any form of ``scene.as_batch``.
            reference: the scenes in the arena, likewise; not used by models of one input. One scene on one side
                serves a whole batch on the other.

        Returns:
            (B,) logits; positive says the same.

        Raises:
            SceneError: not scenes, or different numbers of them.
            ValueError: no reference for a model of two inputs.
        """
        return self._logits(target, reference).to(torch.float32).numpy()

    def probability(self, target: ArrayLike, reference: ArrayLike | None = None) -> NDArray[np.float32]:
        """``score`` as a probability: (B,) in 0..1."""
        return self._logits(target, reference).sigmoid().to(torch.float32).numpy()

    def _logits(self, target: ArrayLike, reference: ArrayLike | None) -> torch.Tensor:
        scenes = [_checked(target, "target")]
        if self.two_inputs:
            if reference is None:
                raise ValueError(f"{self.kind} compares two scenes: give a reference")
            scenes.append(_checked(reference, "reference"))
        sizes = {len(x) for x in scenes}
        if len(sizes - {1}) > 1:
            raise SceneError(f"{len(scenes[0])} targets and {len(scenes[1])} references; give equal numbers, or one")
        size = max(sizes) if 0 not in sizes else 0
        if self._scorer is not None:
            rows = (np.broadcast_to(x, (size, *x.shape[1:])) for x in scenes)
            return torch.from_numpy(self._scorer(*(np.require(x, np.float64, ["C", "W"]) for x in rows)))
        tensors = [seen_by(self._module, x, torch.float64) for x in scenes]
        if self._module.sees_pictures:
            step = pictures_at_once(tensors[0].shape[-1])
        else:
            step = rows_at_once(max(x.shape[1] for x in tensors))
        tensors = [x.expand(size, *x.shape[1:]) for x in tensors]
        with one_thread(), torch.inference_mode():
            parts = [self._module.score(*(x[i : i + step] for x in tensors)) for i in range(0, size, step)]
            return torch.cat(parts) if parts else torch.empty(0, dtype=torch.float64)


def load(path_or_name: str | os.PathLike[str]) -> LearnedModel:
    """A trained model: "hub:NAME" for one that comes with the package, else its folder or one of its two files.

    Raises:
        checkpoint.CheckpointError: a file is missing, damaged or not a model; a name that the hub does not have.
    """
    return LearnedModel.loaded(path_or_name)


class LearnedReward:
    """A trained model as the reward of an environment (protocol ``spatialsim_env.rewards.Reward``).

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
    world = SCENES
    Model: ClassVar[type[Trained]] = LearnedModel  # what it is made of

    def __init__(self, model: Any, kind: str = "sparse") -> None:
        if kind not in KINDS:
            raise ValueError(f"a learned reward is {kind!r}; accepted are {', '.join(KINDS)}")
        self.kind = kind
        self._model: Any = None
        if isinstance(model, self.Model):
            self._model, self.source = model, model.source
        else:
            self.source = settled(model)

    @property
    def folder(self) -> Path | None:
        """Folder of its model; None for a model that is in no file."""
        if self.source is None:
            return None
        return shipped.folder(self.source) if shipped.is_name(self.source) else Path(self.source)

    @property
    def name(self) -> str:
        """Name for ``resolve``; the kind of a model that is in no file."""
        base = self.source if self.source is not None else self.model.kind
        return base if self.kind == "sparse" else f"{base}:{self.kind}"

    @property
    def model(self) -> Any:
        """The model, loaded if it is not yet."""
        if self._model is None:
            assert self.source is not None
            self._model = self.Model.loaded(self.source)
        return self._model

    def __call__(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        """(B, n, 10) scenes in the arena and (B, n, 10) goals -> (B,).

        Raises:
            ValueError: a model of one input, and a goal that is not its reference up to similarity.
        """
        judge = self.model.score if self.kind == "sparse" else self.model.probability
        rows = _comparable(achieved, desired)
        judged = np.full(len(achieved), -np.inf)
        if self.model.two_inputs:
            judged[rows] = judge(desired[rows], achieved[rows])
        else:
            self._check_goals(desired)
            judged[rows] = judge(achieved[rows])
        if self.kind == "sparse":
            return np.where(judged > 0, 0.0, -1.0)
        return np.maximum(judged, 0).astype(np.float64) - 1.0

    def _check_goals(self, desired: NDArray[Any]) -> None:
        """Refuse goals that a model of one input knows nothing of."""
        reference = self.model.reference
        remedy = "use a two-input model, which compares any two scenes"
        if reference is None:
            raise ValueError(f"{self.name} has one input and its file does not say which reference it knows; {remedy}")
        try:
            same = goals.achieved(reference[None], desired)
        except SceneError as error:
            raise ValueError(
                f"{self.name} knows one reference scene; the goal is another: {error}; {remedy}"
            ) from error
        if not same.all():
            row = int((~same).argmax())
            raise ValueError(f"{self.name} knows one reference scene and goal {row} is another; {remedy}")

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"_model": None} if self.source is not None else {})


def resolve(spec: str) -> LearnedReward | None:
    """The learned reward of a name, for ``spatialsim_env.rewards.resolve``.

    Args:
        spec: a shipped model or the path of one, as ``hub:matching`` or ``runs/demo/matching``; ``:dense`` behind it
            makes it dense.

    Returns:
        None where the name is neither. A model of relations in 3D gives a ``RelationReward``.

    Raises:
        checkpoint.CheckpointError: a path without a model; a name that the hub does not have, or a file of it changed.
        ValueError: an unknown kind after the colon.
    """
    if shipped.is_name(spec):
        name, colon, kind = spec.removeprefix(shipped.PREFIX).partition(":")
        info = checkpoint.read_info(shipped.checked(name))
        return _reward_of(shipped.PREFIX + name, info["kind"], kind if colon else "sparse")
    path, kind = spec, "sparse"
    base, colon, ending = spec.rpartition(":")
    if colon and (ending in KINDS or Path(base).exists()):
        path, kind = base, ending
    if "/" not in path and os.sep not in path and not Path(path).exists():
        return None
    return _reward_of(path, checkpoint.read_info(path)["kind"], kind)


def _reward_of(source: str, model: str, kind: str) -> LearnedReward:
    """The reward of a stored model of some kind, of scenes or of relations."""
    if model in models.REGISTRY:
        return LearnedReward(source, kind)
    from reward_models.judges.learned_relations import RelationReward  # which is built on this module

    return RelationReward(source, kind)


def settled(source: str | os.PathLike[str]) -> str:
    """A name of the hub, or the folder of a model as it is found from every working directory."""
    text = os.fspath(source)
    return text if shipped.is_name(text) else str(checkpoint.folder_of(text).resolve())


def _checked(scenes: ArrayLike, name: str) -> NDArray[Any]:
    batch, _ = as_batch(scenes, name)
    validate(batch, name)
    return batch


def _comparable(achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask (B,) of pairs in which both scenes hold objects, as many of each shape and all of some size."""
    counts = [np.einsum("bnk->bk", scenes[..., SHAPE]) for scenes in (achieved, desired)]
    sized = [((scenes[..., SIZE] > 0) == present(scenes)).all(axis=1) for scenes in (achieved, desired)]
    return (counts[0] == counts[1]).all(axis=-1) & counts[0].any(axis=-1) & sized[0] & sized[1]
