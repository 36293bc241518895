"""Rows of the hard suite: ``results/hard/NAME.json``, what one model and the judges beside it made of all of it.

    name                    of the file, and of the model in tables
    version                 ``VERSION`` of the code
    package, commit, versions, machine      as in the rows of the benchmark (``benchmark/rows.py``)
    model                   {"source", "kind", "n_weights", "sha256", "training"}: "hub:NAME" or a folder, the weights'
                            checksum, and the settings of the training where the file has them
    seed                    of the samples
    settings                {"tasks": names, "objects": [[3, 8], ...], "size": per task and range or null, ``size_for``}
    seconds                 of it all
    rows, thresholds        as ``hard_cases.to_json`` gives them; the model's judge is called NAME

Samples are a function of task, range, seed and size, so the judges that stand beside every model have the same rows in
every file of a folder, which ``read`` insists on.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from reward_models import load, provenance
from reward_models.judges import shipped
from reward_models.judges.learned import LearnedModel
from reward_models.measuring import hard_cases
from reward_models.measuring.hard_cases import Row
from reward_models.models import checkpoint
from reward_models.studies.engine.rows import RowError
from spatialsim_env.arrangements import hard_suite
from spatialsim_env.arrangements.tasks import object_range
from spatialsim_env.checks import read_object, require_entries
from spatialsim_env.files import replace_file, sha256

VERSION = 1  # of the suite and its judges; raised by whatever alters results
ENDING = ".json"
MADE_BY = ("package", "commit", "versions", "machine")
_ENTRIES = {
    "name": str, "version": int, "package": str, "commit": (str, type(None)), "versions": dict, "machine": str,
    "model": dict, "seed": int, "settings": dict, "seconds": (int, float), "rows": list, "thresholds": list,
}  # fmt: skip
_ROW = {
    "task": str, "objects": str, "judge": str, "certified": bool, "correct": (int, type(None)), "total": int,
    "refusal": str, "exact": (int, type(None)),
}  # fmt: skip
_FIELDS = tuple(part.name for part in fields(Row))


@dataclass(frozen=True)
class Recorded:
    """Contents of a file."""

    name: str  # of the model
    about: dict[str, Any]  # all entries but the rows
    rows: tuple[Row, ...]  # of the model and of the judges beside it

    @property
    def of_model(self) -> tuple[Row, ...]:
        """The rows of the model itself."""
        return tuple(row for row in self.rows if row.judge == self.name)

    @property
    def beside(self) -> tuple[Row, ...]:
        """The rows of the judges beside it."""
        return tuple(row for row in self.rows if row.judge != self.name)


def judge(
    source: str | os.PathLike[str],
    name: str | None = None,
    *,
    tasks: Sequence[str] = hard_suite.NAMES,
    objects: Sequence[int | tuple[int, int]] = hard_suite.RANGES,
    size: int | None = None,
    seed: int = 0,
) -> Recorded:
    """Judge the hard suite by a model of two inputs, beside the ideal observer, the truth and the rules.

    Args:
        source: "hub:NAME", or the folder of a trained network.
        name: of the model; that of the hub or of the folder by default.
        tasks, objects, size, seed: as of ``hard_cases.run``.

    Raises:
        ValueError: a model of one input; arguments that ``hard_cases.run`` does not take; a name that is no file name.
        checkpoint.CheckpointError: no model, or a damaged one.
    """
    model, name = load(source), name_of(source) if name is None else name
    if not model.two_inputs:
        raise ValueError(
            f"{source}: {model.kind} knows one reference scene; accepted are models that compare two scenes"
        )
    if Path(name).name != name:
        raise ValueError(f"name is {name!r}; accepted is the name of a file, without a folder")
    begun, made = time.perf_counter(), provenance.made_by()
    found = hard_cases.run(model, name, tasks=tasks, objects=objects, size=size, seed=seed)
    about = {
        "name": name,
        "version": VERSION,
        **{key: made[key] for key in MADE_BY},
        "model": _about(model, source),
        "seed": seed,
        "settings": {"tasks": list(tasks), "objects": [list(object_range(part)) for part in objects], "size": size},
        "seconds": round(time.perf_counter() - begun, 1),
    }
    return Recorded(name, about, tuple(found))


def name_of(source: str | os.PathLike[str]) -> str:
    """Default name of a model: its name in the hub, or that of its folder."""
    text = os.fspath(source)
    return text.removeprefix(shipped.PREFIX) if shipped.is_name(text) else checkpoint.folder_of(text).resolve().name


def _about(model: LearnedModel, source: str | os.PathLike[str]) -> dict[str, Any]:
    text = os.fspath(source)
    folder = shipped.folder(text) if shipped.is_name(text) else checkpoint.folder_of(text)
    return {
        "source": text,
        "kind": model.kind,
        "n_weights": model.module.n_weights,
        "sha256": sha256(folder / checkpoint.WEIGHTS),
        "training": model.task.get("training"),
    }


def write(folder: str | os.PathLike[str], found: Recorded) -> Path:
    """Write the rows of a model; returns their file, which is whole or as it was before."""
    path = Path(folder) / f"{found.name}{ENDING}"
    with replace_file(path) as temporary:
        text = json.dumps({**found.about, **hard_cases.to_json(found.rows)}, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8", newline="\n")
    return path


def read(folder: str | os.PathLike[str]) -> list[Recorded]:
    """Read the files of a folder, in the order of names; none where there is no folder.

    Raises:
        RowError: a damaged file; one of another version; files with other settings, seeds or judges beside.
    """
    found = [_read(path) for path in sorted(Path(folder).glob(f"*{ENDING}"))]
    for one in found[1:]:
        for entry in ("seed", "settings"):
            if one.about[entry] != found[0].about[entry]:
                raise RowError(
                    f"{folder}: {entry} of {one.name} and {found[0].name} differ; accepted are files of one and the "
                    "same: run spatialsim hard again for one of them, or keep it in another folder"
                )
        if one.beside != found[0].beside:
            raise RowError(
                f"{folder}: the judges beside {one.name} and {found[0].name} differ, so one is of other code or of "
                "another machine; run spatialsim hard again for both"
            )
    return found


def _read(path: Path) -> Recorded:
    held = read_object(path, RowError)
    require_entries(path, held, _ENTRIES, RowError)
    if held["version"] != VERSION:
        raise RowError(f"{path} is of version {held['version']}; accepted is {VERSION}: run spatialsim hard again")
    if held["name"] != path.stem:
        raise RowError(f"{path} holds the rows of {held['name']}; accepted is {held['name']}{ENDING}")
    for row in held["rows"]:
        if not isinstance(row, dict):
            raise RowError(f"{path}: a row is {row!r}; accepted are JSON objects")
        require_entries(path, row, _ROW, RowError)
        if row["task"] not in hard_suite.REGISTRY or not 0 <= (row["correct"] or 0) <= row["total"]:
            raise RowError(f"{path}: a row is {row!r}; accepted are known tasks and 0 <= correct <= total")
    about = {key: value for key, value in held.items() if key not in ("rows", "thresholds")}
    return Recorded(held["name"], about, tuple(Row(**{key: row[key] for key in _FIELDS}) for row in held["rows"]))
