"""Densities of the benchmark's pairs by plain summation over grids, straight from the generator's definition.

Nothing is shared with the ideal observer: scale, rotation and translation run over grids, matchings over all
permutations, and the density of an arrangement is written object by object.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from scipy.integrate import trapezoid

from spatialsim_env.arrangements.scene import COLOR, ORIENTATION, POSITION, SHAPE, SIZE

SIGMA, SIGMA_SIZE, SIGMA_COLOR, SIGMA_ANGLE = 0.2, 0.02, 0.01, 2 * math.pi / 100
Points = np.ndarray  # (..., n) complex


def normal(x: np.ndarray, deviation: float) -> np.ndarray:
    return np.exp(-((x / deviation) ** 2) / 2) / (math.sqrt(2 * math.pi) * deviation)


def density(
    target: np.ndarray,
    reference: np.ndarray,
    arrangement: Callable[[Points, Points, np.ndarray], np.ndarray],
    jitter: float = 4 * SIGMA,
    points: tuple[int, int] = (31, 13),
) -> float:
    """p(target | reference) over sizes, colours, orientations and positions, of one pair without padding.

    Args:
        arrangement: density of positions (..., n) given those of the reference (n,) and sizes (..., n).
        jitter: half of the extent of the grid of translations, about the one that keeps the reference's barycentre.
        points: of the grids of scale and angle, and of those of the translation.
    """
    total = 0.0
    q = target[:, POSITION] @ np.array([1, 1j])
    for order in itertools.permutations(range(len(reference))):
        r = reference[list(order)]
        if (r[:, SHAPE] != target[:, SHAPE]).any():
            continue
        place = r[:, POSITION] @ np.array([1, 1j])
        weight = normal(target[:, COLOR] - r[:, COLOR], SIGMA_COLOR).prod()
        turns = target[:, ORIENTATION] - r[:, ORIENTATION]
        ratio = (target[:, SIZE] * r[:, SIZE]).sum() / (r[:, SIZE] ** 2).sum()
        width = 7 * SIGMA_SIZE * ratio / np.linalg.norm(r[:, SIZE])
        scale = np.linspace(max(0.5, ratio - width), min(2.0, ratio + width), points[0])
        width = 7 * SIGMA_ANGLE / math.sqrt(len(r))
        angle = np.linspace(max(0.0, turns.mean() - width), min(2 * math.pi, turns.mean() + width), points[0])
        center = place.mean()
        shifts = [
            np.linspace(max(-20.0, gap - jitter), min(20.0, gap + jitter), points[1])
            for gap in ((q.mean() - center).real, (q.mean() - center).imag)
        ]
        if any(x[-1] <= x[0] for x in (scale, angle, *shifts)):
            continue
        s, t, x, y = np.meshgrid(scale, angle, *shifts, indexing="ij", sparse=True)
        sizes = (target[:, SIZE] / s[..., None]) * np.ones_like(t)[..., None]
        barycenter = q.mean() - (x + 1j * y)
        before = barycenter[..., None] + np.exp(-1j * t[..., None]) / s[..., None] * (q - q.mean())
        value = arrangement(before, place, sizes) * s ** -(2.0 * len(r) - 2)  # the barycentre is moved, not scaled
        value = value * (normal(sizes - r[:, SIZE], SIGMA_SIZE) / s[..., None]).prod(axis=-1)
        value = value * normal(turns - t[..., None], SIGMA_ANGLE).prod(axis=-1)
        for axis, grid in reversed(list(enumerate((scale, angle, *shifts)))):
            value = trapezoid(value, grid, axis=axis)
        total += weight * float(value) / (1.5 * 2 * math.pi * 40 * 40)
    return total / math.factorial(len(reference))


def same(p: Points, place: Points, sizes: np.ndarray) -> np.ndarray:
    return (normal((p - place).real, SIGMA) * normal((p - place).imag, SIGMA)).prod(axis=-1)


def redrawn(p: Points, place: Points, sizes: np.ndarray) -> np.ndarray:
    inside = (np.minimum(p.real, p.imag) >= sizes) & (np.maximum(p.real, p.imag) <= 20 - sizes)
    return (inside / (20 - 2 * sizes) ** 2).prod(axis=-1)


def displaced(distance: float) -> Callable[[Points, Points, np.ndarray], np.ndarray]:
    """One object, any with equal probability, moved by a distance in a direction that runs over a grid."""

    def arrangement(p: Points, place: Points, sizes: np.ndarray) -> np.ndarray:
        total = np.zeros(p.shape[:-1])
        for k in range(len(place)):
            for direction in 2 * math.pi * np.arange(16) / 16:
                step = np.where(np.arange(len(place)) == k, distance * np.exp(1j * direction), 0)
                total += same(p, place + step, sizes) / 16
        return total / len(place)

    return arrangement


def mirrored(p: Points, place: Points, sizes: np.ndarray) -> np.ndarray:
    """Reflected about the vertical axis through the barycentre, a reflection that undoes itself."""
    center = p.mean(axis=-1, keepdims=True)
    return same(2 * center.real - p.real + 1j * p.imag, place, sizes)
