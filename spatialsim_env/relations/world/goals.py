"""Goals as flat vectors: 30 flags of the predicates, then both objects and the observer.

    FLAGS      (30,) in the order of ``vocabulary.PREDICATES``
    SCENE      (38,) the subject's and the object's row of ``scene``: box and attributes
    OBSERVER   (9,) as ``scene`` has it

Of an achieved goal the flags say what holds; of a desired one what is required, and the rest of it is ignored. A goal
is reached iff every required predicate holds for the boxes that are achieved. Which holds is computed from the boxes,
never read off the flags, and always from the float32 numbers that a goal consists of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.scene import (
    CENTER,
    EYE,
    FRONT,
    HALF,
    N_FEATURES,
    N_OBSERVER,
    ROOM,
    UP,
    RoomError,
)
from spatialsim_env.relations.vocabulary import PREDICATES

N_SCENE = 2 * N_FEATURES
N_STATE = N_SCENE + N_OBSERVER  # what is to be seen of the world
N_FLAGS = len(PREDICATES)
N_GOAL = N_FLAGS + N_STATE
FLAGS = slice(0, N_FLAGS)
SCENE = slice(N_FLAGS, N_FLAGS + N_SCENE)
OBSERVER = slice(N_FLAGS + N_SCENE, N_GOAL)
STATE = slice(N_FLAGS, N_GOAL)

Flags = NDArray[np.bool_]


def pack(flags: NDArray[Any], scenes: NDArray[Any], observers: NDArray[Any]) -> NDArray[np.float32]:
    """Flags (B, 30), scenes (B, 2, 19) and observers (B, 9) as goals (B, 77)."""
    parts = (flags, scenes.reshape(len(scenes), N_SCENE), observers)
    return np.concatenate(parts, axis=1, dtype=np.float32, casting="unsafe")


def required(goals: NDArray[Any]) -> Flags:
    """Which predicates goals (B, 77) require, (B, 30)."""
    return goals[:, FLAGS] > 0.5


def desired(flags: NDArray[Any]) -> NDArray[np.float32]:
    """Goals (B, 77) that require the predicates of flags (B, 30), the rest zeros."""
    out = np.zeros((len(flags), N_GOAL), np.float32)
    out[:, FLAGS] = flags
    return out


def state(goals: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scenes (B, 2, 19) and observers (B, 9) of achieved goals (B, 77)."""
    numbers = goals.astype(np.float32, copy=False).astype(np.float64)
    return numbers[:, SCENE].reshape(-1, 2, N_FEATURES), numbers[:, OBSERVER]


def margins(scenes: NDArray[np.float32], observers: NDArray[np.float32]) -> NDArray[np.float64]:
    """The margins (B, 30) of scenes (B, 2, 19) and observers (B, 9) as an environment holds them."""
    return predicates.margins(scenes.astype(np.float64), observers.astype(np.float64))


def least(values: NDArray[Any], flags: Flags) -> NDArray[np.float64]:
    """The least of the values (B, 30) that are required (B, 30), (B,); infinite where nothing is."""
    return np.where(flags, values, np.inf).min(axis=1)


def as_batch(goals: ArrayLike, name: str = "goals") -> tuple[NDArray[Any], bool]:
    """Goals (B, 77) of one goal (77,) or a batch of them, and whether they were a batch.

    Raises:
        RoomError: another shape.
    """
    array = np.asarray(goals)
    if array.ndim not in (1, 2) or array.shape[-1] != N_GOAL or array.dtype.kind not in "fiu":
        raise RoomError(f"{name} has shape {array.shape} of {array.dtype}; accepted are ({N_GOAL},) and (B, {N_GOAL})")
    return (array, True) if array.ndim == 2 else (array[None], False)


def bounds() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Lowest and highest value of each number of a goal, (77,) each."""
    low, high = np.zeros(N_FEATURES), np.ones(N_FEATURES)
    low[CENTER], high[CENTER] = (-ROOM[0], -ROOM[1], 0.0), ROOM
    low[FRONT], low[UP] = -1.0, -1.0
    high[HALF] = ROOM
    eye_low, eye_high = -np.ones(N_OBSERVER), np.ones(N_OBSERVER)
    eye_low[EYE], eye_high[EYE] = (-ROOM[0], -ROOM[1], 0.0), ROOM
    lows = (np.zeros(N_FLAGS), low, low, eye_low)
    highs = (np.ones(N_FLAGS), high, high, eye_high)
    return tuple(np.concatenate(parts).astype(np.float32) for parts in (lows, highs))  # type: ignore[return-value]
