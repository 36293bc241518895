"""The paper's study as a value, and its report."""

from __future__ import annotations

from reward_models.studies.engine import report as writer
from reward_models.studies.engine.report import QUICK, failures, origin
from reward_models.studies.engine.study import Figure, Files, Report, Results, Study
from reward_models.studies.paper import figures, runs, tables, work
from reward_models.studies.paper.outstanding import outstanding
from reward_models.studies.paper.runs import Cell
from reward_models.studies.paper.summary import Cells
from reward_models.studies.paper.work import PaperRow
from reward_models.tables import Table, png
from spatialsim_env.arrangements.pictures import import_pygame


def report(results: Results[PaperRow]) -> Report:
    """Tables and figures of the paper, what failed and what was not run.

    Raises:
        ImportError: matplotlib, Markdown or pygame-ce is not installed.
    """
    writer.require_packages("markdown", "matplotlib")
    import_pygame()
    known, cells = Cells(results.rows.values()), list(runs.cells(results.quick).values())
    shown: tuple[Table, ...] = (
        *tables.table1(known),
        *tables.table2(known),
        tables.rules(known),
        *tables.table3(known),
        tables.ablations(known),
        tables.widths(known),
    )
    parts: tuple[Table | Figure | str, ...] = (
        _origin(results),
        *shown,
        *_figures(known),
        failures(results),
        outstanding(known, cells),
    )
    return Report("The benchmark: results", parts, (tables.runs(known),), page=True)


def _figures(known: Cells) -> list[Figure]:
    drawn = {"figure1": ("Figure 1: a reference, a positive and a negative", figures.samples())}
    for task in ("identification", "discrimination"):
        title = task.capitalize()
        drawn[f"figure2_{task}"] = (f"Figure 2: heat maps, {title}", figures.heat_maps(known, task))
        drawn[f"curves_{task}"] = (f"Learning curves, {title}", figures.curves(known, task))
    return [Figure(name, title, None if figure is None else png(figure)) for name, (title, figure) in drawn.items()]


def _origin(results: Results[PaperRow]) -> str:
    """State the provenance and the number of the rows."""
    total = len(results.rows) + len(results.missing)
    parts = [
        f"{len(results.done):,} of {total:,} runs done, {len(results.failed)} failed. Accuracy is exact over the whole "
        "test set. Published figures are those of the paper, mean and deviation over 10 runs; every other figure "
        "follows from the rows."
    ]
    return "\n\n".join([*parts, *[QUICK] * results.quick, origin(results.rows.values())])


STUDY: Study[Cell, PaperRow] = Study(
    "paper",
    runs.VERSION,
    PaperRow,
    runs.cells,
    work.work,
    report,
    work.failed,
    work.line,
    Files("results"),
    "every table and figure of the paper",
    check=work.check,
    differences=work.differences,
    groups=runs.groups,
)
