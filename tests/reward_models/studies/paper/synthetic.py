"""Rows that no run made: those of the study, with accuracies, curves and heat maps that a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from reward_models.provenance import Stamp
from reward_models.studies.engine.study import Results
from reward_models.studies.paper import runs
from reward_models.studies.paper.work import PaperRow
from spatialsim_env.arrangements.scene import POSITION
from spatialsim_env.arrangements.tasks import reference_scene

STAMP = Stamp(
    runs.VERSION,
    "0.1.0",
    "0123456789abcdef",
    {"python": "3.11.0", "numpy": "2.0.0", "torch": "2.2.0", "numba": "0.60.0"},
    "x86_64, 2 cores",
)


def row(cell: str, seed: int, right: float | Callable[[str], float] = 0.75, **changes: Any) -> PaperRow:
    """A row of a cell of the study; ``right`` is the share of right answers, or one for each test set."""
    of_study = runs.CELLS[cell]
    settings = settings_of(of_study, seed)
    share: Callable[[str], float] = right if callable(right) else lambda test: right
    rule = cell.startswith("rules/")
    entries = {
        "id": of_study.run(seed),
        "cell": cell,
        "seed": seed,
        "stamp": STAMP,
        "settings": settings,
        "seeds_together": list(of_study.seeds),
        "n_weights": None if rule else 2208,
        "seconds": 2.5,
        "accuracy": {
            test: {"correct": round(share(test) * total), "total": total} for test, total in of_study.tests.items()
        },
        "log": [] if rule else _log(settings, share(next(iter(of_study.tests)))),
        "heat_map": heat_map() if of_study.heat_map and seed == of_study.seeds[0] else None,
    }
    return PaperRow(**(entries | changes))


def cell(name: str, *accuracies: float, **changes: Any) -> list[PaperRow]:
    """Rows of the first seeds of a cell, one for each accuracy, as if they were all of its pass."""
    seeds = runs.CELLS[name].seeds[: len(accuracies)]
    changes = {"seeds_together": list(seeds)} | changes
    return [row(name, seed, share, **changes) for seed, share in zip(seeds, accuracies, strict=True)]


def heat_map(scale: float = 1.0) -> dict[str, Any]:
    """``scale`` times 1 minus the distance to the true place of the first of five objects."""
    scene = reference_scene(5, 0)
    places = (np.arange(40) + 0.5) / 2
    x, y = scene[0, POSITION]
    logits = scale * (1 - np.hypot(places[None, :] - x, places[:, None] - y))
    return {"logits": logits.tolist(), "scene": scene.tolist(), "displaced": 0}


def settings_of(cell: runs.Cell, seed: int = 0) -> dict[str, Any]:
    """Settings of a run by its seed."""
    return cell.settings(cell.run(seed))


def results_of(rows: Iterable[PaperRow], *, quick: bool = False) -> Results[PaperRow]:
    """Rows as they are read from a folder of results; those that are not there are missing."""
    by_id = {one.id: one for one in rows}
    order = [run for cell in runs.cells(quick).values() for run in cell.runs if run in by_id or not cell.long]
    present = {run: by_id[run] for run in order if run in by_id}
    return Results(present, quick, tuple(run for run in order if run not in by_id), Path("results"))


def _log(settings: dict[str, Any], end: float) -> list[list[float]]:
    steps = [(s + 1, e + 1) for s in range(len(settings["stages"])) for e in range(settings["epochs_per_stage"])]
    return [
        [stage, epoch, 1.4 - done, 0.5 + (end - 0.5) * done, 0.1]
        for done, (stage, epoch) in ((k / len(steps), step) for k, step in enumerate(steps, start=1))
    ]
