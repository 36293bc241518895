"""Work of the study of 3D relations: from a run to its row, ``results/rel3d/rows/MODEL/DATA/seedK.jsonl``.

Beside the rows lie the test samples (``test_set.py``) and the decision boundaries of the report.
"""

from __future__ import annotations

import base64
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_models.measuring import boundaries, relation_accuracy
from reward_models.models.relations.columns import Columns
from reward_models.provenance import Stamp
from reward_models.studies.engine.rows import RowError
from reward_models.studies.engine.run import Place
from reward_models.studies.engine.study import Json
from reward_models.studies.engine.sweep import Sweep
from reward_models.studies.rel3d import test_set
from reward_models.studies.rel3d.runs import FULL, RelationRun
from reward_models.threads import one_thread
from reward_models.training.folder import DamagedState
from reward_models.training.rel3d import best_epoch, fingerprint, read_log, train
from spatialsim_env.files import sha256
from spatialsim_env.relations.rel3d import published
from spatialsim_env.relations.rel3d.published import SPLITS, RelationSamples, Split

KEEP_EVERY = 10.0  # seconds between two states of a run
PICTURES = "pictures"  # option: the folder of the pictures


@dataclass(frozen=True)
class RelationRow:
    """The result of a run."""

    id: str  # rel3d/relational/full/seed3
    stamp: Stamp
    settings: Json  # {"training": configuration, "subset": None or {"kind", "train", "valid", "seed"}}
    # {"name", "sha256": of the split file, "rules": labels are rules and not human judgements, "predicates": names,
    # "samples": {"train", "valid", "test"}, "fingerprints": the same keys}
    data: Json
    n_weights: int | None = None  # of the network
    seconds: float = 0.0  # of training, those before a kill included, without validation
    best_epoch: int | None = None  # from 1; its weights are the ones that were measured
    accuracy: Json = field(
        default_factory=dict
    )  # {"train", "valid", "test"}: as ``relation_accuracy.measured`` gives it
    right: str | None = None  # bits of the answers to the test samples in the order of the file, see ``pack_answers``
    log: list[list[float]] = field(default_factory=list)  # [epoch, loss, validation accuracy, learning rate, seconds]
    error: str | None = None  # one line; accuracy is then empty

    def __post_init__(self) -> None:
        if missing := [key for key in ("sha256", "samples", "predicates") if key not in self.data]:
            raise ValueError(f"{self.id}: data lack {', '.join(missing)}")
        if (self.error is None) != ("test" in self.accuracy and self.right is not None):
            raise ValueError(f"{self.id} has neither results nor an error, or both")


def pack_answers(right: NDArray[np.bool_]) -> str:
    """Pack answers (N,) as base64 of the bits of numpy's packbits."""
    return base64.b64encode(np.packbits(right).tobytes()).decode()


def unpack_answers(row: RelationRow) -> NDArray[np.bool_]:
    """Invert ``pack_answers``: the answers (N,) of a row to the test samples.

    Raises:
        RowError: they are not as many as the row's test samples.
    """
    total = row.data["samples"]["test"]
    try:
        bits = np.frombuffer(base64.b64decode(row.right or "", validate=True), np.uint8)
    except ValueError as error:
        raise RowError(f"{row.id}: its answers are no base64: {error}; remove it, and it is run again") from error
    if len(bits) != -(-total // 8):
        raise RowError(f"{row.id}: {8 * len(bits)} answers to {total} test samples; remove it, and it is run again")
    return np.unpackbits(bits, count=total).astype(bool)


def list_differences(run: RelationRun, row: RelationRow) -> list[str]:
    """List how a row differs from what the study says of a run."""
    differences = []
    for part, ours in run.settings(run.id).items():
        here, there = ours or {}, row.settings.get(part) or {}
        keys = [key for key in sorted(here.keys() | there.keys()) if here.get(key) != there.get(key)]
        differences += [f"{key} is {there.get(key)!r} there and {here.get(key)!r} in the study" for key in keys]
    return differences


def fail(run: RelationRun, name: str, stamp: Stamp, error: str) -> RelationRow:
    """Make the row of a run that failed."""
    return RelationRow(name, stamp, run.settings(name), {"sha256": "", "samples": {}, "predicates": []}, error=error)


def summarise_row(rows: Sequence[RelationRow]) -> str:
    """Say in a line what a run found."""
    row = rows[0]
    test = row.accuracy["test"]
    pairs = "" if test["pair_mean"] is None else f", pairs {test['pair_mean']:.4f}"
    return f"accuracy {test['mean']:.4f}{pairs}, {len(row.log)} epochs"


def split_file(data: Path | None) -> Path:
    """Find the split file, given it or the folder of c_0.9_c_0.1.json.

    Raises:
        ValueError: no data are given.
    """
    if data is None:
        raise ValueError("the study trains on a split file; give it, or the folder that holds c_0.9_c_0.1.json: --data")
    return data / published.MAIN if data.is_dir() else data


def load_split(data: Path | None) -> tuple[Split, str]:
    """Load a split file, once a process, with its SHA-256."""
    file = split_file(data)
    return _load(file, file.stat().st_mtime_ns if file.exists() else 0)


@lru_cache(maxsize=1)
def _load(file: Path, modified: int) -> tuple[Split, str]:
    """Load a split file; ``modified`` is its time, so that another file of the name is read anew."""
    return published.load(file), sha256(file)


def warn_of_problems(split: Split) -> None:
    """Print on standard error how many records of a file were left out or are odd, by kind, and the first left out."""
    dropped = [problem for problem in split.problems if not problem.is_kept]
    for fate, problems in (("left out", dropped), ("kept", [problem for problem in split.problems if problem.is_kept])):
        if problems:
            kinds = ", ".join(f"{number:,} {kind}" for kind, number in Counter(x.kind for x in problems).items())
            print(f"{split.name}: odd records that are {fate}: {kinds}", file=sys.stderr)
    if dropped:
        print(f"{split.name}: the first: {dropped[0]}", file=sys.stderr)


def check(runs: Sequence[RelationRun], sweep: Sweep[RelationRun, RelationRow]) -> None:
    """Refuse what would fail in every run, before the first one.

    Raises:
        ValueError: no split file is given, or no folder of pictures for models that see them.
        FileNotFoundError: there is no split file, or no such folder.
        published.RelationDataError: it is no split file.
        RowError: there are rows on another split file.
    """
    pictures = sweep.options.get(PICTURES)
    seeing = [run.variant for run in runs if run.sees_pictures]
    if seeing and pictures is None:
        raise ValueError(f"{seeing[0]} sees pictures; give their folder, --option pictures=DIR, or a filter without it")
    if pictures is not None and not Path(pictures).is_dir():
        raise FileNotFoundError(f"no folder of pictures {pictures}")
    split, digest = load_split(sweep.data)
    warn_of_problems(split)
    for run in runs:
        for row in sweep.rows(run) or ():
            if row.data["sha256"] not in ("", digest):
                raise RowError(
                    f"the row of {run.id} is of another split file ({row.data.get('name')}, SHA-256 "
                    f"{row.data['sha256'][:12]}) than {split_file(sweep.data)} ({digest[:12]}); give another folder "
                    "of results"
                )


def work(run: RelationRun, place: Place) -> list[RelationRow]:
    """Train and measure a model."""
    whole, digest = load_split(place.data)
    split = run.split(whole)
    with one_thread():
        model = _train(run, place, split)
        log = read_log(place.folder)
        logits = {name: _logits(model, getattr(split, name), run, place) for name in SPLITS}
        accuracy = {
            name: relation_accuracy.measure(part, getattr(split, name), len(split.predicates))
            for name, part in logits.items()
        }
        test_set.keep(place.results, digest, split.test)
        if run.data == FULL and run.seed == 0:
            boundaries.keep(place.results, run.variant, model, split)
    data = {
        "name": whole.name,
        "sha256": digest,
        "rules": test_set.MARGIN in whole.test.extra,
        "predicates": list(whole.predicates),
        "samples": {name: len(getattr(split, name)) for name in SPLITS},
        "fingerprints": {name: fingerprint(getattr(split, name)) for name in SPLITS},
    }
    return [
        RelationRow(
            run.id,
            place.stamp,
            run.settings(run.id),
            data,
            n_weights=model.n_weights,
            seconds=round(sum(epoch.seconds for epoch in log), 4),
            best_epoch=best_epoch([epoch.validation_accuracy for epoch in log]) + 1,
            accuracy=accuracy,
            right=pack_answers(relation_accuracy.right(logits["test"], split.test.label)),
            log=[[round(value, 6) for value in asdict(epoch).values()] for epoch in log],
        )
    ]


def _train(run: RelationRun, place: Place, split: Split) -> Any:
    options: dict[str, Any] = {"device": place.device, "pictures": _pictures(place), "progress": place.progress}
    try:
        return train(run.config, split, place.folder, **options, keep_every=KEEP_EVERY)
    except DamagedState:
        place.restart()
        return train(run.config, split, place.folder, **options, keep_every=KEEP_EVERY)


def _logits(model: Any, samples: RelationSamples, run: RelationRun, place: Place) -> NDArray[np.float64]:
    columns = Columns.of(model, samples, place.device, _pictures(place), run.config.pixels)
    return relation_accuracy.logits(model, columns.parts())


def _pictures(place: Place) -> Path | None:
    folder = place.option(PICTURES)
    return None if folder is None else Path(folder)
