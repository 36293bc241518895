"""The report of a benchmark: tables and figures from its rows alone, as Markdown, CSV, PNG and one HTML page.

Nothing is trained here and no row is passed over: runs that failed and runs without a row are listed.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reward_models.studies.paper import experiments, figures, rows, tables
from reward_models.studies.paper.experiments import Cell
from reward_models.studies.paper.outstanding import outstanding
from reward_models.studies.paper.summary import Results
from reward_models.studies.paper.tables import Table
from spatialsim_env.core.screen import import_pygame
from spatialsim_env.files import replaced

MARKDOWN, PAGE = "report.md", "index.html"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: 13px; margin: 1rem 0 }
th, td { border: 1px solid #ddd; padding: 0.25rem 0.5rem; text-align: left; white-space: nowrap }
th { background: #f4f4f4 }
img { max-width: 100%; height: auto }
"""


@dataclass(frozen=True)
class Drawing:
    """A figure of the report."""

    name: str  # of its file
    title: str
    png: bytes | None  # None where no row has what it shows

    @property
    def path(self) -> str:
        """Of its file within the report."""
        return f"figures/{self.name}.png"


def write(results: str | os.PathLike[str], out: str | os.PathLike[str]) -> Path:
    """Write the report of a folder of results; returns the path of its Markdown.

    ``out`` then holds report.md, index.html (the same in one file), tables/NAME.csv and figures/NAME.png.

    Raises:
        rows.RowError: a damaged file, or rows of several versions of the code; the message names them.
        FileNotFoundError: no folder of rows.
        ImportError: matplotlib, Markdown or pygame-ce is not installed.
        OSError: a file cannot be written.
    """
    _require_packages()
    found = rows.read(Path(results))
    known, cells, folder = Results(found), list(experiments.cells(rows.is_quick(found)).values()), Path(out)
    drawings = _drawings(known)
    shown = _tables(known)
    left = outstanding(known, cells)
    text = _markdown(known, cells, shown, drawings, left)
    return put_all(folder, [*shown, left, tables.runs(known)], drawings, text)


def _require_packages() -> None:
    """Fail before the work, not after it."""
    try:
        import markdown  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f'the report needs {error.name}: pip install "spatialsim-env[bench]"') from error
    import_pygame()


def put(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    with replaced(path) as temporary:
        temporary.write_bytes(content)


def put_all(folder: Path, tables: Sequence[Table], drawings: Sequence[Drawing], text: str) -> Path:
    """Write the parts of a report, the Markdown last; returns its path. What could not be drawn is removed."""
    for table in tables:
        put(folder / "tables" / f"{table.name}.csv", table.csv().encode())
    for drawing in drawings:
        if drawing.png is None:
            (folder / drawing.path).unlink(missing_ok=True)
        else:
            put(folder / drawing.path, drawing.png)
    put(folder / PAGE, page(text, {drawing.path: drawing.png or b"" for drawing in drawings}).encode())
    put(folder / MARKDOWN, text.encode())
    return folder / MARKDOWN


def _tables(known: Results) -> list[Table]:
    """In the order in which they are shown."""
    return [
        *tables.table1(known),
        *tables.table2(known),
        tables.rules(known),
        *tables.table3(known),
        tables.ablations(known),
        tables.widths(known),
    ]


def _drawings(known: Results) -> list[Drawing]:
    drawn = {"figure1": ("Figure 1: a reference, a positive and a negative", figures.samples())}
    for task in ("identification", "discrimination"):
        title = task.capitalize()
        drawn[f"figure2_{task}"] = (f"Figure 2: heat maps, {title}", figures.heat_maps(known, task))
        drawn[f"curves_{task}"] = (f"Learning curves, {title}", figures.curves(known, task))
    return [
        Drawing(name, title, None if figure is None else figures.png(figure)) for name, (title, figure) in drawn.items()
    ]


def _markdown(known: Results, cells: list[Cell], shown: list[Table], drawings: list[Drawing], left: Table) -> str:
    parts = ["# The benchmark: results", _origin(known, cells)]
    for table in shown:
        parts += [f"## {table.title}", table.note, table.markdown()]
    for drawing in drawings:
        picture = "No row has it yet." if drawing.png is None else f"![{drawing.title}]({drawing.path})"
        parts += [f"## {drawing.title}", picture]
    parts += ["## Runs that failed", failures(known.failed)]
    parts += [f"## {left.title}", left.note, left.markdown() if left.lines else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def _origin(known: Results, cells: list[Cell]) -> str:
    """What made the rows, and how many there are."""
    total = sum(len(cell.seeds) for cell in cells if not cell.long or cell.name in known.cells)
    done = len(known.rows) - len(known.failed)
    parts = [
        f"{done:,} of {total:,} runs done, {len(known.failed)} failed. Accuracy is exact over the whole test set. "
        "Published figures are those of the paper, mean and deviation over 10 runs; every other figure follows from "
        "the rows."
    ]
    if cells == list(experiments.cells(quick=True).values()):
        parts.append(
            "**These are rows of the small study for tests: nothing in them was trained long enough to learn.**"
        )
    parts.append(origins(known.rows))
    return "\n\n".join(part for part in parts if part)


def origins(found: Sequence[rows.Row]) -> str:
    """What made rows of any kind, as a list."""
    made = {
        "version of the results": {str(row["version"]) for row in found},
        "commit": {(row["commit"] or "none")[:7] + "-dirty" * str(row["commit"]).endswith("-dirty") for row in found},
        "machine": {f"{row['machine']} ({row['device']})" for row in found},
        "packages": {", ".join(f"{name} {number}" for name, number in row["versions"].items()) for row in found},
    }
    return "\n".join(f"- {name}: {'; '.join(sorted(values))}" for name, values in made.items() if values)


def failures(failed: Sequence[rows.Row]) -> str:
    """Rows with an error, as a list."""
    said = {row["id"]: row["error"].replace("`", "'") for row in failed}
    return "\n".join(f"- `{run}`: `{error}`" for run, error in said.items()) or "None."


def page(text: str, pictures: dict[str, bytes]) -> str:
    """Markdown as one HTML page with its pictures, by path, in it."""
    import markdown

    def embedded(match: re.Match[str]) -> str:
        return f'src="data:image/png;base64,{base64.b64encode(pictures[match[1]]).decode()}"'

    body = re.sub(r'src="([^"]+)"', embedded, markdown.markdown(text, extensions=["tables", "sane_lists"]))
    title = text.splitlines()[0].lstrip("# ")
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'
