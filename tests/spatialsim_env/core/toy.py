"""A world of one number: a point is moved until it lies on another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from spatialsim_env.core.judges import Array, Rows
from spatialsim_env.core.world import NOTHING, ActionError, Given, World

PLACES = spaces.Box(0, 10, (1,))


@dataclass(frozen=True)
class LineMoment(Rows):
    achieved: Array  # (B, 1) places of the point
    desired: Array  # (B, 1) places where it is to lie
    state = property(lambda self: self.achieved)
    shown = property(lambda self: (self.achieved, self.desired))
    distance = property(lambda self: np.abs(self.achieved - self.desired).astype(np.float64)[:, 0] / 0.5)


class LineEpisodes:
    n_uniform = 2

    def begin(self, blocks: Array, given: Given = NOTHING) -> LineMoment:
        known = next((x for x in (given.desired, given.achieved) if x is not None), 10 * blocks[:, 1:])
        aside = np.float32(np.where(known > 5, 0, 6) + 4 * blocks[:, :1])  # never achieved
        desired = aside if given.desired is None and given.achieved is not None else known
        return LineMoment(aside if given.achieved is None else given.achieved, desired)


class LineDynamics:
    action_space = spaces.Box(-1, 1, (1,))

    def step(self, states: Array, actions: Any) -> Array:
        if np.shape(actions) != states.shape or not np.isfinite(actions).all():
            raise ActionError(f"actions are {actions!r}; accepted are finite numbers (B, 1)")
        return np.clip(states + np.asarray(actions, np.float32), 0, 10)


class LineTruth:
    name = world = "line"
    threshold, shaped_threshold, fixed_goal = np.float64(-1), -1.0, None
    asked = staticmethod(lambda question: question if hasattr(question, "distance") else LineMoment(*question._parts()))
    moved = staticmethod(lambda now, state: LineMoment(state, now.desired))
    score = shaped = staticmethod(lambda question: -LineTruth.asked(question).distance)
    achieved = staticmethod(lambda question: LineTruth.score(question) >= -1)


class LineGoals:
    space = spaces.Dict(dict.fromkeys(("observation", "achieved_goal", "desired_goal"), PLACES))
    question = staticmethod(LineMoment)
    relabel = staticmethod(lambda later, rng: later.astype(np.float32))

    def observe(self, now: LineMoment) -> dict[str, Array]:
        places = {"observation": now.achieved, "achieved_goal": now.achieved, "desired_goal": now.desired}
        return {name: array.copy() for name, array in places.items()}

    batch = staticmethod(lambda goals, name="goals": (np.atleast_2d(goals), np.ndim(goals) == 2))

    def check(self, achieved: Array, desired: Array) -> None:
        if achieved.shape != desired.shape or not np.isfinite([achieved, desired]).all():
            raise ValueError("numbers that are not finite")


class LineViewer(NamedTuple):
    mode: str
    fps: int
    is_open = property(lambda self: False)
    close = staticmethod(lambda: None)
    show = staticmethod(lambda now, achieved, step: np.full((8, 8, 3), 25 * now.achieved[0, 0], np.uint8))


def world() -> World[LineMoment]:
    return World("line", LineEpisodes(), LineDynamics(), LineTruth(), LineGoals(), LineViewer)
