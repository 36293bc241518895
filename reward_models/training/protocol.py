"""The training protocol (sections 2.3 and 3.2 of the paper): Adam, cross-entropy, a curriculum of rotations.

``train`` fills a folder: ``config.json``, ``log.csv`` (a row an epoch), ``state.safetensors`` (weights, Adam's state
and the log so far) and, at the end, ``model.safetensors`` and ``model.json``. Run again, it resumes after the last
whole epoch, and the weights are those of a run that was never interrupted, bit for bit: the samples are a function of
(data seed, stage) and their order of (seed, stage, epoch), so there is no random state to keep. torch's and numpy's
global random states are left alone. A run that fails before it has a model and its first samples leaves the folder
free.

``train_together`` trains several seeds on the same samples in one pass (see stack.py), each as it is trained alone but
for rounding; every seed has a folder of its own in the pass's folder, with its log and its model.

With ``data`` the samples come from stored sets. Each must be what the configuration describes, and ``config.json``
and ``model.json`` hold the SHA-256 of all of them: a run resumes with the sets that it began with or not at all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from reward_models import models
from reward_models.measuring.evaluation import accuracy, loss_of
from reward_models.models import RewardModel, checkpoint
from reward_models.models.batch import Batch, for_model
from reward_models.models.stack import Stack
from reward_models.threads import one_thread
from reward_models.training import folder as folders
from reward_models.training import stored_sets
from reward_models.training.config import VALID, TrainingConfig
from reward_models.training.folder import CONFIG, STATE, State
from spatialsim_env.checks import read_object, require, require_seed
from spatialsim_env.streams import stream

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

        def report(rows: list[EpochLog], count: int) -> None:
            write(count, rows[0])
            if on_epoch is not None:
                on_epoch(rows[0])

        return _Pass(config, [config.seed], folder, [folder], config.to_json()).run(device, progress, report)[0]


def train_together(
    config: TrainingConfig,
    seeds: Sequence[int],
    folder: str | os.PathLike[str],
    *,
    device: torch.device | str = "cpu",
    progress: bool | None = None,
) -> list[RewardModel]:
    """Train a model a seed in one pass, or resume it; ``config.seed`` is not used.

    Returns:
        The trained models in the order of ``seeds``, in evaluation mode, on ``device``.

    Raises:
        ValueError: as ``train``; no seeds, or one twice; several seeds that would have samples of their own.
    """
    require(len(seeds) > 0 and len(set(seeds)) == len(seeds), "seeds", seeds, "at least one, each once")
    for seed in seeds:
        require_seed("seed", seed)
    if config.data_seed is None and config.data is None:
        if len(seeds) > 1:
            raise ValueError(
                "data_seed is None; several seeds train together on the same samples: give an int, or data"
            )
        config = replace(config, data_seed=seeds[0])
    folder = Path(folder)
    settings = config.to_json() | {"seed": None, SEEDS: list(seeds)}
    return _Pass(config, seeds, folder, [folder / f"seed{seed}" for seed in seeds], settings).run(device, progress)


def read_log(folder: str | os.PathLike[str]) -> list[EpochLog]:
    """Read the log of a training folder."""
    return folders.read_log(folder, EpochLog)


def read_logs(folder: str | os.PathLike[str]) -> list[list[EpochLog]]:
    """Read the logs of a pass, one a seed in the order of its seeds."""
    return [read_log(Path(folder) / f"seed{seed}") for seed in read_object(Path(folder) / CONFIG)[SEEDS]]


@dataclass
class _Pass:
    """Several seeds of a configuration, trained at once."""

    config: TrainingConfig
    seeds: Sequence[int]
    folder: Path
    homes: list[Path]  # of each seed's log and model
    settings: dict[str, Any]  # of config.json

    def run(
        self,
        device: torch.device | str,
        progress: bool | None,
        on_epoch: Callable[[list[EpochLog], int], None] | None = None,
    ) -> list[RewardModel]:
        """Train all epochs that are left; ``on_epoch`` gets a row a seed and the number of epochs done."""
        config, file = self.config, self.folder / CONFIG
        sets = self._sets_at_start()
        folders.refuse_other(file, self._with(sets))
        stack = Stack([models.create(config.model, config.settings, seed).to(device) for seed in self.seeds])
        optimizer = torch.optim.Adam(stack.weights.values(), lr=config.learning_rate, fused=True)
        state = State(self.folder / STATE, {f"model.{name}": x for name, x in stack.state().items()}, optimizer)
        logs: list[list[EpochLog]] = state.restore(EpochLog) or [[] for _ in self.seeds]
        self._write_logs(logs)
        done = len(logs[0])
        if done < config.n_epochs:
            sets = stored_sets.digests(config, sets)

        def load(part: int | str) -> Batch:
            return for_model(stack.networks[0], stored_sets.samples_of(config, part, sets), device)

        with one_thread(), folders.progress_bar(config.n_epochs, done, progress) as bar:
            validation: Batch | None = None
            for stage in range(done // config.epochs_per_stage, len(config.stages)):
                data = load(stage)
                validation = load(VALID) if validation is None else validation
                folders.claim(file, self._with(sets))
                bar.set_description(f"stage {stage + 1} of {len(config.stages)}")
                for epoch in range(len(logs[0]) - stage * config.epochs_per_stage, config.epochs_per_stage):
                    losses, seconds = self._epoch(stack, optimizer, data, stage, epoch)
                    right = [accuracy(network, validation).value for network in stack.networks]
                    rows = [EpochLog(stage + 1, epoch + 1, *of, seconds) for of in zip(losses, right, strict=True)]
                    logs = [[*log, row] for log, row in zip(logs, rows, strict=True)]
                    state.save(logs)
                    self._write_logs(logs)
                    bar.update()
                    bar.set_postfix(loss=f"{losses[0]:.4f}", validation=f"{right[0]:.4f}")
                    if on_epoch is not None:
                        on_epoch(rows, len(logs[0]))
                del data  # before the next, for its memory
        for seed, network, home in zip(self.seeds, stack.networks, self.homes, strict=True):
            checkpoint.save(network, home, replace(config, seed=seed).describe_task(sets))
        return [network.eval() for network in stack.networks]

    def _epoch(
        self, stack: Stack, optimizer: torch.optim.Adam, data: Batch, stage: int, epoch: int
    ) -> tuple[list[float], float]:
        """Pass over the data, for each seed in the order of (seed, stage, epoch); mean losses, and seconds a seed."""
        start, device = time.perf_counter(), data.label.device
        orders = [stream(seed, f"order/{stage}/{epoch}").permutation(len(data)) for seed in self.seeds]
        order = torch.stack([torch.from_numpy(rows) for rows in orders]).to(device)
        total = torch.zeros(len(self.seeds), dtype=torch.float64, device=device)
        stack.train()
        for columns in order.split(self.config.batch_size, dim=1):
            batch = data.at(columns)
            loss = loss_of(stack(batch.target, batch.reference), batch.label)
            optimizer.zero_grad(set_to_none=True)
            loss.sum().backward()
            optimizer.step()
            total += loss.detach() * batch.label.shape[1]
        losses = (total / len(data)).tolist()
        return losses, (time.perf_counter() - start) / len(self.seeds)

    def _sets_at_start(self) -> dict[str, str]:
        """Read the SHA-256 of the stored sets that a run in the folder began with; empty without a run or sets."""
        file = self.folder / CONFIG
        sets = read_object(file).get(SETS, {}) if file.exists() else {}
        require(isinstance(sets, dict), f"{SETS} of {file}", sets, "an object")
        return sets

    def _with(self, sets: dict[str, str]) -> dict[str, Any]:
        return self.settings | ({SETS: sets} if sets else {})

    def _write_logs(self, logs: list[list[EpochLog]]) -> None:
        for log, home in zip(logs, self.homes, strict=True):
            folders.write_log(home, log)


@contextmanager
def _scalars(folder: Path, wanted: bool) -> Iterator[Callable[[int, EpochLog], None]]:
    """Give a function that writes a row to TensorBoard, or does nothing."""
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
