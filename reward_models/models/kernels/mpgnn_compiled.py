"""Message passing as a loop over rows; what is defined in mpgnn.py, for use and not for training."""

from __future__ import annotations

from typing import cast

import numpy as np
from numba import njit
from numpy.typing import NDArray
from torch import nn

from reward_models.models.kernels.compiled import BIAS, FLAT, Layer, Scorer, flat, holds
from reward_models.models.kernels.lanes import LANES, add, add_matrix, add_product, load, store, where_positive, zeros
from reward_models.models.mpgnn import MPGNN, SingleMPGNN
from spatialsim_env.arrangements.scene import N_FEATURES

(_RECEIVER_1, _SENDER_1, _RECEIVER, _SENDER, _MIX, _SHARED, _NODE, _NODE_TOTAL, _INCOMING, _NODE_2, _SUM, _TOTAL,
 _TOTAL_2, _HEAD) = (place * FLAT for place in range(14))  # where the layers of ``layers_of`` begin  # fmt: skip
_compiled = njit(cache=True, error_model="numpy")


def scorer(model: MPGNN | SingleMPGNN) -> Scorer:
    """The score of the last round with the present weights, of features at most 16 wide."""
    branches = list(model.branches) if isinstance(model, MPGNN) else [model.branch]
    rounds = model.rounds if isinstance(model, MPGNN) else 1
    head = model.head
    first, last = cast(nn.Linear, head[0]), cast(nn.Linear, head[2])
    parts = first.weight.split([cast(int, branch.width) for branch in branches], dim=1)
    weights = [flat([*layers_of(branch), (part, None)]) for branch, part in zip(branches, parts, strict=True)]
    bias = first.bias.detach().double().numpy()
    judge = flat([(last.weight.diff(dim=0), last.bias.diff())])

    def score(*scenes: NDArray[np.float64]) -> NDArray[np.float64]:
        hidden = np.tile(bias, len(scenes[0]))
        for batch, layers in zip(scenes, weights, strict=True):
            _add_branch(batch, layers, rounds, hidden)
        return _judged(hidden, judge)

    return score


def layers_of(branch: nn.Module) -> list[Layer]:
    """What a round applies; where a linear layer follows another one, their product."""
    (edge, edge_2), (node, node_2), (total, total_2) = (
        (cast(nn.Linear, mlp[0]), cast(nn.Linear, mlp[2]))
        for mlp in (cast(nn.Sequential, getattr(branch, name)) for name in ("edge", "node", "total"))
    )
    width = cast(int, branch.width)
    sender, receiver, between, shared = edge.weight.split(width, dim=1)
    of_node, incoming, of_total = node.weight.split(width, dim=1)
    of_sum, of_last = total.weight.split(width, dim=1)
    return [
        (receiver + between, None),  # e_ij = x_j - x_i in the first round
        (sender - between, None),
        (receiver, between @ edge_2.bias),
        (sender, None),
        (between @ edge_2.weight, None),
        (shared, edge.bias),
        (of_node, node.bias),
        (of_total, None),
        (incoming @ edge_2.weight, incoming @ edge_2.bias),  # the bias for each edge that comes in
        (node_2.weight, node_2.bias),
        (of_sum, total.bias),
        (of_last, None),
        (total_2.weight, total_2.bias),
    ]


@_compiled
def _objects(scene, nodes, total):  # type: ignore[no-untyped-def]
    """Objects of a scene side by side, their mean in ``total``; returns their number."""
    count = 0
    total[:] = 0
    for i in range(scene.shape[0]):
        if holds(scene, i):
            for k in range(N_FEATURES):
                nodes[count * LANES + k] = scene[i, k]
                total[k] += scene[i, k]
            count += 1
    total /= count
    return count


@_compiled
def _add_branch(scenes, layers, rounds, hidden):  # type: ignore[no-untyped-def]
    """To the hidden layer of the head (B 16,), what a branch has to say of its scenes."""
    size, n, _ = scenes.shape
    nodes, total = np.zeros(n * LANES), np.zeros(LANES)
    received, sent, edges = np.empty(n * LANES), np.empty(n * LANES), np.empty(n * n * LANES)
    row, senders = np.empty(LANES), np.empty(1)
    for b in range(size):
        nodes[:] = 0
        count = _objects(scenes[b], nodes, total)
        senders[0] = count - 1
        for k in range(rounds):
            shared = add_matrix(load(layers, _SHARED + BIAS), layers, _SHARED, total, 0)
            receiver, sender = (_RECEIVER, _SENDER) if k else (_RECEIVER_1, _SENDER_1)
            shared = add(shared, load(layers, receiver + BIAS))
            for p in range(count):
                at = p * LANES
                store(received, at, add_matrix(shared, layers, receiver, nodes, at))
                store(sent, at, add_matrix(zeros(layers), layers, sender, nodes, at))
            shared = add_matrix(load(layers, _NODE + BIAS), layers, _NODE_TOTAL, total, 0)
            shared = add_product(shared, load(layers, _INCOMING + BIAS), senders, 0)
            of_nodes = zeros(layers)
            for p in range(count):
                incoming = zeros(layers)
                for q in range(count):
                    if q != p:
                        at = (p * n + q) * LANES
                        before = add(load(received, p * LANES), load(sent, q * LANES))
                        if k:
                            before = add_matrix(before, layers, _MIX, edges, at)
                        after = where_positive(before, before)
                        store(edges, at, after)
                        incoming = add(incoming, after)
                store(row, 0, incoming)
                before = add_matrix(shared, layers, _NODE, nodes, p * LANES)
                before = add_matrix(before, layers, _INCOMING, row, 0)
                store(row, 0, where_positive(before, before))
                node = add_matrix(load(layers, _NODE_2 + BIAS), layers, _NODE_2, row, 0)
                store(nodes, p * LANES, node)
                of_nodes = add(of_nodes, node)
            store(row, 0, of_nodes)
            before = add_matrix(load(layers, _SUM + BIAS), layers, _SUM, row, 0)
            before = add_matrix(before, layers, _TOTAL, total, 0)
            store(row, 0, where_positive(before, before))
            store(total, 0, add_matrix(load(layers, _TOTAL_2 + BIAS), layers, _TOTAL_2, row, 0))
        store(hidden, b * LANES, add_matrix(load(hidden, b * LANES), layers, _HEAD, total, 0))


@_compiled
def _judged(hidden, judge):  # type: ignore[no-untyped-def]
    """Scores (B,) from the head's hidden layer, before its ReLU."""
    size = len(hidden) // LANES
    scores, row = np.empty(size), np.empty(LANES)
    for b in range(size):
        before = load(hidden, b * LANES)
        store(row, 0, where_positive(before, before))
        store(row, 0, add_matrix(load(judge, BIAS), judge, 0, row, 0))
        scores[b] = row[0]
    return scores
