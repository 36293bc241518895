"""Questions about relations as tensors: scenes, observers and the predicates that a goal requires.

A goal that requires several predicates is achieved where the least of their logits is positive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from reward_models.models import RelationModel
from reward_models.models.relations.inputs import from_scenes
from reward_models.threads import one_thread
from spatialsim_env.core.judges import Rows
from spatialsim_env.registry import RELATIONS
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.scene import RoomError
from spatialsim_env.relations.vocabulary import PREDICATES
from spatialsim_env.relations.world import goals

READABLE = ("boxes3d", "raw", "aligned")  # what a model may need that a scene of boxes has
AT_ONCE = 4096  # scenes judged at a time


@dataclass(frozen=True)
class Situations(Rows):
    """B scenes with the predicates that are required of them; what holds in them is computed when first asked for."""

    scenes: NDArray[Any]  # (B, 2, 19)
    observers: NDArray[Any]  # (B, 9)
    required: goals.Flags  # (B, 30)

    @cached_property
    def achieved(self) -> NDArray[np.float32]:
        """The goals that are achieved, (B, 77)."""
        return goals.pack(goals.margins(self.scenes, self.observers) > 0, self.scenes, self.observers)

    @cached_property
    def desired(self) -> NDArray[np.float32]:
        """The goals that are required, (B, 77)."""
        return goals.desired(self.required)

    @cached_property
    def distance(self) -> NDArray[np.float64]:
        """Minus the least margin of what is required, (B,)."""
        rows, which = np.nonzero(self.required)
        margins = np.full(self.required.shape, np.inf)
        scenes, observers = (x[rows].astype(np.float64) for x in (self.scenes, self.observers))
        margins[rows, which] = predicates.margin_of(which, scenes, observers)
        return -goals.least(margins, self.required)


class RelationReader:
    """Asks a network of relations.

    Args:
        module: the network, in float64.
        task: what it was trained for; ``predicates`` are the names of its classes, ``vocabulary.PREDICATES`` without.

    Raises:
        ValueError: a model that needs names of categories, boxes in a picture or pictures, which scenes lack.
    """

    world = RELATIONS
    two_inputs = True
    fixed_goal = None

    def __init__(self, module: RelationModel, task: Mapping[str, Any]) -> None:
        lacking = [name for name in module.needs if name not in READABLE]
        if lacking:
            raise ValueError(
                f"{module.kind} needs {', '.join(lacking)}, which a scene of boxes does not have; "
                f"accepted are models that need {', '.join(READABLE)}"
            )
        self.module = module
        self.predicates = tuple(task.get("predicates", PREDICATES))
        known = {name: index for index, name in enumerate(self.predicates)}
        self.classes = np.array([known.get(name, -1) for name in PREDICATES])  # -1 for what it does not know

    def question(self, achieved: ArrayLike, desired: ArrayLike | None) -> Situations:
        """Check goals (B, 77).

        Raises:
            RoomError: other shapes.
        """
        arrays = [np.asarray(x) for x in (achieved, desired)]
        for array in arrays:
            if array.ndim != 2 or array.shape[-1] != goals.N_GOAL:
                shape = f"goals have shape {array.shape}"
                raise RoomError(f"{shape}; {self.module.kind} judges relations, (B, {goals.N_GOAL})")
        return Situations(*goals.state(arrays[0]), goals.required(arrays[1]))

    def logits(self, question: Any) -> Tensor:
        """The least of the logits that are required, (B,) in float64, each rounded to float32; infinite without any.

        Raises:
            RoomError: not scenes or observers.
            ValueError: a predicate that the model does not know.
        """
        rows, which = np.nonzero(question.required)
        classes = self.classes[which]
        if (classes < 0).any():
            name = PREDICATES[which[(classes < 0).argmax()]]
            raise ValueError(f"{self.module.kind} does not know {name!r}; accepted are {', '.join(self.predicates)}")
        scenes, observers = (np.asarray(x, np.float64)[rows] for x in (question.scenes, question.observers))
        logits = np.full(question.required.shape, np.inf)
        with one_thread(), torch.inference_mode():
            for start in range(0, len(rows), AT_ONCE):
                part = slice(start, start + AT_ONCE)
                inputs = from_scenes(
                    scenes[part], observers[part], classes[part], self.module.needs, dtype=torch.float64
                )
                logits[rows[part], which[part]] = self.module(inputs).to(torch.float32).numpy()
        return torch.from_numpy(goals.least(logits, question.required))

    def comparable(self, achieved: NDArray[Any], desired: NDArray[Any], name: str) -> NDArray[np.bool_]:
        """All goals, (B,)."""
        return np.ones(len(achieved), bool)
