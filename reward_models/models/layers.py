"""Layers that the models share."""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spatialsim_env.arrangements.scene import SHAPE


def present(scenes: Tensor) -> Tensor:
    """Mask of the rows that hold an object: (..., n, 10) -> (..., n) of bool."""
    return scenes[..., SHAPE].sum(-1) > 0.5


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As ``F.linear``; also of S networks at once: x (S, ..., in), weight (S, out, in), bias (S, out)."""
    if weight.dim() == 2:
        return F.linear(x, weight, bias)
    rows = x.flatten(1, -2)
    out = torch.bmm(rows, weight.mT) if bias is None else torch.baddbmm(bias[:, None], rows, weight.mT)
    return out.view(*x.shape[:-1], -1)


class Linear(nn.Linear):
    """A linear layer of one network, or of several whose weights are stacked."""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


def mlp(*widths: int, linear: type[nn.Linear] = Linear) -> nn.Sequential:
    """Linear layers of the given widths with a ReLU between each two."""
    layers: list[nn.Module] = []
    for d_in, d_out in itertools.pairwise(widths):
        layers += [linear(d_in, d_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class MonotoneLinear(nn.Linear):
    """A linear layer whose weights act by their absolute values: no output falls when an input rises."""

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight.abs(), self.bias)
