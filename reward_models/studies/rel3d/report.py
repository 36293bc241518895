"""The report of the study of 3D relations: tables and figures from its rows and the files beside them.

Nothing is trained here, and no row is passed over: runs that failed and runs without a row are listed.
"""

from __future__ import annotations

from pathlib import Path

from reward_models.measuring import boundaries
from reward_models.studies.engine import report as shell
from reward_models.studies.engine import rows
from reward_models.studies.engine.study import Figure, Files, Report, Results, Study
from reward_models.studies.rel3d import figures, runs, tables, test_set, work
from reward_models.studies.rel3d.runs import QUARTER, STUDY, VARIANTS, RelationRun
from reward_models.studies.rel3d.tables import Measured
from reward_models.studies.rel3d.work import RelationRow
from reward_models.tables import Table, png


def read(folder: Path) -> Measured:
    """Read the rows of a folder of results, and its test samples.

    Raises:
        rows.RowError: a damaged file, or rows of several versions of the code or of several split files.
        FileNotFoundError: no folder of rows, or nothing of the test samples.
    """
    return measure(rows.read(REL3D, folder))


def measure(results: Results[RelationRow]) -> Measured:
    """Join rows with their test samples.

    Raises:
        rows.RowError: rows of several split files.
        FileNotFoundError: nothing of the test samples.
    """
    files = {row.data["sha256"]: name for name, row in results.rows.items() if row.data["sha256"]}
    if len(files) != 1:
        raise rows.RowError(
            f"{results.folder}: {', '.join(files.values()) or 'all rows failed, and no rows'} are of different split "
            "files; keep the rows of each in a folder of results of its own"
        )
    return Measured(tuple(results.rows.values()), test_set.read(results.folder, *files))


def report(results: Results[RelationRow]) -> Report:
    """Make the report.

    Raises:
        ImportError: matplotlib or Markdown is not installed.
        rows.RowError, FileNotFoundError: as ``measure``.
    """
    shell.require_packages("markdown", "matplotlib")
    known = measure(results)
    parts: tuple[Table | Figure | str, ...] = (
        _origin(results, known),
        tables.accuracies(known),
        tables.differences(known),
        tables.efficiency(known),
        tables.accuracies(known, QUARTER),
        tables.by_predicate(known),
        tables.disagreements(known),
        *_figures(known, results.folder),
        shell.failures(results),
        tables.outstanding(known, results.quick),
    )
    return Report("Spatial relations in 3D: results", parts, (tables.every_run(known),), page=True)


def _figures(known: Measured, results: Path) -> list[Figure]:
    files = boundaries.read(results, list(VARIANTS))
    drawn = {
        "efficiency": ("Sample efficiency", figures.efficiency(known)),
        "positions": ("Where the subject is", figures.positions(known)),
        "boundaries_plane": ("Decision boundaries on the floor", figures.boundaries(files, height=False)),
        "boundaries_height": ("Decision boundaries in height", figures.boundaries(files, height=True)),
        "disagreement": ("Where models and rules disagree, and on which predicates", figures.disagreement(known)),
    }
    return [Figure(name, title, None if figure is None else png(figure)) for name, (title, figure) in drawn.items()]


def _origin(results: Results[RelationRow], known: Measured) -> str:
    """State the number of runs, the data and the code."""
    whole = [row.data for row in known.rows if row.settings["subset"] is None and row.data["samples"]]
    data = (whole or [known.rows[0].data])[0]
    labels = (
        "**Labels are rules of this project, not human judgements**: nothing here says how well a model agrees with "
        "people. People are right on about 94 % of the published test samples."
        if data["rules"]
        else "Labels are human judgements; people are right on about 94 % of the published test samples."
    )
    counts = f"{len(results.done):,} runs done, {len(results.failed)} failed. {labels}"
    samples = ", ".join(f"{name} {number:,}" for name, number in data["samples"].items())
    file = f"- split file: {data['name']}, SHA-256 {data['sha256'][:12]}; samples: {samples}"
    parts = (counts, shell.QUICK * results.quick, f"{file}\n{shell.origin(known.rows)}")
    return "\n\n".join(part for part in parts if part)


def row_file(unit: str) -> str:
    """Name the file of a run's row after its model, data and seed."""
    return f"{unit.removeprefix(f'{STUDY}/')}.jsonl"


REL3D: Study[RelationRun, RelationRow] = Study(
    STUDY,
    runs.VERSION,
    RelationRow,
    runs.units,
    work.work,
    report,
    work.fail,
    work.summarise_row,
    Files("results/rel3d", path=row_file),
    title="Models of spatial relations in 3D",
    packages=("scipy", "torchvision"),
    options={work.PICTURES: "folder of the pictures, for models that see them"},
    check=work.check,
    differences=work.list_differences,
)
