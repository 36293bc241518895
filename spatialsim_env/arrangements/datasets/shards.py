"""One data set in several pieces: ``PATH/00000``, ``PATH/00001``, ... and the manifest ``PATH.json``, written last.

Each shard is a set of its own (``datasets.py``), so a set that is larger than the memory is written shard by shard,
and an interrupted run resumes at the first missing shard.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spatialsim_env
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.arrangements.datasets.named import DataSetError
from spatialsim_env.arrangements.tasks import Samples
from spatialsim_env.files import replace_file, sha256

SHARDS = "shards"  # key of the manifest: how many


def shard_path(path: str | os.PathLike[str], index: int) -> Path:
    """Path of a shard, without its ending."""
    return Path(path) / f"{index:05d}"


def is_whole(path: Path, settings: dict[str, Any]) -> bool:
    """Check that a set lies there, undamaged and made by this version with these settings."""
    try:
        manifest = named.read_manifest(path)
        same = manifest["settings"] == settings and manifest["version"] == spatialsim_env.__version__
        return same and sha256(path.with_name(path.name + ".npz")) == manifest["sha256"]
    except (DataSetError, FileNotFoundError):
        return False


def join(path: str | os.PathLike[str], n_shards: int, settings: dict[str, Any]) -> Path:
    """Make one set of the first shards under ``path``: write its manifest and return where it lies.

    Raises:
        DataSetError: a shard is missing, or they have different numbers of rows.
        ValueError: no shard.
    """
    if n_shards < 1:
        raise ValueError(f"n_shards is {n_shards}; accepted is at least 1")
    parts = [named.read_manifest(shard_path(path, index)) for index in range(n_shards)]
    rows = {part["n_max"] for part in parts}
    if len(rows) > 1:
        raise DataSetError(f"the shards of {path} have {sorted(rows)} rows a scene; accepted is one number")
    text = {
        "format": named.FORMAT,
        "version": spatialsim_env.__version__,
        "samples": sum(part["samples"] for part in parts),
        "n_max": rows.pop(),
        "one_reference": False,
        "sha256": _digest(parts),
        "settings": settings,
        SHARDS: n_shards,
    }
    manifest = Path(path).with_name(Path(path).name + ".json")
    with replace_file(manifest) as temporary:
        temporary.write_text(json.dumps(text, indent=2, sort_keys=True) + "\n")
    return manifest


def load(path: str | os.PathLike[str], most: int | None = None) -> Samples:
    """The first ``most`` samples of a set, in shards or not; by default all. Shards that are not needed stay unread.

    Raises:
        DataSetError: a file is missing, damaged, or of another set.
    """
    manifest = named.read_manifest(path)
    if SHARDS not in manifest:
        return named.load(path)[:most]
    wanted = manifest["samples"] if most is None else min(most, manifest["samples"])
    parts: list[Samples] = []
    for shard in _needed(path, manifest, wanted):
        parts.append(named.load(shard))
    joined = (np.concatenate([getattr(part, name) for part in parts]) for name in ("target", "reference", "label"))
    return Samples(*joined)[:wanted]


def load_columns(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The columns of a whole set by name, in shards or not.

    Raises:
        DataSetError: a file is missing, or of another set.
    """
    manifest = named.read_manifest(path)
    if SHARDS not in manifest:
        return named.load_columns(path)
    parts = [named.load_columns(shard) for shard in _needed(path, manifest, manifest["samples"])]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _needed(path: str | os.PathLike[str], manifest: dict[str, Any], samples: int) -> list[Path]:
    """Paths of as many shards as hold the wanted number of samples, at least one."""
    paths = [shard_path(path, index) for index in range(manifest[SHARDS])]
    parts = [named.read_manifest(shard) for shard in paths]
    if _digest(parts) != manifest["sha256"]:
        raise DataSetError(f"the shards of {path} are others than its manifest says; make the set again")
    before = np.cumsum([0] + [part["samples"] for part in parts[:-1]])
    return [shard for shard, start in zip(paths, before, strict=True) if start == 0 or start < samples]


def _digest(parts: list[dict[str, Any]]) -> str:
    """SHA-256 of the shards' SHA-256 in a row."""
    return hashlib.sha256("".join(part["sha256"] for part in parts).encode()).hexdigest()
