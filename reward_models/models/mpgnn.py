"""The paper's message-passing networks (section 3.2), of one and of two inputs.

A scene is a complete directed graph without self edges; node, edge and global features are 10 wide. One round, with
a two-layer perceptron each:

    e'_ij = edge(x_i, x_j, e_ij, u)         j receives from i; e_ij = x_j - x_i at first
    x'_j  = node(x_j, sum_i e'_ij, u)       u = mean_j x_j at first
    u'    = global(sum_j x'_j, u)

The definition is kept and computed otherwise: the edge perceptron's first layer is linear in its inputs, so it is one
projection per sender and one per receiver, added by broadcasting; its second layer is applied after the sum over the
senders. What stays per pair is an addition, a ReLU and a sum, and from the second round on a 16 x 16 product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from reward_models.models.base import RewardModel
from reward_models.models.branches import Branch, Objects, OneBranch, RoundsConfig, TwoBranches, objects_of
from reward_models.models.layers import mlp
from spatialsim_env.scene import N_FEATURES

WIDTH = N_FEATURES  # of node, edge and global features
HIDDEN = 16


@dataclass
class Graph(Objects):
    """State of the graphs of a batch between two rounds; where another scene is known, ``total`` holds its u too."""

    hidden: Tensor | None = None  # (receiver, sender, B, 16), edges before the second layer; None: still x_j - x_i


class MessagePassing(Branch):
    """One round on one scene.

    Args:
        known: width of what is known of another scene; it stands beside u wherever u is read.
    """

    width = WIDTH

    def __init__(self, known: int = 0) -> None:
        super().__init__()
        self.edge = mlp(4 * WIDTH + known, HIDDEN, WIDTH)
        self.node = mlp(3 * WIDTH + known, HIDDEN, WIDTH)
        self.total = mlp(2 * WIDTH + known, HIDDEN, WIDTH)

    def begin(self, scenes: Tensor) -> Graph:
        objects = objects_of(scenes)
        return Graph(objects.nodes, objects.total, objects.held)

    def summary(self, state: Graph) -> Tensor:
        return state.total[:, :WIDTH]

    def forward(self, state: Graph) -> Graph:
        hidden = self._hidden_edges(state)
        received = hidden.sum(1) - hidden.diagonal(dim1=0, dim2=1).movedim(-1, 0)
        n_received = (state.held.sum(0) - 1).to(hidden.dtype)
        second = cast(nn.Linear, self.edge[2])
        incoming = F.linear(received, second.weight) + n_received * second.bias
        shared = state.total.expand(*incoming.shape[:-1], -1)
        nodes = self.node(torch.cat([state.nodes, incoming, shared], dim=-1)) * state.held
        total = self.total(torch.cat([nodes.sum(0), state.total], dim=-1))
        return Graph(nodes, total, state.held, hidden)

    def _hidden_edges(self, state: Graph) -> Tensor:
        """The edge perceptron after its ReLU, (receiver, sender, B, 16); zero from padding, self edges included."""
        first, second = cast(nn.Linear, self.edge[0]), cast(nn.Linear, self.edge[2])
        sender, receiver, edge, total = first.weight.split([*3 * [WIDTH], state.total.shape[-1]], dim=1)
        shared = F.linear(state.total, total, first.bias)
        if state.hidden is None:
            sent = F.linear(state.nodes, sender - edge)
            received = F.linear(state.nodes, receiver + edge) + shared
        else:
            sent = F.linear(state.nodes, sender)
            received = F.linear(state.nodes, receiver) + (shared + edge @ second.bias)
        sent = sent.masked_fill(~state.held, -torch.inf)
        if state.hidden is None:
            pairs = received[:, None] + sent
        else:
            pairs = F.linear(state.hidden, edge @ second.weight).add_(received[:, None]).add_(sent)
        return pairs.relu_()


class SingleMPGNN(OneBranch):
    """MPGNN for Identification; 2,208 weights."""

    kind = "mpgnn_single"
    hidden = (HIDDEN,)

    def make_branch(self) -> Branch:
        return MessagePassing()


class MPGNN(TwoBranches):
    """MPGNN for Discrimination; 4,366 weights."""

    kind = "mpgnn"
    hidden = (HIDDEN,)

    def make_branch(self) -> Branch:
        return MessagePassing()


class ConditionedMPGNN(RewardModel):
    """The reference's graph is processed knowing the target's; 4,686 weights, the number of the paper's table.

    In each round the target's graph goes first; its u then stands beside the reference's in all three perceptrons of
    the second branch, whose u alone is judged.
    """

    kind = "conditioned_mpgnn"
    two_inputs = True
    Config = RoundsConfig

    def __init__(self, config: RoundsConfig) -> None:
        super().__init__(config)
        self.rounds = config.rounds
        self.first, self.second = MessagePassing(), MessagePassing(known=WIDTH)
        self.head = mlp(WIDTH, HIDDEN, 2)

    def forward(self, target: Tensor, reference: Tensor | None = None) -> Tensor:
        assert reference is not None
        known, state = self.first.begin(target), self.second.begin(reference)
        logits = []
        for _ in range(self.rounds):
            known = self.first(known)
            total = torch.cat([self.second.summary(state), self.first.summary(known)], dim=-1)
            state = self.second(replace(state, total=total))
            logits.append(self.head(self.second.summary(state)))
        return torch.stack(logits)
