"""Similarities of the plane, fitted to one pair of scenes whose matching is known; compiled.

Positions are complex numbers. With a_i and g_i those of the achieved and the desired scene about their barycentres, a
similarity of scale s and angle theta multiplies g_i by z = s exp(i theta), and all that positions say is in

    cross = sum conj(g_i) a_i,    spread_a = sum |a_i|^2,    spread_g = sum |g_i|^2.

``positions`` takes z = cross / spread_g, the least squares. ``similarity`` takes the greatest likelihood: with sigma
the noise of positions, w of orientations, p_i the precision of log size i, and t_i the turn of object i,

    -2 log L = (spread_a - 2 Re(s e^{-i theta} cross) + s^2 spread_g) / sigma^2
             + sum p_i (log s - log(size_a / size_g))^2 + sum wrap(t_i - theta)^2 / w^2 + constant.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from spatialsim_env.arrangements.scene import NOISE, ORIENTATION, POSITION, SHAPE, SIZE, TURN

CRITERIA = ("positions", "similarity")
ORIENTATIONS = ("number", "visual")
NO_SPREAD = 1e-6  # root mean square distance to the barycentre below which a scene is one point, units

_POSITIONS, _SIMILARITY = range(2)
_STEPS = 5  # Gauss-Newton steps
_S, _S_END = SHAPE.start, SHAPE.stop
_X, _Y = POSITION.start, POSITION.start + 1
_VAR_POSITION, _VAR_ORIENTATION = NOISE.position**2, NOISE.orientation**2
_NOISE_SIZE = NOISE.size
_PERIODS = (np.pi / 2, 0.0, TURN / 3)  # symmetry of square, circle (any angle looks the same), triangle
_compiled = njit(cache=True, error_model="numpy")
_inlined = njit(cache=True, error_model="numpy", forceinline=True)


class Rule(NamedTuple):
    """What counts, as numbers for the kernels."""

    criterion: int  # index in CRITERIA
    visual: bool  # orientations modulo the symmetry of the shape
    tolerance: tuple[float, float, float]  # position (units), orientation (rad), size (units)


class PlaneFit(NamedTuple):
    """A similarity s R x + t and the distance that it leaves."""

    scale: float
    angle: float  # radians
    x: float  # of t, units
    y: float
    distance: float


class FittedSimilarity(NamedTuple):
    """A similarity about the barycentres, and what its residuals of position are multiplied by."""

    scale: float
    angle: float  # radians
    z: complex  # scale exp(i angle)
    factor: float


class Evidence(NamedTuple):
    """What the matched objects of a pair say, as sums over them."""

    n: int
    mean_a: complex  # barycentres
    mean_g: complex
    cross: complex  # sum of conj(g) a, |a|^2, |g|^2, all centred
    spread_a: float
    spread_g: float
    weight: float  # precisions of the log sizes
    size_evidence: float  # precision times log ratio
    log_ratio: float  # of sizes
    direction: complex  # of the turns
    turns: Any  # (count,) orientation in a minus that in g, radians
    periods: Any  # (count,) angle under which each object looks the same, 0 for any


@_compiled
def fit(a: Any, g: Any, matching: Any, rule: Any, residuals: Any, scratch: Any) -> Any:
    """The similarity of one matched pair; writes the residuals. ``scratch`` is room for two numbers per object."""
    e = _evidence(a, g, matching, rule, scratch)
    factor = 1.0
    if rule.criterion == _POSITIONS:
        scale, theta, factor = _regression(e)
    elif rule.visual:
        log_scale, theta = _likeliest(e)
        scale = np.exp(log_scale)
    else:
        start = np.arctan2(e.direction.imag, e.direction.real)
        log_scale, theta = _refine(e.size_evidence / e.weight, start, e)
        scale = np.exp(log_scale)
    z = scale * phase(theta)
    worst = _residuals(a, g, matching, rule, e, FittedSimilarity(scale, theta, z, factor), residuals)
    shift = e.mean_a - z * e.mean_g
    return PlaneFit(scale, theta, shift.real, shift.imag, worst)


@_inlined
def _evidence(a: Any, g: Any, matching: Any, rule: Any, scratch: Any) -> Any:
    n = a.shape[0]
    count, mean_a, mean_g = 0, 0j, 0j
    for i in range(n):
        if matching[i] >= 0:
            count += 1
            mean_a += complex(a[i, _X], a[i, _Y])
            mean_g += complex(g[matching[i], _X], g[matching[i], _Y])
    mean_a /= count
    mean_g /= count
    cross, spread_a, spread_g = 0j, 0.0, 0.0
    weight, size_evidence, log_ratio, direction = 0.0, 0.0, 0.0, 0j
    turns, periods = scratch[0, :count], scratch[1, :count]
    takes_spread_a = rule.visual or rule.criterion == _POSITIONS  # else nothing depends on it
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
        direction += phase(turns[k])
        periods[k] = _period(g, j) if rule.visual else TURN
        k += 1
    return Evidence(
        count, mean_a, mean_g, cross, spread_a, spread_g, weight, size_evidence, log_ratio, direction, turns, periods
    )


@_inlined
def _residuals(a: Any, g: Any, matching: Any, rule: Any, e: Any, fitted: Any, residuals: Any) -> float:
    """Write what a ``Similarity`` leaves of each object; returns the largest in units of its tolerance."""
    worst, k = 0.0, 0
    for i in range(a.shape[0]):
        j = matching[i]
        residuals[i] = 0.0
        if j < 0:
            continue
        point = complex(a[i, _X], a[i, _Y]) - e.mean_a - fitted.z * (complex(g[j, _X], g[j, _Y]) - e.mean_g)
        residuals[i, 0] = np.sqrt(_squared(point)) * fitted.factor if fitted.factor < np.inf else np.inf
        residuals[i, 1] = abs(_wrap(e.turns[k] - fitted.angle, e.periods[k]))
        k += 1
        residuals[i, 2] = abs(a[i, SIZE] - fitted.scale * g[j, SIZE])
        for part in range(3 if rule.criterion == _SIMILARITY else 1):
            value = residuals[i, part] / rule.tolerance[part]
            if not value <= worst:  # a residual that is not a number is never small
                worst = value if value > worst else np.inf
    return worst


# --- criterion positions --------------------------------------------------------------------------------------------


@_inlined
def _regression(e: Any) -> Any:
    """Scale and angle of least squares, and the factor of the residuals: max(1, scale of the sizes / scale)."""
    size_scale = np.exp(e.log_ratio / e.n)
    one_point = min(e.spread_a, e.spread_g) <= e.n * NO_SPREAD**2
    z = e.cross / e.spread_g if not one_point else complex(size_scale, 0.0)
    scale, theta, factor = abs(z), np.arctan2(z.imag, z.real), 1.0
    if (one_point and e.n > 1) or scale == 0.0:
        factor = np.inf
    elif size_scale > scale:
        factor = size_scale / scale
    return scale, theta, factor


# --- criterion similarity -------------------------------------------------------------------------------------------


@_compiled
def _likeliest(e: Any) -> Any:
    """Log scale and angle of the fit when orientations tell the angle only up to the shape's symmetry.

    The positions give one start, and each shape one per symmetry around its objects' mean turn; the likeliest end
    wins.
    """
    log_scale = e.size_evidence / e.weight
    best = _refine(log_scale, np.arctan2(e.cross.imag, e.cross.real), e)
    least = _misfit(best[0], best[1], e)
    for period in _PERIODS:
        if period == 0.0:
            continue
        fold, direction = round(TURN / period), 0j
        for i in range(len(e.turns)):
            if e.periods[i] == period:
                direction += phase(fold * e.turns[i])
        if direction == 0j:
            continue
        for k in range(fold):
            start = np.arctan2(direction.imag, direction.real) / fold + k * period
            end = _refine(log_scale, start, e)
            misfit = _misfit(end[0], end[1], e)
            if misfit < least:
                best, least = end, misfit
    return best


@_compiled
def _refine(log_scale: float, theta: float, e: Any) -> Any:
    """Five Gauss-Newton steps; returns log scale and angle.

    The Jacobian's columns for log s and theta are orthogonal, so each parameter has its own scalar step. A step in
    log s is limited to 1, which only pairs far from any similarity ever meet.
    """
    oriented = 0
    for i in range(len(e.turns)):
        oriented += e.periods[i] > 0.0
    for _ in range(_STEPS):
        scale = np.exp(log_scale)
        turned = scale * e.cross * phase(-theta)
        stiffness = scale**2 * e.spread_g / _VAR_POSITION
        slope = turned.real / _VAR_POSITION - stiffness + e.size_evidence - e.weight * log_scale
        step = slope / (stiffness + e.weight)
        pull = 0.0
        for i in range(len(e.turns)):
            pull += _wrap(e.turns[i] - theta, e.periods[i])
        resistance = stiffness + oriented / _VAR_ORIENTATION
        if resistance > 0.0:
            theta += (turned.imag / _VAR_POSITION + pull / _VAR_ORIENTATION) / resistance
        log_scale += min(max(step, -1.0), 1.0)
    return log_scale, theta


@_compiled
def _misfit(log_scale: float, theta: float, e: Any) -> float:
    """Minus twice the log-likelihood."""
    scale = np.exp(log_scale)
    turned = scale * e.cross * phase(-theta)
    misfit = (e.spread_a - 2 * turned.real + scale**2 * e.spread_g) / _VAR_POSITION
    misfit += e.weight * log_scale**2 - 2 * e.size_evidence * log_scale
    for i in range(len(e.turns)):
        misfit += _wrap(e.turns[i] - theta, e.periods[i]) ** 2 / _VAR_ORIENTATION
    return misfit


# --- angles ---------------------------------------------------------------------------------------------------------


@_compiled
def phase(angle: float) -> complex:
    """exp(i angle)."""
    return complex(np.cos(angle), np.sin(angle))


@_compiled
def _squared(z: complex) -> float:
    """|z|^2; infinite where a part is no number, which only sums beyond float64 leave behind."""
    square = z.real**2 + z.imag**2
    return square if square >= 0.0 else np.inf


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
