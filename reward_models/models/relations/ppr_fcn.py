"""PPR-FCN (Zhang et al. 2017) as Rel3D's authors adapted it: position-sensitive maps that are pooled cell by cell.

Published weights: 11,396,346; the numbers of this network agree layer by layer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from reward_models.models.relations.base import BOTTOM, LEFT, RIGHT, TOP, Inputs
from reward_models.models.relations.layers import select_queried
from reward_models.models.relations.pictures import (
    CHANNELS,
    PictureModel,
    RelationPictureConfig,
    crop,
    each,
    parts_of,
    resnet18,
    trunk,
    union,
)

_CUTS = 3  # cells of a box along each side
_CELLS = _CUTS**2
_VOTES = 9  # channels of a cell
_MAPS = _CELLS * _VOTES
_REDUCED, _HIDDEN = 256, 40


class PPRFCN(PictureModel):
    """Each of 3 x 3 cells of subject, object and union has maps of its own; their means are summed and classified."""

    kind = "ppr_fcn"
    needs = ("boxes2d", "picture")
    published_weights = 11_396_346

    def __init__(self, config: RelationPictureConfig) -> None:
        super().__init__(config)
        self.trunk = trunk(resnet18())
        self.reduce = nn.Conv2d(CHANNELS, _REDUCED, 1)
        self.maps = nn.Sequential(nn.Conv2d(_REDUCED, 4 * _MAPS, 1), nn.BatchNorm2d(4 * _MAPS))
        self.head = nn.Sequential(
            nn.Linear(_MAPS, _HIDDEN), nn.BatchNorm1d(_HIDDEN), nn.Linear(_HIDDEN, config.n_predicates)
        )

    def stages(self) -> list[tuple[nn.Module, str]]:
        return parts_of(self.trunk)

    def judge(self, inputs: Inputs) -> Tensor:
        maps = self.maps(self.reduce(self.trunk(self.scale(inputs["picture"]))))
        subject, object, joint_subject, joint_object = maps.split(_MAPS, dim=1)
        boxes = inputs["boxes2d"].to(maps.dtype)
        shared = cells(union(boxes))
        votes = torch.zeros(len(maps), _CELLS, _VOTES, dtype=maps.dtype, device=maps.device)
        for own, joint, box in zip((subject, object), (joint_subject, joint_object), each(boxes), strict=True):
            votes = votes + pool_cells(own, cells(box)) + pool_cells(joint, intersection(shared, box[:, None]))
        return select_queried(self.head(votes.flatten(1)), inputs["predicate"])


def cells(boxes: Tensor) -> Tensor:
    """The 3 x 3 cells of boxes (B, 4), row by row: (B, 9, 4)."""
    steps = torch.arange(_CUTS + 1, device=boxes.device, dtype=boxes.dtype) / _CUTS

    def edges(low: int, high: int) -> Tensor:
        return boxes[:, low, None] + (boxes[:, high] - boxes[:, low])[:, None] * steps

    rows, columns = edges(TOP, BOTTOM), edges(LEFT, RIGHT)
    down, across = torch.meshgrid(torch.arange(_CUTS), torch.arange(_CUTS), indexing="ij")
    i, j = down.flatten().to(boxes.device), across.flatten().to(boxes.device)
    return torch.stack([rows[:, i], rows[:, i + 1], columns[:, j], columns[:, j + 1]], dim=-1)


def intersection(boxes: Tensor, other: Tensor) -> Tensor:
    """Intersection of boxes (..., 4) with others; where it is empty, the end is at or before the start."""
    most, least = torch.maximum(boxes, other), torch.minimum(boxes, other)
    return torch.stack([most[..., TOP], least[..., BOTTOM], most[..., LEFT], least[..., RIGHT]], dim=-1)


def pool_cells(maps: Tensor, boxes: Tensor) -> Tensor:
    """Mean of each cell's own 9 channels in its box: maps (B, 81, H, W) and (B, 9, 4) -> (B, 9, 9); 0 if empty."""
    there = (boxes[..., BOTTOM] > boxes[..., TOP]) & (boxes[..., RIGHT] > boxes[..., LEFT])
    means = crop(maps.reshape(-1, _VOTES, *maps.shape[2:]), boxes.flatten(0, 1), 1).reshape(-1, _CELLS, _VOTES)
    return means * there[..., None]
