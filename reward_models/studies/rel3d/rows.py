"""Rows of the study of 3D relations: ``results/rel3d/rows/MODEL/DATA/seedK.jsonl``, one JSON object, written last.

    id                rel3d/relational/full/seed3
    version           ``experiments.VERSION`` of the code
    package, commit, versions, machine      as in the rows of the benchmark (``benchmark/rows.py``)
    device            "cpu", or with the name of the card
    settings          {"training": configuration, "subset": null or {"kind", "train", "valid", "seed"}}
    data              {"name", "sha256": of the split file, "rules": whether labels are rules or human judgements,
                      "predicates": names, "samples": {"train", "valid", "test"}, "fingerprints": the same keys}
    n_weights         of the network
    seconds           of training, those before a kill included, without validation
    best_epoch        from 1; its weights are the ones that were measured
    accuracy          {"train", "valid", "test"}: as ``evaluation.measured`` gives it
    right             base64 of the bits of numpy's packbits, one a test sample in the order of the file: right or not
    log               [[epoch, loss, validation accuracy, learning rate, seconds], ...]
    error             null, or one line; accuracy is then empty

Beside them lies what the report needs to know of the test samples (``test_set.py``). Rows are read only if they are
what the study of this version of the code says, all of one split file.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_models.studies.paper import rows as benchmark_rows
from reward_models.studies.paper.rows import FOLDER, RowError, named, read_file
from reward_models.studies.rel3d import experiments
from reward_models.studies.rel3d.experiments import STUDY, Run
from spatialsim_env.checks import require_entries

Row = dict[str, Any]

ENDING = ".jsonl"
PACKAGES = ("scipy", "torchvision")  # beside those of the benchmark's rows
_ENTRIES = {
    "id": str, "version": int, "package": str, "commit": (str, type(None)), "versions": dict, "machine": str,
    "device": str, "settings": dict, "data": dict, "n_weights": (int, type(None)), "seconds": (int, float),
    "best_epoch": (int, type(None)), "accuracy": dict, "right": (str, type(None)), "log": list,
    "error": (str, type(None)),
}  # fmt: skip
_REMEDY = "remove it, and it is run again"


@cache
def made_by() -> Row:
    """What a row says about the code and the machine, as they were when this was first called."""
    found = benchmark_rows.made_by()
    versions = found["versions"] | {name: version(name) for name in PACKAGES}
    return found | {"version": experiments.VERSION, "versions": versions}


def row_of(run: Run, data: Row, **changes: Any) -> Row:
    """The row of a run; without changes one in which nothing was done."""
    nothing: Row = {
        "device": "cpu", "settings": run.settings, "data": data, "n_weights": None, "seconds": 0.0, "best_epoch": None,
        "accuracy": {}, "right": None, "log": [], "error": None,
    }  # fmt: skip
    return {"id": run.id, **made_by(), **nothing, **changes}


def packed(right: NDArray[np.bool_]) -> str:
    """Answers (N,) as text."""
    return base64.b64encode(np.packbits(right).tobytes()).decode()


def unpacked(row: Row) -> NDArray[np.bool_]:
    """The inverse of ``packed``: the answers (N,) of a row to the test samples.

    Raises:
        RowError: they are not as many as the row's test samples.
    """
    total = row["data"]["samples"]["test"]
    try:
        bits = np.frombuffer(base64.b64decode(row["right"], validate=True), np.uint8)
    except ValueError as error:
        raise RowError(f"{row['id']}: its answers are no base64: {error}; {_REMEDY}") from error
    if len(bits) != -(-total // 8):
        raise RowError(f"{row['id']}: {8 * len(bits)} answers to {total} test samples; {_REMEDY}")
    return np.unpackbits(bits, count=total).astype(bool)


def path_of(results: Path, run: Run) -> Path:
    """The file of a run's row."""
    return results / FOLDER / f"{run.id.removeprefix(f'{STUDY}/')}{ENDING}"


def write(results: Path, run: Run, row: Row) -> Path:
    """Write the row of a run; returns its file, which is whole or as it was before.

    Raises:
        OSError: it cannot be written.
    """
    return benchmark_rows.write_file(path_of(results, run), [row])


def of_run(results: Path, run: Run) -> Row | None:
    """The row of a run, None if there is none yet.

    Raises:
        RowError: the file is damaged, or holds a row of another version or of another run than the study says.
    """
    return benchmark_rows.of_study(path_of(results, run), _read, lambda row: _problems(row, run), experiments.VERSION)


def read(results: Path, *, quick: bool = False) -> list[Row]:
    """All rows of a folder of results, in the order of the study.

    Args:
        quick: those of the small study.

    Raises:
        RowError: a damaged file, rows of another version, of other runs than the study says or of several split files.
        FileNotFoundError: no folder of rows.
    """
    folder, known = Path(results) / FOLDER, experiments.runs(quick)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} does not exist; accepted is a folder that spatialsim rel3d run wrote")
    found = {
        f"{STUDY}/{path.relative_to(folder).as_posix().removesuffix(ENDING)}": _read(path)
        for path in sorted(folder.rglob(f"*{ENDING}"))
    }
    wrong: list[str] = []
    for name, row in found.items():
        wrong += _problems(row, known[name]) if name in known else [f"{name} is not in the study"]
    files = {row["data"]["sha256"]: name for name, row in found.items()}
    if len(files) > 1:
        wrong.append(f"{', '.join(files.values())} are of different split files")
    if wrong:
        raise RowError(
            f"{folder} holds rows of other runs than the study at version {experiments.VERSION}: {named(wrong)}; "
            "remove their files, or keep them in another folder of results"
        )
    return [found[name] for name in known if name in found]


def _read(path: Path) -> Row:
    """The row in a file.

    Raises:
        RowError: it is damaged.
    """
    found = read_file(path, _ENTRIES)
    if len(found) != 1:
        raise RowError(f"{path} is damaged: it holds {len(found)} rows; {_REMEDY}")
    require_entries(path, found[0]["data"], {"sha256": str, "samples": dict, "predicates": list}, RowError)
    return found[0]


def _problems(row: Row, run: Run) -> Sequence[str]:
    """How a row differs from what the study says of a run; empty for a row of this study."""
    if row["version"] != experiments.VERSION:
        return [f"{row['id']} is of version {row['version']}, commit {row['commit']}"]
    if row["id"] != run.id:
        return [f"{row['id']} lies where {run.id} belongs"]
    ours, theirs = run.settings, row["settings"]
    found = []
    for part in ("training", "subset"):
        here, there = (of.get(part) or {} for of in (ours, theirs))
        keys = [key for key in sorted(here.keys() | there.keys()) if here.get(key) != there.get(key)]
        found += [f"{run.id}: {key} is {there.get(key)!r} there and {here.get(key)!r} in the study" for key in keys]
    if (row["error"] is None) != ("test" in row["accuracy"] and row["right"] is not None):
        found.append(f"{run.id} has neither results nor an error, or both")
    return found
