"""Play an environment by hand: move objects with the mouse, turn them with keys, watch the truth's distance.

Everything the player does becomes actions of the mode ``pick_place``: a point of the arena (the object nearest to it
is taken), a displacement, a turn. A long drag takes several steps, since one moves at most 4 units.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.arrangements.dynamics import MAX_MOVE, MAX_TURN
from spatialsim_env.arrangements.scene import ARENA, N_FEATURES, POSITION, SIZE, present
from spatialsim_env.arrangements.viewer import SceneViewer

ACTION_MODE = "pick_place"
TURN_STEP = np.pi / 24  # radians that one key press or one notch of the wheel turns an object
KEY_REPEAT = (300, 50)  # milliseconds until a key that is held down repeats, and between repeats
HINT = "drag: move   Q / E: turn   N: new goal   R: restart   Esc: quit"

Point = tuple[float, float]


class Command(Enum):
    """Command of a key."""

    TURN_LEFT = "turn counter-clockwise"
    TURN_RIGHT = "turn clockwise"
    NEW_GOAL = "new goal"
    RESTART = "same goal and start again"
    QUIT = "quit"


KEYS = {
    "q": Command.TURN_LEFT,
    "e": Command.TURN_RIGHT,
    "n": Command.NEW_GOAL,
    "r": Command.RESTART,
    "escape": Command.QUIT,
}  # by pygame's names of keys

_TURNS = {Command.TURN_LEFT: TURN_STEP, Command.TURN_RIGHT: -TURN_STEP}


def action(point: ArrayLike, displacement: ArrayLike, turn: float) -> NDArray[np.float32]:
    """One action of ``pick_place``, Box(-1, 1, (5,)): in world units, the inverse of the dynamics' scaling.

    Args:
        point: of the arena, units; the nearest object is taken.
        displacement: units, at most 4 per coordinate; a longer one keeps its direction.
        turn: radians, at most pi/2 either way; a larger one is cut.
    """
    move = np.asarray(displacement) / MAX_MOVE[ACTION_MODE]
    move = move / max(1.0, np.abs(move).max())
    parts = (2 * np.asarray(point) / ARENA - 1, move, [turn / MAX_TURN[ACTION_MODE]])
    return np.clip(np.concatenate(parts), -1, 1).astype(np.float32)


class Controller:
    """From mouse and keys to actions, one at a time; holds what is asked for and not yet done.

    It sees the arena as scenes (n, 10) whose rows keep their order from step to step, and the cursor in world units.
    Of objects whose centres coincide exactly, ``pick_place`` only ever takes the first.
    """

    def __init__(self) -> None:
        self.cursor: Point | None = None  # None outside the arena's panel
        self.clear()

    def clear(self) -> None:
        """Forget all that was asked for: a new episode."""
        self._held: tuple[int, NDArray[Any]] | None = None  # row, and its centre minus the cursor
        self._last: int | None = None  # row taken or turned last
        self._targets: dict[int, NDArray[Any]] = {}  # where an object goes, units, by row
        self._turns: dict[int, float] = {}  # what is left to turn, radians, by row

    def point(self, cursor: Point | None) -> None:
        """Move the cursor; an object that is held is asked to follow, within the arena."""
        self.cursor = cursor
        if self._held is not None and cursor is not None:
            row, offset = self._held
            self._targets[row] = np.clip(offset + cursor, 0, ARENA)

    def press(self, arena: NDArray[Any]) -> None:
        """Take the object under the cursor, if there is one."""
        row = under(arena, self.cursor)
        if row is not None:
            self._held, self._last = (row, arena[row, POSITION] - self.cursor), row

    def release(self) -> None:
        """Let go; a drag that is under way still ends where it was asked to."""
        self._held = None

    def turn(self, arena: NDArray[Any], angle: float) -> None:
        """Ask for a turn, radians, of the object that is held or under the cursor, or else of the last one."""
        pointed = under(arena, self.cursor) if self._held is None else self._held[0]
        row = self._last if pointed is None else pointed
        if row is not None:
            self._last = row
            self._turns[row] = self._turns.get(row, 0.0) + angle

    def next_action(self, arena: NDArray[Any]) -> NDArray[np.float32] | None:
        """The next step towards what is asked for; None when there is nothing to do."""
        row = next(iter((*self._targets, *self._turns)), None)
        if row is None:
            return None
        position = arena[row, POSITION]
        displacement = self._targets.pop(row, position) - position
        if np.abs(displacement).max() > MAX_MOVE[ACTION_MODE]:
            self._targets[row] = position + displacement
        angle, most = self._turns.pop(row, 0.0), MAX_TURN[ACTION_MODE]
        if abs(angle) > most:
            self._turns[row] = angle - np.copysign(most, angle)
        return action(position, displacement, angle)


def under(arena: NDArray[Any], cursor: Point | None) -> int | None:
    """Row of the topmost object whose circumscribed circle holds the cursor; None when there is none."""
    if cursor is None:
        return None
    distance = np.hypot(*(arena[:, POSITION] - cursor).T)
    rows = np.flatnonzero((distance <= arena[:, SIZE]) & present(arena))
    return int(rows[-1]) if len(rows) else None


def handle(event: Any, controller: Controller, viewer: SceneViewer, arena: NDArray[Any]) -> Command | None:
    """Pass one pygame event on to the controller; returns the command if it is one that concerns the episode."""
    import pygame

    if event.type == pygame.MOUSEMOTION:
        controller.point(viewer.to_arena(event.pos))
    elif event.type == pygame.MOUSEBUTTONDOWN and event.button == pygame.BUTTON_LEFT:
        controller.point(viewer.to_arena(event.pos))
        controller.press(arena)
    elif event.type == pygame.MOUSEBUTTONUP and event.button == pygame.BUTTON_LEFT:
        controller.release()
    elif event.type == pygame.MOUSEWHEEL:
        controller.turn(arena, event.y * TURN_STEP)
    elif event.type == pygame.KEYDOWN:
        command = KEYS.get(pygame.key.name(event.key))
        if command not in _TURNS:
            return command
        controller.turn(arena, _TURNS[command])
    return None


class Game:
    """An environment, a viewer and a controller: one call of ``frame`` is one picture and at most one step."""

    def __init__(self, env: gym.Env[Any, Any], viewer: SceneViewer, seed: int | None = None) -> None:
        self.env, self.viewer, self.controller = env, viewer, Controller()
        self._seeds = np.random.default_rng(seed)
        self._events: list[Any] = []
        viewer.on_event = self._events.append
        self._new_goal()

    def _new_goal(self) -> None:
        self._seed = int(self._seeds.integers(2**31))
        self._restart()

    def _restart(self) -> None:
        self.controller.clear()
        observation, info = self.env.reset(seed=self._seed)
        self._steps = 0
        self._see(observation, info)

    def _see(self, observation: dict[str, NDArray[Any]], info: dict[str, Any]) -> None:
        self.goal = observation["desired_goal"].reshape(-1, N_FEATURES)
        self.arena = observation["achieved_goal"].reshape(-1, N_FEATURES)
        self.distance, self.achieved = info["distance"], info["is_success"]

    def frame(self) -> bool:
        """Draw, take in what the player did, and act on it; False when the player wants to leave."""
        self.viewer.draw(self.goal, self.arena, self.distance, self.achieved, self._steps)
        if not self.viewer.is_open:
            return False
        commands = [handle(event, self.controller, self.viewer, self.arena) for event in self._events]
        self._events.clear()
        if Command.QUIT in commands:
            return False
        if Command.NEW_GOAL in commands:
            self._new_goal()
        elif Command.RESTART in commands:
            self._restart()
        step = self.controller.next_action(self.arena)
        if step is not None:
            observation, _, _, _, info = self.env.step(step)
            self._steps += 1
            self._see(observation, info)
        return True


def play(
    env_id: str = "spatialsim_env:SpatialSim-Discrim-v0",
    seed: int | None = None,
    n_objects: int | tuple[int, int] | None = None,
    criterion: str = "similarity",
    fps: int = 30,
) -> None:
    """Open a window and let a person play, until Esc or the window is closed.

    Drag an object with the mouse to move it. Q and E, or the mouse wheel, turn the object under the mouse, or else the
    one taken last. N asks for a new goal, R for the same goal and start again.

    Args:
        env_id: as ``gym.make`` takes it.
        seed: of the sequence of goals; None draws one.
        n_objects: an int or (low, high); None takes the environment's own.
        criterion: of the truth, "similarity" or "positions".
        fps: frames, and steps at most, per second.

    Raises:
        ImportError: pygame-ce is not installed; RuntimeError: there is no display.
    """
    objects: dict[str, Any] = {} if n_objects is None else {"n_objects": n_objects}
    env = gym.make(env_id, action_mode=ACTION_MODE, criterion=criterion, max_episode_steps=10**9, **objects)
    viewer = SceneViewer("human", fps, HINT)
    try:
        viewer.open()
        import pygame

        pygame.key.set_repeat(*KEY_REPEAT)
        game = Game(env, viewer, seed)
        while game.frame():
            pass
    finally:
        viewer.close()
        env.close()
