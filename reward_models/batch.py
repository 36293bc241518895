"""The one border between numpy and torch: scenes and samples become tensors here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spatialsim_env.scene import present
from spatialsim_env.tasks import Samples


def trim(scenes: NDArray[Any]) -> NDArray[Any]:
    """Drop the trailing rows that are padding in every scene: (B, n_max, 10) -> (B, n, 10), n >= 1."""
    used = np.flatnonzero(present(scenes).any(axis=0))
    return scenes[:, : used[-1] + 1 if len(used) else 1]


def to_tensor(scenes: NDArray[Any], dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> Tensor:
    """Scenes (B, n_max, 10) as a trimmed tensor of its own memory."""
    return torch.from_numpy(np.array(trim(scenes), order="C")).to(device, dtype)


@dataclass(frozen=True)
class Batch:
    """Samples as tensors on one device."""

    target: Tensor  # (B, n, 10)
    reference: Tensor | None  # (B, m, 10); None for models that see the target alone
    label: Tensor  # (B,) int64, 1 where both show the same configuration

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, rows: Any) -> Batch:
        return Batch(self.target[rows], None if self.reference is None else self.reference[rows], self.label[rows])


def from_samples(samples: Samples, with_reference: bool = True, device: torch.device | str = "cpu") -> Batch:
    """Samples as float32 tensors; ``with_reference=False`` leaves the reference out."""
    return Batch(
        target=to_tensor(samples.target, device=device),
        reference=to_tensor(samples.reference, device=device) if with_reference else None,
        label=torch.tensor(samples.label, device=device).long(),
    )
