"""Layers that the models share."""

from __future__ import annotations

import itertools

import torch.nn.functional as F
from torch import Tensor, nn

from spatialsim_env.scene import SHAPE


def present(scenes: Tensor) -> Tensor:
    """Which rows hold an object: (..., n, 10) -> (..., n) of bool."""
    return scenes[..., SHAPE].sum(-1) > 0.5


def mlp(*widths: int, linear: type[nn.Linear] = nn.Linear) -> nn.Sequential:
    """Linear layers of the given widths with a ReLU between each two."""
    layers: list[nn.Module] = []
    for d_in, d_out in itertools.pairwise(widths):
        layers += [linear(d_in, d_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class MonotoneLinear(nn.Linear):
    """A linear layer whose weights act by their absolute values: no output falls when an input rises."""

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight.abs(), self.bias)
