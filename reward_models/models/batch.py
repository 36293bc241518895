"""The one border between numpy and torch: scenes and samples become tensors here, features or pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reward_models.models.base import RewardModel
from reward_models.models.resnet import PictureConfig
from spatialsim_env.arrangements.pictures import pictures
from spatialsim_env.arrangements.scene import present
from spatialsim_env.arrangements.tasks import Samples

PAIRS_AT_ONCE = 2**15  # pairs of objects judged at a time: what a processor keeps in its cache
PIXELS_AT_ONCE = 2**19  # pixels judged at a time: 128 pictures of 64 x 64, some 70 MB of activations in float64


def trim(scenes: NDArray[Any]) -> NDArray[Any]:
    """Drop the trailing rows that are padding in every scene: (B, n_max, 10) -> (B, n, 10), n >= 1."""
    used = np.flatnonzero(present(scenes).any(axis=0))
    return scenes[:, : used[-1] + 1 if len(used) else 1]


def to_tensor(scenes: NDArray[Any], dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> Tensor:
    """Scenes (B, n_max, 10) as a trimmed tensor of its own memory."""
    return torch.from_numpy(np.array(trim(scenes), order="C")).to(device, dtype)


def to_pictures(scenes: NDArray[Any], pixels: int, device: torch.device | str = "cpu") -> Tensor:
    """Scenes (B, n_max, 10) as pictures (B, 3, pixels, pixels), uint8; objects beyond the default window are cut.

    Raises:
        SceneError: not scenes.
        ImportError: pygame-ce is not installed.
    """
    return torch.from_numpy(pictures(scenes, pixels, on_outside="ignore")).to(device).permute(0, 3, 1, 2)


def seen_by(
    model: RewardModel,
    scenes: NDArray[Any],
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Convert scenes (B, n_max, 10) to a model's input.

    Returns:
        Trimmed scenes (B, n, 10) of ``dtype``; for models that see pictures those, (B, 3, pixels, pixels), uint8.
    """
    if model.sees_pictures:
        return to_pictures(scenes, cast(PictureConfig, model.config).pixels, device)
    return to_tensor(scenes, dtype, device)


def pictures_at_once(pixels: int) -> int:
    """Pictures of a batch that are judged together, to bound the memory."""
    return max(1, PIXELS_AT_ONCE // pixels**2)


def rows_at_once(n_objects: int) -> int:
    """Rows of a batch of scenes that are judged together, to bound the memory."""
    return max(1, PAIRS_AT_ONCE // n_objects**2)


@dataclass(frozen=True)
class Batch:
    """Samples as tensors on one device."""

    target: Tensor  # (B, n, 10), or pictures (B, 3, pixels, pixels)
    reference: Tensor | None  # (B, m, 10), or pictures; None for models that see the target alone
    label: Tensor  # (B,) int64, 1 where both show the same configuration

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, rows: Any) -> Batch:
        return Batch(self.target[rows], None if self.reference is None else self.reference[rows], self.label[rows])

    def at(self, places: Tensor) -> Batch:
        """The samples at places of any shape: whole samples are copied, where indexing would go number by number."""

        def take(values: Tensor) -> Tensor:
            return values.index_select(0, places.flatten()).unflatten(0, places.shape)

        return Batch(take(self.target), None if self.reference is None else take(self.reference), take(self.label))


def from_samples(samples: Samples, with_reference: bool = True, device: torch.device | str = "cpu") -> Batch:
    """Samples as float32 tensors; ``with_reference=False`` leaves the reference out."""
    return Batch(
        target=to_tensor(samples.target, device=device),
        reference=to_tensor(samples.reference, device=device) if with_reference else None,
        label=torch.tensor(samples.label, device=device).long(),
    )


def for_model(model: RewardModel, samples: Samples, device: torch.device | str = "cpu") -> Batch:
    """Samples as a model takes them: with the reference where it has two inputs, drawn where it sees pictures.

    Scenes become float32, pictures uint8: 12 kB each at 64 x 64.
    """
    return Batch(
        target=seen_by(model, samples.target, device=device),
        reference=seen_by(model, samples.reference, device=device) if model.two_inputs else None,
        label=torch.tensor(samples.label, device=device).long(),
    )
