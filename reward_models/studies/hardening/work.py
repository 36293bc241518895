"""Work of the ablation of hardening: from a variant to its row, ``results/hardening/MODEL/VARIANT/seedK.json``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from reward_models.auditing.audit import audit
from reward_models.judges.learned import LearnedModel
from reward_models.measuring import hard_cases
from reward_models.measuring.evaluation import accuracy_by_range
from reward_models.models import RewardModel
from reward_models.provenance import Stamp
from reward_models.studies.engine.run import Place
from reward_models.studies.engine.study import Json
from reward_models.studies.hardening.runs import HardeningUnit, Measures
from reward_models.training.hardening.rounds import harden, read_rounds

_AUDITED = ("optimiser", "moves", "n_objects", "claimed", "precision", "reach")  # entries of an audit that a row keeps


@dataclass(frozen=True)
class HardeningRow:
    """The result of a variant."""

    id: str  # matching/ends/seed0
    model: str
    variant: str
    seed: int
    stamp: Stamp
    settings: Json  # ``HardeningConfig.to_json()``
    n_weights: int | None = None  # of the network
    seconds: float = 0.0  # of the hardening, start included; of this call alone where an earlier one was stopped
    cpu_seconds: float = 0.0
    rounds: list[Json] = field(default_factory=list)  # logs of the rounds
    accuracy: Json = field(default_factory=dict)  # {"3-8": {"correct", "total"}, ...} on the benchmark
    thresholds: Json = field(default_factory=dict)  # {"3-8": threshold in deviations of the noise, None for never, ...}
    hard_suite: Json = field(default_factory=dict)  # {task: {"3-8": {"correct", "total"}, ...}}, certified if it may be
    audit_settings: Json = field(default_factory=dict)
    audit: list[Json] = field(default_factory=list)  # [{"optimiser", "moves", "n_objects", "claimed", ...}, ...]
    error: str | None = None


def upgrade(entries: Json) -> Json:
    """Give a recorded row its device and error."""
    return {"device": "cpu", "error": None, **entries}


def work(unit: HardeningUnit, place: Place) -> list[HardeningRow]:
    """Harden a variant and measure the network."""
    start, cpu = time.perf_counter(), time.process_time()
    network = harden(unit.config, place.folder, say=place.say)
    spent: Json = {
        "seconds": round(time.perf_counter() - start, 2), "cpu_seconds": round(time.process_time() - cpu, 2)
    }  # fmt: skip
    rounds = [log.to_json() for log in read_rounds(place.folder)]
    measured = {**spent, "rounds": rounds, "n_weights": network.n_weights, **_measure(network, unit.measures)}
    return [HardeningRow(**_heading(unit, place.stamp), **measured)]


def _heading(unit: HardeningUnit, stamp: Stamp) -> Json:
    seed = unit.config.seed
    settings = unit.settings(unit.id)
    return {
        "id": unit.id, "model": unit.model, "variant": unit.variant, "seed": seed, "stamp": stamp, "settings": settings
    }  # fmt: skip


def _measure(network: RewardModel, measures: Measures) -> Json:
    model = LearnedModel(network)
    results = hard_cases.run(model, beside={}, objects=measures.objects, size=measures.hard_samples)
    suite: Json = {}
    for of_task in hard_cases.prefer_certified(results).values():
        row = of_task["model"]
        suite.setdefault(row.task, {})[row.objects] = {"correct": row.correct, "total": row.total}
    audited = audit(model, **measures.audit)
    return {
        "accuracy": {key: asdict(part) for key, part in accuracy_by_range(network, measures.test_samples).items()},
        "thresholds": {objects: value for (_, objects), value in hard_cases.thresholds(results).items()},
        "hard_suite": suite,
        "audit_settings": audited["settings"],
        "audit": [{name: row[name] for name in _AUDITED} for row in audited["rows"]],
    }


def fail(unit: HardeningUnit, run: str, stamp: Stamp, error: str) -> HardeningRow:
    """Make the row of a variant that failed."""
    return HardeningRow(**_heading(unit, stamp), error=error)


def summarise_row(rows: Sequence[HardeningRow]) -> str:
    """Say in a line how accurate the network is."""
    shares = (f"{name} {part['correct'] / part['total']:.4f}" for name, part in rows[0].accuracy.items())
    return f"accuracy {', '.join(shares)}"
