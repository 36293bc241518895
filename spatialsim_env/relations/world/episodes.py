"""Goals and starts of episodes, as a batched function of uniform numbers.

An episode is a predicate, an object that stays, a subject of a shape and size with which the predicate can be brought
about (``casts``), somewhere about it, and an observer who looks at both. A reset draws one block of numbers; because
everything follows from the block, one world and thousands agree. The rule certifies that no episode begins achieved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.core.world import NOTHING, Given
from spatialsim_env.relations import scene
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.scene import CENTER, FLOOR, HALF, HEIGHT, INNER, KIND_NAMES, WALL, RoomError
from spatialsim_env.relations.vocabulary import INDEX, PREDICATES
from spatialsim_env.relations.world import goals
from spatialsim_env.relations.world.casts import AWAY, CLOSE, HALVES, WITHIN, Cast, Range, cast
from spatialsim_env.relations.world.dynamics import clear, fitted
from spatialsim_env.relations.world.goals import Flags
from spatialsim_env.relations.world.truth import RelationMoment, judged

TRIES = 40  # scenes that one block of numbers offers; the first that is not achieved and without overlap is taken
MIDDLE = 0.4  # metres along x and y that the object may be from the room's middle
GAPS: dict[str, Range] = {AWAY: (0.15, 1.0), CLOSE: (0.0, 0.2)}  # metres between the subject and the object at first
LIFTED: Range = (0.0, 1.0)  # metres above the floor of the subject's lower side, in half of the episodes; else 0
INTO = 0.01  # metres above the floor of a cavity that a subject begins in
EYE_DISTANCE, EYE_HEIGHT = (2.1, 2.5), (0.9, 1.8)  # metres from the object on the floor, and above the floor

SCENE = np.dtype([  # the uniform numbers of a scene
    ("subject_kind", float), ("object_kind", float), ("object_half", float, 3), ("subject_half", float, 3),
    ("place", float, 2), ("object_turn", float), ("hang", float),  # of the object, and of its lower side
    ("direction", float), ("gap", float), ("lifted", float), ("lift", float), ("subject_turn", float),
    ("eye_direction", float), ("eye_distance", float), ("eye_height", float),
])  # fmt: skip
BLOCK = np.dtype([("predicate", float), ("scenes", SCENE, TRIES)])  # the uniform numbers of a reset

_LOW = np.array([HALVES[name][0] for name in KIND_NAMES])  # (kinds, 3)
_HIGH = np.array([HALVES[name][1] for name in KIND_NAMES])
_CASTS = tuple(cast(name) for name in PREDICATES)


@dataclass(frozen=True)
class RelationEpisodes:
    """Where episodes come from."""

    predicates: tuple[str, ...]  # each episode draws one

    n_uniform = BLOCK.itemsize // 8  # numbers in the block of one reset

    @cached_property
    def indices(self) -> NDArray[np.int64]:
        """Places of the predicates in ``vocabulary.PREDICATES``."""
        return np.array([INDEX[name] for name in self.predicates])

    def begin(self, blocks: NDArray[np.float32], given: Given = NOTHING) -> RelationMoment:
        """Begin episodes from blocks (B, n_uniform) of uniform numbers.

        Where the goal alone is given, the scene is one of its first predicate's; where the start alone is given, the
        predicate is drawn from those that do not hold. Where both are given, nothing else is drawn.

        Args:
            given: goals (B, 77).

        Raises:
            RoomError: a goal is given that requires nothing.
            RuntimeError: every scene that a block offers begins achieved, or all predicates hold in a given one.
        """
        numbers = np.ascontiguousarray(blocks, np.float64).view(BLOCK)[:, 0]
        if given.achieved is None:
            which = self.indices[_choice(numbers["predicate"], len(self.indices))]
        else:
            scenes, observers = (part.astype(np.float32) for part in goals.state(given.achieved))
            which = self._missing(numbers["predicate"], goals.margins(scenes, observers) > 0)
        required = np.arange(len(PREDICATES)) == which[:, None]
        if given.desired is not None:
            required = goals.required(given.desired)
            if not required.any(axis=1).all():
                raise RoomError("a given goal requires nothing; accepted are goals that require a predicate")
            which = required.argmax(axis=1)
        if given.achieved is None:
            scenes, observers = self._scenes(which, numbers["scenes"])
        return judged(scenes, observers, required)

    def _missing(self, numbers: NDArray[np.float64], holds: Flags) -> NDArray[np.int64]:
        """A predicate for each scene (B,) among those that do not hold in it (B, 30)."""
        free = ~holds[:, self.indices]
        if not free.any(axis=1).all():
            raise RuntimeError(f"a given scene begins achieved: all of {', '.join(self.predicates)} hold in it")
        rank = _choice(numbers, free.sum(axis=1))
        return self.indices[(free.cumsum(axis=1) > rank[:, None]).argmax(axis=1)]

    def _scenes(self, which: NDArray[np.int64], numbers: NDArray[np.void]) -> tuple[NDArray[np.float32], ...]:
        """Scenes (B, 2, 19) and observers (B, 9) in which predicates (B,) do not hold, from numbers (B, TRIES)."""
        scenes = np.empty((len(which), 2, scene.N_FEATURES), np.float32)
        observers = np.empty((len(which), scene.N_OBSERVER), np.float32)
        rows = np.arange(len(which))
        for offer in range(TRIES):
            scenes[rows], observers[rows] = make(which[rows], numbers[rows, offer])
            rows = rows[~_begins(which[rows], scenes[rows], observers[rows])]
            if not len(rows):
                return scenes, observers
        raise RuntimeError(f"each of {TRIES} scenes drawn for {PREDICATES[which[rows[0]]]!r} begins achieved")


def _begins(which: NDArray[np.int64], scenes: NDArray[np.float32], observers: NDArray[np.float32]) -> Flags:
    """Whether an episode may begin so: no overlap, and the predicate does not hold."""
    margin = predicates.margin_of(which, scenes.astype(np.float64), observers.astype(np.float64))
    return clear(scenes) & (margin <= 0)


def make(which: NDArray[np.int64], numbers: NDArray[np.void]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Make scenes (B, 2, 19) and observers (B, 9) for predicates (B,) from ``SCENE`` numbers (B,); not certified."""
    scenes = np.empty((len(which), 2, scene.N_FEATURES), np.float32)
    observers = np.empty((len(which), scene.N_OBSERVER), np.float32)
    for index in np.unique(which):
        rows = np.flatnonzero(which == index)
        scenes[rows], observers[rows] = _make(_CASTS[index], numbers[rows])
    return scenes, observers


def _make(cast: Cast, numbers: NDArray[np.void]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scenes and observers of one cast."""
    still = _object(cast, numbers)
    moved = fitted(_subject(cast, still, numbers))
    away = _direction(numbers["eye_direction"]) * _between(EYE_DISTANCE, numbers["eye_distance"])[:, None]
    height = _between(EYE_HEIGHT, numbers["eye_height"])
    eye = np.concatenate([still[:, FLOOR] + away, height[:, None]], axis=-1)
    target = (moved[:, CENTER] + still[:, CENTER]) / 2
    return np.stack([moved, still], axis=1), scene.observers(eye, target)


def _object(cast: Cast, numbers: NDArray[np.void]) -> NDArray[np.float64]:
    """The objects (B, 19) that stay: about the room's middle, on the floor or hanging."""
    kinds = _kinds(cast.objects, numbers["object_kind"])
    half = _halves(kinds, numbers["object_half"], None, cast.object_height)
    place = _between((-MIDDLE, MIDDLE), numbers["place"])
    height = _between(cast.hangs, numbers["hang"]) + half[:, 2]
    turn = scene.yaw_rotation(360 * numbers["object_turn"])
    return scene.objects(np.concatenate([place, height[:, None]], axis=-1), turn, half, kinds)


def _subject(cast: Cast, still: NDArray[Any], numbers: NDArray[np.void]) -> NDArray[np.float64]:
    """The subjects (B, 19): about the object, or in its cavity."""
    kinds, still_half = _kinds(cast.subjects, numbers["subject_kind"]), still[:, HALF]
    half = _halves(kinds, numbers["subject_half"], _widths(cast, still_half), cast.height)
    if cast.start == WITHIN:
        floor = still[:, HEIGHT] + (2 * WALL - 1) * still_half[:, 2]
        center = still[:, CENTER].copy()
        center[:, 2] = floor + half[:, 2] + INTO
    else:
        radii = [np.hypot(x[:, 0], x[:, 1]) for x in (half, still_half)]
        distance = radii[0] + radii[1] + _between(GAPS[cast.start], numbers["gap"])
        across = still[:, FLOOR] + _direction(numbers["direction"]) * distance[:, None]
        lower = np.where(numbers["lifted"] < 0.5, 0.0, _between(LIFTED, numbers["lift"]))
        center = np.concatenate([across, (lower + half[:, 2])[:, None]], axis=-1)
    return scene.objects(center, scene.yaw_rotation(360 * numbers["subject_turn"]), half, kinds)


def _widths(cast: Cast, still_half: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Lowest and highest half width of the subjects, (B,) each, where they depend on the object."""
    if cast.width is None:
        return None
    whole = still_half[:, :2].max(axis=1) if cast.of_wider else still_half[:, :2].min(axis=1)
    of = whole * INNER if cast.hollow else whole
    return cast.width[0] * of, cast.width[1] * of


def _halves(
    kinds: NDArray[np.int64],
    numbers: NDArray[np.float64],
    widths: tuple[NDArray[Any], NDArray[Any]] | None,
    height: Range | None,
) -> NDArray[np.float64]:
    """Half sizes (B, 3) of shapes (B,) from numbers (B, 3), within their own ranges or those that are given."""
    low, high = _LOW[kinds].copy(), _HIGH[kinds].copy()
    if widths is not None:
        low[:, :2], high[:, :2] = widths[0][:, None], widths[1][:, None]
    if height is not None:
        low[:, 2], high[:, 2] = height
    return low + (high - low) * numbers


def _kinds(names: tuple[str, ...], numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.array([KIND_NAMES.index(name) for name in names])[_choice(numbers, len(names))]


def _choice(numbers: NDArray[np.float64], n: Any) -> NDArray[np.int64]:
    """Uniform numbers in [0, 1) as ints below n."""
    return np.minimum((numbers * n).astype(np.int64), n - 1)


def _between(bounds: Range, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return bounds[0] + (bounds[1] - bounds[0]) * numbers


def _direction(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unit vectors (B, 2) of shares of a circle (B,)."""
    return np.stack([np.cos(2 * np.pi * numbers), np.sin(2 * np.pi * numbers)], axis=-1)
