"""The feature table, and batches of padded scenes.

A scene is a set of ``n`` objects, an object a row of ten numbers (paper, section 2.1). A batch of scenes is one
array ``(B, n_max, 10)``; a row of zeros is padding, so the presence of an object is the sum of its one-hot. Every
other module names columns through this table.

Units: the arena is 20 x 20 with its origin at the lower left and y up; orientation in radians, counter-clockwise;
size is the circumradius; colours are in 0..1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

SHAPES = ("square", "circle", "triangle")
SHAPE = slice(0, 3)  # one-hot over SHAPES
SIZE = 3  # circumradius, units
COLOR = slice(4, 7)  # red, green, blue, 0..1
POSITION = slice(7, 9)  # x, y, units
ORIENTATION = 9  # radians, counter-clockwise
N_FEATURES = 10
FEATURES = ("square", "circle", "triangle", "size", "red", "green", "blue", "x", "y", "orientation")

ARENA = 20.0  # side of the arena, units
SIZES = (0.5, 2.0)  # range of sizes in a reference scene, units
TURN = 2 * np.pi


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the benchmark's perturbation: 0.01 times the range of each feature (section 2.2)."""

    size: float = 0.02  # units
    color: float = 0.01  # per channel
    position: float = 0.2  # units, per coordinate
    orientation: float = TURN / 100  # radians


NOISE = Noise()

N_UNIFORM = 8  # uniform numbers per object of a reference scene


class SceneError(ValueError):
    """A scene that breaks the definition above; the message says where and what is accepted."""


def present(scenes: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the rows that hold an object: (..., n, 10) -> (..., n)."""
    return np.einsum("...k->...", scenes[..., SHAPE]) > 0.5  # a sum over three numbers, in less time than sum(axis=-1)


def count(scenes: NDArray[Any]) -> NDArray[np.int64]:
    """Number of objects per scene: (..., n, 10) -> (...)."""
    return present(scenes).sum(axis=-1)


def as_batch(scenes: ArrayLike, name: str = "scenes") -> tuple[NDArray[Any], bool]:
    """Bring a scene or a batch of scenes, as arrays or flat vectors, into the form (B, n, 10).

    Accepts (n, 10), (B, n, 10), (10 n,) and (B, 10 n) with n >= 2 for the last; returns the batch and whether the
    input was a batch. Floating types are kept, everything else becomes float64.

    Raises:
        SceneError: another shape.
    """
    try:
        array = np.asarray(scenes)
        if not np.issubdtype(array.dtype, np.floating):
            array = array.astype(np.float64, casting="same_kind" if array.dtype.kind in "cSU" else "unsafe")
    except (TypeError, ValueError) as error:
        raise SceneError(f"{name} is not an array of real numbers: {error}") from error
    if array.ndim == 3 and array.shape[-1] == N_FEATURES:
        return array, True
    if array.ndim == 2 and array.shape[-1] == N_FEATURES:
        return array[None], False
    if array.ndim in (1, 2) and array.shape[-1] and array.shape[-1] % N_FEATURES == 0:
        return array.reshape(-1, array.shape[-1] // N_FEATURES, N_FEATURES), array.ndim == 2
    raise SceneError(
        f"{name} has shape {array.shape}; accepted are (n, 10), (B, n, 10), and flat vectors (10 n,) or (B, 10 n)"
    )


def validate(scenes: NDArray[Any], name: str = "scenes") -> None:
    """Check a batch (B, n, 10) against the definition of a scene.

    Raises:
        SceneError: numbers that are not finite, a one-hot that is neither a shape nor padding, padding that is not
            zero, a size that is not positive, a colour far from 0..1, a scene without an object.
    """
    if not np.isfinite(scenes).all():
        row = tuple(int(i) for i in np.argwhere(~np.isfinite(scenes))[0])
        raise SceneError(f"{name}[{row[0]}], object {row[1]}: {FEATURES[row[2]]} is {scenes[row]}, not a finite number")
    columns = np.ascontiguousarray(np.moveaxis(scenes, -1, 0))  # (10, B, n), so that every step runs over the batch
    one_hot = columns[SHAPE]
    is_shape = ((one_hot == 0) | (one_hot == 1)).all(axis=0) & (one_hot.sum(axis=0) == 1)
    is_padding = ~columns.any(axis=0)
    _complain(
        ~(is_shape | is_padding),
        scenes,
        name,
        "a row is one of the one-hots square (1, 0, 0), circle (0, 1, 0), triangle (0, 0, 1), or padding (all zeros)",
    )
    _complain(is_shape & (columns[SIZE] <= 0), scenes, name, "sizes are positive")
    beyond = np.abs(columns[COLOR] - 0.5).max(axis=0) > 1.5
    _complain(beyond, scenes, name, "colours are 0..1, or a little beyond by noise")
    empty = ~is_shape.any(axis=-1)
    if empty.any():
        raise SceneError(f"{name}[{int(empty.argmax())}] holds no object; at least one is needed")


def _complain(bad: NDArray[np.bool_], scenes: NDArray[Any], name: str, rule: str) -> None:
    if bad.any():
        batch, row = (int(i) for i in np.argwhere(bad)[0])
        values = np.array2string(scenes[batch, row], precision=3, separator=", ", max_line_width=200)
        raise SceneError(f"{name}[{batch}], object {row} is {values}; {rule}")


def pad(scenes: NDArray[Any], n_max: int) -> NDArray[Any]:
    """Add rows of padding: (..., n, 10) -> (..., n_max, 10).

    Raises:
        SceneError: more rows than ``n_max``.
    """
    missing = n_max - scenes.shape[-2]
    if missing < 0:
        raise SceneError(f"{scenes.shape[-2]} objects do not fit into n_max = {n_max}")
    widths = [(0, 0)] * (scenes.ndim - 2) + [(0, missing), (0, 0)]
    return np.pad(scenes, widths)


def barycenter(scenes: NDArray[Any]) -> NDArray[Any]:
    """Mean of the positions of the objects that are present: (B, n, 10) -> (B, 1, 2)."""
    mask = present(scenes)[..., None]
    total = (scenes[..., POSITION] * mask).sum(axis=-2, keepdims=True)
    return total / np.maximum(mask.sum(axis=-2, keepdims=True), 1).astype(scenes.dtype)


def from_uniform(numbers: NDArray[np.float32], n_objects: NDArray[Any]) -> NDArray[np.float32]:
    """Reference scenes as a function of uniform numbers (paper, section 2.2).

    Shape uniform of three, size U[0.5, 2], colour U[0, 1]^3, orientation U[0, 2 pi), position U[size, 20 - size]^2,
    everything independent; overlap is allowed.

    Args:
        numbers: (B, n_max, 8) in [0, 1).
        n_objects: (B,) objects per scene; rows beyond are padding.
    """
    scenes = np.zeros((*numbers.shape[:2], N_FEATURES), np.float32)
    shape = (numbers[..., 0] * len(SHAPES)).astype(np.int8)
    for index in range(len(SHAPES)):
        scenes[..., index] = shape == index
    scenes[..., SIZE] = SIZES[0] + (SIZES[1] - SIZES[0]) * numbers[..., 1]
    scenes[..., COLOR] = numbers[..., 2:5]
    scenes[..., ORIENTATION] = TURN * numbers[..., 5]
    scenes[..., POSITION] = place(numbers[..., 6:8], scenes[..., SIZE])
    n_objects = np.asarray(n_objects)
    if (n_objects < numbers.shape[1]).any():
        scenes *= (np.arange(numbers.shape[1]) < n_objects[:, None])[..., None]
    return scenes


def place(numbers: NDArray[np.float32], size: NDArray[np.float32]) -> NDArray[np.float32]:
    """Positions U[size, 20 - size]^2: uniform (..., 2) and sizes (...) -> (..., 2)."""
    size = size[..., None]
    return size + (np.float32(ARENA) - 2 * size) * numbers


def redraw(scenes: NDArray[Any], numbers: NDArray[np.float32]) -> NDArray[Any]:
    """The scenes (B, n, 10) with every position drawn anew, from uniform numbers (B, 2 n)."""
    out = scenes.copy()
    positions = place(numbers.reshape(*scenes.shape[:2], 2), scenes[..., SIZE])
    out[..., POSITION] = np.where(present(scenes)[..., None], positions, 0)
    return out


def sample(n_objects: ArrayLike, n_max: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw reference scenes: (B,) numbers of objects -> (B, n_max, 10)."""
    n_objects = np.asarray(n_objects)
    return from_uniform(rng.random((len(n_objects), n_max, N_UNIFORM), np.float32), n_objects)
