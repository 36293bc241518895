"""The three number vectors that Rel3D gives with a sample, to and from scenes of two objects.

Angles are degrees, Euler angles about z, x, y in this order about fixed axes (scipy's "zxy"), of the rotation whose
columns are an object's axes. Absolute vectors are in the camera's frame: x right, y up, z backward. Sizes are full
sizes: front to back, left to right, top to bottom for the aligned ones, along the mesh's x, y, z for the raw one.

A vector is a row of blocks of three numbers each, listed in ``LAYOUT``; the subject comes before the object. In the
published files the centre is the centroid of the mesh's surface; here it is the centre of the box.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from spatialsim_env.relations import scene
from spatialsim_env.relations.scene import Floats

BLOCK = 3  # numbers of a block
CENTER, ANGLES, ALIGNING, SIZES = "center", "angles", "aligning angles", "sizes"
LAYOUT: dict[str, tuple[str, ...]] = {
    "raw_absolute": (CENTER, ANGLES, ALIGNING, SIZES) * 2,
    "aligned_absolute": (CENTER, ANGLES, SIZES) * 2,
    "aligned_relative": (CENTER, ANGLES, SIZES, SIZES),  # the object in the subject's axes; sizes of both
}
NAMES = tuple(LAYOUT)
WIDTHS = {name: BLOCK * len(blocks) for name, blocks in LAYOUT.items()}
ENCODINGS = {"degrees": 3, "sincos": 6, "6d": 6}  # numbers that three angles become


def _axis_swaps() -> NDArray[np.float64]:
    signed = (
        np.eye(3)[list(order)] * signs for order in permutations(range(3)) for signs in product((1, -1), repeat=3)
    )
    return np.array([turn for turn in signed if np.linalg.det(turn) > 0])


AXIS_SWAPS = _axis_swaps()  # (24, 3, 3): the rotations that map axes to axes; a mesh is modelled along one of them


def euler(rotations: ArrayLike) -> NDArray[np.float64]:
    """Angles (..., 3) in degrees about z, x, y of rotations (..., 3, 3); R = Ry Rx Rz.

    Where the angle about x is 90 degrees either way, only the sum or difference of the others is determined; the
    angle about z is then 0. There the angles of nearby rotations lie far apart: see ``encoded``.
    """
    turn = np.asarray(rotations, np.float64)
    about_x = np.arctan2(-turn[..., 1, 2], np.hypot(turn[..., 1, 0], turn[..., 1, 1]))
    locked = np.hypot(turn[..., 1, 0], turn[..., 1, 1]) < 1e-7
    about_z = np.where(locked, 0.0, np.arctan2(turn[..., 1, 0], turn[..., 1, 1]))
    about_y = np.where(
        locked, np.arctan2(-turn[..., 2, 0], turn[..., 0, 0]), np.arctan2(turn[..., 0, 2], turn[..., 2, 2])
    )
    return np.degrees(np.stack([about_z, about_x, about_y], axis=-1))


def from_euler(degrees: ArrayLike) -> NDArray[np.float64]:
    """Rotations (..., 3, 3) of angles (..., 3) in degrees about z, x, y."""
    degrees = np.asarray(degrees, np.float64)
    turn = Rotation.from_euler("zxy", degrees.reshape(-1, BLOCK), degrees=True).as_matrix()
    return turn.reshape(*degrees.shape[:-1], 3, 3)


def in_camera(scenes: Floats, observers: Floats) -> tuple[Floats, Floats]:
    """Centres (B, 2, 3) and rotations (B, 2, 3, 3) of scenes (B, 2, 19) in the frames of observers (B, 9)."""
    eye = scene.eye_rotation(observers)
    center = np.einsum("bji,bkj->bki", eye, scenes[..., scene.CENTER] - observers[:, None, scene.EYE])
    return center, np.einsum("bji,bkjl->bkil", eye, scene.rotation(scenes))


def aligned_absolute(scenes: Floats, observers: Floats) -> NDArray[np.float64]:
    """Vectors (B, 18): per object centre, angles of its axes front, left, up, and sizes, in the camera's frame."""
    center, turn = in_camera(scenes, observers)
    return _join_blocks(center, euler(turn), 2 * scenes[..., scene.HALF])


def raw_absolute(scenes: Floats, observers: Floats, raw_to_aligned: ArrayLike | None = None) -> NDArray[np.float64]:
    """Vectors (B, 24): per object centre, angles of its mesh, angles from mesh to axes, sizes along the mesh's axes.

    ``raw_to_aligned`` (broadcast to (B, 2, 3, 3)) has as columns front, left and up in the mesh's own axes. Without
    it a mesh's x, y, z are front, left, up. ``AXIS_SWAPS`` lists those for which sizes are exact; for others they are
    those of the box around the box.
    """
    center, turn = in_camera(scenes, observers)
    aligning = np.broadcast_to(np.eye(3) if raw_to_aligned is None else np.asarray(raw_to_aligned), turn.shape)
    sizes = np.einsum("bkij,bkj->bki", np.abs(aligning), 2 * scenes[..., scene.HALF])
    return _join_blocks(center, euler(turn @ aligning.swapaxes(-1, -2)), euler(aligning), sizes)


def aligned_relative(scenes: Floats) -> NDArray[np.float64]:
    """Vectors (B, 12): the object's centre and angles in the subject's axes, then the sizes of both."""
    subject, other = scenes[:, scene.SUBJECT], scenes[:, scene.OBJECT]
    axes = scene.rotation(subject).swapaxes(-1, -2)
    center = (axes @ (other[:, scene.CENTER] - subject[:, scene.CENTER])[..., None])[..., 0]
    sizes = 2 * scenes[..., scene.HALF].reshape(len(scenes), 2 * BLOCK)
    return np.concatenate([center, euler(axes @ scene.rotation(other)), sizes], axis=-1).astype(np.float64)


def all_of(scenes: Floats, observers: Floats, raw_to_aligned: ArrayLike | None = None) -> dict[str, Floats]:
    """All three vectors of scenes, by name, as a sample of the published files has them."""
    return {
        "raw_absolute": raw_absolute(scenes, observers, raw_to_aligned),
        "aligned_absolute": aligned_absolute(scenes, observers),
        "aligned_relative": aligned_relative(scenes),
    }


def from_aligned_absolute(vectors: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Centres (B, 2, 3), rotations (B, 2, 3, 3) and full sizes (B, 2, 3) in the camera's frame of vectors (B, 18)."""
    center, angles, sizes = np.moveaxis(_blocks(vectors, "aligned_absolute").reshape(-1, 2, 3, BLOCK), 2, 0)
    return center, from_euler(angles), sizes


def from_raw_absolute(vectors: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
    """Centres, rotations of the meshes, rotations from mesh to axes, sizes along the mesh's axes, of (B, 24).

    The rotation of the axes front, left, up is the product of the second and the third.
    """
    center, angles, aligning, sizes = np.moveaxis(_blocks(vectors, "raw_absolute").reshape(-1, 2, 4, BLOCK), 2, 0)
    return center, from_euler(angles), from_euler(aligning), sizes


def from_aligned_relative(vectors: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Object's centre (B, 3) and rotation (B, 3, 3) in the subject's axes, full sizes (B, 2, 3), of (B, 12)."""
    blocks = _blocks(vectors, "aligned_relative")
    center, angles = np.moveaxis(blocks[:, :2], 1, 0)
    return center, from_euler(angles), blocks[:, 2:]


def to_scenes(vectors: ArrayLike, observers: Floats, kinds: ArrayLike = 0) -> NDArray[np.float64]:
    """Scenes (B, 2, 19) in the world of aligned absolute vectors (B, 18) that observers (B, 9) saw.

    ``kinds`` are indices in ``scene.KINDS`` (broadcast to (B, 2)); the vectors do not tell them, blocks by default.
    """
    center, turn, sizes = from_aligned_absolute(vectors)
    eye = scene.eye_rotation(observers)
    center = np.einsum("bij,bkj->bki", eye, center) + observers[:, None, scene.EYE]
    turn = np.einsum("bij,bkjl->bkil", eye, turn)
    return scene.objects(center, turn, sizes / 2, np.broadcast_to(np.asarray(kinds), center.shape[:-1]))


def encoded_width(name: str, encoding: str) -> int:
    """Width of a vector of this name in this encoding.

    Raises:
        ValueError: an unknown name or encoding.
    """
    _check_names(name, encoding)
    return sum(ENCODINGS[encoding] if _is_angles(block) else BLOCK for block in LAYOUT[name])


def encode(vectors: ArrayLike, name: str, encoding: str = "degrees") -> NDArray[np.float64]:
    """Encode the angles of vectors (B, width): (B, ``encoded_width(name, encoding)``).

    "degrees" keeps them. "sincos" writes three sines, then three cosines: continuous where an angle passes 180
    degrees. "6d" writes the first two columns of the rotation (Zhou et al. 2019, arXiv:1812.07035): continuous in the
    rotation everywhere, also where the angle about x passes 90 degrees and the angles jump.

    Raises:
        ValueError: an unknown name or encoding, or vectors that are not of this name's width.
    """
    _check_names(name, encoding)
    blocks = _blocks(vectors, name)
    if encoding == "degrees":
        return blocks.reshape(len(blocks), -1)
    convert = _sincos if encoding == "sincos" else _sixd
    columns = [
        convert(blocks[:, index]) if _is_angles(block) else blocks[:, index] for index, block in enumerate(LAYOUT[name])
    ]
    return np.concatenate(columns, axis=-1)


def _is_angles(block: str) -> bool:
    return block in (ANGLES, ALIGNING)


def _sincos(degrees: Floats) -> Floats:
    return np.concatenate([np.sin(np.radians(degrees)), np.cos(np.radians(degrees))], axis=-1)


def _sixd(degrees: Floats) -> Floats:
    return from_euler(degrees)[..., :2].swapaxes(-1, -2).reshape(len(degrees), -1)


def _join_blocks(*parts: Floats) -> NDArray[np.float64]:
    """One row per scene of each object's parts (B, 2, 3) in turn."""
    joined = np.concatenate(parts, axis=-1, dtype=np.float64)
    return joined.reshape(len(joined), joined.shape[1] * joined.shape[2])


def _blocks(vectors: ArrayLike, name: str) -> NDArray[np.float64]:
    vectors = np.asarray(vectors, np.float64)
    if vectors.ndim != 2 or vectors.shape[1] != WIDTHS[name]:
        raise ValueError(f"{name} vectors have shape {vectors.shape}; accepted is (B, {WIDTHS[name]})")
    return vectors.reshape(len(vectors), -1, BLOCK)


def _check_names(name: str, encoding: str) -> None:
    if name not in LAYOUT:
        raise ValueError(f"vector is {name!r}; accepted are {', '.join(LAYOUT)}")
    if encoding not in ENCODINGS:
        raise ValueError(f"encoding is {encoding!r}; accepted are {', '.join(ENCODINGS)}")
