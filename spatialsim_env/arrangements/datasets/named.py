"""Named data sets on disk: generate, save, load, verify.

A set is two files beside each other: ``NAME.npz`` (objects without padding, a shape as one byte and the seven other
features as float32, and columns of your own, a value a sample; uncompressed) and ``NAME.json``, its manifest: format,
package version, settings, seed, counts and the SHA-256 of the data file. Both are written to a temporary name and
renamed, the manifest last. The same name, seed and size give the same bytes.

Names are three parts, task/objects/part. The paper's (sections 2.2 and 2.3), ``PAPER``:

- ``identification/n5/train``: n3..n30; train 10,000 samples, valid and test 5,000;
- ``discrimination/3-8/stage1``: 3-8, 9-20, 21-30; stage1..stage5 of 100,000, valid and test 10,000.

The variants of the authors' generator, which have the same objects and parts:

- ``discrimination-displaced``, ``-displaced_few``: one object, or one to three, moved by 5 to 20 units;
- ``-abstract``: only positions matter; ``-distractors``: 0 to 3 extra objects; ``-abstract-distractors``: both.

The benchmark with a shortcut closed, which have the same objects and parts too:

- ``discrimination-spread_matched``: negatives have the RMS spread of the scene they are made from;
- ``-radius_matched``: every object keeps its distance to the barycentre.

And others for tests:

- ``discrimination/n3/test``: one number of objects, n3..n30, 10,000; n3 has all parts, the paper's simplified setup;
- ``discrimination-scale/3-8/1.25``, ``-rotation/3-8/090`` (degrees), ``-translation/3-8/-10,20`` (units): grids, one
  part of the similarity given and the others drawn, for both labels, 2,000 samples a point; also for
  ``identification`` with the middle number of objects of each range, n5, n14, n25.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spatialsim_env
from spatialsim_env.arrangements.negatives import (
    Displaced,
    DisplacedFew,
    RadiusMatched,
    Redrawn,
    SpreadMatched,
    by_name,
)
from spatialsim_env.arrangements.scene import N_FEATURES, SHAPE, SHAPES, present, validate
from spatialsim_env.arrangements.tasks import RANGES, STAGES, Discrimination, Identification, Samples, Task
from spatialsim_env.arrangements.variants import Fixed
from spatialsim_env.files import replace_file, sha256
from spatialsim_env.streams import stream

FORMAT = 1
_MANIFEST = {"version": str, "samples": int, "n_max": int, "one_reference": bool, "sha256": str, "settings": dict}
_N_NUMBERS = N_FEATURES - len(SHAPES)  # features of an object besides its shape
_MOST_OBJECTS = 255  # a count is one byte
_BYTES_PER_OBJECT = 1 + 4 * _N_NUMBERS


class DataSetError(ValueError):
    """A data set that cannot be used; the message says which file and why."""


@dataclass(frozen=True)
class NamedSet:
    """A named set: its task, its part and its size."""

    task: Task
    size: int  # samples


VARIANTS: tuple[dict[str, Any], ...] = (
    {"negative": Displaced()},
    {"negative": DisplacedFew()},
    {"abstract": True},
    {"distractors": 3},
    {"abstract": True, "distractors": 3},
    {"negative": SpreadMatched()},
    {"negative": RadiusMatched()},
)
GRID = {
    **{f"{scale:.2f}": Fixed(scale=float(scale)) for scale in np.linspace(0.5, 2, 7)},
    **{f"{degrees:03d}": Fixed(rotation=float(np.radians(degrees))) for degrees in range(0, 360, 30)},
    **{f"{x},{y}": Fixed(translation=(x, y)) for x in range(-20, 21, 10) for y in range(-20, 21, 10)},
}
GRID_SIZE = 2_000  # samples a point: a standard error of at most 0.011


def set_name(task: Task, part: str) -> str:
    """The name of a part of a task's sets, whether or not such a set is registered.

    It names the stream of random numbers of a run on the task, so that a run and a named set of the same seed hold
    the same samples: "discrimination/3-8/stage1", "discrimination/n3/test", "identification-abstract/n5/train". The
    rotation limit belongs to the part; a negative is named, not its parameters.
    """
    low, high = task.object_range
    negative = by_name(task.negative)
    kind = [type(task).__name__.lower()]
    kind += [negative.name] * (negative != Redrawn())
    kind += ["abstract"] * task.abstract + ["distractors"] * (task.distractors > 0)
    kind += ["lookalikes"] * (isinstance(task, Discrimination) and task.lookalikes > 0) + list(task.fixed.names)
    return f"{'-'.join(kind)}/{f'n{low}' if low == high else f'{low}-{high}'}/{part}"


def _both_tasks(**options: Any) -> Iterator[tuple[Task, str, int]]:
    """Task, part and size of the paper's sets, or of a variant of them."""
    for n in range(3, 31):
        for part, size in (("train", 10_000), ("valid", 5_000), ("test", 5_000)):
            yield Identification(n, **options), part, size
    for n_objects in RANGES:
        yield from _discrimination(n_objects, **options)


def _discrimination(n_objects: int | tuple[int, int], **options: Any) -> Iterator[tuple[Task, str, int]]:
    for stage, limit in enumerate(STAGES, start=1):
        yield Discrimination(n_objects, limit, **options), f"stage{stage}", 100_000
    for part in ("valid", "test"):
        yield Discrimination(n_objects, **options), part, 10_000


def _beyond_the_paper() -> Iterator[tuple[Task, str, int]]:
    yield from _discrimination(3)
    for n in range(4, 31):
        yield Discrimination(n), "test", 10_000
    for options in VARIANTS:
        yield from _both_tasks(**options)
    for part, fixed in GRID.items():
        for low, high in RANGES:
            yield Identification((low + high) // 2, fixed=fixed), part, GRID_SIZE
            yield Discrimination((low, high), fixed=fixed), part, GRID_SIZE


def _by_name(sets: Iterable[tuple[Task, str, int]]) -> dict[str, NamedSet]:
    return {set_name(task, part): NamedSet(task, size) for task, part, size in sets}


PAPER = tuple(_by_name(_both_tasks()))
REGISTRY = _by_name(_both_tasks()) | _by_name(_beyond_the_paper())
NAMES = tuple(REGISTRY)


def find(name: str) -> NamedSet:
    """Look up a named set.

    Raises:
        DataSetError: an unknown name.
    """
    if name not in REGISTRY:
        raise DataSetError(
            f"data set {name!r} is unknown; accepted are identification/n3..n30/train|valid|test, "
            "discrimination/3-8|9-20|21-30/stage1..stage5|valid|test, and the variants and grids that "
            "spatialsim generate lists"
        )
    return REGISTRY[name]


def select(patterns: Iterable[str]) -> list[str]:
    """The names that patterns stand for, each once, in the order of the patterns and of the registry.

    A pattern is a name, or its first parts for all that begins with them; ``*``, ``?`` and ``[...]`` stay within a
    part: "discrimination/*/test", "discrimination-*/3-8", "identification".

    Raises:
        DataSetError: a pattern that no name fits.
    """
    chosen: dict[str, None] = {}
    for pattern in patterns:
        wanted = pattern.rstrip("/").split("/")
        fitting = [name for name in NAMES if _begins_with(name.split("/"), wanted)]
        if not fitting:
            find(pattern)
        chosen |= dict.fromkeys(fitting)
    return list(chosen)


def _begins_with(parts: list[str], wanted: list[str]) -> bool:
    return len(wanted) <= len(parts) and all(map(fnmatchcase, parts, wanted))


def sample(name: str, seed: int, size: int | None = None) -> Samples:
    """Draw the samples of a named set, a function of its arguments."""
    chosen = find(name)
    return chosen.task.sample(chosen.size if size is None else size, stream(seed, name))


def generate(name: str, root: str | os.PathLike[str], seed: int = 0, size: int | None = None) -> Path:
    """Generate a named set under ``root`` and return the path of its manifest.

    Raises:
        DataSetError: an unknown name.
        OSError: the files cannot be written; nothing half-written is left under the names.
    """
    return save(sample(name, seed, size), Path(root) / name, _settings(name, seed))


def _settings(name: str, seed: int) -> dict[str, Any]:
    """Settings of a named set in its manifest, as JSON gives them back."""
    task = find(name).task
    low, high = task.object_range
    settings: dict[str, Any] = {
        "name": name,
        "seed": seed,
        "task": type(task).__name__,
        "n_objects": low if low == high else [low, high],
        "max_rotation": task.max_rotation,
    }
    if isinstance(task, Identification):
        settings["reference_seed"] = task.reference_seed
    if task.negative != Redrawn():
        settings["negative"] = asdict(by_name(task.negative))  # type: ignore[call-overload]
    if task.abstract:
        settings["abstract"] = True
    if task.distractors:
        settings["distractors"] = task.distractors
    if task.fixed.names:
        settings["fixed"] = {key: value for key, value in asdict(task.fixed).items() if value is not None}
    return json.loads(json.dumps(settings))


def expected_bytes(name: str, size: int | None = None) -> int:
    """Size on disk of a named set, to a few per cent: 29 bytes an object, 2 or 3 a sample."""
    chosen = find(name)
    samples = chosen.size if size is None else size
    scenes = 1 if isinstance(chosen.task, Identification) else 2
    mean_objects = scenes * sum(chosen.task.object_range) / 2 + chosen.task.distractors / 2
    return round(samples * (_BYTES_PER_OBJECT * mean_objects + scenes + 1))


def is_made(name: str, root: str | os.PathLike[str], seed: int = 0, size: int | None = None) -> bool:
    """Check that a named set lies under ``root``, whole and made by this version with this seed and size."""
    try:
        manifest = read_manifest(Path(root) / name)
        wanted = find(name).size if size is None else size
        same = manifest["settings"] == _settings(name, seed) and manifest["samples"] == wanted
        data, _ = _files(Path(root) / name)
        return same and manifest["version"] == spatialsim_env.__version__ and sha256(data) == manifest["sha256"]
    except (DataSetError, KeyError, FileNotFoundError):
        return False


def save(
    samples: Samples,
    path: str | os.PathLike[str],
    settings: dict[str, Any] | None = None,
    columns: dict[str, NDArray[Any]] | None = None,
) -> Path:
    """Write samples as ``path.npz`` and ``path.json``; returns the path of the manifest.

    Args:
        settings: kept in the manifest, for whoever reads it.
        columns: what else is known of each sample, by name; ``load_columns`` gives them back.

    Raises:
        SceneError: what is not a scene.
        DataSetError: parts of unequal length, or more than 255 objects a scene.
    """
    columns = columns or {}
    lengths = [len(part) for part in (samples.target, samples.reference, samples.label, *columns.values())]
    if len(set(lengths)) != 1:
        names = ", ".join(("target, reference, label", *columns))
        raise DataSetError(f"{names} hold {lengths} samples; accepted are equal numbers")
    rows = max(samples.target.shape[1], samples.reference.shape[1])
    if rows > _MOST_OBJECTS:
        raise DataSetError(f"scenes have {rows} rows; accepted are up to {_MOST_OBJECTS}")
    one_reference = len(samples) > 0 and samples.reference.strides[0] == 0
    reference = samples.reference[:1] if one_reference else samples.reference
    validate(samples.target, "target")
    validate(reference, "reference")
    data, manifest = _files(path)
    data.parent.mkdir(parents=True, exist_ok=True)
    arrays = {"label": samples.label.astype(np.uint8), **{f"column_{key}": column for key, column in columns.items()}}
    for part, scenes in (("target", samples.target), ("reference", reference)):
        arrays |= {f"{part}_{key}": array for key, array in _pack(scenes).items()}
    with replace_file(data) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    text = {
        "format": FORMAT,
        "version": spatialsim_env.__version__,
        "samples": len(samples),
        "n_max": samples.target.shape[1],
        "one_reference": one_reference,
        "sha256": sha256(data),
        "settings": settings or {},
    }
    if samples.reference.shape[1] != samples.target.shape[1]:
        text["n_max_reference"] = samples.reference.shape[1]
    with replace_file(manifest) as temporary:
        temporary.write_text(json.dumps(text, indent=2, sort_keys=True) + "\n")
    return manifest


def load(path: str | os.PathLike[str]) -> Samples:
    """Read a set written by ``save``; ``path`` with or without its ending.

    Raises:
        DataSetError: a file is missing, cut, changed, or not of this format.
    """
    manifest = read_manifest(path)
    data, _ = _files(path)
    if not data.exists():
        raise DataSetError(f"{data} is missing; its manifest lies beside it. Generate the set again")
    digest = sha256(data)
    if digest != manifest["sha256"]:
        raise DataSetError(
            f"{data} is cut or changed: SHA-256 {digest[:12]}, its manifest says {manifest['sha256'][:12]}"
        )
    try:
        with np.load(data, allow_pickle=False) as arrays:
            target = _unpack(arrays, "target", manifest["n_max"])
            reference = _unpack(arrays, "reference", manifest.get("n_max_reference", manifest["n_max"]))
            label = arrays["label"].astype(np.float32)
    except (ValueError, IndexError, KeyError) as error:
        raise DataSetError(f"{data} does not fit its manifest: {error}") from error
    expected = 1 if manifest["one_reference"] else manifest["samples"]
    if len(target) != manifest["samples"] or len(label) != len(target) or len(reference) != expected:
        raise DataSetError(
            f"{data} does not fit its manifest: {len(target)} targets, {len(reference)} references and {len(label)} "
            f"labels, where it says {manifest['samples']} samples"
        )
    if manifest["one_reference"]:
        reference = np.broadcast_to(reference, (len(target), *reference.shape[1:]))
    return Samples(target, reference, label)


def load_columns(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The columns that ``save`` was given, by name; the data file is not checked against its manifest.

    Raises:
        DataSetError: there is no such file.
    """
    data, _ = _files(path)
    if not data.exists():
        raise DataSetError(f"{data} is missing")
    with np.load(data, allow_pickle=False) as arrays:
        return {key.removeprefix("column_"): arrays[key] for key in arrays.files if key.startswith("column_")}


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest of a set.

    Raises:
        DataSetError: it is missing, unreadable or of another format.
    """
    _, manifest = _files(path)
    try:
        text = json.loads(manifest.read_text())
    except FileNotFoundError:
        raise DataSetError(f"{manifest} does not exist; spatialsim generate makes named sets") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataSetError(f"{manifest} is not a manifest: {error}") from error
    if not isinstance(text, dict) or text.get("format") != FORMAT:
        form = text.get("format") if isinstance(text, dict) else text
        raise DataSetError(f"{manifest} has format {form!r}; accepted is {FORMAT}")
    wrong = [key for key, kind in _MANIFEST.items() if not isinstance(text.get(key), kind)]
    wrong += ["n_max_reference"] * (not isinstance(text.get("n_max_reference", 0), int))
    if wrong:
        raise DataSetError(
            f"{manifest} lacks {', '.join(wrong)}, or holds something else there; generate the set again"
        )
    return text


def _files(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    base = Path(path)
    base = base.with_suffix("") if base.suffix in (".npz", ".json") else base
    return base.with_name(base.name + ".npz"), base.with_name(base.name + ".json")


def _pack(scenes: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Without padding: objects per scene, and of all objects in a row the shape and the other features."""
    mask = present(scenes)
    objects = scenes[mask]
    return {
        "count": mask.sum(axis=1).astype(np.uint8),
        "shape": objects[:, SHAPE].argmax(axis=1).astype(np.uint8),
        "numbers": objects[:, len(SHAPES) :],
    }


def _unpack(arrays: Any, part: str, n_max: int) -> NDArray[np.float32]:
    """Padded scenes, present objects first."""
    count = arrays[f"{part}_count"].astype(np.int64)
    scenes = np.zeros((len(count), n_max, N_FEATURES), np.float32)
    mask = np.arange(n_max) < count[:, None]
    objects = np.zeros((int(count.sum()), N_FEATURES), np.float32)
    objects[:, SHAPE] = np.eye(len(SHAPES), dtype=np.float32)[arrays[f"{part}_shape"]]
    objects[:, len(SHAPES) :] = arrays[f"{part}_numbers"].reshape(-1, _N_NUMBERS)
    scenes[mask] = objects
    return scenes
