"""What an action does to a scene: the only copy of the rules, batched, compiled and pure.

An action is six numbers in [-1, 1], clipped into it: displacement of the subject along the world's x, y and z (1 is
``MAX_MOVE``), and then a turn about its centre, as a rotation vector in the world's axes (1 is ``MAX_TURN``).

The subject's box stays in the room, above the floor. A motion that would bring the subject's solid into the object's,
each a union of boxes, is cut back to where they touch. For displacements that place is exact: two boxes meet at a
moment iff their shadows do on all separating axes, on each of which that is an interval of time. The axis on which
they meet last is the contact's normal; what is left of the displacement goes on without its part along the normal, so
a subject slides along what it is pushed onto, ``SLIDES`` times at most and without friction. A turn is followed in
``TURN_STEPS`` steps, and the one that goes too far is halved ``HALVINGS`` times. There is no gravity: the subject is
held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numba import njit
from numpy.typing import NDArray

from spatialsim_env.core.world import ActionError
from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry.solids import N_AXES, separating_axes, separation
from spatialsim_env.relations.scene import N_FEATURES, N_PARTS, OBJECT, PARTS, ROOM, SUBJECT

MAX_MOVE = 0.1  # metres per axis and step
MAX_TURN = 0.2  # radians about each axis and step
N_ACTION = 6
SLACK = 1e-6  # metres of overlap up to which a motion is carried out
TOUCHING = 1e-5  # metres of overlap that counts as none: with what rounding to float32 adds
SLIDES = 3  # of a displacement, the part before the first contact counted
BRIEF = 1e-6  # share of a displacement; an overlap that takes less of it is rounding
APART = 1e-7  # metres away from a contact, beside a slide along it: more than rounding takes back
TURN_STEPS = 8  # of a turn, at most 0.35 rad long
HALVINGS = 8  # of the step that goes too far

_CENTER, _FRONT, _UP, _HALF, _KIND = (
    part.start for part in (scene.CENTER, scene.FRONT, scene.UP, scene.HALF, scene.KIND)
)
_N_KINDS = len(scene.KINDS)
_LOW = np.array([-ROOM[0], -ROOM[1], 0.0])
_HIGH = np.array(ROOM)
_compiled = njit(cache=True)


@dataclass(frozen=True)
class RelationDynamics:
    """The rules, as an environment asks them."""

    action_shape = (N_ACTION,)

    @property
    def action_space(self) -> spaces.Box:
        """The action space of one environment."""
        return spaces.Box(-1.0, 1.0, self.action_shape, np.float32)

    def check(self, actions: Any) -> NDArray[np.float64]:
        """Actions of a batch, (B, 6), as an array that ``step`` takes.

        Raises:
            ActionError: a wrong shape, or numbers that are not finite.
        """
        array = np.asarray(actions)
        if array.ndim != 2 or array.shape[1:] != self.action_shape:
            raise ActionError(f"action has shape {array.shape[1:]}; accepted is {self.action_shape}")
        array = np.ascontiguousarray(array, np.float64)
        if not np.isfinite(array).all():
            raise ActionError(f"action holds {array[~np.isfinite(array)][0]}; accepted are numbers in [-1, 1]")
        return array

    def step(self, scenes: NDArray[np.float32], actions: Any) -> NDArray[np.float32]:
        """New scenes after one action each: (B, 2, 19), (B, 6) -> (B, 2, 19).

        Raises:
            ActionError: see ``check``; also where there is not one action for each scene.
        """
        checked = self.check(actions)
        out = np.array(scenes, np.float32)
        if out.shape != (len(checked), 2, N_FEATURES):
            accepted = (len(checked), 2, N_FEATURES)
            raise ActionError(f"{len(checked)} actions for scenes of shape {out.shape}; accepted is {accepted}")
        _step(out, checked)
        return out


def fitted(objects: NDArray[Any]) -> NDArray[np.float64]:
    """Objects (..., 19) moved into the room by the least displacement along its axes."""
    out = np.array(objects, np.float64)
    reach = (np.abs(scene.rotation(out)) * out[..., None, scene.HALF]).sum(axis=-1)
    out[..., scene.CENTER] = np.clip(out[..., scene.CENTER], _LOW + reach, _HIGH - reach)
    return out


def clear(scenes: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether the two solids of each scene (B, 2, 19) do not overlap, (B,)."""
    return _clear(np.ascontiguousarray(scenes, np.float64))


@_compiled
def _clear(scenes: Any) -> Any:
    out = np.empty(len(scenes), np.bool_)
    for b in range(len(scenes)):
        center, turn, parts, n = _solid(scenes[b, SUBJECT])
        still = _solid(scenes[b, OBJECT])
        out[b] = _overlap(center, turn, parts, n, still) <= TOUCHING
    return out


@_compiled
def _step(scenes: Any, actions: Any) -> None:
    for b in range(scenes.shape[0]):
        center, turn, parts, n = _solid(scenes[b, SUBJECT])
        still = _solid(scenes[b, OBJECT])
        half = scenes[b, SUBJECT, _HALF : _HALF + 3].astype(np.float64)
        allowed = max(SLACK, _overlap(center, turn, parts, n, still))
        move, about = np.zeros(3), np.zeros(3)
        for k in range(3):
            move[k] = MAX_MOVE * min(max(actions[b, k], -1.0), 1.0)
            about[k] = MAX_TURN * min(max(actions[b, 3 + k], -1.0), 1.0)
        for _ in range(SLIDES):
            way = _in_room(center + move, turn, half) - center
            share, normal = _contact(center, way, turn, parts, n, still, allowed)
            center += share * way
            if share == 1.0:
                break
            rest = (1 - share) * way
            move = rest - min((rest * normal).sum(), 0.0) * normal + APART * normal
        if np.abs(about).max() > 0:
            share = _turn_free(center, turn, half, about, parts, n, still, allowed)
            turn = _turned(turn, share * about)
            center = _in_room(center, turn, half)
            scenes[b, SUBJECT, _FRONT : _FRONT + 3] = turn[:, 0]
            scenes[b, SUBJECT, _UP : _UP + 3] = turn[:, 2]
        scenes[b, SUBJECT, _CENTER : _CENTER + 3] = center


@_compiled
def _solid(row: Any) -> Any:
    """Centre, rotation, parts (P, 2, 3) in metres along its axes, and their number, of an object (19,)."""
    center, front = row[_CENTER : _CENTER + 3].astype(np.float64), row[_FRONT : _FRONT + 3].astype(np.float64)
    up = row[_UP : _UP + 3].astype(np.float64)
    kind = row[_KIND : _KIND + _N_KINDS].argmax()
    parts = PARTS[kind].copy()
    for p in range(N_PARTS[kind]):
        for k in range(3):
            parts[p, 0, k] *= row[_HALF + k]
            parts[p, 1, k] *= row[_HALF + k]
    return center, _axes(front, up), parts, N_PARTS[kind]


@_compiled
def _axes(front: Any, up: Any) -> Any:
    """The rotation whose columns are front, left, up, of nearly perpendicular axes of nearly unit length."""
    front = front / np.sqrt((front * front).sum())
    up = up - (up * front).sum() * front
    up = up / np.sqrt((up * up).sum())
    turn = np.empty((3, 3))
    for k in range(3):
        u, v = (k + 1) % 3, (k + 2) % 3
        turn[k, 0], turn[k, 2] = front[k], up[k]
        turn[k, 1] = up[u] * front[v] - up[v] * front[u]
    return turn


@_compiled
def _in_room(center: Any, turn: Any, half: Any) -> Any:
    """The centre nearest to ``center`` with which the box is in the room."""
    out = np.empty(3)
    for k in range(3):
        reach = abs(turn[k, 0]) * half[0] + abs(turn[k, 1]) * half[1] + abs(turn[k, 2]) * half[2]
        out[k] = max(min(center[k], _HIGH[k] - reach), _LOW[k] + reach)
    return out


@_compiled
def _within(turn: Any, vector: Any) -> Any:
    """A vector of the world along the columns of a rotation."""
    out = np.empty(3)
    for k in range(3):
        out[k] = turn[0, k] * vector[0] + turn[1, k] * vector[1] + turn[2, k] * vector[2]
    return out


@_compiled
def _between(turn: Any, other: Any) -> Any:
    """The columns of one rotation along those of another, (3, 3)."""
    out = np.empty((3, 3))
    for k in range(3):
        out[:, k] = _within(other, turn[:, k])
    return out


@_compiled
def _offset(d: Any, c: Any, part: Any, other: Any) -> Any:
    """From the centre of a part of the object to that of a part of the subject, along the object's axes."""
    out = np.empty(3)
    for k in range(3):
        out[k] = d[k] - other[0, k]
        for j in range(3):
            out[k] += c[k, j] * part[0, j]
    return out


@_compiled
def _overlap(center: Any, turn: Any, parts: Any, n: int, still: Any) -> float:
    """Depth in metres by which the subject's solid is in the object's; 0 where they do not meet."""
    at, axes_of, others, m = still
    d, c = _within(axes_of, center - at), _between(turn, axes_of)
    axes = np.empty((N_AXES, 9))
    n_axes = separating_axes(c, axes)
    deepest = 0.0
    for p in range(n):
        for q in range(m):
            offset = _offset(d, c, parts[p], others[q])
            deepest = max(deepest, -separation(offset, others[q, 1], parts[p, 1], axes, n_axes))
    return deepest


@_compiled
def _contact(center: Any, move: Any, turn: Any, parts: Any, n: int, still: Any, allowed: float) -> Any:
    """The share of a displacement after which the solids first overlap by more than ``allowed``, and the normal there.

    The share is 1 if they never do. The normal is a unit vector of the world, to the subject's side.
    """
    at, axes_of, others, m = still
    d, c, way = _within(axes_of, center - at), _between(turn, axes_of), _within(axes_of, move)
    axes = np.empty((N_AXES, 9))
    n_axes = separating_axes(c, axes)
    first, normal = 1.0, np.zeros(3)
    for p in range(n):
        for q in range(m):
            offset, a, b = _offset(d, c, parts[p], others[q]), others[q, 1], parts[p, 1]
            begin, end, last = -np.inf, first, 0
            for i in range(n_axes):
                x = axes[i]
                reach = a[0] * x[3] + a[1] * x[4] + a[2] * x[5] + b[0] * x[6] + b[1] * x[7] + b[2] * x[8] - allowed
                here = offset[0] * x[0] + offset[1] * x[1] + offset[2] * x[2]
                speed = way[0] * x[0] + way[1] * x[1] + way[2] * x[2]
                if speed == 0.0:
                    if abs(here) >= reach:
                        end = -1.0
                        break
                    continue
                enter, leave = -(np.sign(speed) * reach + here) / speed, (np.sign(speed) * reach - here) / speed
                if enter > begin:
                    begin, last = enter, i
                end = min(end, leave)
                if end <= max(begin, 0.0) + BRIEF:
                    break
            if end > max(begin, 0.0) + BRIEF:
                first = max(begin, 0.0)
                normal = axes_of @ axes[last, :3]
                if (normal * move).sum() > 0:
                    normal = -normal
    return first, normal


@_compiled
def _turned(turn: Any, about: Any) -> Any:
    """A rotation after a turn by a rotation vector of the world (Rodrigues)."""
    angle = np.sqrt((about * about).sum())
    if angle == 0.0:
        return turn.copy()
    axis = about / angle
    cosine, sine = np.cos(angle), np.sin(angle)
    ends = np.empty((3, 3))
    for j in (0, 2):
        v = turn[:, j]
        along = (axis * v).sum()
        for k in range(3):
            u, w = (k + 1) % 3, (k + 2) % 3
            ends[j, k] = v[k] * cosine + (axis[u] * v[w] - axis[w] * v[u]) * sine + axis[k] * along * (1 - cosine)
    return _axes(ends[0], ends[2])


@_compiled
def _turn_free(center: Any, turn: Any, half: Any, about: Any, parts: Any, n: int, still: Any, allowed: float) -> float:
    """The share of a turn up to which the solids do not overlap by more than ``allowed``, the box kept in the room."""
    good, bad = 0.0, -1.0
    for i in range(1, TURN_STEPS + 1):
        share = i / TURN_STEPS
        after = _turned(turn, share * about)
        if _overlap(_in_room(center, after, half), after, parts, n, still) > allowed:
            bad = share
            break
        good = share
    if bad < 0:
        return 1.0
    for _ in range(HALVINGS):
        share = (good + bad) / 2
        after = _turned(turn, share * about)
        if _overlap(_in_room(center, after, half), after, parts, n, still) > allowed:
            bad = share
        else:
            good = share
    return good
