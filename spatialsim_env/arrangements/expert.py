"""The scripted expert: every object goes to its place in the goal, with as few actions as the rules allow.

The goal is a scene under an unknown similarity. Its scale is fixed by what no action changes, the sizes; its angle
and translation are free, and among those that keep every place inside the arena the expert takes the ones that need
the fewest actions. Objects are turned where that is possible and counts; where it is not, their orientations fix the
angle. Matching and scale are the truth's own (``goals.py``), the actions those of ``dynamics.py``.

The angles that are tried are those that leave some object unturned and 64 around the circle; the translations of
``move_all`` are the best there are, those of ``discrete`` the best on the lattice of its steps, those of
``pick_place`` the ones that leave some object where it is. The expert keeps nothing between steps: it plans anew from
the two scenes, and what it still has to do is one action less each time, because the plan it follows stays among
those it tries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spatialsim_env.arrangements.alignment import OK, Alignment
from spatialsim_env.arrangements.dynamics import MAX_MOVE, MODES, SceneDynamics
from spatialsim_env.arrangements.goals import Criterion
from spatialsim_env.arrangements.scene import ARENA, N_FEATURES, ORIENTATION, POSITION, TURN, SceneError

ANGLES = 64  # tried around the circle
SLACK = 1e-3  # units and radians, an error that is not worth an action
REACH = 0.7  # of a tolerance: an error that discrete steps leave on one axis, so that both together are within it

_MOVE_ALL, _PICK_PLACE, _DISCRETE = range(3)
_TURNED, _FREE, _FIXED = range(3)  # orientations count and can be changed; do not count; cannot be changed
_X, _Y = POSITION.start, POSITION.start + 1
_OUTSIDE = 1e6  # actions that a unit outside the arena is worth
_compiled = njit(cache=True, error_model="numpy")


class _Rules(NamedTuple):
    """What one action does and how near is near enough, as numbers for the kernels."""

    turning: int  # _TURNED, _FREE or _FIXED
    mode: int  # index in MODES
    max_move: float  # units
    max_turn: float  # radians, 0 if objects cannot be turned
    reach: float  # units
    turn_reach: float  # radians


@dataclass(frozen=True)
class Expert:
    """A policy for one set of rules and one criterion; a pure function of batches of scenes.

    A goal that counts orientations as ``visual`` is reached as ``number``, which implies it.
    """

    dynamics: SceneDynamics
    criterion: Criterion = field(default_factory=Criterion)
    name = "expert"

    def __call__(self, achieved: NDArray[Any], desired: NDArray[Any], rng: Any = None) -> NDArray[Any]:
        """One action for each pair of scenes: (B, n_max, 10), (B, n_max, 10) -> (B, ...) of the action space.

        An object that is in its place stays there. ``discrete`` has no action that does nothing, unless there is
        padding: when nothing is left to do, or the goal is reached, the action is the one after which the truth's
        distance is least.

        Args:
            achieved: scenes in the arena.
            desired: their goals; a goal of other objects is not walked to.
            rng: not used; policies of rollouts are given one.

        Raises:
            SceneError: scenes of another shape.
        """
        ways, left = self.plan(achieved, desired)
        if self.dynamics.mode == "move_all":
            return self._move_all(ways)
        if self.dynamics.mode == "pick_place":
            return self._pick_place(achieved, ways)
        actions = self._discrete(ways)
        settled = np.flatnonzero((left == 0) | (self.criterion.align(achieved, desired).distance <= 1))
        if len(settled):
            actions[settled] = self._least_distance(achieved[settled], desired[settled])
        return actions

    def plan(self, achieved: NDArray[Any], desired: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """What is left to do.

        Returns:
            (B, n_max, 3) the way of each object to its place: x and y (units), turn (radians); whole steps in
            ``discrete``. (B,) actions that takes.

        Raises:
            SceneError: scenes of another shape.
        """
        for name, scenes in (("achieved", achieved), ("desired", desired)):
            if scenes.shape != (len(achieved), self.dynamics.n_max, N_FEATURES):
                raise SceneError(
                    f"{name} has shape {scenes.shape}; accepted is {(len(achieved), self.dynamics.n_max, N_FEATURES)}"
                )
        known = self._known(achieved, desired)
        ways, left = np.zeros((*achieved.shape[:2], 3)), np.zeros(len(achieved), np.int64)
        pair = achieved.astype(np.float64), desired.astype(np.float64)
        _plan_pairs(*pair, np.flatnonzero(known.status == OK), tuple(known), tuple(self._rules()), ways, left)
        return ways, left

    def _rules(self) -> _Rules:
        mode, tolerances = self.dynamics.mode, self.criterion.tolerances
        return _Rules(
            turning=self._turning,
            mode=MODES.index(mode),
            max_move=MAX_MOVE[mode],
            max_turn=self.dynamics.max_turn,
            reach=REACH * tolerances.position,
            turn_reach=REACH * tolerances.orientation,
        )

    @property
    def _turning(self) -> int:
        if self.criterion.name == "positions":
            return _FREE
        return _TURNED if self.dynamics.max_turn > 0 else _FIXED

    def _known(self, achieved: NDArray[Any], desired: NDArray[Any]) -> Alignment:
        """Matching, scale and angle by what no action changes: the truth about both scenes gathered on one point."""
        scenes = [np.array(part, np.float64) for part in (achieved, desired)]
        for part in scenes:
            part[..., POSITION] = 0
            if self._turning != _FIXED:
                part[..., ORIENTATION] = 0
        return Criterion("similarity", self.criterion.tolerances).align(*scenes)

    def _move_all(self, ways: NDArray[np.float64]) -> NDArray[np.float32]:
        used = 3 if self.dynamics.max_turn > 0 else 2
        moves = self._in_actions(np.where(np.abs(ways) > SLACK, ways, 0))[..., :used]
        return np.clip(moves, -1, 1).reshape(len(ways), -1).astype(np.float32)

    def _pick_place(self, achieved: NDArray[Any], ways: NDArray[np.float64]) -> NDArray[np.float32]:
        """The object with the most left to do, whatever its row; of objects on one point the rules take the first."""
        batch = np.arange(len(ways))
        farthest = np.abs(self._in_actions(ways)).max(axis=-1).argmax(axis=1)
        places = achieved[..., POSITION]
        taken = (places == places[batch, farthest][:, None]).all(axis=-1).argmax(axis=1)
        way = self._in_actions(ways[batch, taken])
        used = 3 if self.dynamics.max_turn > 0 else 2
        point = places[batch, taken] / ARENA * 2 - 1
        return np.clip(np.concatenate([point, way[:, :used]], axis=1), -1, 1).astype(np.float32)

    def _discrete(self, ways: NDArray[np.float64]) -> NDArray[np.int64]:
        """A step of what has the most steps left, whatever the object's row."""
        batch = np.arange(len(ways))
        object_, axis = np.divmod(np.abs(self._in_actions(ways)).reshape(len(ways), -1).argmax(axis=1), 3)
        return np.stack([object_, 2 * axis + (ways[batch, object_, axis] < 0)], axis=1)

    def _in_actions(self, ways: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ways (..., 3) in units of what one action does."""
        unit = MAX_MOVE[self.dynamics.mode]
        return ways / np.array([unit, unit, self.dynamics.max_turn or np.inf])

    def _least_distance(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.int64]:
        choices = np.stack([x.ravel() for x in np.indices(self.dynamics.action_space.nvec)], axis=1)  # type: ignore[attr-defined]
        after = self.dynamics.step(np.repeat(achieved, len(choices), axis=0), np.tile(choices, (len(achieved), 1)))
        distance = self.criterion.align(after, np.repeat(desired, len(choices), axis=0)).distance
        return choices[distance.reshape(len(achieved), len(choices)).argmin(axis=1)]


@_compiled
def _plan_pairs(achieved: Any, desired: Any, pairs: Any, known: Any, rules: Any, ways: Any, left: Any) -> None:
    """Write the ways and the number of actions of these pairs; ``known`` and ``rules`` are fields of their types."""
    known, rules = Alignment(*known), _Rules(*rules)
    for b in pairs:
        rows = np.flatnonzero(known.matching[b] >= 0)
        a, g = achieved[b][rows], desired[b][known.matching[b][rows]]
        fewest, best = _plan(a, g, known.scale[b], known.angle[b], rules)
        if fewest < np.inf:
            left[b] = int(fewest % _OUTSIDE)
            for k in range(len(rows)):
                ways[b, rows[k]] = best[k]


@_compiled
def _plan(a: Any, g: Any, scale: float, angle: float, rules: Any) -> Any:
    """Fewest actions for matched objects over all angles and translations, and the way of each object, (m, 3).

    With p object k's position, q that of its goal, s the scale, and R the turn by the angle that is tried, its way is
    s R q + t - p; each mode of acting chooses its own translation t.
    """
    m = len(a)
    here, goal, turned = np.empty((m, 2)), np.empty((m, 2)), np.empty(m)
    for k in range(m):
        here[k, 0], here[k, 1], goal[k, 0], goal[k, 1] = a[k, _X], a[k, _Y], scale * g[k, _X], scale * g[k, _Y]
        turned[k] = a[k, ORIENTATION] - g[k, ORIENTATION]
    way, best, fewest = np.zeros((m, 3)), np.zeros((m, 3)), np.inf
    for theta in _angles(turned, angle, rules.turning):
        cosine, sine = np.cos(theta), np.sin(theta)
        for k in range(m):
            way[k, 0] = cosine * goal[k, 0] - sine * goal[k, 1] - here[k, 0]
            way[k, 1] = sine * goal[k, 0] + cosine * goal[k, 1] - here[k, 1]
            turn = theta - turned[k] if rules.turning == _TURNED else 0.0
            way[k, 2] = turn - TURN * np.floor(turn / TURN + 0.5)
        if rules.mode == _MOVE_ALL:
            actions = _together(here, way, rules)
        elif rules.mode == _PICK_PLACE:
            actions = _one_by_one(here, way, rules)
        else:
            actions = _in_steps(here, way, rules, fewest)
        if actions < fewest:
            fewest, best[:] = actions, way
    return fewest, best


@_compiled
def _angles(turned: Any, angle: float, turning: int) -> Any:
    """Angles of the goal to try, those that leave objects as they are first: without need nothing is turned."""
    first = turned if turning == _TURNED else np.array([angle])
    if turning == _FIXED:
        return first
    return np.concatenate((first, np.arange(ANGLES) * (TURN / ANGLES)))


@_compiled
def _actions(way: float, unit: float) -> float:
    return np.ceil((abs(way) - SLACK) / unit) if abs(way) > SLACK else 0.0


@_compiled
def _inside(here: Any, way: Any, axis: int, shift: float) -> Any:
    """The shift of all places nearest to the wanted one that keeps them in the arena, and how far out they stay."""
    low, high = np.inf, -np.inf
    for k in range(len(way)):
        low, high = min(low, here[k, axis] + way[k, axis]), max(high, here[k, axis] + way[k, axis])
    outside = max(high - low - ARENA, 0.0)
    if outside > 0:
        return (ARENA - low - high) / 2, outside
    return min(max(shift, -low), ARENA - high), outside


@_compiled
def _together(here: Any, way: Any, rules: Any) -> float:
    """Actions when every action serves all objects; shifts the ways so that the longest is least."""
    most = 0.0
    outside = 0.0
    for axis in range(2):
        shift, beyond = _inside(here, way, axis, -(way[:, axis].min() + way[:, axis].max()) / 2)
        outside += beyond
        for k in range(len(way)):
            way[k, axis] += shift
            most = max(most, _actions(way[k, axis], rules.max_move))
    for k in range(len(way)):
        most = max(most, _actions(way[k, 2], rules.max_turn))
    return most + np.ceil(outside) * _OUTSIDE


@_compiled
def _one_by_one(here: Any, way: Any, rules: Any) -> float:
    """Actions when each serves one object, in all coordinates; shifts the ways so that some object may stay."""
    m = len(way)
    fewest, chosen = np.inf, (0.0, 0.0)
    for c in range(m + 1):
        if c < m:
            wanted = (-way[c, 0], -way[c, 1])
        else:
            wanted = (-np.sort(way[:, 0])[(m - 1) // 2], -np.sort(way[:, 1])[(m - 1) // 2])
        x, beyond_x = _inside(here, way, 0, wanted[0])
        y, beyond_y = _inside(here, way, 1, wanted[1])
        total = np.ceil(beyond_x + beyond_y) * _OUTSIDE
        for k in range(m):
            move = max(_actions(way[k, 0] + x, rules.max_move), _actions(way[k, 1] + y, rules.max_move))
            total += max(move, _actions(way[k, 2], rules.max_turn))
        if total < fewest:
            fewest, chosen = total, (x, y)
    way[:, 0] += chosen[0]
    way[:, 1] += chosen[1]
    return fewest


@_compiled
def _in_steps(here: Any, way: Any, rules: Any, fewest: float) -> float:
    """Actions when each is one step of one object on one axis; makes the ways whole steps. inf: not below fewest."""
    total, unit, max_turn = 0.0, rules.max_move, rules.max_turn
    for k in range(len(way)):
        steps = _steps(way[k, 2], max_turn, max(rules.turn_reach, max_turn / 2)) if max_turn > 0 else 0.0
        way[k, 2] = steps * max_turn
        total += abs(steps)
    reach = max(rules.reach, unit / 2)
    second = _least(way[:, 1], unit, reach)
    if total + _least(way[:, 0], unit, reach) + second >= fewest:
        return np.inf
    total += _lattice(here[:, 0], way[:, 0], unit, reach, fewest - total - second)
    return total + _lattice(here[:, 1], way[:, 1], unit, reach, fewest - total)


@_compiled
def _least(way: Any, unit: float, reach: float) -> float:
    """A bound from below of the steps of one axis, whatever the translation."""
    middle = np.sort(way)[len(way) // 2]
    return (np.abs(way - middle).sum() - reach * len(way)) / unit


@_compiled
def _steps(way: float, unit: float, reach: float) -> float:
    """Whole steps, as few as bring a way within reach."""
    return np.sign(way) * np.ceil(max(abs(way) - reach - 1e-9, 0.0) / unit)


@_compiled
def _lattice(here: Any, way: Any, unit: float, reach: float, fewest: float) -> float:
    """Fewest steps of one axis over all translations; makes the ways whole steps. inf: none below ``fewest``.

    The number of steps changes only where some object comes within reach, so those translations are tried. What is
    left over must be within reach of its own mean, because the truth's similarity takes the mean away.
    """
    m = len(way)
    steps, best, least, total = np.empty(m), np.empty(m), np.inf, np.inf
    lowest, highest = -(here + way).min() - reach, ARENA - (here + way).max() + reach
    for c in range(m):
        for side in (-reach, reach):
            start = side - way[c]
            for i in range(int(np.ceil((lowest - start) / unit)), int(np.floor((highest - start) / unit)) + 1):
                count, mean = _stepped(here, way, start + i * unit, unit, reach, min(total, fewest), steps)
                if not (count < fewest and count <= total):
                    continue
                worst = 0.0
                for k in range(m):
                    worst = max(worst, abs(way[k] - steps[k] * unit - mean))
                if worst <= reach + 1e-6 and (count < total or worst < least):
                    total, least = count, worst
                    best[:] = steps
    if total < np.inf:
        way[:] = best * unit
    return total


@_compiled
def _stepped(here: Any, way: Any, shift: float, unit: float, reach: float, most: float, steps: Any) -> Any:
    """Number of steps of one axis under a translation, and the mean of what is left over; writes the steps.

    inf: more than ``most``, or some object would leave the arena.
    """
    count, mean = 0.0, 0.0
    for k in range(len(way)):
        steps[k] = _steps(way[k] + shift, unit, reach)
        count += abs(steps[k])
        mean += (way[k] - steps[k] * unit) / len(way)
        place = here[k] + steps[k] * unit
        if not (-1e-6 <= place <= ARENA + 1e-6 and count <= most):
            return np.inf, mean
    return count, mean
