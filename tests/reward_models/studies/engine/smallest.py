"""The smallest study: dice with several sides, a mean a run, a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reward_models.provenance import Stamp
from reward_models.studies.engine import report as shell
from reward_models.studies.engine.run import Place
from reward_models.studies.engine.study import Files, Json, Report, Results, Study, Unit
from reward_models.tables import Table
from spatialsim_env.streams import stream


@dataclass(frozen=True)
class Die(Unit):
    sides: int
    throws: int = 1_000

    def settings(self, run: str) -> Json:
        return {"sides": self.sides, "throws": self.throws}


@dataclass(frozen=True)
class DieRow:
    id: str
    stamp: Stamp
    settings: Json
    mean: float | None = None
    error: str | None = None


def units(quick: bool) -> dict[str, Die]:
    dice = [Die(f"dice/d{sides}", sides, 10 if quick else 1_000) for sides in (4, 6, 8)]
    return {die.id: die for die in dice}


def work(die: Die, place: Place) -> list[DieRow]:
    throws = stream(0, die.id).integers(1, die.sides + 1, die.throws)
    return [DieRow(die.id, place.stamp, die.settings(die.id), float(throws.mean()))]


def fail(die: Die, run: str, stamp: Stamp, error: str) -> DieRow:
    return DieRow(run, stamp, die.settings(run), error=error)


def summarise(rows: Sequence[DieRow]) -> str:
    return f"mean {rows[0].mean:.2f}"


def report(results: Results[DieRow]) -> Report:
    lines = tuple((run, f"{row.mean:.2f}") for run, row in results.done.items())
    table = Table("means", "Means of throws", ("die", "mean"), lines)
    return Report("Dice", (shell.origin(results.rows.values()), table, shell.failures(results), shell.missing(results)))


STUDY: Study[Die, DieRow] = Study(
    "dice", 1, DieRow, units, work, report, fail, summarise, Files("results/dice"), "Dice"
)
