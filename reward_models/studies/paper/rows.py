"""Rows of results: ``results/rows/<cell>.jsonl``, a file a pass and a JSON object a line and run.

A row says what was run, with what, and what came of it:

    id, cell, seed          identification/mpgnn/n5/seed3, identification/mpgnn/n5, 3
    version                 ``experiments.VERSION`` of the code
    package, commit         of the code; the commit is null outside a checkout and ends in -dirty where files differ
    versions                of Python, numpy, torch and numba
    machine, device         "x86_64, 2 cores", "cpu"
    settings                ``TrainingConfig.to_json()``, or of the rule
    seeds_together          seeds of the pass
    n_weights               of the network; null for a rule
    seconds                 of training, of the pass divided by its number of seeds
    accuracy                {name of a test set: {"correct": 4930, "total": 5000}}
    log                     [[stage, epoch, loss, validation accuracy, seconds], ...]; null for what is not finite
    heat_map                null, or {"logits": 40 x 40, "scene": n x 10, "displaced": a row of it} (``heat_map.py``)
    error                   null, or one line; accuracy is then empty

A file is written once, as a whole, when its pass is over, so a row that is there is whole. Rows are read only if they
are what the study of this version of the code says: all of the study in full, or all of the small one for tests.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import spatialsim_env
from reward_models.studies.paper import experiments
from reward_models.studies.paper.experiments import Cell
from spatialsim_env.checks import require_entries
from spatialsim_env.files import replaced

Row = dict[str, Any]

FOLDER, ENDING = "rows", ".jsonl"
PACKAGES = ("numpy", "torch", "numba")
NAMED = 5  # rows that an error message names
_ROOT = Path(__file__).parents[3]
_SOURCES = ("reward_models", "spatialsim_env", ":(exclude)reward_models/hub/weights")  # weights are no code
_ENTRIES = {
    "id": str, "cell": str, "seed": int, "version": int, "package": str, "commit": (str, type(None)),
    "versions": dict, "machine": str, "device": str, "settings": dict, "seeds_together": list,
    "n_weights": (int, type(None)), "seconds": (int, float), "accuracy": dict, "log": list,
    "heat_map": (dict, type(None)), "error": (str, type(None)),
}  # fmt: skip


class RowError(ValueError):
    """Rows that cannot be used; the message says which and why."""


def path_of(results: Path, cell: Cell) -> Path:
    """The file of a cell's rows."""
    return results / FOLDER / f"{cell.name}{ENDING}"


def write(results: Path, cell: Cell, rows: Iterable[Row]) -> Path:
    """Write the rows of a pass; returns their file, which is whole or as it was before.

    Raises:
        OSError: it cannot be written.
    """
    return write_file(path_of(results, cell), rows)


def write_file(path: Path, rows: Iterable[Row]) -> Path:
    """Write rows of any kind, a line each; returns the file, which is whole and on the disk, or as it was before.

    Raises:
        OSError: it cannot be written.
    """
    text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
    with replaced(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return path


def read_file(path: Path, entries: Mapping[str, Any] | None = None) -> list[Row]:
    """The rows of a file.

    Args:
        entries: types by key that each row must have; by default those of the benchmark.

    Raises:
        RowError: it is damaged; the message names it.
    """
    rows = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise RowError(f"{path} is damaged: {error}; {_REMEDY}") from error
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise RowError(f"{path} is damaged, line {number} is not JSON: {error}; {_REMEDY}") from error
        if not isinstance(row, dict):
            raise RowError(f"{path} is damaged, line {number} holds a {type(row).__name__}; {_REMEDY}")
        require_entries(path, row, dict(entries or _ENTRIES), RowError)
        rows.append(row)
    if not rows:
        raise RowError(f"{path} is damaged: it is empty; {_REMEDY}")
    return rows


def of_study(
    path: Path, read: Callable[[Path], Row], problems: Callable[[Row], Sequence[str]], version: int
) -> Row | None:
    """The row in a file of one run of a study, None if there is none yet.

    Args:
        read: reads the file, and refuses a damaged one.
        problems: how a row differs from what the study says.
        version: of the study.

    Raises:
        RowError: the file is damaged, or holds a row of another version or of another run than the study says.
    """
    if not path.exists():
        return None
    row = read(path)
    wrong = problems(row)
    if wrong:
        raise RowError(
            f"{path} holds another run than the study at version {version}: {named(wrong)}; give another folder of "
            "results, or remove the file and it is run again"
        )
    return row


_REMEDY = "remove it, and its runs are made again"


def of_cell(results: Path, cell: Cell) -> list[Row] | None:
    """The rows of a cell, None if there are none yet.

    Raises:
        RowError: the file is damaged, or holds rows of another version or of other runs than the cell says.
    """
    path = path_of(results, cell)
    if not path.exists():
        return None
    rows = read_file(path)
    wrong = [problem for row in rows for problem in _problems(row, cell)]
    if [row["id"] for row in rows] != cell.ids:
        wrong.append(f"it holds {', '.join(row['id'] for row in rows)}, where the study has {', '.join(cell.ids)}")
    if wrong:
        raise RowError(
            f"{path} holds other runs than the study at version {experiments.VERSION}: {named(wrong)}; give another "
            "folder of results, or remove the file and its runs are made again"
        )
    return rows


def read(results: Path, *, quick: bool | None = None) -> list[Row]:
    """All rows of a folder of results, in the order of the study.

    Args:
        quick: accept the small study (True) or the whole one (False) alone; None accepts either, never both.

    Raises:
        RowError: a damaged file, rows of several versions of the code or another one than this, or rows of other runs
            than the study says; the message names them.
        FileNotFoundError: no folder of rows.
    """
    folder = Path(results) / FOLDER
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} does not exist; accepted is a folder that spatialsim bench run wrote")
    rows = [row for path in sorted(folder.rglob(f"*{ENDING}")) for row in _of_its_file(path, folder)]
    _refuse_other_versions(rows)
    studies = [False, True] if quick is None else [quick]
    found = {small: [problem for row in rows for problem in _problems_in(row, small)] for small in studies}
    wrong = min(found.values(), key=len)
    if wrong:
        raise RowError(
            f"{folder} holds rows of other runs than the study: {named(wrong)}; remove their files, or keep them in "
            "another folder of results"
        )
    order = {run: place for place, run in enumerate(run for cell in experiments.CELLS.values() for run in cell.ids)}
    return sorted(rows, key=lambda row: order[row["id"]])


def is_quick(rows: Sequence[Row]) -> bool:
    """Whether the rows, as ``read`` gives them, are those of the small study."""
    small = experiments.cells(quick=True)
    return bool(rows) and not _problems(rows[0], small[rows[0]["cell"]])


def _of_its_file(path: Path, folder: Path) -> list[Row]:
    """The rows of a file, which must be those of the cell that it is named after."""
    name = path.relative_to(folder).as_posix().removesuffix(ENDING)
    rows = read_file(path)
    for row in rows:
        if row["cell"] != name or row["id"] != f"{name}/seed{row['seed']}":
            raise RowError(f"{path} is damaged: it holds {row['id']}, a run of {row['cell']}; {_REMEDY}")
    seeds = [row["seed"] for row in rows]
    if any(row["seeds_together"] != seeds for row in rows):
        raise RowError(f"{path} is damaged: it holds seeds {seeds} of {rows[0]['seeds_together']}; {_REMEDY}")
    return rows


def _refuse_other_versions(rows: Sequence[Row]) -> None:
    others = [row for row in rows if row["version"] != experiments.VERSION]
    if others:
        said = named([f"{row['id']} is of version {row['version']}, commit {row['commit']}" for row in others])
        raise RowError(
            f"{len(others)} of {len(rows)} rows are results of another version of the code, which is at version "
            f"{experiments.VERSION}: {said}; versions are not mixed: remove these files and run the cells again"
        )


def _problems_in(row: Row, quick: bool) -> list[str]:
    cell = experiments.CELLS.get(row["cell"])
    if cell is None:
        return [f"{row['id']} is not in the study"]
    return _problems(row, cell.quick() if quick else cell)


def _problems(row: Row, cell: Cell) -> list[str]:
    """How a row differs from what the cell says; empty for a row of this study."""
    run = row["id"]
    if row["version"] != experiments.VERSION:
        return [f"{run} is of version {row['version']}"]
    if row["seed"] not in cell.seeds or run != cell.id(row["seed"]):
        return [f"{run} is not in the study"]
    found = [f"{run}: {difference}" for difference in cell.differences(row["settings"], row["seed"])]
    totals = {name: _total(name, run, measured) for name, measured in row["accuracy"].items()}
    if row["error"] is None and totals != cell.tests:
        found.append(f"{run}: tested on {totals}, where the study has {cell.tests}")
    return found


def _total(name: str, run: str, measured: Any) -> int:
    if isinstance(measured, dict):
        correct, total = measured.get("correct"), measured.get("total")
        if isinstance(correct, int) and isinstance(total, int) and 0 <= correct <= total:
            return total
    raise RowError(f"{run}: accuracy on {name} is {measured!r}; accepted is 0 <= correct <= total")


def named(problems: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(problems) - NAMED
    return "; ".join(problems[:NAMED]) + (f"; and {more} more" if more > 0 else "")


def share(row: Row) -> float | None:
    """Mean accuracy of a run over its test sets, in 0..1; None for a run that failed."""
    found = [measured["correct"] / measured["total"] for measured in row["accuracy"].values()]
    return sum(found) / len(found) if found else None


@cache
def made_by() -> dict[str, Any]:
    """What a row says about the code and the machine, as they were when this was first called."""
    return {
        "version": experiments.VERSION,
        "package": spatialsim_env.__version__,
        "commit": _commit(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def _commit() -> str | None:
    """The commit of the source tree, with -dirty where its code differs; None outside a checkout."""
    top = _git("rev-parse", "--show-toplevel")
    if top is None or Path(top) != _ROOT:
        return None
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return None
    return f"{commit}-dirty" if _git("status", "--porcelain", "--", *_SOURCES) else commit


def _git(*arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", *arguments]
    try:
        found = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return found.stdout.strip() if found.returncode == 0 else None
