"""The training protocol (sections 2.3 and 3.2 of the paper): Adam, cross-entropy, a curriculum of rotations.

``train`` fills a folder: ``config.json``, ``log.csv`` (a row an epoch), ``state.safetensors`` (weights, Adam's state
and the log so far, replaced as a whole after each epoch) and, at the end, ``model.safetensors`` and ``model.json``.
Run again, it goes on after the last whole epoch, and the weights are those of a run that was never interrupted, bit
for bit: the samples are a function of (data seed, stage) and their order of (seed, stage, epoch), so there is no random
state to keep. torch's and numpy's global random states are left alone. A run that fails before it has a model and its
first samples leaves the folder free.

``train_together`` trains several seeds on the same samples in one pass (see stack.py), each as it is trained alone but
for rounding; every seed has a folder of its own in the pass's folder, with its log and its model.

With ``data`` the samples come from stored sets. Each must be what the configuration describes, and ``config.json``
and ``model.json`` hold the SHA-256 of all of them: a run goes on with the sets that it began with or not at all.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from tqdm import tqdm

from reward_models import models
from reward_models.measuring.evaluation import accuracy, loss_of
from reward_models.models import RewardModel, checkpoint
from reward_models.models.batch import Batch, for_model
from reward_models.models.stack import Stack
from reward_models.threads import one_thread
from reward_models.training import stored_sets
from reward_models.training.config import ROLLOUTS, VALID, TrainingConfig
from spatialsim_env.arrangements.scene import TURN
from spatialsim_env.arrangements.tasks import Task
from spatialsim_env.checks import read_object, require, require_seed
from spatialsim_env.files import replaced
from spatialsim_env.streams import stream

__all__ = ["DamagedState", "EpochLog", "TrainingConfig", "read_log", "read_logs", "train", "train_together"]

CONFIG = "config.json"
LOG = "log.csv"
STATE = "state.safetensors"
SETS = "sets"  # key of config.json: SHA-256 of the stored sets by name
SEEDS = "seeds"  # key of config.json: of a pass of several


@dataclass(frozen=True)
class EpochLog:
    """One row of the log."""

    stage: int  # from 1
    epoch: int  # from 1, within the stage
    loss: float  # mean over the training samples, summed over the model's rounds
    validation_accuracy: float  # of the last round, in 0..1
    seconds: float  # of training, without the validation; of a pass of several seeds, its share


class DamagedState(ValueError):
    """The state of a run that cannot be gone on with."""


Logs = list[list[EpochLog]]  # of each seed, an entry an epoch


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
        ValueError: the folder belongs to another configuration or other data.
        DamagedState: its state cannot be read.
        datasets.DataSetError: a stored set is missing or damaged.
        ImportError: ``tensorboard`` without that package.
    """
    folder = Path(folder)
    with _scalars(folder, tensorboard) as write:

        def tell(rows: list[EpochLog], count: int) -> None:
            write(count, rows[0])
            if on_epoch is not None:
                on_epoch(rows[0])

        return _Pass(config, [config.seed], folder, [folder], config.to_json()).run(device, progress, tell)[0]


def train_together(
    config: TrainingConfig,
    seeds: Sequence[int],
    folder: str | os.PathLike[str],
    *,
    device: torch.device | str = "cpu",
    progress: bool | None = None,
) -> list[RewardModel]:
    """Train a model a seed in one pass, or go on with it; ``config.seed`` is not used.

    Returns:
        The trained models in the order of ``seeds``, in evaluation mode, on ``device``.

    Raises:
        ValueError: as ``train``; no seeds, or one twice; several seeds that would have samples of their own.
    """
    require(len(seeds) > 0 and len(set(seeds)) == len(seeds), "seeds", seeds, "at least one, each once")
    for seed in seeds:
        require_seed("seed", seed)
    if config.data_seed is None and config.data is None and len(seeds) > 1:
        raise ValueError("data_seed is None; several seeds train together on the same samples: give an int, or data")
    if config.data_seed is None and config.data is None:
        config = replace(config, data_seed=seeds[0])
    folder = Path(folder)
    said = config.to_json() | {"seed": None, SEEDS: list(seeds)}
    return _Pass(config, seeds, folder, [folder / f"seed{seed}" for seed in seeds], said).run(device, progress)


def read_log(folder: str | os.PathLike[str]) -> list[EpochLog]:
    """The rows of a training folder's log."""
    with open(Path(folder) / LOG, newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        EpochLog(int(row["stage"]), int(row["epoch"]), *(float(row[column.name]) for column in fields(EpochLog)[2:]))
        for row in rows
    ]


def read_logs(folder: str | os.PathLike[str]) -> Logs:
    """The logs of a pass, one a seed in the order of its seeds."""
    return [read_log(Path(folder) / f"seed{seed}") for seed in read_object(Path(folder) / CONFIG)[SEEDS]]


@dataclass
class _Pass:
    """Several seeds of a configuration, trained at once."""

    config: TrainingConfig
    seeds: Sequence[int]
    folder: Path
    homes: list[Path]  # of each seed's log and model
    said: dict[str, Any]  # what config.json says

    def run(
        self,
        device: torch.device | str,
        progress: bool | None,
        on_epoch: Callable[[list[EpochLog], int], None] | None = None,
    ) -> list[RewardModel]:
        """Train what is left; ``on_epoch`` gets a row a seed and the number of epochs done."""
        config = self.config
        sets = self._claimed()
        networks = [models.create(config.model, config.settings, seed).to(device) for seed in self.seeds]
        stack = Stack(networks)
        optimizer = torch.optim.Adam(stack.weights.values(), lr=config.learning_rate, fused=True)
        logs = _restore(self.folder / STATE, stack, optimizer)
        self._write_logs(logs)
        steps = [(stage, epoch) for stage in range(len(config.stages)) for epoch in range(config.epochs_per_stage)]
        left = steps[len(logs[0]) :]
        if left:
            sets = _digests(config, sets)
        with one_thread(), _bar(config, len(logs[0]), progress) as bar:
            validation = _load(config, networks[0], VALID, sets, device) if left else None
            stage_of_data = left[0][0] if left else None
            data = None if stage_of_data is None else _load(config, networks[0], stage_of_data, sets, device)
            self._claim(sets)
            for stage, epoch in left:
                if stage != stage_of_data:
                    data = None  # before the next, for its memory
                    stage_of_data, data = stage, _load(config, networks[0], stage, sets, device)
                assert data is not None
                assert validation is not None
                bar.set_description(f"stage {stage + 1} of {len(config.stages)}")
                start = time.perf_counter()
                losses = self._epoch(stack, optimizer, data, stage, epoch)
                seconds = (time.perf_counter() - start) / len(self.seeds)
                right = [accuracy(network, validation).value for network in stack.networks]
                rows = [EpochLog(stage + 1, epoch + 1, *of, seconds) for of in zip(losses, right, strict=True)]
                for log, row in zip(logs, rows, strict=True):
                    log.append(row)
                _keep(self.folder / STATE, stack, optimizer, logs)
                self._write_logs(logs)
                bar.update()
                bar.set_postfix(loss=f"{losses[0]:.4f}", validation=f"{right[0]:.4f}")
                if on_epoch is not None:
                    on_epoch(rows, len(logs[0]))
        for seed, network, home in zip(self.seeds, stack.networks, self.homes, strict=True):
            checkpoint.save(network, home, replace(config, seed=seed).trained_for(sets))
        return [network.eval() for network in stack.networks]

    def _epoch(self, stack: Stack, optimizer: torch.optim.Adam, data: Batch, stage: int, epoch: int) -> list[float]:
        """One pass over the data, for each seed in the order of (seed, stage, epoch); returns the mean losses."""
        device = data.label.device
        orders = [stream(seed, f"order/{stage}/{epoch}").permutation(len(data)) for seed in self.seeds]
        order = torch.stack([torch.from_numpy(rows) for rows in orders]).to(device)
        total = torch.zeros(len(self.seeds), dtype=torch.float64, device=device)
        stack.train()
        for start in range(0, len(data), self.config.batch_size):
            batch = data.at(order[:, start : start + self.config.batch_size])
            loss = loss_of(stack(batch.target, batch.reference), batch.label)
            optimizer.zero_grad(set_to_none=True)
            loss.sum().backward()
            optimizer.step()
            total += loss.detach() * batch.label.shape[1]
        return (total / len(data)).tolist()

    def _claimed(self) -> dict[str, str]:
        """SHA-256 of the stored sets that a run in the folder began with; refuses another configuration's folder."""
        file = self.folder / CONFIG
        if not file.exists():
            return {}
        theirs = read_object(file)
        sets = theirs.pop(SETS, {})
        if theirs != self.said:
            keys = sorted(key for key in self.said | theirs if self.said.get(key) != theirs.get(key))
            changes = ", ".join(f"{key}: {theirs.get(key)!r} there, {self.said.get(key)!r} now" for key in keys)
            raise ValueError(f"{self.folder} holds another training run ({changes}); give another folder or remove it")
        require(isinstance(sets, dict), f"{SETS} of {file}", sets, "an object")
        return sets

    def _claim(self, sets: dict[str, str]) -> None:
        """Make the folder this configuration's own."""
        if (self.folder / CONFIG).exists():
            return
        with replaced(self.folder / CONFIG) as temporary:
            temporary.write_text(json.dumps(self.said | ({SETS: sets} if sets else {}), indent=2) + "\n")

    def _write_logs(self, logs: Logs) -> None:
        for log, home in zip(logs, self.homes, strict=True):
            if log:
                with replaced(home / LOG) as temporary, temporary.open("w", newline="") as file:
                    writer = csv.DictWriter(file, [column.name for column in fields(EpochLog)])
                    writer.writeheader()
                    writer.writerows(asdict(row) for row in log)


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
    folder = Path(config.data.removeprefix(ROLLOUTS))
    if isinstance(part, str):
        return folder / part, config.task_at(TURN)
    in_stages = config.task == "discrimination" and not config.data.startswith(ROLLOUTS)
    return folder / (f"stage{part + 1}" if in_stages else "train"), config.task_at(config.stages[part])


def _load(
    config: TrainingConfig, model: RewardModel, part: int | str, sets: dict[str, str], device: torch.device | str
) -> Batch:
    """The samples of a stage (from 0), or of "valid"."""
    limit, size = (
        (TURN, config.validation_samples) if isinstance(part, str) else (config.stages[part], config.samples_per_stage)
    )
    if config.data is None:
        seed = config.seed if config.data_seed is None else config.data_seed
        samples = config.task_at(limit).sample(size, stream(seed, config.set_name(part)))
    else:
        path, task = _stored(config, part)
        samples = stored_sets.load(path, task, sets[path.name], size)
    return for_model(model, samples, device)


def _keep(file: Path, stack: Stack, optimizer: torch.optim.Adam, logs: Logs) -> None:
    """Write the state after an epoch; it holds the logs too, so that they never disagree for long."""
    tensors = {f"model.{name}": value.detach().contiguous() for name, value in stack.state().items()}
    for index, values in optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{index}.{key}": value.contiguous() for key, value in values.items()}
    with replaced(file) as temporary:
        metadata = {"log": json.dumps([[asdict(row) for row in log] for log in logs])}
        temporary.write_bytes(safetensors.torch.save(tensors, metadata))


def _restore(file: Path, stack: Stack, optimizer: torch.optim.Adam) -> Logs:
    """Bring networks and optimiser to where the state file was written; returns the logs up to there."""
    if not file.exists():
        return [[] for _ in range(len(stack))]
    try:
        with safe_open(file, "pt") as stored:
            logs = [[EpochLog(**row) for row in log] for log in json.loads(stored.metadata()["log"])]
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        adam: dict[int, dict[str, torch.Tensor]] = {}
        for name in [name for name in tensors if name.startswith("adam.")]:
            _, index, key = name.split(".")
            adam.setdefault(int(index), {})[key] = tensors.pop(name)
        stack.load_state({name.removeprefix("model."): value for name, value in tensors.items()})
        optimizer.load_state_dict({**optimizer.state_dict(), "state": adam})
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DamagedState(f"{file} is damaged: {error}; remove its folder to start again") from error
    return logs


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
