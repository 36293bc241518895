"""Units of the study without a row, as commands with their costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reward_models import models
from reward_models.models.resnet import PictureConfig
from reward_models.studies.paper.protocol import compress
from reward_models.studies.paper.runs import Cell
from reward_models.studies.paper.summary import Cells
from reward_models.tables import NONE, Table

PIXELS = PictureConfig().pixels  # of the paper's pictures


FORWARD = (
    1.8e9  # multiplications and additions in pairs of a ResNet18 for a picture of 224 pixels (He et al. 2015, table 1)
)
GPU = 1e13  # operations a second of a GPU in float32: assumed, not measured


def outstanding(results: Cells, cells: Sequence[Cell]) -> Table:
    """The runs without a row, a line and a command for each model of a task; a cell that has rows is not run again."""
    done = {row.id for row in results.rows}
    by_model: dict[str, list[tuple[Cell, int]]] = {}
    for cell in cells:
        missing = sum(run not in done for run in cell.runs)
        if missing:
            by_model.setdefault(_model(cell.id), []).append((cell, missing))
    lines = []
    for model, wanting in by_model.items():
        costs = [(missing, _seconds(results, cell)) for cell, missing in wanting]
        total = sum(missing * known[0] for missing, known in costs if known)
        sources = "; ".join(dict.fromkeys(known[1] for _, known in costs if known))
        measured = (_hours(total), sources) if all(known for _, known in costs) else (NONE, NONE)
        gpu = sum(missing * _operations(cell) for cell, missing in wanting) / GPU
        name = wanting[0][0].id if len(wanting) == 1 else model
        runs = str(sum(missing for missing, _ in costs))
        command = f"`spatialsim study run paper --filter {name}`"
        lines.append((command, _objects_of(wanting), runs, *measured, _hours(gpu) if gpu else NONE))
    note = (
        "Hours of training for all runs of the line together, on one processor of the machine that made the rows, "
        "which it shared with other work: from runs of the same model and task, along a power law in the number of "
        "objects where several sizes are measured, else in proportion to it. Ablations are reckoned as the MPGNN. "
        f"Picture models: in proportion to pixels and pictures; on a GPU, from {FORWARD:.1e} multiply-adds forward for "
        f"a picture of 224 pixels, twice that backward, and {GPU:.0e} operations a second, which is assumed and not "
        "measured. "
        '"-": nothing of that model is measured, or the time is not that of its arithmetic.'
    )
    columns = ("command", "objects", "runs", "hours", "from", "hours on a GPU")
    return Table("outstanding", "What was not run", columns, tuple(lines), note if lines else "Every run has a row.")


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.2f}" if seconds < 36_000 else f"{seconds / 3600:,.0f}"


def _picture_work(settings: dict[str, Any]) -> float:
    """Pixels that a run trains on, in units of a picture of 224 x 224; 0 for models of objects."""
    model = models.REGISTRY.get(settings.get("model", ""))
    if model is None or not model.sees_pictures:
        return 0.0
    pixels = settings["settings"].get("pixels", PIXELS)
    pictures = settings["samples_per_stage"] * settings["epochs_per_stage"] * len(settings["stages"])
    return pictures * (2 if model.two_inputs else 1) * (pixels / PIXELS) ** 2


def _operations(cell: Cell) -> float:
    """Arithmetic of a run of a picture model; 0 for others."""
    return 3 * 2 * FORWARD * _picture_work(cell.settings(cell.runs[0]))


def _model(cell: str) -> str:
    """All but the objects of a cell: "identification/rds/n5" -> "identification/rds"."""
    return cell.rpartition("/")[0]


def _objects_of(wanting: Sequence[tuple[Cell, int]]) -> str:
    scenes = [cell.id.rpartition("/")[2] for cell, _ in wanting]
    single = [int(part[1:]) for part in scenes if part.startswith("n")]
    return ", ".join([f"n = {compress(single)}"] * bool(single) + [part for part in scenes if part[0] != "n"])


def _seconds(results: Cells, cell: Cell) -> tuple[float, str] | None:
    """Seconds a run of a cell would take and what that follows from; None where nothing of its model is measured."""
    work = _picture_work(cell.settings(cell.runs[0]))
    if work:
        return _by_pixels(results, work)
    model = "discrimination/mpgnn" if cell.id.startswith("ablation/") else _model(cell.id)
    measured = {
        _objects(name): (float(np.mean([row.seconds for row in rows])), name)
        for name, rows in results.cells.items()
        if _model(name) == model
    }
    if not measured:
        return None
    sizes = sorted(measured)
    means = [measured[size][0] for size in sizes]
    if len(sizes) == 1 or min(means) <= 0:
        return means[0] * _objects(cell.id) / sizes[0], measured[sizes[0]][1]
    slope, offset = np.polyfit(np.log(sizes), np.log(means), 1)
    return float(np.exp(offset + slope * np.log(_objects(cell.id)))), f"{len(sizes)} sizes of {model}"


def _by_pixels(results: Cells, work: float) -> tuple[float, str] | None:
    """From the runs of picture models that there are."""
    measured = {
        name: float(np.mean([row.seconds for row in rows])) / seen
        for name, rows in results.cells.items()
        if (seen := _picture_work(rows[0].settings))
    }
    if not measured:
        return None
    return work * float(np.mean(list(measured.values()))), ", ".join(measured)


def _objects(cell: str) -> float:
    """Mean number of objects in the scenes of a cell: 5 for ".../n5", 5.5 for ".../3-8"."""
    numbers = [int(part) for part in cell.rpartition("/")[2].removeprefix("n").split("-")]
    return sum(numbers) / len(numbers)
