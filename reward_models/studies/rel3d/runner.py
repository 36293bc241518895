"""One run of the study of 3D relations: claim it, do it or go on with it, and write its row as the last act.

A run is claimed by a lock on ``results/.claims/<id>.lock`` (``studies/claims.py``); one that another process has
claimed is skipped. What a killed process leaves in ``work/v1/<id>/<hash>``, a hash of all that is run, is gone on with
by the next one that comes to it, or begun again where its state is damaged. When the row is written, the folder goes.

An exception in a run is a row with its last line, and its traceback stays in the work folder; the study goes on. Only
a full disk ends it.
"""

from __future__ import annotations

import json
import shutil
import time
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import Timeout

from reward_models.measuring import boundaries, relation_accuracy
from reward_models.models.relations.columns import Columns
from reward_models.studies import claims
from reward_models.studies.claims import TRACEBACK
from reward_models.studies.paper.runner import CLAIMS, DONE, FAILED, MISSING, RUNNING, check_device
from reward_models.studies.rel3d import experiments, rows, test_set
from reward_models.studies.rel3d.experiments import FULL, Run
from reward_models.studies.rel3d.rows import Row
from reward_models.threads import one_thread
from reward_models.training.folder import DamagedState
from reward_models.training.rel3d import best_epoch, fingerprint, read_log, train
from spatialsim_env.files import sha256
from spatialsim_env.relations.rel3d import published
from spatialsim_env.relations.rel3d.published import SPLITS, Samples, Split

KEEP_EVERY = 10.0  # seconds between two states of a run


@dataclass(frozen=True)
class Study:
    """Where and how the study is run; places become absolute, for workers that begin in another folder."""

    data: Path  # a split file, or the folder of c_0.9_c_0.1.json
    results: Path = Path("results/rel3d")  # of rows, and of claims
    work: Path = Path("runs/rel3d")  # of what is not finished
    pictures: Path | None = None  # folder of pictures, for models that see them
    device: str = "cpu"
    retry: bool = False  # run again what failed
    keep_weights: bool = False  # leave the networks in work/weights/<id>
    file: Path = field(init=False)  # the split file

    def __post_init__(self) -> None:
        for name in ("data", "results", "work", "pictures"):
            if (place := getattr(self, name)) is not None:
                object.__setattr__(self, name, Path(place).resolve())
        object.__setattr__(self, "file", self.data / published.MAIN if self.data.is_dir() else self.data)

    @property
    def sha256(self) -> str:
        """Of the split file."""
        return _loaded(self.file, self._modified)[1]

    @property
    def split(self) -> Split:
        """The split file, read once a process."""
        return _loaded(self.file, self._modified)[0]

    @property
    def _modified(self) -> int:
        return self.file.stat().st_mtime_ns if self.file.exists() else 0

    def folder(self, run: Run) -> Path:
        """The work folder of a run; another one for other settings, data, results or another device."""
        said = json.dumps([str(self.results), self.sha256, self.device, run.settings], sort_keys=True)
        return self.work / f"v{experiments.VERSION}" / run.id / f"{zlib.crc32(said.encode()):08x}"

    def row(self, run: Run) -> Row | None:
        """The row of a run, None if there is none yet.

        Raises:
            rows.RowError: its file is damaged, or holds another run, or one on another split file.
        """
        row = rows.of_run(self.results, run)
        if row is not None and row["data"]["sha256"] != self.sha256:
            raise rows.RowError(
                f"{rows.path_of(self.results, run)} is of another split file ({row['data'].get('name')}, SHA-256 "
                f"{row['data']['sha256'][:12]}) than {self.file} ({self.sha256[:12]}); give another folder of results"
            )
        return row

    def check(self, runs: Sequence[Run]) -> None:
        """Refuse what would fail in every run, before the first one.

        Raises:
            ValueError: the device is unknown or not there; no folder of pictures for models that see them.
            FileNotFoundError: there is no split file.
            published.RelationDataError: it is none.
            rows.RowError: there are rows of other runs, or damaged ones.
        """
        check_device(self.device)
        seeing = [run.variant for run in runs if run.sees_pictures]
        if seeing and self.pictures is None:
            raise ValueError(f"{seeing[0]} sees pictures; give their folder, --pictures, or a filter without it")
        if self.pictures is not None and not self.pictures.is_dir():
            raise FileNotFoundError(f"no folder of pictures {self.pictures}")
        _ = self.split
        for run in runs:
            self.row(run)

    def described(self, split: Split | None = None) -> Row:
        """What a row says of its data; ``split`` is what the run had of it, None if it did not come so far."""
        parts = {} if split is None else {name: getattr(split, name) for name in SPLITS}
        return {
            "name": self.split.name,
            "sha256": self.sha256,
            "rules": test_set.MARGIN in self.split.test.extra,
            "predicates": list(self.split.predicates),
            "samples": {name: len(part) for name, part in parts.items()},
            "fingerprints": {name: fingerprint(part) for name, part in parts.items()},
        }


@lru_cache(maxsize=1)
def _loaded(file: Path, modified: int) -> tuple[Split, str]:
    """A split file and its checksum; ``modified`` is its time, so that another file of the name is read anew."""
    return published.load(file), sha256(file)


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    run: str
    state: str  # of benchmark.runner.STATES; RUNNING where another process has claimed it
    row: Row | None = None
    new: bool = False  # whether this call made it
    seconds: float = 0.0  # of this call


def run(what: Run, here: Study, *, progress: bool | None = False) -> Outcome:
    """Make the row of a run, unless it is there or another process is at it.

    Args:
        progress: show a bar; None where standard error is a terminal.

    Raises:
        claims.NoSpaceLeft: the disk is full.
        rows.RowError: its file is damaged, or holds another run.
    """
    try:
        with claims.claim(lock(here.results, what), claims.PATIENCE):
            return _run_claimed(what, here, progress)
    except Timeout:
        return Outcome(what.id, RUNNING)


def run_all(runs: Sequence[Run], here: Study) -> list[Outcome]:
    """Do runs one after the other; those that other workers have claimed are left to them."""
    return [run(what, here) for what in runs]


def lock(results: Path, what: Run) -> Path:
    """The file whose lock is the claim on a run, common to all who write to the same results."""
    return results / CLAIMS / f"{what.id}.lock"


def state(what: Run, results: Path) -> str:
    """DONE, FAILED, RUNNING or MISSING.

    Raises:
        rows.RowError: its file is damaged, or holds another run.
    """
    row = rows.of_run(results, what)
    if row is not None:
        return DONE if row["error"] is None else FAILED
    return RUNNING if claims.is_claimed(lock(results, what)) else MISSING


def _run_claimed(what: Run, here: Study, progress: bool | None) -> Outcome:
    start = time.perf_counter()
    rows.made_by()  # as the code is now, before the work
    row, folder = here.row(what), here.folder(what)
    if row is not None and not (here.retry and row["error"] is not None):
        if row["error"] is None:
            shutil.rmtree(folder, ignore_errors=True)
        return Outcome(what.id, DONE if row["error"] is None else FAILED, row)
    if (folder / TRACEBACK).exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with one_thread():
        row = claims.recorded(
            what.id,
            folder,
            lambda: _row(what, here, folder, progress),
            lambda line: rows.row_of(what, here.described(), error=line),
            lambda made: rows.write(here.results, what, made),
        )
    if row["error"] is None:
        shutil.rmtree(folder, ignore_errors=True)
    state = DONE if row["error"] is None else FAILED
    return Outcome(what.id, state, row, new=True, seconds=time.perf_counter() - start)


def _row(what: Run, here: Study, folder: Path, progress: bool | None) -> Row:
    """Do the work of a run."""
    split = what.split(here.split)
    model = _trained(what, here, split, folder, progress)
    log = read_log(folder)
    found = {name: _logits(model, getattr(split, name), what, here) for name in SPLITS}
    accuracy = {
        name: relation_accuracy.measured(of_part, getattr(split, name), len(split.predicates))
        for name, of_part in found.items()
    }
    test_set.keep(here.results, here.sha256, split.test)
    if what.data == FULL and what.seed == 0:
        boundaries.keep(here.results, what.variant, model, split)
    if here.keep_weights:
        shutil.copytree(folder, here.work / "weights" / what.id, dirs_exist_ok=True)
    return rows.row_of(
        what,
        here.described(split),
        device=_device(here.device),
        n_weights=model.n_weights,
        seconds=round(sum(epoch.seconds for epoch in log), 4),
        best_epoch=best_epoch([epoch.validation_accuracy for epoch in log]) + 1,
        accuracy=accuracy,
        right=rows.packed(relation_accuracy.right(found["test"], split.test.label)),
        log=[[round(value, 6) for value in asdict(epoch).values()] for epoch in log],
    )


def _trained(what: Run, here: Study, split: Split, folder: Path, progress: bool | None) -> Any:
    options: dict[str, Any] = {"device": here.device, "pictures": here.pictures, "progress": progress}
    try:
        return train(what.config, split, folder, **options, keep_every=KEEP_EVERY)
    except DamagedState:
        shutil.rmtree(folder)
        folder.mkdir()
        return train(what.config, split, folder, **options, keep_every=KEEP_EVERY)


def _logits(model: Any, samples: Samples, what: Run, here: Study) -> np.ndarray[Any, np.dtype[np.float64]]:
    columns = Columns.of(model, samples, here.device, here.pictures, what.config.pixels)
    return relation_accuracy.logits(model, columns.parts())


def _device(name: str) -> str:
    device = torch.device(name)
    return f"{device.type}, {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type
