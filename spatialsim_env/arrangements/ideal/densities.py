"""The densities behind the ideal observer, compiled; what they are is derived in ``ideal_observer``.

One pair after the other. A *component* is one matching and one case of the unknown (which object was displaced, which
two were swapped); its density is an integral over the inverse scale of the positions and the angle they are turned
by, with Gauss-Legendre nodes on a window that shrinks until it holds the mass and little else.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from spatialsim_env.arrangements.hard_negatives import INTERCHANGEABLE
from spatialsim_env.arrangements.ideal.integrals import integral
from spatialsim_env.arrangements.ideal.matchings import appearance_of, matchings_of
from spatialsim_env.arrangements.ideal.terms import (
    AMONG_REDRAWN,
    AT_ANGLE,
    AT_SCALE,
    CX,
    CY,
    DISPLACED,
    GAP_X,
    GAP_Y,
    HIGH,
    LEAST_SCALE,
    LIMIT,
    LOW,
    MEAN,
    MIRRORED,
    MIRRORED_PICTURE,
    MIS_SCALED,
    MOST_SCALE,
    N_SUMS,
    POSES,
    R2,
    RADIUS,
    REACH,
    REDRAWN,
    S2,
    SAME,
    SCATTER,
    SD,
    SD_ANGLE,
    SD_SIZE,
    SPREAD,
    SWAPPED,
    TURNED,
    TWISTED,
    U2,
    VAR,
    VAR_ANGLE,
    VAR_SIZE,
    X0,
    Y0,
    Z2,
    ZR,
    N,
    constant_of,
    focus,
    log_chain,
    log_reach_displaced,
)
from spatialsim_env.arrangements.scene import COLOR, ORIENTATION, POSITION, SHAPE, SIZE, TURN

NEGLIGIBLE = 40.0  # log of the share that a component left out may have, negative
_PANELS = 16  # of the angle where nothing is known about it
_S, _S_END, _C, _C_END = SHAPE.start, SHAPE.stop, COLOR.start, COLOR.stop
_X, _Y = POSITION.start, POSITION.start + 1
_compiled = njit(cache=True, error_model="numpy")


@_compiled
def log_ratios(
    target: Any, reference: Any, given: Any, parts: Any, log_weights: Any, max_rotation: Any, rings: Any,
    value: Any, exact: Any,
) -> int:  # fmt: skip
    """Log likelihood ratios of a batch of pairs; returns the first row whose objects differ, or -1.

    Args:
        target, reference: (B, n, 10) of equal numbers of objects.
        given: (B, n) rows of the reference, a matching that is taken alone where too many are open; or (B, 0), and
            such pairs are left out.
        parts: (P, 3) code and two numbers of each part of the negative, equally padded.
        log_weights: (P,) of the parts.
        rings: (P, n + 1, entries) tables of ``ring``; entries may be 0.
        value: (B,) written.
        exact: (B,) written; False also where more matchings are open than are summed.
    """
    n_max = target.shape[1]
    rows_t, rows_r = np.empty(n_max, np.int64), np.empty(n_max, np.int64)
    for b in range(target.shape[0]):
        n, m = 0, 0
        for i in range(n_max):
            if holds(target[b], i):
                rows_t[n] = i
                n += 1
        for i in range(reference.shape[1]):
            if holds(reference[b], i):
                if m < n_max:
                    rows_r[m] = i
                m += 1
        if n != m or n == 0:
            return b
        t, r = target[b][rows_t[:n]], reference[b][rows_r[:n]]
        appearance = appearance_of(t, r)
        matchings, found = matchings_of(appearance)
        exact[b] = n <= 3 or not np.any(parts[:, 0] == RADIUS)
        if found == 0:
            return b
        if found < 0:
            exact[b] = False
            if given.shape[1] == 0:
                continue
            found = 1
            for i in range(n):
                if given[b, rows_t[i]] < 0:
                    return b
                for k in range(n):
                    if rows_r[k] == given[b, rows_t[i]]:
                        matchings[0, i] = k
        none = np.empty((1, 0))
        same = _log_density(SAME, 0.0, 0.0, t, r, appearance, matchings[:found], max_rotation, none[0])
        other = -np.inf
        for part in range(len(parts)):
            code, low, high = int(parts[part, 0]), parts[part, 1], parts[part, 2]
            density = _log_density(code, low, high, t, r, appearance, matchings[:found], max_rotation, rings[part, n])
            other = np.logaddexp(other, log_weights[part] + density)
        value[b] = same - other if same > -np.inf or other > -np.inf else -np.inf
    return -1


@_compiled
def holds(scene: Any, row: int) -> bool:
    total = 0.0
    for k in range(_S, _S_END):
        total += scene[row, k]
    return total > 0.5


# --- one hypothesis -------------------------------------------------------------------------------------------------


@_compiled
def _log_density(
    code: Any, low: Any, high: Any, t: Any, r: Any, appearance: Any, matchings: Any, max_rotation: Any, ring: Any
) -> float:
    """Log density of a target given its reference, up to a constant that all hypotheses share."""
    n = len(t)
    cases = n if code == DISPLACED else max(1, n * (n - 1) // 2) if code == SWAPPED else 1
    bounds = np.empty(len(matchings) * cases)
    likely = np.empty(len(matchings))
    sums, u, rho, data = np.zeros(N_SUMS), np.empty(n, np.complex128), np.empty(n, np.complex128), np.empty((n, 4))
    first, second = np.zeros(cases, np.int64), np.zeros(cases, np.int64)
    admitted = cases
    if code == SWAPPED:
        admitted = _pairs(t, first, second)
        if admitted == 0:  # such a scene stays as it is
            code, admitted = SAME, 1
    elif code == DISPLACED:
        first[:] = np.arange(n)
    elif code == SPREAD and n == 1:
        code = REDRAWN
    elif code == RADIUS and n <= 3:  # the mirror image, turned by any angle
        code = TURNED
    sums[LOW], sums[HIGH], sums[LIMIT] = low, high, max(max_rotation, 1e-6)
    for k in range(len(matchings)):
        sums_of(t, r, matchings[k], sums, u, rho, data)
        likely[k] = 0.0
        for i in range(n):
            likely[k] += appearance[i, matchings[k, i]]
        for case in range(cases):
            bounds[k * cases + case] = -np.inf
            if case < admitted:
                bounds[k * cases + case] = likely[k] + bound_of(code, first[case], second[case], sums, u, rho, data)
    total, gap, at = -np.inf, -np.inf, -1
    for index in np.argsort(-bounds):
        if bounds[index] == -np.inf or bounds[index] + gap < total - NEGLIGIBLE:
            break
        k, case = index // cases, index % cases
        if k != at:
            sums_of(t, r, matchings[k], sums, u, rho, data)
            at = k
        value = likely[k] + _component(code, first[case], second[case], sums, u, rho, data, ring)
        total = np.logaddexp(total, value)
        gap = max(gap, value - bounds[index])
    return total - math.log(admitted)


@_compiled
def _pairs(t: Any, first: Any, second: Any) -> int:
    """The pairs of different identity that ``Swapped`` chooses from, and their number."""
    found = 0
    for i in range(len(t)):
        for j in range(i + 1, len(t)):
            differ = False
            for k in range(_S, _S_END):
                if t[i, k] != t[j, k]:
                    differ = True
            for k in range(_C, _C_END):
                if abs(np.float32(t[i, k]) - np.float32(t[j, k])) > INTERCHANGEABLE:
                    differ = True
            if differ:
                first[found], second[found] = i, j
                found += 1
    return found


@_compiled
def sums_of(t: Any, r: Any, matching: Any, sums: Any, u: Any, rho: Any, data: Any) -> None:
    """What a matched pair says: centred positions, sizes and orientations by object, and their sums."""
    n = len(t)
    center_t, center_r, turn = 0j, 0j, 0.0
    for i in range(n):
        j = matching[i]
        u[i], rho[i] = complex(t[i, _X], t[i, _Y]), complex(r[j, _X], r[j, _Y])
        center_t += u[i] / n
        center_r += rho[i] / n
        data[i, 0], data[i, 1], data[i, 2], data[i, 3] = t[i, SIZE], r[j, SIZE], t[i, ORIENTATION], r[j, ORIENTATION]
        turn += (data[i, 2] - data[i, 3]) / n
    sums[N], sums[MEAN] = n, turn
    sums[U2 : S2 + 1] = 0.0
    sums[SCATTER] = 0.0
    for i in range(n):
        u[i] -= center_t
        rho[i] -= center_r
        sums[U2] += abs(u[i]) ** 2
        sums[R2] += abs(rho[i]) ** 2
        sums[Z2] += data[i, 0] ** 2
        sums[ZR] += data[i, 0] * data[i, 1]
        sums[S2] += data[i, 1] ** 2
        sums[SCATTER] += (data[i, 2] - data[i, 3] - turn) ** 2
    sums[X0], sums[Y0] = center_t.real, center_t.imag
    sums[GAP_X], sums[GAP_Y] = center_t.real - center_r.real, center_t.imag - center_r.imag


@_compiled
def cross_of(code: Any, first: Any, second: Any, u: Any, rho: Any) -> complex:
    """Sum of conj(rho) u, with rho as the negative arranges it."""
    total = 0j
    if code in (MIRRORED, MIRRORED_PICTURE, TURNED):
        for i in range(len(rho)):
            total -= rho[i] * u[i]
        return total
    for i in range(len(rho)):
        total += rho[i].conjugate() * u[i]
    if code == SWAPPED:
        total -= (rho[first] - rho[second]).conjugate() * (u[first] - u[second])
    return total


@_compiled
def bound_of(code: Any, first: Any, second: Any, sums: Any, u: Any, rho: Any, data: Any) -> float:
    """At least the greatest exponent of a component: every kind of evidence fitted by itself."""
    out = -(sums[S2] - sums[ZR] ** 2 / sums[Z2]) / (2 * VAR_SIZE)
    if code != POSES and code != MIRRORED_PICTURE:
        out -= sums[SCATTER] / (2 * VAR_ANGLE)
    if code in (REDRAWN, POSES, SPREAD, RADIUS, AMONG_REDRAWN):
        return out
    cross, u2, r2 = cross_of(code, first, second, u, rho), sums[U2], sums[R2]
    if code == DISPLACED and len(u) > 1:
        share = len(u) / (len(u) - 1)
        cross -= share * rho[first].conjugate() * u[first]
        u2 -= share * abs(u[first]) ** 2
        r2 -= share * abs(rho[first]) ** 2
    fitted = abs(cross) ** 2 / u2 if u2 > 1e-9 else 0.0
    return out - max(r2 - fitted, 0.0) / (2 * VAR)


@_compiled
def _component(code: Any, first: Any, second: Any, sums: Any, u: Any, rho: Any, data: Any, ring: Any) -> float:
    """Log density of one matching and one case: the windows that hold the mass, and the integral over them."""
    n, cross = sums[N], cross_of(code, first, second, u, rho)
    sums[CX], sums[CY] = cross.real, cross.imag
    placed = code not in (REDRAWN, POSES, SPREAD, RADIUS) and sums[U2] > 1e-9 and abs(cross) > 1e-9
    constant = constant_of(code, sums)
    if code == RADIUS:
        constant += log_chain(u)
    # inverse scale: the evidence of the sizes, and that of the positions where there is any
    mode, deviation = sums[ZR] / sums[Z2], SD_SIZE / math.sqrt(sums[Z2])
    least, most = LEAST_SCALE, MOST_SCALE
    if code == MIS_SCALED:
        least, most = LEAST_SCALE / math.exp(sums[HIGH]), MOST_SCALE / math.exp(sums[LOW])
        bottom, top = max(least, mode * math.exp(-sums[HIGH]) / 1.5), min(most, mode * math.exp(-sums[LOW]) * 1.5)
    else:
        bottom, top = focus(least, most, mode, deviation)
    if placed:
        a, z = focus(least, most, abs(cross) / sums[U2], SD / math.sqrt(sums[U2]))
        bottom, top = min(bottom, a), max(top, z)
    elif (code in (SPREAD, RADIUS)) and sums[U2] > 1e-9:
        a, z = focus(least, most, math.sqrt(sums[R2] / sums[U2]), SD / math.sqrt(sums[U2]))
        bottom, top = min(bottom, a), max(top, z)
    # angle: likewise
    spread = SD_ANGLE / math.sqrt(n)
    low, high, centre = 0.0, sums[LIMIT], sums[MEAN]
    if code in (POSES, MIRRORED_PICTURE):  # orientations lie in [0, 2 pi) before the turn
        low, high = max(low, data[:, 2].max() - TURN), min(high, data[:, 2].min())
        if high <= low:
            return -np.inf
    if code == POSES:
        total, step = -np.inf, (high - low) / _PANELS
        for panel in range(_PANELS):
            left = low + panel * step
            part = integral(code, first, sums, u, rho, data, ring, bottom, top, left, left + step)
            total = np.logaddexp(total, part)
        return constant + total
    if code == TWISTED:
        low, high = low + sums[LOW], high + sums[HIGH]
        left = max(low, centre + sums[LOW] - REACH * spread)
        right = min(high, centre + sums[HIGH] + REACH * spread)
        if right <= left:
            return -np.inf
        return constant + integral(code, first, sums, u, rho, data, ring, bottom, top, left, right)
    total = -np.inf
    for lap in range(-1, 2):
        if code != MIRRORED_PICTURE and lap != 0:
            continue
        mode = centre
        if code == MIRRORED_PICTURE:
            mode = _mirrored_turn(data, 0.5 * (low + high)) + TURN * lap
            if mode < low - 2 or mode > high + 2:
                continue
        left, right = focus(low, high, mode, spread)
        if placed and code != TURNED:
            turn = math.atan2(cross.imag, cross.real)
            turn += TURN * round((mode - turn) / TURN)
            a, z = focus(low, high, turn, min(1.0, SD / math.sqrt(abs(cross) * max(bottom, 0.05))))
            left, right = min(left, a), max(right, z)
        total = np.logaddexp(total, integral(code, first, sums, u, rho, data, ring, bottom, top, left, right))
    if code == DISPLACED:
        turned = sums[AT_SCALE] * np.exp(-1j * sums[AT_ANGLE]) * u[first] - rho[first]
        total += log_reach_displaced(n, turned, sums)
    return constant + total


@_compiled
def _mirrored_turn(data: Any, near: Any) -> float:
    """The turn that the orientations show if their picture was mirrored, modulo 2 pi, the value next to ``near``."""
    direction = 0j
    for i in range(len(data)):
        direction += np.exp(1j * (data[i, 2] + data[i, 3] - math.pi))
    turn = math.atan2(direction.imag, direction.real)
    return turn + TURN * round((near - turn) / TURN)
