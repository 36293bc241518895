"""Work of the hard suite: from a model to its row, ``results/hard/NAME.json``.

Samples are a function of task, range, seed and size, so the judges that stand beside every model have the same results
in every row of a folder, which ``tables.join`` insists on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from reward_models import load
from reward_models.judges import shipped
from reward_models.judges.learned import LearnedModel
from reward_models.measuring import hard_cases
from reward_models.measuring.hard_cases import HardResult
from reward_models.models import checkpoint
from reward_models.provenance import Stamp
from reward_models.studies.engine.run import Place
from reward_models.studies.engine.study import Json
from reward_models.studies.hard_suite.runs import HardUnit
from spatialsim_env.arrangements import hard_suite
from spatialsim_env.files import sha256

_FIELDS = {item.name for item in fields(HardResult)}


@dataclass(frozen=True)
class HardRow:
    """The result of a model."""

    id: str  # name of the model in tables
    stamp: Stamp
    # {"source", "kind", "n_weights", "sha256", "training"}: "hub:NAME" or a folder, the weights' checksum, and the
    # settings of the training where the file has them
    model: Json
    seed: int  # of the samples
    settings: Json  # {"tasks": names, "objects": [[3, 8], ...], "size": per task and range or None, ``size_for``}
    seconds: float = 0.0  # of it all
    rows: list[Json] = field(default_factory=list)  # as ``hard_cases.to_json`` gives them; the model's judge is ``id``
    thresholds: list[Json] = field(default_factory=list)
    error: str | None = None

    def __post_init__(self) -> None:
        for row in self.rows:
            if not isinstance(row, dict) or not row.keys() >= _FIELDS:
                raise ValueError(f"a row is {row!r}; accepted are objects with {', '.join(sorted(_FIELDS))}")
            if row["task"] not in hard_suite.REGISTRY or not 0 <= (row["correct"] or 0) <= row["total"]:
                raise ValueError(f"a row is {row!r}; accepted are known tasks and 0 <= correct <= total")

    @cached_property
    def results(self) -> tuple[HardResult, ...]:
        """The results of the model and of the judges beside it."""
        return tuple(HardResult(**{name: row[name] for name in _FIELDS}) for row in self.rows)

    @property
    def of_model(self) -> tuple[HardResult, ...]:
        """The results of the model itself."""
        return tuple(row for row in self.results if row.judge == self.id)

    @property
    def beside(self) -> tuple[HardResult, ...]:
        """The results of the judges beside it."""
        return tuple(row for row in self.results if row.judge != self.id)


def upgrade(entries: Json) -> Json:
    """Give a recorded row its id, device and error."""
    rest = {name: value for name, value in entries.items() if name != "name"}
    return {"id": entries.get("name"), "device": "cpu", "error": None, **rest}


def judge(unit: HardUnit, stamp: Stamp) -> HardRow:
    """Judge the hard suite by a model of two inputs, beside the ideal observer, the truth and the rules.

    Raises:
        ValueError: a model of one input; arguments that ``hard_cases.run`` does not take; a name that is no file name.
        checkpoint.CheckpointError: no model, or a damaged one.
    """
    model = load(unit.source)
    if not model.two_inputs:
        raise ValueError(
            f"{unit.source}: {model.kind} knows one reference scene; accepted are models that compare two scenes"
        )
    if Path(unit.id).name != unit.id:
        raise ValueError(f"name is {unit.id!r}; accepted is the name of a file, without a folder")
    start = time.perf_counter()
    results = hard_cases.run(model, unit.id, tasks=unit.tasks, objects=unit.objects, size=unit.size, seed=unit.seed)
    seconds = round(time.perf_counter() - start, 1)
    entries = hard_cases.to_json(results)
    return HardRow(unit.id, stamp, _describe(model, unit.source), unit.seed, unit.settings(unit.id), seconds, **entries)


def name_of(source: str | os.PathLike[str]) -> str:
    """Name a model unless told otherwise: as in the hub, or after its folder."""
    text = os.fspath(source)
    return text.removeprefix(shipped.PREFIX) if shipped.is_name(text) else checkpoint.folder_of(text).resolve().name


def _describe(model: LearnedModel, source: str | os.PathLike[str]) -> dict[str, Any]:
    text = os.fspath(source)
    folder = shipped.folder(text) if shipped.is_name(text) else checkpoint.folder_of(text)
    return {
        "source": text,
        "kind": model.kind,
        "n_weights": model.module.n_weights,
        "sha256": sha256(folder / checkpoint.WEIGHTS),
        "training": model.task.get("training"),
    }


def work(unit: HardUnit, place: Place) -> list[HardRow]:
    """Judge the hard suite by a model."""
    return [judge(unit, place.stamp)]


def fail(unit: HardUnit, run: str, stamp: Stamp, error: str) -> HardRow:
    """Make the row of a model that failed."""
    return HardRow(run, stamp, {"source": unit.source}, unit.seed, unit.settings(run), error=error)


def summarise_row(rows: Sequence[HardRow]) -> str:
    """Say in a line what a model's thresholds are."""
    sigmas = {row["objects"]: row["threshold"] for row in rows[0].thresholds if row["judge"] == rows[0].id}
    return ", ".join(
        f"threshold {'never' if sigma is None else f'{sigma:.2f}'} at {objects}" for objects, sigma in sigmas.items()
    )
