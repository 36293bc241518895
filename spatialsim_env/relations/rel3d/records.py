"""One record of a Rel3D split file: what it must hold, how it is read, how it is written, what can be wrong with it.

What the fields mean is in ``docs/rel3d_data.md``. ``published`` reads and writes whole files.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.relations.rel3d.vectors import BLOCK, LAYOUT, SIZES, WIDTHS

BOX_KEYS = ("left", "top", "width", "height")  # pixels from the top left
STATES = ("initialState", "finalState", "finalState2")
_PICTURE = re.compile(r"(?P<scene>.*) - (?P<state>initialState|finalState2|finalState) cam(?P<camera>\d+) rgb\.png")
MOST_PIXELS = 1e9  # of a box value; a guard before they become float32

MOST_WHOLE = 2**63 - 1  # of a whole number in extra
Form = tuple[str, tuple[int, ...]]  # kind and shape of an extra value
_SIZES = {  # places of the sizes in each vector
    name: tuple(BLOCK * i + k for i, block in enumerate(blocks) if block == SIZES for k in range(BLOCK))
    for name, blocks in LAYOUT.items()
}
_KINDS = {bool: "truth value", int: "number", float: "number", str: "text"}

# kinds of problems; those of KEPT leave the record where it is
ZERO_BOX, FLAT = "zero-size box", "zero size in space"
NO_CAMERA, NO_DEPTH, NO_PICTURE = "no camera", "no depth", "missing picture"
NO_STATE, TWICE, ONE_LABEL, ALONE = "no state in the name", "same picture twice", "pair of one label", "no partner"
KEPT = (ZERO_BOX, FLAT, NO_CAMERA, NO_DEPTH, NO_PICTURE, NO_STATE, TWICE, ONE_LABEL, ALONE)
NOT_RECORD, MISSING, PREDICATE, NAME = "not a record", "missing key", "unknown predicate", "unknown object"
NUMBER, LENGTH, FINITE, LABEL, TEXT = "not a number", "wrong length", "not finite", "not a label", "not a name"
SIZE, EXTRA = "negative size", "other extra"
LEFT_OUT = (NOT_RECORD, MISSING, PREDICATE, NAME, NUMBER, LENGTH, FINITE, LABEL, TEXT, SIZE, EXTRA)


class RelationDataError(ValueError):
    """A file, a record or samples that are not what they should be; the message says what was wrong."""


@dataclass(frozen=True)
class Problem:
    """Something odd about one record of a file."""

    split: str  # "train", "valid" or "test"
    index: int  # of the record in its list in the file
    kind: str  # one of KEPT (the record is among the samples) or LEFT_OUT (it is not)
    text: str

    @property
    def is_kept(self) -> bool:
        """True where the record is among the samples."""
        return self.kind in KEPT

    def __str__(self) -> str:
        return f"{self.split}[{self.index}]: {self.kind}: {self.text}"


class Record(NamedTuple):
    """A record as read: class indices and numbers."""

    predicate: int
    subject: int
    object: int
    label: bool
    boxes: tuple[tuple[float, ...], tuple[float, ...]]
    picture_size: tuple[int, int]
    vectors: tuple[list[float], ...]  # in the order of WIDTHS
    rgb: str
    depth: str
    camera: Any
    extra: dict[str, Any]
    odd: tuple[tuple[str, str], ...]  # (kind, text) of what is odd, though it could be read


class Unreadable(Exception):
    """A record that cannot be a sample: kind and text of the problem."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def read(record: Any, predicates: Mapping[str, int], objects: Mapping[str, int]) -> Record:
    """The record with class indices in place of names.

    Raises:
        Unreadable: with the kind of the first problem that keeps it from being a sample.
    """
    if type(record) is not dict:
        raise Unreadable(NOT_RECORD, f"a {type(record).__name__} where a record belongs")
    odd: list[tuple[str, str]] = []
    subject, subject_box = _thing(record, "subject", objects, odd)
    other, other_box = _thing(record, "object", objects, odd)
    label = _value(record, "label")
    if type(label) is not bool:
        raise Unreadable(LABEL, f"label is {_short(label)}; accepted are true and false")
    vectors = _value(record, "transform_vector")
    if type(vectors) is not dict:
        raise Unreadable(MISSING, f"transform_vector is {_short(vectors)}; accepted is an object of three lists")
    extra = record.get("extra", {})
    if type(extra) is not dict:
        raise Unreadable(EXTRA, f"extra is {_short(extra)}; accepted is an object")
    if record.get("camera_info") is None:
        odd.append((NO_CAMERA, "no camera_info"))
    if "depth" not in record:
        odd.append((NO_DEPTH, "no depth"))
    return Record(
        predicate=_index(_value(record, "predicate"), predicates, PREDICATE),
        subject=subject,
        object=other,
        label=label,
        boxes=(subject_box, other_box),
        picture_size=(_pixels(record, "width"), _pixels(record, "height")),
        vectors=tuple(_vector(vectors, name, width, odd) for name, width in WIDTHS.items()),
        rgb=_text(_value(record, "rgb"), "rgb"),
        depth=_text(record.get("depth", ""), "depth"),
        camera=record.get("camera_info"),
        extra=extra,
        odd=tuple(odd),
    )


def check_extra(extra: dict[str, Any], forms: dict[str, Form] | None) -> dict[str, Form]:
    """The forms of a record's extra values, which are those of the first record's.

    Raises:
        Unreadable: other forms, or a value that is no number, truth value, string or even list of them.
    """
    own = {key: _form(key, value) for key, value in extra.items()}
    if forms is not None and own != forms:
        differs = sorted(key for key in {*own, *forms} if own.get(key) != forms.get(key))
        raise Unreadable(EXTRA, f"extra differs from that of the records before in {differs}")
    return own


def _form(key: str, value: Any) -> Form:
    if type(value) in _KINDS and not (type(value) is int and abs(value) > MOST_WHOLE):
        return _KINDS[type(value)], ()
    try:
        array = np.array(value)
    except (ValueError, OverflowError):
        array = np.array(None)
    if type(value) is not list or array.dtype.kind not in "biufU":
        raise Unreadable(EXTRA, f"extra {key} is no number, truth value, string or even list of them")
    return _KINDS[array.dtype.type(0).item().__class__], array.shape


def _value(holder: dict[str, Any], key: str) -> Any:
    if key not in holder:
        raise Unreadable(MISSING, f"no {key}")
    return holder[key]


def _index(name: Any, names: Mapping[str, int], kind: str) -> int:
    if type(name) is not str or name not in names:
        raise Unreadable(kind, f"{_short(name)} is not in the file's list (names count to the last space)")
    return names[name]


def _text(value: Any, key: str) -> str:
    if type(value) is not str:
        raise Unreadable(TEXT, f"{key} is {_short(value)}; accepted is a path")
    return value


def _thing(
    record: dict[str, Any], role: str, objects: Mapping[str, int], odd: list[tuple[str, str]]
) -> tuple[int, tuple[float, ...]]:
    thing = _value(record, role)
    if type(thing) is not dict:
        raise Unreadable(MISSING, f"{role} is {_short(thing)}; accepted is an object with name and bbox")
    box = _value(thing, "bbox")
    if type(box) is not dict:
        raise Unreadable(MISSING, f"{role}'s bbox is {_short(box)}; accepted is an object with {', '.join(BOX_KEYS)}")
    values = tuple(_box_value(_value(box, key), f"{role}'s {key}") for key in BOX_KEYS)
    if min(values[2:]) < 0:
        raise Unreadable(SIZE, f"{role}'s box has width {values[2]:g} and height {values[3]:g}")
    if min(values[2:]) == 0:
        odd.append((ZERO_BOX, f"{role}'s box has width {values[2]:g} and height {values[3]:g}"))
    return _index(_value(thing, "name"), objects, NAME), values


def _box_value(value: Any, name: str) -> float:
    if type(value) not in (str, int, float):
        raise Unreadable(NUMBER, f"{name} is {_short(value)}; accepted is a number of pixels, as a string or not")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise Unreadable(NUMBER, f"{name} is {_short(value)}; accepted is a number of pixels") from None
    if not abs(number) <= MOST_PIXELS:  # nan too
        raise Unreadable(FINITE, f"{name} is {_short(value)}")
    return number


def _pixels(record: dict[str, Any], key: str) -> int:
    value = _value(record, key)
    if type(value) is not int or not 0 < value <= MOST_PIXELS:
        raise Unreadable(NUMBER, f"{key} is {_short(value)}; accepted is a positive whole number of pixels")
    return value


def _vector(vectors: dict[str, Any], name: str, width: int, odd: list[tuple[str, str]]) -> list[float]:
    values = _value(vectors, name)
    if type(values) is not list or len(values) != width:
        length = len(values) if type(values) is list else type(values).__name__
        raise Unreadable(LENGTH, f"{name} has {length}; accepted are {width} numbers")
    if not {*map(type, values)} <= {int, float}:
        wrong = next(value for value in values if type(value) not in (int, float))
        raise Unreadable(NUMBER, f"{name} has {_short(wrong)}; accepted are numbers")
    try:
        finite = all(map(math.isfinite, values))
    except OverflowError:  # a whole number beyond the floats
        finite = False
    if not finite:
        raise Unreadable(FINITE, f"{name} has numbers that are not finite")
    least = min(values[place] for place in _SIZES[name])
    if least < 0:
        raise Unreadable(SIZE, f"{name} has a size of {least:g}")
    if least == 0:
        odd.append((FLAT, f"{name} has a size of 0"))
    return values


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def picture_name(predicate: str, subject: str, other: str, state: str, camera: int) -> str:
    """Name of a picture: ``subject`` and ``other`` tell the two things, state is one of STATES.

    The two members of a pair have names that differ in the state alone.

    Raises:
        RelationDataError: another state.
    """
    if state not in STATES:
        raise RelationDataError(f"state is {state!r}; accepted are {', '.join(STATES)}")
    return f"{predicate} - {subject} - {other} - {state} cam{camera} rgb.png"


def parse_name(rgb: str) -> tuple[str, str, int] | None:
    """Scene ("predicate - subject - object"), state and camera of a picture's path; None where it has no such name."""
    match = _PICTURE.fullmatch(rgb.rpartition("/")[2])
    return match and (match["scene"], match["state"], int(match["camera"]))


def pairs(
    rgb: Sequence[str], columns: Sequence[Sequence[int]], label: Sequence[bool]
) -> tuple[NDArray[np.int64], list[tuple[int, str, str]]]:
    """Number of each row's pair, -1 where there is none, and (row, kind, text) of rows without one.

    Rows belong together if they agree in ``columns`` (predicate, subject, object) and their pictures' names differ
    in the state alone. A pair is one of them that holds and one that does not, in the order of the rows; of three,
    one stays alone.
    """
    pair = np.full(len(rgb), -1, np.int64)
    together: dict[tuple[Any, ...], dict[str, int]] = {}
    odd: list[tuple[int, str, str]] = []
    for row, (path, *indices) in enumerate(zip(rgb, *columns, strict=True)):
        parts = parse_name(path)
        if parts is None:
            odd.append((row, NO_STATE, f"{path!r} does not end in '<state> cam<number> rgb.png'"))
            continue
        name, state, camera = parts
        states = together.setdefault((name, camera, *indices), {})
        if state in states:
            odd.append((row, TWICE, f"{path!r} is also row {states[state]}'s"))
        states.setdefault(state, row)
    n_pairs = 0
    for (name, camera, *_), states in together.items():
        rows = [*states.values()]
        true, false = [row for row in rows if label[row]], [row for row in rows if not label[row]]
        for members in zip(true, false, strict=False):
            pair[list(members)] = n_pairs
            n_pairs += 1
        kind = ALONE if len(rows) == 1 or (true and false) else ONE_LABEL
        which = f"{name!r} from camera {camera}"
        odd += [(row, kind, f"{which}: {len(true)} hold, {len(false)} do not") for row in rows if pair[row] < 0]
    return pair, sorted(odd)


def members(pair: ArrayLike) -> NDArray[np.int64]:
    """Rows (M, 2) of both members of each pair (N,); those with -1, or whose partner is not there, are in none."""
    pair = np.asarray(pair)
    order = np.argsort(pair, kind="stable")
    first = np.flatnonzero((pair[order][1:] == pair[order][:-1]) & (pair[order][1:] >= 0))
    return np.stack([order[first], order[first + 1]], axis=1)


def count_problems(problems: Sequence[Problem]) -> dict[str, int]:
    """Count the problems of each kind."""
    return dict(Counter(problem.kind for problem in problems))
