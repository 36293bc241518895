"""A study as a value, and what it is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from reward_models.provenance import Stamp
from reward_models.tables import Table

if TYPE_CHECKING:
    from reward_models.studies.engine.run import Place
    from reward_models.studies.engine.sweep import Sweep

Json = dict[str, Any]


@dataclass(frozen=True)
class Unit:
    """A unit of work, claimed, run and resumed as one; makes a row a run."""

    id: str

    @property
    def runs(self) -> tuple[str, ...]:
        """Ids of its runs, each its own id or that and one part more."""
        return (self.id,)

    @property
    def needs(self) -> tuple[str, ...]:
        """Ids of the units that it builds on."""
        return ()

    @property
    def long(self) -> bool:
        """True where it is too long for two processors: run only where a filter names its first two parts."""
        return False

    def settings(self, run: str) -> Json:
        """All that decides the result of a run, as JSON gives it back."""
        raise NotImplementedError


class Row(Protocol):
    """The result of a run: a frozen dataclass of JSON values."""

    @property
    def id(self) -> str: ...
    @property
    def stamp(self) -> Stamp: ...
    @property
    def settings(self) -> Json: ...
    @property
    def error(self) -> str | None: ...


U = TypeVar("U", bound=Unit)
R = TypeVar("R", bound=Row)


def one_file(unit: str) -> str:
    """The file of a unit's rows, named after it."""
    return f"{unit}.jsonl"


@dataclass(frozen=True)
class Files:
    """Places of a study's files."""

    results: str  # folder of results, unless another is given
    rows: str = "rows"  # folder of rows in it
    report: str = "report"  # folder of the report in it
    path: Callable[[str], str] = one_file  # of a unit's rows in the folder of rows, by its id
    form: Literal["lines", "object"] = "lines"  # a JSON object a line, or one alone with an indent


@dataclass(frozen=True)
class Results(Generic[R]):
    """The rows of a folder of results."""

    rows: Mapping[str, R]  # by run id, in the order of the study
    quick: bool
    missing: tuple[str, ...]  # runs without a row, apart from those of long units
    folder: Path  # of results

    @cached_property
    def failed(self) -> Mapping[str, R]:
        """The rows with an error."""
        return {run: row for run, row in self.rows.items() if row.error is not None}

    @cached_property
    def done(self) -> Mapping[str, R]:
        """The rows without an error."""
        return {run: row for run, row in self.rows.items() if row.error is None}


@dataclass(frozen=True)
class Figure:
    """A picture of a report."""

    name: str  # of its file
    title: str
    png: bytes | None  # None where no row has what it shows
    folder: str = "figures"

    @property
    def path(self) -> str:
        """Of its file within the report."""
        return f"{self.folder}/{self.name}.png".removeprefix("./")


@dataclass(frozen=True)
class Report:
    """Tables and figures as data."""

    title: str
    parts: tuple[Table | Figure | str, ...]  # in the order in which they are shown; a str is Markdown
    sheets: tuple[Table, ...] = ()  # written as CSV alone
    page: bool = False  # whether all of it is one HTML page, too


def other_settings(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """List the settings that differ from those of the study."""
    names = [name for name in sorted(theirs.keys() | ours.keys()) if theirs.get(name) != ours.get(name)]
    return [f"{name} is {theirs.get(name)!r} there and {ours.get(name)!r} in the study" for name in names]


def differences(unit: Unit, row: Row) -> list[str]:
    """List how a row differs from what its unit says."""
    return other_settings(row.settings, unit.settings(row.id))


def as_it_is(entries: Json) -> Json:
    """Leave the entries of a recorded row."""
    return entries


def by_beginning(units: Mapping[str, Unit]) -> dict[str, list[str]]:
    """Group runs by the first two parts of their ids."""
    groups: dict[str, list[str]] = {}
    for unit in units.values():
        groups.setdefault("/".join(unit.id.split("/")[:2]), []).extend(unit.runs)
    return groups


@dataclass(frozen=True)
class Study(Generic[U, R]):
    """Everything that the engine needs to know; all functions are of modules, for workers."""

    name: str
    version: int  # raised whenever a change of the code alters results; rows of two versions are never mixed
    row: type[R]
    units: Callable[[bool], Mapping[str, U]]  # by id, in the order worth having; True for the small study
    work: Callable[[U, Place], list[R]]  # makes the rows of a unit, in the order of its runs
    report: Callable[[Results[R]], Report]
    failed: Callable[[U, str, Stamp, str], R]  # the row of a run that failed, with the line that says why
    line: Callable[[Sequence[R]], str]  # says in a few words what the rows of a unit found
    files: Files
    title: str = ""  # one line for the list of studies
    packages: tuple[str, ...] = ()  # whose versions its rows hold, beside those of every stamp
    keeps_work: bool = False  # work folders are WORK/ID and stay
    options: Mapping[str, str] = field(default_factory=dict)  # what --option may set: {name: help}
    check: Callable[[Sequence[U], Sweep[U, R]], None] | None = None  # refuses what would fail in every unit
    differences: Callable[[U, R], list[str]] = differences
    upgraded: Callable[[Json], Json] = as_it_is  # gives a recorded row the entries of today
    groups: Callable[[Mapping[str, U]], Mapping[str, Sequence[str]]] = by_beginning  # runs counted together, by name

    def stamp(self, device: str = "cpu") -> Stamp:
        """Stamp of the code and the machine as they are now."""
        from reward_models import provenance

        return provenance.stamp(self.version, self.packages, device)


def as_json(values: Any) -> Json:
    """Settings as JSON gives them back: tuples become lists."""
    plain: Json = json.loads(json.dumps(values))
    return plain
