"""Rows on disk: a file a unit, written once as a whole, read only if it holds what the study says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from reward_models.provenance import Stamp
from reward_models.studies.engine.study import Json, R, Results, Study, U, Unit
from spatialsim_env.checks import read_object, require_entries
from spatialsim_env.files import write_whole

NAMED = 5  # rows that an error message names
_REMEDY = "remove it, and it is run again"


class RowError(ValueError):
    """Rows that cannot be used; the message says which and why."""


@cache
def entries_of(row: type) -> dict[str, tuple[type, ...]]:
    """The entries of a row in JSON, with the types that each may have; those of a stamp in place of it."""
    entries: dict[str, tuple[type, ...]] = {}
    for name, hint in get_type_hints(row).items():
        entries |= entries_of(Stamp) if hint is Stamp else {name: _types(hint)}
    return entries


def _types(hint: Any) -> tuple[type, ...]:
    if hint is Any:
        return (object,)
    if get_origin(hint) in (Union, UnionType):
        return tuple(kind for part in get_args(hint) for kind in _types(part))
    kind = get_origin(hint) or hint
    return (int, float) if kind is float else (kind,)


def to_json(row: Any) -> Json:
    """The entries of a row."""
    entries: Json = {}
    for item in fields(row):
        value = getattr(row, item.name)
        entries |= vars(value) if isinstance(value, Stamp) else {item.name: value}
    return entries


def from_json(kind: type[R], entries: Json, path: Path) -> R:
    """The inverse of ``to_json``.

    Raises:
        RowError: an entry is missing, unknown or of another type, or the row refuses its value; the message names
            ``path``.
    """
    known = entries_of(kind)
    require_entries(path, entries, dict(known), RowError)
    unknown = [key for key in entries if key not in known]
    if unknown:
        raise RowError(f"{path} holds {', '.join(unknown)}, which no row has")
    stamp = Stamp(**{item.name: entries[item.name] for item in fields(Stamp)})
    values = {name: stamp if hint is Stamp else entries[name] for name, hint in get_type_hints(kind).items()}
    return kind(**values)


def path_of(study: Study[U, R], results: Path, unit: Unit) -> Path:
    """The file of a unit's rows."""
    return results / study.files.rows / study.files.path(unit.id)


def write(study: Study[U, R], results: Path, unit: Unit, rows: Iterable[R]) -> Path:
    """Write the rows of a unit; returns their file, which is whole or as it was before.

    Raises:
        OSError: it cannot be written.
        ValueError: a value that JSON does not have.
    """
    indent = 1 if study.files.form == "object" else None
    text = "".join(json.dumps(to_json(row), indent=indent, allow_nan=False) + "\n" for row in rows)
    return write_whole(path_of(study, results, unit), text)


def read_file(study: Study[U, R], path: Path) -> list[R]:
    """The rows of a file.

    Raises:
        RowError: it is damaged; the message names it.
    """
    try:
        objects = [read_object(path, RowError)] if study.files.form == "object" else _lines(path)
        return [from_json(study.row, study.upgraded(entries), path) for entries in objects]
    except (ValueError, KeyError, TypeError) as error:
        raise RowError(f"{path} is damaged: {error}; {_REMEDY}") from error


def _lines(path: Path) -> list[Json]:
    objects: list[Json] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            objects.append(json.loads(line))
        except ValueError as error:
            raise RowError(f"line {number} is not JSON: {error}") from error
        if not isinstance(objects[-1], dict):
            raise RowError(f"line {number} holds a {type(objects[-1]).__name__}")
    if not objects:
        raise RowError("it is empty")
    return objects


def of_unit(study: Study[U, R], results: Path, unit: U) -> list[R] | None:
    """The rows of a unit, None if there are none yet.

    Raises:
        RowError: the file is damaged, or holds rows of another version or of other runs than the study says.
    """
    path = path_of(study, results, unit)
    if not path.exists():
        return None
    rows = read_file(study, path)
    if wrong := _problems(study, unit, rows):
        raise RowError(
            f"{path} holds other runs than the study at version {study.version}: {name_some(wrong)}; give another "
            "folder of results, or remove the file and its runs are made again"
        )
    return rows


def read(study: Study[U, R], results: Path, *, quick: bool = False) -> Results[R]:
    """All rows of a folder of results, in the order of the study.

    Raises:
        RowError: a damaged file, rows of another version or of other runs than the study says; the message names them.
        FileNotFoundError: no folder of rows.
    """
    folder, units = Path(results) / study.files.rows, study.units(quick)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} does not exist; accepted is a folder that spatialsim study run wrote")
    paths = {path_of(study, Path(results), unit): unit for unit in units.values()}
    rows: dict[str, R] = {}
    wrong: list[str] = []
    for path in sorted(paths.keys() | _stray(study, folder, paths)):
        in_file = read_file(study, path) if path.exists() else []
        unit = paths.get(path)
        if unit is None:
            wrong += [f"{row.id} is not in the study" for row in in_file]
        elif in_file:
            wrong += _problems(study, unit, in_file)
            rows |= {row.id: row for row in in_file}
    if wrong:
        raise RowError(
            f"{folder} holds rows of other runs than the study at version {study.version}: {name_some(sorted(wrong))}; "
            "remove their files, or keep them in another folder of results"
        )
    order = [run for unit in units.values() for run in unit.runs if run in rows or not unit.long]
    missing = tuple(run for run in order if run not in rows)
    return Results({run: rows[run] for run in order if run in rows}, quick, missing, Path(results))


def _stray(study: Study[U, R], folder: Path, known: Mapping[Path, Any]) -> set[Path]:
    """Files with the ending of rows that no unit has."""
    endings = {path.suffix for path in known}
    return {path for ending in endings for path in folder.rglob(f"[!.]*{ending}") if path not in known}


def _problems(study: Study[U, R], unit: U, rows: Sequence[R]) -> list[str]:
    """List the differences between the rows of a file and their unit; empty for rows of this study."""
    others = [row for row in rows if row.stamp.version != study.version]
    if others:
        return [f"{row.id} is of version {row.stamp.version}, commit {row.stamp.commit}" for row in others]
    ids = tuple(row.id for row in rows)
    if ids != unit.runs:
        return [f"it holds {', '.join(ids)}, where the study has {', '.join(unit.runs)}"]
    return [f"{row.id}: {difference}" for row in rows for difference in study.differences(unit, row)]


def name_some(problems: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(problems) - NAMED
    return "; ".join(problems[:NAMED]) + (f"; and {more} more" if more > 0 else "")
