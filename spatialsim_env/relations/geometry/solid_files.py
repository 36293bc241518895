"""Scenes as files for other programs: their boxes as numbers, JSON or an OBJ mesh. z is up, lengths are metres."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.files import replace_file
from spatialsim_env.relations import scene

ROLES = ("subject", "object")


@dataclass(frozen=True, eq=False)
class Boxes:
    """The P boxes that the two objects of a scene are made of."""

    of: NDArray[np.int64]  # (P,), scene.SUBJECT or scene.OBJECT
    center: NDArray[np.float64]  # (P, 3), in the world
    rotation: NDArray[np.float64]  # (P, 3, 3), columns front, left, up
    half: NDArray[np.float64]  # (P, 3), half sizes along front, left, up


def boxes(objects: scene.Floats) -> Boxes:
    """The boxes of a scene (2, 19).

    Raises:
        scene.RoomError: not a scene.
    """
    scene.validate(np.asarray(objects)[None])
    objects = np.asarray(objects, np.float64)
    kinds = scene.kind(objects)
    of = np.repeat([scene.SUBJECT, scene.OBJECT], scene.N_PARTS[kinds])
    parts = np.concatenate([scene.PARTS[kind, : scene.N_PARTS[kind]] for kind in kinds])
    turn, half = scene.rotation(objects)[of], objects[of, scene.HALF]
    center = objects[of, scene.CENTER] + np.einsum("pij,pj->pi", turn, parts[:, 0] * half)
    return Boxes(of, center, turn, parts[:, 1] * half)


def mesh(objects: scene.Floats) -> Any:
    """A scene (2, 19) as ``trimesh.Scene`` with one mesh for each object.

    Raises:
        ImportError: trimesh is missing.
        scene.RoomError: not a scene.
    """
    trimesh = import_trimesh()
    parts_of_both = boxes(objects)
    out = trimesh.Scene()
    for which, role in enumerate(ROLES):
        parts = []
        for part in np.flatnonzero(parts_of_both.of == which):
            transform = np.eye(4)
            transform[:3, :3], transform[:3, 3] = parts_of_both.rotation[part], parts_of_both.center[part]
            parts.append(trimesh.creation.box(extents=2 * parts_of_both.half[part], transform=transform))
        out.add_geometry(trimesh.util.concatenate(parts), node_name=role, geom_name=role)
    return out


def import_trimesh() -> Any:
    """trimesh.

    Raises:
        ImportError: it is missing; the message says how to get it.
    """
    try:
        import trimesh
    except ImportError as error:
        raise ImportError('meshes need trimesh: pip install "spatialsim-env[relations]"') from error
    return trimesh


def write_obj(objects: scene.Floats, path: str | os.PathLike[str]) -> None:
    """Write a scene (2, 19) as a Wavefront OBJ with the objects "subject" and "object"; z is up.

    Raises:
        ImportError: trimesh is missing.
        scene.RoomError: not a scene.
    """
    text = mesh(objects).export(file_type="obj", include_texture=False)
    with replace_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_boxes(objects: scene.Floats, path: str | os.PathLike[str]) -> None:
    """Write the boxes of a scene (2, 19) as a JSON list of objects with of, center, front, left, up and half."""
    parts = boxes(objects)
    rows = [
        {"of": ROLES[of], "center": center, "front": turn[0], "left": turn[1], "up": turn[2], "half": half}
        for of, center, turn, half in zip(
            parts.of.tolist(),
            parts.center.tolist(),
            parts.rotation.swapaxes(-1, -2).tolist(),
            parts.half.tolist(),
            strict=True,
        )
    ]
    with replace_file(path) as temporary:
        temporary.write_text(json.dumps(rows, indent=1), encoding="utf-8")
