"""Stored sets in place of generated samples: only those that a configuration describes, and always the same ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spatialsim_env.arrangements.datasets import named, shards
from spatialsim_env.arrangements.tasks import Identification, Samples, Task


def digest(path: Path, task: Task) -> str:
    """SHA-256 of a set's data, as its manifest gives it, if the manifest fits the task.

    A manifest without settings is that of a set of your own: its scenes must have the task's number of rows.

    Raises:
        datasets.DataSetError: there is no set.
        ValueError: the set is empty or made for something else; the message says what.
    """
    manifest = named.read_manifest(path)
    made = manifest["settings"] | {"n_max": manifest["n_max"]}
    differing = [
        f"{key} is {made[key]!r} there and {value!r} in the configuration"
        for key, value in _described(task).items()
        if key in made and made[key] != value
    ]
    if differing:
        raise ValueError(f"{path} was made for something else: {'; '.join(differing)}")
    if manifest["samples"] < 1:
        raise ValueError(f"{path} holds no samples")
    return manifest["sha256"]


def load(path: Path, task: Task, expected: str, size: int) -> Samples:
    """The first ``size`` samples of a set, or all of a smaller one.

    Args:
        expected: SHA-256 of its data.

    Raises:
        datasets.DataSetError: a file is missing or damaged.
        ValueError: the set is another one by now, or another reference scene than the task's.
    """
    refuse_change(path, expected, digest(path, task))
    samples = shards.load(path, size)
    if isinstance(task, Identification):
        reference = task.reference
        if samples.reference.shape[1:] != reference.shape or not (samples.reference == reference).all():
            raise ValueError(
                f"{path} holds another reference scene than n_objects={task.n_objects}, "
                f"reference_seed={task.reference_seed}"
            )
    return samples


def refuse_change(path: Path, expected: str, found: str) -> None:
    """Refuse a set whose data is another than a run began with."""
    if found != expected:
        raise ValueError(
            f"{path} has changed since this training run began with it: SHA-256 {expected[:12]} then, {found[:12]} "
            "now; give another folder to the run, or the set as it was"
        )


def _described(task: Task) -> dict[str, Any]:
    """What the manifest of a set for a task says, where it says it."""
    low, high = task.object_range
    return {
        "task": type(task).__name__,
        "n_objects": low if low == high else [low, high],
        "max_rotation": task.max_rotation,
        "n_max": task.n_max,
    }
