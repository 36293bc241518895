"""Rows that no run made: those of the study, with accuracies, curves and heat maps that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from reward_models.studies.paper import experiments
from spatialsim_env.arrangements.scene import POSITION
from spatialsim_env.arrangements.tasks import reference_scene

Row = dict[str, Any]


def row(cell: str, seed: int, right: float | Callable[[str], float] = 0.75, **changes: Any) -> Row:
    """A row of a cell of the study; ``right`` is the share of right answers, or one for each test set."""
    of_study = experiments.CELLS[cell]
    settings = of_study.settings(seed)
    share: Callable[[str], float] = right if callable(right) else lambda test: right
    rule = cell.startswith("rules/")
    return {
        "id": of_study.id(seed),
        "cell": cell,
        "seed": seed,
        "version": experiments.VERSION,
        "package": "0.1.0",
        "commit": "0123456789abcdef",
        "versions": {"python": "3.11.0", "numpy": "2.0.0", "torch": "2.2.0", "numba": "0.60.0"},
        "machine": "x86_64, 2 cores",
        "device": "cpu",
        "settings": settings,
        "seeds_together": list(of_study.seeds),
        "n_weights": None if rule else 2208,
        "seconds": 2.5,
        "accuracy": {
            test: {"correct": round(share(test) * total), "total": total} for test, total in of_study.tests.items()
        },
        "log": [] if rule else _log(settings, share(next(iter(of_study.tests)))),
        "heat_map": heat_map() if of_study.heat_map and seed == of_study.seeds[0] else None,
        "error": None,
    } | changes


def cell(name: str, *accuracies: float, **changes: Any) -> list[Row]:
    """Rows of the first seeds of a cell, one for each accuracy, as if they were all of its pass."""
    seeds = experiments.CELLS[name].seeds[: len(accuracies)]
    changes = {"seeds_together": list(seeds)} | changes
    return [row(name, seed, share, **changes) for seed, share in zip(seeds, accuracies, strict=True)]


def heat_map(scale: float = 1.0) -> dict[str, Any]:
    """``scale`` times 1 minus the distance to the true place of the first of five objects."""
    scene = reference_scene(5, 0)
    places = (np.arange(40) + 0.5) / 2
    x, y = scene[0, POSITION]
    logits = scale * (1 - np.hypot(places[None, :] - x, places[:, None] - y))
    return {"logits": logits.tolist(), "scene": scene.tolist(), "displaced": 0}


def save(results: Path, rows: list[Row]) -> Path:
    """Write rows where a benchmark has them, a file a cell, as if they were all of its pass; returns ``results``."""
    for name in {one["cell"] for one in rows}:
        together = [one for one in rows if one["cell"] == name]
        seeds = {"seeds_together": [one["seed"] for one in together]}
        path = results / "rows" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(one | seeds) + "\n" for one in together))
    return results


def _log(settings: dict[str, Any], end: float) -> list[list[float]]:
    steps = [(s + 1, e + 1) for s in range(len(settings["stages"])) for e in range(settings["epochs_per_stage"])]
    return [
        [stage, epoch, 1.4 - done, 0.5 + (end - 0.5) * done, 0.1]
        for done, (stage, epoch) in ((k / len(steps), step) for k, step in enumerate(steps, start=1))
    ]
