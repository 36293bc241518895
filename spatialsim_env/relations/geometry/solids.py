"""Exact geometry of two oriented boxes, compiled: separation, distance, depth, shared volume, the part below a height.

Everything is given in the frame of the first box, which lies at the origin with half sizes ``a``: the second has its
centre at ``d``, the columns of ``c`` as axes and half sizes ``b``. A solid is a union of boxes that share its axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

N_AXES = 15  # three faces of each box, nine pairs of edges
PARALLEL = 1e-16  # squared sine of edges that count as parallel; corners then tell the distance
MOST_CORNERS = 16  # of a quadrilateral that six planes have cut


@njit(cache=True)
def separating_axes(c: NDArray[Any], axes: NDArray[Any]) -> int:
    """Fill ``axes`` (15, 9): unit vectors and the absolute cosines to both boxes' axes. Returns how many there are."""
    n = 0
    for i in range(3):
        for k in range(3):
            axes[n, k] = 1.0 if i == k else 0.0
            axes[n + 1, k] = c[k, i]
        n += 2
    for i in range(3):
        for j in range(3):
            u, v = (i + 1) % 3, (i + 2) % 3  # e_i x c_j
            x, y = -c[v, j], c[u, j]
            length = np.sqrt(x * x + y * y)
            if length * length > PARALLEL:
                axes[n, i], axes[n, u], axes[n, v] = 0.0, x / length, y / length
                n += 1
    for m in range(n):
        for k in range(3):
            axes[m, 3 + k] = abs(axes[m, k])
            axes[m, 6 + k] = abs(axes[m, 0] * c[0, k] + axes[m, 1] * c[1, k] + axes[m, 2] * c[2, k])
    return n


@njit(cache=True)
def separation(d: NDArray[Any], a: NDArray[Any], b: NDArray[Any], axes: NDArray[Any], n: int) -> float:
    """Widest gap between the boxes' shadows over the axes; below zero, minus the depth of their overlap.

    By the separating axis theorem the boxes meet iff it is not positive. Positive, it is at most the distance.
    """
    widest = -np.inf
    for m in range(n):
        x = axes[m]
        between = abs(d[0] * x[0] + d[1] * x[1] + d[2] * x[2])
        reach = a[0] * x[3] + a[1] * x[4] + a[2] * x[5] + b[0] * x[6] + b[1] * x[7] + b[2] * x[8]
        widest = max(widest, between - reach)
    return widest


@njit(cache=True)
def _corners_to_box(d: NDArray[Any], a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> float:
    """Least squared distance of the second box's corners to the first box."""
    best = np.inf
    for corner in range(8):
        s = (1.0 if corner & 1 else -1.0) * b[0]
        t = (1.0 if corner & 2 else -1.0) * b[1]
        u = (1.0 if corner & 4 else -1.0) * b[2]
        squared = 0.0
        for k in range(3):
            out = abs(d[k] + c[k, 0] * s + c[k, 1] * t + c[k, 2] * u) - a[k]
            if out > 0:
                squared += out * out
        best = min(best, squared)
    return best


@njit(cache=True)
def _edges(d: NDArray[Any], a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], best: float) -> float:
    """Least squared distance of two edges whose nearest points are inside both, or ``best`` where that is less.

    An edge of the first box runs along its axis i, one of the second along c_j; w joins their middles and
    n = e_i x c_j. The nearest points are at (w x c_j).n / n.n and (w x e_i).n / n.n from the middles.
    """
    for i in range(3):
        p, q = (i + 1) % 3, (i + 2) % 3
        for j in range(3):
            k, m = (j + 1) % 3, (j + 2) % 3
            n_p, n_q = -c[q, j], c[p, j]  # n's coordinates on p and q; on i it is 0
            nn = n_p * n_p + n_q * n_q
            if nn <= PARALLEL:
                continue
            for signs in range(16):
                sp = a[p] if signs & 1 else -a[p]
                sq = a[q] if signs & 2 else -a[q]
                sk = b[k] if signs & 4 else -b[k]
                sm = b[m] if signs & 8 else -b[m]
                wi = d[i] + c[i, k] * sk + c[i, m] * sm
                wp = d[p] + c[p, k] * sk + c[p, m] * sm - sp
                wq = d[q] + c[q, k] * sk + c[q, m] * sm - sq
                along = wp * n_p + wq * n_q
                squared = along * along / nn
                if squared >= best:
                    continue
                on_second = (wq * n_p - wp * n_q) / nn
                if abs(on_second) > b[j]:
                    continue
                if abs(wi + c[i, j] * on_second) <= a[i]:
                    best = squared
    return best


@njit(cache=True)
def distance(d: NDArray[Any], a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> float:
    """Distance of two boxes that do not meet: corner to box both ways, and edge to edge."""
    back = np.empty(3)
    for k in range(3):
        back[k] = -(c[0, k] * d[0] + c[1, k] * d[1] + c[2, k] * d[2])
    best = min(_corners_to_box(d, a, b, c), _corners_to_box(back, b, a, c.T))
    return np.sqrt(_edges(d, a, b, c, best))


@njit(cache=True)
def solids_apart(
    d: NDArray[Any], c: NDArray[Any], first: NDArray[Any], n_first: int, second: NDArray[Any], n_second: int
) -> tuple[float, float]:
    """(gap, depth) of two solids with parts (P, 2, 3), centre and half size: the least distance, the deepest overlap.

    ``d`` and ``c`` are the second solid's centre and axes in the first one's frame.
    """
    axes = np.empty((N_AXES, 9))
    n = separating_axes(c, axes)
    offsets = np.empty((n_first, n_second, 3))
    apart = np.empty((n_first, n_second))
    least, at_i, at_j = np.inf, 0, 0
    for j in range(n_second):
        for i in range(n_first):
            for k in range(3):
                inner = c[k, 0] * second[j, 0, 0] + c[k, 1] * second[j, 0, 1] + c[k, 2] * second[j, 0, 2]
                offsets[i, j, k] = d[k] + inner - first[i, 0, k]
            apart[i, j] = separation(offsets[i, j], first[i, 1], second[j, 1], axes, n)
            if apart[i, j] < least:
                least, at_i, at_j = apart[i, j], i, j
    if least <= 0:
        return 0.0, -least
    gap = distance(offsets[at_i, at_j], first[at_i, 1], second[at_j, 1], c)
    for i in range(n_first):
        for j in range(n_second):
            if apart[i, j] < gap and not (i == at_i and j == at_j):
                gap = min(gap, distance(offsets[i, j], first[i, 1], second[j, 1], c))
    return gap, 0.0


@njit(cache=True)
def _cut(polygon: NDArray[Any], n: int, axis: int, bound: float, sign: float, out: NDArray[Any]) -> int:
    """The part of a polygon (n, 3) where sign * (x[axis] - bound) <= 0, into ``out``; its number of corners."""
    kept = 0
    for i in range(n):
        corner, following = polygon[i], polygon[(i + 1) % n]
        s, t = sign * (corner[axis] - bound), sign * (following[axis] - bound)
        if s <= 0:
            out[kept] = corner
            kept += 1
        if (s < 0 and t > 0) or (s > 0 and t < 0):
            share = s / (s - t)
            for k in range(3):
                out[kept, k] = corner[k] + share * (following[k] - corner[k])
            kept += 1
    return kept


@njit(cache=True)
def _shadow(polygon: NDArray[Any], n: int) -> tuple[float, float]:
    """Signed area of a polygon's shadow on the second and third axis, and the integral of x[0] over it."""
    area, integral = 0.0, 0.0
    for i in range(1, n - 1):
        y1, z1 = polygon[i, 1] - polygon[0, 1], polygon[i, 2] - polygon[0, 2]
        y2, z2 = polygon[i + 1, 1] - polygon[0, 1], polygon[i + 1, 2] - polygon[0, 2]
        piece = 0.5 * (y1 * z2 - z1 * y2)
        area += piece
        integral += piece * (polygon[0, 0] + polygon[i, 0] + polygon[i + 1, 0]) / 3
    return area, integral


@njit(cache=True)
def shared_volume(d: NDArray[Any], a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> float:
    """Volume of the intersection of two boxes.

    The sum over the second box's faces of the signed integral of clip(x + a0, 0, 2 a0) over the face's shadow within
    the first box's rectangle: what lies between the first box's low face and the face, outward faces up minus down.
    Faces in one plane need no care, as the integrand is continuous.
    """
    one, two = np.empty((MOST_CORNERS, 3)), np.empty((MOST_CORNERS, 3))
    total = 0.0
    for j in range(3):
        u, v = (j + 1) % 3, (j + 2) % 3
        for side in (-1.0, 1.0):
            for corner in range(4):
                s = (b[u] if corner == 1 or corner == 2 else -b[u]) * side  # turned about the outward normal
                t = b[v] if corner >= 2 else -b[v]
                for k in range(3):
                    one[corner, k] = d[k] + c[k, j] * side * b[j] + c[k, u] * s + c[k, v] * t
            n = 4
            for k in (1, 2):
                n = _cut(one, n, k, a[k], 1.0, two)
                n = _cut(two, n, k, -a[k], -1.0, one)
            all_of_it, _ = _shadow(one, n)
            n = _cut(one, n, 0, a[0], 1.0, two)
            not_beyond, _ = _shadow(two, n)
            n = _cut(two, n, 0, -a[0], -1.0, one)
            area, integral = _shadow(one, n)
            total += 2 * a[0] * (all_of_it - not_beyond) + integral + a[0] * area
    return max(total, 0.0)


@njit(cache=True)
def _area_below(s: float, second: float, third: float) -> float:
    """Share of a rectangle, extents second <= third, where the sum of the two coordinates from a corner is below s."""
    if s <= 0:
        return 0.0
    if s >= second + third:
        return 1.0
    if s < second:
        return s / second * s / third / 2
    if s <= third:
        return (s - second / 2) / third
    rest = second + third - s
    return 1 - rest / second * rest / third / 2


@njit(cache=True)
def share_below(height: float, x: float, y: float, z: float) -> float:
    """Share of a box below a plane that lies ``height`` above its lowest corner; x, y, z >= 0: the edges' rises.

    The mean over the least rise of the share of a rectangle, which is quadratic between its knots: Simpson's rule on
    each piece is exact, and nothing is divided by a small rise unless it is that rise's own share.
    """
    first, third = min(x, y, z), max(x, y, z)
    second = x + y + z - first - third
    second = min(max(second, first), third)
    if first <= 1e-12 * third:
        return _area_below(height - first / 2, second, third)
    low, total = height - first, 0.0
    for stop in (0.0, second, third, second + third, np.inf):
        high = min(height, stop)
        if high > low:
            ends = _area_below(low, second, third) + _area_below(high, second, third)
            total += (high - low) / first * (ends + 4 * _area_below((low + high) / 2, second, third)) / 6
            low = high
    return total


# --- batches, a row at a time -----------------------------------------------------------------------------------------


@njit(cache=True)
def between(center: Any, turn: Any, first: int, second: int, d: Any, c: Any) -> None:
    """Place ``d`` (3,) and axes ``c`` (3, 3) of one object of a scene in the frame of another."""
    for i in range(3):
        d[i] = 0.0
        for k in range(3):
            d[i] += turn[first, k, i] * (center[second, k] - center[first, k])
        for j in range(3):
            c[i, j] = 0.0
            for k in range(3):
                c[i, j] += turn[first, k, i] * turn[second, k, j]


@njit(cache=True)
def fill_apart(center: Any, turn: Any, first: Any, n_first: Any, second: Any, n_second: Any, out: Any) -> None:
    """Gap and depth of each scene into ``out`` (2, B); the rest as ``boxes.apart`` has them."""
    d, c = np.empty(3), np.empty((3, 3))
    for row in range(len(center)):
        between(center[row], turn[row], 0, 1, d, c)
        distances = solids_apart(d, c, first[row], n_first[row], second[row], n_second[row])
        out[0, row], out[1, row] = distances


@njit(cache=True)
def fill_share_within(center: Any, turn: Any, parts: Any, n: Any, cavity: Any, has: Any, out: Any) -> None:
    """Share of each subject's parts in the object's cavity (B, 2, 3) into ``out`` (B,), 0 where ``has`` is false."""
    d, c, offset = np.empty(3), np.empty((3, 3)), np.empty(3)
    for row in range(len(center)):
        out[row] = 0.0
        if not has[row]:
            continue
        between(center[row], turn[row], 1, 0, d, c)
        within, total = 0.0, 0.0
        for p in range(n[row]):
            middle, half = parts[row, p, 0], parts[row, p, 1]
            for k in range(3):
                inner = c[k, 0] * middle[0] + c[k, 1] * middle[1] + c[k, 2] * middle[2]
                offset[k] = d[k] + inner - cavity[row, 0, k]
            within += shared_volume(offset, cavity[row, 1], half, c)
            total += 8 * half[0] * half[1] * half[2]
        out[row] = min(within / total, 1.0)


@njit(cache=True)
def fill_share_below(center: Any, turn: Any, parts: Any, n: Any, heights: Any, out: Any) -> None:
    """Share of each object's parts below its height into ``out`` (B,)."""
    for row in range(len(center)):
        rise = turn[row, 2]
        below, total = 0.0, 0.0
        for p in range(n[row]):
            middle, half = parts[row, p, 0], parts[row, p, 1]
            x, y, z = 2 * abs(rise[0]) * half[0], 2 * abs(rise[1]) * half[1], 2 * abs(rise[2]) * half[2]
            at = center[row, 2] + rise[0] * middle[0] + rise[1] * middle[1] + rise[2] * middle[2]
            part = half[0] * half[1] * half[2]
            below += part * share_below(heights[row] - at + (x + y + z) / 2, x, y, z)
            total += part
        out[row] = min(max(below / total, 0.0), 1.0)


@njit(cache=True)
def covered_angle(low: Any, high: Any) -> float:
    """Length of the union of intervals of angles within one turn."""
    now, total = 0.0, 0.0
    for i in np.argsort(low):
        begin, end = max(low[i], now), min(high[i], 2 * np.pi)
        if end > begin:
            total += end - begin
            now = end
    return total


@njit(cache=True)
def fill_span(parts: Any, n: Any, axis: Any, out: Any) -> None:
    """Degrees that the parts which miss the axis through the centre span about it, into ``out`` (B,)."""
    for row in range(len(parts)):
        u, v = (axis[row] + 1) % 3, (axis[row] + 2) % 3
        low, high = np.empty(3 * n[row]), np.empty(3 * n[row])
        n_arcs = 0
        for p in range(n[row]):
            middle, half = parts[row, p, 0], parts[row, p, 1]
            if abs(middle[u]) < half[u] and abs(middle[v]) < half[v]:
                continue
            toward = np.arctan2(middle[v], middle[u]) % (2 * np.pi)
            least, most = 0.0, 0.0
            for corner in range(4):
                x = middle[u] + (half[u] if corner & 1 else -half[u])
                y = middle[v] + (half[v] if corner & 2 else -half[v])
                turn = (np.arctan2(y, x) - toward + np.pi) % (2 * np.pi) - np.pi
                least, most = min(least, turn), max(most, turn)
            for whole_turn in (-2 * np.pi, 0.0, 2 * np.pi):
                low[n_arcs], high[n_arcs] = toward + least + whole_turn, toward + most + whole_turn
                n_arcs += 1
        out[row] = np.degrees(covered_angle(low[:n_arcs], high[:n_arcs]))
