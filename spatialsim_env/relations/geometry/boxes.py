"""Measurements of the rules on batches of scenes of boxes: gap, depth, shares of volumes and of footprints, heights.

Objects are solids, unions of boxes (``scene.PARTS``). *Volume* is that of the parts, which do not overlap; a
*footprint* is the shadow of the object's whole box on the floor. Everything is exact up to rounding, float64, and a
row's value does not depend on the other rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.relations.geometry import footprints, solids
from spatialsim_env.relations.scene import (
    CENTER,
    HALF,
    HEIGHT,
    KINDS,
    N_PARTS,
    OBJECT,
    PARTS,
    SUBJECT,
    Floats,
    kind,
    rotation,
)

Array = NDArray[np.float64]
Solid = tuple[Array, NDArray[np.int64]]  # parts (B, P, 2, 3): centre and half size in the object's frame; how many (B,)

CAVITIES = np.array([kind.cavity or ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)) for kind in KINDS])  # (kinds, 2, 3)
HAS_CAVITY = np.array([kind.cavity is not None for kind in KINDS])
AXES = np.array([kind.opening[0] if kind.opening else 2 for kind in KINDS])
BODY = np.array([len(kind.parts) if kind.name != "table" else 1 for kind in KINDS])  # parts that are not legs


def solid(objects: ArrayLike) -> Solid:
    """The parts of objects (B, 19)."""
    objects = np.asarray(objects, np.float64)
    which = kind(objects)
    return PARTS[which] * objects[:, None, None, HALF], N_PARTS[which]


def whole(objects: ArrayLike) -> Solid:
    """Objects (B, 19) as one box each, what is hollow filled."""
    half = np.asarray(objects, np.float64)[:, None, HALF]
    return np.stack([np.zeros_like(half), half], axis=2), np.ones(len(half), np.int64)


def half_of(objects: ArrayLike, axis: NDArray[np.int64], sign: Array) -> Solid:
    """The parts of objects (B, 19) on one side of their centre: where sign (B,) times the axis's coordinate is >= 0.

    In the place of a part of the other side stands a second copy of one that is on this side.
    """
    parts, n = solid(objects)
    rows = np.arange(len(parts))
    middle, reach = parts[rows, :, 0, axis] * sign[:, None], parts[rows, :, 1, axis]
    low, high = np.maximum(middle - reach, 0), np.maximum(middle + reach, 0)
    parts[rows, :, 0, axis] = sign[:, None] * (low + high) / 2
    parts[rows, :, 1, axis] = (high - low) / 2
    kept = high > low
    stand_in = parts[rows, kept.argmax(axis=1)]
    return np.where(kept[:, :, None, None], parts, stand_in[:, None]), n


def apart(scenes: ArrayLike, subject: Solid | None = None, object_: Solid | None = None) -> tuple[Array, Array]:
    """(gap, depth) of each scene (B, 2, 19), (B,) each: least distance of the solids, deepest overlap of two parts.

    Args:
        scenes: (B, 2, 19).
        subject, object_: what to take for them instead of their solids.
    """
    scenes = np.asarray(scenes, np.float64)
    first, second = subject or solid(scenes[:, SUBJECT]), object_ or solid(scenes[:, OBJECT])
    out = np.empty((2, len(scenes)))
    solids.fill_apart(*_places(scenes), *first, *second, out)
    return out[0], out[1]


def gap(scenes: ArrayLike) -> Array:
    """Least distance of the two solids in metres, (B,); 0 where they meet."""
    return apart(scenes)[0]


def penetration(scenes: ArrayLike) -> Array:
    """Depth of the overlap of the two solids in metres, (B,); 0 where they do not meet.

    The most over pairs of parts of the least shift that would part the pair (separating axes, 15 of them).
    """
    return apart(scenes)[1]


def volume(objects: ArrayLike) -> Array:
    """Volume of the solids, (B,)."""
    return 8 * np.prod(solid(objects)[0][:, :, 1], axis=-1).sum(axis=-1)


def overlap(scenes: ArrayLike, of: int, on: int) -> Array:
    """Share of the footprint of ``of`` (SUBJECT or OBJECT) that lies on the footprint of ``on``, (B,)."""
    scenes = np.asarray(scenes, np.float64)
    out = np.empty(len(scenes))
    center, turn = _places(scenes)
    half = _fresh(scenes[..., HALF])
    footprints.fill_overlap(center, turn, half, of, on, out)
    return out


def centrality(points: ArrayLike, objects: ArrayLike) -> Array:
    """1 where a point (B, >= 2) is over the centre of the object's footprint, 0 over its border, below 0 outside."""
    points, objects = np.asarray(points, np.float64), np.asarray(objects, np.float64)
    out = np.empty(len(points))
    center, turn = _places(objects)
    footprints.fill_centrality(_fresh(points), center, turn, _fresh(objects[:, HALF]), out)
    return out


def nearest_of_footprint(points: ArrayLike, objects: ArrayLike) -> Array:
    """The point of each object's footprint that is nearest to a point (B, >= 2) on the floor, (B, 2)."""
    points, objects = np.asarray(points, np.float64), np.asarray(objects, np.float64)
    out = np.empty((len(points), 2))
    center, turn = _places(objects)
    footprints.fill_nearest(_fresh(points), center, turn, _fresh(objects[:, HALF]), out)
    return out


def top(objects: ArrayLike) -> Array:
    """Highest z of each object (B, 19), (B,)."""
    objects = np.asarray(objects, np.float64)
    return objects[..., HEIGHT] + _reach(rotation(objects), objects[..., HALF])


def bottom(objects: ArrayLike) -> Array:
    """Lowest z of each object (B, 19), (B,)."""
    objects = np.asarray(objects, np.float64)
    return objects[..., HEIGHT] - _reach(rotation(objects), objects[..., HALF])


def underside(objects: ArrayLike) -> Array:
    """Lowest z of each object without its legs, (B,): of a table's slab, of everything else the bottom."""
    objects = np.asarray(objects, np.float64)
    parts, _ = solid(objects)
    turn = rotation(objects)
    middle = objects[:, HEIGHT, None] + _shift(turn, parts[:, :, 0])
    low = middle - _reach(turn[:, None], parts[:, :, 1])
    body = np.arange(parts.shape[1]) < BODY[kind(objects)][:, None]
    return np.where(body, low, np.inf).min(axis=1)


def share_below(objects: ArrayLike, z: ArrayLike) -> Array:
    """Share of each object's volume below the height z (B,) or a number, (B,)."""
    objects = np.asarray(objects, np.float64)
    parts, n = solid(objects)
    heights = np.broadcast_to(np.asarray(z, np.float64), (len(objects),))
    out = np.empty(len(objects))
    center, turn = _places(objects)
    solids.fill_share_below(center, turn, parts, n, _fresh(heights), out)
    return out


def share_above(objects: ArrayLike, z: ArrayLike) -> Array:
    """Share of each object's volume above the height z (B,) or a number, (B,)."""
    return 1 - share_below(objects, z)


def share_within(scenes: ArrayLike) -> Array:
    """Share of the subject's volume in the object's cavity, (B,); 0 where the object's shape has none."""
    scenes = np.asarray(scenes, np.float64)
    parts, n = solid(scenes[:, SUBJECT])
    out = np.empty(len(scenes))
    which = kind(scenes[:, OBJECT])
    cavity = CAVITIES[which] * scenes[:, OBJECT][:, None, HALF]
    solids.fill_share_within(*_places(scenes), parts, n, _fresh(cavity), HAS_CAVITY[which], out)
    return out


def span(objects: ArrayLike) -> Array:
    """Degrees that the walls of each object (B, 19) span about its axis, (B,).

    The axis is that of its opening, else up, through the centre; walls are the parts that it misses. The angle is the
    same about every point that the walls enclose.
    """
    objects = np.asarray(objects, np.float64)
    parts, n = solid(objects)
    out = np.empty(len(objects))
    solids.fill_span(_fresh(parts), n, AXES[kind(objects)], out)
    return out


def in_frame(points: ArrayLike, objects: ArrayLike) -> Array:
    """Points (B, ..., 3) of the world as coordinates along each object's front, left and up from its centre."""
    points, objects = np.asarray(points, np.float64), np.asarray(objects, np.float64)
    between = (slice(None), *[None] * (points.ndim - 2))
    offset, turn = points - objects[:, CENTER][between], rotation(objects)[between]
    return np.asarray((offset[..., None] * turn).sum(axis=-2))


def beyond_box(point: Array, half: Array) -> Array:
    """Signed distance of a point (B, 3) to a box about the origin, (B,); below 0 inside."""
    out = np.abs(point) - half
    beyond = np.maximum(out, 0)
    return np.asarray(np.sqrt((beyond**2).sum(axis=-1)) + np.minimum(out.max(axis=-1), 0))


def nearness(middle: Array, reach: Array, half: Array) -> Array:
    """Distance of the segment middle + t reach, |t| <= 1, to the centre of a box about the origin, (B,).

    The least, over t, of max |x_i| / half_i: at most 1 where the segment meets the box. The function of t is convex
    with corners where two of the six lines +-(middle_i + t reach_i) / half_i cross, and least at one of them.
    """
    at, slope = np.concatenate([middle / half, -middle / half], -1), np.concatenate([reach / half, -reach / half], -1)
    i, j = np.triu_indices(6, 1)
    rise = slope[:, i] - slope[:, j]
    flat = np.abs(rise) < 1e-12
    t = np.clip(np.where(flat, 1.0, (at[:, j] - at[:, i]) / np.where(flat, 1.0, rise)), -1, 1)
    return np.asarray((at[:, None] + t[..., None] * slope[:, None]).max(axis=-1).min(axis=-1))


def fourfold(objects: Array) -> NDArray[np.complex128]:
    """Sum over the axes of (x + iy)^4, (B,): its angle is four times the yaw, whichever way round an object lies."""
    turn = rotation(objects)
    return np.asarray(np.square(np.square(turn[:, 0] + 1j * turn[:, 1])).sum(axis=-1))


def _shift(turn: Floats, points: Floats) -> Array:
    """Heights (B, P) of points (B, P, 3) of an object's frame above its centre."""
    return np.asarray((turn[:, None, 2] * points).sum(axis=-1))


def _reach(turn: Floats, half: Floats) -> Array:
    """Half the height of boxes (...) of rotations (..., 3, 3) and half sizes (..., 3)."""
    return np.asarray((np.abs(turn[..., 2, :]) * half).sum(axis=-1))


def _places(objects: Array) -> tuple[Array, Array]:
    """Centres (..., 3) and rotations (..., 3, 3), as fresh arrays: compiled code knows one layout."""
    return _fresh(objects[..., CENTER]), _fresh(rotation(objects))


def _fresh(values: Floats) -> Array:
    return np.array(values, np.float64, order="C")
