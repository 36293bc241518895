"""Slots filled with minimally contrastive pairs: propose, accept, look for the movement, place the observers.

A slot asks for a pair of one (subject, predicate, object). Proposals are drawn for all empty slots at once, so
everything is done in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import settling, views
from spatialsim_env.relations.pairs import categories, proposals
from spatialsim_env.relations.pairs.pairs import ContrastivePairs, Demands, contrast, is_positive
from spatialsim_env.relations.pairs.scene_sets import SceneSet, join
from spatialsim_env.relations.scene import Floats, RoomError
from spatialsim_env.relations.vocabulary import INDEX, OBSERVER, frame

BLOCK = 1024  # proposals at a time
MOST_EACH = 64  # proposals for one slot at a time
ROUNDS = 200  # after which a slot counts as impossible
PATIENT = 20  # rounds in which pairs that no view shows well are drawn again


@dataclass
class ProposalCounts:
    """Counts of proposals by their outcome."""

    proposed: int = 0
    positive: int = 0  # accepted by the predicate's margin, support and penetration
    penetrating: int = 0  # refused before settling
    restless: int = 0  # did not come to rest, or the predicate no longer held at rest
    without_contrast: int = 0  # no movement satisfied the demands
    unseen: int = 0  # too much hidden in every view


@dataclass(frozen=True)
class Order:
    """Requirements of the pairs of one predicate."""

    predicate: str
    n_views: int
    demands: Demands
    settle: bool = False  # let gravity act on the scenes in which the predicate holds, and ask again

    @property
    def frontal(self) -> bool:
        """True where the views are the frontal ones."""
        return frame(self.predicate) == OBSERVER


def fill(order: Order, slots: NDArray[np.int64], rng: np.random.Generator, counts: ProposalCounts) -> SceneSet:
    """A pair for each slot (n, 3): subject, object and split, each an index.

    Raises:
        RoomError: a slot that stays empty; it names the triple.
    """
    filled: list[SceneSet] = []
    rows: list[NDArray[np.int64]] = []
    empty = np.arange(len(slots))
    for attempt in range(ROUNDS):
        if not len(empty):
            break
        each = int(np.clip(BLOCK // len(empty), 2, MOST_EACH))
        asked = np.repeat(empty, each)
        settled, made = _attempt(order, slots[asked], asked, attempt < PATIENT, rng, counts)
        filled.append(made)
        rows.append(settled)
        empty = np.setdiff1d(empty, settled, assume_unique=True)
    if len(empty):
        subject, object_, _ = slots[empty[0]]
        raise RoomError(
            f"no pair was found for {categories.NAMES[subject]!r} {order.predicate!r} {categories.NAMES[object_]!r} in "
            f"{ROUNDS} rounds ({len(empty)} such); accepted are demands that it can satisfy: {order.demands}"
        )
    return join(filled)[np.argsort(np.concatenate(rows), kind="stable")]


def _attempt(
    order: Order,
    slots: NDArray[np.int64],
    asked: NDArray[np.int64],
    picky: bool,
    rng: np.random.Generator,
    counts: ProposalCounts,
) -> tuple[NDArray[np.int64], SceneSet]:
    """One proposal for each row of slots (m, 3), at most one pair for each number in ``asked`` (m,): numbers, pairs."""
    predicate, demands = order.predicate, order.demands
    directions = views.angles(len(slots), order.frontal, rng)
    liked = rng.permuted(np.tile(np.arange(directions.shape[1]), (len(slots), 1)), axis=1)  # views, best first
    azimuth = directions[np.arange(len(slots)), liked[:, 0], 0]
    scenes = proposals.propose(predicate, slots[:, 0], slots[:, 1], azimuth, rng)
    flies = categories.FLIES[slots[:, :2]]
    looking = _looking(np.take_along_axis(directions, liked[:, : order.n_views, None], axis=1))
    good = np.flatnonzero(is_positive(predicate, scenes, flies, looking, demands))
    counts.proposed += len(slots)
    counts.positive += len(good)
    good = good[np.unique(asked[good], return_index=True)[1]]
    if order.settle:
        settled, kept = _settle(order, scenes[good], flies[good], looking[good], counts)
        good = good[kept]
        scenes[good] = settled
    kept, pairs = contrast(predicate, scenes[good], flies[good], looking[good], demands, rng)
    counts.without_contrast += len(good) - len(kept)
    good = good[kept]
    observers, view, visible = _observers(order, pairs, directions[good], liked[good], rng)
    shown = np.flatnonzero((visible.min(axis=1) >= views.SEEN) | (not picky))
    counts.unseen += len(good) - len(shown)
    good, pairs = good[shown], pairs[shown]
    made = SceneSet(
        predicate=np.full(len(good), INDEX[predicate]),
        subject=slots[good, 0],
        object=slots[good, 1],
        split=slots[good, 2],
        scenes=np.stack([pairs.holds, pairs.fails], axis=1),
        observers=observers[shown],
        view=view[shown],
        visible=visible[shown],
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


def _settle(
    order: Order, scenes: Floats, flies: NDArray[np.bool_], looking: Floats, counts: ProposalCounts
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The scenes (k, 2, 19) at rest that are still positives, and their rows."""
    sunk = settling.penetrating(scenes)
    counts.penetrating += int(sunk.sum())
    rows = np.flatnonzero(~sunk)
    resting, still = settling.settle(scenes[rows], flies[rows])
    resting = settling.lift(resting)
    at_rest = rows[still]
    still[still] = is_positive(order.predicate, resting[still], flies[at_rest], looking[at_rest], order.demands)
    counts.restless += int((~still).sum())
    return resting[still], rows[still]


def _observers(
    order: Order, pairs: ContrastivePairs, directions: Floats, liked: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Observers (n, views, 9) that see both members whole, which views they are, and the least visible share.

    Of the twelve views those are taken first in which enough of both objects is visible; frontal ones are fixed,
    since the predicate was asked from them.
    """
    points = np.concatenate([scene.corners(x).reshape(len(pairs), 16, 3) for x in (pairs.holds, pairs.fails)], axis=1)
    filled = rng.uniform(*views.FILLED, directions.shape[:2])
    observers = views.place_observers(points, directions, filled)
    visible = np.minimum(views.visible(pairs.holds, observers), views.visible(pairs.fails, observers)).min(axis=-1)
    if not order.frontal:
        hidden = np.take_along_axis(visible, liked, axis=1) < views.SEEN
        liked = np.take_along_axis(liked, np.argsort(hidden, axis=1, kind="stable"), axis=1)
    view = liked[:, : order.n_views]
    return (
        np.take_along_axis(observers, view[..., None], axis=1),
        view,
        np.take_along_axis(visible, view, axis=1),
    )
