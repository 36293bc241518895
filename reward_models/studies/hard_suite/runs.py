"""Runs of the hard suite: a model of the hub and of two inputs each, beside the ideal observer, the truth and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reward_models.hub import recipes
from reward_models.studies.engine.study import Json, Unit, as_json
from spatialsim_env.arrangements import hard_suite
from spatialsim_env.arrangements.tasks import object_range

VERSION = 1  # of the suite and its judges; raised by whatever alters results
_QUICK = 40  # samples per task and range of the small study


@dataclass(frozen=True)
class HardUnit(Unit):
    """A model on tasks and ranges of objects; its id is the model's name in tables."""

    source: str  # "hub:NAME", or the folder of a trained network
    tasks: Sequence[str] = hard_suite.NAMES
    objects: Sequence[int | tuple[int, int]] = hard_suite.RANGES
    size: int | None = None  # samples per task and range; None for ``hard_suite.size_for``
    seed: int = 0  # of the samples

    def settings(self, run: str) -> Json:
        objects = [list(object_range(part)) for part in self.objects]
        return as_json({"tasks": self.tasks, "objects": objects, "size": self.size})


def units(quick: bool = False) -> dict[str, HardUnit]:
    """List the models; ``quick`` takes few samples of the smallest range."""
    objects, size = (hard_suite.RANGES[:1], _QUICK) if quick else (hard_suite.RANGES, None)
    return {name: HardUnit(name, f"hub:{name}", objects=objects, size=size) for name in recipes.SHIPPED}
