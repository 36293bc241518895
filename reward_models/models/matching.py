"""The matching network: match the objects, fit the best similarity, judge the residuals.

1. *Match*: each object of the reference attends to the objects of the target by appearance: the log-likelihood of
   their colour difference under the benchmark's noise, times a learned sharpness; other shapes are ruled out.
2. *Fit* in closed form: sizes and orientations say how the target was scaled and turned, up to their noise; the
   positions correct that by one linear regression, weighted by the noise of all three (one complex unknown).
3. *Residuals*: per object and kind (position, orientation, size) the squared difference that the attention expects,
   in the reference's frame and in units of the noise's variance. An expectation over partners, not the difference to
   an average partner: an object halfway between two candidates is not in place.
4. *Match again*, now with the residuals, which tells lookalikes apart, and fit again. They enter by their logarithms,
   so that no misplacement, however large, turns an object into one of another colour.
   With ``hypotheses`` the matching by appearance is first made sharper: one object of the reference is taken for each
   of its likeliest partners, whose orientation then says how the target was turned, and of the matchings that follow
   from these the likeliest is kept. It resolves scenes whose lookalikes leave the mean direction undecided.
5. *Judge*: one small perceptron sees every residual, of whatever kind; mean and maximum over objects and kinds, and
   the disagreement of the positions' scale and angle with those of sizes and orientations, go through a second one.

All judging weights act by their absolute values, so the score never rises when a residual does: an exact copy has
the highest score there is, noise in it or not, and what one kind of negative teaches about one kind of residual
holds for all. The number of objects enters by means and maxima only, unless ``counts`` lets the judge know that the
greatest of more residuals is greater. The score is invariant to a similarity of the
target, to the order of objects and to padding. The noise is ``scene.NOISE``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from reward_models.models.base import ModelConfig, RewardModel
from reward_models.models.layers import MonotoneLinear, mlp, present
from spatialsim_env.arrangements.scene import COLOR, NOISE, ORIENTATION, POSITION, SHAPE, SIZE

OTHER_SHAPE = 1e5  # cost in nats; the farthest colour of the same shape costs 15,000
COARSE = 10.0  # noise variances, the residuals of a hypothesis that count little
MOST_PERSISTENCE = 4.0  # with it the residuals cannot make up for a difference of 200 nats in appearance
LEAST_STRETCH = 0.1  # keeps the scale positive where the positions contradict sizes and orientations


@dataclass(frozen=True)
class MatchingConfig(ModelConfig):
    """Widths of the judge, and how thoroughly the objects are matched."""

    hidden: int = 12  # width of the hidden layers
    features: int = 8  # per residual, before pooling
    hypotheses: int = 0  # partners of one object that are tried in turn; 0 for none
    rematches: int = 1  # matchings by appearance and residuals
    persistence: float = 1.0  # weight of the residuals beside the appearance in these
    counts: bool = False  # whether the judge knows how many objects there are

    def __post_init__(self) -> None:
        for name, least in (("hidden", 1), ("features", 1), ("hypotheses", 0), ("rematches", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} is {value!r}; accepted is an int from {least}")
        if isinstance(self.persistence, bool) or not 0 < self.persistence <= MOST_PERSISTENCE:
            raise ValueError(f"persistence is {self.persistence!r}; accepted is 0 < persistence <= {MOST_PERSISTENCE}")
        if not isinstance(self.counts, bool):
            raise ValueError(f"counts is {self.counts!r}; accepted is a bool")


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
    """Residuals of the target in the reference's frame; squared, in noise variances."""

    residuals: Tensor  # (3, n, m, B): position, orientation, size
    disagreement: Tensor  # (2, B): of the positions' scale and angle with the other evidence


def fit(target: Scenes, reference: Scenes, attention: Tensor) -> Fit:
    """Bring the target into the reference's frame by the likeliest similarity under the attention (n, m, B)."""
    weight = attention.sum(0)  # of each target object
    n = weight.sum(0)
    moved = by_sizes_and_orientations(target, reference, attention)
    goal = center(reference.point, reference.held)
    # the factor f that minimises |goal - f moved|^2, given how well sizes and orientations know that it is 1
    cross = (goal * (attention * moved.point).sum(1).conj()).sum(0) / NOISE.position**2
    spread = (weight * square(moved.point)).sum(0) / NOISE.position**2
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
    scale = by_sizes(target, reference, attention)
    turn = (reference.direction * (attention * target.direction).sum(1).conj()).sum(0)
    turn = turn / (square(turn) + 1e-12).sqrt()
    return replace(
        target,
        point=scale * turn * center(target.point, weight),
        direction=turn * target.direction,
        size=scale * target.size,
    )


def by_sizes(target: Scenes, reference: Scenes, attention: Tensor) -> Tensor:
    """The scale (B,) that brings the target's sizes to the reference's."""
    sizes = (attention * target.size).sum(1) * reference.size
    return sizes.sum(0) / (attention.sum(0) * target.size.square()).sum(0)


def residuals(moved: Scenes, reference: Scenes, goal: Tensor, factor: Tensor) -> Tensor:
    """Of every pair of objects, after ``moved`` took the factor: (3, n, m, B), squared, in noise variances."""
    length = square(factor).sqrt()
    direction = factor / length * moved.direction
    return torch.stack(
        [
            square(goal[:, None] - factor * moved.point) / NOISE.position**2,
            square(reference.direction[:, None] - direction) / NOISE.orientation**2,
            (reference.size[:, None] - length * moved.size).square() / NOISE.size**2,
        ]
    )


def by_hypotheses(target: Scenes, reference: Scenes, likelihood: Tensor, most: int) -> Tensor:
    """The attention (n, m, B) of the likeliest of several matchings, each beginning with one pair of objects.

    The reference's object farthest from the mean is taken for each of its ``most`` likeliest partners in turn.
    """
    held = reference.held
    goal = center(reference.point, held)
    anchor = (square(goal) * held).argmax(0)
    own = likelihood.gather(0, anchor.expand(1, *likelihood.shape[1:]))[0]
    own, partner = own.topk(min(most, len(own)), dim=0)
    turn = reference.direction.gather(0, anchor[None]) * target.direction.gather(0, partner).conj()
    attention = likelihood.softmax(1) * held[:, None]
    offset = by_sizes(target, reference, attention) * center(target.point, attention.sum(0))
    far = square(goal[:, None] - (turn[:, None] * offset)[:, None]) / NOISE.position**2
    turned = square(reference.direction[:, None] - (turn[:, None] * target.direction)[:, None]) / NOISE.orientation**2
    logits = likelihood - 2 * ((far / COARSE).log1p() + (turned / COARSE).log1p())  # (hypotheses, n, m, B)
    likeliest = ((logits.logsumexp(2) * held).sum(1) + own).argmax(0)
    chosen = logits.gather(0, likeliest.expand(1, *logits.shape[1:]))[0]
    return chosen.softmax(1) * held[:, None]


def square(z: Tensor) -> Tensor:
    """|z|^2, with a gradient everywhere."""
    return z.real.square() + z.imag.square()


def center(points: Tensor, weight: Tensor) -> Tensor:
    """Points (n, B) minus their weighted mean."""
    return points - (weight * points).sum(0) / weight.sum(0)


class Matching(RewardModel):
    """Match, fit, judge; 383 weights (395 with ``counts``), whatever the number of objects."""

    kind = "matching"
    two_inputs = True
    similarity_invariant = True
    curriculum = False
    Config = MatchingConfig

    def __init__(self, config: MatchingConfig) -> None:
        super().__init__(config)
        self.log_sharpness = nn.Parameter(torch.zeros(()))
        self.each = mlp(1, config.hidden, config.features, linear=MonotoneLinear)
        self.all = mlp(2 * config.features + 2 + config.counts, config.hidden, 2, linear=MonotoneLinear)

    def forward(self, target: Tensor, reference: Tensor | None = None) -> Tensor:
        assert reference is not None
        config = cast(MatchingConfig, self.config)
        parts = take_apart(target), take_apart(reference)
        held = parts[1].held
        likelihood = -self.log_sharpness.exp() * appearance(*parts)
        likelihood = likelihood.masked_fill(~parts[0].held, -torch.inf)
        if config.hypotheses:
            attention = by_hypotheses(*parts, likelihood, config.hypotheses)
        else:
            attention = likelihood.softmax(1) * held[:, None]
        similarity = fit(*parts, attention)
        for _ in range(config.rematches):
            left = similarity.residuals.log1p().sum(0)
            attention = (likelihood - config.persistence * left).softmax(1) * held[:, None]
            similarity = fit(*parts, attention)
        expected = (attention * similarity.residuals).sum(2)
        return self.judge(expected, similarity.disagreement, held)[None]

    def judge(self, residuals: Tensor, disagreement: Tensor, held: Tensor) -> Tensor:
        """Logits (B, 2) from residuals (3, n, B) and disagreement (2, B), squared, in noise variances."""
        features = self.each(residuals.log1p()[..., None])
        held = held[..., None]
        mean = (features * held).sum((0, 1)) / (len(features) * held.sum(0))
        greatest = features.masked_fill(~held, -torch.inf).amax((0, 1))
        pooled = [mean, greatest, disagreement.log1p().T]
        if self.config.counts:  # type: ignore[attr-defined]
            pooled.append(-held.sum(0).log())
        different, same = self.all(torch.cat(pooled, dim=-1)).unbind(-1)
        return torch.stack([different, -same], dim=-1)
