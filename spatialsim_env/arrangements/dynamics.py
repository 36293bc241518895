"""Transition of a scene under an action: the only copy of the rules, batched, compiled and pure.

Three action modes, all continuous ones in [-1, 1] and clipped into it; positions stay in the arena, angles are
wrapped into [0, 2 pi]. Actions that concern padding do nothing.

``move_all``    (3 n_max,): per object displacement x, y (1 = 1 unit) and turn (1 = ``max_turn``, 0.3 rad).
``pick_place``  (5,): a point of the arena (-1..1 = 0..20; the nearest object is taken), displacement x, y
                (1 = 4 units) and turn (1 = ``max_turn``, pi/2).
``discrete``    (2,) of int: object, and one of right, left, up, down by 1 unit, turn left, turn right by ``max_turn``
                (0.3 rad).

``max_turn = 0`` takes turning out of the action: (2 n_max,), (4,), and four choices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numba import njit
from numpy.typing import NDArray

from spatialsim_env.arrangements.scene import ARENA, N_FEATURES, ORIENTATION, POSITION, SHAPE, TURN
from spatialsim_env.core.world import ActionError

MODES = ("move_all", "pick_place", "discrete")
MAX_MOVE = {"move_all": 1.0, "pick_place": 4.0, "discrete": 1.0}  # units per coordinate and step
MAX_TURN = {"move_all": 0.3, "pick_place": np.pi / 2, "discrete": 0.3}  # radians per step
DIRECTIONS = ("right", "left", "up", "down", "turn left", "turn right")  # of the discrete mode

_MOVE_ALL, _PICK_PLACE, _DISCRETE = range(3)
_S, _S_END, _X, _Y = SHAPE.start, SHAPE.stop, POSITION.start, POSITION.start + 1
_compiled = njit(cache=True)


@dataclass(frozen=True)
class SceneDynamics:
    """The rules for one action mode."""

    mode: str  # one of MODES
    n_max: int  # rows of a scene
    max_turn: float  # radians per step; 0 takes turning out of the action

    @classmethod
    def of(cls, mode: str, n_max: int, max_turn: float | None = None) -> SceneDynamics:
        """Checked rules; ``max_turn=None`` takes the mode's own.

        Raises:
            ValueError: an unknown mode, or a turn outside [0, pi].
        """
        if mode not in MODES:
            raise ValueError(f"action_mode is {mode!r}; accepted are {', '.join(MODES)}")
        turn = MAX_TURN[mode] if max_turn is None else float(max_turn)
        if not 0 <= turn <= np.pi:
            raise ValueError(f"max_turn is {max_turn}; accepted are radians per step in [0, pi]")
        return cls(mode, n_max, turn)

    @property
    def action_shape(self) -> tuple[int]:
        """The shape of one action."""
        turns = self.max_turn > 0
        return ({"move_all": (2 + turns) * self.n_max, "pick_place": 4 + turns, "discrete": 2}[self.mode],)

    @property
    def choices(self) -> tuple[int, int]:
        """Numbers of choices of the discrete mode: objects, and movements of one."""
        return self.n_max, len(DIRECTIONS) if self.max_turn > 0 else 4

    @property
    def action_space(self) -> spaces.Space[Any]:
        """The action space of one environment."""
        if self.mode == "discrete":
            return spaces.MultiDiscrete([*self.choices])
        return spaces.Box(-1.0, 1.0, self.action_shape, np.float32)

    def check(self, actions: Any) -> NDArray[Any]:
        """Actions of a batch, (B, ...), as an array that ``step`` takes.

        Raises:
            ActionError: a wrong shape, numbers that are not finite, or choices that do not exist.
        """
        array = np.asarray(actions)
        if array.ndim == 0 or array.shape[1:] != self.action_shape:
            raise ActionError(f"action has shape {array.shape[1:]}; {self.mode} accepts {self.action_shape}")
        if self.mode != "discrete":
            array = np.ascontiguousarray(array, np.float64)
            if not np.isfinite(array).all():
                raise ActionError(f"action holds {array[~np.isfinite(array)][0]}; accepted are numbers in [-1, 1]")
            return array
        limits = self.choices
        if not np.issubdtype(array.dtype, np.integer):
            raise ActionError(f"action is of type {array.dtype}; discrete accepts two ints below {limits}")
        if ((array < 0) | (array >= limits)).any():
            raise ActionError(f"action is {array.tolist()}; discrete accepts ints from 0 and below {limits}")
        return np.ascontiguousarray(array, np.float64)

    def step(self, scenes: NDArray[np.float32], actions: Any) -> NDArray[np.float32]:
        """New scenes after one action each: (B, n_max, 10), (B, ...) -> (B, n_max, 10).

        Raises:
            ActionError: see ``check``; also where there is not one action for each scene of ``n_max`` rows.
        """
        checked = self.check(actions)
        out = np.array(scenes, np.float32)
        if out.shape != (len(checked), self.n_max, N_FEATURES):
            raise ActionError(
                f"{len(checked)} actions for scenes of shape {out.shape}; "
                f"accepted are scenes of shape {(len(checked), self.n_max, N_FEATURES)}"
            )
        _step(out, checked, MODES.index(self.mode), MAX_MOVE[self.mode], self.max_turn)
        return out


@_compiled
def _step(scenes: Any, actions: Any, mode: int, max_move: float, max_turn: float) -> None:
    for b in range(scenes.shape[0]):
        action = actions[b]
        if mode == _MOVE_ALL:
            width = 3 if max_turn > 0 else 2
            for i in range(scenes.shape[1]):
                part = action[width * i : width * (i + 1)]
                _apply(scenes[b, i], part[0], part[1], part[2] if max_turn > 0 else 0.0, max_move, max_turn)
        elif mode == _PICK_PLACE:
            i = _nearest(scenes[b], _to_arena(action[0]), _to_arena(action[1]))
            _apply(scenes[b, i], action[2], action[3], action[4] if max_turn > 0 else 0.0, max_move, max_turn)
        else:
            i, choice = int(action[0]), int(action[1])
            right, up = (choice == 0) - (choice == 1), (choice == 2) - (choice == 3)
            _apply(scenes[b, i], right, up, (choice == 4) - (choice == 5), max_move, max_turn)


@_compiled
def _apply(row: Any, right: float, up: float, turn: float, max_move: float, max_turn: float) -> None:
    """Move and turn one object in place."""
    total = 0.0
    for k in range(_S, _S_END):
        total += row[k]
    if total <= 0.5:
        return
    row[_X] = min(max(row[_X] + max_move * _clip(right), 0.0), ARENA)
    row[_Y] = min(max(row[_Y] + max_move * _clip(up), 0.0), ARENA)
    row[ORIENTATION] = (row[ORIENTATION] + max_turn * _clip(turn)) % TURN


@_compiled
def _clip(value: float) -> float:
    return min(max(value, -1.0), 1.0)


@_compiled
def _to_arena(value: float) -> float:
    return (_clip(value) + 1) / 2 * ARENA


@_compiled
def _nearest(scene: Any, x: float, y: float) -> int:
    """Row of the object nearest to a point; the lowest row among equals."""
    nearest, least = 0, np.inf
    for i in range(scene.shape[0]):
        total = 0.0
        for k in range(_S, _S_END):
            total += scene[i, k]
        squared = (scene[i, _X] - x) ** 2 + (scene[i, _Y] - y) ** 2
        if total > 0.5 and squared < least:
            nearest, least = i, squared
    return nearest
