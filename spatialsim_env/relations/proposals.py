"""Scenes that probably show a predicate: poses near the relation, to be accepted or not by its margin.

Things stand upright with a random yaw on the floor, on each other, or where they fly; some lean or lie. Nothing here
decides whether a predicate holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations import boxes, categories, scene
from spatialsim_env.relations.scene import KIND_NAMES, KINDS, OBJECT, SUBJECT, WALL
from spatialsim_env.relations.vocabulary import DIRECTIONAL

Array = NDArray[np.float64]

MIDDLE = 0.6  # metres from the middle of the room, along x and y, that the two things' middle is at most
HIGHEST = 1.2  # metres from the floor to the bottom of what flies alone
SLIDES = 12  # steps of sliding towards contact; each goes as far as the gap
MOST_AWAY = 2.5  # metres to what stands so high that it could not be faced from nearer
CONTACTS = 0.004  # metres, largest gap of what is put side by side

_HOLE = 1 - 2 * WALL
_TIP = np.array([shape.tip if shape.tip is not None else 0 for shape in KINDS])
_CONTAINER, _TABLE, _RING, _SPIRE, _STICK, _FRAME, _BLOCK = (
    KIND_NAMES.index(name) for name in ("container", "table", "ring", "spire", "stick", "frame", "block")
)


@dataclass(frozen=True)
class Draw:
    """Two things for each of n scenes, without places. Index 0 of the second axis is the subject."""

    kind: NDArray[np.int64]  # (n, 2)
    half: Array  # (n, 2, 3)
    flies: NDArray[np.bool_]  # (n, 2)
    azimuth: Array  # (n,), radians: of the observer's eye, seen from the scene
    rng: np.random.Generator

    def __len__(self) -> int:
        return len(self.kind)

    def uniform(self, low: float | Array, high: float | Array) -> Array:
        """One number a scene."""
        return self.rng.uniform(low, high, len(self))

    def sign(self) -> Array:
        """1 or -1, one a scene."""
        return np.where(self.rng.random(len(self)) < 0.5, 1.0, -1.0)


def propose(
    predicate: str, subject: NDArray[np.int64], object_: NDArray[np.int64], azimuth: Array, rng: np.random.Generator
) -> Array:
    """Scenes (n, 2, 19) of categories subject and object (n,), seen from azimuths (n,) in radians."""
    which = np.stack([subject, object_], axis=-1)
    half = categories.drawn_sizes(which, rng) / 2
    draw = Draw(categories.KIND[which], half, categories.FLIES[which], azimuth, rng)
    return _PROPOSALS[predicate](draw)


def _assembled(draw: Draw, center: Array, turn: Array) -> Array:
    """Scenes of centres (n, 2, 3) and rotations (n, 2, 3, 3), moved together to a place near the room's middle."""
    middle = (center[:, 0, :2] + center[:, 1, :2]) / 2
    center = center.copy()
    center[..., :2] += (draw.rng.uniform(-MIDDLE, MIDDLE, (len(draw), 2)) - middle)[:, None]
    return scene.objects(center, turn, draw.half, draw.kind)


def _reach(turn: Array, half: Array, way: Array) -> Array:
    """How far boxes of rotations (n, 3, 3) and half sizes (n, 3) reach along ways (n, 2) on the floor, (n,)."""
    return np.abs(np.einsum("ni,nij->nj", way, turn[:, :2]) * half).sum(axis=-1)


def _height(turn: Array, half: Array) -> Array:
    """Half the height of boxes of rotations (n, 3, 3) and half sizes (n, 3), (n,)."""
    return np.abs(turn[:, 2] * half).sum(axis=-1)


def _way(angle: Array) -> Array:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _yaws(draw: Draw) -> Array:
    return draw.rng.uniform(0, 2 * np.pi, (len(draw), 2))


def _beside(draw: Draw, turn: Array, way: Array, clearance: Array) -> Array:
    """The subject beside the object in directions (n,) in radians, their boxes apart by ``clearance`` along them."""
    heading = _way(way)
    apart = sum(_reach(turn[:, i], draw.half[:, i], heading) for i in (SUBJECT, OBJECT)) + clearance
    center = np.zeros((len(draw), 2, 3))
    center[:, SUBJECT, :2] = heading * apart[:, None]
    height = np.stack([_height(turn[:, i], draw.half[:, i]) for i in (SUBJECT, OBJECT)], axis=-1)
    low = np.where(draw.flies[:, OBJECT], draw.uniform(0, HIGHEST), 0.0)
    center[:, OBJECT, 2] = height[:, OBJECT] + low
    shift = draw.uniform(-0.8, 0.8) * height.sum(axis=-1)
    level = np.maximum(center[:, OBJECT, 2] + shift, height[:, SUBJECT])
    center[:, SUBJECT, 2] = np.where(draw.flies[:, SUBJECT], level, height[:, SUBJECT])
    return _assembled(draw, center, turn)


def _upright(angle: Array) -> Array:
    return scene.turned(np.degrees(angle))


def _apart(low: float, high: float) -> Callable[[Draw], Array]:
    """Side by side, apart by low to high times the mean full size."""

    def place(draw: Draw) -> Array:
        size = draw.half.sum(axis=(1, 2)) / 3
        yaw = _yaws(draw)
        return _beside(draw, _upright(yaw), draw.uniform(0, 2 * np.pi), draw.uniform(low, high) * size)

    return place


def _against(draw: Draw) -> Array:
    """Side by side at one of the object's faces; half of those that can stand on the object do."""
    yaw = _yaws(draw)
    quarter = draw.rng.integers(0, 4, len(draw)) * np.pi / 2
    way = yaw[:, OBJECT] + quarter
    near = _beside(draw, _upright(yaw), way, draw.uniform(0, CONTACTS))
    side = np.stack([-np.sin(way), np.cos(way)], axis=-1)
    corners = scene.corners(near)[..., :2]
    nearest = np.einsum("nki,ni->nk", corners[:, SUBJECT], _way(way)).argmin(axis=1)
    corner = corners[np.arange(len(draw)), SUBJECT, nearest] - near[:, OBJECT, :2]
    place = draw.uniform(-0.9, 0.9) * _reach(_upright(yaw[:, OBJECT]), draw.half[:, OBJECT], side)
    near[:, SUBJECT, :2] += side * (place - (corner * side).sum(axis=-1))[:, None]
    stands = (draw.kind[:, OBJECT] == _BLOCK) | (draw.kind[:, OBJECT] == _TABLE)
    stands &= ~draw.flies.any(axis=1) & (draw.rng.random(len(draw)) < 0.5)
    fits = draw.half[:, SUBJECT, :2].min(axis=-1) <= draw.half[:, OBJECT, :2].min(axis=-1)
    return np.where((stands & fits)[:, None, None], _stacked(draw), near)


def _stacked(draw: Draw, lift: Array | float = 0.0, spread: float = 0.8) -> Array:
    """The subject above the object's top by ``lift``, its centre over the middle part of the object's footprint."""
    yaw = _yaws(draw)
    return _vertical(draw, yaw, SUBJECT, lift, draw.rng.uniform(-spread, spread, (len(draw), 2)), draw.half[:, OBJECT])


def _vertical(draw: Draw, yaw: Array, upper: int, lift: Array | float, place: Array, room: Array) -> Array:
    """The thing ``upper`` above the other, which stands or flies; offsets ``place`` (n, 2) of ``room`` (n, 3)."""
    lower = 1 - upper
    turn = _upright(yaw)
    center = np.zeros((len(draw), 2, 3))
    center[:, lower, 2] = draw.half[:, lower, 2] + np.where(draw.flies[:, lower], draw.uniform(0.2, 0.8), 0.0)
    center[:, upper, 2] = center[:, lower, 2] + draw.half[:, lower, 2] + lift + draw.half[:, upper, 2]
    offset = place * room[:, :2]
    center[:, upper, :2] = np.einsum("nij,nj->ni", turn[:, lower, :2, :2], offset)
    return _assembled(draw, center, turn)


def _crossed(draw: Draw) -> NDArray[np.bool_]:
    """Where the longer sides of the two footprints are not along the same of front and left."""
    front, left = draw.half[..., 0], draw.half[..., 1]
    return (front[:, SUBJECT] > left[:, SUBJECT]) != (front[:, OBJECT] > left[:, OBJECT])


def _half_along(draw: Draw, of: int) -> Array:
    """Half sizes (n, 3) of one thing along the other's axes, once ``_parallel`` has turned them."""
    half = draw.half[:, of]
    return np.where(_crossed(draw)[:, None], half[:, [1, 0, 2]], half)


def _covered_room(draw: Draw, lower: int = OBJECT) -> Array:
    """How far the larger footprint's centre may be from the smaller one's, along front and left of ``lower``.

    What does not fly and is larger keeps its centre over the smaller one.
    """
    own, other = draw.half[:, lower], _half_along(draw, 1 - lower)
    return np.where(draw.flies[:, 1 - lower, None], np.abs(own - other), np.minimum(np.abs(own - other), 0.8 * own))


def _parallel(draw: Draw) -> Array:
    """Yaws by which the longer sides agree up to a few degrees."""
    yaw = _yaws(draw)
    turned = draw.rng.integers(0, 2, len(draw)) * np.pi + draw.rng.normal(0, 0.15, len(draw))
    yaw[:, SUBJECT] = yaw[:, OBJECT] + turned + np.where(_crossed(draw), np.pi / 2, 0)
    return yaw


def _above(most: float) -> Callable[[Draw], Array]:
    """The subject on the object, or up to ``most`` above it where it flies; one footprint within the other."""

    def place(draw: Draw) -> Array:
        lift = np.where(draw.flies[:, SUBJECT], draw.uniform(0, most), 0.0)
        offset = draw.rng.uniform(-1, 1, (len(draw), 2))
        return _vertical(draw, _parallel(draw), SUBJECT, lift, offset, _covered_room(draw))

    return place


def _beneath(least: float, spread: float) -> Callable[[Draw], Array]:
    """The subject under the object, which flies, stands on it, or is a table with the subject between its legs."""

    def place(draw: Draw) -> Array:
        lift = np.where(draw.flies[:, OBJECT], draw.uniform(least, 0.9), 0.0)
        table = draw.kind[:, OBJECT] == _TABLE
        legs = np.abs(_HOLE * draw.half[:, OBJECT] - draw.half[:, SUBJECT])
        room = np.where(table[:, None], legs, _covered_room(draw, SUBJECT)) + spread * draw.half[:, SUBJECT]
        yaw = np.where(draw.rng.random((len(draw), 1)) < 0.3, _yaws(draw), _parallel(draw))
        out = _vertical(draw, yaw, OBJECT, lift, draw.rng.uniform(-1, 1, (len(draw), 2)), room)
        floor = draw.half[:, :, 2]
        under = _HOLE * 2 * floor[:, OBJECT] - 2 * floor[:, SUBJECT]
        flown = np.where(draw.flies[:, SUBJECT], draw.uniform(0, 1) * np.maximum(under, 0), 0.0)
        out[table, OBJECT, 2] = floor[table, OBJECT]
        out[table, SUBJECT, 2] = (floor[:, SUBJECT] + flown)[table]
        return out

    return place


def _put_in(draw: Draw) -> Array:
    """The subject in the object's cavity, on its ground."""
    room = np.maximum(_HOLE * draw.half[:, OBJECT] - draw.half[:, SUBJECT], 0)
    place = draw.rng.uniform(-1, 1, (len(draw), 2))
    ground = 2 * (WALL - 1) * draw.half[:, OBJECT, 2]
    yaw = np.where(draw.rng.random((len(draw), 1)) < 0.5, _yaws(draw), _parallel(draw))
    return _vertical(draw, yaw, SUBJECT, ground, place, room)


def _out_of(draw: Draw) -> Array:
    """The subject over the opening of the object, ready to be let down, or beside it."""
    room = np.maximum(_HOLE * draw.half[:, OBJECT] - draw.half[:, SUBJECT], 0)
    place = draw.rng.uniform(-1, 1, (len(draw), 2))
    above = _vertical(draw, _yaws(draw), SUBJECT, draw.uniform(0.01, 0.4), place, room)
    beside = _apart(0.05, 0.5)(draw)
    return np.where((draw.rng.random(len(draw)) < 0.7)[:, None, None], above, beside)


def _around(draw: Draw) -> Array:
    """The object in the subject's hole: on the ground of a container, on the floor, or where one of both flies."""
    yaw = _yaws(draw)
    room = np.maximum(_HOLE * draw.half[:, SUBJECT] - draw.half[:, OBJECT], 0)
    place = draw.rng.uniform(-1, 1, (len(draw), 2))
    container = draw.kind[:, SUBJECT] == _CONTAINER
    lift = np.where(container, 2 * (WALL - 1), -2.0) * draw.half[:, SUBJECT, 2]
    out = _vertical(draw, yaw, OBJECT, lift, place, room)
    ring, tall = draw.half[:, SUBJECT, 2], draw.half[:, OBJECT, 2]
    shift = draw.uniform(-0.7, 0.7) * ring
    flown = draw.flies[:, SUBJECT] & ~container
    bottom = np.where(draw.flies[:, OBJECT], draw.uniform(0.1, 0.8), 0.0)
    out[flown, OBJECT, 2] = (tall + bottom)[flown]
    out[flown, SUBJECT, 2] = np.maximum(tall + bottom + shift, ring)[flown]
    lifted = draw.flies[:, OBJECT] & ~flown & ~container
    out[lifted, OBJECT, 2] = np.maximum(ring + shift, tall)[lifted]
    return out


def _through(draw: Draw) -> Array:
    """A stick through a frame that stands, a ring that flies, or on the lower bar of a frame with an end on the floor."""
    n, half = len(draw), draw.half
    ring = draw.kind[:, OBJECT] == _RING
    bar = ~ring & ~draw.flies[:, SUBJECT]
    yaw = draw.uniform(0, 2 * np.pi)
    length, thick = half[:, SUBJECT, 0], half[:, SUBJECT, 2]
    height = 2 * WALL * half[:, OBJECT, 2]
    pitch = draw.rng.normal(0, 0.12, n)
    foot = draw.uniform(0.3, 0.9) * length  # from the stick's low end to the bar's near edge
    rise = np.arcsin(np.minimum(height / foot, 0.9))
    pitch = np.where(bar, rise, pitch) + np.where(ring, np.pi / 2, 0)
    swing = np.where(bar, draw.rng.normal(0, 0.1, n), draw.rng.normal(0, 0.2, n))
    stick = _pitched(yaw + swing, pitch)
    turn = np.stack([stick, _upright(yaw)], axis=1)
    center = np.zeros((n, 2, 3))
    center[:, OBJECT, 2] = half[:, OBJECT, 2]
    low = _height(stick, half[:, SUBJECT])
    room = (_HOLE * half[:, OBJECT] - 2 * thick[:, None]) * draw.rng.uniform(-0.8, 0.8, (n, 3))
    slide = draw.uniform(-0.6, 0.6) * length
    middle = center[:, OBJECT] + np.einsum("nij,nj->ni", turn[:, OBJECT], room * [0, 1, 1])
    center[:, SUBJECT] = middle + slide[:, None] * stick[..., 0]
    over = (length - foot) * np.cos(rise) - half[:, OBJECT, 0]
    on_bar = _way(yaw) * over[:, None] + turn[:, OBJECT, :2, 1] * room[:, 1, None]
    center[bar, SUBJECT, :2] = on_bar[bar]
    center[bar, SUBJECT, 2] = (low + CONTACTS)[bar]
    standing = ring & ~draw.flies[:, SUBJECT]
    hole = np.einsum("nij,nj->ni", turn[:, OBJECT], room * [1, 1, 0])
    center[ring, SUBJECT] = hole[ring]
    center[:, SUBJECT, 2] += np.where(ring, low + np.where(standing, 0.0, draw.uniform(0, 0.5)), 0.0)
    up = center[:, SUBJECT, 2] + draw.uniform(-0.6, 0.6) * length
    center[ring, OBJECT, 2] = up[ring]
    return _assembled(draw, center, turn)


def _pitched(yaw: Array, pitch: Array) -> Array:
    """Rotations (n, 3, 3) whose front rises from the floor by ``pitch``, turned by ``yaw``."""
    front = np.stack([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)], axis=-1)
    left = np.stack([-np.sin(yaw), np.cos(yaw), np.zeros_like(yaw)], axis=-1)
    return np.stack([front, left, np.cross(front, left)], axis=-1)


def _leaning(draw: Draw) -> Array:
    """The subject stands tilted towards one of the object's faces and is slid to it until they touch."""
    n = len(draw)
    yaw = draw.uniform(0, 2 * np.pi)
    quarter = draw.rng.integers(0, 4, n) * np.pi / 2
    way = yaw + quarter  # from the object to the subject
    tilt = np.radians(draw.uniform(10, 48))
    stick = draw.kind[:, SUBJECT] == _STICK
    leaning = _pitched(way + np.pi + draw.rng.normal(0, 0.1, n), np.pi / 2 - tilt)  # front is the long axis
    upright = np.stack([-leaning[..., 2], leaning[..., 1], leaning[..., 0]], axis=-1)
    facing = np.where(draw.rng.random(n) < 0.5, 1.0, -1.0)[:, None]
    upright[..., 0] *= facing
    upright[..., 1] *= facing
    upright = np.stack([upright[..., 0], np.cross(upright[..., 2], upright[..., 0]), upright[..., 2]], axis=-1)
    turn = np.stack([np.where(stick[:, None, None], leaning, upright), _upright(yaw)], axis=1)
    out = _beside(draw, turn, way, np.full(n, 0.001))
    side = np.stack([-np.sin(way), np.cos(way)], axis=-1)
    shift = draw.uniform(-0.6, 0.6) * _reach(turn[:, OBJECT], draw.half[:, OBJECT], side)
    out[:, SUBJECT, :2] += side * shift[:, None]
    for _ in range(SLIDES):
        out[:, SUBJECT, :2] -= _way(way) * np.minimum(boxes.gap(out), 1.0)[:, None]
    return out


def _turned_to(away: bool, tip: bool) -> Callable[[Draw], Array]:
    """The subject's front or tip towards the object, or away from it, up to a few degrees."""

    def place(draw: Draw) -> Array:
        n = len(draw)
        way, yaw = draw.uniform(0, 2 * np.pi), _yaws(draw)
        spread = np.radians(10.0 if tip else 22.0)
        heading = way + (0 if away else np.pi) + draw.uniform(-spread, spread)
        turn = _upright(np.stack([heading, yaw[:, OBJECT]], axis=-1))
        spire = (draw.kind[:, SUBJECT] == _SPIRE) & tip
        lying = np.stack([turn[:, SUBJECT, :, 2], -turn[:, SUBJECT, :, 1], turn[:, SUBJECT, :, 0]], axis=-1)
        turn[spire, SUBJECT] = lying[spire]
        size = draw.half.sum(axis=(1, 2)) / 3
        drop = draw.half[:, SUBJECT, 2] - draw.half[:, OBJECT, 2]
        steep = np.maximum(drop, np.where(draw.flies[:, SUBJECT], 0.0, -drop))
        steep = np.minimum(steep / np.tan(np.radians(12.0 if tip else 24.0)), MOST_AWAY)
        out = _beside(draw, turn, way, draw.uniform(0.05, 1.0) * np.maximum(size, 0.4) + draw.uniform(0, 1) * steep)
        level = out[:, OBJECT, 2] + draw.rng.normal(0, 0.1, n)
        flies = draw.flies[:, SUBJECT]
        least = _height(turn[:, SUBJECT], draw.half[:, SUBJECT])
        out[flies, SUBJECT, 2] = np.maximum(level, least)[flies]
        return out

    return place


def _aligned(draw: Draw) -> Array:
    yaw = _yaws(draw)
    turned = draw.rng.integers(0, 4, len(draw)) * np.pi / 2 + np.radians(draw.uniform(-8, 8))
    yaw[:, SUBJECT] = yaw[:, OBJECT] + turned
    size = draw.half.sum(axis=(1, 2)) / 3
    return _beside(draw, _upright(yaw), draw.uniform(0, 2 * np.pi), draw.uniform(0.05, 1.2) * size)


_OWN = {"in front of": (0.0,), "behind": (180.0,), "to the left of": (90.0,), "to the right of": (-90.0,)}
_OWN["to the side of"] = (90.0, -90.0)
_FROM_EYE = {"in front of": (0.0,), "behind": (180.0,), "to the left of": (-90.0,), "to the right of": (90.0,)}
_FROM_EYE["to the side of"] = (90.0, -90.0)  # degrees about z, from the direction to the eye


def _direction(angles: tuple[float, ...], seen: bool) -> Callable[[Draw], Array]:
    """The subject in a direction of the object, or of the observer."""

    def place(draw: Draw) -> Array:
        yaw = _yaws(draw)
        start = draw.azimuth if seen else yaw[:, OBJECT]
        angle = np.radians(np.array(angles)[draw.rng.integers(0, len(angles), len(draw))])
        way = start + angle + np.radians(draw.uniform(-38, 38))
        return _beside(draw, _upright(yaw), way, draw.uniform(0.02, 1.3))

    return place


_PROPOSALS: dict[str, Callable[[Draw], Array]] = {
    "on": _stacked,
    "on top of": _stacked,
    "over": _above(0.9),
    "under": _beneath(0.01, 0.0),
    "below": _beneath(0.08, 0.3),
    "in": _put_in,
    "inside": _put_in,
    "outside": _out_of,
    "covering": _above(0.04),
    "around": _around,
    "passing through": _through,
    "leaning against": _leaning,
    "touching": _against,
    "near": _apart(0.02, 0.28),
    "far from": _apart(2.2, 4.0),
    "faces towards": _turned_to(away=False, tip=False),
    "faces away": _turned_to(away=True, tip=False),
    "points towards": _turned_to(away=False, tip=True),
    "points away": _turned_to(away=True, tip=True),
    "aligned to": _aligned,
    **{name: _direction(_OWN[name], seen=False) for name in DIRECTIONAL},
    **{name + " (wrt you)": _direction(_FROM_EYE[name], seen=True) for name in DIRECTIONAL},
}
