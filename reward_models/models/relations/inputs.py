"""The border between numpy and torch for models of relations: samples of a file, or scenes, become tensors here.

Names, shapes and units of the tensors are ``reward_models.models.relations.base.SHAPES``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from reward_models.models.relations.base import NEEDS
from spatialsim_env.relations import scene
from spatialsim_env.relations.rel3d import vectors

if TYPE_CHECKING:
    from spatialsim_env.relations.rel3d.published import RelationSamples

KINDS = "kinds"  # column of a file's extra: (N, 2) indices in scene.KINDS, subject and object
LEAST_HALF = 1e-4  # metres, of boxes in space; published meshes may be flat
_VECTORS = {"raw": "raw_absolute", "aligned": "aligned_absolute"}

Device = torch.device | str


def from_samples(
    samples: RelationSamples, needs: Sequence[str], device: Device = "cpu", pictures: ArrayLike | None = None
) -> dict[str, Tensor]:
    """The inputs of a model that ``needs`` these, of samples of a split file.

    Boxes in space come from the aligned absolute vectors. Shapes are those of the column ``KINDS`` of ``extra``, or
    unknown, which published files leave them. The world's up is that of ``Samples.up``. Half sizes are at least
    ``LEAST_HALF``, since models divide by them.

    Args:
        needs: names in ``NEEDS``; predicate, subject and object always come.
        pictures: (N, S, S, 3) of uint8, the whole pictures of the samples scaled to a square.

    Raises:
        ValueError: an unknown need, or no pictures where they are needed, or others than described.
    """
    _check(needs)
    inputs = {name: _tensor(getattr(samples, name), device) for name in ("predicate", "subject", "object")}
    if "boxes2d" in needs:
        inputs["boxes2d"] = _tensor(_edges(samples.boxes, samples.picture_size), device)
    for name in _VECTORS.keys() & set(needs):
        inputs[name] = _tensor(samples.vectors[_VECTORS[name]], device)
    if "boxes3d" in needs:
        center, turn, sizes = vectors.from_aligned_absolute(samples.vectors["aligned_absolute"])
        half = np.maximum(sizes / 2, LEAST_HALF)
        inputs |= _in_space(center, turn, half, samples.up, _one_hot(samples), device)
    if "picture" in needs:
        inputs["picture"] = _pictures(pictures, len(samples), device)
    return inputs


def from_scenes(
    scenes: NDArray[Any],
    observers: NDArray[Any],
    predicate: ArrayLike,
    needs: Sequence[str],
    *,
    names: ArrayLike | None = None,
    boxes: ArrayLike | None = None,
    pictures: ArrayLike | None = None,
    device: Device = "cpu",
    dtype: torch.dtype = torch.float32,
) -> dict[str, Tensor]:
    """The same of scenes (B, 2, 19) and observers (B, 9).

    Args:
        predicate: (B,) class indices of the model, or one for all.
        names: (B, 2) class indices of the categories of subject and object, for models that need names.
        boxes: (B, 2, 4) left, top, width, height as shares of the picture's width and height, for models that need
            boxes in the picture.
        pictures: as in ``from_samples``.

    Raises:
        SceneError: not scenes or observers.
        ValueError: as ``from_samples``, or no names or boxes where they are needed.
    """
    _check(needs)
    scene.validate(scenes, observers)
    size = len(scenes)
    inputs = {"predicate": _tensor(np.broadcast_to(np.asarray(predicate, np.int64), (size,)), device)}
    if "names" in needs:
        categories = _check_given(names, "names", (size, 2)).astype(np.int64)
        inputs |= {"subject": _tensor(categories[:, 0], device), "object": _tensor(categories[:, 1], device)}
    if "boxes2d" in needs:
        inputs["boxes2d"] = _tensor(
            _edges(_check_given(boxes, "boxes", (size, 2, 4)), np.ones((size, 2))), device, dtype
        )
    if "raw" in needs:
        inputs["raw"] = _tensor(vectors.raw_absolute(scenes, observers), device, dtype)
    if "aligned" in needs:
        inputs["aligned"] = _tensor(vectors.aligned_absolute(scenes, observers), device, dtype)
    if "boxes3d" in needs:
        center, turn = vectors.in_camera(scenes, observers)
        up = scene.eye_rotation(observers)[:, 2]  # the world's z in the axes of the camera
        inputs |= _in_space(center, turn, scenes[..., scene.HALF], up, scenes[..., scene.KIND], device, dtype)
    if "picture" in needs:
        inputs["picture"] = _pictures(pictures, size, device, dtype)
    return inputs


def _check(needs: Sequence[str]) -> None:
    unknown = [name for name in needs if name not in NEEDS]
    if unknown:
        raise ValueError(f"needs has {', '.join(map(repr, unknown))}; accepted are {', '.join(NEEDS)}")


def _check_given(values: ArrayLike | None, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    if values is None:
        raise ValueError(f"{name} are needed; give them as an array of shape {shape}")
    array = np.asarray(values)
    if array.shape != shape:
        raise ValueError(f"{name} have shape {array.shape}; accepted is {shape}")
    return array


def _tensor(values: NDArray[Any], device: Device, dtype: torch.dtype = torch.float32) -> Tensor:
    """Its own memory; whole numbers as int64, others as ``dtype``."""
    tensor = torch.from_numpy(np.array(values, order="C"))
    return tensor.to(device, dtype if tensor.is_floating_point() else torch.int64)


def _edges(boxes: NDArray[Any], picture_size: NDArray[Any]) -> NDArray[Any]:
    """Left, top, width, height (N, 2, 4) in pictures of widths and heights (N, 2) -> top, bottom, left, right."""
    left, top, width, height = np.moveaxis(np.asarray(boxes, np.float64), -1, 0)
    across, down = np.moveaxis(picture_size[:, None].astype(np.float64), -1, 0)
    return np.stack([top / down, (top + height) / down, left / across, (left + width) / across], axis=-1)


def _in_space(
    center: NDArray[Any],
    turn: NDArray[Any],
    half: NDArray[Any],
    up: NDArray[Any],
    kinds: NDArray[Any],
    device: Device,
    dtype: torch.dtype = torch.float32,
) -> dict[str, Tensor]:
    boxes = np.concatenate([center, turn.reshape(*turn.shape[:2], 9), half], axis=-1)
    return {name: _tensor(x, device, dtype) for name, x in (("boxes3d", boxes), ("up", up), ("kinds", kinds))}


def _one_hot(samples: RelationSamples) -> NDArray[Any]:
    if KINDS not in samples.extra:
        return np.zeros((len(samples), 2, len(scene.KINDS)))
    kinds = _check_given(samples.extra[KINDS], KINDS, (len(samples), 2)).astype(np.int64)
    if len(kinds) and (kinds.min() < 0 or kinds.max() >= len(scene.KINDS)):
        raise ValueError(f"kinds have {kinds.min()} to {kinds.max()}; accepted are 0 to {len(scene.KINDS) - 1}")
    return np.eye(len(scene.KINDS))[kinds]


def _pictures(pictures: ArrayLike | None, size: int, device: Device, dtype: torch.dtype = torch.float32) -> Tensor:
    if pictures is None:
        raise ValueError("pictures are needed; give them as an array of uint8 of shape (samples, S, S, 3)")
    array = np.asarray(pictures)
    square = array.ndim == 4 and array.shape == (size, *array.shape[1:2] * 2, 3)
    if not square or array.dtype != np.uint8:
        raise ValueError(f"pictures are {array.shape} of {array.dtype}; accepted is ({size}, S, S, 3) of uint8")
    return torch.from_numpy(array).to(device).permute(0, 3, 1, 2).to(dtype) / 255
