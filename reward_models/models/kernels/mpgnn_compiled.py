"""Message passing as a loop over rows; what is defined in mpgnn.py, for use and not for training."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray
from torch import nn

from reward_models.models.kernels.compiled import BIAS, FLAT, Layer, Scorer, flat, holds, linear
from reward_models.models.kernels.lanes import LANES, add, add_matrix, add_product, load, relu, store, zeros
from reward_models.models.mpgnn import MPGNN, SingleMPGNN
from spatialsim_env.arrangements.scene import N_FEATURES

_compiled = njit(cache=True, error_model="numpy")


class MessageLayers(NamedTuple):
    """Layers of a round and of the head; where a linear layer follows another one, their product."""

    receiver_1: Any  # of the first round
    sender_1: Any
    receiver: Any
    sender: Any
    mix: Any
    shared: Any
    node: Any
    node_total: Any
    incoming: Any
    node_2: Any
    sum: Any
    total: Any
    total_2: Any
    head: Any


AT = MessageLayers(*range(0, len(MessageLayers._fields) * FLAT, FLAT))  # where they begin in one flat array


class CompiledGraph(NamedTuple):
    """State of one scene: rows of 16 numbers, flat, and room for what a round computes."""

    nodes: Any
    total: Any
    others: Any  # (1,), to how many objects each is connected
    received: Any
    sent: Any
    edges: Any
    row: Any


def scorer(model: MPGNN | SingleMPGNN) -> Scorer:
    """The score of the last round with the present weights, of features at most 16 wide."""
    branches = list(model.branches) if isinstance(model, MPGNN) else [model.branch]
    rounds = model.rounds if isinstance(model, MPGNN) else 1
    head = model.head
    first, last = cast(nn.Linear, head[0]), cast(nn.Linear, head[2])
    parts = first.weight.split([cast(int, branch.width) for branch in branches], dim=1)
    weights = [flat(layers_of(branch, (part, None))) for branch, part in zip(branches, parts, strict=True)]
    bias = first.bias.detach().double().numpy()
    judge = flat([(last.weight.diff(dim=0), last.bias.diff())])

    def score(*scenes: NDArray[np.float64]) -> NDArray[np.float64]:
        hidden = np.tile(bias, len(scenes[0]))
        for batch, layers in zip(scenes, weights, strict=True):
            _add_branch(batch, layers, rounds, hidden)
        return _judged(hidden, judge)

    return score


def layers_of(branch: nn.Module, head: Layer) -> MessageLayers:
    """The layers of a branch, whose part of the head's first layer is ``head``."""
    (edge, edge_2), (node, node_2), (total, total_2) = (
        (cast(nn.Linear, mlp[0]), cast(nn.Linear, mlp[2]))
        for mlp in (cast(nn.Sequential, getattr(branch, name)) for name in ("edge", "node", "total"))
    )
    width = cast(int, branch.width)
    sender, receiver, between, shared = edge.weight.split(width, dim=1)
    of_node, incoming, of_total = node.weight.split(width, dim=1)
    of_sum, of_last = total.weight.split(width, dim=1)
    return MessageLayers(
        receiver_1=(receiver + between, None),  # e_ij = x_j - x_i in the first round
        sender_1=(sender - between, None),
        receiver=(receiver, between @ edge_2.bias),
        sender=(sender, None),
        mix=(between @ edge_2.weight, None),
        shared=(shared, edge.bias),
        node=(of_node, node.bias),
        node_total=(of_total, None),
        incoming=(incoming @ edge_2.weight, incoming @ edge_2.bias),  # the bias for each edge that comes in
        node_2=(node_2.weight, node_2.bias),
        sum=(of_sum, total.bias),
        total=(of_last, None),
        total_2=(total_2.weight, total_2.bias),
        head=head,
    )


@_compiled
def _add_branch(scenes, layers, rounds, hidden):  # type: ignore[no-untyped-def]
    """To the hidden layer of the head (B 16,), add what a branch has to say of its scenes."""
    size, n, _ = scenes.shape
    nodes, received, sent = np.empty(n * LANES), np.empty(n * LANES), np.empty(n * LANES)
    graph = CompiledGraph(nodes, np.empty(LANES), np.empty(1), received, sent, np.empty(n * n * LANES), np.empty(LANES))
    for b in range(size):
        count = _begin(scenes[b], graph)
        for k in range(rounds):
            _project(k, count, layers, graph)
            store(graph.row, 0, _update_nodes(k, count, layers, graph))
            before = add_matrix(linear(layers, AT.sum, graph.row, 0), layers, AT.total, graph.total, 0)
            store(graph.row, 0, relu(before))
            store(graph.total, 0, linear(layers, AT.total_2, graph.row, 0))
        store(hidden, b * LANES, add_matrix(load(hidden, b * LANES), layers, AT.head, graph.total, 0))


@_compiled
def _begin(scene, graph):  # type: ignore[no-untyped-def]
    """Fill nodes and total with a scene's objects, side by side, and their mean; returns their number."""
    nodes, total = graph.nodes, graph.total
    nodes[:] = 0
    total[:] = 0
    count = 0
    for i in range(scene.shape[0]):
        if holds(scene, i):
            for k in range(N_FEATURES):
                nodes[count * LANES + k] = scene[i, k]
                total[k] += scene[i, k]
            count += 1
    total /= count
    graph.others[0] = count - 1
    return count


@_compiled
def _project(k, count, layers, graph):  # type: ignore[no-untyped-def]
    """Fill what each object receives and sends in round k: what the edges' first layer makes of it."""
    nodes, received, sent = graph.nodes, graph.received, graph.sent
    receiver, sender = (AT.receiver, AT.sender) if k else (AT.receiver_1, AT.sender_1)
    shared = add(linear(layers, AT.shared, graph.total, 0), load(layers, receiver + BIAS))
    for p in range(count):
        at = p * LANES
        store(received, at, add_matrix(shared, layers, receiver, nodes, at))
        store(sent, at, add_matrix(zeros(layers), layers, sender, nodes, at))


@_compiled
def _update_nodes(k, count, layers, graph):  # type: ignore[no-untyped-def]
    """Replace the nodes by those of round k; returns their sum."""
    nodes, row = graph.nodes, graph.row
    shared = add_matrix(load(layers, AT.node + BIAS), layers, AT.node_total, graph.total, 0)
    shared = add_product(shared, load(layers, AT.incoming + BIAS), graph.others, 0)
    total = zeros(layers)
    for p in range(count):
        store(row, 0, _incoming(k, p, count, layers, graph))
        before = add_matrix(shared, layers, AT.node, nodes, p * LANES)
        store(row, 0, relu(add_matrix(before, layers, AT.incoming, row, 0)))
        node = linear(layers, AT.node_2, row, 0)
        store(nodes, p * LANES, node)
        total = add(total, node)
    return total


@_compiled
def _incoming(k, p, count, layers, graph):  # type: ignore[no-untyped-def]
    """Fill the hidden edges to object p in round k; returns their sum."""
    received, sent, edges = graph.received, graph.sent, graph.edges
    total = zeros(layers)
    for q in range(count):
        if q != p:
            at = (p * count + q) * LANES
            before = add(load(received, p * LANES), load(sent, q * LANES))
            if k:
                before = add_matrix(before, layers, AT.mix, edges, at)
            hidden = relu(before)
            store(edges, at, hidden)
            total = add(total, hidden)
    return total


@_compiled
def _judged(hidden, judge):  # type: ignore[no-untyped-def]
    """Scores (B,) from the head's hidden layer, before its ReLU."""
    size = len(hidden) // LANES
    scores, row = np.empty(size), np.empty(LANES)
    for b in range(size):
        store(row, 0, relu(load(hidden, b * LANES)))
        store(row, 0, linear(judge, 0, row, 0))
        scores[b] = row[0]
    return scores
