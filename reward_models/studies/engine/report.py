"""The report of a study from its rows alone, as Markdown, CSV, PNG and, where it says so, one HTML page."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from reward_models.studies.engine import rows
from reward_models.studies.engine.study import Figure, R, Report, Results, Row, Study, U
from reward_models.tables import Table
from spatialsim_env.files import write_whole

MARKDOWN, PAGE = "report.md", "index.html"
EMPTY = "No row has it yet."
QUICK = "**These are rows of the small study for tests: nothing in them was trained long enough to learn.**"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: 13px; margin: 1rem 0 }
th, td { border: 1px solid #ddd; padding: 0.25rem 0.5rem; text-align: left; white-space: nowrap }
th { background: #f4f4f4 }
img { max-width: 100%; height: auto }
"""


def write_study(
    study: Study[U, R], results: str | os.PathLike[str], out: str | os.PathLike[str], *, quick: bool = False
) -> Path:
    """Write the report of a folder of results; returns the path of its Markdown.

    Raises:
        rows.RowError: a damaged file, or rows of other runs than the study says; the message names them.
        FileNotFoundError: no folder of rows, or no row in it.
        ImportError: a package that the report needs is not installed.
        OSError: a file cannot be written.
    """
    known = rows.read(study, Path(results), quick=quick)
    if not known.rows:
        raise FileNotFoundError(f"{known.folder / study.files.rows} holds no rows; spatialsim study run writes them")
    return write(study.report(known), out)


def write(report: Report, out: str | os.PathLike[str]) -> Path:
    """Write tables/NAME.csv, figures/NAME.png, index.html for a page, and report.md last; returns its path.

    A picture that could not be drawn is removed.
    """
    folder, text = Path(out), markdown(report)
    figures = [part for part in report.parts if isinstance(part, Figure)]
    for table in (*(part for part in report.parts if isinstance(part, Table)), *report.sheets):
        write_whole(folder / "tables" / f"{table.name}.csv", table.csv())
    for figure in figures:
        if figure.png is None:
            (folder / figure.path).unlink(missing_ok=True)
        else:
            write_whole(folder / figure.path, figure.png)
    if report.page:
        write_whole(folder / PAGE, page(text, {figure.path: figure.png or b"" for figure in figures}))
    return write_whole(folder / MARKDOWN, text)


def markdown(report: Report) -> str:
    """The report as text."""
    parts = [f"# {report.title}"]
    for part in report.parts:
        if isinstance(part, Table):
            body = part.markdown() if part.lines else "" if part.note else EMPTY
            parts += [f"## {part.title}", part.note, body]
        elif isinstance(part, Figure):
            parts += [f"## {part.title}", EMPTY if part.png is None else f"![{part.title}]({part.path})"]
        else:
            parts.append(part)
    return "\n\n".join(part for part in parts if part) + "\n"


def origin(made: Iterable[Row]) -> str:
    """List the code and the machines that made rows."""
    stamps = [row.stamp for row in made]
    entries = {
        "version of the results": {str(stamp.version) for stamp in stamps},
        "commit": {(stamp.commit or "none")[:7] + "-dirty" * str(stamp.commit).endswith("-dirty") for stamp in stamps},
        "machine": {f"{stamp.machine} ({stamp.device})" for stamp in stamps},
        "packages": {", ".join(f"{name} {number}" for name, number in stamp.versions.items()) for stamp in stamps},
    }
    return "\n".join(f"- {name}: {'; '.join(sorted(values))}" for name, values in entries.items() if values)


def failures(results: Results[R]) -> str:
    """List the runs that failed, under their heading."""
    return _format_list("Runs that failed", [f"`{run}`: `{_line(row)}`" for run, row in results.failed.items()])


def _line(row: Row) -> str:
    return (row.error or "").replace("`", "'")


def missing(results: Results[R]) -> str:
    """List the runs without a row, under their heading."""
    return _format_list("Runs without a row", [f"`{run}`" for run in results.missing])


def _format_list(title: str, entries: Sequence[str]) -> str:
    return f"## {title}\n\n" + ("\n".join(f"- {entry}" for entry in entries) or "None.")


def require_packages(*names: str, extra: str = "bench") -> None:
    """Fail before the work, not after it.

    Raises:
        ImportError: one of the packages is not installed.
    """
    for name in names:
        if find_spec(name) is None:
            raise ImportError(f'the report needs {name}: pip install "spatialsim-env[{extra}]"')


def page(text: str, pictures: dict[str, bytes]) -> str:
    """Format Markdown as one HTML page with its pictures, by path, in it."""
    import markdown

    def embedded(match: re.Match[str]) -> str:
        return f'src="data:image/png;base64,{base64.b64encode(pictures[match[1]]).decode()}"'

    body = re.sub(r'src="([^"]+)"', embedded, markdown.markdown(text, extensions=["tables", "sane_lists"]))
    title = text.splitlines()[0].lstrip("# ")
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'
