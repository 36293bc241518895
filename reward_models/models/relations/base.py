"""Base class of the models of relations: a torch module that maps described pairs of objects to one logit each.

A model is given a dictionary of tensors with the batch B first, ``SHAPES``; ``inputs.py`` makes
it. Logits above 0 say that the queried predicate holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from reward_models.models.base import ModelConfig
from spatialsim_env.checks import require_whole
from spatialsim_env.relations import vocabulary
from spatialsim_env.relations.scene import KINDS

Inputs = Mapping[str, Tensor]

TOP, BOTTOM, LEFT, RIGHT = range(4)  # of a box in a picture, as in the published input
BOX_CENTER, BOX_ROTATION, BOX_HALF = slice(0, 3), slice(3, 12), slice(12, 15)  # of a box in space
N_BOX = 15
SUBJECT, OBJECT = 0, 1  # second dimension of boxes

SHAPES: dict[str, tuple[int | None, ...]] = {  # of one sample; None is any number
    "predicate": (),  # class index, int64
    "subject": (),  # class index, int64
    "object": (),
    "boxes2d": (2, 4),  # top, bottom in picture heights, left, right in picture widths
    "raw": (24,),  # raw_absolute of the published files: metres, degrees
    "aligned": (18,),  # aligned_absolute
    "picture": (3, None, None),  # red, green, blue in 0..1
    "boxes3d": (2, N_BOX),  # camera frame, metres: centre, rotation row by row (columns front, left, up), half sizes
    "up": (3,),  # the world's up in the camera frame, a unit vector
    "kinds": (2, len(KINDS)),  # one-hot shapes as scene.KINDS; zeros where unknown
}
NEEDS: dict[str, tuple[str, ...]] = {  # what a model may need, and the inputs that make it up
    "names": ("subject", "object"),
    "boxes2d": ("boxes2d",),
    "raw": ("raw",),
    "aligned": ("aligned",),
    "picture": ("picture",),
    "boxes3d": ("boxes3d", "up", "kinds"),
}


@dataclass(frozen=True)
class RelationModelConfig(ModelConfig):
    """Settings common to all models of relations."""

    n_predicates: int = len(vocabulary.PREDICATES)  # that can be queried
    n_objects: int = vocabulary.N_OBJECTS  # categories

    def __post_init__(self) -> None:
        require_whole("n_predicates", self.n_predicates)
        require_whole("n_objects", self.n_objects)


class RelationModel(nn.Module):
    """Judges whether a predicate holds between a subject and an object."""

    kind: ClassVar[str]  # name in the registry
    needs: ClassVar[tuple[str, ...]]  # names in NEEDS
    published_weights: ClassVar[int | None] = None  # number of weights of the authors' network; None for ours
    Config: ClassVar[type[RelationModelConfig]] = RelationModelConfig

    def __init__(self, config: RelationModelConfig) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def settings_for(cls, predicates: Sequence[str], objects: Sequence[str]) -> dict[str, Any]:
        """The settings that fit a file's lists of predicates and of categories, whose order is the class index."""
        return {"n_predicates": len(predicates), "n_objects": len(objects)}

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the tensors that ``forward`` reads."""
        return ("predicate", *(name for need in self.needs for name in NEEDS[need]))

    @property
    def n_weights(self) -> int:
        """Number of trained weights."""
        return sum(parameter.numel() for parameter in self.parameters())

    def fit_scale(self, inputs: Inputs) -> None:
        """Set means and deviations by which inputs are standardised from training samples; else they are 0 and 1.

        Raises:
            ValueError: as ``forward``.
        """
        self.check(inputs)

    def prepare(self, inputs: Inputs) -> dict[str, Tensor]:
        """The inputs and, beside them, whatever this model would compute of them that no weight alters.

        ``forward`` takes either and gives the same; samples that are seen many times are prepared once.

        Raises:
            ValueError: as ``forward``.
        """
        self.check(inputs)
        return dict(inputs)

    def forward(self, inputs: Inputs) -> Tensor:
        """Logits (B,) of the queried predicates.

        Args:
            inputs: at least the tensors named by ``inputs``, of shapes ``SHAPES`` after the batch.

        Raises:
            ValueError: a tensor is missing or of another shape, or a class index is out of range.
        """
        self.check(inputs)
        return self.judge(inputs)

    def judge(self, inputs: Inputs) -> Tensor:
        """``forward`` without its checks."""
        raise NotImplementedError

    def check(self, inputs: Inputs) -> None:
        """Refuse what ``forward`` cannot read.

        Raises:
            ValueError: as ``forward``.
        """
        missing = [name for name in self.inputs if name not in inputs]
        if missing:
            raise ValueError(f"{self.kind} is not given {', '.join(missing)}; it needs {', '.join(self.inputs)}")
        size = len(inputs["predicate"])
        for name in self.inputs:
            shape, accepted = tuple(inputs[name].shape), (size, *SHAPES[name])
            fits = len(shape) == len(accepted)
            if not fits or any(bound not in (None, side) for side, bound in zip(shape, accepted, strict=True)):
                wanted = ", ".join("any" if x is None else str(x) for x in accepted)
                raise ValueError(f"{self.kind}: {name} has shape {shape}; accepted is ({wanted})")
        limits = {"predicate": self.config.n_predicates, "subject": self.config.n_objects}
        limits["object"] = limits["subject"]
        for name, limit in limits.items():
            if name in self.inputs and size:
                low, high = int(inputs[name].min()), int(inputs[name].max())
                if low < 0 or high >= limit:
                    wrong = low if low < 0 else high
                    raise ValueError(f"{self.kind}: {name} has index {wrong}; accepted are 0 to {limit - 1}")
