"""The 3D scenes behind Rel3D's pictures: the renderer's annotation CSVs and ``full.json``; scenes from samples.

Princeton VL's renderer (github.com/princeton-vl/Rel3D_Render) reads ``data/assignments-contrastive-v1.csv`` and
``data/assignments-contrastive.csv``, one row a pair of scenes, and ``data/full.json``, the list of pictures. What of
them is read here follows from how that project's code reads them; ``docs/rel3d_data.md`` says it field by field.

Its transforms are those of a left-handed world with y up, x mirrored. Here the world has z up and the floor at 0: a
point (x, y, z) of the file becomes (-x, -z, y + 0.5). The meshes' own axes are those of their OBJ files.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import cameras
from spatialsim_env.relations.geometry.solid_files import ROLES, import_trimesh
from spatialsim_env.relations.rel3d import vectors
from spatialsim_env.relations.rel3d.published import RelationSamples
from spatialsim_env.relations.rel3d.records import STATES, RelationDataError, parse_name
from spatialsim_env.relations.scene import Floats

CSV_NAMES = ("assignments-contrastive-v1.csv", "assignments-contrastive.csv")
SOURCE = "these files come with Princeton VL's renderer of Rel3D (github.com/princeton-vl/Rel3D_Render, folder data/)"
DESCRIPTION, RESULT = 1, 3  # columns of a CSV row; both hold JSON
NO_DESCRIPTION = "description is not JSON"
LEFT_OUT = "across"  # a relation that the renderer leaves out
FLOOR = -0.5  # height of the floor in the files, as in the renderer's Playground.obj
SAME_STATE = 0.1  # below this distance of both objects' positions the renderer takes finalState2 for finalState
MOST_CHARACTERS = 1 << 24  # of one value of a CSV
SHEAR = 1e-3  # of unit axes' right angles; transforms beyond it are reported
_MIRROR = np.diag([-1.0, 1.0, 1.0, 1.0])  # left-handed to right-handed and back
_TO_Z_UP = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, -FLOOR], [0, 0, 0, 1]])


@dataclass(frozen=True)
class Thing:
    """An object of a scene: which mesh, and which of the mesh's axes are its front and up."""

    category: str
    id: str
    dataset: str  # the mesh is <shapes>/<dataset>/<id>/<id>.obj
    front: tuple[float, float, float]  # in the mesh's axes, as in the file
    up: tuple[float, float, float]

    @property
    def axes(self) -> NDArray[np.float64]:
        """Rotation (3, 3): columns front, left, up in the mesh's axes."""
        return np.stack([self.front, np.cross(self.up, self.front), self.up], axis=1)

    def mesh_path(self, shapes: str | os.PathLike[str]) -> Path:
        """Path of its mesh in the folder of shapes."""
        return Path(shapes) / self.dataset / self.id / f"{self.id}.obj"


@dataclass(frozen=True, eq=False)
class Annotation:
    """A row of a CSV: a relation, two objects, and where they are in each state."""

    relation: str
    things: tuple[Thing, Thing]  # subject, object
    transforms: dict[str, NDArray[np.float64]]  # by state, (2, 4, 4): from each mesh to the world with z up, floor at 0
    rendered: tuple[str, ...]  # the states that the renderer draws
    frontal: bool  # drawn from the front alone, because the relation is to the observer

    @property
    def name(self) -> str:
        """Prefix of the names of its pictures: ``records.parse_name(rgb)[0]``."""
        return " - ".join([self.relation, *(f"{thing.category}_{thing.id}" for thing in self.things)])

    def scene(self, state: str, bounds: ArrayLike) -> NDArray[np.float64]:
        """The scene (2, 19) of two blocks around the meshes, of the corners ``bounds`` (2, 2, 3) of each mesh's box.

        Raises:
            RelationDataError: no such state, or transforms or corners that give no box.
        """
        low, high = np.moveaxis(np.asarray(bounds, np.float64), 1, 0)
        transforms = self._transforms(state)
        middle = np.append((low + high) / 2, np.ones((2, 1)), axis=1)
        center = np.einsum("kij,kj->ki", transforms, middle)[:, :3]
        turn, scale = rotation_and_scale(transforms)
        axes = np.stack([thing.axes for thing in self.things])
        half = np.einsum("kji,kj->ki", np.abs(axes), scale * (high - low) / 2)
        out = scene.objects(center, turn @ axes, half, [0, 0])
        try:
            scene.validate(out[None])
        except scene.RoomError as error:
            raise RelationDataError(f"{self.name}, {state}: {error}") from None
        return out

    def meshes(self, state: str, shapes: str | os.PathLike[str]) -> Any:
        """The scene as ``trimesh.Scene`` of its own meshes, read from the folder of shapes.

        Raises:
            FileNotFoundError: a mesh is not there.
            ImportError: trimesh is missing.
        """
        trimesh = import_trimesh()
        out = trimesh.Scene()
        for role, thing, transform in zip(ROLES, self.things, self._transforms(state), strict=True):
            out.add_geometry(_mesh(thing, shapes), node_name=role, geom_name=role, transform=transform)
        return out

    def _transforms(self, state: str) -> NDArray[np.float64]:
        if state not in self.transforms:
            raise RelationDataError(f"{self.name} has no {state!r}; it has {', '.join(self.transforms)}")
        return self.transforms[state]


@dataclass(frozen=True)
class RowProblem:
    """A row of a CSV that is no annotation, or an odd one."""

    file: str
    row: int  # from 0
    text: str
    is_kept: bool = False  # its annotation is among those read

    def __str__(self) -> str:
        return f"{self.file} row {self.row}: {self.text}"


def rotation_and_scale(transforms: Floats) -> tuple[Floats, Floats]:
    """Rotations (..., 3, 3) and scales (..., 3) along the mesh's axes, of transforms (..., 4, 4).

    Scales are lengths of columns. The published features divide by lengths of rows, which is the same where an object
    is scaled alike along all axes.
    """
    linear = transforms[..., :3, :3]
    scale = np.linalg.norm(linear, axis=-2)
    return np.divide(linear, scale[..., None, :], out=np.zeros_like(linear), where=scale[..., None, :] > 0), scale


def read_annotations(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> tuple[list[Annotation], list[RowProblem]]:
    """Annotations of one or more CSVs (a folder stands for its two), and the rows that are none or odd.

    A first row without JSON is taken for a header. Left out and reported: rows whose description or result is not
    JSON, or lacks a field; rows of "across", which the renderer leaves out too; repeated rows. Kept and reported:
    transforms that shear.

    Raises:
        FileNotFoundError: a file is not there.
        RelationDataError: a file is not a CSV.
    """
    if isinstance(paths, str | os.PathLike):
        path = Path(paths)
        paths = [path / name for name in CSV_NAMES] if path.is_dir() else [path]
    annotations: list[Annotation] = []
    problems: list[RowProblem] = []
    seen: set[tuple[str, ...]] = set()
    for path in map(Path, paths):
        for row, columns in enumerate(_rows(path)):
            try:
                annotation = _annotation(columns)
                if tuple(columns) in seen:
                    raise RelationDataError("the same as a row before")
            except RelationDataError as error:
                if row > 0 or str(error) != NO_DESCRIPTION:
                    problems.append(RowProblem(path.name, row, str(error)))
                continue
            seen.add(tuple(columns))
            annotations.append(annotation)
            if sheared := [state for state, transforms in annotation.transforms.items() if _shears(transforms)]:
                problems.append(RowProblem(path.name, row, f"transforms shear in {', '.join(sheared)}", is_kept=True))
    return annotations, problems


def _rows(path: Path) -> list[list[str]]:
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}; {SOURCE}")
    limit = csv.field_size_limit(MOST_CHARACTERS)
    try:
        return [*csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))]
    except (csv.Error, UnicodeDecodeError) as error:
        raise RelationDataError(f"{path} is not a CSV: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _annotation(columns: list[str]) -> Annotation:
    if len(columns) <= RESULT:
        raise RelationDataError(f"{len(columns)} columns; accepted are at least {RESULT + 1}")
    description, result = _json(columns[DESCRIPTION], "description"), _json(columns[RESULT], "result")
    try:
        relation, infos = description["relationInfo"], description["objectInfos"]
        if relation == LEFT_OUT:
            raise RelationDataError(f"the relation {LEFT_OUT!r}")
        subject, other = (_thing(info) for info in infos)
        return Annotation(
            relation=relation,
            things=(subject, other),
            transforms={state: _transforms(result[state]) for state in STATES if state in result},
            rendered=_select_states(result),
            frontal=description.get("initFinalState", {}).get("view_independent", "Yes") == "No",
        )
    except KeyError as error:
        raise RelationDataError(f"no {error.args[0]}") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise error if isinstance(error, RelationDataError) else RelationDataError(str(error)) from None


def _json(text: str | bytes, name: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise RelationDataError(f"{name} is not JSON") from None
    if type(value) is not dict:
        raise RelationDataError(f"{name} is a {type(value).__name__}; accepted is an object")
    return value


def _thing(info: Mapping[str, Any]) -> Thing:
    front, up = (np.array([float(x) for x in info[key]]) for key in ("front", "up"))
    if front.shape != (3,) or up.shape != (3,) or not np.allclose([front @ front, up @ up, front @ up], [1, 1, 0]):
        raise RelationDataError(f"front {info['front']} and up {info['up']} are not perpendicular unit vectors")
    return Thing(str(info["cat"]), str(info["id"]), str(info["dataset"]), tuple(front.tolist()), tuple(up.tolist()))


def _transforms(state: Mapping[str, Any]) -> NDArray[np.float64]:
    """Both objects' transforms (2, 4, 4), from the left-handed world of the file to that with z up."""
    rows = [[float(x) for x in info["meshTransformMatrix"].split(",")] for info in state["objectInfos"]]
    matrices = np.array(rows).reshape(2, 4, 4)
    if not np.isfinite(matrices).all():
        raise RelationDataError("a meshTransformMatrix with numbers that are not finite")
    return _TO_Z_UP @ _MIRROR @ matrices @ _MIRROR


def _select_states(result: Mapping[str, Any]) -> tuple[str, ...]:
    """The states that are drawn: finalState2 only if it was found correct, and then finalState only if it differs."""
    if result["fig_2_correct"] not in ("Yes", "No"):
        raise RelationDataError(f"fig_2_correct is {result['fig_2_correct']!r}; accepted are Yes and No")
    drawn = STATES[:2] if result["fig_2_correct"] == "No" else STATES
    if missing := [state for state in drawn if state not in result]:
        raise RelationDataError(f"no {missing[0]}")
    if drawn is not STATES:
        return drawn
    first, second = (
        np.array([[float(info["position"][axis]) for axis in "xyz"] for info in result[state]["objectInfos"]])
        for state in STATES[1:]
    )
    return (STATES[0], STATES[2]) if np.linalg.norm(first - second) < SAME_STATE else STATES


def _shears(transforms: Floats) -> bool:
    turn, _ = rotation_and_scale(transforms)
    return bool(np.abs(turn.swapaxes(-1, -2) @ turn - np.eye(3)).max() > SHEAR)


@dataclass(frozen=True)
class ScenePicture:
    """An entry of ``full.json``: what its picture's name tells, and the entry itself."""

    split: str  # the list that it is in
    scene: str  # Annotation.name of its scene
    state: str
    camera: int
    record: Mapping[str, Any]  # verbatim


def read_full(path: str | os.PathLike[str]) -> tuple[list[ScenePicture], list[RowProblem]]:
    """Pictures of ``full.json``: an object of lists (such as train, test) of entries with ``rgb``; and what is none.

    Raises:
        FileNotFoundError: no such file.
        RelationDataError: not JSON, or no object of lists.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}; {SOURCE}")
    pictures: list[ScenePicture] = []
    problems: list[RowProblem] = []
    for split, entries in _json(path.read_bytes(), str(path)).items():
        if type(entries) is not list:
            raise RelationDataError(f"{path}: {split!r} is a {type(entries).__name__}; accepted are lists of entries")
        for row, entry in enumerate(entries):
            rgb = entry.get("rgb") if type(entry) is dict else None
            parts = parse_name(rgb) if type(rgb) is str else None
            if parts is None:
                problems.append(RowProblem(f"{path.name} {split}", row, f"no picture's name in rgb: {rgb!r}"))
            else:
                pictures.append(ScenePicture(split, *parts, record=entry))
    return pictures, problems


def mesh_bounds(thing: Thing, shapes: str | os.PathLike[str]) -> NDArray[np.float64]:
    """Corners (2, 3) of a mesh's box in its own axes, read from the folder of shapes.

    Raises:
        FileNotFoundError: the mesh is not there.
        ImportError: trimesh is missing.
    """
    return np.asarray(_mesh(thing, shapes).bounds, np.float64)


def _mesh(thing: Thing, shapes: str | os.PathLike[str]) -> Any:
    path = thing.mesh_path(shapes)
    if not path.is_file():
        raise FileNotFoundError(f"no mesh {path}; the renderer's README says how to download the shapes")
    return import_trimesh().load_mesh(path, process=False)


def scenes_of(samples: RelationSamples) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Scenes (M, 2, 19) of blocks, observers (M, 9) and rows (M,) of the samples whose cameras and sizes are known.

    Boxes are those of ``aligned_absolute``: of the published files, they have the size of the mesh's box and lie
    about the centroid of its surface, so they are off by as much as the two centres differ. A world with y up (the
    published one) becomes one with z up and the floor at 0.
    """
    sizes = vectors.from_aligned_absolute(samples.vectors["aligned_absolute"])[2]
    up = cameras.world_up(samples.cameras)
    y_up, z_up = (np.isclose(up, axis).all(axis=1) for axis in np.eye(3)[1:])
    rows = np.flatnonzero((y_up | z_up) & (sizes > 0).all(axis=(1, 2)))
    origin, turn = cameras.frames([samples.cameras[row] for row in rows])
    to_world = np.where(y_up[rows][:, None, None], _TO_Z_UP, np.eye(4))
    origin = np.einsum("nij,nj->ni", to_world[:, :3, :3], origin) + to_world[:, :3, 3]
    turn = to_world[:, :3, :3] @ turn
    observers = np.concatenate([origin, turn[..., 0], turn[..., 1]], axis=-1)
    return vectors.to_scenes(samples.vectors["aligned_absolute"][rows], observers), observers, rows
