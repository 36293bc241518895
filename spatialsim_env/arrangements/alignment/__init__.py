"""Which object is which, and the similarity that brings one scene onto another; batched, compiled.

For a pair of scenes (achieved A, desired G) of the same objects: *matching* assigns to each object of A its object in
G by appearance alone; *fitting* finds the proper similarity (scale s, angle theta, translation; never a reflection)
that maps G onto A; *residuals* are what is left, in A's frame, per object: position (units), orientation (radians)
and size (units). The *distance* of a pair is its largest residual in units of the tolerances; ``goals.py`` says what
follows from it.

The kernels treat one pair after the other, so the result for a pair does not depend on the batch around it, bit for
bit. Pairs whose nearest partners by appearance are not a bijection (rare) go through ``scipy.optimize``.

``matching.py`` tells objects apart, ``plane.py`` is the mathematics of similarities in the plane, ``pairs.py`` joins
both for batches, and ``search.py`` is for many objects that look alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.alignment.matching import (
    ASSIGN,
    COUNTS_DIFFER,
    INTERCHANGEABLE,
    MAX_ENUMERATED,
    OK,
    SEARCH,
    SHAPES_DIFFER,
    assign,
)
from spatialsim_env.arrangements.alignment.pairs import ASSIGNED, GIVEN, UNKNOWN, Alignment, align_pairs, fit_distances
from spatialsim_env.arrangements.alignment.plane import CRITERIA, ORIENTATIONS
from spatialsim_env.arrangements.alignment.search import search
from spatialsim_env.arrangements.scene import pad

__all__ = [
    "COUNTS_DIFFER",
    "CRITERIA",
    "INTERCHANGEABLE",
    "MAX_ENUMERATED",
    "OK",
    "ORIENTATIONS",
    "SHAPES_DIFFER",
    "Alignment",
    "align",
    "assign",
    "distances",
]


def align(
    achieved: NDArray[Any],
    desired: NDArray[Any],
    tolerances: tuple[float, float, float],
    criterion: str = "similarity",
    orientation: str = "number",
    matching: NDArray[np.int64] | None = None,
) -> Alignment:
    """Match and fit a batch of pairs.

    *Matching*: exact minimum of the sum of 1e6 [shapes differ] + sum over channels (difference / 0.01)^2. Objects of
    one shape whose colours differ by at most 0.05 per channel (and chains of such) are interchangeable: among the
    matchings that differ only there the one with the least distance counts. Up to 5,040 of them are all tried, which
    is exact for any seven objects; beyond, similarities hypothesised from pairs of objects are tried with the best
    assignment under each, and the result is an upper bound of the distance: such a pair may be missed, never
    claimed wrongly.

    *Fit*, criterion ``positions``: least squares over the positions (Umeyama 1991; in the plane one complex
    regression), residuals multiplied by max(1, s_size / s), s_size the geometric mean of the size ratios.
    ``similarity``: the maximum-likelihood similarity under the benchmark's noise, from positions (0.2 units in A's
    frame), orientations (0.0628 rad) and log sizes (0.02 / size), five Gauss-Newton steps in (log s, theta) from the
    evidence of sizes and orientations.

    Args:
        achieved, desired: (B, n, 10); the number of rows may differ.
        tolerances: position (units), orientation (rad), size (units).
        criterion: "positions" or "similarity".
        orientation: "number" compares angles modulo 2 pi, "visual" modulo the symmetry of the shape.
        matching: (B, n) a known matching, which is then neither computed nor searched.
    """
    n_max = max(achieved.shape[1], desired.shape[1])
    a, g = _contiguous(achieved, n_max), _contiguous(desired, n_max)
    rule = _rule(tolerances, criterion, orientation)
    out = Alignment.empty(len(a), n_max, matching)
    align_pairs(a, g, GIVEN if matching is not None else UNKNOWN, rule, tuple(out))
    if matching is not None:
        return out
    for row in np.flatnonzero(out.status == ASSIGN):
        out.matching[row], solved = assign(a[row], g[row])
        out.status[row] = OK if solved else SHAPES_DIFFER
        if solved:
            align_pairs(a[row : row + 1], g[row : row + 1], ASSIGNED, rule, tuple(out.of(row)))
    for row in np.flatnonzero(out.status == SEARCH):
        out.status[row] = OK
        search(a[row : row + 1], g[row : row + 1], rule, out.of(row))
    return out


def distances(
    achieved: NDArray[np.float32],
    desired: NDArray[np.float32],
    matching: NDArray[np.int64],
    tolerances: tuple[float, float, float],
    criterion: str = "similarity",
    orientation: str = "number",
) -> NDArray[np.float64]:
    """``align(..., matching=matching).distance`` alone, (B,), the same bits in less time.

    Args:
        achieved, desired: (B, n, 10), contiguous.
        matching: (B, n) the known matching.
        tolerances, criterion, orientation: as of ``align``.
    """
    out = np.empty(len(achieved))
    fit_distances(achieved, desired, matching, _rule(tolerances, criterion, orientation), out)
    return out


def _rule(tolerances: tuple[float, float, float], criterion: str, orientation: str) -> tuple[Any, ...]:
    """The fields of a ``Rule``; a plain tuple crosses into compiled code in less time."""
    position, angle, size = tolerances
    return CRITERIA.index(criterion), orientation == "visual", (float(position), float(angle), float(size))


def _contiguous(scenes: NDArray[Any], n_max: int) -> NDArray[np.float64]:
    if scenes.shape[1] != n_max:
        scenes = pad(scenes, n_max)
    return np.require(scenes, np.float64, ["C", "W"])  # one type for the kernels: a second costs a compilation
