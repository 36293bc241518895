"""Split files of Rel3D, as published and as written here: one loader, one writer.

A split file is the JSON that the authors' project (Princeton VL's Rel3D) calls ``<c|nc>_<share>_<c|nc>_<share>.json``;
the file alone is enough, pictures are looked up only where asked. Files written here have the same fields and, in
``extra``, what the published ones do not tell. **Labels of files made by this project's generator are rules, not human
judgements.** The fields are described in ``docs/rel3d_data.md``.
"""

from __future__ import annotations

import gc
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.files import replace_file
from spatialsim_env.relations import vocabulary
from spatialsim_env.relations.geometry import cameras as camera_infos
from spatialsim_env.relations.rel3d import records
from spatialsim_env.relations.rel3d.records import Problem, RelationDataError
from spatialsim_env.relations.rel3d.vectors import WIDTHS

SPLITS = ("train", "valid", "test")
MAIN = "c_0.9_c_0.1.json"
SOURCE = (
    "split files come with the data of Princeton VL's Rel3D project (github.com/princeton-vl/Rel3D); its README says "
    "how its download.sh fetches them into data/"
)


class RelationDataWarning(UserWarning):
    """A file that goes by a published name has other numbers of samples than published."""


@dataclass(frozen=True, eq=False)
class RelationSamples:
    """Columns over N samples."""

    predicate: NDArray[np.int64]  # (N,), index in the file's predicates
    subject: NDArray[np.int64]  # (N,), index in the file's objects
    object: NDArray[np.int64]  # (N,)
    label: NDArray[np.bool_]  # (N,), whether the predicate holds
    boxes: NDArray[np.float32]  # (N, 2, 4), subject and object: left, top, width, height in pixels
    picture_size: NDArray[np.int32]  # (N, 2), width and height in pixels
    vectors: dict[str, NDArray[np.float64]]  # raw_absolute (N, 24), aligned_absolute (N, 18), aligned_relative (N, 12)
    pair: NDArray[np.int64]  # (N,), the same number for the two members of a pair; -1 without a partner
    rgb: tuple[str, ...]  # paths as in the file
    depth: tuple[str, ...]
    cameras: tuple[Any, ...]  # camera_info as in the file
    problems: dict[str, int] = field(default_factory=dict)  # how many of each kind the file had in this split
    extra: dict[str, NDArray[Any]] = field(default_factory=dict)  # (N, ...) each; none in published files

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self._columns()}
        if any(length != len(self.predicate) for length in lengths.values()):
            raise RelationDataError(f"columns have different lengths: {lengths}")
        widths = {name: vector.shape[1:] for name, vector in self.vectors.items()}
        if widths != {name: (width,) for name, width in WIDTHS.items()}:
            raise RelationDataError(f"vectors have widths {widths}; accepted are {WIDTHS}")

    def _columns(self) -> Iterator[tuple[str, Any]]:
        for column in fields(self):
            value = getattr(self, column.name)
            if column.name in ("vectors", "extra"):
                yield from value.items()
            elif column.name != "problems":
                yield column.name, value

    def __len__(self) -> int:
        return len(self.predicate)

    def __getitem__(self, rows: Any) -> RelationSamples:
        """The samples of these rows (a slice, indices or a mask). Pairs keep their numbers, cut apart or not."""
        index = np.arange(len(self))[rows].reshape(-1)
        changed: dict[str, Any] = {}
        for column in fields(self):
            value = getattr(self, column.name)
            if isinstance(value, np.ndarray):
                changed[column.name] = value[index]
            elif isinstance(value, tuple):
                changed[column.name] = tuple(value[i] for i in index)
            elif column.name != "problems":
                changed[column.name] = {name: array[index] for name, array in value.items()}
        return replace(self, **changed)

    @property
    def group(self) -> NDArray[np.int64]:
        """A number (N,) for each (predicate, subject, object), the same in every split of a file."""
        return (self.predicate << 40) + (self.subject << 20) + self.object

    @property
    def up(self) -> NDArray[np.float64]:
        """The world's up in the camera's frame, (N, 3), from ``cameras``; (0, 1, 0) where they do not tell.

        The default is right for a camera that looks along the floor, and wrong by as much as it looks down.
        """
        if "up" in self.extra:
            return np.asarray(self.extra["up"], np.float64)
        return camera_infos.up(self.cameras)


@dataclass(frozen=True, eq=False)
class Split:
    """A file: samples to train, choose and test on, and the names behind their class indices."""

    train: RelationSamples
    valid: RelationSamples
    test: RelationSamples
    predicates: tuple[str, ...]
    objects: tuple[str, ...]
    name: str
    problems: tuple[Problem, ...] = ()  # every odd record of the file

    def counts(self) -> dict[str, tuple[int, ...]]:
        """Samples of each predicate in train, valid and test."""
        table = [np.bincount(getattr(self, split).predicate, minlength=len(self.predicates)) for split in SPLITS]
        return {name: tuple(int(column[i]) for column in table) for i, name in enumerate(self.predicates)}


def concatenate(parts: Sequence[RelationSamples]) -> RelationSamples:
    """Samples one after the other; pairs of different parts get different numbers. Extras must be the same.

    Raises:
        RelationDataError: no parts, or extras that differ.
    """
    if not parts or any(part.extra.keys() != parts[0].extra.keys() for part in parts):
        raise RelationDataError("samples to join: none, or some with other extras than the first")
    offsets = np.cumsum([0, *(part.pair.max(initial=-1) + 1 for part in parts)])
    pair = [np.where(part.pair < 0, -1, part.pair + offset) for part, offset in zip(parts, offsets, strict=False)]
    joined: dict[str, Any] = {"pair": np.concatenate(pair), "problems": {}}
    for column in fields(RelationSamples):
        values = [getattr(part, column.name) for part in parts]
        if column.name in joined:
            continue
        if isinstance(values[0], dict):
            joined[column.name] = {name: np.concatenate([value[name] for value in values]) for name in values[0]}
        else:
            joined[column.name] = sum(values, ()) if isinstance(values[0], tuple) else np.concatenate(values)
    return RelationSamples(**joined)


def load(
    path: str | os.PathLike[str], *, pictures_folder: str | os.PathLike[str] | None = None, strict: bool = False
) -> Split:
    """Read a split file; a folder stands for its ``c_0.9_c_0.1.json``.

    A record that cannot be a sample is left out and named in ``Split.problems``, as is what is odd about one that
    can; the others are read. With ``pictures_folder`` the pictures that are not in it are counted too.

    Args:
        path: the JSON.
        pictures_folder: where the pictures are, by their name alone or by the path in the file.
        strict: raise with the first problem, kept or not.

    Raises:
        FileNotFoundError: no such file, or no such folder; it says where the files come from.
        RelationDataError: not JSON, or JSON that is no split file; with ``strict``, the first problem.

    Warns:
        RelationDataWarning: a file named ``c_0.9_c_0.1.json``, without extras, whose predicates have other numbers of
            samples than ``vocabulary.COUNTS``.
    """
    path = Path(path)
    if path.is_dir():
        path = path / MAIN
    problems: list[Problem] = []
    read = {}
    with _no_collection():
        data = _parse(path)
        predicates, objects = (_names(data, key, path) for key in ("predicates", "objects"))
        pictures = None if pictures_folder is None else _Pictures(Path(pictures_folder))
        for split in SPLITS:
            if type(data.get(split)) is not list:
                raise RelationDataError(f"{path} has no list {split!r}; a split file has {', '.join(SPLITS)}")
            read[split], odd = _samples(data[split], split, predicates, objects, pictures)
            problems += odd
    if strict and problems:
        raise RelationDataError(f"{path}: {problems[0]} ({len(problems)} problems)")
    result = Split(**read, predicates=predicates, objects=objects, name=path.stem, problems=tuple(problems))
    if path.name == MAIN and not any(getattr(result, split).extra for split in SPLITS):
        _compare_counts(result, path)
    return result


@contextmanager
def _no_collection() -> Iterator[None]:
    """No search for cycles: there are none among the many small objects of JSON, and it takes half of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _parse(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}; {SOURCE}")
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RelationDataError(f"{path} is not JSON: {error}") from None
    if type(data) is not dict:
        raise RelationDataError(f"{path} holds a {type(data).__name__}; a split file holds an object")
    return data


def _names(data: dict[str, Any], key: str, path: Path) -> tuple[str, ...]:
    names = data.get(key)
    if type(names) is not list or not all(type(name) is str for name in names):
        raise RelationDataError(f"{path} has no list of names {key!r}; a split file has predicates and objects")
    if len({*names}) != len(names):
        raise RelationDataError(f"{path} names some of its {key} twice; the place in the list is the class index")
    return tuple(names)


def _samples(
    raw: list[Any], split: str, predicates: Sequence[str], objects: Sequence[str], pictures: _Pictures | None
) -> tuple[RelationSamples, list[Problem]]:
    predicate_index = {name: index for index, name in enumerate(predicates)}
    object_index = {name: index for index, name in enumerate(objects)}
    read: list[records.Record] = []
    places: list[int] = []
    problems: list[Problem] = []
    forms: dict[str, records.Form] | None = None
    for index, value in enumerate(raw):
        try:
            record = records.read(value, predicate_index, object_index)
            forms = records.check_extra(record.extra, forms)
        except records.Unreadable as error:
            problems.append(Problem(split, index, error.kind, str(error)))
            continue
        problems += [Problem(split, index, *odd) for odd in record.odd]
        if pictures is not None and not pictures.has(record.rgb):
            problems.append(Problem(split, index, records.NO_PICTURE, record.rgb))
        read.append(record)
        places.append(index)
    samples, odd = _columns(read, forms or {})
    problems += [Problem(split, places[row], kind, text) for row, kind, text in odd]
    problems.sort(key=lambda problem: problem.index)
    return replace(samples, problems=records.count_problems(problems)), problems


def _columns(read: list[records.Record], extras: Iterable[str]) -> tuple[RelationSamples, list[tuple[int, str, str]]]:
    predicate, subject, other, label, boxes, sizes, vectors, rgb, depth, cameras, extra, _ = (
        zip(*read, strict=True) if read else [()] * len(records.Record._fields)
    )
    pair, odd = records.pairs(rgb, (predicate, subject, other), label)
    samples = RelationSamples(
        predicate=np.array(predicate, np.int64),
        subject=np.array(subject, np.int64),
        object=np.array(other, np.int64),
        label=np.array(label, np.bool_),
        boxes=np.array(boxes, np.float32).reshape(-1, 2, len(records.BOX_KEYS)),
        picture_size=np.array(sizes, np.int32).reshape(-1, 2),
        vectors={
            name: np.array([of[place] for of in vectors], np.float64).reshape(-1, width)
            for place, (name, width) in enumerate(WIDTHS.items())
        },
        pair=pair,
        rgb=tuple(rgb),
        depth=tuple(depth),
        cameras=tuple(cameras),
        extra={key: np.array([of[key] for of in extra]) for key in extras},
    )
    return samples, odd


class _Pictures:
    """Pictures that exist; each folder is listed once."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise FileNotFoundError(f"no folder of pictures {folder}; {SOURCE}")
        self.folder = folder
        self.listed: dict[str, set[str]] = {}

    def has(self, rgb: str) -> bool:
        where, _, name = rgb.rpartition("/")
        return name in self._list("") or name in self._list(where)

    def _list(self, where: str) -> set[str]:
        if where not in self.listed:
            folder = self.folder / where
            self.listed[where] = {*os.listdir(folder)} if folder.is_dir() else set()
        return self.listed[where]


def _compare_counts(split: Split, path: Path) -> None:
    counts = split.counts()
    different = [
        f"{name!r} {counts.get(name, (0, 0, 0))} for {vocabulary.COUNTS.get(name, (0, 0, 0))}"
        for name in dict.fromkeys([*vocabulary.COUNTS, *counts])
        if counts.get(name) != vocabulary.COUNTS.get(name)
    ]
    if different:
        text = f"{path} has other numbers of samples (train, valid, test) than published: {'; '.join(different)}"
        warnings.warn(text, RelationDataWarning, stacklevel=3)


def write(split: Split, path: str | os.PathLike[str]) -> None:
    """Write a split file with the published fields, and ``extra`` where there is any; ``load`` reads it back.

    Box values become strings, as published. Cameras must be values that JSON knows, extras arrays of numbers,
    truth values or strings. Pairs are read back from the pictures' names (``records.picture_name``).

    Raises:
        RelationDataError: pairs that are not those of the names, numbers that are not finite, class indices beyond
            the names, cameras that JSON does not know.
    """
    with replace_file(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write("{\n")
        for name in SPLITS:
            samples = getattr(split, name)
            _check_written(samples, split, name)
            file.write(f'"{name}": [')
            for index, record in enumerate(_records(samples, split.predicates, split.objects)):
                file.write((",\n" if index else "\n") + _dump(record))
            file.write("\n],\n")
        file.write(f'"predicates": {json.dumps(split.predicates)},\n"objects": {json.dumps(split.objects)}\n}}\n')


def _dump(record: dict[str, Any]) -> str:
    try:
        return json.dumps(record, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RelationDataError(f"{record['rgb']!r} cannot be written as JSON: {error}") from None


def _check_written(samples: RelationSamples, split: Split, name: str) -> None:
    for column, names in (("predicate", split.predicates), ("subject", split.objects), ("object", split.objects)):
        values = getattr(samples, column)
        if len(values) and not (values.min() >= 0 and values.max() < len(names)):
            raise RelationDataError(f"{name} has a {column} outside 0 to {len(names) - 1}")
    columns = (samples.predicate.tolist(), samples.subject.tolist(), samples.object.tolist())
    from_names, _ = records.pairs(samples.rgb, columns, samples.label.tolist())
    if not np.array_equal(_partners(from_names), _partners(samples.pair)):
        raise RelationDataError(f"the pairs of {name} are not those of its pictures' names; see records.picture_name")


def _partners(pair: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each row's partner, -1 where it has none; a number that occurs once has no pair."""
    first, second = records.members(pair).T
    out = np.full(len(pair), -1, np.int64)
    out[first], out[second] = second, first
    return out


def _records(samples: RelationSamples, predicates: Sequence[str], objects: Sequence[str]) -> Iterator[dict[str, Any]]:
    extra = {key: column.tolist() for key, column in samples.extra.items()}
    vectors = {key: column.tolist() for key, column in samples.vectors.items()}
    sizes = samples.picture_size.tolist()
    predicate, subject, other = (x.tolist() for x in (samples.predicate, samples.subject, samples.object))
    for row, label in enumerate(samples.label.tolist()):
        subject_box, other_box = (
            dict(zip(records.BOX_KEYS, map(str, samples.boxes[row, which]), strict=True)) for which in (0, 1)
        )
        record: dict[str, Any] = {
            "rgb": samples.rgb[row],
            "depth": samples.depth[row],
            "camera_info": samples.cameras[row],
            "width": sizes[row][0],
            "height": sizes[row][1],
            "subject": {"name": objects[subject[row]], "bbox": subject_box},
            "object": {"name": objects[other[row]], "bbox": other_box},
            "predicate": predicates[predicate[row]],
            "label": label,
            "transform_vector": {key: column[row] for key, column in vectors.items()},
        }
        if extra:
            record["extra"] = {key: column[row] for key, column in extra.items()}
        yield record


def balanced_weights(counts: Any) -> NDArray[np.float64]:
    """Weights (P,) of predicates with ``counts`` (P,) training samples: (1/n) over its mean; 0 where n is 0."""
    counts = np.asarray(counts, np.float64)
    inverse = np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)
    return inverse / inverse[counts > 0].mean() if (counts > 0).any() else inverse


def loss_weights(samples: RelationSamples, n_predicates: int) -> NDArray[np.float64]:
    """Weight (P,) of each predicate in the loss, as published: the mean over the predicates that occur is 1."""
    return balanced_weights(np.bincount(samples.predicate, minlength=n_predicates))
