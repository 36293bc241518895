"""Many objects that look alike in one pair: hypothesise similarities, assign under each, keep the best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from spatialsim_env.arrangements.alignment.matching import classes_of
from spatialsim_env.arrangements.alignment.pairs import GIVEN, Alignment, align_pairs
from spatialsim_env.arrangements.alignment.plane import CRITERIA, NO_SPREAD, Rule
from spatialsim_env.arrangements.scene import POSITION, SIZE


def search(a: NDArray[np.float64], g: NDArray[np.float64], rule: tuple[Any, ...], best: Alignment) -> None:
    """Improve the alignment of one pair, (1, n, 10) each, in place; it holds some matching and its fit.

    The two objects of A that lie farthest apart are mapped onto every admissible pair of G; each such similarity is
    followed by assignment and refit until the matching repeats.
    """
    criterion, _, tolerance = Rule(*rule)
    matching = best.matching.copy()
    rows = np.flatnonzero(matching[0] >= 0)
    base = matching[0, rows]
    classes = np.empty(g.shape[1], np.int64)
    classes_of(g[0], classes)
    inadmissible = classes[base][:, None] != classes[base][None, :]
    points_a, points_g = (x[..., 0] + 1j * x[..., 1] for x in (a[0, rows, POSITION], g[0, base, POSITION]))
    for z, shift in _hypotheses(points_a, points_g, inadmissible):
        seen: set[bytes] = set()
        while True:
            cost = np.abs(points_a[:, None] - (z * points_g + shift)[None, :]) ** 2 / tolerance[0] ** 2
            if CRITERIA[criterion] == "similarity":
                size = a[0, rows, SIZE][:, None] - abs(z) * g[0, base, SIZE][None, :]
                cost = cost + size**2 / tolerance[2] ** 2
            _, column = linear_sum_assignment(np.where(inadmissible, 1e12, cost))
            if column.tobytes() in seen:
                break
            seen.add(column.tobytes())
            trial = Alignment.empty(1, matching.shape[1], matching.copy())
            trial.matching[0, rows] = base[column]
            align_pairs(a, g, GIVEN, rule, tuple(trial))
            if trial.distance[0] < best.distance[0]:
                _copy(trial, best)
            z = trial.scale[0] * np.exp(1j * trial.angle[0])
            shift = complex(*trial.translation[0])


def _hypotheses(
    points_a: NDArray[np.complex128], points_g: NDArray[np.complex128], inadmissible: NDArray[np.bool_]
) -> Iterator[tuple[complex, complex]]:
    """Factors and translations that map an admissible pair of G onto the two points of A that lie farthest apart."""
    apart = np.abs(points_a[:, None] - points_a[None, :])
    first, second = np.unravel_index(int(apart.argmax()), apart.shape)
    left, right = np.nonzero(~inadmissible[first][:, None] & ~inadmissible[second][None, :])
    keep = (left != right) & (np.abs(points_g[left] - points_g[right]) > NO_SPREAD)
    for i, j in zip(left[keep], right[keep], strict=True):
        z = (points_a[second] - points_a[first]) / (points_g[j] - points_g[i])
        yield z, points_a[first] - z * points_g[i]


def _copy(source: Alignment, out: Alignment) -> None:
    for name in ("matching", "scale", "angle", "translation", "residuals", "distance"):
        getattr(out, name)[:] = getattr(source, name)
