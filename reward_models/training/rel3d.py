"""The training protocol of Rel3D: Adam, cross-entropy weighted by predicate, the best epoch of a validation set.

``train`` fills a folder: ``config.json``, ``log.csv`` (a row an epoch), ``state.safetensors`` (weights, the best ones
so far, Adam's state and the log) and, at the end, ``model.safetensors`` and ``model.json`` with
the weights of the best epoch in place of the state. Run again, it resumes after the last epoch in the state, and the
weights are those of a run that was never interrupted, bit for bit: the order of the samples and the crops of pictures
are functions of (seed, epoch), and learning rate, best epoch and end follow from the log. torch's and numpy's global
random states are left alone.

A batch's loss is the mean of the samples' cross-entropies, each times the weight of its predicate
(``published.loss_weights``). The learning rate is halved where the validation accuracy, the unweighted mean over
predicates, has not grown for ``patience`` epochs, and training ends where it has not for ``early_stop``. Batches are
as even as they can be and none is larger than ``batch_size``, so that none is too small to be normalised.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from reward_models import models
from reward_models.measuring import relation_accuracy
from reward_models.models import checkpoint
from reward_models.models.relations.columns import Columns
from reward_models.threads import one_thread
from reward_models.training import folder as folders
from reward_models.training.folder import CONFIG, STATE, State
from spatialsim_env.checks import is_finite, require, require_seed, require_whole
from spatialsim_env.relations.rel3d.published import RelationSamples, Split, loss_weights
from spatialsim_env.streams import stream

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
class RelationEpoch:
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
    on_epoch: Callable[[RelationEpoch], None] | None = None,
    keep_every: float = 0.0,
) -> Any:
    """Train a relation model into a folder, or go on where an earlier run of the same configuration stopped.

    Args:
        split: its training samples are learnt from, its validation samples choose the epoch.
        pictures: folder of the pictures that samples name, for models that see them.
        progress: show a bar; by default where standard error is a terminal.
        on_epoch: called after each epoch.
        keep_every: seconds between two states at least; with 0 there is one after each epoch. A run resumes from the
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


def read_log(folder: str | os.PathLike[str]) -> list[RelationEpoch]:
    """Read the log of a training folder."""
    return folders.read_log(folder, RelationEpoch)


def fingerprint(samples: RelationSamples) -> str:
    """Compute the SHA-256 (hexadecimal) of samples as models may see them, their labels and their pairs."""
    digest = hashlib.sha256()
    columns = (samples.predicate, samples.subject, samples.object, samples.label, samples.boxes, samples.picture_size)
    for column in (*columns, samples.pair, *(samples.vectors[name] for name in sorted(samples.vectors))):
        digest.update(repr((column.dtype.str, column.shape)).encode())
        digest.update(np.ascontiguousarray(column).tobytes())
    digest.update("\n".join(samples.rgb).encode())
    return digest.hexdigest()


def best_epoch(accuracies: Sequence[float]) -> int:
    """Find the place (from 0) of the first highest validation accuracy."""
    return int(np.argmax(accuracies))


def is_over(config: RelationConfig, accuracies: Sequence[float]) -> bool:
    """Tell if training ends after epochs with these validation accuracies."""
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

    def run(
        self, progress: bool | None, on_epoch: Callable[[RelationEpoch], None] | None, keep_every: float
    ) -> torch.nn.Module:
        config, settings = self.config, self._settings()
        folders.refuse_other(self.folder / CONFIG, settings)
        if (self.folder / checkpoint.INFO).exists():
            return checkpoint.load(self.folder).model.to(self.device).eval()
        model = models.create(config.model, settings_of(config, self.split), config.seed).to(self.device)
        data = self._columns(model, self.split.train, learning=True)
        valid = self._columns(model, self.split.valid)
        model.fit_scale(data.to_fit_scale(config.seed))
        folders.claim(self.folder / CONFIG, settings)
        optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.5, patience=config.patience)
        weights = model.state_dict()  # which training changes in place
        best = {name: value.clone() for name, value in weights.items()}
        state = State(self.folder / STATE, _named("model", weights) | _named("best", best), optimizer)
        log = state.restore(RelationEpoch)
        for row in log:
            plateau.step(row.validation_accuracy)
        saved = time.perf_counter()
        with one_thread(), folders.progress_bar(config.epochs, len(log), progress) as bar:
            while not is_over(config, _accuracies(log)):
                log.append(self._epoch(model, optimizer, data, valid, len(log)))
                plateau.step(log[-1].validation_accuracy)
                if best_epoch(_accuracies(log)) == len(log) - 1:
                    for name, value in weights.items():
                        best[name].copy_(value)
                if not is_over(config, _accuracies(log)) and time.perf_counter() - saved >= keep_every:
                    state.save(log)
                    folders.write_log(self.folder, log)
                    saved = time.perf_counter()
                bar.update()
                bar.set_postfix(loss=f"{log[-1].loss:.4f}", validation=f"{log[-1].validation_accuracy:.4f}")
                if on_epoch is not None:
                    on_epoch(log[-1])
        folders.write_log(self.folder, log)
        model.load_state_dict(best)
        checkpoint.save(model, self.folder, self._task(settings["samples"], log))
        state.file.unlink(missing_ok=True)
        return model.eval()

    def _settings(self) -> dict[str, Any]:
        """Entries of config.json."""
        parts = {"train": self.split.train, "valid": self.split.valid}
        for name, part in parts.items():
            if len(part) < 2:
                raise ValueError(f"{name} has {len(part)} samples; accepted are splits with some in train and in valid")
        return self.config.to_json() | {"samples": {name: fingerprint(part) for name, part in parts.items()}}

    def _columns(self, model: Any, samples: RelationSamples, learning: bool = False) -> Columns:
        return Columns.of(model, samples, self.device, self.pictures, self.config.pixels, learning=learning)

    def _epoch(
        self, model: Any, optimizer: torch.optim.Optimizer, data: Columns, valid: Columns, epoch: int
    ) -> RelationEpoch:
        """Pass over the data in the order of (seed, epoch)."""
        start, rate = time.perf_counter(), float(optimizer.param_groups[0]["lr"])
        loss = self._descend(model, optimizer, data, epoch)
        if not math.isfinite(loss):
            raise FloatingPointError(f"the loss of epoch {epoch + 1} is {loss}")
        seconds = time.perf_counter() - start
        right = relation_accuracy.right(relation_accuracy.logits(model, valid.parts()), self.split.valid.label)
        accuracy = relation_accuracy.accuracy(right, self.split.valid.predicate, len(self.split.predicates)).mean
        return RelationEpoch(epoch + 1, loss, accuracy, rate, seconds)

    def _descend(self, model: Any, optimizer: torch.optim.Optimizer, data: Columns, epoch: int) -> float:
        """Train on every sample once; returns the mean loss."""
        config, train = self.config, self.split.train
        of_predicate = torch.from_numpy(loss_weights(train, len(self.split.predicates))).float().to(self.device)
        label = torch.from_numpy(train.label).float().to(self.device)
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
        return float(total) / len(data)

    def _task(self, samples: dict[str, str], log: list[RelationEpoch]) -> dict[str, Any]:
        """Entries of model.json about the training; the names are those behind the class indices."""
        return {
            "name": "relations",
            "training": self.config.to_json(),
            "samples": samples,
            "data": self.split.name,
            "predicates": list(self.split.predicates),
            "objects": list(self.split.objects),
            "best_epoch": best_epoch(_accuracies(log)) + 1,
        }


def batches(order: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """Cut the order into as few parts as ``size`` allows, as even as they can be."""
    return np.array_split(order, math.ceil(len(order) / size))


def _named(kind: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{kind}.{name}": value for name, value in tensors.items()}


def _accuracies(log: Sequence[RelationEpoch]) -> list[float]:
    return [row.validation_accuracy for row in log]
