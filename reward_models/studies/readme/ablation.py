"""The tables of hardening's ablation, from its rows: a line a variant, in the order in which ingredients are added."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reward_models.auditing.audit import GRADIENT, SEARCH
from reward_models.shares import value_of
from reward_models.studies.hardening.ablation import PLAIN, variants_of

ROWS = Path(__file__).parents[3] / "results" / "hardening"
OBJECTS = "3-8"  # of the thresholds and of the hard suite
TASKS = {"lookalikes": "lookalikes/five", "swapped": "swapped"}  # column: task

Row = dict[str, Any]


def table(model: str) -> Callable[[], str]:
    """The table of a model, without arguments."""

    def made() -> str:
        rows = read(model)
        if not rows:
            return f"No run is recorded yet: `spatialsim ablation {model}` makes them."
        sizes = sorted({row["n_objects"] for row in rows[0]["audit"]})
        shown = " / ".join(map(str, sizes))
        header = [
            "replay up to", "3-8", "9-20", "21-30", "detected from", *TASKS,
            f"gradient, {shown}", f"search, {shown}", f"reach, {shown}", "s",
        ]  # fmt: skip
        lines = [_line(row, sizes) for row in rows]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *lines))

    return made


def read(model: str) -> list[Row]:
    """The recorded rows of a model, with everything in it but default settings first, then the ingredients in turn."""
    order = [name for name in variants_of(model) if name != PLAIN]
    paths = (ROWS / model / name / "seed0.json" for name in (PLAIN, *order))
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def _line(row: Row, sizes: list[int]) -> list[str]:
    sigma = row["thresholds"][OBJECTS]
    return [
        "all, default settings" if row["variant"] == PLAIN else row["variant"],
        *(f"{part['correct'] / part['total']:.4f}" for part in row["accuracy"].values()),
        "never" if sigma is None else f"{sigma:.2f}",
        *(_accuracy(row["hard_suite"].get(task, {}).get(OBJECTS)) for task in TASKS.values()),
        _least(row, GRADIENT, "precision", sizes),
        _least(row, SEARCH, "precision", sizes),
        _least(row, GRADIENT, "reach", sizes),
        f"{row['cpu_seconds']:.0f}",
    ]


def _accuracy(part: Row | None) -> str:
    return "-" if part is None else f"{part['correct'] / part['total']:.2f}"


def _least(row: Row, optimiser: str, name: str, sizes: list[int]) -> str:
    """The least share over what is moved, for each number of objects."""
    cells = []
    for n in sizes:
        shares = [part[name] for part in row["audit"] if (part["optimiser"], part["n_objects"]) == (optimiser, n)]
        values = [value for share in shares if (value := value_of(share)) is not None]
        cells.append(f"{min(values):.2f}" if values else "none")
    return " / ".join(cells)
