"""The Graph Matching Network of Li et al. (2019, section 3.3), which the paper discusses, on complete graphs.

Both scenes pass through the same weights. In each round an object hears from the objects of its own scene and from
what attention finds of it in the other:

    m_j  = sum_i message(h_i, h_j)
    mu_j = h_j - sum_k softmax_k(h_j . h'_k / sqrt(10)) h'_k
    h_j  = node(h_j, m_j, mu_j)

A gated sum over the objects gives the scene's vector; the head sees both vectors and is trained as the other models
are, with a prediction after every round, where the original learns a distance.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from reward_models.models.base import RewardModel
from reward_models.models.branches import RoundsConfig
from reward_models.models.kernels.pairs import pair_sums
from reward_models.models.layers import linear, mlp, present
from spatialsim_env.arrangements.scene import N_FEATURES

WIDTH = N_FEATURES  # of objects, messages and scenes
HIDDEN = 16


class GraphMatching(RewardModel):
    """Message passing with attention across the scenes; 2,404 weights."""

    kind = "graph_matching"
    two_inputs = True
    stacks = True
    Config = RoundsConfig

    def __init__(self, config: RoundsConfig) -> None:
        super().__init__(config)
        self.rounds = config.rounds
        self.encode = mlp(N_FEATURES, HIDDEN, WIDTH)
        self.message = mlp(2 * WIDTH, HIDDEN, WIDTH)
        self.node = mlp(3 * WIDTH, HIDDEN, WIDTH)
        self.gate = mlp(WIDTH, HIDDEN, 2 * WIDTH)  # of each object: what it adds to its scene, and how much of it
        self.head = mlp(2 * WIDTH, HIDDEN, 2)

    def forward(self, target: Tensor, reference: Tensor | None = None) -> Tensor:
        assert reference is not None
        held = [present(x)[..., None] for x in (target, reference)]
        objects = [self.encode(x) * mask for x, mask in zip((target, reference), held, strict=True)]
        logits = []
        for _ in range(self.rounds):
            differences = [self._across(objects[0], objects[1], held[1]), self._across(objects[1], objects[0], held[0])]
            objects = [
                self.node(torch.cat([h, self._within(h, mask), mu], dim=-1)) * mask
                for h, mask, mu in zip(objects, held, differences, strict=True)
            ]
            scenes = [self._scene(h, mask) for h, mask in zip(objects, held, strict=True)]
            logits.append(self.head(torch.cat(scenes, dim=-1)))
        return torch.stack(logits, dim=-3)

    def _within(self, objects: Tensor, held: Tensor) -> Tensor:
        """Sum of the messages that each object receives, (B, n, 10); the first layer is one projection per end."""
        first, second = cast(nn.Linear, self.message[0]), cast(nn.Linear, self.message[2])
        sender, receiver = first.weight.split(WIDTH, dim=-1)
        link = linear(objects, receiver, first.bias).transpose(-3, -2), linear(objects, sender).transpose(-3, -2)
        total = pair_sums([link], None, held.transpose(-3, -2)).transpose(-3, -2)
        n_received = held.sum(-2, keepdim=True) - 1
        return linear(total, second.weight) + n_received * second.bias[..., None, None, :]

    def _across(self, objects: Tensor, others: Tensor, held: Tensor) -> Tensor:
        """Subtract from each object its attention-weighted match in the other scene, (B, n, 10)."""
        likeness = objects @ others.mT / WIDTH**0.5
        attention = likeness.masked_fill(~held.mT, -torch.inf).softmax(-1)
        return objects - attention @ others

    def _scene(self, objects: Tensor, held: Tensor) -> Tensor:
        """Gated sum over the objects, (B, 10)."""
        value, gate = self.gate(objects).chunk(2, dim=-1)
        return (value * gate.sigmoid() * held).sum(-2)
