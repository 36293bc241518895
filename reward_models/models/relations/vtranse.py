"""VTransE (Zhang et al. 2017) as Rel3D's authors adapted it: a predicate is a direction from subject to object.

Published weights: 19,204,065; the numbers of this network agree layer by layer.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from reward_models.models.relations.base import BOTTOM, LEFT, OBJECT, RIGHT, SUBJECT, TOP, Inputs
from reward_models.models.relations.layers import branch, one_hot, select_queried
from reward_models.models.relations.pictures import (
    CHANNELS,
    PictureModel,
    RelationPictureConfig,
    crop,
    each,
    parts_of,
    resnet18,
    trunk,
)

_CUT = 3  # side of what a box is cut to
_SEEN = 64 * _CUT**2
_EMBEDDING = 2048
_LEAST = 1e-5  # added to sides, as published


class VTransE(PictureModel):
    """Each object is its category, its box as the other sees it, and what is in its box; the two are subtracted."""

    kind = "vtranse"
    needs = ("names", "boxes2d", "picture")
    published_weights = 19_204_065

    def __init__(self, config: RelationPictureConfig) -> None:
        super().__init__(config)
        self.trunk = trunk(resnet18())
        self.shares = nn.Parameter(torch.rand(3))  # of category, box and sight
        self.seen = nn.ModuleList(branch(CHANNELS * _CUT**2, _SEEN) for _ in range(2))
        self.embeddings = nn.ModuleList(nn.Linear(config.n_objects + 4 + _SEEN, _EMBEDDING) for _ in range(2))
        self.head = nn.Linear(_EMBEDDING, config.n_predicates)

    def stages(self) -> list[tuple[nn.Module, str]]:
        return parts_of(self.trunk)

    def judge(self, inputs: Inputs) -> Tensor:
        maps = self.trunk(self.scale(inputs["picture"]))
        boxes = inputs["boxes2d"]
        both = [self._embed(inputs, maps, boxes, which) for which in (SUBJECT, OBJECT)]
        return select_queried(self.head(both[OBJECT] - both[SUBJECT]), inputs["predicate"])

    def _embed(self, inputs: Inputs, maps: Tensor, boxes: Tensor, which: int) -> Tensor:
        """The subject or the object, (B, 2048)."""
        name = one_hot(inputs[("subject", "object")[which]], self.config.n_objects, maps)
        place = relative(boxes[:, which], boxes[:, 1 - which]).to(maps.dtype)
        seen = self.seen[which](crop(maps, each(boxes)[which], _CUT).flatten(1))
        parts = [x * share for x, share in zip((name, place, seen), self.shares, strict=True)]
        return F.relu(self.embeddings[which](torch.cat(parts, dim=1)))


def relative(box: Tensor, other: Tensor) -> Tensor:
    """Shift of a box (B, 4) in sides of the other and logarithm of the ratio of their sides, (B, 4)."""
    shifts, ratios = [], []
    for low, high in ((TOP, BOTTOM), (LEFT, RIGHT)):
        side, others = (x[:, high] - x[:, low] + _LEAST for x in (box, other))
        shifts.append((box[:, low] - other[:, low]) / others)
        ratios.append((side.clamp_min(_LEAST) / others.clamp_min(_LEAST)).log())
    return torch.stack([*shifts, *ratios], dim=1)
