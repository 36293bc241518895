"""Sets of minimally contrastive pairs of our own: columns, one npz file, and the published form of a split.

**Labels are rules, not human judgements** (``predicates``). A sample is one member of a pair seen by one observer. Its
picture's name tells the pair: the number after the object's name. Which of the two members is called initialState and
comes first is drawn anew for each pair, so neither tells the label.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.files import replace_file
from spatialsim_env.relations import scene, vocabulary
from spatialsim_env.relations.geometry import cameras, views
from spatialsim_env.relations.pairs import categories
from spatialsim_env.relations.rel3d import records, vectors
from spatialsim_env.relations.rel3d.published import SPLITS, RelationSamples, Split
from spatialsim_env.relations.rel3d.records import RelationDataError

STATES = records.STATES[:2]
FRAMES = (vocabulary.NONE, vocabulary.OWN, vocabulary.OBSERVER)


@dataclass(frozen=True, eq=False)
class SceneSet:
    """Columns over n pairs. Member 0 is the scene in which the predicate holds, member 1 the one in which it fails."""

    predicate: NDArray[np.int64]  # (n,), index in vocabulary.PREDICATES
    subject: NDArray[np.int64]  # (n,), index in categories.CATEGORIES
    object: NDArray[np.int64]  # (n,)
    split: NDArray[np.int64]  # (n,), index in SPLITS
    scenes: NDArray[np.float64]  # (n, 2, 2, 19)
    observers: NDArray[np.float64]  # (n, views, 9), shared by both members
    view: NDArray[np.int64]  # (n, views), which of the 12 views or of the 3 frontal ones
    visible: NDArray[np.float64]  # (n, views), least share of an object's points that are seen, in either member
    first: NDArray[np.int64]  # (n,), which member comes first
    mover: NDArray[np.int64]  # (n,), scene.SUBJECT or OBJECT
    axis: NDArray[np.int64]  # (n,), index in pairs.AXES
    amount: NDArray[np.float64]  # (n,), metres or radians
    flip: NDArray[np.float64]  # (n,), the amount at which the margin is 0
    margins: NDArray[np.float64]  # (n, 2), of both members
    changed: NDArray[np.bool_]  # (n, 30), which other predicates changed their truth
    held: NDArray[np.bool_]  # (n,), whether the second member has something in the air that does not fly

    def __len__(self) -> int:
        return len(self.predicate)

    def __getitem__(self, rows: Any) -> SceneSet:
        return SceneSet(*(getattr(self, column.name)[rows] for column in fields(self)))


def join(parts: list[SceneSet]) -> SceneSet:
    """One set of several with equally many views."""
    return SceneSet(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(SceneSet)))


def save(pairs: SceneSet, path: str | os.PathLike[str]) -> None:
    """Write an npz file; equal sets give equal bytes."""
    with replace_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **{column.name: getattr(pairs, column.name) for column in fields(pairs)})


def load(path: str | os.PathLike[str]) -> SceneSet:
    """Read what ``save`` wrote.

    Raises:
        FileNotFoundError: no such file.
        RelationDataError: another file.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"no file {path}; scenes are made by spatialsim_env.relations.pairs.generation.generate"
        )
    names = [column.name for column in fields(SceneSet)]
    try:
        with np.load(path, allow_pickle=False) as file:
            return SceneSet(*(file[name] for name in names))
    except (KeyError, ValueError, OSError, EOFError, TypeError, AttributeError) as error:
        raise RelationDataError(
            f"{path} is no set of scenes ({error}); it has the columns {', '.join(names)}"
        ) from None


def sample_rows(pairs: SceneSet) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Pair, view and member (N,) of each sample: pairs in their order, then views, then the first member first."""
    n, n_views = pairs.view.shape
    pair, view, place = (x.reshape(-1) for x in np.indices((n, n_views, 2)))
    return pair, view, pairs.first[pair] ^ place


def samples(pairs: SceneSet, numbers: NDArray[np.int64] | None = None) -> RelationSamples:
    """The samples of pairs in the published form; ``numbers`` (n,) are the pairs' numbers, by default their places."""
    numbers = np.arange(len(pairs)) if numbers is None else numbers
    pair, view, member = sample_rows(pairs)
    scenes, observers = pairs.scenes[pair, member], pairs.observers[pair, view]
    rgb, turns = picture_names(pairs, numbers), _mesh_rotations(pairs, pair)
    frames = [FRAMES.index(vocabulary.frame(name)) for name in vocabulary.PREDICATES]
    extra = {
        "scene": numbers[pair],  # place in the set of scenes, with ``member``
        "member": member,
        "view": pairs.view[pair, view],
        "kinds": scene.kind(scenes),  # (N, 2), indices in scene.KINDS
        "mover": pairs.mover[pair],
        "axis": pairs.axis[pair],
        "amount": pairs.amount[pair],
        "margin": pairs.margins[pair, member],
        "partner_margin": pairs.margins[pair, 1 - member],
        "frame": np.array(frames, np.int64)[pairs.predicate[pair]],
        "others_changed": pairs.changed[pair].sum(axis=1),
        "held": pairs.held[pair] & (member == 1),
        "visible": pairs.visible[pair, view],
    }
    return RelationSamples(
        predicate=pairs.predicate[pair],
        subject=pairs.subject[pair],
        object=pairs.object[pair],
        label=member == 0,
        boxes=views.boxes(scenes, observers).astype(np.float32),
        picture_size=np.tile(np.array([views.WIDTH, views.HEIGHT], np.int32), (len(pair), 1)),
        vectors={key: np.asarray(x, np.float64) for key, x in vectors.all_of(scenes, observers, turns).items()},
        pair=numbers[pair] * pairs.view.shape[1] + view,
        rgb=rgb,
        depth=tuple(name.replace("rgb.png", "depth.png") for name in rgb),
        cameras=cameras.camera_infos(observers, fov=views.FIELD_OF_VIEW),
        extra=extra,
    )


def picture_names(pairs: SceneSet, numbers: NDArray[np.int64]) -> tuple[str, ...]:
    """Name of each sample's picture, in the order of ``sample_rows``."""
    pair, view, member = sample_rows(pairs)
    state = pairs.first[pair] ^ member
    return tuple(
        records.picture_name(
            vocabulary.PREDICATES[pairs.predicate[p]],
            categories.NAMES[pairs.subject[p]],
            f"{categories.NAMES[pairs.object[p]]} {numbers[p]:06d}",
            STATES[s],
            int(pairs.view[p, v]),
        )
        for p, v, s in zip(pair.tolist(), view.tolist(), state.tolist(), strict=True)
    )


def _mesh_rotations(pairs: SceneSet, pair: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rotations (N, 2, 3, 3) from mesh to axes: a category's meshes are modelled along axes of its own."""
    turns = vectors.AXIS_SWAPS[np.arange(len(categories.NAMES)) % len(vectors.AXIS_SWAPS)]
    return np.stack([turns[pairs.subject[pair]], turns[pairs.object[pair]]], axis=1)


def to_split(pairs: SceneSet, name: str) -> Split:
    """The whole set in the published form."""
    numbers = np.arange(len(pairs))
    train, valid, test = (
        samples(pairs[pairs.split == index], numbers[pairs.split == index]) for index in range(len(SPLITS))
    )
    return Split(train, valid, test, predicates=vocabulary.PREDICATES, objects=categories.NAMES, name=name)
