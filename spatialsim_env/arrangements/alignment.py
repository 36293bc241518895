"""Which object is which, and the similarity that brings one scene onto another; batched, compiled.

For a pair of scenes (achieved A, desired G) of the same objects: *matching* assigns to each object of A its object in
G by appearance alone; *fitting* finds the proper similarity (scale s, angle theta, translation; never a reflection)
that maps G onto A; *residuals* are what is left, in A's frame, per object: position (units), orientation (radians)
and size (units). The *distance* of a pair is its largest residual in units of the tolerances; ``goals.py`` says what
follows from it.

The kernels treat one pair after the other, so the result for a pair does not depend on the batch around it, bit for
bit. Pairs whose nearest partners by appearance are not a bijection (rare) go through ``scipy.optimize``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from spatialsim_env.arrangements.scene import COLOR, N_FEATURES, NOISE, ORIENTATION, POSITION, SHAPE, SIZE, TURN, pad

CRITERIA = ("positions", "similarity")
ORIENTATIONS = ("number", "visual")

OK, COUNTS_DIFFER, SHAPES_DIFFER, _ASSIGN, _SEARCH = range(5)

SHAPE_COST = 1e6  # cost of matching two objects of different shape
INTERCHANGEABLE = 5 * NOISE.color  # objects of one shape whose colours differ by no more per channel
MAX_ENUMERATED = 5040  # 7!, matchings of interchangeable objects that are all tried
NO_SPREAD = 1e-6  # root mean square distance to the barycentre below which a scene is one point, units

_POSITIONS, _SIMILARITY = 0, 1
_S, _S_END, _C, _C_END = SHAPE.start, SHAPE.stop, COLOR.start, COLOR.stop
_X, _Y = POSITION.start, POSITION.start + 1
_VAR_POSITION, _VAR_ORIENTATION = NOISE.position**2, NOISE.orientation**2
_STEPS = 5  # Gauss-Newton steps
_NOISE_COLOR, _NOISE_SIZE = NOISE.color, NOISE.size
_compiled = njit(cache=True, error_model="numpy")
_PERIODS = (np.pi / 2, 0.0, TURN / 3)  # symmetry of square, circle (any angle looks the same), triangle


@dataclass(frozen=True)
class Alignment:
    """What is known about a batch of B pairs of scenes with up to n objects."""

    status: NDArray[np.int8]  # (B,) OK, COUNTS_DIFFER or SHAPES_DIFFER; the rest is defined where OK
    matching: NDArray[np.int64]  # (B, n) row of the desired scene for each achieved row, -1 for padding
    interchangeable: NDArray[np.bool_]  # (B,) whether appearance leaves more than one matching
    scale: NDArray[np.float64]  # (B,) maps desired onto achieved
    angle: NDArray[np.float64]  # (B,) radians
    translation: NDArray[np.float64]  # (B, 2) of s R x + t, units
    residuals: NDArray[np.float64]  # (B, n, 3) position, orientation, size, in the frame of achieved
    distance: NDArray[np.float64]  # (B,) largest residual / tolerance that the criterion counts; inf where not OK


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
    size = len(a)
    tolerance = np.array(tolerances, np.float64)
    given = matching is not None
    out = Alignment(
        status=np.zeros(size, np.int8),
        matching=np.require(matching, np.int64, ["C", "W"])
        if matching is not None
        else np.empty((size, n_max), np.int64),
        interchangeable=np.zeros(size, np.bool_),
        scale=np.empty(size),
        angle=np.empty(size),
        translation=np.empty((size, 2)),
        residuals=np.empty((size, n_max, 3)),
        distance=np.empty(size),
    )
    arrays = (out.status, out.matching, out.interchangeable, out.scale, out.angle, out.translation)
    code, visual = CRITERIA.index(criterion), orientation == "visual"
    _align(a, g, given, code, visual, tolerance, *arrays, out.residuals, out.distance)
    if given:
        return out
    for row in np.flatnonzero(out.status == _ASSIGN):
        out.matching[row], solved = assign(a[row], g[row])
        out.status[row] = OK if solved else SHAPES_DIFFER
        if solved:
            pair = slice(row, row + 1)
            parts = (array[pair] for array in (*arrays, out.residuals, out.distance))
            _align(a[pair], g[pair], True, code, visual, tolerance, *parts)
            parts = (array[pair] for array in (*arrays, out.residuals, out.distance))
            _resolve(a[pair], g[pair], code, visual, tolerance, *parts)
    for row in np.flatnonzero(out.status == _SEARCH):
        out.status[row] = OK
        pair = slice(row, row + 1)
        best = _search(a[pair], g[pair], tolerances, criterion, orientation, out.matching[pair])
        for name in ("matching", "scale", "angle", "translation", "residuals", "distance"):
            getattr(out, name)[row] = getattr(best, name)[0]
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
    tolerance = np.array(tolerances, np.float64)
    _distances(achieved, desired, matching, CRITERIA.index(criterion), orientation == "visual", tolerance, out)
    return out


def _contiguous(scenes: NDArray[Any], n_max: int) -> NDArray[np.float64]:
    if scenes.shape[1] != n_max:
        scenes = pad(scenes, n_max)
    return np.require(scenes, np.float64, ["C", "W"])  # one type for the kernels: a second costs a compilation


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


def _search(
    a: NDArray[np.float64],
    g: NDArray[np.float64],
    tolerances: tuple[float, float, float],
    criterion: str,
    orientation: str,
    matching: NDArray[np.int64],
) -> Alignment:
    """Many interchangeable objects in one pair: hypothesise similarities, assign under each, keep the best.

    The two objects of A that lie farthest apart are mapped onto every admissible pair of G; each such similarity is
    followed by assignment and refit until the matching repeats.
    """
    best = align(a, g, tolerances, criterion, orientation, matching)
    rows = np.flatnonzero(matching[0] >= 0)
    base = matching[0, rows]
    classes = np.empty(g.shape[1], np.int64)
    _classes(g[0], classes)
    inadmissible = classes[base][:, None] != classes[base][None, :]
    points_a = a[0, rows, _X] + 1j * a[0, rows, _Y]
    points_g = g[0, base, _X] + 1j * g[0, base, _Y]
    apart = np.abs(points_a[:, None] - points_a[None, :])
    first, second = np.unravel_index(int(apart.argmax()), apart.shape)
    left, right = np.nonzero(~inadmissible[first][:, None] & ~inadmissible[second][None, :])
    keep = (left != right) & (np.abs(points_g[left] - points_g[right]) > NO_SPREAD)
    for i, j in zip(left[keep], right[keep], strict=True):
        z = (points_a[second] - points_a[first]) / (points_g[j] - points_g[i])
        shift = points_a[first] - z * points_g[i]
        seen: set[bytes] = set()
        while True:
            cost = np.abs(points_a[:, None] - (z * points_g + shift)[None, :]) ** 2 / tolerances[0] ** 2
            if criterion == "similarity":
                size = a[0, rows, SIZE][:, None] - abs(z) * g[0, base, SIZE][None, :]
                cost = cost + size**2 / tolerances[2] ** 2
            _, column = linear_sum_assignment(np.where(inadmissible, 1e12, cost))
            if column.tobytes() in seen:
                break
            seen.add(column.tobytes())
            trial = matching.copy()
            trial[0, rows] = base[column]
            fit = align(a, g, tolerances, criterion, orientation, trial)
            if fit.distance[0] < best.distance[0]:
                best = fit
            z = fit.scale[0] * np.exp(1j * fit.angle[0])
            shift = complex(*fit.translation[0])
    return best


@_compiled
def _align(
    a: Any, g: Any, given: Any, criterion: Any, visual: Any, tolerance: Any,
    status: Any, matching: Any, interchangeable: Any, scale: Any, angle: Any, translation: Any,
    residuals: Any, distance: Any,
) -> None:  # fmt: skip
    """Match (unless given) and fit each pair of a batch."""
    scratch = np.empty((2, a.shape[1]))
    for b in range(a.shape[0]):
        if not given:
            status[b] = _match(a[b], g[b], matching[b])
        if status[b] == OK:
            fit = _fit(a[b], g[b], matching[b], criterion, visual, tolerance, residuals[b], scratch)
            scale[b], angle[b], translation[b, 0], translation[b, 1], distance[b] = fit
        else:
            scale[b], angle[b], translation[b], residuals[b], distance[b] = np.nan, np.nan, np.nan, np.inf, np.inf
        if not given and status[b] == OK:
            pair = slice(b, b + 1)
            _resolve(
                a[pair], g[pair], criterion, visual, tolerance,
                status[pair], matching[pair], interchangeable[pair], scale[pair], angle[pair], translation[pair],
                residuals[pair], distance[pair],
            )  # fmt: skip


@_compiled
def _distances(
    achieved: Any, desired: Any, matching: Any, criterion: Any, visual: Any, tolerance: Any, distance: Any
) -> None:
    """Fit each pair of a batch whose matching is known, and keep its distance only."""
    n = achieved.shape[1]
    a, g = np.empty((n, N_FEATURES)), np.empty((n, N_FEATURES))
    residuals, scratch = np.empty((n, 3)), np.empty((2, n))
    for b in range(achieved.shape[0]):
        for i in range(n):
            for k in range(N_FEATURES):
                a[i, k], g[i, k] = achieved[b, i, k], desired[b, i, k]
        distance[b] = _fit(a, g, matching[b], criterion, visual, tolerance, residuals, scratch)[4]


@_compiled
def _holds(scene: Any, row: int) -> bool:
    """Whether a row is an object and not padding."""
    total = 0.0
    for k in range(_S, _S_END):
        total += scene[row, k]
    return total > 0.5


@_compiled
def _match(a: Any, g: Any, matching: Any) -> int:
    """Nearest partner by appearance for each object of one pair; the status says whether that is a bijection."""
    n = a.shape[0]
    taken = np.zeros(n, np.bool_)
    count_a, count_g, status = 0, 0, OK
    for i in range(n):
        count_a += _holds(a, i)
        count_g += _holds(g, i)
    if count_a != count_g or count_a == 0:
        return COUNTS_DIFFER
    for i in range(n):
        matching[i] = -1
        if not _holds(a, i):
            continue
        least, least_differs = np.inf, False
        for j in range(n):
            if not _holds(g, j):
                continue
            differs, cost = False, 0.0
            for k in range(_S, _S_END):
                differs = differs or a[i, k] != g[j, k]
            for k in range(_C, _C_END):
                cost += ((a[i, k] - g[j, k]) / _NOISE_COLOR) ** 2
            cost += SHAPE_COST * differs
            if cost < least:
                least, least_differs, matching[i] = cost, differs, j
        if matching[i] < 0 or taken[matching[i]]:
            return _ASSIGN
        taken[matching[i]] = True
        if least_differs:
            status = SHAPES_DIFFER
    return status


@_compiled
def _classes(g: Any, classes: Any) -> int:
    """Classes of interchangeable objects of one scene (connected components); returns their largest size."""
    n = g.shape[0]
    largest = 1
    for j in range(n):
        classes[j] = j
    for j in range(n):
        if not _holds(g, j):
            continue
        for k in range(j):
            alike = classes[k] != classes[j]
            for c in range(_S, _S_END):
                alike = alike and g[j, c] == g[k, c]
            for c in range(_C, _C_END):
                alike = alike and abs(g[j, c] - g[k, c]) <= INTERCHANGEABLE
            if alike:
                merged = classes[k]
                size = 0
                for m in range(n):
                    if classes[m] == merged:
                        classes[m] = classes[j]
                    size += classes[m] == classes[j]
                largest = max(largest, size)
    return largest


@_compiled
def _resolve(
    a: Any, g: Any, criterion: Any, visual: Any, tolerance: Any,
    status: Any, matching: Any, interchangeable: Any, scale: Any, angle: Any, translation: Any,
    residuals: Any, distance: Any,
) -> None:  # fmt: skip
    """Among the matchings of one pair that permute interchangeable objects only, keep the least distance."""
    n = a.shape[1]
    classes = np.empty(n, np.int64)
    if _classes(g[0], classes) == 1:
        return
    interchangeable[0] = True
    total = 1
    for label in range(n):
        size = 0
        for i in range(n):
            if matching[0, i] >= 0 and classes[matching[0, i]] == label:
                size += 1
                total = min(total * size, MAX_ENUMERATED + 1)  # 21! does not fit into 64 bits
    if total > MAX_ENUMERATED:
        status[0] = _SEARCH
        return
    base, trial = matching[0].copy(), matching[0].copy()
    rows, partners = np.empty(n, np.int64), np.empty(n, np.int64)
    scratch = np.empty((2, n))
    for index in range(1, total):
        rest = index
        for label in range(n):
            size = 0
            for i in range(n):
                if base[i] >= 0 and classes[base[i]] == label:
                    rows[size], partners[size] = i, base[i]
                    size += 1
            for k in range(size):  # the index in mixed radix picks one of the partners that are left
                pick = rest % (size - k)
                rest //= size - k
                trial[rows[k]] = partners[pick]
                for m in range(pick, size - k - 1):
                    partners[m] = partners[m + 1]
        fit = _fit(a[0], g[0], trial, criterion, visual, tolerance, residuals[0], scratch)
        if fit[4] < distance[0]:
            matching[0] = trial
            scale[0], angle[0], translation[0, 0], translation[0, 1], distance[0] = fit
    _fit(a[0], g[0], matching[0], criterion, visual, tolerance, residuals[0], scratch)


@_compiled
def _fit(
    a: Any, g: Any, matching: Any, criterion: Any, visual: Any, tolerance: Any, residuals: Any, scratch: Any
) -> Any:
    """The similarity of one matched pair: scale, angle, translation x, y, distance; writes the residuals.

    ``scratch`` is room for two numbers per object.
    """
    n = a.shape[0]
    count, mean_a, mean_g = 0, 0j, 0j
    for i in range(n):
        if matching[i] >= 0:
            count += 1
            mean_a += complex(a[i, _X], a[i, _Y])
            mean_g += complex(g[matching[i], _X], g[matching[i], _Y])
    mean_a /= count
    mean_g /= count
    cross, spread_a, spread_g = 0j, 0.0, 0.0  # sums over objects of conj(g) a, |a|^2, |g|^2, all centred
    weight, size_evidence, log_ratio, direction = 0.0, 0.0, 0.0, 0j
    turns, periods = scratch[0, :count], scratch[1, :count]
    takes_spread_a = visual or criterion == _POSITIONS  # else nothing depends on it
    k = 0
    for i in range(n):
        j = matching[i]
        if j < 0:
            continue
        point_a = complex(a[i, _X], a[i, _Y]) - mean_a
        point_g = complex(g[j, _X], g[j, _Y]) - mean_g
        cross += point_g.conjugate() * point_a
        if takes_spread_a:
            spread_a += _squared(point_a)
        spread_g += _squared(point_g)
        precision = (a[i, SIZE] / _NOISE_SIZE) ** 2
        ratio = np.log(a[i, SIZE] / g[j, SIZE])
        weight += precision
        size_evidence += precision * ratio
        log_ratio += ratio
        turns[k] = a[i, ORIENTATION] - g[j, ORIENTATION]
        direction += _phase(turns[k])
        periods[k] = _period(g, j) if visual else TURN
        k += 1
    one_point = min(spread_a, spread_g) <= count * NO_SPREAD**2
    factor = 1.0
    if criterion == _SIMILARITY:
        sums = (cross, spread_a, spread_g, weight, size_evidence)
        if visual:
            log_scale, theta = _likeliest(turns, periods, sums)
        else:
            start = np.arctan2(direction.imag, direction.real)
            log_scale, theta = _refine(size_evidence / weight, start, turns, periods, sums)
        scale = np.exp(log_scale)
    else:
        z = cross / spread_g if not one_point else complex(np.exp(log_ratio / count), 0.0)
        scale, theta = abs(z), np.arctan2(z.imag, z.real)
        size_scale = np.exp(log_ratio / count)
        if (one_point and count > 1) or scale == 0.0:
            factor = np.inf
        elif size_scale > scale:
            factor = size_scale / scale
    z = scale * _phase(theta)
    worst, k = 0.0, 0
    for i in range(n):
        j = matching[i]
        residuals[i] = 0.0
        if j < 0:
            continue
        point = complex(a[i, _X], a[i, _Y]) - mean_a - z * (complex(g[j, _X], g[j, _Y]) - mean_g)
        residuals[i, 0] = np.sqrt(_squared(point)) * factor if factor < np.inf else np.inf
        residuals[i, 1] = abs(_wrap(turns[k] - theta, periods[k]))
        k += 1
        residuals[i, 2] = abs(a[i, SIZE] - scale * g[j, SIZE])
        for part in range(3 if criterion == _SIMILARITY else 1):
            value = residuals[i, part] / tolerance[part]
            if not value <= worst:  # a residual that is not a number is never small
                worst = value if value > worst else np.inf
    shift = mean_a - z * mean_g
    return scale, theta, shift.real, shift.imag, worst


@_compiled
def _squared(z: complex) -> float:
    """|z|^2; infinite where a part is no number, which only sums beyond float64 leave behind."""
    square = z.real**2 + z.imag**2
    return square if square >= 0.0 else np.inf


@_compiled
def _phase(angle: float) -> complex:
    """exp(i angle)."""
    return complex(np.cos(angle), np.sin(angle))


@_compiled
def _wrap(angle: float, period: float) -> float:
    """Into [-period / 2, period / 2]; a period of 0 means that every angle is the same."""
    return angle - period * np.floor(angle / period + 0.5) if period > 0.0 else 0.0


@_compiled
def _period(scene: Any, row: int) -> float:
    """Angle under which the shape of an object looks the same; 0 for the circle."""
    for k in range(_S, _S_END):
        if scene[row, k] > 0.5:
            return _PERIODS[k - _S]
    return TURN


@_compiled
def _likeliest(turns: Any, periods: Any, sums: Any) -> Any:
    """Log scale and angle of the fit when orientations tell the angle only up to the shape's symmetry.

    The positions give one start, and each shape one per symmetry around its objects' mean turn; the likeliest end
    wins.
    """
    cross, _, _, weight, size_evidence = sums
    log_scale = size_evidence / weight
    best = _refine(log_scale, np.arctan2(cross.imag, cross.real), turns, periods, sums)
    least = _misfit(best[0], best[1], turns, periods, sums)
    for period in _PERIODS:
        if period == 0.0:
            continue
        fold, direction = round(TURN / period), 0j
        for i in range(len(turns)):
            if periods[i] == period:
                direction += _phase(fold * turns[i])
        if direction == 0j:
            continue
        for k in range(fold):
            start = np.arctan2(direction.imag, direction.real) / fold + k * period
            end = _refine(log_scale, start, turns, periods, sums)
            misfit = _misfit(end[0], end[1], turns, periods, sums)
            if misfit < least:
                best, least = end, misfit
    return best


@_compiled
def _refine(log_scale: float, theta: float, turns: Any, periods: Any, sums: Any) -> Any:
    """Five Gauss-Newton steps; returns log scale and angle.

    The Jacobian's columns for log s and theta are orthogonal, so each parameter has its own scalar step. A step in
    log s is limited to 1, which only pairs far from any similarity ever meet.
    """
    cross, _, spread_g, weight, size_evidence = sums
    oriented = 0
    for i in range(len(periods)):
        oriented += periods[i] > 0.0
    for _ in range(_STEPS):
        scale = np.exp(log_scale)
        turned = scale * cross * _phase(-theta)
        stiffness = scale**2 * spread_g / _VAR_POSITION
        step = (turned.real / _VAR_POSITION - stiffness + size_evidence - weight * log_scale) / (stiffness + weight)
        pull = 0.0
        for i in range(len(turns)):
            pull += _wrap(turns[i] - theta, periods[i])
        resistance = stiffness + oriented / _VAR_ORIENTATION
        if resistance > 0.0:
            theta += (turned.imag / _VAR_POSITION + pull / _VAR_ORIENTATION) / resistance
        log_scale += min(max(step, -1.0), 1.0)
    return log_scale, theta


@_compiled
def _misfit(log_scale: float, theta: float, turns: Any, periods: Any, sums: Any) -> float:
    """Minus twice the log-likelihood."""
    cross, spread_a, spread_g, weight, size_evidence = sums
    scale = np.exp(log_scale)
    turned = scale * cross * _phase(-theta)
    misfit = (spread_a - 2 * turned.real + scale**2 * spread_g) / _VAR_POSITION
    misfit += weight * log_scale**2 - 2 * size_evidence * log_scale
    for i in range(len(turns)):
        misfit += _wrap(turns[i] - theta, periods[i]) ** 2 / _VAR_ORIENTATION
    return misfit
