"""Footprints: the shadow of an oriented box on the floor, its shares and the place of a point about it, compiled.

The shadow of a box is the sum of three segments, the shadows of its half axes: a polygon of six corners at most,
symmetric about the shadow of the centre.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

MOST_CORNERS = 16  # of two such polygons' intersection, with room


@njit(cache=True)
def half_axes(turn: NDArray[Any], half: NDArray[Any], out: NDArray[Any]) -> None:
    """Shadows of a box's half axes into ``out`` (3, 2), each to the upper half plane, in the order of their angles."""
    for j in range(3):
        x, y = turn[0, j] * half[j], turn[1, j] * half[j]
        if y < 0 or (y == 0 and x < 0):
            x, y = -x, -y
        out[j, 0], out[j, 1] = x, y
    for i, j in ((0, 1), (1, 2), (0, 1)):
        if out[i, 0] * out[j, 1] - out[i, 1] * out[j, 0] < 0:
            for k in range(2):
                out[i, k], out[j, k] = out[j, k], out[i, k]


@njit(cache=True)
def outline(center: NDArray[Any], axes: NDArray[Any], out: NDArray[Any]) -> None:
    """Corners of the footprint into ``out`` (6, 2), counter-clockwise; some may coincide."""
    for k in range(2):
        out[0, k] = center[k] - axes[0, k] - axes[1, k] - axes[2, k]
        for j in range(3):
            out[j + 1, k] = out[j, k] + 2 * axes[j, k]
        for j in range(2):
            out[j + 4, k] = out[j + 3, k] - 2 * axes[j, k]


@njit(cache=True)
def area(polygon: NDArray[Any], n: int) -> float:
    """Area of a polygon (n, 2) whose corners go counter-clockwise."""
    twice = 0.0
    for i in range(1, n - 1):
        x1, y1 = polygon[i, 0] - polygon[0, 0], polygon[i, 1] - polygon[0, 1]
        x2, y2 = polygon[i + 1, 0] - polygon[0, 0], polygon[i + 1, 1] - polygon[0, 1]
        twice += x1 * y2 - y1 * x2
    return 0.5 * twice


@njit(cache=True)
def _reach(nx: float, ny: float, axes: NDArray[Any]) -> float:
    """Half the width of a footprint along a direction, as a multiple of the direction's length."""
    reach = 0.0
    for j in range(3):
        reach += abs(nx * axes[j, 0] + ny * axes[j, 1])
    return reach


@njit(cache=True)
def shared_area(polygon: NDArray[Any], center: NDArray[Any], axes: NDArray[Any]) -> float:
    """Area of the intersection of a convex polygon (6, 2) and a footprint: the polygon, cut along each of its sides.

    The sides have the directions of the half axes: those of the differences of corners would be noise where a half
    axis is upright and its shadow a rounding error.
    """
    now, cut = np.empty((MOST_CORNERS, 2)), np.empty((MOST_CORNERS, 2))
    n = 6
    now[:6] = polygon
    for side in range(6):
        nx, ny = -axes[side // 2, 1], axes[side // 2, 0]
        length = np.sqrt(nx * nx + ny * ny)
        if length == 0:
            continue
        length = length if side % 2 else -length
        nx, ny = nx / length, ny / length
        reach = _reach(nx, ny, axes)
        kept = 0
        for i in range(n):
            corner, following = now[i], now[(i + 1) % n]
            s = reach - nx * (corner[0] - center[0]) - ny * (corner[1] - center[1])
            t = reach - nx * (following[0] - center[0]) - ny * (following[1] - center[1])
            if s >= 0:
                cut[kept] = corner
                kept += 1
            if (s > 0 and t < 0) or (s < 0 and t > 0):
                share = s / (s - t)
                for k in range(2):
                    cut[kept, k] = corner[k] + share * (following[k] - corner[k])
                kept += 1
        now, cut = cut, now
        n = kept
    return max(area(now, n), 0.0)


@njit(cache=True)
def gauge(point: NDArray[Any], center: NDArray[Any], axes: NDArray[Any]) -> float:
    """Gauge of a point about a footprint's centre, in units of the way to its border: 0 there, 1 on the border."""
    worst = 0.0
    x, y = point[0] - center[0], point[1] - center[1]
    for j in range(3):
        nx, ny = -axes[j, 1], axes[j, 0]
        reach = _reach(nx, ny, axes)
        if reach > 0:
            worst = max(worst, abs(nx * x + ny * y) / reach)
    return worst


@njit(cache=True)
def nearest(point: NDArray[Any], center: NDArray[Any], axes: NDArray[Any], out: NDArray[Any]) -> None:
    """The point of a footprint that is nearest to a point, into ``out`` (2,); the point itself where it is inside."""
    out[0], out[1] = point[0], point[1]
    if gauge(point, center, axes) <= 1:
        return
    corners = np.empty((6, 2))
    outline(center, axes, corners)
    best = np.inf
    for e in range(6):
        x, y = corners[e, 0], corners[e, 1]
        ex, ey = corners[(e + 1) % 6, 0] - x, corners[(e + 1) % 6, 1] - y
        length = ex * ex + ey * ey
        share = 0.0
        if length > 0:
            share = min(max(((point[0] - x) * ex + (point[1] - y) * ey) / length, 0.0), 1.0)
        qx, qy = x + share * ex, y + share * ey
        squared = (point[0] - qx) ** 2 + (point[1] - qy) ** 2
        if squared < best:
            best, out[0], out[1] = squared, qx, qy


# --- batches, a row at a time -----------------------------------------------------------------------------------------


@njit(cache=True)
def fill_overlap(center: Any, turn: Any, half: Any, of: int, on: int, out: Any) -> None:
    """Share of each footprint ``of`` that lies on the footprint ``on``, into ``out`` (B,)."""
    axes = np.empty((3, 2))
    corners = np.empty((6, 2))
    for row in range(len(center)):
        half_axes(turn[row, of], half[row, of], axes)
        outline(center[row, of], axes, corners)
        half_axes(turn[row, on], half[row, on], axes)
        shared = shared_area(corners, center[row, on], axes)
        out[row] = min(shared / area(corners, 6), 1.0)


@njit(cache=True)
def fill_centrality(points: Any, center: Any, turn: Any, half: Any, out: Any) -> None:
    """One minus the gauge of each point, into ``out`` (B,)."""
    axes = np.empty((3, 2))
    for row in range(len(points)):
        half_axes(turn[row], half[row], axes)
        out[row] = 1 - gauge(points[row], center[row], axes)


@njit(cache=True)
def fill_nearest(points: Any, center: Any, turn: Any, half: Any, out: Any) -> None:
    """The nearest point of each footprint, into ``out`` (B, 2)."""
    axes = np.empty((3, 2))
    for row in range(len(points)):
        half_axes(turn[row], half[row], axes)
        nearest(points[row], center[row], axes, out[row])
