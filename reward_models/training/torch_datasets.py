"""Sets as ``torch.utils.data`` data sets, for training loops that are not ours.

An item is (target, reference, label): float32 tensors (n, 10) and (m, 10), and an int64 that is 1 where both show the
same configuration. Rows of padding are zero; n and m are the greatest numbers of objects in the set, so that items of a
set stack. Our own training takes no loader: it slices tensors.
"""

from __future__ import annotations

import os
from pathlib import Path

import safetensors
import safetensors.torch
from torch.utils.data import TensorDataset

from reward_models.models.batch import from_samples
from spatialsim_env.arrangements.datasets import shards
from spatialsim_env.arrangements.datasets.named import DataSetError
from spatialsim_env.arrangements.tasks import Samples
from spatialsim_env.files import replace_file

ENDING = ".safetensors"
PARTS = ("target", "reference", "label")


def from_set(samples: Samples) -> TensorDataset:
    """Samples as a data set."""
    batch = from_samples(samples)
    assert batch.reference is not None
    return TensorDataset(batch.target, batch.reference, batch.label)


def load(path: str | os.PathLike[str]) -> TensorDataset:
    """The data set of a generated set, or of a file that ``write`` made, by its ending.

    Raises:
        DataSetError: it is missing, damaged, or of another format.
    """
    if Path(path).suffix != ENDING:
        return from_set(shards.load(path))
    try:
        tensors = safetensors.torch.load_file(path)
    except safetensors.SafetensorError as error:
        raise DataSetError(f"{path} is cut or no safetensors file: {error}") from error
    except FileNotFoundError:
        raise DataSetError(f"{path} does not exist; spatialsim export --format torch makes it") from None
    if set(tensors) != set(PARTS) or len({len(tensor) for tensor in tensors.values()}) != 1:
        raise DataSetError(
            f"{path} holds {', '.join(f'{name} {tuple(tensor.shape)}' for name, tensor in sorted(tensors.items()))}; "
            f"accepted are {', '.join(PARTS)} of one length"
        )
    return TensorDataset(*(tensors[name] for name in PARTS))


def write(samples: Samples, path: str | os.PathLike[str]) -> Path:
    """Write the tensors of a data set as one safetensors file, for use without this package; returns its path.

    Raises:
        ValueError: the path does not end in .safetensors.
        OSError: the file cannot be written; nothing half-written is left under its name.
    """
    target = Path(path)
    if target.suffix != ENDING:
        raise ValueError(f"{target} ends in {target.suffix!r}; accepted is {ENDING}")
    with replace_file(target) as temporary:
        tensors = dict(zip(PARTS, from_set(samples).tensors, strict=True))
        safetensors.torch.save_file(tensors, temporary)
    return target
