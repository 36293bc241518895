"""DRNet (Dai et al. 2017) as Rel3D's authors adapted it: appearance, positions and words, three shared steps.

Published weights: 11,892,542; the numbers of this network agree layer by layer. The picture is cut to the union of both
boxes here, where the authors cut the full photo before scaling it down.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from reward_models.models.relations.base import BOTTOM, LEFT, RIGHT, TOP, Inputs
from reward_models.models.relations.layers import one_hot, select_queried
from reward_models.models.relations.pictures import (
    CHANNELS,
    PictureModel,
    RelationPictureConfig,
    crop,
    parts_of,
    resnet18,
    trunk,
    union,
)

MASK = 32  # side of the masks of boxes
STEPS = 3
_APPEARANCE = _POSITION = 256
_WIDTH = 128
_LEAST = 1e-6  # of a union's side, in sides of the picture


class DRNet(PictureModel):
    """ResNet-18 on the crop of both boxes, an hourglass on their masks, then relu(A subject + B object + R state)."""

    kind = "drnet"
    needs = ("names", "boxes2d", "picture")
    published_weights = 11_892_542

    def __init__(self, config: RelationPictureConfig) -> None:
        super().__init__(config)
        self.trunk = trunk(resnet18())
        self.appearance = nn.Linear(CHANNELS, _APPEARANCE)
        self.position = _position()
        self.first = nn.Sequential(nn.Linear(_APPEARANCE + _POSITION, _WIDTH), nn.BatchNorm1d(_WIDTH), nn.ReLU())
        self.subject = nn.Linear(config.n_objects, _WIDTH)
        self.object = nn.Linear(config.n_objects, _WIDTH)
        self.state = nn.Linear(_WIDTH, _WIDTH)
        self.head = nn.Linear(_WIDTH, config.n_predicates)

    def stages(self) -> list[tuple[nn.Module, str]]:
        return parts_of(self.trunk)

    def judge(self, inputs: Inputs) -> Tensor:
        boxes = inputs["boxes2d"]
        seen = crop(self.scale(inputs["picture"]), union(boxes), self.config.pixels)
        appearance = self.appearance(self.trunk(seen).mean((2, 3)))
        position = self.position(masks(boxes).to(seen.dtype)).flatten(1)
        state = self.first(torch.cat([appearance, position], dim=1))
        subject, object = (one_hot(inputs[name], self.config.n_objects, state) for name in ("subject", "object"))
        named = self.subject(subject) + self.object(object)
        for _ in range(STEPS):
            state = F.relu(named + self.state(state))
        return select_queried(self.head(state), inputs["predicate"])


def masks(boxes: Tensor) -> Tensor:
    """Shares of the 32 x 32 cells of their union that two boxes (B, 2, 4) cover, (B, 2, 32, 32)."""
    frame = union(boxes)[:, None]

    def cover(low: int, high: int) -> Tensor:
        start = frame[..., low]
        side = (frame[..., high] - start).clamp_min(_LEAST)
        ends = ((boxes[..., x] - start) / side * MASK for x in (low, high))
        first, last = (x[..., None] for x in ends)
        cell = torch.arange(MASK, device=boxes.device, dtype=boxes.dtype)
        return (torch.minimum(last, cell + 1) - torch.maximum(first, cell)).clamp(0, 1)

    return cover(TOP, BOTTOM)[..., :, None] * cover(LEFT, RIGHT)[..., None, :]


def _position() -> nn.Sequential:
    """(B, 2, 32, 32) -> (B, 256, 1, 1)."""
    return nn.Sequential(
        *(nn.Conv2d(2, 32, 5, stride=2, padding=2), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)),
        *(_Hourglass(MASK // 4, 64), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(64, _POSITION, MASK // 8), nn.BatchNorm2d(_POSITION)),
    )


class _Step(nn.Module):
    """Three convolutions with layer normalisation beside one of a single pixel, on maps of a fixed side."""

    def __init__(self, channels: int, side: int) -> None:
        super().__init__()
        half = channels // 2
        self.path = nn.Sequential(
            *(nn.Conv2d(channels, half, 1), nn.LayerNorm([half, side, side]), nn.ReLU()),
            *(nn.Conv2d(half, half, 3, padding=1), nn.LayerNorm([half, side, side]), nn.ReLU()),
            nn.Conv2d(half, channels, 1),
        )
        self.skip = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.path(x) + self.skip(x)


class _Hourglass(nn.Module):
    """A block at this side beside the same at half the side, down to one pixel."""

    def __init__(self, side: int, channels: int) -> None:
        super().__init__()
        self.beside = _Step(channels, side)
        self.through: nn.Module | None = None
        if side > 1:
            half = side // 2
            normal = [nn.Sequential(nn.LayerNorm([channels, half, half]), nn.ReLU()) for _ in range(2)]
            self.through = nn.Sequential(
                nn.MaxPool2d(2),
                *(_Step(channels, half), normal[0]),
                *(_Hourglass(half, channels), normal[1]),
                *(_Step(channels, half), nn.Upsample(scale_factor=2)),
            )

    def forward(self, x: Tensor) -> Tensor:
        return self.beside(x) if self.through is None else self.beside(x) + self.through(x)
