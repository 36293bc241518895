"""Gravity: objects fall until they rest, on the floor or on each other. Optional, by mujoco.

Each object is a body of its parts' boxes with the density ``DENSITY``; those that fly are held where they are. The
room's floor is there, its walls are not. A scene in which the two solids penetrate each other, or one the floor, is
refused: it would be flung apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import boxes
from spatialsim_env.relations.scene import Floats, RoomError

DENSITY = 300.0  # kg/m^3, of furniture and filled boxes
FRICTION = 0.8
STEP = 0.004  # seconds
MOST_STEPS = 1500
STILL = 2e-3  # metres or radians a second, of both bodies, counts as rest
CHECKED_EVERY = 25  # steps
DEEPEST = 0.005  # metres of penetration that are accepted
HINT = 'mujoco is missing; it comes with: pip install "spatialsim-env[relations]"'


def settle(
    scenes: Floats, flies: Sequence[Sequence[bool]] | NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scenes (B, 2, 19) after gravity has acted on all objects but those that fly (B, 2), and which came to rest (B,).

    Rest is reached within ``MOST_STEPS * STEP`` seconds or not at all; the rest of the time is not simulated.

    Raises:
        ImportError: mujoco is not installed; the message says how to get it.
        RoomError: arrays that are not scenes; solids that penetrate each other or the floor, which names the row.
    """
    scene.validate(scenes)
    flies = np.asarray(flies, bool)
    if flies.shape != (len(scenes), 2):
        raise RoomError(f"flies has shape {flies.shape}; accepted is {(len(scenes), 2)}")
    refuse_penetration(scenes)
    mujoco = import_mujoco()
    out, still = np.array(scenes, np.float64), np.ones(len(scenes), bool)
    for row in np.flatnonzero(~flies.all(axis=1)):
        still[row] = _settle_one(mujoco, out[row], flies[row])
    return out, still


def penetrating(scenes: Floats) -> NDArray[np.bool_]:
    """Mask of the scenes (B,) whose solids penetrate each other or the floor by more than ``DEEPEST``."""
    sunk = scene.corners(scenes)[..., 2].min(axis=(1, 2)) < -DEEPEST
    return np.asarray((boxes.penetration(scenes) > DEEPEST) | sunk)


def lift(scenes: Floats) -> NDArray[np.float64]:
    """Scenes (B, 2, 19) raised as wholes to have nothing under the floor; contacts give way by a fraction of a mm."""
    out = np.array(scenes, np.float64)
    sunk = np.minimum(scene.corners(out)[..., 2].min(axis=(1, 2)), 0.0)
    out[..., scene.CENTER] -= sunk[:, None, None] * np.array([0.0, 0.0, 1.0])
    return out


def refuse_penetration(scenes: Floats) -> None:
    """Refuse scenes whose solids penetrate each other or the floor.

    Raises:
        RoomError: it names the first such scene and says how many there are.
    """
    bad = penetrating(scenes)
    if bad.any():
        raise RoomError(
            f"scene {int(bad.argmax())} of {len(bad)} has objects that penetrate each other or the floor by more than "
            f"{DEEPEST} m ({int(bad.sum())} such scenes)"
        )


def import_mujoco() -> ModuleType:
    """The module mujoco.

    Raises:
        ImportError: it is not installed; the message says how to get it.
    """
    try:
        import mujoco
    except ImportError as error:
        raise ImportError(HINT) from error
    module: ModuleType = mujoco
    return module


def add_object(mujoco: ModuleType, parent: Any, name: str, row: Floats, **geom: Any) -> Any:
    """A body for an object (19,) with a geom for each part of its solid, named ``name``; returns the body."""
    turn = scene.rotation(row)
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(turn, np.float64).reshape(-1))
    body = parent.add_body(name=name, pos=row[scene.CENTER], quat=quat)
    kind, half = int(scene.kind(row)), row[scene.HALF]
    for place, size in scene.PARTS[kind, : scene.N_PARTS[kind]]:
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, pos=place * half, size=size * half, **geom)
    return body


def _settle_one(mujoco: ModuleType, rows: NDArray[np.float64], flies: NDArray[np.bool_]) -> bool:
    """Let the objects (2, 19) of one scene fall, in place; whether they came to rest."""
    spec = mujoco.MjSpec()
    spec.option.timestep = STEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    solid = {"friction": [FRICTION, 0.02, 0.002], "density": DENSITY}
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], friction=solid["friction"])
    free = [which for which in range(2) if not flies[which]]
    for which in range(2):
        body = add_object(mujoco, spec.worldbody, f"object{which}", rows[which], **solid)
        if which in free:
            body.add_freejoint()
    model = spec.compile()
    model.dof_damping[:] = 0.02 * model.body_mass[model.dof_bodyid]
    data = mujoco.MjData(model)
    still = False
    for _ in range(MOST_STEPS // CHECKED_EVERY):
        mujoco.mj_step(model, data, nstep=CHECKED_EVERY)
        still = bool(np.abs(data.qvel).max() < STILL)
        if still:
            break
    for place, which in enumerate(free):
        pose = data.qpos[7 * place : 7 * place + 7]
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, pose[3:])
        axes = turn.reshape(3, 3)
        rows[which, scene.CENTER], rows[which, scene.FRONT], rows[which, scene.UP] = pose[:3], axes[:, 0], axes[:, 2]
    return still
