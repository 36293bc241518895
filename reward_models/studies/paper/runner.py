"""One pass of the study: claim it, run it or go on with it, and write its rows as the last act.

A pass is claimed by a lock on ``results/.claims/<cell>.lock`` (``claims.py``). A pass that another process has claimed
is skipped. What a killed process leaves in ``work/v1/<cell>/<hash>``, a hash of all that is run and of where its rows
go, is gone on with by the next one that comes to it, or begun again where its state is damaged. When the rows are
written, that folder goes.

An exception in a pass is a row with its last line, and its traceback stays in the work folder; the study goes on.
Only a full disk ends it.
"""

from __future__ import annotations

import json
import math
import shutil
import time
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from filelock import Timeout

from reward_models.measuring import evaluation, heat_map, rules
from reward_models.models import RewardModel
from reward_models.studies import claims
from reward_models.studies.claims import PATIENCE, TRACEBACK
from reward_models.studies.paper import experiments, rows
from reward_models.studies.paper.experiments import DATA_SEED, Cell, RuleCell, TrainedCell
from reward_models.studies.paper.rows import Row
from reward_models.training import stored_sets
from reward_models.training.config import VALID
from reward_models.training.folder import DamagedState
from reward_models.training.protocol import EpochLog, read_logs, train_together
from spatialsim_env import streams
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.arrangements.datasets.named import set_name
from spatialsim_env.arrangements.scene import TURN
from spatialsim_env.arrangements.tasks import Samples

DONE, FAILED, RUNNING, MISSING = STATES = ("done", "failed", "running", "missing")
CLAIMS = ".claims"


@dataclass(frozen=True)
class Bench:
    """Where and how the study is run; places become absolute, for workers that begin in another folder."""

    results: Path = Path("results")  # of rows/<cell>.jsonl, and of claims
    work: Path = Path("runs/bench")  # of what is not finished
    device: str = "cpu"
    data: Path | None = None  # folder of stored sets by name, in place of generated samples
    retry: bool = False  # run again what failed
    keep_weights: bool = False  # leave the networks in work/weights/<cell>/seed<seed>

    def __post_init__(self) -> None:
        for name in ("results", "work", "data"):
            if (place := getattr(self, name)) is not None:
                object.__setattr__(self, name, Path(place).resolve())

    def folder(self, cell: Cell) -> Path:
        """The work folder of a pass; another one for other settings, data, results or another device."""
        places = [str(self.results), str(self.data), self.device]
        said = json.dumps([*places, *(cell.settings(seed) for seed in cell.seeds)], sort_keys=True)
        return self.work / f"v{experiments.VERSION}" / cell.name / f"{zlib.crc32(said.encode()):08x}"

    def lock(self, cell: Cell) -> Path:
        """The file whose lock is the claim on a pass, common to all who write to the same results."""
        return self.results / CLAIMS / f"{cell.name}.lock"

    def claim(self, cell: Cell, patience: float = 0.0) -> AbstractContextManager[Any]:
        """Hold the claim on a pass; raises ``filelock.Timeout`` if another process has it for ``patience`` seconds."""
        return claims.claim(self.lock(cell), patience)

    def check(self, cells: Sequence[Cell]) -> None:
        """Refuse what would fail in every pass, before the first one.

        Raises:
            ValueError: the device is unknown or not there, or a stored set is not what a pass would generate.
            datasets.DataSetError: a stored set is missing or damaged.
            rows.RowError: there are rows of other runs, or damaged ones.
        """
        check_device(self.device)
        for cell in cells:
            rows.of_cell(self.results, cell)
            if self.data is not None and isinstance(cell, TrainedCell):
                _stored(cell, self.data)


def check_device(device: str) -> None:
    """Refuse a device that torch cannot compute on.

    Raises:
        ValueError: it is unknown or not there.
    """
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device is {device!r}; accepted are cpu and cuda where there is one: {reason}") from None


@dataclass(frozen=True)
class Outcome:
    """What became of a pass."""

    cell: str
    state: str  # of STATES; RUNNING where another process has claimed it
    seeds: int
    new: bool = False  # whether this call made it so
    accuracy: float | None = None  # mean over seeds and test sets
    seconds: float = 0.0  # of this call
    error: str | None = None


def run(cell: Cell, bench: Bench, *, progress: bool | None = False) -> Outcome:
    """Make the rows of a pass, unless they are there or another process is at it.

    Args:
        progress: show a bar; None where standard error is a terminal.

    Raises:
        claims.NoSpaceLeft: the disk is full; what was done up to the last epoch is kept, if it could be written.
        rows.RowError: its file of rows is damaged, or holds other runs.
    """
    if _is_over(cell, bench) and not bench.folder(cell).exists():
        return _outcome(cell, rows.of_cell(bench.results, cell))
    try:
        with bench.claim(cell, PATIENCE):
            return _run_claimed(cell, bench, progress)
    except Timeout:
        return Outcome(cell.name, RUNNING, len(cell.seeds))


def states(cell: Cell, bench: Bench) -> dict[str, str]:
    """DONE, FAILED, RUNNING or MISSING of each run of a pass, by its id.

    Raises:
        rows.RowError: its file of rows is damaged, or holds other runs.
    """
    found = rows.of_cell(bench.results, cell)
    if found is not None:
        return {row["id"]: DONE if row["error"] is None else FAILED for row in found}
    return dict.fromkeys(cell.ids, RUNNING if claims.is_claimed(bench.lock(cell)) else MISSING)


def _is_over(cell: Cell, bench: Bench) -> bool:
    """Whether there is nothing left to do."""
    found = rows.of_cell(bench.results, cell)
    return found is not None and not (bench.retry and _outcome(cell, found).state == FAILED)


def _outcome(cell: Cell, found: list[Row] | None, *, new: bool = False, seconds: float = 0.0) -> Outcome:
    assert found is not None
    errors = [row["error"] for row in found if row["error"] is not None]
    shares = [share for row in found if (share := rows.share(row)) is not None]
    mean = sum(shares) / len(shares) if shares else None
    return Outcome(
        cell.name, FAILED if errors else DONE, len(cell.seeds), new, mean, seconds, errors[0] if errors else None
    )


def _run_claimed(cell: Cell, bench: Bench, progress: bool | None) -> Outcome:
    start, folder = time.perf_counter(), bench.folder(cell)
    rows.made_by()  # as the code is now, before the work
    if _is_over(cell, bench):
        outcome = _outcome(cell, rows.of_cell(bench.results, cell))
        if outcome.state == DONE:
            shutil.rmtree(folder, ignore_errors=True)
        return outcome
    if (folder / TRACEBACK).exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    found = claims.recorded(
        cell.name,
        folder,
        lambda: _rows(cell, bench, folder, progress),
        lambda line: [_row(cell, bench, seed, error=line) for seed in cell.seeds],
        lambda made: rows.write(bench.results, cell, made),
    )
    if not (folder / TRACEBACK).exists():
        shutil.rmtree(folder, ignore_errors=True)
    return _outcome(cell, found, new=True, seconds=time.perf_counter() - start)


def _row(cell: Cell, bench: Bench, seed: int, **changes: Any) -> Row:
    """A row of a run, with what every row says; without changes one in which nothing was done."""
    device = torch.device(bench.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    row: Row = {
        "id": cell.id(seed),
        "cell": cell.name,
        "seed": seed,
        **rows.made_by(),
        "device": f"{device.type}, {name}" if name else device.type,
        "settings": cell.settings(seed) | ({"data": str(bench.data)} if bench.data is not None else {}),
        "seeds_together": list(cell.seeds),
        "n_weights": None,
        "seconds": 0.0,
        "accuracy": {},
        "log": [],
        "heat_map": None,
        "error": None,
    }
    return row | changes


def _rows(cell: Cell, bench: Bench, folder: Path, progress: bool | None) -> list[Row]:
    """Do the work of a pass."""
    if isinstance(cell, RuleCell):
        return [_of_rule(cell, bench, seed) for seed in cell.seeds]
    assert isinstance(cell, TrainedCell)
    config = cell.config(cell.seeds[0], None if bench.data is None else _stored(cell, bench.data))
    train = partial(train_together, config, list(cell.seeds), folder, device=bench.device, progress=progress)
    try:
        models = train()
    except DamagedState:
        shutil.rmtree(folder)
        folder.mkdir()
        models = train()
    tests = {name: named.sample(name, DATA_SEED, size) for name, size in cell.tests.items()}
    if bench.keep_weights:
        for seed in cell.seeds:
            place = bench.work / "weights" / cell.name / f"seed{seed}"
            shutil.copytree(folder / f"seed{seed}", place, dirs_exist_ok=True)
    return [
        _of_network(cell, bench, seed, model, log, tests)
        for seed, model, log in zip(cell.seeds, models, read_logs(folder), strict=True)
    ]


def _of_network(
    cell: Cell, bench: Bench, seed: int, model: RewardModel, log: list[EpochLog], tests: dict[str, Samples]
) -> Row:
    changes: dict[str, Any] = {
        "n_weights": model.n_weights,
        "seconds": round(sum(epoch.seconds for epoch in log), 4),
        "log": [[_short(value) for value in asdict(epoch).values()] for epoch in log],
    }
    if not math.isfinite(log[-1].loss):
        return _row(cell, bench, seed, **changes, error=f"FloatingPointError: the loss ended at {log[-1].loss}")
    changes["accuracy"] = {name: asdict(evaluation.accuracy(model, samples)) for name, samples in tests.items()}
    if cell.heat_map and seed == min(cell.seeds):
        changes["heat_map"] = heat_map.of_model(model)
    return _row(cell, bench, seed, **changes)


def _short(value: float) -> float | None:
    """Six digits after the point, which is more than anyone reads; None for what is not finite."""
    return round(value, 6) if math.isfinite(value) else None


def _of_rule(cell: RuleCell, bench: Bench, seed: int) -> Row:
    accuracy = {}
    for name, size in cell.tests.items():
        task = named.named(name).task
        training = task.sample(cell.samples, streams.stream(DATA_SEED, f"rules/{set_name(task, 'train')}"))
        accuracy[name] = asdict(rules.accuracy(cell.rule, training, named.sample(name, DATA_SEED, size)))
    drawn = heat_map.of_truth() if cell.heat_map else None
    return _row(cell, bench, seed, accuracy=accuracy, heat_map=drawn)


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
            raise named.DataSetError(f"{cell.name} trains on samples of which no set has a name; run it without --data")
        stored_sets.digest(data / name, config.task_at(limit))
        manifest = named.read_manifest(data / name)
        found = manifest["settings"] | {"samples": manifest["samples"]}
        needed = {"name": name, "seed": DATA_SEED, "samples": size}
        wrong = [f"{key} is {found.get(key)!r} there, {value!r} needed" for key, value in needed.items()
                 if found.get(key) != value]  # fmt: skip
        if wrong:
            raise named.DataSetError(f"{data / name} does not fit {cell.name}: {'; '.join(wrong)}")
    return str((data / config.set_name(VALID)).parent)
