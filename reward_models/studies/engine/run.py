"""One unit of a study: claim it, do it or resume it, and write its rows as the last act.

A unit is claimed by a lock on ``RESULTS/.claims/ID.lock``; one that another process has claimed is skipped. Units that
it builds on are made first, under their own claims, or waited for. An exception is a row with its last line, and its
traceback stays in the work folder; the study continues. Only a full disk ends it.
"""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic

from filelock import Timeout

from reward_models.provenance import Stamp
from reward_models.studies.engine import claims, rows
from reward_models.studies.engine.study import R, U, Unit
from reward_models.studies.engine.sweep import BEGUN, Sweep
from spatialsim_env.checks import read_object
from spatialsim_env.files import write_whole

DONE, FAILED, RUNNING, MISSING = STATES = ("done", "failed", "running", "missing")
TRACEBACK = "error.txt"  # in the work folder of a unit that failed
WHOLE = "whole"  # in a work folder that stays: all of the unit's work is in it
KEPT = "kept"  # folder in the folder of work


class NeededFailed(RuntimeError):
    """A unit that another one builds on has failed."""


@dataclass(frozen=True)
class Place:
    """Surroundings of a unit's work: its folder, the device, and the files of other units."""

    unit: Unit
    sweep: Sweep[Any, Any]
    progress: bool | None = False  # whether to show a bar; None where standard error is a terminal

    @property
    def folder(self) -> Path:
        """The work folder, which may hold what a killed process left."""
        return self.sweep.folder(self.unit)

    @property
    def stamp(self) -> Stamp:
        """Stamp for the rows."""
        return self.sweep.stamp

    @property
    def began(self) -> Stamp:
        """Stamp of the process that began the work folder."""
        return Stamp(**read_object(self.folder / BEGUN)["stamp"])

    @property
    def device(self) -> str:
        """The device to compute on."""
        return self.sweep.device

    @property
    def data(self) -> Path | None:
        """Data to read in place of generated ones."""
        return self.sweep.data

    @property
    def results(self) -> Path:
        """The folder of results."""
        return self.sweep.results

    def option(self, name: str) -> str | None:
        """An option of the study, None unless it was given."""
        return self.sweep.options.get(name)

    def needed(self, unit: str) -> list[Any]:
        """The rows of a unit that this one needs.

        Raises:
            NeededFailed: it has failed.
        """
        return _make_needed(self.sweep.units[unit], self.sweep)

    def product(self, unit: str) -> Path:
        """The whole work folder of a unit that this one needs, of a study that keeps them; made again if it is gone."""
        self.needed(unit)
        other = self.sweep.units[unit]
        folder = self.sweep.folder(other)
        with self.sweep.claim(unit, claims.FOREVER):
            if not (folder / WHOLE).exists():
                self.sweep.begin(other)
                _work(other, self.sweep, False)
        return folder

    @contextmanager
    def shared(self, name: str) -> Iterator[Path]:
        """Hold a folder of the work that several units fill and read, one at a time."""
        with self.sweep.claim(name, claims.FOREVER):
            yield self.sweep.work / name

    def attach(self, name: str, content: bytes | str) -> Path:
        """Write a file beside the rows, by its path in the folder of results."""
        return write_whole(self.results / name, content)

    def restart(self) -> None:
        """Empty the work folder, where its state is damaged."""
        shutil.rmtree(self.folder)
        self.sweep.begin(self.unit)

    def say(self, line: str) -> None:
        """Print a line of a long unit's progress."""
        print(f"{self.unit.id}: {line}", flush=True)


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """Outcome of a unit."""

    unit: str
    state: str  # of STATES; RUNNING where another process has claimed it
    rows: Sequence[R] = ()
    new: bool = False  # whether this call made it so
    seconds: float = 0.0  # of this call

    @property
    def error(self) -> str | None:
        """The first error of its rows."""
        return next((row.error for row in self.rows if row.error is not None), None)


def run(unit: U, sweep: Sweep[U, R], *, progress: bool | None = False) -> Outcome[R]:
    """Make the rows of a unit, unless they are there or another process is at it.

    Args:
        progress: show a bar; None where standard error is a terminal.

    Raises:
        claims.NoSpaceLeft: the disk is full; what the work kept stays.
        rows.RowError: its file of rows is damaged, or holds other runs.
        ValueError: its work folder holds another run.
    """
    made = sweep.rows(unit)
    if not _is_open(made, sweep) and (sweep.study.keeps_work or not sweep.folder(unit).exists()):
        return _outcome(unit, made or ())
    try:
        with sweep.claim(unit.id, claims.PATIENCE):
            return _run_claimed(unit, sweep, progress)
    except Timeout:
        return Outcome(unit.id, RUNNING)


def run_all(units: Iterable[U], sweep: Sweep[U, R]) -> list[Outcome[R]]:
    """Run units one after the other; those that other workers have claimed are left to them."""
    return [run(unit, sweep) for unit in units]


def states(unit: U, sweep: Sweep[U, R]) -> dict[str, str]:
    """DONE, FAILED, RUNNING or MISSING of each run of a unit, by its id; raises ``rows.RowError``."""
    made = sweep.rows(unit)
    if made is not None:
        return {row.id: DONE if row.error is None else FAILED for row in made}
    return dict.fromkeys(unit.runs, RUNNING if claims.is_claimed(sweep.lock(unit.id)) else MISSING)


def _is_open(made: Sequence[R] | None, sweep: Sweep[U, R]) -> bool:
    return made is None or (sweep.retry and any(row.error is not None for row in made))


def _outcome(unit: Unit, made: Sequence[R], **changes: Any) -> Outcome[R]:
    failed = any(row.error is not None for row in made)
    return Outcome(unit.id, FAILED if failed else DONE, tuple(made), **changes)


def _run_claimed(unit: U, sweep: Sweep[U, R], progress: bool | None) -> Outcome[R]:
    start, folder = time.perf_counter(), sweep.folder(unit)
    _ = sweep.stamp  # of the code as it is now, before the work
    made = sweep.rows(unit)
    if _is_open(made, sweep):
        made = _make(unit, sweep, progress)
        outcome = _outcome(unit, made, new=True, seconds=time.perf_counter() - start)
    else:
        outcome = _outcome(unit, made or ())
    if not (folder / TRACEBACK).exists() and (outcome.new or outcome.state == DONE) and not sweep.study.keeps_work:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _make(unit: U, sweep: Sweep[U, R], progress: bool | None) -> list[R]:
    """Do a unit and write its rows, those of an error where it fails."""
    folder = sweep.folder(unit)
    if (folder / TRACEBACK).exists():
        shutil.rmtree(folder)
    sweep.begin(unit)
    try:
        try:
            made = _work(unit, sweep, progress)
        except Exception as error:
            claims.refuse_full_disk(error, unit.id)
            (folder / TRACEBACK).write_text(traceback.format_exc())
            line = claims.last_line(error)
            made = [sweep.study.failed(unit, run_id, sweep.stamp, line) for run_id in unit.runs]
        rows.write(sweep.study, sweep.results, unit, made)
    except OSError as error:
        claims.refuse_full_disk(error, unit.id)
        raise
    return made


def _work(unit: U, sweep: Sweep[U, R], progress: bool | None) -> list[R]:
    for name in unit.needs:
        _make_needed(sweep.units[name], sweep)
    made = sweep.study.work(unit, Place(unit, sweep, progress))
    if tuple(row.id for row in made) != unit.runs:
        raise ValueError(
            f"{unit.id} made rows {', '.join(row.id for row in made)}; its runs are {', '.join(unit.runs)}"
        )
    if sweep.keep:
        shutil.copytree(sweep.folder(unit), sweep.work / KEPT / unit.id, dirs_exist_ok=True)
    if sweep.study.keeps_work:
        (sweep.folder(unit) / WHOLE).touch()
    return made


def _make_needed(unit: U, sweep: Sweep[U, R]) -> list[R]:
    """The rows of a unit that another one builds on; made now, or waited for, if they are not there."""
    with sweep.claim(unit.id, claims.FOREVER):
        outcome = _run_claimed(unit, replace(sweep, retry=False), False)
    if outcome.state == FAILED:
        raise NeededFailed(f"{unit.id} failed, and this run builds on it; --retry --filter {unit.id} runs it again")
    return list(outcome.rows)
