"""The published perceptrons on the poses of both objects, and continuous encodings of their angles.

The paper says five layers with skip connections, its code has none: ``skips`` adds the input of each of the three inner
layers to its output, which takes no weights. Angles in degrees jump at 180; ``encoding`` replaces each by its sine and
cosine, or each rotation by the first two columns of its matrix (6D, Zhou et al. 2019). Both are continuous; sines and
cosines of Euler angles still have the poles of these angles, the matrix has none.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from reward_models.models.relations.base import Inputs, RelationModel, RelationModelConfig
from reward_models.models.relations.layers import Scale, branch, select_queried
from spatialsim_env.checks import require, require_whole
from spatialsim_env.relations.rel3d.vectors import ALIGNING, ANGLES, BLOCK, ENCODINGS, LAYOUT, encoded_width


@dataclass(frozen=True)
class PoseConfig(RelationModelConfig):
    """Settings of the perceptrons; the width has another default in each."""

    width: int = 512  # of the four hidden layers
    skips: bool = True  # around the three inner ones
    encoding: str = "degrees"  # of rotations; a name in vectors.ENCODINGS

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("width", self.width)
        require(isinstance(self.skips, bool), "skips", self.skips, "a bool")
        known = isinstance(self.encoding, str) and self.encoding in ENCODINGS
        require(known, "encoding", self.encoding, " or ".join(ENCODINGS))


@dataclass(frozen=True)
class WidePoseConfig(PoseConfig):
    """Settings of the perceptron on aligned poses."""

    width: int = 2048


class _Perceptron(RelationModel):
    name: ClassVar[str]  # of the vector in vectors.LAYOUT
    config: PoseConfig

    def __init__(self, config: PoseConfig) -> None:
        super().__init__(config)
        read = encoded_width(self.name, config.encoding)
        self.scale = Scale([read])
        widths = [read, *[config.width] * 4]
        self.layers = nn.ModuleList(branch(a, b) for a, b in itertools.pairwise(widths))
        self.head = nn.Linear(config.width, config.n_predicates)

    def fit_scale(self, inputs: Inputs) -> None:
        super().fit_scale(inputs)
        with torch.no_grad():
            self.scale.fit(self._encode(inputs[self.needs[0]]))

    def judge(self, inputs: Inputs) -> Tensor:
        x = self.layers[0](self.scale(self._encode(inputs[self.needs[0]])))
        for layer in self.layers[1:]:
            x = x + layer(x) if self.config.skips else layer(x)
        return select_queried(self.head(x), inputs["predicate"])

    def _encode(self, vectors: Tensor) -> Tensor:
        """Published vectors with their angles in this model's encoding; ``vectors.encode`` on tensors."""
        if self.config.encoding == "degrees":
            return vectors
        encode = _sincos if self.config.encoding == "sincos" else _two_columns
        blocks = zip(vectors.split(BLOCK, dim=1), LAYOUT[self.name], strict=True)
        return torch.cat([encode(x) if name in (ANGLES, ALIGNING) else x for x, name in blocks], dim=1)


def _sincos(degrees: Tensor) -> Tensor:
    radians = torch.deg2rad(degrees)
    return torch.cat([radians.sin(), radians.cos()], dim=-1)


def _two_columns(degrees: Tensor) -> Tensor:
    """First two columns of Ry Rx Rz, (..., 6), for angles about z, x and y: scipy's "zxy", about fixed axes."""
    (sz, sx, sy), (cz, cx, cy) = (f(torch.deg2rad(degrees)).unbind(-1) for f in (torch.sin, torch.cos))
    first = [cy * cz + sy * sx * sz, cx * sz, cy * sx * sz - sy * cz]
    second = [sy * sx * cz - cy * sz, cx * cz, sy * sz + cy * sx * cz]
    return torch.stack([*first, *second], dim=-1)


class RawMLP(_Perceptron):
    """Poses of the meshes as they come and their alignment, 24 numbers; 820,254 weights with angles in degrees."""

    kind = "mlp_raw"
    needs = ("raw",)
    name = "raw_absolute"
    published_weights = 820_254
    Config = PoseConfig


class AlignedMLP(_Perceptron):
    """Poses of the aligned meshes, 18 numbers; 12,705,822 weights with angles in degrees."""

    kind = "mlp_aligned"
    needs = ("aligned",)
    name = "aligned_absolute"
    published_weights = 12_705_822
    Config = WidePoseConfig
