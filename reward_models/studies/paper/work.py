"""Work of a pass of the study, and the row of each of its runs.

A pass trains its seeds together, on the same samples, or fits a rule; it is resumed from the state that training keeps
in its work folder, or begun again where that state is damaged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_models.measuring import evaluation, heat_map, rules
from reward_models.models import RewardModel
from reward_models.provenance import Stamp
from reward_models.studies.engine.study import Json
from reward_models.studies.paper.runs import DATA_SEED, Cell, RuleCell, TrainedCell, seed_of
from reward_models.training import stored_sets
from reward_models.training.config import VALID
from reward_models.training.folder import DamagedState
from reward_models.training.protocol import EpochLog, read_logs, train_together
from spatialsim_env import streams
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.arrangements.scene import TURN
from spatialsim_env.arrangements.tasks import Samples

if TYPE_CHECKING:
    from reward_models.studies.engine.run import Place
    from reward_models.studies.engine.sweep import Sweep


@dataclass(frozen=True)
class PaperRow:
    """A run: one seed of a pass, as a line of ``results/rows/CELL.jsonl``."""

    id: str  # identification/mpgnn/n5/seed3
    cell: str  # identification/mpgnn/n5
    seed: int
    stamp: Stamp
    settings: Json  # ``TrainingConfig.to_json()``, or of the rule
    seeds_together: list[int]  # of the pass
    n_weights: int | None = None  # of the network; None for a rule
    seconds: float = 0.0  # of training, of the pass divided by its number of seeds
    accuracy: dict[str, Json] = field(default_factory=dict)  # {test set: {"correct": 4930, "total": 5000}}
    log: list[list[Any]] = field(default_factory=list)  # [[stage, epoch, loss, validation accuracy, seconds], ...]
    heat_map: Json | None = None  # {"logits": 40 x 40, "scene": n x 10, "displaced": a row of it}
    error: str | None = None  # one line; accuracy is then empty

    def __post_init__(self) -> None:
        for name, measured in self.accuracy.items():
            correct, total = (measured.get(key) for key in ("correct", "total"))
            if not (isinstance(correct, int) and isinstance(total, int) and 0 <= correct <= total):
                raise ValueError(f"accuracy on {name} is {measured!r}; accepted is 0 <= correct <= total")


def share(row: PaperRow) -> float | None:
    """Mean accuracy of a run over its test sets, in 0..1; None for a run that failed."""
    shares = [measured["correct"] / measured["total"] for measured in row.accuracy.values()]
    return sum(shares) / len(shares) if shares else None


def line(rows: Sequence[PaperRow]) -> str:
    """Mean accuracy over seeds and test sets."""
    shares = [found for row in rows if (found := share(row)) is not None]
    return f"accuracy {sum(shares) / len(shares):.4f}, {len(rows)} run{'s' * (len(rows) > 1)}"


def failed(cell: Cell, run: str, stamp: Stamp, error: str) -> PaperRow:
    """The row of a run that failed."""
    return PaperRow(run, cell.id, seed_of(run), stamp, cell.settings(run), list(cell.seeds), error=error)


def differences(cell: Cell, row: PaperRow) -> list[str]:
    """List how a row differs from what its pass says."""
    found = cell.differences(row.settings, row.id)
    expected = {"cell": cell.id, "seed": seed_of(row.id), "seeds_together": list(cell.seeds)}
    found += [f"{key} is {getattr(row, key)!r}" for key, value in expected.items() if getattr(row, key) != value]
    totals = {name: measured["total"] for name, measured in row.accuracy.items()}
    if row.error is None and totals != cell.tests:
        found.append(f"tested on {totals}, where the study has {cell.tests}")
    return found


def check(cells: Sequence[Cell], sweep: Sweep[Cell, PaperRow]) -> None:
    """Refuse stored sets that are not what a pass would generate.

    Raises:
        ValueError, datasets.DataSetError: as ``_stored``.
    """
    for cell in cells:
        if sweep.data is not None and isinstance(cell, TrainedCell):
            _stored(cell, sweep.data)


def work(cell: Cell, place: Place) -> list[PaperRow]:
    """Do a pass."""
    if isinstance(cell, RuleCell):
        return [_of_rule(cell, place, seed) for seed in cell.seeds]
    assert isinstance(cell, TrainedCell)
    config = cell.config(cell.seeds[0], None if place.data is None else _stored(cell, place.data))
    train = partial(
        train_together, config, list(cell.seeds), place.folder, device=place.device, progress=place.progress
    )
    try:
        models = train()
    except DamagedState:
        place.restart()
        models = train()
    tests = {name: named.sample(name, DATA_SEED, size) for name, size in cell.tests.items()}
    return [
        _of_network(cell, place, seed, model, log, tests)
        for seed, model, log in zip(cell.seeds, models, read_logs(place.folder), strict=True)
    ]


def _row(cell: Cell, place: Place, seed: int, **entries: Any) -> PaperRow:
    run = cell.run(seed)
    settings = cell.settings(run) | ({"data": str(place.data)} if place.data is not None else {})
    return PaperRow(run, cell.id, seed, place.stamp, settings, list(cell.seeds), **entries)


def _of_network(
    cell: Cell, place: Place, seed: int, model: RewardModel, log: list[EpochLog], tests: dict[str, Samples]
) -> PaperRow:
    entries: Json = {
        "n_weights": model.n_weights,
        "seconds": round(sum(epoch.seconds for epoch in log), 4),
        "log": [[_short(value) for value in asdict(epoch).values()] for epoch in log],
    }
    if not math.isfinite(log[-1].loss):
        return _row(cell, place, seed, **entries, error=f"FloatingPointError: the loss ended at {log[-1].loss}")
    entries["accuracy"] = {name: asdict(evaluation.accuracy(model, samples)) for name, samples in tests.items()}
    if cell.heat_map and seed == min(cell.seeds):
        entries["heat_map"] = heat_map.of_model(model)
    return _row(cell, place, seed, **entries)


def _short(value: float) -> float | None:
    """Six digits after the point, which is more than anyone reads; None for what is not finite."""
    return round(value, 6) if math.isfinite(value) else None


def _of_rule(cell: RuleCell, place: Place, seed: int) -> PaperRow:
    accuracy = {}
    for name, size in cell.tests.items():
        task = named.find(name).task
        training = task.sample(cell.samples, streams.stream(DATA_SEED, f"rules/{named.set_name(task, 'train')}"))
        accuracy[name] = asdict(rules.accuracy(cell.rule, training, named.sample(name, DATA_SEED, size)))
    drawn = heat_map.of_truth() if cell.heat_map else None
    return _row(cell, place, seed, accuracy=accuracy, heat_map=drawn)


def _stored(cell: TrainedCell, data: Path) -> str:
    """The folder of the stored sets of a pass, each of which holds just what the pass would generate.

    Raises:
        datasets.DataSetError: a set is missing or another one, or no named set is what the pass trains on.
        ValueError: a set holds other samples than its name says.
    """
    config = cell.config(cell.seeds[0])
    parts: list[tuple[int | str, float, int]] = [
        (k, limit, config.samples_per_stage) for k, limit in enumerate(config.stages)
    ]
    for part, limit, size in [*parts, (VALID, TURN, config.validation_samples)]:
        name = config.set_name(part)
        if name not in named.REGISTRY or named.REGISTRY[name].task != config.task_at(limit):
            raise named.DataSetError(f"{cell.id} trains on samples of which no set has a name; run it without --data")
        stored_sets.digest(data / name, config.task_at(limit))
        manifest = named.read_manifest(data / name)
        held = manifest["settings"] | {"samples": manifest["samples"]}
        needed = {"name": name, "seed": DATA_SEED, "samples": size}
        wrong = [f"{key} is {held.get(key)!r} there, {value!r} needed" for key, value in needed.items()
                 if held.get(key) != value]  # fmt: skip
        if wrong:
            raise named.DataSetError(f"{data / name} does not fit {cell.id}: {'; '.join(wrong)}")
    return str((data / config.set_name(VALID)).parent)
