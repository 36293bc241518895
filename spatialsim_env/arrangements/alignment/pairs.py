"""Batches of pairs, one after the other: match, fit, and resolve which of the objects that look alike is which."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spatialsim_env.arrangements.alignment.matching import (
    MAX_ENUMERATED,
    OK,
    SEARCH,
    classes_of,
    count_permuted,
    match,
    permute,
)
from spatialsim_env.arrangements.alignment.plane import Rule, fit
from spatialsim_env.arrangements.scene import N_FEATURES

UNKNOWN, ASSIGNED, GIVEN = range(3)  # the matching: to be found; found up to objects that look alike; not to be changed
_compiled = njit(cache=True, error_model="numpy")


class Alignment(NamedTuple):
    """What is known about a batch of B pairs of scenes with up to n objects."""

    status: NDArray[np.int8]  # (B,) OK, COUNTS_DIFFER or SHAPES_DIFFER; the rest is defined where OK
    matching: NDArray[np.int64]  # (B, n) row of the desired scene for each achieved row, -1 for padding
    interchangeable: NDArray[np.bool_]  # (B,) whether appearance leaves more than one matching
    scale: NDArray[np.float64]  # (B,) maps desired onto achieved
    angle: NDArray[np.float64]  # (B,) radians
    translation: NDArray[np.float64]  # (B, 2) of s R x + t, units
    residuals: NDArray[np.float64]  # (B, n, 3) position, orientation, size, in the frame of achieved
    distance: NDArray[np.float64]  # (B,) largest residual / tolerance that the criterion counts; inf where not OK

    @classmethod
    def empty(cls, size: int, n: int, matching: NDArray[np.int64] | None = None) -> Alignment:
        """Room for ``size`` pairs, all of them OK."""
        return cls(
            status=np.zeros(size, np.int8),
            matching=np.empty((size, n), np.int64) if matching is None else np.require(matching, np.int64, ["C", "W"]),
            interchangeable=np.zeros(size, np.bool_),
            scale=np.empty(size),
            angle=np.empty(size),
            translation=np.empty((size, 2)),
            residuals=np.empty((size, n, 3)),
            distance=np.empty(size),
        )

    def of(self, row: Any) -> Alignment:
        """The same of one pair, (1, ...); writing to it writes to this one."""
        return Alignment._make(array[row : row + 1] for array in self)


@_compiled
def align_pairs(a: Any, g: Any, known: int, rule: Any, out: Any) -> None:
    """Match, unless the matching is known, and fit each pair of a batch.

    Args:
        a, g: (B, n, 10).
        known: UNKNOWN, ASSIGNED or GIVEN.
        rule, out: fields of a ``Rule`` and of an ``Alignment``, which is written.
    """
    rule, out = Rule(*rule), Alignment(*out)
    scratch = np.empty((2, a.shape[1]))
    for b in range(a.shape[0]):
        if known == UNKNOWN:
            out.status[b] = match(a[b], g[b], out.matching[b])
        if out.status[b] != OK:
            out.scale[b], out.angle[b], out.translation[b] = np.nan, np.nan, np.nan
            out.residuals[b], out.distance[b] = np.inf, np.inf
            continue
        _keep(fit(a[b], g[b], out.matching[b], rule, out.residuals[b], scratch), out, b)
        if known != GIVEN:
            _resolve(a[b], g[b], rule, out, b, scratch)


@_compiled
def fit_distances(achieved: Any, desired: Any, matching: Any, rule: Any, distance: Any) -> None:
    """Fit each pair of a batch whose matching is known, and keep its distance only; arguments as above."""
    rule = Rule(*rule)
    n = achieved.shape[1]
    a, g = np.empty((n, N_FEATURES)), np.empty((n, N_FEATURES))
    residuals, scratch = np.empty((n, 3)), np.empty((2, n))
    for b in range(achieved.shape[0]):
        for i in range(n):
            for k in range(N_FEATURES):
                a[i, k], g[i, k] = achieved[b, i, k], desired[b, i, k]
        distance[b] = fit(a, g, matching[b], rule, residuals, scratch).distance


@_compiled
def _keep(found: Any, out: Any, b: int) -> None:
    out.scale[b], out.angle[b], out.distance[b] = found.scale, found.angle, found.distance
    out.translation[b, 0], out.translation[b, 1] = found.x, found.y


@_compiled
def _resolve(a: Any, g: Any, rule: Any, out: Any, b: int, scratch: Any) -> None:
    """Among the matchings of one pair that permute interchangeable objects only, keep the least distance."""
    n = a.shape[0]
    classes = np.empty(n, np.int64)
    if classes_of(g, classes) == 1:
        return
    out.interchangeable[b] = True
    total = count_permuted(out.matching[b], classes)
    if total > MAX_ENUMERATED:
        out.status[b] = SEARCH
        return
    base, trial = out.matching[b].copy(), out.matching[b].copy()
    rows, partners = np.empty(n, np.int64), np.empty(n, np.int64)
    for index in range(1, total):
        permute(index, base, classes, trial, rows, partners)
        tried = fit(a, g, trial, rule, out.residuals[b], scratch)
        if tried.distance < out.distance[b]:
            out.matching[b] = trial
            _keep(tried, out, b)
    fit(a, g, out.matching[b], rule, out.residuals[b], scratch)
