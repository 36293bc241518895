"""The part of message passing that is done for every pair of objects: sums over the senders of hidden edges.

    h_ij = relu(received_j + sent_i)                      first round
    h_ij = relu(received_j + sent_i + mix h_ij)           each later round, h_ij of the round before
    out_j = sum_{i != j} h_ij

``received`` and ``sent`` are projections of the objects, 16 wide; what the first layer of an edge perceptron makes of
its inputs is a sum of the two, and its second layer is applied to ``out`` (see mpgnn.py). ``plain`` is the definition.
On the CPU, with one round or two, a compiled kernel gives the same: it skips padding, keeps nothing per pair and
computes hidden edges again where their gradient is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from reward_models.models.kernels.lanes import LANES, add, add_product, load, store, where_positive, zeros
from reward_models.models.layers import linear

Link = tuple[Tensor, Tensor]  # received, sent: (n, B, 16) each

MOST_ROUNDS = 2  # that the kernel knows


def pair_sums(links: Sequence[Link], mix: Tensor | None, held: Tensor) -> Tensor:
    """Sums of the hidden edges of the last round, by the kernel where it applies.

    Shapes are those of one network; with a dimension in front of all, the sums are those of several.

    Args:
        links: the projections of each round so far, (n, B, h) each.
        mix: (h, h), what the hidden edges of a round give to those of the next; not used with one round.
        held: (n, B, 1) of bool, where an object is.

    Returns:
        (n, B, h); zero at padding.
    """
    first = links[0][0]
    if (
        first.device.type != "cpu"
        or first.dtype not in (torch.float32, torch.float64)
        or first.shape[-1] != LANES
        or len(links) > MOST_ROUNDS
    ):
        return plain(links, mix, held)
    inputs = [*(x for link in links for x in link), held]
    kernel: type[torch.autograd.Function] = _OneRound
    if len(links) > 1:
        assert mix is not None
        inputs, kernel = [*inputs, mix], _TwoRounds
    return kernel.apply(*inputs) if first.dim() == 4 else kernel.apply(*(x[None] for x in inputs))[0]


def plain(links: Sequence[Link], mix: Tensor | None, held: Tensor) -> Tensor:
    """The definition, by broadcasting; (receiver, sender, B, h) numbers a round."""
    hidden = None
    for received, sent in links:
        sent = sent.masked_fill(~held, -torch.inf)  # the ReLU makes it nothing
        before = received.unsqueeze(-3) + sent.unsqueeze(-4)
        if hidden is not None:
            assert mix is not None
            before = before + linear(hidden, mix)
        hidden = before.relu()
    assert hidden is not None
    return (hidden.sum(-3) - hidden.diagonal(dim1=-4, dim2=-3).movedim(-1, -3)) * held


class _OneRound(torch.autograd.Function):
    """Of S networks at once: (S, n, B, 16) each, and (S, n, B, 1)."""

    @staticmethod
    def forward(ctx: Any, received: Tensor, sent: Tensor, held: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(received, sent, held)
        out = torch.empty_like(received, memory_format=torch.contiguous_format)
        _one_round(*_arrays(received, sent, held, out))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        received, sent, held = ctx.saved_tensors
        out = [torch.empty_like(received, memory_format=torch.contiguous_format) for _ in range(2)]
        _one_round_back(*_arrays(received, sent, held, gradient, *out))
        return *out, None


class _TwoRounds(torch.autograd.Function):
    """Of S networks at once: (S, n, B, 16) each, (S, n, B, 1) and (S, 16, 16)."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, received: Tensor, sent: Tensor, received_2: Tensor, sent_2: Tensor, held: Tensor, mix: Tensor
    ) -> Tensor:
        ctx.save_for_backward(received, sent, received_2, sent_2, held, mix)
        out = torch.empty_like(received, memory_format=torch.contiguous_format)
        _two_rounds(*_arrays(received, sent, received_2, sent_2, mix.mT, held, out))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        *links, held, mix = ctx.saved_tensors
        out = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in links] + [mix.new_zeros(mix.shape)]
        _two_rounds_back(*_arrays(*links, mix.mT, mix, held, gradient, *out))
        return *out[:-1], None, out[-1]


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


@njit(cache=True, error_model="numpy")
def _places(held, s, b, places):  # type: ignore[no-untyped-def]
    """Where the rows of scene b of network s lie in the flat arrays, objects first; returns how many objects it has."""
    _, n, size, _ = held.shape
    count, end = 0, n
    for i in range(n):
        place = ((s * n + i) * size + b) * LANES
        if held[s, i, b, 0]:
            places[count] = place
            count += 1
        else:
            end -= 1
            places[end] = place
    return count


@njit(cache=True, error_model="numpy")
def _clear(places, count, out):  # type: ignore[no-untyped-def]
    """Zeros where padding is."""
    for p in range(count, len(places)):
        store(out, places[p], zeros(out))


@njit(cache=True, error_model="numpy")
def _gather(flat, places, count, out):  # type: ignore[no-untyped-def]
    """The objects of a scene side by side; apart, they would share a few lines of the processor's cache."""
    for p in range(count):
        store(out, p * LANES, load(flat, places[p]))


@njit(cache=True, error_model="numpy")
def _scatter(values, places, count, out):  # type: ignore[no-untyped-def]
    for p in range(count):
        store(out, places[p], load(values, p * LANES))


@njit(cache=True, error_model="numpy")
def add_matrix(total, matrix, start, vector, at):  # type: ignore[no-untyped-def]
    """total plus the rows of a 16 x 16 matrix, each times its entry of the vector; two chains, so that they overlap."""
    other = zeros(matrix)
    for k in range(0, LANES, 2):
        total = add_product(total, load(matrix, start + k * LANES), vector, at + k)
        other = add_product(other, load(matrix, start + (k + 1) * LANES), vector, at + k + 1)
    return add(total, other)


@njit(cache=True, error_model="numpy")
def _add_products(total, start, rows, factors, count):  # type: ignore[no-untyped-def]
    """To a 16 x 16 matrix, the outer products of factors and rows; four of its rows at a time stay in registers."""
    for k in range(0, LANES, 4):
        at = start + k * LANES
        first, second = load(total, at), load(total, at + LANES)
        third, fourth = load(total, at + 2 * LANES), load(total, at + 3 * LANES)
        for q in range(count):
            row, factor = load(rows, q * LANES), q * LANES + k
            first = add_product(first, row, factors, factor)
            second = add_product(second, row, factors, factor + 1)
            third = add_product(third, row, factors, factor + 2)
            fourth = add_product(fourth, row, factors, factor + 3)
        store(total, at, first)
        store(total, at + LANES, second)
        store(total, at + 2 * LANES, third)
        store(total, at + 3 * LANES, fourth)


@njit(cache=True, error_model="numpy")
def _one_round(received, sent, held, out):  # type: ignore[no-untyped-def]
    networks, n, size, _ = received.shape
    received, sent, out = received.reshape(-1), sent.reshape(-1), out.reshape(-1)
    places = np.empty(n, np.intp)
    senders = np.empty(n * LANES, sent.dtype)
    for s in range(networks):
        for b in range(size):
            count = _places(held, s, b, places)
            _gather(sent, places, count, senders)
            for p in range(count):
                receiver = load(received, places[p])
                total = zeros(sent)
                for q in range(count):
                    if q != p:
                        before = add(receiver, load(senders, q * LANES))
                        total = add(total, where_positive(before, before))
                store(out, places[p], total)
            _clear(places, count, out)


@njit(cache=True, error_model="numpy")
def _one_round_back(received, sent, held, gradient, d_received, d_sent):  # type: ignore[no-untyped-def]
    networks, n, size, _ = received.shape
    received, sent, gradient = received.reshape(-1), sent.reshape(-1), gradient.reshape(-1)
    d_received, d_sent = d_received.reshape(-1), d_sent.reshape(-1)
    places = np.empty(n, np.intp)
    senders, d_senders = np.empty(n * LANES, sent.dtype), np.empty(n * LANES, sent.dtype)
    for s in range(networks):
        for b in range(size):
            count = _places(held, s, b, places)
            _gather(sent, places, count, senders)
            d_senders[:] = 0
            for p in range(count):
                receiver, d_out = load(received, places[p]), load(gradient, places[p])
                total = zeros(sent)
                for q in range(count):
                    if q != p:
                        at = q * LANES
                        d_before = where_positive(add(receiver, load(senders, at)), d_out)
                        total = add(total, d_before)
                        store(d_senders, at, add(load(d_senders, at), d_before))
                store(d_received, places[p], total)
            _scatter(d_senders, places, count, d_sent)
            _clear(places, count, d_received)
            _clear(places, count, d_sent)


@njit(cache=True, error_model="numpy")
def _two_rounds(received, sent, received_2, sent_2, columns, held, out):  # type: ignore[no-untyped-def]
    """columns: mix, transposed."""
    networks, n, size, _ = received.shape
    received, sent, out = received.reshape(-1), sent.reshape(-1), out.reshape(-1)
    received_2, sent_2, columns = received_2.reshape(-1), sent_2.reshape(-1), columns.reshape(-1)
    places = np.empty(n, np.intp)
    senders, senders_2 = np.empty(n * LANES, sent.dtype), np.empty(n * LANES, sent.dtype)
    hidden = np.empty(LANES, sent.dtype)
    for s in range(networks):
        matrix = s * LANES * LANES
        for b in range(size):
            count = _places(held, s, b, places)
            _gather(sent, places, count, senders)
            _gather(sent_2, places, count, senders_2)
            for p in range(count):
                receiver, receiver_2 = load(received, places[p]), load(received_2, places[p])
                total = zeros(sent)
                for q in range(count):
                    if q != p:
                        before = add(receiver, load(senders, q * LANES))
                        store(hidden, 0, where_positive(before, before))
                        before = add_matrix(add(receiver_2, load(senders_2, q * LANES)), columns, matrix, hidden, 0)
                        total = add(total, where_positive(before, before))
                store(out, places[p], total)
            _clear(places, count, out)


@njit(cache=True, error_model="numpy")
def _two_rounds_back(  # type: ignore[no-untyped-def]
    received, sent, received_2, sent_2, columns, mix, held, gradient, d_received, d_sent, d_received_2, d_sent_2, d_mix
):
    networks, n, size, _ = received.shape
    received, sent, gradient = received.reshape(-1), sent.reshape(-1), gradient.reshape(-1)
    received_2, sent_2, columns, mix = received_2.reshape(-1), sent_2.reshape(-1), columns.reshape(-1), mix.reshape(-1)
    d_received, d_sent, d_mix = d_received.reshape(-1), d_sent.reshape(-1), d_mix.reshape(-1)
    d_received_2, d_sent_2 = d_received_2.reshape(-1), d_sent_2.reshape(-1)
    places = np.empty(n, np.intp)
    senders, senders_2 = np.empty(n * LANES, sent.dtype), np.empty(n * LANES, sent.dtype)
    d_senders, d_senders_2 = np.empty(n * LANES, sent.dtype), np.empty(n * LANES, sent.dtype)
    edges, d_edges = np.zeros(n * LANES, sent.dtype), np.zeros(n * LANES, sent.dtype)  # of one receiver
    for s in range(networks):
        matrix = s * LANES * LANES
        for b in range(size):
            count = _places(held, s, b, places)
            _gather(sent, places, count, senders)
            _gather(sent_2, places, count, senders_2)
            d_senders[:] = 0
            d_senders_2[:] = 0
            for p in range(count):
                receiver, receiver_2 = load(received, places[p]), load(received_2, places[p])
                d_out = load(gradient, places[p])
                total, total_2 = zeros(sent), zeros(sent)
                for q in range(count):
                    if q != p:
                        at = q * LANES
                        first = add(receiver, load(senders, at))
                        store(edges, at, where_positive(first, first))
                        second = add_matrix(add(receiver_2, load(senders_2, at)), columns, matrix, edges, at)
                        d_second = where_positive(second, d_out)
                        store(d_edges, at, d_second)
                        total_2 = add(total_2, d_second)
                        store(d_senders_2, at, add(load(d_senders_2, at), d_second))
                        d_first = where_positive(first, add_matrix(zeros(mix), mix, matrix, d_edges, at))
                        total = add(total, d_first)
                        store(d_senders, at, add(load(d_senders, at), d_first))
                store(d_edges, p * LANES, zeros(d_edges))
                _add_products(d_mix, matrix, edges, d_edges, count)
                store(d_received, places[p], total)
                store(d_received_2, places[p], total_2)
            _scatter(d_senders, places, count, d_sent)
            _scatter(d_senders_2, places, count, d_sent_2)
            for out in (d_received, d_sent, d_received_2, d_sent_2):
                _clear(places, count, out)
