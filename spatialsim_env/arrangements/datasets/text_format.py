"""Sets in the text format of the authors' public code: write them for it, and read its published archive.

A file has three sections, each under a line with its name. ``targets`` and ``refs`` hold a line an object: the index
of its sample, then its ten features in the order of ``scene.FEATURES``, everything followed by one space. ``labels``
holds a line a sample, 0 or 1. The sections ``t_idx`` and ``r_idx`` of older files say nothing more and are skipped.

``refs`` is empty in Identification. The reference scene then stands in the section ``ref_state_list`` of a file
beside, FILE.scmd, where there is one.

The authors also gave their sets as JSON, {"data": ..., "labels": ...} with a scene (Identification) or a pair of
target and reference a sample, a scene being a list of objects; ``read`` takes both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.datasets.named import DataSetError
from spatialsim_env.arrangements.scene import COLOR, FEATURES, N_FEATURES, SHAPE, SIZE, as_batch, present, validate
from spatialsim_env.arrangements.tasks import Samples
from spatialsim_env.files import replace_file

SECTIONS = ("targets", "refs", "labels", "t_idx", "r_idx")
REFERENCE_SECTIONS = ("N", "ref_state_list", "eps", "tvecs", "scalings", "phis", "spert", "pert")
_NOISE = 0.01  # what the authors' code writes as eps
_SAMPLES_AT_ONCE = 10_000
_RULES: tuple[tuple[str, Callable[[NDArray[np.float32]], Any]], ...] = (
    ("features are finite numbers", lambda rows: np.isfinite(rows).all(axis=1)),
    (
        "the first three features are 1 0 0 (square), 0 1 0 (circle) or 0 0 1 (triangle)",
        lambda rows: (np.sort(rows[:, SHAPE], axis=1) == [0, 0, 1]).all(axis=1),
    ),
    (f"feature {SIZE + 1}, the size, is positive", lambda rows: rows[:, SIZE] > 0),
    (
        "features 5 to 7, the colours, are 0..1, or a little beyond by noise",
        lambda rows: np.abs(rows[:, COLOR] - 0.5).max(axis=1) <= 1.5,
    ),
)

Where = Callable[[int], str]  # names the place of a row, for errors


def write(samples: Samples, path: str | os.PathLike[str]) -> Path:
    """Write samples as the authors' code does, one reference for all as FILE.scmd; returns the path.

    ``read`` gives the same float32 numbers back.

    Raises:
        SceneError: what is not a scene.
        OSError: the file cannot be written; nothing half-written is left under its name.
    """
    target = Path(path)
    one_reference = len(samples) > 0 and samples.reference.strides[0] == 0
    validate(samples.target, "target")
    validate(samples.reference[:1] if one_reference else samples.reference, "reference")
    if one_reference:
        scene = "\n".join(_line(row) for row in _text(samples.reference[0]))
        with replace_file(_reference_file(target)) as temporary:
            temporary.write_text(f"N\n{len(samples)}\nref_state_list\n{scene}\neps\n{_NOISE}\n")
    with replace_file(target) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write("targets\n")
        _write_scenes(file, samples.target)
        file.write("refs\n")
        if not one_reference:
            _write_scenes(file, samples.reference)
        file.write("labels\n")
        file.writelines(f"{int(label)} \n" for label in samples.label)
    return target


def read(path: str | os.PathLike[str], reference: NDArray[Any] | None = None) -> Samples:
    """Read a file of the authors', text or JSON.

    Args:
        reference: the reference scene, (n, 10), of a file without ``refs``. Without one it is that of FILE.scmd, or
            else the first positive sample stands for it: the same configuration, a similarity and the noise away.

    Raises:
        DataSetError: not such a file; the message says in which line and what is accepted there.
        SceneError: ``reference`` is not a scene.
        OSError: it cannot be read.
    """
    file = Path(path)
    try:
        with file.open(encoding="utf-8") as text:
            is_json = text.read(64).lstrip().startswith("{")
        tables, where = _parse_json(file) if is_json else _parse_text(file)
    except UnicodeDecodeError as error:
        raise DataSetError(f"{file} is not a text file: {error}") from error
    label = _labels(tables["labels"], where["labels"])
    target = _scenes(tables["targets"], len(label), where["targets"])
    if len(tables["refs"]):
        return Samples(target, _scenes(tables["refs"], len(label), where["refs"]), label)
    one = _reference(file, target, label) if reference is None else _given(reference)
    return Samples(target, np.broadcast_to(one, (len(label), *one.shape)), label)


def _text(numbers: NDArray[np.float32]) -> NDArray[np.str_]:
    """The shortest decimals that give the same float32."""
    return np.asarray(numbers, np.float32).astype(np.str_)


def _line(words: Any) -> str:
    return " ".join(words) + " "


def _write_scenes(file: TextIO, scenes: NDArray[np.float32]) -> None:
    for start in range(0, len(scenes), _SAMPLES_AT_ONCE):
        block = scenes[start : start + _SAMPLES_AT_ONCE]
        mask = present(block)
        index = (start + np.nonzero(mask)[0]).tolist()
        rows = _text(block[mask]).tolist()
        file.writelines(f"{k} {_line(row)}\n" for k, row in zip(index, rows, strict=True))


def _reference_file(path: Path) -> Path:
    return path.with_name(path.name + ".scmd")


def _parse_text(file: Path) -> tuple[dict[str, NDArray[np.float64]], dict[str, Where]]:
    widths = {"targets": 1 + N_FEATURES, "refs": 1 + N_FEATURES, "labels": 1}
    tables = {}
    with file.open(encoding="utf-8") as text:
        for section, lines in _by_section(text, SECTIONS):
            if section is None:
                _refuse_start(file, lines)
            if section in tables:
                raise DataSetError(f"{file} has the section {section} twice; accepted is each of {SECTIONS} once")
            if section in widths:
                tables[section] = _table(file, section, SECTIONS, lines, widths[section])
    missing = [section for section in widths if section not in tables]
    if missing:
        raise DataSetError(f"{file} lacks the section {missing[0]}; accepted are files with {', '.join(widths)}")
    return tables, {name: lambda row, name=name: _place(file, name, SECTIONS, row) for name in widths}  # type: ignore[misc]


def _refuse_start(file: Path, lines: Iterator[str]) -> None:
    """Refuse anything but blank lines before the first section."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            raise DataSetError(f"{file}, line {number}: {line[:40].strip()!r}; accepted is the line 'targets'")


def _by_section(text: TextIO, sections: tuple[str, ...]) -> Iterator[tuple[str | None, Iterator[str]]]:
    """(name, its lines without the name) of every section; the name is None for lines before the first."""
    current, number = None, 0

    def section_of(line: str) -> tuple[str | None, int]:
        nonlocal current, number
        if line.strip() in sections:
            current, number = line.strip(), number + 1
        return current, number

    for (name, _), lines in groupby(text, section_of):
        yield name, islice(lines, name is not None, None)


def _table(
    file: Path, section: str, sections: tuple[str, ...], lines: Iterator[str], width: int
) -> NDArray[np.float64]:
    """The numbers of a section, (rows, width)."""
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        return np.empty((0, width))
    try:
        table = np.loadtxt(chain([first], lines), ndmin=2, comments=None)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise DataSetError(_first_wrong(file, section, sections, width) or f"{file}, {section}: {error}") from error
    if table.shape[1] != width:
        raise DataSetError(
            _first_wrong(file, section, sections, width) or f"{file}, {section}: {table.shape[1]} columns"
        )
    return table


def _number_lines(file: Path, section: str, sections: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """(number in the file from 1, text) of the lines of a section that are not blank."""
    current = None
    with file.open(encoding="utf-8") as text:
        for number, line in enumerate(text, start=1):
            if line.strip() in sections:
                current = line.strip()
            elif current == section and line.strip():
                yield number, line


def _first_wrong(file: Path, section: str, sections: tuple[str, ...], width: int) -> str | None:
    """The error about the first line of a section that does not hold ``width`` numbers."""
    accepted = {1: "one number", N_FEATURES: "ten features"}.get(width, "the index of a sample and ten features")
    for number, line in _number_lines(file, section, sections):
        words = line.split()
        wrong = next((word for word in words if not _is_number(word)), None)
        if wrong is not None:
            return f"{file}, line {number}: {wrong[:40]!r} is not a number; accepted is {accepted}"
        if len(words) != width:
            return f"{file}, line {number}: {len(words)} numbers; accepted is {accepted}: {', '.join(FEATURES)}"
    return None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def _place(file: Path, section: str, sections: tuple[str, ...], row: int) -> str:
    for k, (number, _) in enumerate(_number_lines(file, section, sections)):
        if k == row:
            return f"{file}, line {number}"
    return f"{file}, {section}"


def _parse_json(file: Path) -> tuple[dict[str, NDArray[np.float64]], dict[str, Where]]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataSetError(f"{file} is not JSON: {error}") from error
    if not all(isinstance(content.get(key), list) for key in ("data", "labels")):
        raise DataSetError(f"{file} lacks the lists 'data' and 'labels'; accepted is an object with both")
    data, labels = content["data"], content["labels"]
    pairs = all(isinstance(entry, list) and len(entry) == 2 and _depth(entry) == 3 for entry in data)
    scenes = list(zip(*data, strict=True)) if pairs and data else [data, []]
    tables, where = {}, {}
    for name, part in zip(("targets", "refs"), scenes, strict=True):
        tables[name], where[name] = _rows(file, name, part)
    try:
        tables["labels"] = np.array(labels, np.float64).reshape(-1, 1)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataSetError(f"{file}, labels: {error}; accepted are 0 and 1") from error
    where["labels"] = lambda row: f"{file}, label {row}"
    return tables, where


def _depth(value: Any) -> int:
    """Depth of nesting: the number of lists around the first innermost value."""
    depth = 0
    while isinstance(value, list):
        value, depth = (value[0] if value else None), depth + 1
    return depth


def _rows(file: Path, name: str, scenes: Any) -> tuple[NDArray[np.float64], Where]:
    """Objects of all scenes in a row, (rows, 11), and where each stands."""
    rows, places = [], []
    for sample, objects in enumerate(scenes):
        if not isinstance(objects, list):
            raise DataSetError(f"{file}, {name} of sample {sample}: {objects!r}; accepted is a list of objects")
        for k, features in enumerate(objects):
            numbers = isinstance(features, list) and all(type(value) in (int, float) for value in features)
            if not numbers or len(features) != N_FEATURES:
                raise DataSetError(
                    f"{file}, {name} of sample {sample}, object {k} is {str(features)[:80]}; accepted are ten numbers: "
                    f"{', '.join(FEATURES)}"
                )
            rows.append([sample, *features])
            places.append((sample, k))

    def where(row: int) -> str:
        return (
            "{}, {} of sample {}, object {}".format(file, name, *places[row]) if row < len(rows) else f"{file}, {name}"
        )

    try:
        return np.array(rows, np.float64).reshape(-1, 1 + N_FEATURES), where
    except OverflowError as error:
        raise DataSetError(f"{file}, {name}: {error}; accepted are numbers of single precision") from error


def _labels(table: NDArray[np.float64], where: Where) -> NDArray[np.float32]:
    wrong = ~np.isin(table[:, 0], (0, 1))
    if wrong.any():
        row = int(wrong.argmax())
        raise DataSetError(f"{where(row)}: label {table[row, 0]:g}; accepted are 0 and 1")
    return table[:, 0].astype(np.float32)


def _features(table: NDArray[np.float64], where: Where) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        rows = table.astype(np.float32)
    for rule, holds in _RULES:
        with np.errstate(invalid="ignore"):
            wrong = ~holds(rows)
        if wrong.any():
            row = int(wrong.argmax())
            raise DataSetError(f"{where(row)}: {' '.join(f'{value:g}' for value in table[row])}; {rule}")
    return rows


def _scenes(table: NDArray[np.float64], n_samples: int, where: Where) -> NDArray[np.float32]:
    """Padded scenes (n_samples, n_max, 10) from rows of an index and ten features."""
    index = table[:, 0]
    wrong = ~((index == np.floor(index)) & (index >= 0) & (index < n_samples))
    if wrong.any():
        row = int(wrong.argmax())
        raise DataSetError(
            f"{where(row)}: sample {index[row]:g}; accepted are whole numbers from 0 below {n_samples}, the number of "
            "labels"
        )
    rows = _features(table[:, 1:], where)
    count = np.bincount(index.astype(np.int64), minlength=n_samples)
    if (count == 0).any():
        raise DataSetError(f"{where(len(table))}: sample {int(count.argmin())} has no object; accepted is one or more")
    n_max = int(count.max(initial=1))
    scenes = np.zeros((n_samples, n_max, N_FEATURES), np.float32)
    scenes[np.arange(n_max) < count[:, None]] = rows[np.argsort(index, kind="stable")]
    return scenes


def _reference(file: Path, target: NDArray[np.float32], label: NDArray[np.float32]) -> NDArray[np.float32]:
    beside = _reference_file(file)
    if not beside.exists():
        positive = np.flatnonzero(label == 1)
        if not len(positive):
            raise DataSetError(f"{file} has no refs, {beside.name} does not exist, and no label is 1: give a reference")
        return target[positive[0]]
    try:
        with beside.open(encoding="utf-8") as text:
            for section, lines in _by_section(text, REFERENCE_SECTIONS):
                if section == "ref_state_list":
                    table = _table(beside, section, REFERENCE_SECTIONS, lines, N_FEATURES)
                    rows = _features(table, lambda row: _place(beside, "ref_state_list", REFERENCE_SECTIONS, row))
                    return _given(rows)
    except UnicodeDecodeError as error:
        raise DataSetError(f"{beside} is not a text file: {error}") from error
    raise DataSetError(f"{beside} lacks the section ref_state_list")


def _given(reference: NDArray[Any]) -> NDArray[np.float32]:
    batch, _ = as_batch(reference, "reference")
    validate(batch[:1], "reference")
    return batch[0].astype(np.float32)
