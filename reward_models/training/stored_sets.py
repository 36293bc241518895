"""The samples of a run, generated or from stored sets: only those that it describes, and always the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reward_models.training.config import ROLLOUTS, VALID, TrainingConfig
from spatialsim_env.arrangements.datasets import named, shards
from spatialsim_env.arrangements.scene import TURN
from spatialsim_env.arrangements.tasks import Identification, Samples, Task
from spatialsim_env.streams import stream


def samples_of(config: TrainingConfig, part: int | str, sets: Mapping[str, str]) -> Samples:
    """Make or load the samples of a stage (from 0) or of "valid".

    Args:
        sets: as of ``digests``.
    """
    size = config.validation_samples if part == VALID else config.samples_per_stage
    if config.data is None:
        seed = config.seed if config.data_seed is None else config.data_seed
        return _task(config, part).sample(size, stream(seed, config.set_name(part)))
    path = _path(config, part)
    return load(path, _task(config, part), sets[path.name], size)


def digests(config: TrainingConfig, at_start: Mapping[str, str]) -> dict[str, str]:
    """Compute the SHA-256 of each stored set by name, each checked against its use; empty without ``data``.

    Args:
        at_start: those that the run began with, as far as it did.

    Raises:
        datasets.DataSetError: a set is missing.
        ValueError: a set is empty, made for something else, or another one by now.
    """
    sets: dict[str, str] = {}
    for part in (*range(len(config.stages)), VALID) if config.data is not None else ():
        path = _path(config, part)
        sets[path.name] = digest(path, _task(config, part))
        refuse_change(path, at_start.get(path.name, sets[path.name]), sets[path.name])
    return sets


def _task(config: TrainingConfig, part: int | str) -> Task:
    return config.task_at(TURN if isinstance(part, str) else config.stages[part])


def _path(config: TrainingConfig, part: int | str) -> Path:
    assert config.data is not None
    folder = Path(config.data.removeprefix(ROLLOUTS))
    if isinstance(part, str):
        return folder / part
    in_stages = config.task == "discrimination" and not config.data.startswith(ROLLOUTS)
    return folder / (f"stage{part + 1}" if in_stages else "train")


def digest(path: Path, task: Task) -> str:
    """Read the SHA-256 of a set's data from its manifest, which must fit the task.

    A manifest without settings is that of a set of your own: its scenes must have the task's number of rows.

    Raises:
        datasets.DataSetError: there is no set.
        ValueError: the set is empty or made for something else.
    """
    manifest = named.read_manifest(path)
    made = manifest["settings"] | {"n_max": manifest["n_max"]}
    changes = [
        f"{key} is {made[key]!r} there and {value!r} in the configuration"
        for key, value in _entries(task).items()
        if key in made and made[key] != value
    ]
    if changes:
        raise ValueError(f"{path} was made for something else: {'; '.join(changes)}")
    if manifest["samples"] < 1:
        raise ValueError(f"{path} holds no samples")
    return manifest["sha256"]


def load(path: Path, task: Task, expected: str, size: int) -> Samples:
    """Load the first ``size`` samples of a set, or all of a smaller one.

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


def refuse_change(path: Path, expected: str, present: str) -> None:
    """Refuse a set whose data is another than a run began with."""
    if present != expected:
        raise ValueError(
            f"{path} has changed since this training run began with it: SHA-256 {expected[:12]} then, {present[:12]} "
            "now; give another folder to the run, or the set as it was"
        )


def _entries(task: Task) -> dict[str, Any]:
    """Entries that the manifest of a set for a task holds, as far as it has them."""
    low, high = task.object_range
    return {
        "task": type(task).__name__,
        "n_objects": low if low == high else [low, high],
        "max_rotation": task.max_rotation,
        "n_max": task.n_max,
    }
