"""Tables of text, as Markdown and CSV, and figures as PNG."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

NONE = "-"  # a cell without a value
DPI = 110


def markdown(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Format cells as Markdown."""
    rows = (columns, ("---",) * len(columns), *lines)
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows)


@dataclass(frozen=True)
class Table:
    """Cells of text under a title."""

    name: str  # of its file
    title: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """Format the cells, without title and note."""
        return markdown(self.columns, self.lines)

    def csv(self) -> str:
        """Format a line of columns, then the others."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows((self.columns, *self.lines))
        return out.getvalue()


def number(value: float | None, digits: int = 3) -> str:
    """Format a number as all tables do; "-" for None."""
    return NONE if value is None else f"{value:.{digits}f}"


def png(figure: Any) -> bytes:
    """Draw a figure of matplotlib as a PNG."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    return out.getvalue()


def blank_figure(width: float, height: float) -> Any:
    """Make an empty figure, in inches, that belongs to no display and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
