"""Cameras as Rel3D's files write them, to and from observers.

``camera_info`` of a published sample is a dictionary with ``origin``, ``target`` and ``up`` (three numbers each, the
world's up; y is up in the published world) and more that is kept as it is. Files written here have the same keys, with
z up. The frame is x right, y up, z backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations import scene
from spatialsim_env.relations.scene import Floats

KEYS = ("origin", "target", "up")
DEFAULT_UP = (0.0, 1.0, 0.0)  # in the camera's frame
UP = (0.0, 0.0, 1.0)  # of the world here


def camera_infos(observers: Floats, **more: Any) -> tuple[dict[str, Any], ...]:
    """Cameras of observers (N, 9) that hold their heads upright, with the same ``more`` in each (such as ``fov``)."""
    eye = observers[:, scene.EYE]
    target = eye - scene.eye_rotation(observers)[..., 2]
    return tuple(
        {"origin": origin, "target": at, "up": list(UP), **more}
        for origin, at in zip(eye.tolist(), target.tolist(), strict=True)
    )


def known(cameras: Sequence[Any]) -> NDArray[np.bool_]:
    """Mask (N,) of the cameras whose frame is known: finite origin, target and up that span one."""
    return _read(cameras)[0]


def frames(cameras: Sequence[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Origins (N, 3) and rotations (N, 3, 3), columns right, up, backward in the cameras' world; nan if not known."""
    good, origin, target, up = _read(cameras)
    with np.errstate(invalid="ignore"):
        backward = _unit(origin - target)
        right = _unit(np.cross(up, backward))
        turn = np.stack([right, np.cross(backward, right), backward], axis=-1)
    turn[~good], origin[~good] = np.nan, np.nan
    return origin, turn


def world_up(cameras: Sequence[Any]) -> NDArray[np.float64]:
    """The world's up in the cameras' world, unit vectors (N, 3); nan where a camera is not known."""
    good, _, _, up = _read(cameras)
    up[~good] = np.nan
    return _unit(up)


def up(cameras: Sequence[Any]) -> NDArray[np.float64]:
    """The world's up in each camera's frame, unit vectors (N, 3); ``DEFAULT_UP`` where a camera is not known."""
    good = known(cameras)
    _, turn = frames(cameras)
    out = np.tile(DEFAULT_UP, (len(cameras), 1))
    out[good] = np.einsum("nji,nj->ni", turn, world_up(cameras))[good]
    return out


def _read(cameras: Sequence[Any]) -> tuple[NDArray[np.bool_], Any, Any, Any]:
    values = np.full((len(cameras), len(KEYS), 3), np.nan)
    for row, camera in enumerate(cameras):
        try:
            values[row] = [camera[key] for key in KEYS]
        except (TypeError, ValueError, KeyError, IndexError):  # another form: not known
            continue
    origin, target, upward = np.moveaxis(values, 1, 0).copy()
    with np.errstate(invalid="ignore", over="ignore"):
        good = np.linalg.norm(np.cross(upward, origin - target), axis=-1) > 1e-9
    return good & np.isfinite(values).all(axis=(1, 2)), origin, target, upward


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.full(vectors.shape, np.nan), where=length > 0)
