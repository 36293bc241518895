"""Which object is which, by appearance: the nearest partners, the exact assignment, and objects that look alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from spatialsim_env.arrangements.scene import COLOR, NOISE, SHAPE

OK, COUNTS_DIFFER, SHAPES_DIFFER, ASSIGN, SEARCH = range(5)  # status of a pair; the last two ask for more work

SHAPE_COST = 1e6  # cost of matching two objects of different shape
INTERCHANGEABLE = 5 * NOISE.color  # objects of one shape whose colours differ by no more per channel
MAX_ENUMERATED = 5040  # 7!, matchings of interchangeable objects that are all tried

_S, _S_END, _C, _C_END = SHAPE.start, SHAPE.stop, COLOR.start, COLOR.stop
_NOISE_COLOR = NOISE.color
_compiled = njit(cache=True, error_model="numpy")


def assign(a: NDArray[Any], g: NDArray[Any]) -> tuple[NDArray[np.int64], bool]:
    """Exact assignment by appearance of one pair, (n, 10) and (m, 10): row of ``g`` for each row of ``a``.

    It is -1 for padding and for objects that ``g`` has too few for; False where shapes cannot be paired.
    """
    rows, columns = (np.flatnonzero(x[:, SHAPE].sum(axis=-1) > 0.5) for x in (a, g))
    differ = (a[rows, None, SHAPE] != g[None, columns, SHAPE]).any(axis=-1)
    color = (a[rows, None, COLOR] - g[None, columns, COLOR]) / NOISE.color
    left, right = linear_sum_assignment(SHAPE_COST * differ + (color**2).sum(axis=-1))
    matching = np.full(len(a), -1)
    matching[rows[left]] = columns[right]
    return matching, not differ[left, right].any()


@_compiled
def holds(scene: Any, row: int) -> bool:
    """Whether a row is an object and not padding."""
    total = 0.0
    for k in range(_S, _S_END):
        total += scene[row, k]
    return total > 0.5


@_compiled
def match(a: Any, g: Any, matching: Any) -> int:
    """Nearest partner by appearance for each object of one pair; the status says whether that is a bijection."""
    n = a.shape[0]
    taken = np.zeros(n, np.bool_)
    count_a, count_g, status = 0, 0, OK
    for i in range(n):
        count_a += holds(a, i)
        count_g += holds(g, i)
    if count_a != count_g or count_a == 0:
        return COUNTS_DIFFER
    for i in range(n):
        matching[i] = -1
        if not holds(a, i):
            continue
        partner, differs = _nearest(a[i], g)
        if partner < 0 or taken[partner]:
            return ASSIGN
        matching[i] = partner
        taken[partner] = True
        if differs:
            status = SHAPES_DIFFER
    return status


@_compiled
def _nearest(thing: Any, g: Any) -> Any:
    """The object of a scene that looks most like a given one, -1 if no cost is a number; whether shapes differ."""
    partner, least, least_differs = -1, np.inf, False
    for j in range(len(g)):
        if not holds(g, j):
            continue
        differs, cost = False, 0.0
        for k in range(_S, _S_END):
            differs = differs or thing[k] != g[j, k]
        for k in range(_C, _C_END):
            cost += ((thing[k] - g[j, k]) / _NOISE_COLOR) ** 2
        cost += SHAPE_COST * differs
        if cost < least:
            partner, least, least_differs = j, cost, differs
    return partner, least_differs


@_compiled
def classes_of(g: Any, classes: Any) -> int:
    """Label the interchangeable objects of one scene (connected components); returns the size of the largest class."""
    n = g.shape[0]
    largest = 1
    for j in range(n):
        classes[j] = j
    for j in range(n):
        if not holds(g, j):
            continue
        for k in range(j):
            if classes[k] != classes[j] and _alike(g[j], g[k]):
                merged = classes[k]
                size = 0
                for m in range(n):
                    if classes[m] == merged:
                        classes[m] = classes[j]
                    size += classes[m] == classes[j]
                largest = max(largest, size)
    return largest


@_compiled
def _alike(one: Any, other: Any) -> bool:
    alike = True
    for k in range(_S, _S_END):
        alike = alike and one[k] == other[k]
    for k in range(_C, _C_END):
        alike = alike and abs(one[k] - other[k]) <= INTERCHANGEABLE
    return alike


@_compiled
def count_permuted(matching: Any, classes: Any) -> int:
    """Number of matchings that permute interchangeable objects only, at most MAX_ENUMERATED + 1."""
    total = 1
    for label in range(len(classes)):
        size = 0
        for i in range(len(matching)):
            if matching[i] >= 0 and classes[matching[i]] == label:
                size += 1
                total = min(total * size, MAX_ENUMERATED + 1)  # 21! does not fit into 64 bits
    return total


@_compiled
def permute(index: int, base: Any, classes: Any, trial: Any, rows: Any, partners: Any) -> None:
    """Write the matching of this index, 0 the base itself; ``rows`` and ``partners`` are room for one class.

    The index in mixed radix picks, object by object, one of the partners of its class that are left.
    """
    n = len(base)
    for label in range(n):
        size = 0
        for i in range(n):
            if base[i] >= 0 and classes[base[i]] == label:
                rows[size], partners[size] = i, base[i]
                size += 1
        for k in range(size):
            pick = index % (size - k)
            index //= size - k
            trial[rows[k]] = partners[pick]
            for m in range(pick, size - k - 1):
                partners[m] = partners[m + 1]
