"""Integrals over inverse scale and angle, on a window that shrinks to what holds the mass; compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from spatialsim_env.arrangements.ideal.terms import (
    AMONG,
    AMONG_REDRAWN,
    AT_ANGLE,
    AT_SCALE,
    CX,
    CY,
    DISPLACED,
    NODES,
    POSES,
    RADIUS,
    REDRAWN,
    SPREAD,
    TURNED,
    VAR,
    WEIGHTS,
    angle_term,
    log_bessel,
    log_room,
    log_room_among,
    log_room_of_spread,
    ring_at,
    scale_term,
)

_FEW, _ = np.polynomial.legendre.leggauss(16)
_SHALLOW = 24.0  # log of the share that a node left out may have, negative
_compiled = njit(cache=True, error_model="numpy")


@_compiled
def integral(
    code: Any, case: Any, sums: Any, u: Any, rho: Any, data: Any, ring: Any,
    bottom: Any, top: Any, left: Any, right: Any,
) -> float:  # fmt: skip
    """Log of the integral over inverse scale and angle; leaves the mean of both in ``sums``."""
    few = np.empty((len(_FEW), len(_FEW)))
    ends = np.array([bottom, top, left, right])
    for _ in range(12):
        highest = _fill(code, case, sums, u, rho, data, ring, ends, _FEW, few)
        if highest == -np.inf:
            break
        left_of_scale = _shrink(few, highest, 0, ends)
        left_of_angle = _shrink(few, highest, 1, ends)
        if min(left_of_scale, left_of_angle) > 0.75:
            break
    many = np.empty((len(NODES), len(NODES)))
    highest = _fill(code, case, sums, u, rho, data, ring, ends, NODES, many)
    if highest == -np.inf:
        return -np.inf
    total, scale, angle = 0.0, 0.0, 0.0
    for i in range(len(NODES)):
        for j in range(len(NODES)):
            mass = WEIGHTS[i] * WEIGHTS[j] * math.exp(many[i, j] - highest)
            total += mass
            scale += mass * NODES[i]
            angle += mass * NODES[j]
    half_scale, half_angle = (ends[1] - ends[0]) / 2, (ends[3] - ends[2]) / 2
    sums[AT_SCALE] = (ends[0] + ends[1]) / 2 + half_scale * scale / total
    sums[AT_ANGLE] = (ends[2] + ends[3]) / 2 + half_angle * angle / total
    return highest + math.log(total * half_scale * half_angle)


@_compiled
def _shrink(values: Any, highest: Any, axis: Any, ends: Any) -> float:
    """Cut one side of the window to the nodes that matter and one more at either end; returns the share that is left.

    Where the mass lies between two nodes both stay, so that a window is never cut to less than what holds it.
    """
    last = len(_FEW) - 1
    first, end = last, 0
    for i in range(len(_FEW)):
        for j in range(len(_FEW)):
            if (values[i, j] if axis == 0 else values[j, i]) > highest - _SHALLOW:
                first, end = min(first, i), max(end, i)
    low = _FEW[first - 1] if first > 0 else -1.0
    high = _FEW[end + 1] if end < last else 1.0
    middle, half = (ends[2 * axis] + ends[2 * axis + 1]) / 2, (ends[2 * axis + 1] - ends[2 * axis]) / 2
    ends[2 * axis], ends[2 * axis + 1] = middle + low * half, middle + high * half
    return (high - low) / 2


@_compiled
def _fill(
    code: Any, case: Any, sums: Any, u: Any, rho: Any, data: Any, ring: Any, ends: Any, nodes: Any, values: Any
) -> float:
    """Log of the integrand at the nodes of a window, (scale, angle); returns the greatest."""
    at_scale, scales = np.empty(len(nodes)), np.empty(len(nodes))
    for i in range(len(nodes)):
        scales[i] = ends[0] + (ends[1] - ends[0]) * (nodes[i] + 1) / 2
        at_scale[i] = scale_term(code, scales[i], sums, u, rho, data)
    highest, cross = -np.inf, complex(sums[CX], sums[CY])
    for j in range(len(nodes)):
        angle = ends[2] + (ends[3] - ends[2]) * (nodes[j] + 1) / 2
        at_angle = angle_term(code, angle, sums, data)
        turn = complex(math.cos(angle), -math.sin(angle))
        cosine = (turn * cross).real / VAR
        for i in range(len(nodes)):
            value = at_scale[i] + at_angle
            if code in (REDRAWN, POSES, AMONG_REDRAWN):
                value += log_room(scales[i] * turn, scales[i], sums, u, data)
            elif code == SPREAD:
                value += log_room_of_spread(scales[i], turn, sums, u, data)
            elif code == TURNED:
                value += log_bessel(scales[i] * abs(cross) / VAR)
            elif code != RADIUS:
                value += scales[i] * cosine
                if code == AMONG:
                    value += log_room_among(scales[i] * turn, scales[i], sums, u, data)
                elif code == DISPLACED:
                    value += ring_at(ring, abs(scales[i] * turn * u[case] - rho[case]))
            values[i, j] = value
            highest = max(highest, value)
    return highest
