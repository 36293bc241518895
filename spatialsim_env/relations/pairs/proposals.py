"""Scenes that probably show a predicate: poses near the relation, to be accepted or not by its margin.

Things stand upright with a random yaw on the floor, on each other, or where they fly; some lean or lie. Nothing here
decides whether a predicate holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import boxes
from spatialsim_env.relations.pairs import categories, layouts
from spatialsim_env.relations.pairs.layouts import Array, Draw
from spatialsim_env.relations.scene import FLOOR, HEIGHT, INNER, KIND_NAMES, OBJECT, SUBJECT, WALL
from spatialsim_env.relations.vocabulary import DIRECTIONAL, relative

SLIDES = 12  # steps of sliding towards contact; each goes as far as the gap
BANKED = 25.0  # degrees, standard deviation of roll and pitch of what flies
MOST_AWAY = 2.5  # metres to what stands so high that it could not be faced from nearer
CONTACTS = 0.004  # metres, largest gap of what is put side by side

_CONTAINER, _TABLE, _RING, _SPIRE, _STICK, _BLOCK = (
    KIND_NAMES.index(name) for name in ("container", "table", "ring", "spire", "stick", "block")
)


def propose(
    predicate: str, subject: NDArray[np.int64], object_: NDArray[np.int64], azimuth: Array, rng: np.random.Generator
) -> Array:
    """Scenes (n, 2, 19) of categories subject and object (n,), seen from azimuths (n,) in radians."""
    which = np.stack([subject, object_], axis=-1)
    half = categories.draw_sizes(which, rng) / 2
    draw = Draw(categories.KIND[which], half, categories.FLIES[which], azimuth, rng)
    return _bank(draw, _PROPOSALS[predicate](draw))


def _bank(draw: Draw, scenes: Array) -> Array:
    """Half of what flies rolled and pitched, so that being tilted does not tell that something was moved."""
    roll, pitch = draw.rng.normal(0, np.radians(BANKED), (2, len(draw), 2))
    turn = scene.rotation(scenes) @ layouts.roll(roll) @ layouts.pitch(np.zeros_like(pitch), pitch)
    banked = scene.objects(scenes[..., scene.CENTER], turn, draw.half, draw.kind)
    chosen = draw.flies & (draw.rng.random((len(draw), 2)) < 0.5)
    return np.where(chosen[..., None], banked, scenes)


def _apart(low: float, high: float) -> Callable[[Draw], Array]:
    """Side by side, apart by low to high times the mean full size."""

    def place(draw: Draw) -> Array:
        size = draw.half.sum(axis=(1, 2)) / 3
        yaw = layouts.yaws(draw)
        return layouts.beside(draw, layouts.upright(yaw), draw.uniform(0, 2 * np.pi), draw.uniform(low, high) * size)

    return place


def _against(draw: Draw) -> Array:
    """Side by side at one of the object's faces; half of those that can stand on the object do."""
    yaw = layouts.yaws(draw)
    quarter = draw.rng.integers(0, 4, len(draw)) * np.pi / 2
    way = yaw[:, OBJECT] + quarter
    near = layouts.beside(draw, layouts.upright(yaw), way, draw.uniform(0, CONTACTS))
    side = np.stack([-np.sin(way), np.cos(way)], axis=-1)
    corners = scene.corners(near)[..., :2]
    nearest = np.einsum("nki,ni->nk", corners[:, SUBJECT], layouts.ways(way)).argmin(axis=1)
    corner = corners[np.arange(len(draw)), SUBJECT, nearest] - near[:, OBJECT, FLOOR]
    place = draw.uniform(-0.9, 0.9) * layouts.reaches(layouts.upright(yaw[:, OBJECT]), draw.half[:, OBJECT], side)
    near[:, SUBJECT, FLOOR] += side * (place - (corner * side).sum(axis=-1))[:, None]
    stands = (draw.kind[:, OBJECT] == _BLOCK) | (draw.kind[:, OBJECT] == _TABLE)
    stands &= ~draw.flies.any(axis=1) & (draw.rng.random(len(draw)) < 0.5)
    fits = draw.half[:, SUBJECT, :2].min(axis=-1) <= draw.half[:, OBJECT, :2].min(axis=-1)
    return np.where((stands & fits)[:, None, None], _stack(draw), near)


def _stack(draw: Draw, lift: Array | float = 0.0, spread: float = 0.8) -> Array:
    """The subject above the object's top by ``lift``, its centre over the middle part of the object's footprint."""
    yaw = layouts.yaws(draw)
    return layouts.vertical(
        draw, yaw, SUBJECT, lift, draw.rng.uniform(-spread, spread, (len(draw), 2)), draw.half[:, OBJECT]
    )


def _above(most: float) -> Callable[[Draw], Array]:
    """The subject on the object, or up to ``most`` above it where it flies; one footprint within the other."""

    def place(draw: Draw) -> Array:
        lift = np.where(draw.flies[:, SUBJECT], draw.uniform(0, most), 0.0)
        offset = draw.rng.uniform(-1, 1, (len(draw), 2))
        return layouts.vertical(draw, layouts.parallel(draw), SUBJECT, lift, offset, layouts.covered_room(draw))

    return place


def _beneath(least: float, spread: float) -> Callable[[Draw], Array]:
    """The subject under the object, which flies, stands on it, or is a table with the subject between its legs."""

    def place(draw: Draw) -> Array:
        lift = np.where(draw.flies[:, OBJECT], draw.uniform(least, 0.9), 0.0)
        table = draw.kind[:, OBJECT] == _TABLE
        legs = np.abs(INNER * draw.half[:, OBJECT] - draw.half[:, SUBJECT])
        room = np.where(table[:, None], legs, layouts.covered_room(draw, SUBJECT)) + spread * draw.half[:, SUBJECT]
        yaw = np.where(draw.rng.random((len(draw), 1)) < 0.3, layouts.yaws(draw), layouts.parallel(draw))
        out = layouts.vertical(draw, yaw, OBJECT, lift, draw.rng.uniform(-1, 1, (len(draw), 2)), room)
        floor = draw.half[:, :, 2]
        under = INNER * 2 * floor[:, OBJECT] - 2 * floor[:, SUBJECT]
        flown = np.where(draw.flies[:, SUBJECT], draw.uniform(0, 1) * np.maximum(under, 0), 0.0)
        out[table, OBJECT, HEIGHT] = floor[table, OBJECT]
        out[table, SUBJECT, HEIGHT] = (floor[:, SUBJECT] + flown)[table]
        return out

    return place


def _place_in(draw: Draw) -> Array:
    """The subject in the object's cavity, on its ground."""
    room = np.maximum(INNER * draw.half[:, OBJECT] - draw.half[:, SUBJECT], 0)
    place = draw.rng.uniform(-1, 1, (len(draw), 2))
    ground = 2 * (WALL - 1) * draw.half[:, OBJECT, 2]
    yaw = np.where(draw.rng.random((len(draw), 1)) < 0.5, layouts.yaws(draw), layouts.parallel(draw))
    return layouts.vertical(draw, yaw, SUBJECT, ground, place, room)


def _out_of(draw: Draw) -> Array:
    """The subject over the opening of the object, ready to be let down, or beside it."""
    room = np.maximum(INNER * draw.half[:, OBJECT] - draw.half[:, SUBJECT], 0)
    place = draw.rng.uniform(-1, 1, (len(draw), 2))
    above = layouts.vertical(draw, layouts.yaws(draw), SUBJECT, draw.uniform(0.01, 0.4), place, room)
    beside = _apart(0.05, 0.5)(draw)
    return np.where((draw.rng.random(len(draw)) < 0.7)[:, None, None], above, beside)


def _around(draw: Draw) -> Array:
    """The object in the subject's hole: on the ground of a container, on the floor, or where one of both flies."""
    yaw = layouts.yaws(draw)
    room = np.maximum(INNER * draw.half[:, SUBJECT] - draw.half[:, OBJECT], 0)
    place = draw.rng.uniform(-1, 1, (len(draw), 2))
    container = draw.kind[:, SUBJECT] == _CONTAINER
    lift = np.where(container, 2 * (WALL - 1), -2.0) * draw.half[:, SUBJECT, 2]
    out = layouts.vertical(draw, yaw, OBJECT, lift, place, room)
    ring, tall = draw.half[:, SUBJECT, 2], draw.half[:, OBJECT, 2]
    shift = draw.uniform(-0.7, 0.7) * ring
    flown = draw.flies[:, SUBJECT] & ~container
    bottom = np.where(draw.flies[:, OBJECT], draw.uniform(0.1, 0.8), 0.0)
    out[flown, OBJECT, HEIGHT] = (tall + bottom)[flown]
    out[flown, SUBJECT, HEIGHT] = np.maximum(tall + bottom + shift, ring)[flown]
    lifted = draw.flies[:, OBJECT] & ~flown & ~container
    out[lifted, OBJECT, HEIGHT] = np.maximum(ring + shift, tall)[lifted]
    return out


def _through(draw: Draw) -> Array:
    """A stick through a standing frame or a flying ring."""
    ring = draw.kind[:, OBJECT] == _RING
    return np.where(ring[:, None, None], _through_ring(draw), _through_frame(draw))


def _in_hole(draw: Draw, along: NDArray[np.float64]) -> Array:
    """Random places (n, 3) in the object's hole, along its axes where ``along`` (3,) is 1."""
    room = INNER * draw.half[:, OBJECT] - 2 * draw.half[:, SUBJECT, 2, None]
    return room * draw.rng.uniform(-0.8, 0.8, (len(draw), 3)) * along


def _through_frame(draw: Draw) -> Array:
    """A level stick that flies through a standing frame."""
    yaw = draw.uniform(0, 2 * np.pi)
    stick = layouts.pitch(yaw + draw.rng.normal(0, 0.2, len(draw)), draw.rng.normal(0, 0.12, len(draw)))
    turn = np.stack([stick, layouts.upright(yaw)], axis=1)
    center = np.zeros((len(draw), 2, 3))
    center[:, OBJECT, 2] = draw.half[:, OBJECT, 2]
    slide = draw.uniform(-0.6, 0.6) * draw.half[:, SUBJECT, 0]
    hole = np.einsum("nij,nj->ni", turn[:, OBJECT], _in_hole(draw, np.array([0.0, 1.0, 1.0])))
    center[:, SUBJECT] = center[:, OBJECT] + hole + slide[:, None] * stick[..., 0]
    return layouts.assemble(draw, center, turn)


def _through_ring(draw: Draw) -> Array:
    """An upright stick, on the floor where it does not fly, through a ring that flies."""
    yaw = draw.uniform(0, 2 * np.pi)
    stick = layouts.pitch(yaw + draw.rng.normal(0, 0.2, len(draw)), np.pi / 2 + draw.rng.normal(0, 0.12, len(draw)))
    turn = np.stack([stick, layouts.upright(yaw)], axis=1)
    center = np.zeros((len(draw), 2, 3))
    center[:, SUBJECT] = np.einsum("nij,nj->ni", turn[:, OBJECT], _in_hole(draw, np.array([1.0, 1.0, 0.0])))
    lift = np.where(draw.flies[:, SUBJECT], draw.uniform(0, 0.5), 0.0)
    center[:, SUBJECT, 2] = layouts.heights(stick, draw.half[:, SUBJECT]) + lift
    center[:, OBJECT, 2] = center[:, SUBJECT, 2] + draw.uniform(-0.6, 0.6) * draw.half[:, SUBJECT, 0]
    return layouts.assemble(draw, center, turn)


def _leaning(draw: Draw) -> Array:
    """The subject stands tilted towards one of the object's faces and is slid to it until they touch."""
    n = len(draw)
    yaw = draw.uniform(0, 2 * np.pi)
    quarter = draw.rng.integers(0, 4, n) * np.pi / 2
    way = yaw + quarter  # from the object to the subject
    tilt = np.radians(draw.uniform(10, 48))
    stick = draw.kind[:, SUBJECT] == _STICK
    leaning = layouts.pitch(way + np.pi + draw.rng.normal(0, 0.1, n), np.pi / 2 - tilt)  # front is the long axis
    upright = np.stack([-leaning[..., 2], leaning[..., 1], leaning[..., 0]], axis=-1)
    facing = np.where(draw.rng.random(n) < 0.5, 1.0, -1.0)[:, None]
    upright[..., 0] *= facing
    upright[..., 1] *= facing
    upright = np.stack([upright[..., 0], np.cross(upright[..., 2], upright[..., 0]), upright[..., 2]], axis=-1)
    turn = np.stack([np.where(stick[:, None, None], leaning, upright), layouts.upright(yaw)], axis=1)
    out = layouts.beside(draw, turn, way, np.full(n, 0.001))
    side = np.stack([-np.sin(way), np.cos(way)], axis=-1)
    shift = draw.uniform(-0.6, 0.6) * layouts.reaches(turn[:, OBJECT], draw.half[:, OBJECT], side)
    out[:, SUBJECT, FLOOR] += side * shift[:, None]
    for _ in range(SLIDES):
        out[:, SUBJECT, FLOOR] -= layouts.ways(way) * np.minimum(boxes.gap(out), 1.0)[:, None]
    return out


def _turn_to(away: bool, tip: bool) -> Callable[[Draw], Array]:
    """The subject's front or tip towards the object, or away from it, up to a few degrees."""

    def place(draw: Draw) -> Array:
        n = len(draw)
        way, yaw = draw.uniform(0, 2 * np.pi), layouts.yaws(draw)
        spread = np.radians(10.0 if tip else 22.0)
        heading = way + (0 if away else np.pi) + draw.uniform(-spread, spread)
        turn = layouts.upright(np.stack([heading, yaw[:, OBJECT]], axis=-1))
        spire = (draw.kind[:, SUBJECT] == _SPIRE) & tip
        lying = np.stack([turn[:, SUBJECT, :, 2], -turn[:, SUBJECT, :, 1], turn[:, SUBJECT, :, 0]], axis=-1)
        turn[spire, SUBJECT] = lying[spire]
        size = draw.half.sum(axis=(1, 2)) / 3
        drop = draw.half[:, SUBJECT, 2] - draw.half[:, OBJECT, 2]
        steep = np.maximum(drop, np.where(draw.flies[:, SUBJECT], 0.0, -drop))
        steep = np.minimum(steep / np.tan(np.radians(12.0 if tip else 24.0)), MOST_AWAY)
        out = layouts.beside(
            draw, turn, way, draw.uniform(0.05, 1.0) * np.maximum(size, 0.4) + draw.uniform(0, 1) * steep
        )
        level = out[:, OBJECT, HEIGHT] + draw.rng.normal(0, 0.1, n)
        flies = draw.flies[:, SUBJECT]
        least = layouts.heights(turn[:, SUBJECT], draw.half[:, SUBJECT])
        out[flies, SUBJECT, HEIGHT] = np.maximum(level, least)[flies]
        return out

    return place


def _aligned(draw: Draw) -> Array:
    yaw = layouts.yaws(draw)
    turned = draw.rng.integers(0, 4, len(draw)) * np.pi / 2 + np.radians(draw.uniform(-8, 8))
    yaw[:, SUBJECT] = yaw[:, OBJECT] + turned
    size = draw.half.sum(axis=(1, 2)) / 3
    return layouts.beside(draw, layouts.upright(yaw), draw.uniform(0, 2 * np.pi), draw.uniform(0.05, 1.2) * size)


_OWN: dict[str, tuple[float, ...]] = {
    "in front of": (0.0,),
    "behind": (180.0,),
    "to the left of": (90.0,),
    "to the right of": (-90.0,),
}
_OWN["to the side of"] = (90.0, -90.0)
_FROM_EYE: dict[str, tuple[float, ...]] = {
    "in front of": (0.0,),
    "behind": (180.0,),
    "to the left of": (-90.0,),
    "to the right of": (90.0,),
}
_FROM_EYE["to the side of"] = (90.0, -90.0)  # degrees about z, from the direction to the eye


def _direction(angles: tuple[float, ...], seen: bool) -> Callable[[Draw], Array]:
    """The subject in a direction of the object, or of the observer."""

    def place(draw: Draw) -> Array:
        yaw = layouts.yaws(draw)
        start = draw.azimuth if seen else yaw[:, OBJECT]
        angle = np.radians(np.array(angles)[draw.rng.integers(0, len(angles), len(draw))])
        way = start + angle + np.radians(draw.uniform(-38, 38))
        return layouts.beside(draw, layouts.upright(yaw), way, draw.uniform(0.02, 1.3))

    return place


_PROPOSALS: dict[str, Callable[[Draw], Array]] = {
    "on": _stack,
    "on top of": _stack,
    "over": _above(0.9),
    "under": _beneath(0.01, 0.0),
    "below": _beneath(0.08, 0.3),
    "in": _place_in,
    "inside": _place_in,
    "outside": _out_of,
    "covering": _above(0.04),
    "around": _around,
    "passing through": _through,
    "leaning against": _leaning,
    "touching": _against,
    "near": _apart(0.02, 0.28),
    "far from": _apart(2.2, 4.0),
    "faces towards": _turn_to(away=False, tip=False),
    "faces away": _turn_to(away=True, tip=False),
    "points towards": _turn_to(away=False, tip=True),
    "points away": _turn_to(away=True, tip=True),
    "aligned to": _aligned,
    **{name: _direction(_OWN[name], seen=False) for name in DIRECTIONAL},
    **{relative(name): _direction(_FROM_EYE[name], seen=True) for name in DIRECTIONAL},
}
