"""The training protocol of Rel3D: Adam, cross-entropy weighted by predicate, the best epoch of a validation set.

``train`` fills a folder: ``config.json``, ``log.csv`` (a row an epoch), ``state.safetensors`` (weights, the best ones
so far, Adam's state and the log, replaced as a whole) and, at the end, ``model.safetensors`` and ``model.json`` with
the weights of the best epoch in place of the state. Run again, it goes on after the last epoch in the state, and the
weights are those of a run that was never interrupted, bit for bit: the order of the samples and the crops of pictures
are functions of (seed, epoch), and learning rate, best epoch and end follow from the log. torch's and numpy's global
random states are left alone.

A batch's loss is the mean of the samples' cross-entropies, each times the weight of its predicate
(``published.loss_weights``). The learning rate is halved where the validation accuracy, the unweighted mean over
predicates, has not grown for ``patience`` epochs, and training ends where it has not for ``early_stop``. Batches are
as even as they can be and none is larger than ``batch_size``, so that none is too small to be normalised.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor
from tqdm import tqdm

from reward_models import models
from reward_models.measuring import relation_accuracy
from reward_models.models import checkpoint
from reward_models.models.relations.columns import Columns
from reward_models.threads import one_thread
from reward_models.training.protocol import CONFIG, LOG, STATE, DamagedState
from spatialsim_env.checks import is_finite, read_object, require, require_seed, require_whole
from spatialsim_env.files import replaced
from spatialsim_env.relations.rel3d.published import Samples, Split, loss_weights
from spatialsim_env.streams import stream

__all__ = ["DamagedState", "EpochLog", "RelationConfig", "fingerprint", "read_log", "train"]

LONGER = {"boxes2d": 800}  # epochs of models that learn for longer than the others


@dataclass(frozen=True)
class RelationConfig:
    """One training run. The defaults are the published protocol.

    Raises:
        ValueError: an unknown name, or a number out of range.
    """

    model: str = "relational"  # name in models.RELATIONS
    settings: dict[str, Any] = field(default_factory=dict)  # of the model, beside classes and pixels
    epochs: int = 200  # at most
    learning_rate: float = 1e-3
    batch_size: int = 128
    patience: int = 10  # epochs without a better one before the learning rate is halved
    early_stop: int = 20  # epochs without a better one before the end
    seed: int = 0  # of weights, order and crops
    pixels: int = 224  # height and width of pictures, for models that see them

    def __post_init__(self) -> None:
        require(isinstance(self.model, str), "model", self.model, "a name")
        require(isinstance(self.settings, dict), "settings", self.settings, "a dict")
        if self.model not in models.RELATIONS:
            raise ValueError(f"model is {self.model!r}; accepted are {', '.join(models.RELATIONS)}")
        models.configure(self.model, self.settings)
        for name in ("epochs", "batch_size", "patience", "early_stop"):
            require_whole(name, getattr(self, name))
        require(self.batch_size > 1, "batch_size", self.batch_size, "an int from 2, for batch normalisation")
        require_whole("pixels", self.pixels, 32)
        require_seed("seed", self.seed)
        rate = self.learning_rate
        require(is_finite(rate) and rate > 0, "learning_rate", rate, "a positive number")

    @classmethod
    def published(cls, model: str, **changes: Any) -> RelationConfig:
        """The published protocol of a model: the model of 2D boxes has 800 epochs, others 200."""
        values: dict[str, Any] = {"model": model, "epochs": LONGER.get(model, cls.epochs)}
        return cls(**(values | changes))

    def to_json(self) -> dict[str, Any]:
        """The configuration as a JSON object."""
        return json.loads(json.dumps(asdict(self)))


@dataclass(frozen=True)
class EpochLog:
    """One row of the log."""

    epoch: int  # from 1
    loss: float  # mean over the training samples, weighted by predicate
    validation_accuracy: float  # unweighted mean over predicates, in 0..1
    learning_rate: float  # of the epoch
    seconds: float  # of training, without the validation


def train(
    config: RelationConfig,
    split: Split,
    folder: str | os.PathLike[str],
    *,
    device: torch.device | str = "cpu",
    pictures: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    on_epoch: Callable[[EpochLog], None] | None = None,
    keep_every: float = 0.0,
) -> Any:
    """Train a relation model into a folder, or go on where an earlier run of the same configuration stopped.

    Args:
        split: its training samples are learnt from, its validation samples choose the epoch.
        pictures: folder of the pictures that samples name, for models that see them.
        progress: show a bar; by default where standard error is a terminal.
        on_epoch: called after each epoch.
        keep_every: seconds between two states at least; with 0 there is one after each epoch. A run goes on from the
            last one.

    Returns:
        The model with the weights of the best epoch, in evaluation mode, on ``device``.

    Raises:
        ValueError: the folder belongs to another configuration or other data, or a part of the split is empty.
        DamagedState: its state cannot be read.
        FileNotFoundError: a picture is missing.
        FloatingPointError: the loss is no number.
    """
    return _Run(config, split, Path(folder), torch.device(device), pictures).run(progress, on_epoch, keep_every)


def read_log(folder: str | os.PathLike[str]) -> list[EpochLog]:
    """The rows of a training folder's log."""
    with open(Path(folder) / LOG, newline="") as file:
        return [
            EpochLog(int(row["epoch"]), *(float(row[column.name]) for column in fields(EpochLog)[1:]))
            for row in csv.DictReader(file)
        ]


def fingerprint(samples: Samples) -> str:
    """Hexadecimal SHA-256 of what models may see of samples, their labels and their pairs."""
    digest = hashlib.sha256()
    columns = (samples.predicate, samples.subject, samples.object, samples.label, samples.boxes, samples.picture_size)
    for column in (*columns, samples.pair, *(samples.vectors[name] for name in sorted(samples.vectors))):
        digest.update(repr((column.dtype.str, column.shape)).encode())
        digest.update(np.ascontiguousarray(column).tobytes())
    digest.update("\n".join(samples.rgb).encode())
    return digest.hexdigest()


def best_epoch(accuracies: Sequence[float]) -> int:
    """Place (from 0) of the first highest validation accuracy."""
    return int(np.argmax(accuracies))


def is_over(config: RelationConfig, accuracies: Sequence[float]) -> bool:
    """Whether training ends after epochs with these validation accuracies."""
    done = len(accuracies)
    return done >= config.epochs or (done > 0 and done - 1 - best_epoch(accuracies) >= config.early_stop)


def settings_of(config: RelationConfig, split: Split) -> dict[str, Any]:
    """Settings of the model: those of the configuration, the split's classes, and pixels where it sees pictures."""
    model = models.RELATIONS[config.model]
    pixels = {"pixels": config.pixels} if "pixels" in model.Config.__dataclass_fields__ else {}
    return model.settings_for(split.predicates, split.objects) | pixels | config.settings


@dataclass
class _Run:
    config: RelationConfig
    split: Split
    folder: Path
    device: torch.device
    pictures: str | os.PathLike[str] | None

    def run(self, progress: bool | None, on_epoch: Callable[[EpochLog], None] | None, keep_every: float) -> Any:
        config, said = self.config, self._said()
        self._refuse_others(said)
        if (self.folder / checkpoint.INFO).exists():
            return checkpoint.load(self.folder).model.to(self.device).eval()
        model = models.create(config.model, settings_of(config, self.split), config.seed).to(self.device)
        data = self._columns(model, self.split.train, learning=True)
        valid = self._columns(model, self.split.valid)
        model.fit_scale(data.to_fit_scale(config.seed))
        self._claim(said)
        optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.5, patience=config.patience)
        state = _State(model, optimizer)
        log = state.restore(self.folder / STATE)
        for row in log:
            plateau.step(row.validation_accuracy)
        kept = time.perf_counter()
        with one_thread(), _bar(config, len(log), progress) as bar:
            while not is_over(config, _accuracies(log)):
                row = self._epoch(model, optimizer, data, valid, len(log))
                log.append(row)
                plateau.step(row.validation_accuracy)
                if best_epoch(_accuracies(log)) == len(log) - 1:
                    state.remember()
                over = is_over(config, _accuracies(log))
                if not over and time.perf_counter() - kept >= keep_every:
                    state.keep(self.folder / STATE, log)
                    self._write_log(log)
                    kept = time.perf_counter()
                bar.update()
                bar.set_postfix(loss=f"{row.loss:.4f}", validation=f"{row.validation_accuracy:.4f}")
                if on_epoch is not None:
                    on_epoch(row)
        self._write_log(log)
        model.load_state_dict(state.best)
        checkpoint.save(model, self.folder, self._trained_for(said, log))
        (self.folder / STATE).unlink(missing_ok=True)
        return model.eval()

    def _said(self) -> dict[str, Any]:
        """What config.json says."""
        parts = {"train": self.split.train, "valid": self.split.valid}
        for name, part in parts.items():
            if len(part) < 2:
                raise ValueError(f"{name} has {len(part)} samples; accepted are splits with some in train and in valid")
        return self.config.to_json() | {"samples": {name: fingerprint(part) for name, part in parts.items()}}

    def _refuse_others(self, said: dict[str, Any]) -> None:
        file = self.folder / CONFIG
        if not file.exists() or (theirs := read_object(file)) == said:
            return
        keys = sorted(key for key in said | theirs if said.get(key) != theirs.get(key))
        changes = ", ".join(f"{key}: {theirs.get(key)!r} there, {said.get(key)!r} now" for key in keys)
        raise ValueError(f"{self.folder} holds another training run ({changes}); give another folder or remove it")

    def _claim(self, said: dict[str, Any]) -> None:
        if not (self.folder / CONFIG).exists():
            with replaced(self.folder / CONFIG) as temporary:
                temporary.write_text(json.dumps(said, indent=2) + "\n")

    def _columns(self, model: Any, samples: Samples, learning: bool = False) -> Columns:
        return Columns.of(model, samples, self.device, self.pictures, self.config.pixels, learning=learning)

    def _epoch(
        self, model: Any, optimizer: torch.optim.Optimizer, data: Columns, valid: Columns, epoch: int
    ) -> EpochLog:
        """One pass over the data in the order of (seed, epoch)."""
        config, start = self.config, time.perf_counter()
        rate = float(optimizer.param_groups[0]["lr"])
        of_predicate = torch.from_numpy(loss_weights(self.split.train, len(self.split.predicates))).float()
        of_predicate = of_predicate.to(self.device)
        label = torch.from_numpy(self.split.train.label).float().to(self.device)
        order = stream(config.seed, f"relations/order/{epoch}").permutation(len(data))
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        model.train()
        for rows in batches(order, config.batch_size):
            batch = data.batch(rows, config.seed, epoch)
            index = torch.from_numpy(rows).to(self.device)
            weight = of_predicate[batch["predicate"]]
            loss = F.binary_cross_entropy_with_logits(model(batch), label[index], weight)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(rows)
        loss_of_epoch = float(total) / len(data)
        if not math.isfinite(loss_of_epoch):
            raise FloatingPointError(f"the loss of epoch {epoch + 1} is {loss_of_epoch}")
        seconds = time.perf_counter() - start
        found = relation_accuracy.logits(model, valid.parts())
        right = relation_accuracy.right(found, self.split.valid.label)
        accuracy = relation_accuracy.accuracy(right, self.split.valid.predicate, len(self.split.predicates)).mean
        return EpochLog(epoch + 1, loss_of_epoch, accuracy, rate, seconds)

    def _trained_for(self, said: dict[str, Any], log: list[EpochLog]) -> dict[str, Any]:
        """What model.json says of the training; the names are those behind the class indices."""
        return {
            "name": "relations",
            "training": self.config.to_json(),
            "samples": said["samples"],
            "data": self.split.name,
            "predicates": list(self.split.predicates),
            "objects": list(self.split.objects),
            "best_epoch": best_epoch(_accuracies(log)) + 1,
        }

    def _write_log(self, log: list[EpochLog]) -> None:
        with replaced(self.folder / LOG) as temporary, temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, [column.name for column in fields(EpochLog)])
            writer.writeheader()
            writer.writerows(asdict(row) for row in log)


def batches(order: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """The order cut into as few parts as ``size`` allows, as even as they can be."""
    return np.array_split(order, math.ceil(len(order) / size))


class _State:
    """Network, its best weights so far and optimiser, to a file and back."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        self.best: dict[str, Tensor] = {}
        self.remember()

    def remember(self) -> None:
        """Take the present weights for the best ones."""
        self.best = {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def keep(self, file: Path, log: Sequence[EpochLog]) -> None:
        """Write all of it; the log goes with it, so that they never disagree for long."""
        tensors = {f"model.{name}": value.detach().contiguous() for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value.contiguous() for name, value in self.best.items()}
        for index, values in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{key}": value.contiguous() for key, value in values.items()}
        with replaced(file) as temporary:
            metadata = {"log": json.dumps([asdict(row) for row in log])}
            temporary.write_bytes(safetensors.torch.save(tensors, metadata))

    def restore(self, file: Path) -> list[EpochLog]:
        """Bring all to where the file was written; returns the log up to there."""
        if not file.exists():
            return []
        try:
            with safe_open(file, "pt") as stored:
                log = [EpochLog(**row) for row in json.loads(stored.metadata()["log"])]
                tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
            adam: dict[int, dict[str, Tensor]] = {}
            for name in [name for name in tensors if name.startswith("adam.")]:
                _, index, key = name.split(".")
                adam.setdefault(int(index), {})[key] = tensors.pop(name)
            self.model.load_state_dict(_part(tensors, "best."))
            self.remember()
            self.model.load_state_dict(_part(tensors, "model."))
            self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": adam})
        except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise DamagedState(f"{file} is damaged: {error}; remove its folder to start again") from error
        return log


def _part(tensors: Mapping[str, Tensor], beginning: str) -> dict[str, Tensor]:
    return {name.removeprefix(beginning): value for name, value in tensors.items() if name.startswith(beginning)}


def _accuracies(log: Sequence[EpochLog]) -> list[float]:
    return [row.validation_accuracy for row in log]


def _bar(config: RelationConfig, done: int, progress: bool | None) -> Any:
    shown = sys.stderr.isatty() if progress is None else progress
    return tqdm(total=config.epochs, initial=done, unit="epoch", disable=not shown)
