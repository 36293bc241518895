"""One run of the study of agents: claim it, do it or go on with it, and write its row as the last act.

A run is claimed by a lock on ``results/.claims/<id>.lock`` (``studies/claims.py``); one that another process has
claimed is skipped. What a run builds on (the network that is its reward, the agent that it tests) is made first, under
the claim of its own, or waited for. Networks and agents lie in ``work/<id>`` and stay there; what a killed process
leaves in it is gone on with.

An exception in a run is a row with its last line, and its traceback stays in ``work/<id>/error.txt``; the study goes
on. Only a full disk ends it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import Timeout

from reward_models.studies import claims
from reward_models.studies.agents import rows as study_rows
from reward_models.studies.agents import runs as study
from reward_models.studies.agents import work as study_work
from reward_models.studies.agents.rows import Row
from reward_models.studies.agents.runs import Run
from reward_models.studies.claims import TRACEBACK
from reward_models.studies.paper.runner import CLAIMS, DONE, FAILED, MISSING, RUNNING
from reward_models.threads import one_thread
from spatialsim_env.checks import read_object
from spatialsim_env.files import replaced

SETTINGS = "settings.json"


class NeededFailed(RuntimeError):
    """A run that another one builds on has failed."""


@dataclass(frozen=True)
class Study:
    """Where the study is run; places become absolute, for workers that begin in another folder."""

    results: Path = Path("results/agents")  # of rows/<id>.json, and of claims
    work: Path = Path("runs/agents")  # of networks and agents
    quick: bool = False  # the small study, for tests
    retry: bool = False  # run again what failed

    def __post_init__(self) -> None:
        for name in ("results", "work"):
            object.__setattr__(self, name, Path(getattr(self, name)).resolve())

    @cached_property
    def runs(self) -> dict[str, Run]:
        """All runs by id."""
        return study.runs(self.quick)

    def folder(self, run: str) -> Path:
        """Where what a run makes lies."""
        return self.work / run

    def lock(self, run: str) -> Path:
        """The file whose lock is the claim on a run, common to all who write to the same results."""
        return self.results / CLAIMS / f"{run}.lock"

    def claim(self, run: str, patience: float = 0.0) -> AbstractContextManager[Any]:
        """Hold the claim on a run; raises ``filelock.Timeout`` if another process has it for ``patience`` seconds."""
        return claims.claim(self.lock(run), patience)

    def check(self, runs: Sequence[Run]) -> None:
        """Refuse what cannot be gone on with, in these runs and in those they build on, before the first one.

        Raises:
            study_rows.RowError: there are rows of other runs, or damaged ones.
            ValueError: a folder of the work holds another run.
        """
        left, seen = list(runs), set()
        while left:
            run = left.pop()
            if run.id not in seen:
                seen.add(run.id)
                left += [self.runs[name] for name in run.needs]
                study_rows.of_run(self.results, run)
                self.check_folder(run)

    def check_folder(self, run: Run) -> None:
        """Refuse the folder of a run where another one was begun.

        Raises:
            ValueError: the message says how they differ.
        """
        file = self.folder(run.id) / SETTINGS
        if file.exists() and (found := study_rows.differences(read_object(file), run.settings)):
            raise ValueError(
                f"{file.parent} holds another run: {'; '.join(found)}; remove it, or give another folder of work"
            )

    def begin(self, run: Run) -> Path:
        """The folder of a run, made its own."""
        self.check_folder(run)
        folder = self.folder(run.id)
        with replaced(folder / SETTINGS) as temporary:
            temporary.write_text(json.dumps(run.settings, indent=2) + "\n")
        return folder

    def needed(self, name: str) -> Run:
        """A run that another one builds on, when it is done; made now if it is not.

        Raises:
            NeededFailed: it has failed.
            claims.NoSpaceLeft, study_rows.RowError, ValueError: as ``run``.
        """
        what = self.runs[name]
        with self.claim(name, claims.FOREVER):
            outcome = _run_claimed(what, replace(self, retry=False))
        if outcome.state == FAILED:
            raise NeededFailed(f"{name} failed, and this run builds on it; --retry --filter {name} runs it again")
        return what


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    run: str
    state: str  # of runner.STATES; RUNNING where another process has claimed it
    row: Row | None = None
    new: bool = False  # whether this call made it


def run(what: Run, here: Study) -> Outcome:
    """Make the row of a run, unless it is there or another process is at it.

    Raises:
        claims.NoSpaceLeft: the disk is full.
        study_rows.RowError: its file is damaged, or holds another run.
        ValueError: its folder of work holds another run.
    """
    try:
        with here.claim(what.id, claims.PATIENCE):
            return _run_claimed(what, here)
    except Timeout:
        return Outcome(what.id, RUNNING)


def state(what: Run, here: Study) -> str:
    """DONE, FAILED, RUNNING or MISSING.

    Raises:
        study_rows.RowError: its file is damaged, or holds another run.
    """
    row = study_rows.of_run(here.results, what)
    if row is not None:
        return DONE if row["error"] is None else FAILED
    return RUNNING if claims.is_claimed(here.lock(what.id)) else MISSING


def _run_claimed(what: Run, here: Study) -> Outcome:
    study_rows.made_by()  # as the code is now, before the work
    row = study_rows.of_run(here.results, what)
    if row is not None and not (here.retry and row["error"] is not None):
        return Outcome(what.id, DONE if row["error"] is None else FAILED, row)
    folder = here.folder(what.id)
    if (folder / TRACEBACK).exists():
        shutil.rmtree(folder)
    here.begin(what)
    with one_thread():
        row = claims.recorded(
            what.id,
            folder,
            lambda: study_rows.row_of(what, **study_work.done(what, here)),
            lambda line: study_rows.row_of(what, error=line),
            lambda made: study_rows.write(here.results, what, made),
        )
    return Outcome(what.id, DONE if row["error"] is None else FAILED, row, new=True)
