"""Scenes of two objects in a room: the feature table, the shapes, observers. z is up, lengths are metres.

A batch of scenes is a float array (B, 2, 19): the subject, then the object, each an oriented box with a shape in it. An
observer is a row of a float array (B, 9). No other module names a column by its number.

The axes of an object are *front*, *left* and *up*, in this order wherever three numbers belong to an object; they
are the columns of its rotation. Shapes are unions of boxes whose places are fractions of the half sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating[Any]]

SUBJECT, OBJECT = 0, 1  # rows of a scene

CENTER = slice(0, 3)
FLOOR = slice(0, 2)  # of the centre: its place on the floor
HEIGHT = 2  # of the centre, above the floor
FRONT = slice(3, 6)  # unit vector in the world
UP = slice(6, 9)  # unit vector in the world; left is up x front
HALF = slice(9, 12)  # half sizes along front, left, up
KIND = slice(12, 19)  # one-hot, as KINDS
N_FEATURES = 19

EYE = slice(0, 3)  # where the observer is
EYE_RIGHT = slice(3, 6)  # unit vector of the picture's x
EYE_UP = slice(6, 9)  # unit vector of the picture's y; right x up points backward, to the observer
N_OBSERVER = 9

ROOM = (3.0, 3.0, 4.0)  # walls at |x| and |y|, ceiling; the floor is at 0
WALL = 0.12  # thickness of hollow shapes, of the full size
INNER = 1 - 2 * WALL  # inner part of hollow shapes, of the full or half size
UNIT_TOLERANCE = 1e-3  # of axes' lengths and right angles; float32 keeps far below it


class RoomError(ValueError):
    """Scenes or observers that are not what they should be; the message says what was wrong."""


@dataclass(frozen=True)
class Kind:
    """A shape. Boxes are (centre, half size), each as fractions of the object's half sizes along front, left, up."""

    name: str
    parts: tuple[tuple[tuple[float, float, float], tuple[float, float, float]], ...]
    tip: int | None = None  # the axis whose positive end is a tip
    cavity: tuple[tuple[float, float, float], tuple[float, float, float]] | None = None  # open at the top
    opening: tuple[int, tuple[float, float, float]] | None = None  # axis of a hole through it, half size of the hole


def _kinds() -> tuple[Kind, ...]:
    w, wide, inner = WALL, 1 - WALL, INNER
    solid = (((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),)
    walls = (
        ((wide, 0.0, w), (w, 1.0, wide)),
        ((-wide, 0.0, w), (w, 1.0, wide)),
        ((0.0, wide, w), (inner, w, wide)),
        ((0.0, -wide, w), (inner, w, wide)),
    )
    around = (
        ((wide, 0.0, 0.0), (w, 1.0, 1.0)),
        ((-wide, 0.0, 0.0), (w, 1.0, 1.0)),
        ((0.0, wide, 0.0), (inner, w, 1.0)),
        ((0.0, -wide, 0.0), (inner, w, 1.0)),
    )
    upright = (
        ((0.0, wide, 0.0), (1.0, w, 1.0)),
        ((0.0, -wide, 0.0), (1.0, w, 1.0)),
        ((0.0, 0.0, wide), (1.0, inner, w)),
        ((0.0, 0.0, -wide), (1.0, inner, w)),
    )
    legs = tuple(((x * wide, y * wide, -w), (w, w, wide)) for x in (1, -1) for y in (1, -1))
    return (
        Kind("block", solid),
        Kind("stick", solid, tip=0),
        Kind("spire", solid, tip=2),
        Kind(
            "container",
            (((0.0, 0.0, -wide), (1.0, 1.0, w)), *walls),
            cavity=((0.0, 0.0, w), (inner, inner, wide)),
        ),
        Kind("ring", around, opening=(2, (inner, inner, 1.0))),
        Kind("frame", upright, opening=(0, (1.0, inner, inner))),
        Kind("table", (((0.0, 0.0, wide), (1.0, 1.0, w)), *legs)),
    )


KINDS = _kinds()
KIND_NAMES = tuple(kind.name for kind in KINDS)
MOST_PARTS = max(len(kind.parts) for kind in KINDS)
N_PARTS = np.array([len(kind.parts) for kind in KINDS])
PARTS = np.array(  # (kinds, MOST_PARTS, 2, 3): centre and half size of each part, zeros where there is none
    [[*kind.parts, *[((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))] * (MOST_PARTS - len(kind.parts))] for kind in KINDS]
)


def rotation(objects: Floats) -> Floats:
    """Rotations (..., 3, 3) of objects (..., 19): columns front, left, up in the world."""
    front, up = objects[..., FRONT], objects[..., UP]
    return np.stack([front, _cross(up, front), up], axis=-1)


def kind(objects: Floats) -> NDArray[np.int64]:
    """Index in KINDS of each object, (...)."""
    return objects[..., KIND].argmax(axis=-1)


def objects(center: ArrayLike, turn: ArrayLike, half: ArrayLike, kinds: ArrayLike) -> NDArray[np.float64]:
    """Objects (..., 19) of centres (..., 3), rotations (..., 3, 3), half sizes (..., 3) and indices in KINDS (...)."""
    center, turn, half = (np.asarray(x, np.float64) for x in (center, turn, half))
    one_hot = np.eye(len(KINDS))[np.asarray(kinds)]
    return np.concatenate([center, turn[..., 0], turn[..., 2], half, one_hot], axis=-1)


def corners(objects: Floats) -> Floats:
    """The eight corners of each object's box in the world, (..., 8, 3)."""
    signs = np.stack(np.meshgrid([-1, 1], [-1, 1], [-1, 1], indexing="ij"), axis=-1).reshape(8, 3)
    offsets = signs * objects[..., None, HALF]
    return objects[..., None, CENTER] + np.einsum("...ij,...kj->...ki", rotation(objects), offsets)


def yaw_rotation(degrees: float | ArrayLike) -> NDArray[np.float64]:
    """Rotations (..., 3, 3) about z, counter-clockwise seen from above."""
    angle = np.radians(np.asarray(degrees, np.float64))
    out = np.zeros((*angle.shape, 3, 3))
    out[..., 0, 0] = out[..., 1, 1] = np.cos(angle)
    out[..., 1, 0] = np.sin(angle)
    out[..., 0, 1] = -out[..., 1, 0]
    out[..., 2, 2] = 1
    return out


def observers(eye: ArrayLike, target: ArrayLike) -> NDArray[np.float64]:
    """Observers (..., 9) at ``eye`` (..., 3) that look at ``target`` (..., 3) and hold their heads upright.

    Raises:
        RoomError: one looks straight up or down.
    """
    eye, target = (np.asarray(x, np.float64) for x in (eye, target))
    ahead = target - eye
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    length = np.linalg.norm(right, axis=-1, keepdims=True)
    if (length < 1e-9).any():
        raise RoomError("an observer looks straight up or down; accepted are those with a right and a left")
    right = right / length
    up = np.cross(right, ahead)
    up = up / np.linalg.norm(up, axis=-1, keepdims=True)
    return np.concatenate(np.broadcast_arrays(eye, right, up), axis=-1)


def eye_rotation(observers: Floats) -> Floats:
    """Rotations (..., 3, 3) of observers (..., 9): columns right, up, backward in the world."""
    right, up = observers[..., EYE_RIGHT], observers[..., EYE_UP]
    return np.stack([right, up, _cross(right, up)], axis=-1)


def _cross(one: Floats, other: Floats) -> Floats:
    """``np.cross`` of vectors (..., 3), bit for bit, in half of its time."""
    out = np.empty(one.shape, one.dtype)
    for k in range(3):
        u, v = (k + 1) % 3, (k + 2) % 3
        out[..., k] = one[..., u] * other[..., v] - one[..., v] * other[..., u]
    return out


def away(observers: Floats) -> Floats:
    """The direction away from each observer on the floor, unit vectors (..., 2)."""
    right = observers[..., EYE_RIGHT]
    length = np.hypot(right[..., 0], right[..., 1])
    return np.stack([-right[..., 1] / length, right[..., 0] / length], axis=-1)


def validate(scenes: ArrayLike, observers: ArrayLike | None = None) -> None:
    """Refuse arrays that are not scenes.

    Raises:
        RoomError: a wrong shape, numbers that are not finite, axes that are not perpendicular unit vectors, half
            sizes that are not positive, a shape that is none of KINDS; it names the row.
    """
    scenes = np.asarray(scenes)
    if scenes.ndim != 3 or scenes.shape[1:] != (2, N_FEATURES):
        raise RoomError(f"scenes have shape {scenes.shape}; accepted is (B, 2, {N_FEATURES})")
    _check(np.isfinite(scenes).all(axis=(1, 2)), "numbers that are not finite")
    front, up = scenes[..., FRONT], scenes[..., UP]
    lengths = np.stack([(front**2).sum(-1) - 1, (up**2).sum(-1) - 1, (front * up).sum(-1)])
    _check((np.abs(lengths) < UNIT_TOLERANCE).all(axis=(0, 2)), "axes that are not perpendicular unit vectors")
    _check(np.all(scenes[..., HALF] > 0, axis=(1, 2)), "half sizes that are not positive")
    one_hot = scenes[..., KIND]
    _check(((one_hot.sum(-1) == 1) & ((one_hot == 0) | (one_hot == 1)).all(-1)).all(axis=1), "a shape that is none")
    if observers is None:
        return
    eyes = np.asarray(observers)
    if eyes.shape != (len(scenes), N_OBSERVER):
        raise RoomError(f"observers have shape {eyes.shape}; accepted is {(len(scenes), N_OBSERVER)}")
    _check(np.isfinite(eyes).all(axis=1), "observers that are not finite")
    right, top = eyes[..., EYE_RIGHT], eyes[..., EYE_UP]
    lengths = np.stack([(right**2).sum(-1) - 1, (top**2).sum(-1) - 1, (right * top).sum(-1)])
    _check((np.abs(lengths) < UNIT_TOLERANCE).all(axis=0), "observers' axes that are not perpendicular unit vectors")


def _check(good: Any, problem: str) -> None:
    if not good.all():
        row = int((~good).argmax())
        raise RoomError(f"scene {row} of {len(good)} has {problem} ({int((~good).sum())} such scenes)")
