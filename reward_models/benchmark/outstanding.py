"""What of the study has no row yet, as commands with what they cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reward_models.benchmark.experiments import Cell
from reward_models.benchmark.protocol import compressed
from reward_models.benchmark.summary import Results
from reward_models.benchmark.tables import NONE, Table


def outstanding(results: Results, cells: Sequence[Cell]) -> Table:
    """The runs without a row, a line and a command for each model of a task; a cell that has rows is not run again."""
    done = {row["id"] for row in results.rows}
    by_model: dict[str, list[tuple[Cell, int]]] = {}
    for cell in cells:
        missing = sum(run not in done for run in cell.ids)
        if missing:
            by_model.setdefault(_model(cell.name), []).append((cell, missing))
    lines = []
    for model, wanting in by_model.items():
        costs = [(missing, _seconds(results, cell.name)) for cell, missing in wanting]
        total = sum(missing * known[0] for missing, known in costs if known)
        sources = "; ".join(dict.fromkeys(known[1] for _, known in costs if known))
        measured = (f"{total:,.0f}", sources) if all(known for _, known in costs) else (NONE, NONE)
        name = wanting[0][0].name if len(wanting) == 1 else model
        runs = str(sum(missing for missing, _ in costs))
        lines.append((f"`spatialsim bench run --filter {name}`", _objects_of(wanting), runs, *measured))
    note = (
        "Seconds of training for all runs of the line together, on the machine that made the rows: from runs of the "
        "same model and task, along a power law in the number of objects where several sizes are measured. Ablations "
        'are reckoned as the MPGNN. "-": nothing of that model is measured.'
    )
    columns = ("command", "objects", "runs", "seconds", "from")
    return Table("outstanding", "What was not run", columns, tuple(lines), note if lines else "Every run has a row.")


def _model(cell: str) -> str:
    """All but the objects of a cell: "identification/rds/n5" -> "identification/rds"."""
    return cell.rpartition("/")[0]


def _objects_of(wanting: Sequence[tuple[Cell, int]]) -> str:
    scenes = [cell.name.rpartition("/")[2] for cell, _ in wanting]
    single = [int(part[1:]) for part in scenes if part.startswith("n")]
    return ", ".join([f"n = {compressed(single)}"] * bool(single) + [part for part in scenes if part[0] != "n"])


def _seconds(results: Results, cell: str) -> tuple[float, str] | None:
    """Seconds a run of a cell would take and what that follows from; None where nothing of its model is measured."""
    model = "discrimination/mpgnn" if cell.startswith("ablation/") else _model(cell)
    measured = {
        _objects(name): (float(np.mean([row["seconds"] for row in rows])), name)
        for name, rows in results.cells.items()
        if _model(name) == model
    }
    if not measured:
        return None
    sizes = sorted(measured)
    means = [measured[size][0] for size in sizes]
    if len(sizes) == 1 or min(means) <= 0:
        return measured[min(sizes, key=lambda size: abs(size - _objects(cell)))]
    slope, offset = np.polyfit(np.log(sizes), np.log(means), 1)
    return float(np.exp(offset + slope * np.log(_objects(cell)))), f"{len(sizes)} sizes of {model}"


def _objects(cell: str) -> float:
    """Mean number of objects in the scenes of a cell: 5 for ".../n5", 5.5 for ".../3-8"."""
    numbers = [int(part) for part in cell.rpartition("/")[2].removeprefix("n").split("-")]
    return sum(numbers) / len(numbers)
