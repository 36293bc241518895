"""Weights on disk: ``model.safetensors`` and, beside it, ``model.json`` that says what they are. Never a pickle.

The JSON holds the format, the package version, the kind and settings of the model, the SHA-256 of the weight file,
and what the model was trained for; for a model of one input that includes its reference scene. Both files are
replaced as a whole, the JSON last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

import spatialsim_env
from reward_models import models
from reward_models.models import RelationModel, RewardModel
from spatialsim_env.checks import read_object, require_entries
from spatialsim_env.files import replace_file, sha256

FORMAT = 1
WEIGHTS = "model.safetensors"
INFO = "model.json"
_ENTRIES = {"kind": str, "settings": dict, "sha256": str, "task": dict}
_PICKLES = (b"PK\x03\x04", b"\x80")  # how torch's archives and plain pickles begin


class CheckpointError(ValueError):
    """A weight file that cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Checkpoint:
    """A stored model."""

    model: Any  # a RewardModel or a RelationModel, float32, on the CPU
    task: dict[str, Any]  # what it was trained for
    folder: Path


def save(
    model: RewardModel | RelationModel, folder: str | os.PathLike[str], task: Mapping[str, Any] | None = None
) -> Path:
    """Write a model into a folder, which is made if need be; returns the path of its JSON file.

    Args:
        task: what the model was trained for, as a JSON object; ``reference`` is the scene (n, 10) as nested lists
            for models of one input.

    Raises:
        OSError: the files cannot be written; what was there before is intact.
    """
    folder = Path(folder)
    tensors = {name: _prepare_weight(value) for name, value in model.state_dict().items()}
    with replace_file(folder / WEIGHTS) as temporary:
        temporary.write_bytes(safetensors.torch.save(tensors))
    info = {
        "format": FORMAT,
        "version": spatialsim_env.__version__,
        "kind": model.kind,
        "settings": model.config.to_json(),
        "n_weights": model.n_weights,
        "sha256": sha256(folder / WEIGHTS),
        "task": dict(task or {}),
    }
    with replace_file(folder / INFO) as temporary:
        temporary.write_text(json.dumps(info, indent=2) + "\n")
    return folder / INFO


def _prepare_weight(value: Tensor) -> Tensor:
    """A weight in float32; a count, such as the batches that a normalisation has seen, stays whole."""
    value = value.detach().cpu()
    return (value.to(torch.float32) if value.is_floating_point() else value).contiguous()


def folder_of(path: str | os.PathLike[str]) -> Path:
    """The folder of a model, given it or one of its two files.

    Raises:
        CheckpointError: a file of another name.
    """
    path = Path(path)
    if path.name in (WEIGHTS, INFO):
        return path.parent
    if path.is_file():
        _refuse_pickle(path, path.read_bytes())
        raise CheckpointError(f"{path} is not a model; accepted is a folder with {INFO} and {WEIGHTS}")
    return path


def read_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read ``model.json``, without the weights.

    Raises:
        CheckpointError: it is missing, unreadable, of another format or of an unknown kind.
    """
    folder = folder_of(path)
    file = folder / INFO
    if not file.exists():
        unfinished = any(folder.glob("state.*"))
        remedy = "its training is not finished: run it again to go on" if unfinished else "train a model into it first"
        raise CheckpointError(f"{file} does not exist; {remedy}")
    info = read_object(file, CheckpointError)
    if info.get("format") != FORMAT:
        raise CheckpointError(f"{file} has format {info.get('format')!r}; accepted is {FORMAT}")
    require_entries(file, info, _ENTRIES, CheckpointError)
    if models.find(info["kind"]) is None:
        accepted = ", ".join([*models.REGISTRY, *models.RELATIONS])
        raise CheckpointError(f"{file}: model {info['kind']!r} is unknown; accepted are {accepted}")
    return info


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a model written by ``save``, from its folder or one of its files.

    Raises:
        CheckpointError: a file is missing, cut, changed, a pickle, of another model than it says, or holds weights
            that are not finite.
    """
    info = read_info(path)
    folder = folder_of(path)
    try:
        model = models.create(info["kind"], info["settings"])
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / INFO}: {error}") from error
    tensors = _read_weights(folder / WEIGHTS, info["sha256"])
    _check_weights(model.state_dict(), tensors, folder / WEIGHTS)
    model.load_state_dict(tensors)
    return Checkpoint(model, info["task"], folder)


def _read_weights(file: Path, digest: str) -> dict[str, Tensor]:
    if not file.exists():
        raise CheckpointError(f"{file} is missing; {INFO} lies beside it")
    content = file.read_bytes()
    _refuse_pickle(file, content)
    actual = sha256(file)
    if actual != digest:
        raise CheckpointError(f"{file} is cut or changed: SHA-256 {actual[:12]}, {INFO} says {digest[:12]}")
    try:
        return safetensors.torch.load(content)
    except SafetensorError as error:
        raise CheckpointError(f"{file} is not a safetensors file: {error}") from error


def _refuse_pickle(file: Path, content: bytes) -> None:
    if content.startswith(_PICKLES):
        raise CheckpointError(f"{file} is a pickle, which can run code when it is opened; accepted is safetensors")


def _check_weights(expected: Mapping[str, Tensor], weights: Mapping[str, Tensor], file: Path) -> None:
    if expected.keys() != weights.keys():
        wrong = sorted(expected.keys() ^ weights.keys())
        raise CheckpointError(f"{file} holds weights of another model; missing or unknown: {', '.join(wrong)}")
    for name, value in expected.items():
        if weights[name].shape != value.shape:
            raise CheckpointError(
                f"{file}: {name} has shape {tuple(weights[name].shape)}; accepted is {tuple(value.shape)}"
            )
        if not weights[name].isfinite().all():
            raise CheckpointError(f"{file}: {name} holds nan or inf; train the model again, more slowly perhaps")
