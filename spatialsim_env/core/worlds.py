"""What one world and many have in common: options, spaces, episodes, the reward that is plugged in, the verdict.

Everything is a function of batches of episodes, so a single environment and a vector of them cannot differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.arrangements import negatives
from spatialsim_env.arrangements.dynamics import Dynamics
from spatialsim_env.arrangements.episodes import Batch, Episodes
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
from spatialsim_env.arrangements.tasks import object_range
from spatialsim_env.checks import check_choice, check_seed
from spatialsim_env.core import rewards
from spatialsim_env.core.episodic import Episodic, Observation

OBSERVATIONS = ("state", "pixels")
PIXELS = 84  # side of the picture that observation="pixels" gives
GOAL_SCALES = (0.01, 2.5)  # sizes of goals reach 5; smaller goals would lose digits of their positions
LEAST_OBJECTS = {"similarity": 2, "positions": 3}  # with fewer, every configuration is the goal


def feature_bounds() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Lowest and highest value of each of the ten features in an observation."""
    low, high = np.zeros(N_FEATURES, np.float32), np.ones(N_FEATURES, np.float32)
    high[SIZE] = 5
    low[POSITION], high[POSITION] = -100, 120
    low[ORIENTATION], high[ORIENTATION] = -1, 14
    assert high[SHAPE].max() == high[COLOR].max() == 1
    return low, high


class Worlds(Episodic):
    """What ``SpatialSimEnv`` and ``SpatialSimVectorEnv`` are made of; the former documents the options.

    Raises:
        ValueError: unknown names, options that contradict each other, too few objects.
    """

    def __init__(
        self,
        n_objects: int | tuple[int, int],
        *,
        action_mode: str = "move_all",
        max_turn: float | None = None,
        criterion: str = "similarity",
        tolerances: Tolerances | tuple[float, float, float] = TOLERANCES,
        orientation: str = "number",
        reward: str = "sparse",
        start: str = "redrawn",
        observation: str = "state",
        terminate_on_success: bool = False,
        render_mode: str | None = None,
        reference_seed: int | None = None,
        goal_scale: Range = SCALES,
        goal_angle: Range = ANGLES,
    ) -> None:
        check_choice("observation", observation, OBSERVATIONS)
        check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self.criterion = criterion_of(criterion, tolerances, orientation)
        bounds = _checked_range(n_objects, self.criterion)
        self.dynamics = Dynamics.of(action_mode, bounds[1], max_turn)
        self.episodes = Episodes(
            bounds,
            _checked_start(start, self.criterion, self.dynamics),
            self.criterion,
            reference_seed,
            _checked_interval("goal_scale", goal_scale, GOAL_SCALES),
            _checked_interval("goal_angle", goal_angle, ANGLES),
        )
        self.observation_mode = observation
        self.terminate_on_success = terminate_on_success
        self.render_mode = render_mode
        self.set_reward(self._resolved(reward))
        self.action_space: spaces.Space[Any] = self.dynamics.action_space
        self.observation_space: spaces.Space[Any] = self._observation_space()

    def _observation_space(self) -> spaces.Dict:
        low, high = (np.tile(bound, self.dynamics.n_max) for bound in feature_bounds())
        scene = spaces.Box(low, high, dtype=np.float32)
        picture = spaces.Box(0, 255, (PIXELS, PIXELS, 3), np.uint8)
        observation = picture if self.observation_mode == "pixels" else scene
        return spaces.Dict({"observation": observation, "achieved_goal": scene, "desired_goal": scene})

    def is_achieved(self, distance: Any) -> Any:
        """Whether the truth calls a distance achieved: up to 1."""
        return distance <= 1

    def goal_batch(self, goals: ArrayLike, name: str = "goals") -> tuple[NDArray[Any], bool]:
        """Scenes (B, n, 10) of goals that are flat (10 n,), (B, 10 n) or scenes (n, 10), (B, n, 10).

        Raises:
            SceneError: another shape.
        """
        return as_batch(goals, name)

    def _resolved(self, name: str) -> rewards.Reward:
        return rewards.resolve(name, self.criterion, rewards.SCENES)

    def _check_goals(self, achieved: NDArray[Any], desired: NDArray[Any]) -> None:
        if achieved.shape != desired.shape:
            raise SceneError(f"achieved_goal holds scenes {achieved.shape} and desired_goal {desired.shape}")
        if not (np.isfinite(achieved).all() and np.isfinite(desired).all()):
            raise SceneError("achieved_goal or desired_goal holds numbers that are not finite")

    def _advanced(self, now: Batch, actions: Any) -> Batch:
        """The episodes after one action each, (B, ...).

        Raises:
            ActionError: see ``Dynamics.step``.
        """
        achieved = self.dynamics.step(now.achieved, actions)
        distance = self.criterion.distances(achieved, now.desired, now.matching)
        if now.interchangeable.any():
            rows = np.flatnonzero(now.interchangeable)
            distance[rows] = self.criterion.align(achieved[rows], now.desired[rows]).distance
        return Batch(achieved, now.desired, now.matching, now.interchangeable, distance)

    def _values(self, now: Batch) -> NDArray[np.float64]:
        if isinstance(self.reward, rewards.TruthReward) and self.reward.criterion == self.criterion:
            return self.reward.from_distance(now.distance)
        return self._rewards(now.achieved, now.desired)

    def _observed(self, now: Batch) -> Observation:
        achieved, desired = (x.reshape(len(x), -1).copy() for x in (now.achieved, now.desired))
        first = self._pictures(now) if self.observation_mode == "pixels" else achieved.copy()
        return {"observation": first, "achieved_goal": achieved, "desired_goal": desired}

    def _pictures(self, now: Batch) -> NDArray[np.uint8]:
        from spatialsim_env.arrangements.pictures import ARENA_WINDOW, pictures

        return pictures(now.achieved, PIXELS, ARENA_WINDOW)

    def _drawn(self, row: int, step: int) -> NDArray[np.uint8] | None:
        """One world's goal and arena side by side."""
        now: Batch = self._under_way()
        if self._viewer is None:
            from spatialsim_env.arrangements.viewer import Viewer

            self._viewer = Viewer(self.render_mode or "", self.metadata["render_fps"])
        distance = float(now.distance[row])
        return self._viewer.draw(
            now.desired[row], now.achieved[row], distance=distance, achieved=distance <= 1, step=step
        )


class NewGoals:
    """The options of ``SpatialSim-Discrim-v0``: a new goal every episode, the number of objects drawn from a range."""

    def __init__(self, n_objects: int | tuple[int, int] = (3, 8), **options: Any) -> None:
        if options.get("reference_seed") is not None:
            raise ValueError("reference_seed belongs to SpatialSim-Ident-v0; here every episode has a new goal")
        super().__init__(n_objects, **options)  # type: ignore[call-arg]


class OneGoal:
    """The options of ``SpatialSim-Ident-v0``: one goal, a function of ``reference_seed`` and ``n_objects``."""

    def __init__(self, n_objects: int = 5, *, reference_seed: int = 0, **options: Any) -> None:
        check_seed("reference_seed", reference_seed)
        if not isinstance(n_objects, (int, np.integer)):
            raise ValueError(f"n_objects is {n_objects!r}; SpatialSim-Ident-v0 has one reference scene: give an int")
        super().__init__(n_objects, reference_seed=reference_seed, **options)  # type: ignore[call-arg]


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


def _checked_start(start: str, criterion: Criterion, dynamics: Dynamics) -> negatives.Negative:
    negative = negatives.by_name(start)
    if criterion.name not in negative.criteria:
        raise ValueError(f"start {start!r} is achieved already under criterion {criterion.name!r}")
    if negative.turns and dynamics.max_turn == 0 and criterion.name == "similarity":
        raise ValueError(f"start {start!r} turns objects, and max_turn=0 leaves no way to turn them back")
    return negative
