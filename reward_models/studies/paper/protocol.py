"""Runs in words: the names of models, and departures of a run's settings from the paper's protocol."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

from reward_models import models
from reward_models.studies.paper.work import PaperRow
from reward_models.training.config import TrainingConfig
from spatialsim_env.arrangements.scene import TURN

_OF_THE_SET = ("n_min", "n_max")  # settings that follow from the set a model is trained on
NAMES = {
    "mpgnn": "MPGNN",
    "conditioned_mpgnn": "MPGNN, conditioned",
    "gcn": "GCN",
    "rds": "RDS",
    "deep_set": "Deep Set",
    "resnet18": "ResNet18",
    "resnet18_64px": "ResNet18, 64 px",
    "mlp": "MLP",
    "graph_matching": "Graph Matching Network",
    "matching": "matching network",
}


def title(model: str) -> str:
    """The name of a model in tables and figures: its own where it has no other."""
    return NAMES.get(model, model)


def departures(settings: dict[str, Any]) -> list[str]:
    """List the departures of a training run's settings, as in its row, from the paper's protocol of its task."""
    identification = settings["task"] == "identification"
    usual = _usual(identification)
    say = {
        "stages": _stages,
        "samples_per_stage": "{:,} training samples".format if identification else "{:,} samples a stage".format,
        "epochs_per_stage": "{} epochs".format if identification else "{} epochs a stage".format,
        "learning_rate": "learning rate {:g}".format,
        "batch_size": "batches of {}".format,
        "negative": "negatives {}".format,
    }
    found = [text(settings[key]) for key, text in say.items() if settings.get(key, usual[key]) != usual[key]]
    defaults = models.REGISTRY[settings["model"]].Config()
    for key, value in settings["settings"].items():
        if key == "pixels":
            found.append(f"{value} px")
        elif key not in _OF_THE_SET and value != getattr(defaults, key):
            found.append(f"{key} {value}")
    return found


@cache
def _usual(identification: bool) -> dict[str, Any]:
    return (TrainingConfig.identification() if identification else TrainingConfig()).to_json()


def was_run(runs: Iterable[PaperRow]) -> str:
    """Sets, seeds and departures of runs, as "n = 3-8, seeds 0-9"; "-" without one."""
    rows = list(runs)
    if not rows:
        return "-"
    sizes = sorted({row.settings["n_objects"] for row in rows if isinstance(row.settings["n_objects"], int)})
    seeds = sorted({row.seed for row in rows})
    parts = [f"n = {compress(sizes)}"] if sizes else []
    parts.append(f"{'seed' if len(seeds) == 1 else 'seeds'} {compress(seeds)}")
    parts += dict.fromkeys(text for row in rows for text in departures(row.settings))
    return ", ".join(parts)


def compress(numbers: Iterable[int]) -> str:
    """Whole numbers with their stretches drawn together: 3, 4, 5, 9 -> "3-5, 9"."""
    stretches: list[list[int]] = []
    for number in sorted(set(numbers)):
        if stretches and number == stretches[-1][-1] + 1:
            stretches[-1].append(number)
        else:
            stretches.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in stretches)


def _stages(stages: list[float]) -> str:
    limits = [f"{limit / math.pi:.3g} pi" for limit in stages]
    if len(stages) == 1:
        return "no curriculum" if math.isclose(stages[0], TURN) else f"one stage at {limits[0]}"
    return f"all {len(stages)} stages at {limits[0]}" if len(set(limits)) == 1 else f"stages at {', '.join(limits)}"
