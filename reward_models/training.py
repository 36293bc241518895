"""The training protocol (sections 2.3 and 3.2 of the paper): Adam, cross-entropy, a curriculum of rotations.

``train`` fills a folder: ``config.json``, ``log.csv`` (a row an epoch), ``state.safetensors`` (weights, Adam's state
and the log so far, replaced as a whole after each epoch) and, at the end, ``model.safetensors`` and ``model.json``.
Run again, it goes on after the last whole epoch, and the weights are those of a run that was never interrupted, bit
for bit: the samples are a function of (seed, stage) and their order of (seed, stage, epoch), so there is no random
state to keep. torch's and numpy's global random states are left alone. A run that fails before it has a model and its
first samples leaves the folder free.

With ``data`` the samples come from stored sets. Each must be what the configuration describes, and ``config.json``
and ``model.json`` hold the SHA-256 of all of them: a run goes on with the sets that it began with or not at all.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from tqdm import tqdm

from reward_models import checkpoint, models, stored_sets
from reward_models.batch import Batch, from_samples
from reward_models.checks import is_finite, is_whole, read_object, require, require_seed, require_whole
from reward_models.evaluation import accuracy, loss_of, one_thread, stream
from reward_models.models import RewardModel
from spatialsim_env.files import replaced
from spatialsim_env.scene import TURN
from spatialsim_env.tasks import STAGES, Discrimination, Identification, Task, reference_scene

CONFIG = "config.json"
LOG = "log.csv"
STATE = "state.safetensors"
SETS = "sets"  # key of config.json: SHA-256 of the stored sets by name
VALID = "valid"
TASKS = ("discrimination", "identification")
REDRAWN = "redrawn"  # the benchmark's negative


@dataclass(frozen=True)
class TrainingConfig:
    """One training run. The defaults are the paper's protocol for Discrimination.

    With ``data``, ``samples_per_stage`` and ``validation_samples`` are the most that is taken of each set, from its
    beginning; a smaller set is taken whole.

    Raises:
        ValueError: an unknown name, a number out of range, or values that contradict each other.
    """

    model: str = "mpgnn"  # name in models.REGISTRY
    settings: dict[str, Any] = field(default_factory=dict)  # of the model
    task: str = "discrimination"  # or "identification"
    n_objects: int | tuple[int, int] = (3, 8)  # objects per scene; one number for identification
    reference_seed: int = 0  # of the reference scene of identification
    negative: str = REDRAWN  # name in negatives.NAMES, or several joined by +
    stages: tuple[float, ...] = STAGES  # rotation limit of each stage, radians
    samples_per_stage: int = 100_000
    epochs_per_stage: int = 5
    validation_samples: int = 10_000  # at 2 pi
    learning_rate: float = 1e-3
    batch_size: int = 128
    seed: int = 0  # of weights, samples and their order
    data: str | None = None  # folder of stored sets (stage1.., train, valid) in place of generated samples

    def __post_init__(self) -> None:
        require(self.task in TASKS, "task", self.task, " or ".join(TASKS))
        for name in ("model", "negative"):
            require(isinstance(getattr(self, name), str), name, getattr(self, name), "a name")
        require(isinstance(self.settings, dict), "settings", self.settings, "a dict")
        if not models.create(self.model, self.settings).two_inputs and self.task != "identification":
            raise ValueError(f"{self.model} sees one scene; accepted is task='identification', or a two-input model")
        for name in ("samples_per_stage", "epochs_per_stage", "validation_samples", "batch_size"):
            require_whole(name, getattr(self, name))
        require_seed("seed", self.seed)
        require_seed("reference_seed", self.reference_seed)
        rate = self.learning_rate
        require(is_finite(rate) and rate > 0, "learning_rate", rate, "a positive number")
        self._check_samples()

    def _check_samples(self) -> None:
        numbers = self.n_objects if isinstance(self.n_objects, tuple) else (self.n_objects,)
        fits = all(map(is_whole, numbers))
        require(fits, "n_objects", self.n_objects, "an int from 1, or a tuple (low, high) of two")
        fits = isinstance(self.stages, tuple) and len(self.stages) > 0 and all(map(is_finite, self.stages))
        require(fits, "stages", self.stages, "a tuple of rotation limits in radians, at least one")
        for limit in self.stages:
            self.task_at(limit)
        require(self.data is None or isinstance(self.data, str), "data", self.data, "a path as a str, or None")
        if self.data is not None and self.negative != REDRAWN:
            raise ValueError(
                f"negative is {self.negative!r} and data {self.data!r}; stored sets hold negatives of their own: "
                f"accepted is negative={REDRAWN!r}, or no data"
            )

    @classmethod
    def identification(cls, n_objects: int = 5, **changes: Any) -> TrainingConfig:
        """The paper's protocol for Identification: 20 epochs on 10,000 samples."""
        defaults: dict[str, Any] = {
            "model": "mpgnn_single",
            "stages": (TURN,),
            "samples_per_stage": 10_000,
            "epochs_per_stage": 20,
            "validation_samples": 5_000,
        }
        return cls(task="identification", n_objects=n_objects, **(defaults | changes))

    @classmethod
    def plain(cls, model: str = "matching", **changes: Any) -> TrainingConfig:
        """Discrimination without a curriculum, for the matching network: every rotation from the start, two epochs.

        Its biases have some way to go from where they start, hence the faster learning.
        """
        defaults: dict[str, Any] = {"stages": (TURN,), "epochs_per_stage": 2, "learning_rate": 1e-2}
        return cls(model=model, **(defaults | changes))

    @property
    def n_epochs(self) -> int:
        """Epochs of all stages."""
        return len(self.stages) * self.epochs_per_stage

    def task_at(self, max_rotation: float) -> Task:
        """The generator of samples for a rotation limit (radians)."""
        if self.task == "discrimination":
            return Discrimination(self.n_objects, max_rotation, self.negative)
        if not isinstance(self.n_objects, int):
            raise ValueError(f"n_objects is {self.n_objects!r}; identification has one reference scene: give an int")
        return Identification(self.n_objects, max_rotation, self.negative, reference_seed=self.reference_seed)

    def trained_for(self, sets: dict[str, str] | None = None) -> dict[str, Any]:
        """What the weights are good for, as stored beside them; ``sets`` are the SHA-256 of the stored sets by name."""
        info: dict[str, Any] = {"name": self.task, "training": self.to_json()}
        if self.data is not None:
            info["data"] = {"path": self.data, "sha256": dict(sets or {})}
        if self.task == "identification":
            assert isinstance(self.n_objects, int)
            info["reference"] = reference_scene(self.n_objects, self.reference_seed).tolist()
        return info

    def to_json(self) -> dict[str, Any]:
        """The configuration as a JSON object."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> TrainingConfig:
        """The inverse of ``to_json``."""
        tuples: dict[str, Any] = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
        return cls(**(values | tuples))


@dataclass(frozen=True)
class EpochLog:
    """One row of the log."""

    stage: int  # from 1
    epoch: int  # from 1, within the stage
    loss: float  # mean over the training samples, summed over the model's rounds
    validation_accuracy: float  # of the last round, in 0..1
    seconds: float  # of training, without the validation


def train(
    config: TrainingConfig,
    folder: str | os.PathLike[str],
    *,
    device: torch.device | str = "cpu",
    progress: bool | None = None,
    tensorboard: bool = False,
    on_epoch: Callable[[EpochLog], None] | None = None,
) -> RewardModel:
    """Train a model into a folder, or go on where an earlier run of the same configuration stopped.

    Args:
        progress: show a bar; by default where standard error is a terminal.
        tensorboard: also log to ``folder/tensorboard``.
        on_epoch: called after each epoch, when its state is on disk.

    Returns:
        The trained model, in evaluation mode, on ``device``.

    Raises:
        ValueError: the folder belongs to another configuration or other data, or its state is damaged.
        datasets.DataSetError: a stored set is missing or damaged.
        ImportError: ``tensorboard`` without that package.
    """
    folder = Path(folder)
    sets = _claimed(folder, config)
    model = models.create(config.model, config.settings, config.seed).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    log = _restore(folder / STATE, model, optimizer)
    steps = [(stage, epoch) for stage in range(len(config.stages)) for epoch in range(config.epochs_per_stage)]
    left = steps[len(log) :]
    if left:
        sets = _digests(config, sets)
    with one_thread(), _scalars(folder, tensorboard) as write, _bar(config, len(log), progress) as bar:
        validation = _load(config, model, VALID, sets, device) if left else None
        stage_of_data = left[0][0] if left else None
        data = None if stage_of_data is None else _load(config, model, stage_of_data, sets, device)
        _claim(folder, config, sets)
        for stage, epoch in left:
            if stage != stage_of_data:
                stage_of_data, data = stage, _load(config, model, stage, sets, device)
            assert data is not None
            assert validation is not None
            bar.set_description(f"stage {stage + 1} of {len(config.stages)}")
            start = time.perf_counter()
            loss = _epoch(model, optimizer, data, config, stage, epoch)
            seconds = time.perf_counter() - start
            row = EpochLog(stage + 1, epoch + 1, loss, accuracy(model, validation).value, seconds)
            log.append(row)
            _keep(folder, model, optimizer, log)
            bar.update()
            bar.set_postfix(loss=f"{row.loss:.4f}", validation=f"{row.validation_accuracy:.4f}")
            write(len(log), row)
            if on_epoch is not None:
                on_epoch(row)
    checkpoint.save(model, folder, config.trained_for(sets))
    return model.eval()


def read_log(folder: str | os.PathLike[str]) -> list[EpochLog]:
    """The rows of a training folder's log."""
    with open(Path(folder) / LOG, newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        EpochLog(int(row["stage"]), int(row["epoch"]), *(float(row[column.name]) for column in fields(EpochLog)[2:]))
        for row in rows
    ]


def _claimed(folder: Path, config: TrainingConfig) -> dict[str, str]:
    """SHA-256 of the stored sets that a run in the folder began with; refuses another configuration's folder."""
    file = folder / CONFIG
    if not file.exists():
        return {}
    theirs, ours = read_object(file), config.to_json()
    sets = theirs.pop(SETS, {})
    if theirs != ours:
        keys = sorted(key for key in ours | theirs if ours.get(key) != theirs.get(key))
        changes = ", ".join(f"{key}: {theirs.get(key)!r} there, {ours.get(key)!r} now" for key in keys)
        raise ValueError(f"{folder} holds another training run ({changes}); give another folder or remove it")
    require(isinstance(sets, dict), f"{SETS} of {file}", sets, "an object")
    return sets


def _claim(folder: Path, config: TrainingConfig, sets: dict[str, str]) -> None:
    """Make the folder this configuration's own."""
    if (folder / CONFIG).exists():
        return
    with replaced(folder / CONFIG) as temporary:
        temporary.write_text(json.dumps(config.to_json() | ({SETS: sets} if sets else {}), indent=2) + "\n")


def _digests(config: TrainingConfig, began_with: dict[str, str]) -> dict[str, str]:
    """SHA-256 of each stored set by name, each checked against what it is used for; empty without ``data``."""
    if config.data is None:
        return {}
    found = {}
    for part in (*range(len(config.stages)), VALID):
        path, task = _stored(config, part)
        found[path.name] = stored_sets.digest(path, task)
        stored_sets.refuse_change(path, began_with.get(path.name, found[path.name]), found[path.name])
    return found


def _stored(config: TrainingConfig, part: int | str) -> tuple[Path, Task]:
    """Path of the stored set of a stage (from 0) or of "valid", and the task it is used for."""
    assert config.data is not None
    if isinstance(part, str):
        return Path(config.data) / part, config.task_at(TURN)
    name = f"stage{part + 1}" if config.task == "discrimination" else "train"
    return Path(config.data) / name, config.task_at(config.stages[part])


def _load(
    config: TrainingConfig, model: RewardModel, part: int | str, sets: dict[str, str], device: torch.device | str
) -> Batch:
    """The samples of a stage (from 0), or of "valid"."""
    if isinstance(part, str):
        task, size, name = config.task_at(TURN), config.validation_samples, part
    else:
        task, size, name = config.task_at(config.stages[part]), config.samples_per_stage, f"stage/{part}"
    if config.data is None:
        samples = task.sample(size, stream(config.seed, name))
    else:
        path, task = _stored(config, part)
        samples = stored_sets.load(path, task, sets[path.name], size)
    return from_samples(samples, model.two_inputs, device)


def _epoch(
    model: RewardModel, optimizer: torch.optim.Adam, data: Batch, config: TrainingConfig, stage: int, epoch: int
) -> float:
    """One pass over the data in the order of (seed, stage, epoch); returns the mean loss."""
    order = stream(config.seed, f"order/{stage}/{epoch}").permutation(len(data))
    shuffled = data[torch.from_numpy(order).to(data.label.device)]
    total = torch.zeros((), dtype=torch.float64, device=data.label.device)
    model.train()
    for start in range(0, len(data), config.batch_size):
        batch = shuffled[start : start + config.batch_size]
        loss = loss_of(model(batch.target, batch.reference), batch.label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach() * len(batch)
    return total.item() / len(data)


def _keep(folder: Path, model: RewardModel, optimizer: torch.optim.Adam, log: list[EpochLog]) -> None:
    """Write state and log after an epoch; the state holds the log too, so that they never disagree for long."""
    tensors = {f"model.{name}": value.contiguous() for name, value in model.state_dict().items()}
    for index, values in optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{index}.{key}": value.contiguous() for key, value in values.items()}
    with replaced(folder / STATE) as temporary:
        metadata = {"log": json.dumps([asdict(row) for row in log])}
        temporary.write_bytes(safetensors.torch.save(tensors, metadata))
    _write_log(folder, log)


def _write_log(folder: Path, log: list[EpochLog]) -> None:
    with replaced(folder / LOG) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, [column.name for column in fields(EpochLog)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in log)


def _restore(file: Path, model: RewardModel, optimizer: torch.optim.Adam) -> list[EpochLog]:
    """Bring model and optimiser to where the state file was written; returns the log up to there."""
    if not file.exists():
        return []
    try:
        with safe_open(file, "pt") as stored:
            log = [EpochLog(**row) for row in json.loads(stored.metadata()["log"])]
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        weights = {name[6:]: value for name, value in tensors.items() if name.startswith("model.")}
        adam: dict[int, dict[str, torch.Tensor]] = {}
        for name in tensors.keys() - {f"model.{name}" for name in weights}:
            _, index, key = name.split(".")
            adam.setdefault(int(index), {})[key] = tensors[name]
        model.load_state_dict(weights)
        optimizer.load_state_dict({**optimizer.state_dict(), "state": adam})
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{file} is damaged: {error}; remove its folder to start again") from error
    _write_log(file.parent, log)
    return log


def _bar(config: TrainingConfig, done: int, progress: bool | None) -> Any:
    shown = sys.stderr.isatty() if progress is None else progress
    return tqdm(total=config.n_epochs, initial=done, unit="epoch", disable=not shown)


@contextmanager
def _scalars(folder: Path, wanted: bool) -> Iterator[Callable[[int, EpochLog], None]]:
    """A function that writes a row to TensorBoard, or does nothing."""
    if not wanted:
        yield lambda step, row: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError(f"logging to TensorBoard needs its package: pip install tensorboard ({error})") from error
    with SummaryWriter(folder / "tensorboard") as writer:

        def write(step: int, row: EpochLog) -> None:
            writer.add_scalar("loss/train", row.loss, step)
            writer.add_scalar("accuracy/validation", row.validation_accuracy, step)

        yield write
