"""The matching network: which object is which, the best similarity, and a small judge of what is left.

1. *Match*: each object of the reference attends to the objects of the target by appearance: the log-likelihood of
   their colour difference under the benchmark's noise, times a learned sharpness; other shapes are ruled out.
2. *Fit* in closed form: sizes and orientations say how the target was scaled and turned, up to their noise; the
   positions correct that by one linear regression, weighted by the noise of all three (one complex unknown).
3. *Residuals*: per object and kind (position, orientation, size) the squared difference that the attention expects,
   in the reference's frame and in units of the noise's variance. An expectation over partners, not the difference to
   an average partner: an object halfway between two candidates is not in place.
4. *Match again*, now with the residuals, which tells lookalikes apart, and fit again. They enter by their logarithms,
   so that no misplacement, however large, turns an object into one of another colour.
5. *Judge*: one small perceptron sees every residual, of whatever kind; mean and maximum over objects and kinds, and
   the disagreement of the positions' scale and angle with those of sizes and orientations, go through a second one.

All judging weights act by their absolute values, so the score never rises when a residual does: an exact copy has
the highest score there is, noise in it or not, and what one kind of negative teaches about one kind of residual
holds for all. The number of objects enters by means and maxima only. The score is invariant to a similarity of the
target, to the order of objects and to padding. The noise is ``scene.NOISE``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from reward_models.models.base import ModelConfig, RewardModel
from reward_models.models.layers import MonotoneLinear, mlp, present
from spatialsim_env.scene import COLOR, NOISE, ORIENTATION, POSITION, SHAPE, SIZE

OTHER_SHAPE = 1e5  # cost in nats; the farthest colour of the same shape costs 15,000
LEAST_STRETCH = 0.1  # keeps the scale positive where the positions contradict sizes and orientations


@dataclass(frozen=True)
class MatchingConfig(ModelConfig):
    """Widths of the judge."""

    hidden: int = 12  # width of the hidden layers
    features: int = 8  # per residual, before pooling

    def __post_init__(self) -> None:
        for name in ("hidden", "features"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}; accepted is an int from 1")


@dataclass
class Scenes:
    """A batch of scenes taken apart, batch last so that each step runs over it; the plane as complex numbers."""

    held: Tensor  # (n, B) of bool, where an object is
    shape: Tensor  # (3, n, B)
    color: Tensor  # (3, n, B)
    point: Tensor  # (n, B) complex
    direction: Tensor  # (n, B) complex, of length 1
    size: Tensor  # (n, B)


def take_apart(scenes: Tensor) -> Scenes:
    """(B, n, 10) -> its parts."""
    columns = scenes.permute(2, 1, 0).contiguous()
    angle = columns[ORIENTATION]
    return Scenes(
        held=present(scenes).T,
        shape=columns[SHAPE],
        color=columns[COLOR],
        point=torch.complex(*columns[POSITION]),
        direction=torch.complex(angle.cos(), angle.sin()),
        size=columns[SIZE],
    )


def appearance(target: Scenes, reference: Scenes) -> Tensor:
    """Cost of taking two objects for the same one, (n, m, B): minus the log-likelihood of their colours."""
    color = (reference.color[:, :, None] - target.color[:, None]) / NOISE.color
    same_shape = (reference.shape[:, :, None] * target.shape[:, None]).sum(0)
    return color.square().sum(0) / 2 + OTHER_SHAPE * (1 - same_shape)


@dataclass
class Fit:
    """What is left when the target has been brought into the reference's frame; squared, in noise variances."""

    residuals: Tensor  # (3, n, m, B): position, orientation, size
    disagreement: Tensor  # (2, B): of the positions' scale and angle with the other evidence


def fit(target: Scenes, reference: Scenes, attention: Tensor) -> Fit:
    """Bring the target into the reference's frame by the likeliest similarity under the attention (n, m, B)."""
    weight = attention.sum(0)  # of each target object
    n = weight.sum(0)
    moved = by_sizes_and_orientations(target, reference, attention)
    goal = centered(reference.point, reference.held)
    # the factor f that minimises |goal - f moved|^2, given how well sizes and orientations know that it is 1
    cross = (goal * (attention * moved.point).sum(1).conj()).sum(0) / NOISE.position**2
    spread = (weight * squared(moved.point)).sum(0) / NOISE.position**2
    by_size = (weight * moved.size.square()).sum(0) / NOISE.size**2
    by_orientation = n / NOISE.orientation**2
    stretch = ((cross.real + by_size) / (spread + by_size)).clamp_min(LEAST_STRETCH)
    factor = torch.complex(stretch, cross.imag / (spread + by_orientation))
    disagreement = [
        ((cross.real - spread) / (spread + n)).square() * by_size / n,
        (cross.imag / (spread + n)).square() / NOISE.orientation**2,
    ]
    return Fit(residuals(moved, reference, goal, factor), torch.stack(disagreement))


def by_sizes_and_orientations(target: Scenes, reference: Scenes, attention: Tensor) -> Scenes:
    """The target scaled as its sizes and turned as its orientations say, about its mean."""
    weight = attention.sum(0)
    sizes = (attention * target.size).sum(1) * reference.size
    scale = sizes.sum(0) / (weight * target.size.square()).sum(0)
    turn = (reference.direction * (attention * target.direction).sum(1).conj()).sum(0)
    turn = turn / (squared(turn) + 1e-12).sqrt()
    return replace(
        target,
        point=scale * turn * centered(target.point, weight),
        direction=turn * target.direction,
        size=scale * target.size,
    )


def residuals(moved: Scenes, reference: Scenes, goal: Tensor, factor: Tensor) -> Tensor:
    """Of every pair of objects, after ``moved`` took the factor: (3, n, m, B), squared, in noise variances."""
    length = squared(factor).sqrt()
    direction = factor / length * moved.direction
    return torch.stack(
        [
            squared(goal[:, None] - factor * moved.point) / NOISE.position**2,
            squared(reference.direction[:, None] - direction) / NOISE.orientation**2,
            (reference.size[:, None] - length * moved.size).square() / NOISE.size**2,
        ]
    )


def squared(z: Tensor) -> Tensor:
    """|z|^2, with a gradient everywhere."""
    return z.real.square() + z.imag.square()


def centered(points: Tensor, weight: Tensor) -> Tensor:
    """Points (n, B) minus their weighted mean."""
    return points - (weight * points).sum(0) / weight.sum(0)


class Matching(RewardModel):
    """Match, fit, judge; 383 weights, whatever the number of objects."""

    kind = "matching"
    two_inputs = True
    similarity_invariant = True
    curriculum = False
    Config = MatchingConfig

    def __init__(self, config: MatchingConfig) -> None:
        super().__init__(config)
        self.log_sharpness = nn.Parameter(torch.zeros(()))
        self.each = mlp(1, config.hidden, config.features, linear=MonotoneLinear)
        self.all = mlp(2 * config.features + 2, config.hidden, 2, linear=MonotoneLinear)

    def forward(self, target: Tensor, reference: Tensor | None = None) -> Tensor:
        assert reference is not None
        parts = take_apart(target), take_apart(reference)
        held = parts[1].held
        likelihood = -self.log_sharpness.exp() * appearance(*parts)
        likelihood = likelihood.masked_fill(~parts[0].held, -torch.inf)
        first = fit(*parts, likelihood.softmax(1) * held[:, None])
        attention = (likelihood - first.residuals.log1p().sum(0)).softmax(1) * held[:, None]
        last = fit(*parts, attention)
        expected = (attention * last.residuals).sum(2)
        return self.judge(expected, last.disagreement, held)[None]

    def judge(self, residuals: Tensor, disagreement: Tensor, held: Tensor) -> Tensor:
        """Logits (B, 2) from residuals (3, n, B) and disagreement (2, B), squared, in noise variances."""
        features = self.each(residuals.log1p()[..., None])
        held = held[..., None]
        mean = (features * held).sum((0, 1)) / (len(features) * held.sum(0))
        greatest = features.masked_fill(~held, -torch.inf).amax((0, 1))
        pooled = torch.cat([mean, greatest, disagreement.log1p().T], dim=-1)
        different, same = self.all(pooled).unbind(-1)
        return torch.stack([different, -same], dim=-1)
