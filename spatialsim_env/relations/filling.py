"""Slots filled with minimally contrastive pairs: propose, accept, look for the movement, place the observers.

A slot asks for a pair of one (subject, predicate, object). Proposals are drawn for all empty slots at once, so
everything is done in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations import categories, proposals, scene, settling, views
from spatialsim_env.relations.pairs import Demands, Pairs, accepted, contrast
from spatialsim_env.relations.scene import Floats, SceneError
from spatialsim_env.relations.scene_sets import SceneSet
from spatialsim_env.relations.vocabulary import INDEX, OBSERVER, frame

BLOCK = 1024  # proposals at a time
MOST_EACH = 64  # proposals for one slot at a time
ROUNDS = 200  # after which a slot counts as impossible
PATIENT = 20  # rounds in which pairs that no view shows well are drawn again


@dataclass
class Counts:
    """What became of the proposals."""

    proposed: int = 0
    positive: int = 0  # accepted by the predicate's margin, support and penetration
    penetrating: int = 0  # refused before settling
    restless: int = 0  # did not come to rest, or the predicate no longer held at rest
    without_contrast: int = 0  # no movement satisfied the demands
    unseen: int = 0  # too much hidden in every view


def fill(
    predicate: str,
    slots: NDArray[np.int64],
    n_views: int,
    demands: Demands,
    settle: bool,
    rng: np.random.Generator,
    counts: Counts,
) -> SceneSet:
    """A pair for each slot (n, 3): subject, object and split, each an index.

    Raises:
        SceneError: a slot that stays empty; it names the triple.
    """
    filled: list[SceneSet] = []
    rows: list[NDArray[np.int64]] = []
    empty = np.arange(len(slots))
    for attempt in range(ROUNDS):
        if not len(empty):
            break
        each = int(np.clip(BLOCK // len(empty), 2, MOST_EACH))
        asked = np.repeat(empty, each)
        found, made = _attempt(predicate, slots[asked], asked, n_views, demands, settle, attempt < PATIENT, rng, counts)
        filled.append(made)
        rows.append(found)
        empty = np.setdiff1d(empty, found, assume_unique=True)
    if len(empty):
        subject, object_, _ = slots[empty[0]]
        raise SceneError(
            f"no pair was found for {categories.NAMES[subject]!r} {predicate!r} {categories.NAMES[object_]!r} in "
            f"{ROUNDS} rounds ({len(empty)} such); accepted are demands that it can satisfy: {demands}"
        )
    order = np.argsort(np.concatenate(rows), kind="stable")
    return SceneSet(
        *(np.concatenate(column)[order] for column in zip(*(vars(part).values() for part in filled), strict=True))
    )


def _attempt(
    predicate: str,
    slots: NDArray[np.int64],
    asked: NDArray[np.int64],
    n_views: int,
    demands: Demands,
    settle: bool,
    picky: bool,
    rng: np.random.Generator,
    counts: Counts,
) -> tuple[NDArray[np.int64], SceneSet]:
    """One proposal for each row of slots (m, 3), at most one pair for each number in ``asked`` (m,): numbers, pairs."""
    frontal = frame(predicate) == OBSERVER
    directions = views.angles(len(slots), frontal, rng)
    order = rng.permuted(np.tile(np.arange(directions.shape[1]), (len(slots), 1)), axis=1)
    first = np.arange(len(slots))
    azimuth = directions[first, order[:, 0], 0]
    scenes = proposals.propose(predicate, slots[:, 0], slots[:, 1], azimuth, rng)
    flies = categories.FLIES[slots[:, :2]]
    looking = _looking(np.take_along_axis(directions, order[:, :n_views, None], axis=1))
    good = np.flatnonzero(accepted(predicate, scenes, flies, looking, demands))
    counts.proposed += len(slots)
    counts.positive += len(good)
    good = good[np.unique(asked[good], return_index=True)[1]]
    if settle:
        settled, kept = _settled(predicate, scenes[good], flies[good], looking[good], demands, counts)
        good = good[kept]
        scenes[good] = settled
    kept, pairs = contrast(predicate, scenes[good], flies[good], looking[good], demands, rng)
    counts.without_contrast += len(good) - len(kept)
    good = good[kept]
    observers, view, visible = _observers(pairs, directions[good], order[good], n_views, frontal, rng)
    shown = visible.min(axis=1) >= views.SEEN
    if picky:
        counts.unseen += int((~shown).sum())
        good, pairs, observers, view, visible = (x[shown] for x in (good, pairs, observers, view, visible))
    made = SceneSet(
        predicate=np.full(len(good), INDEX[predicate]),
        subject=slots[good, 0],
        object=slots[good, 1],
        split=slots[good, 2],
        scenes=np.stack([pairs.holds, pairs.fails], axis=1),
        observers=observers,
        view=view,
        visible=visible,
        first=rng.integers(0, 2, len(good)),
        mover=pairs.mover,
        axis=pairs.axis,
        amount=pairs.amount,
        flip=pairs.flip,
        margins=pairs.margins,
        changed=pairs.changed,
        held=pairs.held,
    )
    return asked[good], made


def _looking(directions: Floats) -> NDArray[np.float64]:
    """Observers (n, views, 9) who look from directions (n, views, 2) at the origin: where they stand does not matter
    to any predicate."""
    azimuth, elevation = directions[..., 0], directions[..., 1]
    eye = np.stack([np.cos(azimuth), np.sin(azimuth), np.tan(elevation)], axis=-1)
    return scene.observers(eye, np.zeros_like(eye))


def _settled(
    predicate: str, scenes: Floats, flies: NDArray[np.bool_], looking: Floats, demands: Demands, counts: Counts
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The scenes (k, 2, 19) at rest that are still positives, and their rows."""
    sunk = settling.penetrating(scenes)
    counts.penetrating += int(sunk.sum())
    rows = np.flatnonzero(~sunk)
    resting, still = settling.settle(scenes[rows], flies[rows])
    resting = settling.lifted(resting)
    still[still] = accepted(predicate, resting[still], flies[rows[still]], looking[rows[still]], demands)
    counts.restless += int((~still).sum())
    return resting[still], rows[still]


def _observers(
    pairs: Pairs, directions: Floats, order: NDArray[np.int64], n_views: int, frontal: bool, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Observers (n, views, 9) that see both members whole, which views they are, and the least visible share.

    Of the twelve views those are taken first in which enough of both objects is visible; frontal ones are fixed,
    since the predicate was asked from them.
    """
    n = len(pairs)
    points = np.concatenate([scene.corners(x).reshape(n, 16, 3) for x in (pairs.holds, pairs.fails)], axis=1)
    filled = rng.uniform(*views.FILLED, directions.shape[:2])
    observers = views.placed(points, directions, filled)
    visible = np.minimum(views.visible(pairs.holds, observers), views.visible(pairs.fails, observers)).min(axis=-1)
    if not frontal:
        hidden = np.take_along_axis(visible, order, axis=1) < views.SEEN
        order = np.take_along_axis(order, np.argsort(hidden, axis=1, kind="stable"), axis=1)
    view = order[:, :n_views]
    return (
        np.take_along_axis(observers, view[..., None], axis=1),
        view,
        np.take_along_axis(visible, view, axis=1),
    )
