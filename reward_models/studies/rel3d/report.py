"""The report of the study of 3D relations: tables and figures from its rows and the files beside them.

Nothing is trained here, and no row is passed over: runs that failed and runs without a row are listed.
"""

from __future__ import annotations

import os
from pathlib import Path

from reward_models.measuring import boundaries
from reward_models.studies.paper.figures import png
from reward_models.studies.paper.report import Drawing, failures, origins, put_all
from reward_models.studies.rel3d import figures, rows, tables, test_set
from reward_models.studies.rel3d.experiments import QUARTER, VARIANTS
from reward_models.studies.rel3d.tables import Results


def write(results: str | os.PathLike[str], out: str | os.PathLike[str], *, quick: bool = False) -> Path:
    """Write the report of a folder of results; returns the path of its Markdown.

    ``out`` then holds report.md, index.html (the same in one file), tables/NAME.csv and figures/NAME.png.

    Args:
        quick: of the small study.

    Raises:
        rows.RowError: a damaged file, or rows of several versions of the code or of several split files.
        FileNotFoundError: no folder of rows, or nothing of the test samples.
        ImportError: matplotlib or Markdown is not installed.
        OSError: a file cannot be written.
    """
    _require_packages()
    results, folder = Path(results), Path(out)
    known = read(results, quick=quick)
    drawings = _drawings(known, results)
    shown = [
        tables.accuracies(known), tables.differences(known), tables.efficiency(known),
        tables.accuracies(known, QUARTER), tables.by_predicate(known), tables.disagreements(known),
    ]  # fmt: skip
    left = tables.outstanding(known, quick)
    parts = ["# Spatial relations in 3D: results", _origin(known, quick)]
    for table in shown:
        parts += [f"## {table.title}", table.note, table.markdown() if table.lines else "No row has it yet."]
    for drawing in drawings:
        picture = "No row has it yet." if drawing.png is None else f"![{drawing.title}]({drawing.path})"
        parts += [f"## {drawing.title}", picture]
    parts += ["## Runs that failed", failures(known.failed)]
    parts += [f"## {left.title}", left.markdown() if left.lines else "All of the study is there."]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return put_all(folder, [*shown, left, tables.every_run(known)], drawings, text)


def read(results: Path, *, quick: bool = False) -> Results:
    """The rows of a folder of results, and its test samples.

    Raises:
        rows.RowError, FileNotFoundError: as ``write``.
    """
    found = rows.read(results, quick=quick)
    if not found:
        raise FileNotFoundError(f"{results / rows.FOLDER} holds no rows; spatialsim rel3d run writes them")
    return Results(tuple(found), test_set.read(results, found[0]["data"]["sha256"]))


def _require_packages() -> None:
    """Fail before the work, not after it."""
    try:
        import markdown  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f'the report needs {error.name}: pip install "spatialsim-env[bench]"') from error


def _drawings(known: Results, results: Path) -> list[Drawing]:
    found = boundaries.read(results, list(VARIANTS))
    drawn = {
        "efficiency": ("Sample efficiency", figures.efficiency(known)),
        "positions": ("Where the subject is", figures.positions(known)),
        "boundaries_plane": ("Decision boundaries on the floor", figures.boundaries(found, height=False)),
        "boundaries_height": ("Decision boundaries in height", figures.boundaries(found, height=True)),
        "disagreement": ("Where models and rules disagree, and on which predicates", figures.disagreement(known)),
    }
    return [Drawing(name, title, None if figure is None else png(figure)) for name, (title, figure) in drawn.items()]


def _origin(known: Results, quick: bool) -> str:
    """What made the rows, and on which data."""
    whole = [row["data"] for row in known.rows if row["settings"]["subset"] is None and row["data"]["samples"]]
    data = (whole or [known.rows[0]["data"]])[0]
    labels = (
        "**Labels are rules of this project, not human judgements**: nothing here says how well a model agrees with "
        "people. People are right on about 94 % of the published test samples."
        if data["rules"]
        else "Labels are human judgements; people are right on about 94 % of the published test samples."
    )
    parts = [f"{len(known.rows) - len(known.failed):,} runs done, {len(known.failed)} failed. {labels}"]
    if quick:
        parts.append("**These are rows of the small study for tests: nothing in them was trained long enough.**")
    samples = ", ".join(f"{name} {number:,}" for name, number in data["samples"].items())
    file = f"- split file: {data['name']}, SHA-256 {data['sha256'][:12]}; samples: {samples}"
    parts.append(f"{file}\n{origins(known.rows)}")
    return "\n\n".join(parts)
