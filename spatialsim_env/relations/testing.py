"""Assertions about functions of 3D scenes, for this package's tests and for yours.

The functions under test are called as ``function(scenes, observers)``, (B, 2, 19) and (B, 9), and return (B,): a
predicate's margin, a learned model's logit. Each assertion raises AssertionError with the largest difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.relations.scene import (
    CENTER,
    EYE,
    EYE_RIGHT,
    EYE_UP,
    FRONT,
    HALF,
    UP,
    yaw_rotation,
)

Array = NDArray[np.float64]
SceneFunction = Callable[[Array, Array], Any]

SCALES = (0.5, 2.0)


def move(
    scenes: ArrayLike, observers: ArrayLike, degrees: ArrayLike = 0.0, shift: ArrayLike = (0.0, 0.0), scale: Any = 1.0
) -> tuple[Array, Array]:
    """Scenes and their observers turned about z, scaled about the origin, and moved on the floor, in this order.

    Args:
        degrees, scale: a number or (B,).
        shift: (2,) or (B, 2), metres.
    """
    scenes, observers = np.array(scenes, np.float64), np.array(observers, np.float64)
    turn = np.broadcast_to(yaw_rotation(np.broadcast_to(degrees, (len(scenes),))), (len(scenes), 3, 3))
    size = np.broadcast_to(np.asarray(scale, np.float64), (len(scenes),))
    step = np.zeros((len(scenes), 3))
    step[:, :2] = shift
    for axis in (FRONT, UP):
        scenes[..., axis] = np.einsum("bij,bkj->bki", turn, scenes[..., axis])
    scenes[..., CENTER] = np.einsum("bij,bkj->bki", turn, scenes[..., CENTER]) * size[:, None, None] + step[:, None]
    scenes[..., HALF] *= size[:, None, None]
    for axis in (EYE_RIGHT, EYE_UP):
        observers[:, axis] = np.einsum("bij,bj->bi", turn, observers[:, axis])
    observers[:, EYE] = np.einsum("bij,bj->bi", turn, observers[:, EYE]) * size[:, None] + step
    return scenes, observers


def mirror(scenes: ArrayLike, observers: ArrayLike) -> tuple[Array, Array]:
    """Scenes and their observers in the mirror y = 0: left and right change places, for the objects and the observer.

    Every shape is its own mirror image, so a mirrored object is the same object elsewhere.
    """
    scenes, observers = np.array(scenes, np.float64), np.array(observers, np.float64)
    for columns in (CENTER, FRONT, UP):
        scenes[..., columns] *= (1, -1, 1)
    for columns, flip in ((EYE, 1), (EYE_RIGHT, -1), (EYE_UP, 1)):
        observers[:, columns] *= (flip, -flip, flip)
    return scenes, observers


def assert_floor_invariant(
    function: SceneFunction,
    scenes: Array,
    observers: Array,
    rng: np.random.Generator,
    scaled: bool = False,
    observed: bool = True,
    atol: float = 1e-6,
) -> None:
    """The value stays when scenes are turned about z and moved on the floor; ``scaled``: and scaled.

    ``observed``: the observers go along; else they stay where they are.
    """
    n = len(scenes)
    scale = rng.uniform(*SCALES, n) if scaled else 1.0
    there, seen = move(scenes, observers, rng.uniform(-180, 180, n), rng.uniform(-1, 1, (n, 2)), scale)
    after = function(there, seen if observed else observers)
    _assert_close(function(scenes, observers), after, atol, "a move on the floor")


def assert_mirrored(
    function: SceneFunction, image: SceneFunction, scenes: Array, observers: Array, atol: float = 1e-6
) -> None:
    """The value of ``function`` on scenes is that of ``image`` on them in a mirror: "left" and "right", say."""
    _assert_close(function(scenes, observers), image(*mirror(scenes, observers)), atol, "a mirror")


def _assert_close(before: Any, after: Any, atol: float, change: str) -> None:
    difference = np.abs(np.asarray(before, np.float64) - np.asarray(after, np.float64))
    if not (difference <= atol).all():
        worst = difference.max()
        raise AssertionError(f"{change} changes values by up to {worst:g}, in {(difference > atol).sum()} scenes")
