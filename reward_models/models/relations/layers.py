"""Layers that the models of relations share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Scale(nn.Module):
    """Standardises numbers: minus a mean, by a deviation, both fitted to training samples and kept with the weights."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(tuple(shape)))
        self.register_buffer("deviation", torch.ones(tuple(shape)))

    def fit(self, x: Tensor, over: int | tuple[int, ...] = 0) -> None:
        """Take mean and deviation of x over some dimensions; where it does not vary, the deviation is 1."""
        mean = x.mean(over)
        deviation = (x - mean.reshape(self._spread(x, over))).square().mean(over).sqrt()
        still = deviation <= 1e-6 * (1 + mean.abs())
        self.mean.copy_(mean.reshape(self.mean.shape))
        self.deviation.copy_(torch.where(still, torch.ones_like(deviation), deviation).reshape(self.mean.shape))

    @staticmethod
    def _spread(x: Tensor, over: int | tuple[int, ...]) -> list[int]:
        dims = (over,) if isinstance(over, int) else over
        return [1 if i in dims else n for i, n in enumerate(x.shape)]

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.deviation


def branch(width_in: int, width_out: int) -> nn.Sequential:
    """A linear layer, batch normalisation, ReLU."""
    return nn.Sequential(nn.Linear(width_in, width_out), nn.BatchNorm1d(width_out), nn.ReLU())


def one_hot(index: Tensor, classes: int, like: Tensor) -> Tensor:
    """(B,) -> (B, classes) in the type of ``like``."""
    return F.one_hot(index, classes).to(like.dtype)


def select_queried(outputs: Tensor, predicate: Tensor) -> Tensor:
    """Of outputs (B, n_predicates) those that are asked for, (B,)."""
    return outputs.gather(1, predicate[:, None]).squeeze(1)


class ThreeBranches(nn.Module):
    """Subject, object and predicate each through a branch, summed; the published text-only and box-only networks."""

    def __init__(self, described: int, predicates: int, width: int = 256, hidden: int = 128) -> None:
        super().__init__()
        self.subject = branch(described, width)
        self.object = branch(described, width)
        self.predicate = branch(predicates, width)
        self.head = nn.Sequential(branch(width, hidden), nn.Linear(hidden, 1))

    def forward(self, subject: Tensor, object: Tensor, predicate: Tensor) -> Tensor:
        """(B, described) twice and (B, predicates) -> (B,)."""
        return self.head(self.subject(subject) + self.object(object) + self.predicate(predicate)).squeeze(1)
