"""Ablation of hardening: the same network, with one part of the replay more a variant.

A variant is a hardening (``training.hardening``) whose replay holds the parts up to its own; only with "ends" can it
be over before its last round. ``spatialsim ablation`` runs variants and writes a row each,
``OUT/<model>/<variant>/seed<k>.json``:

    id, model, variant, seed
    version, package, commit, versions, machine     as in the rows of the benchmark (``benchmark/rows.py``)
    settings             ``HardeningConfig.to_json()``
    audit_settings       of the audit
    n_weights            of the network
    seconds, cpu_seconds of the hardening, start included; of this call alone where an earlier one was stopped
    rounds               logs of the rounds (``rounds.RoundLog``)
    accuracy             {"3-8": {"correct", "total"}, ...} on the benchmark
    thresholds           {"3-8": detection threshold in deviations of the noise, null for never, ...}
    hard_suite           {task: {"3-8": {"correct", "total"}, ...}}; certified where a task has both forms
    audit                [{"optimiser", "moves", "n_objects", "claimed", "precision", "reach"}, ...]

A row is written once, as the last act of its run; a row of the same settings and commit is not made again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from reward_models import provenance
from reward_models.auditing.audit import audit
from reward_models.hub.recipes import HARDENED
from reward_models.judges.learned import LearnedModel
from reward_models.measuring import hard_cases
from reward_models.measuring.evaluation import accuracy_by_range
from reward_models.models import RewardModel
from reward_models.training.hardening.config import PARTS, HardeningConfig
from reward_models.training.hardening.rounds import harden, read_rounds
from spatialsim_env.arrangements.tasks import RANGES
from spatialsim_env.checks import read_object, require
from spatialsim_env.files import replace_file

Row = dict[str, Any]

VERSION = 1  # of the rows
PLAIN = "plain"
TEST_SAMPLES, HARD_SAMPLES = 10_000, 2_000  # per range; per task and range
OBJECTS = RANGES[:2]  # of the hard suite
AUDIT: dict[str, Any] = {"n_objects": (3, 5, 8), "starts": 128, "search_evaluations": 3_000, "agent": False}


def variants_of(model: str) -> tuple[str, ...]:
    """The variants of a model that differ from one another.

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
    """The hardening of a variant: the recipe's, with the parts of the replay up to ``name``.

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


def ablation(
    model: str,
    variants: Iterable[str],
    out: Path,
    work: Path,
    *,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> list[Path]:
    """Run variants and write their rows; what is there of the same settings and commit stays.

    Args:
        model: a key of ``hub.recipes.HARDENED``.
        out: folder of the rows.
        work: folder of the trainings, which go on where they stopped.

    Returns:
        The paths of the rows.

    Raises:
        ValueError: an unknown model or variant.
    """
    configs = {name: variant(model, name, seed) for name in variants}
    return [_row(model, name, config, out, work, say) for name, config in configs.items()]


def _row(
    model: str,
    name: str,
    config: HardeningConfig,
    out: Path,
    work: Path,
    say: Callable[[str], None],
) -> Path:
    run = f"{model}/{name}/seed{config.seed}"
    path, made = out / f"{run}.json", {"version": VERSION} | provenance.made_by()
    if path.exists() and _same(read_object(path), config, made):
        say(f"{run}: is there")
        return path
    say(f"{run}: hardening")
    start, cpu = time.perf_counter(), time.process_time()
    network = harden(config, work / run, say=say)
    seconds = {"seconds": round(time.perf_counter() - start, 2), "cpu_seconds": round(time.process_time() - cpu, 2)}
    say(f"{run}: measuring")
    row = {
        "id": run, "model": model, "variant": name, "seed": config.seed, **made, "settings": config.to_json(),
        "n_weights": network.n_weights, **seconds,
        "rounds": [at.to_json() for at in read_rounds(work / run)],
        **_measured(network),
    }  # fmt: skip
    with replace_file(path) as temporary:
        temporary.write_text(json.dumps(row, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


def _same(row: Row, config: HardeningConfig, made: Row) -> bool:
    return row.get("settings") == config.to_json() and row.get("commit") == made["commit"]


def _measured(network: RewardModel) -> Row:
    model = LearnedModel(network)
    found = hard_cases.run(model, beside={}, objects=OBJECTS, size=HARD_SAMPLES)
    suite: dict[str, Row] = {}
    for row in hard_cases.preferred(found).values():
        one = row["model"]
        suite.setdefault(one.task, {})[one.objects] = {"correct": one.correct, "total": one.total}
    audited = audit(model, **AUDIT)
    kept = ("optimiser", "moves", "n_objects", "claimed", "precision", "reach")
    return {
        "accuracy": {key: asdict(part) for key, part in accuracy_by_range(network, TEST_SAMPLES).items()},
        "thresholds": {objects: value for (_, objects), value in hard_cases.thresholds(found).items()},
        "hard_suite": suite,
        "audit_settings": audited["settings"],
        "audit": [{name: row[name] for name in kept} for row in audited["rows"]],
    }
