"""The paper's message-passing networks (section 3.2), of one and of two inputs.

A scene is a complete directed graph without self edges; node, edge and global features are 10 wide. One round, with
a two-layer perceptron each:

    e'_ij = edge(x_i, x_j, e_ij, u)         j receives from i; e_ij = x_j - x_i at first
    x'_j  = node(x_j, sum_i e'_ij, u)       u = mean_j x_j at first
    u'    = global(sum_j x'_j, u)

The definition is kept and computed otherwise: the edge perceptron's first layer is linear in its inputs, so it is one
projection per sender and one per receiver; its second layer is applied after the sum over the senders, together with
the node perceptron's first. What stays per pair is an addition, a ReLU and a sum, and from the second round on a
16 x 16 product (pairs.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from reward_models.models.base import ModelConfig, RewardModel
from reward_models.models.branches import Branch, Objects, OneBranch, RoundsConfig, TwoBranches, objects_of
from reward_models.models.kernels.pairs import Link, pair_sums
from reward_models.models.layers import linear, mlp
from spatialsim_env.arrangements.scene import N_FEATURES

HIDDEN = 16


def _check_width(width: int) -> None:
    if isinstance(width, bool) or not isinstance(width, int) or width < N_FEATURES:
        raise ValueError(f"width is {width!r}; accepted is an int from {N_FEATURES}")


@dataclass(frozen=True)
class WidthConfig(ModelConfig):
    """Settings of a network of one branch."""

    width: int = N_FEATURES  # of node, edge and global features; objects are padded with zeros to it

    def __post_init__(self) -> None:
        _check_width(self.width)


@dataclass(frozen=True)
class WidthRoundsConfig(RoundsConfig):
    """Settings of a network of two branches."""

    width: int = N_FEATURES  # of node, edge and global features (the paper's text says 16); objects are padded to it

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_width(self.width)


@dataclass
class Graph(Objects):
    """State of the graphs of a batch between two rounds; where another scene is known, ``total`` holds its u too."""

    links: tuple[Link, ...] = ()  # of each round so far, what the edge perceptron's first layer makes of the objects


class MessagePassing(Branch):
    """One round on one scene.

    Args:
        width: of node, edge and global features.
        known: width of what is known of another scene; it stands beside u wherever u is read.
    """

    def __init__(self, width: int = N_FEATURES, known: int = 0) -> None:
        super().__init__()
        self.width = width
        self.edge = mlp(4 * width + known, HIDDEN, width)
        self.node = mlp(3 * width + known, HIDDEN, width)
        self.total = mlp(2 * width + known, HIDDEN, width)

    def begin(self, scenes: Tensor) -> Graph:
        objects = objects_of(scenes)
        missing = (0, self.width - N_FEATURES)
        return Graph(F.pad(objects.nodes, missing).contiguous(), F.pad(objects.total, missing), objects.held)

    def summary(self, state: Graph) -> Tensor:
        return state.total[..., : self.width]

    def forward(self, state: Graph) -> Graph:
        first, second = cast(nn.Linear, self.edge[0]), cast(nn.Linear, self.edge[2])
        sender, receiver, edge, total = first.weight.split(self._parts(3, state), dim=-1)
        shared = linear(state.total, total, first.bias)
        if state.links:
            shared = shared + linear(second.bias.unsqueeze(-2), edge)
        else:  # e_ij = x_j - x_i
            sender, receiver = sender - edge, receiver + edge
        link = linear(state.nodes, receiver) + shared.unsqueeze(-3), linear(state.nodes, sender)
        links = (*state.links, link)
        received = pair_sums(links, edge @ second.weight, state.held)
        nodes = self._nodes(state, received)
        return Graph(nodes, self.total(torch.cat([nodes.sum(-3), state.total], dim=-1)), state.held, links)

    def _nodes(self, state: Graph, received: Tensor) -> Tensor:
        """node(x_j, sum_i e'_ij, u) from the sums of the hidden edges, (n, B, 16)."""
        second, first = cast(nn.Linear, self.edge[2]), cast(nn.Linear, self.node[0])
        node, incoming, total = first.weight.split(self._parts(2, state), dim=-1)
        n_received = (state.held.sum(-3) - 1).to(received.dtype)
        shared = linear(state.total, total, first.bias) + n_received * linear(second.bias.unsqueeze(-2), incoming)
        hidden = (linear(state.nodes, node) + linear(received, incoming @ second.weight)).add_(shared.unsqueeze(-3))
        return self.node[2](hidden.relu_()) * state.held

    def _parts(self, count: int, state: Graph) -> list[int]:
        """Widths of what a perceptron sees: ``count`` features of objects, then u and what is known."""
        return [*count * [self.width], state.total.shape[-1]]


class SingleMPGNN(OneBranch):
    """MPGNN for Identification; 2,208 weights."""

    kind = "mpgnn_single"
    hidden = (HIDDEN,)
    Config = WidthConfig

    def make_branch(self) -> Branch:
        return MessagePassing(getattr(self.config, "width", N_FEATURES))


class MPGNN(TwoBranches):
    """MPGNN for Discrimination; 4,366 weights."""

    kind = "mpgnn"
    hidden = (HIDDEN,)
    Config = WidthRoundsConfig

    def make_branch(self) -> Branch:
        return MessagePassing(getattr(self.config, "width", N_FEATURES))


class ConditionedMPGNN(RewardModel):
    """The reference's graph is processed knowing the target's; 4,686 weights, the number of the paper's table.

    In each round the target's graph goes first; its u then stands beside the reference's in all three perceptrons of
    the second branch, whose u alone is judged.
    """

    kind = "conditioned_mpgnn"
    two_inputs = True
    stacks = True
    Config = WidthRoundsConfig

    def __init__(self, config: WidthRoundsConfig) -> None:
        super().__init__(config)
        self.rounds = config.rounds
        self.first, self.second = MessagePassing(config.width), MessagePassing(config.width, known=config.width)
        self.head = mlp(config.width, HIDDEN, 2)

    def forward(self, target: Tensor, reference: Tensor | None = None) -> Tensor:
        assert reference is not None
        known, state = self.first.begin(target), self.second.begin(reference)
        logits = []
        for _ in range(self.rounds):
            known = self.first(known)
            total = torch.cat([self.second.summary(state), self.first.summary(known)], dim=-1)
            state = self.second(replace(state, total=total))
            logits.append(self.head(self.second.summary(state)))
        return torch.stack(logits, dim=-3)
