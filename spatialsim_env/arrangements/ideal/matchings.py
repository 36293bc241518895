"""Which matchings of two scenes their shapes and colours leave open, and how likely each is; compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from spatialsim_env.arrangements.scene import COLOR, NOISE, SHAPE

CUT = 60.0  # matchings less likely by appearance than the best, by more than exp(-CUT), are left out
MOST_MATCHINGS = 5040  # 7!, matchings of one pair that are summed
_MOST_VISITS = 20_000  # nodes of the search for matchings
_S, _S_END, _C, _C_END = SHAPE.start, SHAPE.stop, COLOR.start, COLOR.stop
_VAR_COLOR = NOISE.color**2
_compiled = njit(cache=True, error_model="numpy")


@_compiled
def appearance_of(t: Any, r: Any) -> Any:
    """Log density of the colours, up to a constant, if target i is reference j; -inf where shapes differ."""
    out = np.empty((len(t), len(r)))
    for i in range(len(t)):
        for j in range(len(r)):
            square = 0.0
            for k in range(_C, _C_END):
                square += (t[i, k] - r[j, k]) ** 2
            out[i, j] = -square / (2 * _VAR_COLOR)
            for k in range(_S, _S_END):
                if t[i, k] != r[j, k]:
                    out[i, j] = -np.inf
    return out


@_compiled
def matchings_of(appearance: Any) -> Any:
    """All matchings within CUT of the likeliest by appearance, and their number: 0 if there is none, -1 if too many.

    Args:
        appearance: (n, m), m >= n; every row is matched with a column of its own.
    """
    best = np.empty((1, len(appearance)), np.int64)
    found, top = _search(appearance, -np.inf, True, best)
    if found <= 0:
        return best, found
    out = np.empty((MOST_MATCHINGS, len(appearance)), np.int64)
    found, _ = _search(appearance, top - CUT, False, out)
    return (out, found) if found > 0 else (best, -1)


@_compiled
def _search(appearance: Any, threshold: Any, keep_best: Any, out: Any) -> Any:
    """Depth-first search of the matchings above a threshold, or of the likeliest; their number and the best value."""
    n, m = appearance.shape
    ahead = np.zeros(n + 1)  # the most that the rows from here on can add
    for i in range(n - 1, -1, -1):
        ahead[i] = ahead[i + 1] + appearance[i].max()
    taken, column = np.zeros(m, np.bool_), np.full(n, -1)
    order = np.empty((n, m), np.int64)
    for i in range(n):
        order[i] = np.argsort(-appearance[i])
    so_far = np.zeros(n + 1)
    rank = np.zeros(n, np.int64)
    found, visits, i = 0, 0, 0
    while i >= 0:
        if column[i] >= 0:
            taken[column[i]] = False
            column[i] = -1
        while rank[i] < m and taken[order[i, rank[i]]]:
            rank[i] += 1
        value = -np.inf
        if rank[i] < m:
            value = so_far[i] + appearance[i, order[i, rank[i]]]
        if not value + ahead[i + 1] > threshold:  # columns come in falling order: none of the rest can do better
            i -= 1
            if i >= 0:
                rank[i] += 1
            continue
        visits += 1
        if visits > _MOST_VISITS:
            return -1, threshold
        column[i] = order[i, rank[i]]
        taken[column[i]] = True
        so_far[i + 1] = value
        if i + 1 < n:
            i += 1
            rank[i] = 0
            continue
        if keep_best:
            out[0], threshold, found = column, value, 1
        elif found == len(out):
            return -1, threshold
        else:
            out[found] = column
            found += 1
        rank[i] += 1
    return found, threshold
