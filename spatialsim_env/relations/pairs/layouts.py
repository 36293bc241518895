"""Two things without places, and the ways to put them beside, above and through each other.

Angles are radians about z, counter-clockwise seen from above. Index 0 of the second axis is the subject.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations import scene
from spatialsim_env.relations.scene import OBJECT, SUBJECT

Array = NDArray[np.float64]

MIDDLE = 0.6  # metres from the middle of the room, along x and y, that the two things' middle is at most
HIGHEST = 1.2  # metres from the floor to the bottom of what flies alone


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


def roll(angle: Array) -> Array:
    """Rotations (..., 3, 3) about front."""
    cosine, sine, zero = np.cos(angle), np.sin(angle), np.zeros_like(angle)
    front = np.stack([zero + 1, zero, zero], axis=-1)
    left, up = np.stack([zero, cosine, sine], axis=-1), np.stack([zero, -sine, cosine], axis=-1)
    return np.stack([front, left, up], axis=-1)


def assemble(draw: Draw, center: Array, turn: Array) -> Array:
    """Scenes of centres (n, 2, 3) and rotations (n, 2, 3, 3), moved together to a place near the room's middle."""
    middle = (center[:, 0, :2] + center[:, 1, :2]) / 2
    center = center.copy()
    center[..., :2] += (draw.rng.uniform(-MIDDLE, MIDDLE, (len(draw), 2)) - middle)[:, None]
    return scene.objects(center, turn, draw.half, draw.kind)


def reaches(turn: Array, half: Array, way: Array) -> Array:
    """Half extents of boxes of rotations (n, 3, 3) and half sizes (n, 3) along ways (n, 2) on the floor, (n,)."""
    return np.abs(np.einsum("ni,nij->nj", way, turn[:, :2]) * half).sum(axis=-1)


def heights(turn: Array, half: Array) -> Array:
    """Half the height of boxes of rotations (n, 3, 3) and half sizes (n, 3), (n,)."""
    return np.abs(turn[:, 2] * half).sum(axis=-1)


def ways(angle: Array) -> Array:
    """Unit vectors (..., 2) on the floor of directions (...) in radians."""
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def yaws(draw: Draw) -> Array:
    """Any yaw for each thing, (n, 2)."""
    return draw.rng.uniform(0, 2 * np.pi, (len(draw), 2))


def beside(draw: Draw, turn: Array, way: Array, clearance: Array) -> Array:
    """The subject beside the object in directions (n,) in radians, their boxes apart by ``clearance`` along them."""
    heading = ways(way)
    apart = sum(reaches(turn[:, i], draw.half[:, i], heading) for i in (SUBJECT, OBJECT)) + clearance
    center = np.zeros((len(draw), 2, 3))
    center[:, SUBJECT, :2] = heading * apart[:, None]
    height = np.stack([heights(turn[:, i], draw.half[:, i]) for i in (SUBJECT, OBJECT)], axis=-1)
    low = np.where(draw.flies[:, OBJECT], draw.uniform(0, HIGHEST), 0.0)
    center[:, OBJECT, 2] = height[:, OBJECT] + low
    shift = draw.uniform(-0.8, 0.8) * height.sum(axis=-1)
    level = np.maximum(center[:, OBJECT, 2] + shift, height[:, SUBJECT])
    center[:, SUBJECT, 2] = np.where(draw.flies[:, SUBJECT], level, height[:, SUBJECT])
    return assemble(draw, center, turn)


def upright(angle: Array) -> Array:
    """Rotations (..., 3, 3) of things that stand, by their yaws (...)."""
    return scene.yaw_rotation(np.degrees(angle))


def vertical(draw: Draw, yaw: Array, upper: int, lift: Array | float, place: Array, room: Array) -> Array:
    """The thing ``upper`` above the other, which stands or flies; offsets ``place`` (n, 2) of ``room`` (n, 3)."""
    lower = 1 - upper
    turn = upright(yaw)
    center = np.zeros((len(draw), 2, 3))
    center[:, lower, 2] = draw.half[:, lower, 2] + np.where(draw.flies[:, lower], draw.uniform(0.2, 0.8), 0.0)
    center[:, upper, 2] = center[:, lower, 2] + draw.half[:, lower, 2] + lift + draw.half[:, upper, 2]
    offset = place * room[:, :2]
    center[:, upper, :2] = np.einsum("nij,nj->ni", turn[:, lower, :2, :2], offset)
    return assemble(draw, center, turn)


def _is_crossed(draw: Draw) -> NDArray[np.bool_]:
    """Mask of the scenes whose footprints' longer sides are not along the same of front and left."""
    front, left = draw.half[..., 0], draw.half[..., 1]
    return (front[:, SUBJECT] > left[:, SUBJECT]) != (front[:, OBJECT] > left[:, OBJECT])


def _half_along(draw: Draw, of: int) -> Array:
    """Half sizes (n, 3) of one thing along the other's axes, once ``parallel`` has turned them."""
    half = draw.half[:, of]
    return np.where(_is_crossed(draw)[:, None], half[:, [1, 0, 2]], half)


def covered_room(draw: Draw, lower: int = OBJECT) -> Array:
    """Greatest offsets of the larger footprint's centre from the smaller one's, along front and left of ``lower``.

    What does not fly and is larger keeps its centre over the smaller one.
    """
    own, other = draw.half[:, lower], _half_along(draw, 1 - lower)
    return np.where(draw.flies[:, 1 - lower, None], np.abs(own - other), np.minimum(np.abs(own - other), 0.8 * own))


def parallel(draw: Draw) -> Array:
    """Yaws by which the longer sides agree up to a few degrees."""
    yaw = yaws(draw)
    turned = draw.rng.integers(0, 2, len(draw)) * np.pi + draw.rng.normal(0, 0.15, len(draw))
    yaw[:, SUBJECT] = yaw[:, OBJECT] + turned + np.where(_is_crossed(draw), np.pi / 2, 0)
    return yaw


def pitch(yaw: Array, pitch: Array) -> Array:
    """Rotations (..., 3, 3) whose front rises from the floor by ``pitch``, turned by ``yaw``."""
    front = np.stack([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)], axis=-1)
    left = np.stack([-np.sin(yaw), np.cos(yaw), np.zeros_like(yaw)], axis=-1)
    return np.stack([front, left, np.cross(front, left)], axis=-1)
