"""Runs of the ablation of hardening: the same network, with one part of the replay more a variant.

A variant is a hardening whose replay holds the parts up to its own; only with "ends" can it be over before its last
round. An id is ``MODEL/VARIANT/seedK``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from reward_models.hub.recipes import HARDENED
from reward_models.studies.engine.study import Json, Unit, as_json
from reward_models.training.hardening.config import PARTS, HardeningConfig
from spatialsim_env.arrangements.tasks import RANGES
from spatialsim_env.checks import require

VERSION = 1  # raised whenever a change of the code alters results
PLAIN = "plain"


@dataclass(frozen=True)
class Measures:
    """Sizes of the measurements of a hardened network."""

    test_samples: int = 10_000  # of the benchmark, per range
    hard_samples: int = 2_000  # of the hard suite, per task and range
    objects: tuple[tuple[int, int], ...] = RANGES[:2]  # of the hard suite
    audit: Json = field(
        default_factory=lambda: {"n_objects": (3, 5, 8), "starts": 128, "search_evaluations": 3_000, "agent": False}
    )


_FEW_STARTS = {
    "n_objects": (3,), "starts": 2, "gradient_evaluations": 4, "search_evaluations": 8, "fixed_samples": 8,
    "agent": False,
}  # fmt: skip
_FEW = Measures(50, 10, RANGES[:1], _FEW_STARTS)


@dataclass(frozen=True)
class HardeningUnit(Unit):
    """A variant of a model's hardening."""

    model: str  # a key of ``hub.recipes.HARDENED``
    variant: str
    config: HardeningConfig
    measures: Measures = Measures()

    def settings(self, run: str) -> Json:
        return as_json(self.config.to_json())

    def quick(self) -> HardeningUnit:
        """Shrink it to a moment, for tests."""
        training = replace(self.config.training, samples_per_stage=256, validation_samples=64)
        config = replace(
            self.config, training=training, rounds=2, samples=256, episodes=4, sizes=1, starts=3,
            gradient_evaluations=8, search_evaluations=20, points=2,
        )  # fmt: skip
        return replace(self, config=config, measures=_FEW)


def units(quick: bool = False) -> dict[str, HardeningUnit]:
    """List all variants of all models; ``quick`` hardens two rounds on few samples."""
    listed = [unit_of(model, name) for model in HARDENED for name in variants_of(model)]
    return {unit.id: unit.quick() if quick else unit for unit in listed}


def unit_of(model: str, name: str) -> HardeningUnit:
    """Make the unit of a variant, with seed 0."""
    return HardeningUnit(f"{model}/{name}/seed0", model, name, variant(model, name))


def variants_of(model: str) -> tuple[str, ...]:
    """List the variants of a model that differ from one another.

    Raises:
        ValueError: an unknown model.
    """
    recipe = _recipe(model)
    known = (PARTS[0], *(part for part in PARTS[1:] if part in recipe.shares))
    return (*known, PLAIN) if recipe.training.settings else known


def _recipe(model: str) -> HardeningConfig:
    if model not in HARDENED:
        raise ValueError(f"model is {model!r}; accepted are {', '.join(HARDENED)}")
    return HARDENED[model]


def variant(model: str, name: str, seed: int = 0) -> HardeningConfig:
    """Make the hardening of a variant: the recipe's, with the parts of the replay up to ``name``.

    "benchmark" has nothing but the benchmark's pairs, its start too; "ends" is the recipe; "plain" is all of it with
    the network's default settings.

    Raises:
        ValueError: an unknown model, or not one of its variants.
    """
    config = _recipe(model)
    require(name in variants_of(model), f"variant of {model}", name, ", ".join(variants_of(model)))
    training = replace(config.training, seed=seed)
    if name == PLAIN:
        return replace(config, training=replace(training, settings={}), seed=seed)
    if name == "benchmark":
        return replace(config, training=replace(training, negative="redrawn"), shares={"benchmark": 1.0}, seed=seed)
    kept = PARTS[: PARTS.index(name) + 1]
    shares = {part: config.shares[part] for part in kept if part in config.shares}
    return replace(config, training=training, shares=shares, seed=seed)
