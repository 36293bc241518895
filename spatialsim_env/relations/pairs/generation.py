"""Whole data sets of minimally contrastive pairs of our own, from one seed. **Labels are rules, not human judgements.**

``generate`` writes a folder:

- ``scenes.npz``: every pair in full (``scene_sets.SceneSet``);
- ``c_0.9_c_0.1.json``: the published form, a contrastive split (``published.load`` reads it);
- ``c_0.4_c_0.1.json`` and ``nc_0.4_nc_0.1.json``: equally many contrastive and non-contrastive samples;
- ``pictures/``: where asked for;
- ``manifest.json``: the settings, what became of the proposals, SHA-256 of the files. Written last.

Pairs are made in shards of one predicate each, and every shard has random numbers of its own: the files have the same
bits whatever the number of processes, and an interrupted run resumes at the first missing shard.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spatialsim_env
from spatialsim_env.files import replace_file, sha256
from spatialsim_env.relations.geometry import views
from spatialsim_env.relations.pairs import categories, scene_sets
from spatialsim_env.relations.pairs.filling import Order, ProposalCounts, fill
from spatialsim_env.relations.pairs.pairs import Demands
from spatialsim_env.relations.pairs.scene_sets import SceneSet
from spatialsim_env.relations.rel3d import published, subsets
from spatialsim_env.relations.rel3d.published import SPLITS
from spatialsim_env.relations.rel3d.records import RelationDataError
from spatialsim_env.relations.vocabulary import INDEX, OBSERVER, PREDICATES, frame

TEST_SHARE = 0.1  # of all pairs and groups
VALID_SHARE = 0.1  # of the others
HALF_SHARES = (0.4, 0.1)  # of the contrastive and non-contrastive files of equal size
SHARD = 256  # pairs
SCENES, MANIFEST, PARTS, PICTURES = "scenes.npz", "manifest.json", "parts", "pictures"


@dataclass(frozen=True)
class PairSettings:
    """All that decides what is made."""

    pairs: int
    seed: int
    views: int
    margin: float
    settle: bool
    weights: tuple[float, ...]  # of the 30 predicates

    def __post_init__(self) -> None:
        if self.pairs < 1 or self.seed < 0:
            raise ValueError(f"pairs is {self.pairs} and seed {self.seed}; accepted are at least 1 and at least 0")
        if not 1 <= self.views <= views.N_VIEWS:
            raise ValueError(f"views is {self.views}; accepted is 1 to {views.N_VIEWS}")
        relative = any(
            weight and frame(name) == OBSERVER for name, weight in zip(PREDICATES, self.weights, strict=True)
        )
        if relative and self.views > views.N_FRONTAL:
            raise ValueError(
                f"views is {self.views}; predicates (wrt you) have {views.N_FRONTAL} frontal ones, so accepted is at "
                f"most {views.N_FRONTAL}, or predicates without them"
            )
        Demands(margin=self.margin)
        if min(self.weights) < 0 or not sum(self.weights) > 0:
            raise ValueError("predicates have a negative weight or none above 0; accepted are weights from 0")


def generate(
    folder: str | os.PathLike[str],
    pairs: int,
    seed: int,
    *,
    jobs: int = 1,
    views: int = 1,
    predicates: Sequence[str] | Mapping[str, float] = PREDICATES,
    margin: float = Demands.margin,
    settle: bool = False,
    halves: bool = True,
    pictures: tuple[int, int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Make a data set and return its folder; one that is already there with the same settings is left as it is.

    Args:
        folder: where to write. It may hold the beginnings of the same set.
        pairs: number of pairs of scenes. A pair gives ``2 * views`` samples.
        seed: everything random follows from it, whatever ``jobs`` is.
        jobs: processes.
        views: observers of each pair, of 12, or of 3 where there are predicates (wrt you).
        predicates: which ones, equally many pairs each; or how many of each in proportion.
        margin: least |margin| of both members.
        settle: let gravity act on the scenes in which the predicate holds, and ask again (needs mujoco).
        halves: also write the two files of equal size.
        pictures: width and height, 16 to 9, to render RGB, depth and masks of every sample (needs mujoco).
        progress: called with the number of shards that are done and of all.

    Raises:
        ValueError: settings outside what is accepted.
        RelationDataError: the folder holds another set.
        RoomError: demands that some triple cannot satisfy.
        ImportError, rendering.RenderingError: mujoco or its OpenGL is missing where it is needed.
    """
    folder = Path(folder)
    if jobs < 1:
        raise ValueError(f"jobs is {jobs}; accepted is at least 1")
    weights = dict.fromkeys(predicates, 1.0) if not isinstance(predicates, Mapping) else dict(predicates)
    unknown = [name for name in weights if name not in INDEX]
    if unknown:
        raise ValueError(f"predicate is {unknown[0]!r}; accepted are {', '.join(PREDICATES)}")
    settings = PairSettings(
        int(pairs), int(seed), int(views), margin, settle, tuple(float(weights.get(p, 0)) for p in PREDICATES)
    )
    text = {
        "version": spatialsim_env.__version__,
        "halves": halves,
        "settings": json.loads(json.dumps(asdict(settings))),
    }
    finished = _check_folder(folder, text)
    if not finished:
        _make(folder, settings, text, jobs, halves, progress)
    if pictures is not None:
        from spatialsim_env.relations.pairs import picture_files

        picture_files.render(scene_sets.load(folder / SCENES), folder / PICTURES, pictures, seed, jobs)
    return folder


def _check_folder(folder: Path, text: dict[str, Any]) -> bool:
    """Check that the set is whole, and write its settings into an empty folder; all files of a set that has lost one
    are made again.

    Raises:
        RelationDataError: another set is there, or what says which is damaged.
    """
    manifest, started = folder / MANIFEST, folder / PARTS / "settings.json"
    for path in (manifest, started):
        if path.is_file():
            there = _object(path)
            if any(there.get(key) != value for key, value in text.items()):
                recorded = {key: there.get(key) for key in text}
                raise RelationDataError(f"{folder} holds a set with other settings ({recorded}); choose another folder")
    if manifest.is_file() and all((folder / name).is_file() for name in _object(manifest).get("sha256", ())):
        return True
    with replace_file(started) as temporary:
        temporary.write_text(json.dumps(text, indent=2) + "\n")
    return False


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text())
    except ValueError as error:
        raise RelationDataError(f"{path} is not JSON: {error}; remove it, and the set is made again") from None
    if type(value) is not dict:
        raise RelationDataError(f"{path} holds a {type(value).__name__}; remove it, and the set is made again")
    return value


def _make(
    folder: Path,
    settings: PairSettings,
    text: dict[str, Any],
    jobs: int,
    halves: bool,
    progress: Callable[[int, int], None] | None,
) -> None:
    work = list(shards(settings))
    tasks = [(settings, shard, folder / PARTS / f"{index:05d}.npz") for index, shard in enumerate(work)]
    missing = [task for task in tasks if not task[2].with_suffix(".json").is_file()]
    done = len(tasks) - len(missing)
    for _ in _run(missing, jobs):
        done += 1
        if progress is not None:
            progress(done, len(tasks))
    made = scene_sets.join([scene_sets.load(path) for _, _, path in tasks])
    counts = [json.loads(path.with_suffix(".json").read_text()) for _, _, path in tasks]
    scene_sets.save(made, folder / SCENES)
    names = [SCENES]
    split = scene_sets.to_split(made, Path(published.MAIN).stem)
    files = [split]
    if halves:
        files += subsets.both_kinds(split, *HALF_SHARES, np.random.default_rng([settings.seed, 2]))
    for file in files:
        published.write(file, folder / f"{file.name}.json")
        names.append(f"{file.name}.json")
    totals = {key: sum(count[key] for count in counts) for key in counts[0]}
    about = {**text, "proposals": totals, "statistics": statistics(made)}
    with replace_file(folder / MANIFEST) as temporary:
        about["sha256"] = {name: sha256(folder / name) for name in names}
        temporary.write_text(json.dumps(about, indent=2) + "\n")
    shutil.rmtree(folder / PARTS)


@dataclass(frozen=True)
class Shard:
    """Pairs of one predicate that are made together."""

    predicate: str
    index: int  # among the shards of this predicate
    slots: NDArray[np.int64]  # (n, 3): subject, object, split


def shards(settings: PairSettings) -> Iterator[Shard]:
    """All shards, predicate by predicate."""
    weights = np.array(settings.weights)
    numbers = _apportion(settings.pairs, weights / weights.sum())
    for index, (predicate, number) in enumerate(zip(PREDICATES, numbers, strict=True)):
        slots = _slots(predicate, int(number), np.random.default_rng([settings.seed, 0, index]))
        for part, start in enumerate(range(0, len(slots), SHARD)):
            yield Shard(predicate, part, slots[start : start + SHARD])


def _apportion(total: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers that add up to total, by largest remainders."""
    exact = total * shares
    out = np.floor(exact + 1e-9).astype(np.int64)
    out[np.argsort(out - exact, kind="stable")[: total - out.sum()]] += 1
    return out


def _slots(predicate: str, number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Assign triples and splits to slots, (number, 3): no triple in two splits, all of a split about equally often."""
    triples = rng.permutation(categories.triples(predicate))
    shares = np.array([(1 - TEST_SHARE) * (1 - VALID_SHARE), (1 - TEST_SHARE) * VALID_SHARE, TEST_SHARE])
    groups, numbers = _apportion(len(triples), shares), _apportion(number, shares)
    ends = np.cumsum(np.maximum(groups, 1)[::-1])[::-1]  # test, then valid, from the front; train the rest
    starts = np.append(ends[1:], 0)
    ends[0] = len(triples)
    out = []
    for split in range(len(SPLITS)):
        own = triples[starts[split] : ends[split]]
        chosen = own[np.arange(numbers[split]) % len(own)]
        out.append(np.column_stack([chosen, np.full(len(chosen), split)]))
    return rng.permutation(np.concatenate(out))


def _run(tasks: list[tuple[PairSettings, Shard, Path]], jobs: int) -> Iterator[None]:
    """Make the shards; yields after each."""
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            _shard(*task)
            yield
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for future in as_completed([pool.submit(_shard, *task) for task in tasks]):
            future.result()
            yield


def _shard(settings: PairSettings, shard: Shard, path: Path) -> None:
    """Make a shard and write it; the counts beside it come last and tell that it is whole."""
    rng = np.random.default_rng([settings.seed, 1, INDEX[shard.predicate], shard.index])
    counts = ProposalCounts()
    order = Order(shard.predicate, settings.views, Demands(margin=settings.margin), settings.settle)
    made = fill(order, shard.slots, rng, counts)
    scene_sets.save(made, path)
    with replace_file(path.with_suffix(".json")) as temporary:
        temporary.write_text(json.dumps(asdict(counts)))


def statistics(made: SceneSet) -> dict[str, dict[str, float]]:
    """Of each predicate: pairs, other predicates that changed on average, shares of pairs where none did, that are
    held after the movement, and of samples with too little visible."""
    out = {}
    for index, name in enumerate(PREDICATES):
        of = made[made.predicate == index]
        if len(of):
            changed = of.changed.sum(axis=1)
            out[name] = {
                "pairs": len(of),
                "others_changed": round(float(changed.mean()), 4),
                "no_other_changed": round(float((changed == 0).mean()), 4),
                "held": round(float(of.held.mean()), 4),
                "hidden": round(float((of.visible < views.SEEN).mean()), 4),
            }
    return out
