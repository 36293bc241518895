"""The densities of targets among distractors and of abstract ones, against redrawn negatives; compiled.

What they are is derived in ``ideal_observer``; windows and integrals are those of ``ideal_densities``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from spatialsim_env.arrangements.ideal.densities import NEGLIGIBLE, bound_of, cross_of, holds, sums_of
from spatialsim_env.arrangements.ideal.integrals import integral
from spatialsim_env.arrangements.ideal.matchings import appearance_of, matchings_of
from spatialsim_env.arrangements.ideal.terms import (
    ABSTRACT,
    AMONG,
    AMONG_REDRAWN,
    CX,
    CY,
    GAP_X,
    GAP_Y,
    LEAST_SCALE,
    LIMIT,
    LOG_SCALES,
    MEAN,
    MOST_SCALE,
    N_SUMS,
    NODES,
    OX,
    OY,
    R2,
    SD,
    SD_ANGLE,
    SD_SIZE,
    U2,
    VAR,
    WEIGHTS,
    X0,
    Y0,
    Z2,
    ZR,
    N,
    constant_of,
    focus,
)
from spatialsim_env.arrangements.scene import ARENA, COLOR, ORIENTATION, POSITION, SIZE, SIZES, TURN
from spatialsim_env.arrangements.similarities import TRANSLATION

MOST_ABSTRACT = 8  # objects of abstract scenes, all of whose matchings are summed
_GRID = 6  # points a side where a barycentre is integrated over
_C, _C_END = COLOR.start, COLOR.stop
_X, _Y = POSITION.start, POSITION.start + 1
_LEAST_SIZE, _MOST_SIZE = SIZES
_compiled = njit(cache=True, error_model="numpy")


@_compiled
def log_ratios_of_variants(target: Any, reference: Any, abstract: Any, max_rotation: Any, value: Any) -> int:
    """Log likelihood ratios of a batch of pairs; returns the first row whose objects do not fit, or -1.

    Args:
        target: (B, m, 10) of the objects of the reference and, unless ``abstract``, others.
        reference: (B, n, 10), of at most MOST_ABSTRACT objects if ``abstract``.
        value: (B,) written; left as it is where more matchings are open than are summed.
    """
    for b in range(len(target)):
        t, r = _held(target[b]), _held(reference[b])
        if len(r) == 0 or len(t) < len(r) or (abstract and len(t) > len(r)):
            return b
        if abstract:
            value[b] = _abstract_ratio(t, r, max_rotation)
            continue
        appearance = appearance_of(r, t)
        matchings, found = matchings_of(appearance)
        if found == 0:
            return b
        if found > 0:
            same = _among(AMONG, t, r, appearance, matchings[:found], max_rotation)
            other = _among(AMONG_REDRAWN, t, r, appearance, matchings[:found], max_rotation)
            value[b] = same - other if same > -np.inf else -np.inf
    return -1


@_compiled
def _held(scene: Any) -> Any:
    """The objects of a scene, without padding."""
    rows = np.empty(len(scene), np.int64)
    n = 0
    for i in range(len(scene)):
        if holds(scene, i):
            rows[n] = i
            n += 1
    return scene[rows[:n]]


@_compiled
def _limits(t: Any, first: Any, max_rotation: Any) -> Any:
    """Least and most inverse scale and angle for which the objects from ``first`` on may be just drawn."""
    least, most, low, high = LEAST_SCALE, MOST_SCALE, 0.0, max(max_rotation, 1e-6)
    for i in range(first, len(t)):
        least, most = max(least, _LEAST_SIZE / t[i, SIZE]), min(most, _MOST_SIZE / t[i, SIZE])
        low, high = max(low, t[i, ORIENTATION] - TURN), min(high, t[i, ORIENTATION])
    return least, most, low, high


# --- distractors ----------------------------------------------------------------------------------------------------


@_compiled
def _among(code: Any, t: Any, r: Any, appearance: Any, matchings: Any, max_rotation: Any) -> float:
    """Log density of a target with distractors, up to a constant that both hypotheses share."""
    n, m = len(r), len(t)
    sums, u, rho, data = np.zeros(N_SUMS), np.empty(m, np.complex128), np.empty(n, np.complex128), np.empty((m, 4))
    sums[LIMIT] = max(max_rotation, 1e-6)
    bounds, likely = np.empty(len(matchings)), np.empty(len(matchings))
    for k in range(len(matchings)):
        _sums_among(_in_order(t, matchings[k]), r, sums, u, rho, data)
        likely[k] = 0.0
        for i in range(n):
            likely[k] += appearance[i, matchings[k, i]]
        bounds[k] = likely[k] + bound_of(code, 0, 0, sums, u, rho, data)
    total, gap = -np.inf, -np.inf
    for k in np.argsort(-bounds):
        if bounds[k] + gap < total - NEGLIGIBLE:
            break
        ordered = _in_order(t, matchings[k])
        if _drawn_colors(ordered, n):
            _sums_among(ordered, r, sums, u, rho, data)
            value = likely[k] + _component_among(code, ordered, sums, u, rho, data)
            total, gap = np.logaddexp(total, value), max(gap, value - bounds[k])
    return total


@_compiled
def _in_order(t: Any, matching: Any) -> Any:
    """The objects of the target in the order of the reference's, then the distractors."""
    out, taken = np.empty_like(t), np.zeros(len(t), np.bool_)
    for i in range(len(matching)):
        out[i] = t[matching[i]]
        taken[matching[i]] = True
    k = len(matching)
    for i in range(len(t)):
        if not taken[i]:
            out[k] = t[i]
            k += 1
    return out


@_compiled
def _drawn_colors(t: Any, first: Any) -> bool:
    """Whether the objects from ``first`` on have colours as they are drawn, without noise."""
    for i in range(first, len(t)):
        for k in range(_C, _C_END):
            if t[i, k] < 0 or t[i, k] > 1:
                return False
    return True


@_compiled
def _sums_among(t: Any, r: Any, sums: Any, u: Any, rho: Any, data: Any) -> None:
    """``sums_of`` the matched objects, which come first; offsets of the others, too, are from their barycentre."""
    n, m = len(r), len(t)
    sums_of(t[:n], r, np.arange(n), sums, u[:n], rho, data[:n])
    center, whole = complex(sums[X0], sums[Y0]), 0j
    for i in range(m):
        place = complex(t[i, _X], t[i, _Y])
        whole += place / m
        if i >= n:
            u[i], data[i, 0] = place - center, t[i, SIZE]
    moved = whole - center
    sums[OX], sums[OY] = moved.real, moved.imag
    sums[X0], sums[Y0] = whole.real, whole.imag
    sums[GAP_X] += moved.real
    sums[GAP_Y] += moved.imag


@_compiled
def _component_among(code: Any, t: Any, sums: Any, u: Any, rho: Any, data: Any) -> float:
    """Log density of one matching."""
    least, most, low, high = _limits(t, len(rho), sums[LIMIT])
    if least >= most or low >= high:
        return -np.inf
    cross = cross_of(code, 0, 0, u, rho)
    sums[CX], sums[CY] = cross.real, cross.imag
    bottom, top = focus(least, most, sums[ZR] / sums[Z2], SD_SIZE / math.sqrt(sums[Z2]))
    left, right = focus(low, high, sums[MEAN], SD_ANGLE / math.sqrt(sums[N]))
    if code == AMONG and sums[U2] > 1e-9 and abs(cross) > 1e-9:
        a, b, c, d = _window(cross, sums, least, most, low, high, sums[MEAN])
        bottom, top, left, right = min(a, bottom), max(b, top), min(c, left), max(d, right)
    ring = np.empty(0)
    return constant_of(code, sums) + integral(code, 0, sums, u, rho, data, ring, bottom, top, left, right)


@_compiled
def _window(cross: Any, sums: Any, least: Any, most: Any, low: Any, high: Any, near: Any) -> Any:
    """Where the positions alone put inverse scale and angle, the angle next to ``near`` of those that are the same."""
    bottom, top = focus(least, most, abs(cross) / sums[U2], SD / math.sqrt(sums[U2]))
    turn = math.atan2(cross.imag, cross.real)
    turn += TURN * round((near - turn) / TURN)
    left, right = focus(low, high, turn, min(1.0, SD / math.sqrt(abs(cross) * bottom)))
    return bottom, top, left, right


# --- abstract scenes ------------------------------------------------------------------------------------------------


@_compiled
def _abstract_ratio(t: Any, r: Any, max_rotation: Any) -> float:
    """Log likelihood ratio of a target of which only the positions are the reference's."""
    n = len(t)
    sums, u, rho, data = np.zeros(N_SUMS), np.empty(n, np.complex128), np.empty(n, np.complex128), np.empty((n, 4))
    sums[LIMIT] = max(max_rotation, 1e-6)
    sums_of(t, r, np.arange(n), sums, u, rho, data)
    least, most, low, high = _limits(t, 0, max_rotation)
    if least >= most or low >= high:
        return -np.inf
    same = _log_same_places(sums, u, rho, data, least, most, low, high)
    other = _log_drawn_places(r, sums, u, least, most, low, high)
    return same - other if same > -np.inf else -np.inf


@_compiled
def _log_same_places(
    sums: Any, u: Any, rho: Any, data: Any, least: Any, most: Any, low: Any, high: Any
) -> float:  # fmt: skip
    """Log density of the reference's places, perturbed, in any order."""
    n = len(u)
    orders = _orders(n)
    crosses, bounds = np.empty(len(orders), np.complex128), np.empty(len(orders))
    for k in range(len(orders)):
        crosses[k] = 0j
        for i in range(n):
            crosses[k] += rho[orders[k, i]].conjugate() * u[i]
        bounds[k] = (abs(crosses[k]) ** 2 / max(sums[U2], 1e-9) - sums[R2]) / (2 * VAR)
    total, gap, ring = -np.inf, -np.inf, np.empty(0)
    for k in np.argsort(-bounds):
        if bounds[k] + gap < total - NEGLIGIBLE:
            break
        sums[CX], sums[CY] = crosses[k].real, crosses[k].imag
        bottom, top, left, right = least, most, low, high
        if abs(crosses[k]) > 1e-9:
            bottom, top, left, right = _window(crosses[k], sums, least, most, low, high, (low + high) / 2)
        value = integral(ABSTRACT, 0, sums, u, rho, data, ring, bottom, top, left, right)
        total, gap = np.logaddexp(total, value), max(gap, value - bounds[k])
    return constant_of(ABSTRACT, sums) + total - math.lgamma(n + 1)


@_compiled
def _orders(n: Any) -> Any:
    """All orders of n things, (n!, n)."""
    out = np.zeros((1, 1), np.int64)
    for last in range(1, n):
        longer = np.empty((len(out) * (last + 1), last + 1), np.int64)
        for k in range(len(out)):
            for place in range(last + 1):
                row = longer[k * (last + 1) + place]
                row[:place], row[place], row[place + 1 :] = out[k, :place], last, out[k, place:]
        out = longer
    return out


@_compiled
def _log_drawn_places(r: Any, sums: Any, u: Any, least: Any, most: Any, low: Any, high: Any) -> float:
    """Log density of places drawn for objects of the reference's sizes, in any order; their noise is left out."""
    n = len(u)
    sizes, margins = np.sort(r[:, SIZE]), np.empty(n)
    total = 0.0
    for i in range(len(NODES)):
        scale = least + (most - least) * (NODES[i] + 1) / 2
        at_scale = 0.0
        for j in range(len(NODES)):
            angle = low + (high - low) * (NODES[j] + 1) / 2
            turned = scale * complex(math.cos(angle), -math.sin(angle)) * u
            at_scale += WEIGHTS[j] * _room_in_any_order(turned, sizes, margins, sums)
        total += WEIGHTS[i] * scale ** (3 * n - 4) * at_scale
    if total <= 0:
        return -np.inf
    sides = 2 * np.log(ARENA - 2 * sizes).sum()
    return math.log(total * (most - least) * (high - low) / 4) - LOG_SCALES - math.log(sums[LIMIT]) - sides


@_compiled
def _room_in_any_order(offsets: Any, sizes: Any, margins: Any, sums: Any) -> float:
    """Integral over the barycentre of the share of matchings by which every object lies in its square.

    Squares are nested, so the matchings that fit are counted object by object, those next to the border first.
    """
    left, right = sums[X0] - TRANSLATION, sums[X0] + TRANSLATION
    bottom, top = sums[Y0] - TRANSLATION, sums[Y0] + TRANSLATION
    for offset in offsets:
        left, right = max(left, sizes[0] - offset.real), min(right, ARENA - sizes[0] - offset.real)
        bottom, top = max(bottom, sizes[0] - offset.imag), min(top, ARENA - sizes[0] - offset.imag)
    if right <= left or top <= bottom:
        return 0.0
    n, total = len(offsets), 0.0
    for i in range(_GRID):
        x = left + (right - left) * (i + 0.5) / _GRID
        for j in range(_GRID):
            y = bottom + (top - bottom) * (j + 0.5) / _GRID
            for k in range(n):
                a, b = x + offsets[k].real, y + offsets[k].imag
                margins[k] = min(min(a, ARENA - a), min(b, ARENA - b))
            if margins.min() >= sizes[-1]:
                total += 1.0
                continue
            margins.sort()
            share, fitting = 1.0, 0
            for k in range(n):
                while fitting < n and sizes[fitting] <= margins[k]:
                    fitting += 1
                share *= max(fitting - k, 0) / (n - k)
            total += share
    return total / _GRID**2 * (right - left) * (top - bottom)
