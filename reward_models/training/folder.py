"""The folder of a training: whose it is, its log, and the state from which an interrupted run resumes.

All files are replaced as a whole. The state holds the log too, so that weights and log never disagree for long.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from tqdm import tqdm

from spatialsim_env.checks import read_object
from spatialsim_env.files import replace_file

CONFIG, LOG, STATE = "config.json", "log.csv", "state.safetensors"
Row = TypeVar("Row")  # a dataclass of ints and floats
_PARSERS = {"int": int, "float": float}


class DamagedState(ValueError):
    """The state of a run that cannot be resumed."""


def refuse_other(file: Path, settings: Mapping[str, Any], kind: str = "training run") -> None:
    """Refuse a folder whose file of settings holds others; without such a file it is free."""
    theirs = read_object(file) if file.exists() else settings
    keys = sorted(key for key in {*settings, *theirs} if settings.get(key) != theirs.get(key))
    if keys:
        changes = ", ".join(f"{key}: {theirs.get(key)!r} there, {settings.get(key)!r} now" for key in keys)
        raise ValueError(f"{file.parent} holds another {kind} ({changes}); give another folder or remove it")


def claim(file: Path, settings: Mapping[str, Any], kind: str = "training run") -> None:
    """Make a folder that of these settings; refuse one of others."""
    refuse_other(file, settings, kind)
    if not file.exists():
        write_object(file, settings)


def write_object(file: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object."""
    with replace_file(file) as temporary:
        temporary.write_text(json.dumps(values, indent=2) + "\n")


def write_log(folder: Path, rows: Sequence[Any]) -> None:
    """Write dataclasses of one kind as the log of a folder; without a row there is none."""
    if rows:
        with replace_file(folder / LOG) as temporary, temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, [column.name for column in fields(rows[0])])
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)


def read_log(folder: str | os.PathLike[str], kind: type[Row]) -> list[Row]:
    """Read the log of a folder, whose rows are of a kind."""
    columns = [(column.name, _PARSERS[str(column.type)]) for column in fields(kind)]  # type: ignore[arg-type]
    with open(Path(folder) / LOG, newline="") as file:
        return [kind(**{name: parse(row[name]) for name, parse in columns}) for row in csv.DictReader(file)]


@dataclass(frozen=True)
class State:
    """Networks and their optimiser, to a file and back, with the log up to there."""

    file: Path
    tensors: Mapping[str, Tensor]  # the networks' own, which training changes in place
    optimizer: torch.optim.Optimizer

    def save(self, log: Any) -> None:
        """Write all of it; the log is dataclasses in lists."""
        tensors = {name: value.detach().contiguous() for name, value in self.tensors.items()}
        for index, values in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{key}": value.contiguous() for key, value in values.items()}
        with replace_file(self.file) as temporary:
            temporary.write_bytes(safetensors.torch.save(tensors, {"log": json.dumps(log, default=asdict)}))

    def restore(self, kind: type) -> list[Any]:
        """Bring networks and optimiser to where the file was written and return the log; empty without a file.

        Args:
            kind: of the rows of the log.

        Raises:
            DamagedState: the file cannot be read, or is of other networks.
        """
        if not self.file.exists():
            return []
        try:
            with safe_open(self.file, "pt") as stored:
                log = json.loads(stored.metadata()["log"], object_hook=lambda row: kind(**row))
                tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
            adam: dict[int, dict[str, Tensor]] = {}
            for name in [name for name in tensors if name.startswith("adam.")]:
                _, index, key = name.split(".")
                adam.setdefault(int(index), {})[key] = tensors.pop(name)
            self._load(tensors)
            self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": adam})
        except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise DamagedState(f"{self.file} is damaged: {error}; remove its folder to start again") from error
        return log

    @torch.no_grad()
    def _load(self, tensors: Mapping[str, Tensor]) -> None:
        own = self.tensors
        if own.keys() != tensors.keys() or any(own[name].shape != value.shape for name, value in tensors.items()):
            raise ValueError("its weights are those of other networks")
        for name, value in tensors.items():
            own[name].copy_(value)


def progress_bar(total: int, done: int, shown: bool | None) -> Any:
    """Make the bar of a training's epochs; with None it is shown where standard error is a terminal."""
    hidden = not (sys.stderr.isatty() if shown is None else shown)
    return tqdm(total=total, initial=done, unit="epoch", disable=hidden)
