"""The part of message passing that is done for every pair of objects: sums over the senders of hidden edges.

Object j receives from object i. ``received`` and ``sent`` are projections of the objects, 16 wide; what the first
layer of an edge perceptron makes of its inputs is a sum of the two, and its second layer is applied to ``out`` (see
mpgnn.py). With one round or two, primes in the second, and [x > 0] for the derivative of the ReLU:

    a_ij = received_j + sent_i                    h_ij = relu(a_ij)
    b_ij = received'_j + sent'_i + mix h_ij       k_ij = relu(b_ij)
    out_j = sum_{i != j} k_ij                     of one round, of h_ij

    d b_ij = [b_ij > 0] d out_j                   d received'_j = sum_i d b_ij     d sent'_i = sum_j d b_ij
    d a_ij = [a_ij > 0] mix^T d b_ij              d received_j = sum_i d a_ij      d sent_i = sum_j d a_ij
                                                  d mix = sum_ij d b_ij h_ij^T
    d a_ij = [a_ij > 0] d out_j                   of one round

``plain`` is the definition, with any number of rounds. On the CPU, with one round or two, a compiled kernel gives the
same: it skips padding, keeps nothing per pair and computes hidden edges again where their gradient is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from reward_models.models.kernels.lanes import LANES, add, add_matrix, add_product, gate, load, relu, store, zeros
from reward_models.models.layers import linear

Link = tuple[Tensor, Tensor]  # received, sent: (n, B, 16) each

MOST_ROUNDS = 2  # that the kernel knows

_compiled = njit(cache=True, error_model="numpy")


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
    parts = [held, *(x for link in links for x in link)]
    if len(links) > 1:
        assert mix is not None
        parts.append(mix)
    return _PairSums.apply(*parts) if first.dim() == 4 else _PairSums.apply(*(x[None] for x in parts))[0]


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


class _PairSums(torch.autograd.Function):
    """Of S networks at once: held (S, n, B, 1), links (S, n, B, 16) each and, with two rounds, mix (S, 16, 16)."""

    @staticmethod
    def forward(ctx: Any, held: Tensor, *parts: Tensor) -> Tensor:
        ctx.save_for_backward(held, *parts)
        out = torch.empty_like(parts[0], memory_format=torch.contiguous_format)
        if len(parts) == 2:
            _one_round(*_arrays(*parts, held, out))
        else:
            *links, mix = parts
            _two_rounds(*_arrays(*links, mix.mT, held, out))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        held, *parts = ctx.saved_tensors
        out = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in parts]
        if len(parts) == 2:
            _one_round_back(*_arrays(*parts, held, gradient, *out))
        else:
            (*links, mix), (*d_links, d_mix) = parts, out
            matrices = Mix(*_arrays(mix, mix.mT))
            d_mix.zero_()
            _two_rounds_back(
                Links(*_arrays(*links)), matrices, *_arrays(held, gradient), Links(*_arrays(*d_links)), *_arrays(d_mix)
            )
        return None, *out


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


class Links(NamedTuple):
    """Projections of the objects in two rounds, or their gradients, (S, n, B, 16) each."""

    received: Any
    sent: Any
    received_2: Any
    sent_2: Any


class Mix(NamedTuple):
    """The matrices of the networks, (S, 16, 16) each, or of one: as they are, and transposed."""

    rows: Any
    columns: Any


class Senders(NamedTuple):
    """Messages that the objects of a scene send in both rounds, and their gradients: flat, one after the other."""

    sent: Any
    sent_2: Any
    d_sent: Any
    d_sent_2: Any


class Receiver(NamedTuple):
    """Messages that one object receives in both rounds, and their gradients."""

    received: Any
    received_2: Any
    d_out: Any


class Edges(NamedTuple):
    """The edges to one receiver: h and d b of each sender, flat; d b is 0 for the receiver itself."""

    hidden: Any
    gradient: Any


@_compiled
def _places(held, s, b, places):  # type: ignore[no-untyped-def]
    """Locate the rows of scene b of network s in a link, objects first, and count its objects."""
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


@_compiled
def _clear(places, count, out):  # type: ignore[no-untyped-def]
    """Zeros where padding is."""
    for p in range(count, len(places)):
        store(out, places[p], zeros(out))


@_compiled
def _gather(values, places, count, out):  # type: ignore[no-untyped-def]
    """The objects of a scene side by side; apart, they would share a few lines of the processor's cache."""
    for p in range(count):
        store(out, p * LANES, load(values, places[p]))


@_compiled
def _scatter(values, places, count, out):  # type: ignore[no-untyped-def]
    for p in range(count):
        store(out, places[p], load(values, p * LANES))


@_compiled
def _rows(n, like):  # type: ignore[no-untyped-def]
    """Room for n rows of 16 numbers."""
    return np.zeros(n * LANES, like.dtype)


@_compiled
def _increase(total, at, value):  # type: ignore[no-untyped-def]
    store(total, at, add(load(total, at), value))


@_compiled
def _one_round(received, sent, held, out):  # type: ignore[no-untyped-def]
    networks, n, size, _ = held.shape
    places, senders = np.empty(n, np.intp), _rows(n, out)
    for s in range(networks):
        for b in range(size):
            count = _places(held, s, b, places)
            _gather(sent, places, count, senders)
            for p in range(count):
                receiver, total = load(received, places[p]), zeros(out)
                for q in range(count):
                    if q != p:
                        before = add(receiver, load(senders, q * LANES))
                        total = add(total, relu(before))
                store(out, places[p], total)
            _clear(places, count, out)


@_compiled
def _one_round_back(received, sent, held, d_out, d_received, d_sent):  # type: ignore[no-untyped-def]
    networks, n, size, _ = held.shape
    places, senders, d_senders = np.empty(n, np.intp), _rows(n, d_out), _rows(n, d_out)
    for s in range(networks):
        for b in range(size):
            count = _places(held, s, b, places)
            _gather(sent, places, count, senders)
            d_senders[:] = 0
            for p in range(count):
                receiver, gradient = load(received, places[p]), load(d_out, places[p])
                total = zeros(d_out)
                for q in range(count):
                    if q != p:
                        d_before = gate(add(receiver, load(senders, q * LANES)), gradient)
                        total = add(total, d_before)
                        _increase(d_senders, q * LANES, d_before)
                store(d_received, places[p], total)
            _scatter(d_senders, places, count, d_sent)
            _clear(places, count, d_received)
            _clear(places, count, d_sent)


@_compiled
def _two_rounds(received, sent, received_2, sent_2, columns, held, out):  # type: ignore[no-untyped-def]
    """columns: mix, transposed."""
    networks, n, size, _ = held.shape
    places, senders, senders_2 = np.empty(n, np.intp), _rows(n, out), _rows(n, out)
    hidden = _rows(1, out)
    for s in range(networks):
        matrix = columns[s]
        for b in range(size):
            count = _places(held, s, b, places)
            _gather(sent, places, count, senders)
            _gather(sent_2, places, count, senders_2)
            for p in range(count):
                receiver, receiver_2 = load(received, places[p]), load(received_2, places[p])
                total = zeros(out)
                for q in range(count):
                    if q != p:
                        before = add(receiver, load(senders, q * LANES))
                        store(hidden, 0, relu(before))
                        before = add_matrix(add(receiver_2, load(senders_2, q * LANES)), matrix, 0, hidden, 0)
                        total = add(total, relu(before))
                store(out, places[p], total)
            _clear(places, count, out)


@_compiled
def _two_rounds_back(links, mix, held, d_out, gradients, d_mix):  # type: ignore[no-untyped-def]
    networks, n, size, _ = held.shape
    received, sent, received_2, sent_2 = links
    d_received, d_sent, d_received_2, d_sent_2 = gradients
    places = np.empty(n, np.intp)
    senders = Senders(_rows(n, d_out), _rows(n, d_out), _rows(n, d_out), _rows(n, d_out))
    edges = Edges(_rows(n, d_out), _rows(n, d_out))
    for s in range(networks):
        matrices, d_matrix = Mix(mix.rows[s], mix.columns[s]), d_mix[s]
        for b in range(size):
            count = _places(held, s, b, places)
            _gather(sent, places, count, senders.sent)
            _gather(sent_2, places, count, senders.sent_2)
            senders.d_sent[:] = 0
            senders.d_sent_2[:] = 0
            for p in range(count):
                at = places[p]
                receiver = Receiver(load(received, at), load(received_2, at), load(d_out, at))
                first, second = _edges_back(receiver, p, count, matrices, senders, edges)
                store(d_received, at, first)
                store(d_received_2, at, second)
                _add_products(d_matrix, edges, count)
            _scatter(senders.d_sent, places, count, d_sent)
            _scatter(senders.d_sent_2, places, count, d_sent_2)
            for out in gradients:
                _clear(places, count, out)


@_compiled
def _edges_back(receiver, p, count, mix, senders, edges):  # type: ignore[no-untyped-def]
    """Fill the edges to object p and add d a and d b to the gradients of their senders; returns their sums."""
    sum_a, sum_b = zeros(edges.hidden), zeros(edges.hidden)
    for q in range(count):
        if q != p:
            at = q * LANES
            a = add(receiver.received, load(senders.sent, at))
            store(edges.hidden, at, relu(a))
            b = add_matrix(add(receiver.received_2, load(senders.sent_2, at)), mix.columns, 0, edges.hidden, at)
            d_b = gate(b, receiver.d_out)
            store(edges.gradient, at, d_b)
            sum_b = add(sum_b, d_b)
            _increase(senders.d_sent_2, at, d_b)
            d_a = gate(a, add_matrix(zeros(mix.rows), mix.rows, 0, edges.gradient, at))
            sum_a = add(sum_a, d_a)
            _increase(senders.d_sent, at, d_a)
    store(edges.gradient, p * LANES, zeros(edges.gradient))
    return sum_a, sum_b


@_compiled
def _add_products(d_mix, edges, count):  # type: ignore[no-untyped-def]
    """To d mix, the outer products d b h^T of edges; four of its rows at a time stay in registers."""
    for k in range(0, LANES, 4):
        at = k * LANES
        first, second = load(d_mix, at), load(d_mix, at + LANES)
        third, fourth = load(d_mix, at + 2 * LANES), load(d_mix, at + 3 * LANES)
        for q in range(count):
            row, factor = load(edges.hidden, q * LANES), q * LANES + k
            first = add_product(first, row, edges.gradient, factor)
            second = add_product(second, row, edges.gradient, factor + 1)
            third = add_product(third, row, edges.gradient, factor + 2)
            fourth = add_product(fourth, row, edges.gradient, factor + 3)
        store(d_mix, at, first)
        store(d_mix, at + LANES, second)
        store(d_mix, at + 2 * LANES, third)
        store(d_mix, at + 3 * LANES, fourth)
