"""Minimally contrastive pairs: a scene in which a predicate holds, and the same scene after one movement.

As in Rel3D (section 3), one of the two objects is moved or turned along one axis until the predicate fails; cameras,
categories and sizes stay. The six axes are the shifts along the world's x, y and z and the turns about the moved
object's own front, left and up, through its centre (``AXES``). Either direction is tried and the lesser movement kept.

Every pair is held to this:
- the predicate's margin is at least m before and at most -m after, m = ``Demands.margin``, seen from all views;
- the solids do not penetrate each other, nor the floor, walls or ceiling, before and after;
- before, whatever does not fly stands on the floor, on the other object, or leans on it. After, it does wherever some
  axis allows; where none does, the moved object is held where the movement left it, and the pair says so. (People who
  made Rel3D could turn gravity off for an object.)
- the other 29 predicates keep their truth, but those that the queried one shares a clause with (``RELATED``), without
  which no movement could make a difference. How many changed is kept with the pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import boxes
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.scene import OBJECT, ROOM, SUBJECT, Floats, RoomError
from spatialsim_env.relations.vocabulary import DIRECTIONAL, INDEX, OBSERVER, PREDICATES, frame, relative

Array = NDArray[np.float64]
Measure = Callable[[NDArray[np.int64], Array], tuple[Array, Array]]  # (rows, amounts) to margins and scenes after

AXES = ("x", "y", "z", "about front", "about left", "about up")
N_SHIFTS = 3
FARTHEST = 3.0  # metres of a shift
SEARCHED = 24  # steps along an axis in which a flip is looked for
BISECTIONS = 20
NUDGES = 1e-3 * 1.35 ** np.arange(24)  # metres past the flip that are tried, up to 1 m; radians for turns
DEEPEST = 0.002  # metres of penetration that are accepted, an order below the contact tolerance
RESTING = 0.006  # metres from the ground that still count as standing on it
UPRIGHT = float(np.cos(np.radians(2.0)))  # of the angle between an axis and the vertical

_SHIFTS = 0.005 * (FARTHEST / 0.005) ** np.linspace(0, 1, SEARCHED)
_TURNS = np.linspace(0, np.pi, SEARCHED + 1)[1:]


@dataclass(frozen=True)
class Demands:
    """Conditions that pairs must satisfy."""

    margin: float = 0.2  # least |margin| of both members
    unrelated: int = 0  # most predicates outside RELATED that change their truth

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1:
            raise RoomError(f"margin is {self.margin}; accepted is more than 0 and less than 1")


@dataclass(frozen=True, eq=False)
class ContrastivePairs:
    """Columns over n pairs."""

    holds: Array  # (n, 2, 19), scenes in which the predicate holds
    fails: Array  # (n, 2, 19), after the movement
    mover: NDArray[np.int64]  # (n,), SUBJECT or OBJECT
    axis: NDArray[np.int64]  # (n,), index in AXES
    amount: Array  # (n,), metres or radians, signed
    flip: Array  # (n,), the amount at which the margin is 0
    margins: Array  # (n, 2), of holds and fails; of several views the one nearest to 0
    changed: NDArray[np.bool_]  # (n, 30), which other predicates changed their truth
    held: NDArray[np.bool_]  # (n,), whether something hangs in the air after the movement that does not fly

    def __len__(self) -> int:
        return len(self.mover)

    def __getitem__(self, rows: NDArray[np.int64] | slice) -> ContrastivePairs:
        return ContrastivePairs(*(getattr(self, field.name)[rows] for field in fields(self)))


def _relate() -> dict[str, tuple[str, ...]]:
    """Predicates whose rules share a clause with each one's."""
    contact = ("touching", "near", "on", "on top of", "in", "leaning against", "covering")
    vertical = ("on", "on top of", "over", "under", "below", "covering")
    within = ("in", "inside", "outside", "around", "passing through", "touching", "near")
    groups = {
        **dict.fromkeys(("on", "on top of", "covering"), contact + vertical),
        **dict.fromkeys(("over", "under", "below"), contact + vertical),
        **dict.fromkeys(("in", "inside", "outside", "around", "passing through"), (*within, *contact, *vertical)),
        **dict.fromkeys(("touching", "leaning against"), contact),
        "near": ("touching", "far from"),
        "far from": ("near",),
        "faces towards": ("points towards",),  # of a stick the front is the tip
        "faces away": ("points away",),
        "points towards": ("faces towards",),
        "points away": ("faces away",),
    }
    seen = tuple(relative(name) for name in DIRECTIONAL)
    return {**groups, **dict.fromkeys(DIRECTIONAL, DIRECTIONAL), **dict.fromkeys(seen, seen)}


def relatives(predicate: str) -> NDArray[np.bool_]:
    """Mask (30,) of the predicates that may change with this one."""
    out = np.zeros(len(PREDICATES), bool)
    for name in (predicate, *RELATED.get(predicate, ())):
        out[INDEX[name]] = True
    return out


RELATED = _relate()


def move(scenes: Floats, mover: NDArray[np.int64], axis: NDArray[np.int64], amount: Floats) -> Array:
    """Scenes (n, 2, 19) after object ``mover`` (n,) went ``amount`` (n,) along ``axis`` (n,), an index in AXES.

    Metres along the world's x, y, z; radians, right-handed, about the object's own front, left, up.
    """
    out = np.array(scenes, np.float64)
    rows = np.arange(len(out))
    thing = out[rows, mover]
    shifts = axis < N_SHIFTS
    step = np.zeros((len(out), 3))
    step[rows, axis % N_SHIFTS] = np.where(shifts, amount, 0.0)
    thing[:, scene.CENTER] += step
    angle = np.where(shifts, 0.0, amount)
    cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
    front, left, up = np.moveaxis(scene.rotation(thing), -1, 0)
    about = (axis % N_SHIFTS)[:, None]
    thing[:, scene.FRONT] = np.where(
        about == 0, front, np.where(about == 1, cosine * front - sine * up, cosine * front + sine * left)
    )
    thing[:, scene.UP] = np.where(
        about == 0, cosine * up - sine * left, np.where(about == 1, cosine * up + sine * front, up)
    )
    turned = np.where(shifts[:, None], out[rows, mover], thing)
    turned[:, scene.CENTER] = thing[:, scene.CENTER]
    out[rows, mover] = turned
    return out


def is_allowed(scenes: Floats) -> NDArray[np.bool_]:
    """Mask of the scenes (n,) with both objects in the room that penetrate each other by no more than ``DEEPEST``."""
    corners = scene.corners(scenes)
    inside = (np.abs(corners[..., :2]) <= ROOM[:2]).all(axis=(1, 2, 3))
    inside &= (corners[..., 2] <= ROOM[2]).all(axis=(1, 2)) & (corners[..., 2] >= -1e-9).all(axis=(1, 2))
    out = np.zeros(len(scenes), bool)
    out[inside] = boxes.penetration(scenes[inside]) <= DEEPEST
    return out


def is_supported(scenes: Floats, flies: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask of the objects (n, 2) that fly, stand on the floor or on the other one, or lean on it.

    An object stands on the floor if its lowest point is there and one of its axes is upright; it leans if that point
    is on the floor and it touches the other. It stands on the other one if an axis is upright, they touch, its lowest
    point is above the other's and its centre is over the other's footprint.
    """
    touch = boxes.gap(scenes) <= RESTING
    out = np.array(flies, bool)
    for which in (SUBJECT, OBJECT):
        thing, other = scenes[:, which], scenes[:, 1 - which]
        low = boxes.bottom(thing)
        upright = np.abs(scene.rotation(thing)[:, 2]).max(axis=-1) >= UPRIGHT
        over = boxes.centrality(thing[:, scene.CENTER], other) > 0
        on_floor = (low <= RESTING) & (upright | touch)
        out[:, which] |= on_floor | (upright & touch & over & (low > boxes.bottom(other) + RESTING))
    return out


def margin(predicate: str, scenes: Floats, observers: Floats, worst: str) -> Array:
    """Margins (n,) of scenes (n, 2, 19): of observers (n, views, 9) the least ("least") or greatest ("most")."""
    rule = predicates.REGISTRY[predicate]
    if frame(predicate) != OBSERVER:
        return rule.margin(scenes)
    views = np.stack([rule.margin(scenes, observers[:, view]) for view in range(observers.shape[1])], axis=-1)
    return views.min(axis=-1) if worst == "least" else views.max(axis=-1)


def truth(scenes: Floats, observers: Floats) -> NDArray[np.bool_]:
    """Mask of the predicates that hold, (n, views, 30), of scenes (n, 2, 19) for observers (n, views, 9)."""
    out = np.empty((*observers.shape[:2], len(PREDICATES)), bool)
    out[:] = (predicates.margins(scenes, observers[:, 0]) > 0)[:, None]
    names = [name for name in PREDICATES if frame(name) == OBSERVER]
    columns = [INDEX[name] for name in names]
    for view in range(1, observers.shape[1]):
        out[:, view, columns] = predicates.margins(scenes, observers[:, view], names) > 0
    return out


def is_positive(
    predicate: str, scenes: Floats, flies: NDArray[np.bool_], observers: Floats, demands: Demands
) -> NDArray[np.bool_]:
    """Mask of the scenes (n,) that are positives: margin reached, everything supported, nothing penetrating."""
    good = margin(predicate, scenes, observers, "least") >= demands.margin
    good[good] = is_allowed(scenes[good])
    good[good] = is_supported(scenes[good], flies[good]).all(axis=1)
    return good


def contrast(
    predicate: str,
    scenes: Floats,
    flies: NDArray[np.bool_],
    observers: Floats,
    demands: Demands,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], ContrastivePairs]:
    """A pair for each of the positive scenes (n, 2, 19) that has one: rows (k,), and their pairs.

    All twelve movements (object, axis) are looked at. One of those that satisfy everything is drawn, with equal
    chances; those that leave the moved object held are drawn from only where there is no other.
    ``observers`` are (n, views, 9); ``flies`` are (n, 2).
    """
    n, n_moves = len(scenes), 2 * len(AXES)
    row = np.repeat(np.arange(n), n_moves)
    movement = np.tile(np.arange(n_moves), n)
    mover, axis = movement // len(AXES), movement % len(AXES)
    flip, amount = _least_amount(predicate, scenes[row], mover, axis, observers[row], demands)
    flips = np.isfinite(amount)
    row, mover, axis = row[flips], mover[flips], axis[flips]
    flip, amount = flip[flips], amount[flips]
    after = move(scenes[row], mover, axis, amount)
    changed = _find_changes(predicate, scenes, after, row, observers)
    calm = np.flatnonzero((changed & ~relatives(predicate)).sum(axis=1) <= demands.unrelated)
    held = np.logical_or.reduce(~is_supported(after, flies[row]), axis=1)
    chance = rng.random((n, n_moves))[row, mover * len(AXES) + axis]
    order = calm[np.lexsort((chance[calm], held[calm], row[calm]))]
    rows, first = np.unique(row[order], return_index=True)
    chosen = order[first]
    margins = [
        margin(predicate, x, observers[rows], worst) for x, worst in ((scenes[rows], "least"), (after[chosen], "most"))
    ]
    result = ContrastivePairs(
        np.array(scenes[rows]), after[chosen], mover[chosen], axis[chosen], amount[chosen], flip[chosen],
        np.stack(margins, axis=-1), changed[chosen], held[chosen],
    )  # fmt: skip
    return rows, result


def _find_changes(
    predicate: str, before: Floats, after: Floats, row: NDArray[np.int64], observers: Floats
) -> NDArray[np.bool_]:
    """Mask (m, 30) of other predicates that differ, in any view, between ``before[row]`` and ``after`` (m, 2, 19)."""
    if not len(row):
        return np.zeros((0, len(PREDICATES)), bool)
    differ = (truth(before, observers)[row] != truth(after, observers[row])).any(axis=1)
    differ[:, INDEX[predicate]] = False
    return differ


def _least_amount(
    predicate: str,
    scenes: Floats,
    mover: NDArray[np.int64],
    axis: NDArray[np.int64],
    observers: Floats,
    demands: Demands,
) -> tuple[Array, Array]:
    """(flip, amount), (m,) each: signed, the lesser of both directions; infinite where there is none."""
    m = len(scenes)
    flips, amounts = np.full((2, m), np.inf), np.full((2, m), np.inf)
    for side, sign in enumerate((1.0, -1.0)):

        def measure(rows: NDArray[np.int64], amount: Array, sign: float = sign) -> tuple[Array, Array]:
            after = move(scenes[rows], mover[rows], axis[rows], sign * amount)
            return margin(predicate, after, observers[rows], "most"), after

        low, high = _bracket(measure, axis)
        rows = np.flatnonzero(np.isfinite(high))
        for _ in range(BISECTIONS):
            middle = (low[rows] + high[rows]) / 2
            past = measure(rows, middle)[0] < 0
            high[rows[past]], low[rows[~past]] = middle[past], middle[~past]
        flips[side], amounts[side] = sign * high, sign * _past(measure, high, axis, demands)
    best = np.abs(amounts).argmin(axis=0)
    return flips[best, np.arange(m)], amounts[best, np.arange(m)]


def _bracket(measure: Measure, axis: NDArray[np.int64]) -> tuple[Array, Array]:
    """Amounts (m,) each around the first flip: the predicate holds at the lower; infinite where no flip is found."""
    low, high = np.zeros(len(axis)), np.full(len(axis), np.inf)
    rows = np.arange(len(axis))
    for step in range(SEARCHED):
        amount = np.where(axis[rows] < N_SHIFTS, _SHIFTS[step], _TURNS[step])
        past = measure(rows, amount)[0] < 0
        high[rows[past]] = amount[past]
        low[rows[~past]] = amount[~past]
        rows = rows[~past]
        if not len(rows):
            break
    return low, high


def _past(measure: Measure, flip: Array, axis: NDArray[np.int64], demands: Demands) -> Array:
    """The first amounts (m,) past the flips at which the margin is low enough and the scene is allowed."""
    out = np.full(len(flip), np.inf)
    rows = np.flatnonzero(np.isfinite(flip))
    for nudge in NUDGES:
        amount = flip[rows] + nudge
        near = amount <= np.where(axis[rows] < N_SHIFTS, FARTHEST, np.pi)
        rows, amount = rows[near], amount[near]
        if not len(rows):
            break
        value, after = measure(rows, amount)
        good = value <= -demands.margin
        good[good] = is_allowed(after[good])
        out[rows[good]] = amount[good]
        rows = rows[~good]
    return out
