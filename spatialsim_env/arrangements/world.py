"""Arrangements of coloured shapes as a world: its options, its goals as arrays, and the factory that makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.arrangements import negatives, similarities
from spatialsim_env.arrangements.dynamics import SceneDynamics
from spatialsim_env.arrangements.episodes import SceneEpisodes
from spatialsim_env.arrangements.goals import TOLERANCES, Criterion, Tolerances, criterion_of
from spatialsim_env.arrangements.scene import (
    COLOR,
    N_FEATURES,
    ORIENTATION,
    POSITION,
    SHAPE,
    SIZE,
    SceneError,
    as_batch,
)
from spatialsim_env.arrangements.similarities import ANGLES, SCALES, Range
from spatialsim_env.arrangements.tasks import object_range, shuffle
from spatialsim_env.arrangements.truth import SceneMoment, SceneTruth
from spatialsim_env.arrangements.viewer import SceneViewer
from spatialsim_env.checks import check_choice, check_seed
from spatialsim_env.core.judges import Array, Pairs
from spatialsim_env.core.world import Observation, World
from spatialsim_env.registry import SCENES

OBSERVATIONS = ("state", "pixels")
PIXELS = 84  # side of the picture that observation="pixels" gives
GOAL_SCALES = (0.01, 2.5)  # sizes of goals reach 5; smaller goals would lose digits of their positions
LEAST_OBJECTS = {"similarity": 2, "positions": 3}  # with fewer, every configuration is the goal


@dataclass(frozen=True)
class SceneGoals:
    """Scenes (n_max, 10) as flat vectors, padded."""

    n_max: int  # rows of a scene
    goal_scale: Range  # of the similarity between reference and goal, lowest and highest
    goal_angle: Range  # likewise, radians
    observation: str = "state"  # one of OBSERVATIONS

    @property
    def space(self) -> spaces.Dict:
        """The observation space of one environment."""
        low, high = (np.tile(bound, self.n_max) for bound in feature_bounds())
        scene = spaces.Box(low, high, dtype=np.float32)
        picture = spaces.Box(0, 255, (PIXELS, PIXELS, 3), np.uint8)
        first = picture if self.observation == "pixels" else scene
        return spaces.Dict({"observation": first, "achieved_goal": scene, "desired_goal": scene})

    def observe(self, now: SceneMoment) -> Observation:
        """Observe episodes, (B, ...), as arrays of their own."""
        achieved, desired = (x.reshape(len(x), -1).copy() for x in (now.achieved, now.desired))
        first = _pictures(now.achieved) if self.observation == "pixels" else achieved.copy()
        return {"observation": first, "achieved_goal": achieved, "desired_goal": desired}

    def batch(self, goals: ArrayLike, name: str = "goals") -> tuple[Array, bool]:
        """Scenes (B, n, 10) of goals that are flat (10 n,), (B, 10 n) or scenes (n, 10), (B, n, 10).

        Raises:
            SceneError: another shape.
        """
        return as_batch(goals, name)

    def check(self, achieved: Array, desired: Array) -> None:
        """Refuse scenes of other shapes, or that hold numbers that are not finite.

        Raises:
            SceneError: they are.
        """
        if achieved.shape != desired.shape:
            raise SceneError(f"achieved_goal holds scenes {achieved.shape} and desired_goal {desired.shape}")
        if not (np.isfinite(achieved).all() and np.isfinite(desired).all()):
            raise SceneError("achieved_goal or desired_goal holds numbers that are not finite")

    def question(self, achieved: Array, desired: Array) -> Pairs:
        """Ask whether goals (B, n, 10) are reached."""
        return Pairs(achieved, desired)

    def relabel(self, later: Array, rng: np.random.Generator) -> NDArray[np.float32]:
        """Make goals of scenes (B, 10 n_max) that were achieved later: random similarities, objects reordered.

        The similarities are those that episodes draw their goals with, so goals stay within the bounds of the space.
        """
        scenes, _ = as_batch(later)
        shuffled = shuffle(scenes, rng.random(scenes.shape[:2], np.float32))
        similarity = similarities.sample(len(scenes), rng, self.goal_scale, self.goal_angle)
        return similarity.apply(shuffled).reshape(later.shape)


@dataclass(frozen=True)
class SceneWorld(World[SceneMoment]):
    """A world of arrangements."""

    episodes: SceneEpisodes
    dynamics: SceneDynamics
    truth: SceneTruth
    goals: SceneGoals


def world(
    n_objects: int | tuple[int, int] = (3, 8),
    *,
    action_mode: str = "move_all",
    max_turn: float | None = None,
    criterion: str = "similarity",
    tolerances: Tolerances | tuple[float, float, float] = TOLERANCES,
    orientation: str = "number",
    start: str = "redrawn",
    observation: str = "state",
    reference_seed: int | None = None,
    goal_scale: Range = SCALES,
    goal_angle: Range = ANGLES,
) -> SceneWorld:
    """A world of coloured shapes and a goal that is an arrangement of them.

    Observation: ``Dict(observation, achieved_goal, desired_goal)``, flat float32 vectors of 10 n_max, padded;
    ``achieved_goal`` is the scene in the arena, ``desired_goal`` the transformed scene with its objects in another
    order, ``observation`` a copy of ``achieved_goal`` or, with ``observation="pixels"``, a picture of the arena
    (84, 84, 3) uint8. Actions: ``dynamics.py``.

    Args:
        n_objects: an int or (low, high).
        action_mode: "move_all", "pick_place" or "discrete".
        max_turn: radians per step; None takes the mode's own, 0 takes turning out of the action space.
        criterion: "similarity" or "positions".
        tolerances: position (units), orientation (rad), size (units).
        orientation: "number" or "visual".
        start: a name from ``negatives``: how the goal's objects lie at first, never achieved.
        observation: "state" or "pixels".
        reference_seed: of the one goal; None for a new goal every episode.
        goal_scale: lowest and highest scale of the goal, relative to the reference scene; within 0.01 and 2.5.
        goal_angle: lowest and highest angle that the goal is turned by, radians; within 0 and 2 pi.

    Raises:
        ValueError: unknown names, options that contradict each other, too few objects.
    """
    check_choice("observation", observation, OBSERVATIONS)
    rule = criterion_of(criterion, tolerances, orientation)
    bounds = _checked_range(n_objects, rule)
    dynamics = SceneDynamics.of(action_mode, bounds[1], max_turn)
    negative = _checked_start(start, rule, dynamics)
    scales = _checked_interval("goal_scale", goal_scale, GOAL_SCALES)
    angles = _checked_interval("goal_angle", goal_angle, ANGLES)
    return SceneWorld(
        SCENES,
        SceneEpisodes(bounds, negative, rule, reference_seed, scales, angles),
        dynamics,
        SceneTruth(rule),
        SceneGoals(bounds[1], scales, angles, observation),
        SceneViewer,
    )


def discrimination(n_objects: int | tuple[int, int] = (3, 8), **options: Any) -> SceneWorld:
    """The world of ``SpatialSim-Discrim-v0``: a new goal every episode, the number of objects drawn from a range."""
    if options.get("reference_seed") is not None:
        raise ValueError("reference_seed belongs to SpatialSim-Ident-v0; here every episode has a new goal")
    return world(n_objects, **options)


def identification(n_objects: int = 5, *, reference_seed: int = 0, **options: Any) -> SceneWorld:
    """The world of ``SpatialSim-Ident-v0``: one goal, a function of ``reference_seed`` and ``n_objects``."""
    check_seed("reference_seed", reference_seed)
    if not isinstance(n_objects, (int, np.integer)):
        raise ValueError(f"n_objects is {n_objects!r}; SpatialSim-Ident-v0 has one reference scene: give an int")
    return world(n_objects, reference_seed=reference_seed, **options)


def feature_bounds() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Lowest and highest value of each of the ten features in an observation."""
    low, high = np.zeros(N_FEATURES, np.float32), np.ones(N_FEATURES, np.float32)
    high[SIZE] = 5
    low[POSITION], high[POSITION] = -100, 120
    low[ORIENTATION], high[ORIENTATION] = -1, 14
    assert high[SHAPE].max() == high[COLOR].max() == 1
    return low, high


def _pictures(scenes: NDArray[np.float32]) -> NDArray[np.uint8]:
    from spatialsim_env.arrangements.pictures import ARENA_WINDOW, pictures

    return pictures(scenes, PIXELS, ARENA_WINDOW)


def _checked_range(n_objects: int | tuple[int, int], criterion: Criterion) -> tuple[int, int]:
    low, high = object_range(n_objects)
    least = LEAST_OBJECTS[criterion.name]
    if low > high:
        raise ValueError(f"n_objects is {n_objects!r}; accepted is low <= high")
    if low < least:
        raise ValueError(
            f"n_objects is {n_objects!r}; accepted are {least} and more: with fewer objects "
            f"every configuration is achieved under {criterion.name!r}"
        )
    return low, high


def _checked_interval(name: str, value: Any, bounds: Range) -> Range:
    pair = tuple(value) if isinstance(value, (tuple, list)) else ()
    numbers = [x for x in pair if isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)]
    if not (len(numbers) == len(pair) == 2 and bounds[0] <= pair[0] <= pair[1] <= bounds[1]):
        raise ValueError(f"{name} is {value!r}; accepted is a pair (low, high) within {bounds}, low <= high")
    return float(pair[0]), float(pair[1])


def _checked_start(start: str, criterion: Criterion, dynamics: SceneDynamics) -> negatives.Negative:
    negative = negatives.by_name(start)
    if criterion.name not in negative.criteria:
        raise ValueError(f"start {start!r} is achieved already under criterion {criterion.name!r}")
    if negative.turns and dynamics.max_turn == 0 and criterion.name == "similarity":
        raise ValueError(f"start {start!r} turns objects, and max_turn=0 leaves no way to turn them back")
    return negative
