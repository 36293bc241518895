"""The terms of the densities of ``ideal_densities``: logs of densities of one kind of evidence each; compiled.

``sums`` holds what a matched pair says, and the numbers of the hypothesis, by the names below. Of a target with
distractors, objects are those that are matched.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from spatialsim_env.arrangements.scene import ARENA, NOISE, TURN
from spatialsim_env.arrangements.similarities import SCALES, TRANSLATION

SAME, REDRAWN, POSES, DISPLACED, MIRRORED, MIRRORED_PICTURE = range(6)  # kinds of hypotheses
TWISTED, MIS_SCALED, SWAPPED, SPREAD, RADIUS, TURNED = range(6, 12)
AMONG, AMONG_REDRAWN, ABSTRACT = range(12, 15)  # same and redrawn among distractors; same where only positions matter

N, U2, R2, Z2, ZR, S2 = range(
    6
)  # matched objects; |u|^2, |rho|^2 of the centred positions; size^2, size size0, size0^2
MEAN, SCATTER = 6, 7  # of the turns of the orientations: mean, sum of squares about it
CX, CY = 8, 9  # of conj(rho) u, as the hypothesis arranges rho
LOW, HIGH, LIMIT = 10, 11, 12  # numbers of the negative; upper limit of the rotation
X0, Y0, GAP_X, GAP_Y = 13, 14, 15, 16  # barycentre of the target, and its distance from that of the reference
AT_SCALE, AT_ANGLE = 17, 18  # mean inverse scale and angle, written by the integral
OX, OY = 19, 20  # barycentre of the target minus that of its matched objects; 0 but for distractors
N_SUMS = 21

RING_STEP = 0.02  # units, of the table over the gap of the displaced object
LEAST_SCALE, MOST_SCALE = 1 / SCALES[1], 1 / SCALES[0]  # inverse scales
REACH = 8.0  # deviations kept on either side of a mode
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
SD, SD_SIZE, SD_ANGLE = NOISE.position, NOISE.size, NOISE.orientation
VAR, VAR_SIZE, VAR_ANGLE = SD**2, SD_SIZE**2, SD_ANGLE**2
LOG_SCALES = math.log(SCALES[1] - SCALES[0])
_ROOT = math.log(math.sqrt(TURN))  # log sqrt(2 pi)
_compiled = njit(cache=True, error_model="numpy")


@_compiled
def constant_of(code: Any, sums: Any) -> float:
    """What does not depend on scale and angle, priors of the similarity included."""
    n = sums[N]
    out = -math.log(sums[LIMIT])
    if code != ABSTRACT:
        out -= n * math.log(TURN) if code == POSES else n * (_ROOT + math.log(SD_ANGLE))
    if code in (REDRAWN, POSES, SPREAD, AMONG_REDRAWN):
        return out
    out -= 2 * math.log(n) if code == RADIUS else (n - 1) * math.log(TURN * VAR) + math.log(n)
    if code not in (DISPLACED, AMONG):
        out += _log_reach(sums[GAP_X], n) + _log_reach(sums[GAP_Y], n)
    if code in (MIS_SCALED, TWISTED):
        out -= math.log(sums[HIGH] - sums[LOW])
    if code == TWISTED:
        out += math.log(TURN * VAR_ANGLE / n) / 2
    return out


@_compiled
def focus(low: Any, high: Any, mode: Any, deviation: Any) -> Any:
    """The part of [low, high] that holds the mass of a normal density, which may have its mode outside."""
    edge = min(max(mode, low), high)
    reach, beyond = REACH * deviation, abs(mode - edge)
    if beyond > 0:
        reach = min(reach, 40 * deviation**2 / beyond)
    return max(low, edge - reach), min(high, edge + reach)


@_compiled
def scale_term(code: Any, scale: Any, sums: Any, u: Any, rho: Any, data: Any) -> float:
    """The part of the log integrand that depends on the inverse scale of the positions alone."""
    n = sums[N]
    if code == MIS_SCALED:
        out = (2 * n - 3) * math.log(scale) + _log_sizes(scale, sums)
    else:
        out = (3 * len(u) - 4) * math.log(scale) - LOG_SCALES
        if code != ABSTRACT:
            out -= (sums[Z2] * scale**2 - 2 * sums[ZR] * scale + sums[S2]) / (2 * VAR_SIZE)
    if code in (REDRAWN, POSES, SPREAD, AMONG, AMONG_REDRAWN):
        for i in range(len(rho) if code == AMONG else 0, len(data)):
            side = ARENA - 2 * data[i, 0] * scale
            if side <= 0:
                return -np.inf
            out -= 2 * math.log(side)
        if code != AMONG:
            return out + _log_spread(scale, sums) if code == SPREAD else out
    if code == RADIUS:
        return out - (n - 2) * math.log(scale) + _log_radii(scale, u, rho)
    return out - (sums[U2] * scale**2 + sums[R2]) / (2 * VAR)


@_compiled
def _log_sizes(scale: Any, sums: Any) -> float:
    """Log density of the sizes where the positions have the inverse scale ``scale`` and the sizes another."""
    low, high = max(LEAST_SCALE, scale * math.exp(sums[LOW])), min(MOST_SCALE, scale * math.exp(sums[HIGH]))
    if high <= low:
        return -np.inf
    bottom, top = focus(low, high, sums[ZR] / sums[Z2], SD_SIZE / math.sqrt(sums[Z2]))
    total = -np.inf
    for i in range(len(NODES)):
        own = bottom + (top - bottom) * (NODES[i] + 1) / 2
        value = (sums[N] - 2) * math.log(own) + math.log(WEIGHTS[i])
        value -= (sums[Z2] * own**2 - 2 * sums[ZR] * own + sums[S2]) / (2 * VAR_SIZE)
        total = np.logaddexp(total, value)
    return total + math.log((top - bottom) / 2) - LOG_SCALES


@_compiled
def angle_term(code: Any, angle: Any, sums: Any, data: Any) -> float:
    """The part of the log integrand that depends on the angle of the positions alone."""
    n, mean = sums[N], sums[MEAN]
    if code in (POSES, ABSTRACT):
        return 0.0
    if code == MIRRORED_PICTURE:
        square = 0.0
        for i in range(len(data)):
            gap = data[i, 2] - angle - math.pi + data[i, 3]
            square += (gap - TURN * round(gap / TURN)) ** 2
        return -square / (2 * VAR_ANGLE)
    out = -sums[SCATTER] / (2 * VAR_ANGLE)
    if code != TWISTED:
        return out - n * (angle - mean) ** 2 / (2 * VAR_ANGLE)
    low, high = max(0.0, angle - sums[HIGH]), min(sums[LIMIT], angle - sums[LOW])
    spread = SD_ANGLE / math.sqrt(n)
    return out + _log_mass((low - mean) / spread, (high - mean) / spread) if high > low else -np.inf


@_compiled
def log_room(turn: Any, scale: Any, sums: Any, u: Any, data: Any) -> float:
    """Log of ``_room``."""
    area = _room(turn, scale, sums, u, data)
    return math.log(area) if area > 0 else -np.inf


@_compiled
def _room(turn: Any, scale: Any, sums: Any, u: Any, data: Any) -> float:
    """Area of the barycentres from which every object lies in its square and the translation in its own.

    Args:
        turn: takes the offsets of the target to those of the arrangement; the sizes are scaled by ``scale``.
    """
    left, right, bottom, top = _rectangle(turn, scale, sums, u, data, 0)
    return (right - left) * (top - bottom) if right > left and top > bottom else 0.0


@_compiled
def _rectangle(turn: Any, scale: Any, sums: Any, u: Any, data: Any, first: Any) -> Any:
    """Left, right, bottom and top of these barycentres, of the matched objects; any place will do for the ``first``."""
    shift = turn * complex(sums[OX], sums[OY])
    left, right = sums[X0] - TRANSLATION - shift.real, sums[X0] + TRANSLATION - shift.real
    bottom, top = sums[Y0] - TRANSLATION - shift.imag, sums[Y0] + TRANSLATION - shift.imag
    for i in range(first, len(u)):
        point, size = turn * u[i], scale * data[i, 0]
        left, right = max(left, size - point.real), min(right, ARENA - size - point.real)
        bottom, top = max(bottom, size - point.imag), min(top, ARENA - size - point.imag)
    return left, right, bottom, top


@_compiled
def log_room_among(turn: Any, scale: Any, sums: Any, u: Any, data: Any) -> float:
    """Log probability that the barycentre of the matched objects left room for the distractors and the translation."""
    n = int(sums[N])
    left, right, bottom, top = _rectangle(turn, scale, sums, u, data, n)
    if right <= left or top <= bottom:
        return -np.inf
    x, y, spread = sums[X0] - sums[GAP_X], sums[Y0] - sums[GAP_Y], SD / math.sqrt(n)  # the reference's barycentre
    across = _log_mass((left - x) / spread, (right - x) / spread)
    return across + _log_mass((bottom - y) / spread, (top - y) / spread)


# --- the displaced object -------------------------------------------------------------------------------------------


@_compiled
def ring(n: int, low: float, high: float, entries: int) -> Any:
    """Table over the gap |e| of the displaced object, in steps of RING_STEP: log of the mean over its distance d of

    exp(-(1 - 1/n) d^2 / (2 sigma^2)) I0(d |e| / sigma^2).
    """
    share = 1 - 1 / n
    out = np.empty(entries)
    for k in range(entries):
        gap = k * RING_STEP
        if high - low < 1e-9 or n == 1:
            out[k] = -share * low**2 / (2 * VAR) + log_bessel(low * gap / VAR) if n > 1 else 0.0
            continue
        bottom, top = focus(low, high, gap / share, SD / math.sqrt(share))
        total = -np.inf
        for i in range(len(NODES)):
            d = bottom + (top - bottom) * (NODES[i] + 1) / 2
            value = -share * d**2 / (2 * VAR) + log_bessel(d * gap / VAR)
            total = np.logaddexp(total, value + math.log(WEIGHTS[i]))
        out[k] = total + math.log((top - bottom) / 2 / (high - low))
    return out


@_compiled
def log_bessel(x: float) -> float:
    """Log of the modified Bessel function I0 (Abramowitz and Stegun 9.8.1 and 9.8.2, error 2e-7)."""
    if x < 3.75:
        y = (x / 3.75) ** 2
        tail = 0.2659732 + y * (0.0360768 + y * 0.0045813)
        return math.log(1 + y * (3.5156229 + y * (3.0899424 + y * (1.2067492 + y * tail))))
    y = 3.75 / x
    tail = 0.00916281 + y * (-0.02057706 + y * (0.02635537 + y * (-0.01647633 + y * 0.00392377)))
    tail = 0.39894228 + y * (0.01328592 + y * (0.00225319 + y * (-0.00157565 + y * tail)))
    return x - math.log(x) / 2 + math.log(tail)


@_compiled
def ring_at(table: Any, gap: float) -> float:
    """Cubic interpolation of the table; beyond its end, its last slope."""
    at = gap / RING_STEP
    k = min(max(int(at), 1), len(table) - 3)
    x = at - k
    if k == len(table) - 3 and x > 2:
        return table[-1] + (x - 2) * (table[-1] - table[-2])
    a, b, c, d = table[k - 1], table[k], table[k + 1], table[k + 2]
    return b + x * ((c - a) / 2 + x * (a - 2.5 * b + 2 * c - d / 2 + x * (1.5 * (b - c) + (d - a) / 2)))


@_compiled
def _log_reach(gap: float, n: float) -> float:
    """Log probability that the translation of one coordinate was in its range, given that the barycentres differ so."""
    spread = SD / math.sqrt(n)
    return _log_mass((-TRANSLATION - gap) / spread, (TRANSLATION - gap) / spread)


@_compiled
def log_reach_displaced(n: float, gap: complex, sums: Any) -> float:
    """Likewise for both coordinates where one object was displaced by v, whose n-th part moves the barycentre.

    Its mean over v given the gap of that object; 0 where no v that is possible makes a difference.
    """
    low, high = sums[LOW], sums[HIGH]
    margin = high / n + REACH * SD / math.sqrt(n)
    if max(abs(sums[GAP_X]), abs(sums[GAP_Y])) + margin < TRANSLATION:
        return 0.0
    share = 1 - 1 / n
    bottom, top = low, high
    if n > 1:
        bottom, top = focus(low, high, abs(gap) / share, SD / math.sqrt(share))
    concentration = abs(gap) * bottom / VAR
    half = min(math.pi, REACH / math.sqrt(max(concentration, 1e-9)))
    total, weight = -np.inf, -np.inf
    for i in range(len(NODES)):
        d = bottom + (top - bottom) * (NODES[i] + 1) / 2
        for j in range(len(NODES)):
            turn = half * NODES[j]
            value = -share * d**2 / (2 * VAR) + d * abs(gap) * math.cos(turn) / VAR
            value += math.log(WEIGHTS[i] * WEIGHTS[j])
            moved = d / n * np.exp(1j * (turn + math.atan2(gap.imag, gap.real)))
            reach = _log_reach(sums[GAP_X] - moved.real, n) + _log_reach(sums[GAP_Y] - moved.imag, n)
            weight, total = np.logaddexp(weight, value), np.logaddexp(total, value + reach)
    return total - weight


@_compiled
def _log_mass(low: float, high: float) -> float:
    """Log of the standard normal mass of an interval, low < high."""
    if low > 0:
        low, high = -high, -low
    if high - low < 1e-3:
        return -((low + high) ** 2) / 8 - _ROOT + math.log(high - low)
    if high > -25:
        return math.log((math.erfc(-high / math.sqrt(2)) - math.erfc(-low / math.sqrt(2))) / 2)
    tail = -(high**2) / 2 - math.log(-high) - _ROOT  # Mills' ratio, error 1 / high^2
    return tail + math.log1p(-math.exp(min((high**2 - low**2) / 2, -1e-12)))


# --- spread and distances to the barycentre kept --------------------------------------------------------------------


@_compiled
def _log_spread(scale: Any, sums: Any) -> float:
    """Log of p(D) / D^(m - 1), D the root of the summed squares of the offsets: noncentral chi, m = 2 (n - 1)."""
    n, was, now = sums[N], math.sqrt(sums[R2]), scale * math.sqrt(sums[U2])
    if min(was, now) < 1e-9:
        return -np.inf
    out = math.log(now) - math.log(VAR) + (n - 2) * math.log(now / was) - (now**2 + was**2) / (2 * VAR)
    return out + _log_bessel_of_order(n - 2, now * was / VAR) - (2 * n - 3) * math.log(now)


@_compiled
def _log_bessel_of_order(order: float, x: float) -> float:
    """Log of the modified Bessel function I, by the uniform expansion for large order or argument (DLMF 10.41)."""
    if order == 0:
        return log_bessel(x)
    root = math.sqrt(order**2 + x**2)
    correction = (3 / root - 5 * order**2 / root**3) / 24
    return root + order * math.log(x / (order + root)) - math.log(TURN * root) / 2 + math.log1p(correction)


@_compiled
def log_room_of_spread(scale: Any, turn: Any, sums: Any, u: Any, data: Any) -> float:
    """Log integral of r^(m - 1) times the area of ``log_room`` for offsets of this direction and any length r."""
    unit = turn / math.sqrt(sums[U2])
    left, right, bottom, top = 0.0, 0.0, 0.0, 0.0
    for i in range(len(u)):
        point = unit * u[i]
        left, right = min(left, point.real), max(right, point.real)
        bottom, top = min(bottom, point.imag), max(top, point.imag)
    longest = ARENA / max(right - left, top - bottom)
    if _room(0 * unit, scale, sums, u, data) > 0:
        least = 0.0
        for _ in range(20):
            middle = (least + longest) / 2
            if _room(middle * unit, scale, sums, u, data) > 0:
                least = middle
            else:
                longest = middle
    dimension = 2 * (len(u) - 1)
    width = min(1.0, 30 / dimension)
    total = 0.0
    for i in range(len(NODES)):
        part = 1 - width * (1 - NODES[i]) / 2
        area = _room(part * longest * unit, scale, sums, u, data)
        total += WEIGHTS[i] * area * math.exp((dimension - 1) * math.log(part))
    return dimension * math.log(longest) + math.log(total * width / 2) if total > 0 else -np.inf


@_compiled
def _log_radii(scale: Any, u: Any, rho: Any) -> float:
    """Log density of the distances to the barycentre, each normal along its own ray: the noise is small beside them."""
    n = len(u)
    square, along = 0.0, 0j
    xx, xy, yy = float(n), 0.0, float(n)
    for i in range(n):
        radius = max(abs(rho[i]), 1e-3)
        ray = rho[i] / radius
        gap = scale * abs(u[i]) - math.sqrt(radius**2 + VAR * (1 - 1 / n))
        square += gap**2
        along += gap * ray
        xx -= ray.real**2
        xy -= ray.real * ray.imag
        yy -= ray.imag**2
    determinant = max(xx * yy - xy**2, 1e-12)
    square += (yy * along.real**2 - 2 * xy * along.real * along.imag + xx * along.imag**2) / determinant
    return -square / (2 * VAR) - n * math.log(TURN * VAR) / 2 - math.log(determinant / n**2) / 2


@_compiled
def log_chain(u: Any) -> float:
    """Log density of the angles of a closed chain of four links or more, over offsets at scale 1: RadiusMatched."""
    n = len(u)
    order = np.argsort(np.abs(u))
    after, longest, total, out = np.abs(u).sum(), abs(u[order[-1]]), 0j, 0.0
    for k in range(n - 2):
        link, reached = abs(u[order[k]]), abs(total)
        after -= link
        narrow, wide = 0.0, math.pi
        if reached * link > 0:
            bound = (after**2 - reached**2 - link**2) / (2 * reached * link)
            narrow = math.acos(min(max(bound, -1.0), 1.0))
            bound = (max(0.0, 2 * longest - after) ** 2 - reached**2 - link**2) / (2 * reached * link)
            wide = math.acos(min(max(bound, -1.0), 1.0))
        out -= math.log(max(2 * (wide - narrow), 1e-9)) + math.log(max(link, 1e-9))
        total += u[order[k]]
    last, one = u[order[-1]], u[order[-2]]
    sine = abs((last.conjugate() * one).imag) / max(abs(last) * abs(one), 1e-12)
    return out + math.log(max(sine, 1e-12) / 2)
