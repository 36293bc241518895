"""The environments: a junction of episodes, dynamics, a criterion and a reward.

``SpatialSim-Discrim-v0`` draws a new goal every episode, ``SpatialSim-Ident-v0`` has one goal per
``reference_seed``. The agent moves the objects of the arena until they form the goal, up to a similarity.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from spatialsim_env import negatives, rewards
from spatialsim_env.dynamics import Dynamics
from spatialsim_env.episodes import Episodes
from spatialsim_env.goals import TOLERANCES, Criterion, Tolerances, criterion_of
from spatialsim_env.scene import COLOR, N_FEATURES, ORIENTATION, POSITION, SHAPE, SIZE, SceneError, as_batch
from spatialsim_env.tasks import check_seed, object_range

OBSERVATIONS = ("state", "pixels")
PIXELS = 84  # side of the picture that observation="pixels" gives
LEAST_OBJECTS = {"similarity": 2, "positions": 3}  # with fewer, every configuration is the goal

Observation = dict[str, NDArray[Any]]


def feature_bounds() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Lowest and highest value of each of the ten features in an observation."""
    low, high = np.zeros(N_FEATURES, np.float32), np.ones(N_FEATURES, np.float32)
    high[SIZE] = 5
    low[POSITION], high[POSITION] = -100, 120
    low[ORIENTATION], high[ORIENTATION] = -1, 14
    assert high[SHAPE].max() == high[COLOR].max() == 1
    return low, high


class SpatialSimEnv(gym.Env[Observation, NDArray[Any]]):
    """A world of coloured shapes and a goal that is an arrangement of them.

    Observation: ``Dict(observation, achieved_goal, desired_goal)``, flat float32 vectors of 10 n_max, padded;
    ``achieved_goal`` is the scene in the arena, ``desired_goal`` the transformed scene with its objects in another
    order, ``observation`` a copy of ``achieved_goal`` or, with ``observation="pixels"``, a picture of the arena
    (84, 84, 3) uint8. Actions: ``dynamics.py``.

    ``info`` carries, at every reset and step: ``is_success`` (the truth, now), ``ever_success`` (the truth, at any
    step so far), ``distance`` (the truth's), ``reward_true`` (the truth's sparse reward), ``reward_model`` (the reward
    that is plugged in, as returned) and ``is_success_model`` (whether that reward says achieved). The horizon
    truncates through ``max_episode_steps`` of ``gym.make``.

    Args:
        n_objects: an int or (low, high).
        action_mode: "move_all", "pick_place" or "discrete".
        max_turn: radians per step; None takes the mode's own, 0 takes turning out of the action space.
        criterion: "similarity" or "positions".
        tolerances: position (units), orientation (rad), size (units).
        orientation: "number" or "visual".
        reward: "sparse", "dense", "hub:NAME" or a path of a model; a live object goes in through ``set_reward``.
        start: a name from ``negatives``: how the goal's objects lie at first, never achieved.
        observation: "state" or "pixels".
        terminate_on_success: end the episode when the truth says achieved.
        render_mode: None, "rgb_array" or "human".

    Raises:
        ValueError: unknown names, options that contradict each other, too few objects.
    """

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 15}  # noqa: RUF012

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
    ) -> None:
        _check_choice("observation", observation, OBSERVATIONS)
        _check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self.criterion = criterion_of(criterion, tolerances, orientation)
        bounds = _checked_range(n_objects, self.criterion)
        self.dynamics = Dynamics.of(action_mode, bounds[1], max_turn)
        self.episodes = Episodes(
            bounds, _checked_start(start, self.criterion, self.dynamics), self.criterion, reference_seed
        )
        self.observation_mode = observation
        self.terminate_on_success = terminate_on_success
        self.render_mode = render_mode
        self.set_reward(rewards.resolve(reward, self.criterion))
        self.action_space = self.dynamics.action_space
        self.observation_space: spaces.Space[Any] = self._observation_space()
        self._achieved: NDArray[np.float32] | None = None  # (1, n_max, 10)
        self._viewer: Any = None

    def _observation_space(self) -> spaces.Dict:
        low, high = (np.tile(bound, self.dynamics.n_max) for bound in feature_bounds())
        scene = spaces.Box(low, high, dtype=np.float32)
        picture = spaces.Box(0, 255, (PIXELS, PIXELS, 3), np.uint8)
        observation = picture if self.observation_mode == "pixels" else scene
        return spaces.Dict({"observation": observation, "achieved_goal": scene, "desired_goal": scene})

    def set_reward(self, reward: str | rewards.Reward) -> None:
        """Plug in a reward: a name, or an object that satisfies ``rewards.Reward``.

        Raises:
            TypeError: neither.
            ValueError: an unknown name.
        """
        if isinstance(reward, str):
            self.reward = rewards.resolve(reward, self.criterion)
            return
        if isinstance(reward, type):
            raise TypeError(f"reward is the class {reward.__name__}; accepted is an object of it")
        missing = [name for name in ("name", "success_threshold", "__call__") if not hasattr(reward, name)]
        if missing:
            raise TypeError(f"reward is a {type(reward).__name__} without {', '.join(missing)}; see rewards.Reward")
        self.reward = reward

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; it takes one block of numbers from the environment's own stream. No options exist.

        Raises:
            ValueError: an option, or a goal that the reward cannot judge.
        """
        if options:
            raise ValueError(f"reset option {next(iter(options))!r} is unknown; there are none")
        super().reset(seed=seed)
        block = self.np_random.random((1, self.episodes.n_uniform), np.float32)
        episode = self.episodes.begin(block)
        info = self._judge(episode.achieved, episode.desired, episode.distance, ever_success=False)
        self._achieved, self._desired, self._distance = episode.achieved, episode.desired, episode.distance
        self._matching = None if episode.interchangeable[0] else episode.matching
        self._ever_success, self._steps = False, 0
        if self.render_mode == "human":
            self.render()
        return self._observation(), info

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move and turn objects; the horizon is TimeLimit's.

        Raises:
            ActionError: a wrong shape or numbers that are not finite; the state is unchanged.
            ResetNeeded: before the first reset.
            ValueError: the reward is not a finite number; the state is unchanged.
        """
        if self._achieved is None:
            raise gym.error.ResetNeeded("call reset before step")
        achieved = self.dynamics.step(self._achieved, np.asarray(action)[None])
        distance = self.criterion.align(achieved, self._desired, self._matching).distance
        info = self._judge(achieved, self._desired, distance, self._ever_success)
        self._achieved, self._distance, self._ever_success = achieved, distance, info["ever_success"]
        self._steps += 1
        if self.render_mode == "human":
            self.render()
        terminated = info["is_success"] and self.terminate_on_success
        return self._observation(), info["reward_model"], terminated, False, info

    def _judge(
        self,
        achieved: NDArray[np.float32],
        desired: NDArray[np.float32],
        distance: NDArray[np.float64],
        ever_success: bool,
    ) -> dict[str, Any]:
        """What the truth and the plugged-in reward say of one pair of scenes (1, n_max, 10): ``info``."""
        if isinstance(self.reward, rewards.TruthReward) and self.reward.criterion == self.criterion:
            value = float(self.reward.from_distance(distance)[0])
        else:
            value = float(self._rewards(achieved, desired)[0])
        success = bool(distance[0] <= 1)
        return {
            "is_success": success,
            "ever_success": ever_success or success,
            "distance": float(distance[0]),
            "reward_true": float(rewards.sparse_from_distance(distance)[0]),
            "reward_model": value,
            "is_success_model": bool(value >= self.reward.success_threshold),
        }

    def _rewards(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        """The plugged-in reward of a batch, (B,), which may read the scenes only."""
        scenes = [scenes.view() for scenes in (achieved, desired)]
        for view in scenes:
            view.flags.writeable = False
        values = np.asarray(self.reward(*scenes), np.float64)
        if values.shape != (len(achieved),):
            raise ValueError(f"reward {self.reward.name!r} gave shape {values.shape}; accepted is {(len(achieved),)}")
        if not np.isfinite(values).all():
            raise ValueError(f"reward {self.reward.name!r} gave {values[~np.isfinite(values)][0]}, not a finite number")
        return values

    def compute_reward(self, achieved_goal: ArrayLike, desired_goal: ArrayLike, info: Any = None) -> Any:
        """The plugged-in reward as a pure function of the two goals.

        Args:
            achieved_goal, desired_goal: flat (10 n,), (B, 10 n) or scenes (n, 10), (B, n, 10), of any float type.
            info: not used.

        Returns:
            A float, or (B,) float64 for a batch. Pairs of different objects are not achieved.

        Raises:
            SceneError: other shapes, unequal batches, numbers that are not finite.
            ValueError: the reward is not a finite number, or cannot judge such a goal.
        """
        achieved, batched = as_batch(achieved_goal, "achieved_goal")
        desired, _ = as_batch(desired_goal, "desired_goal")
        if achieved.shape != desired.shape:
            raise SceneError(f"achieved_goal holds scenes {achieved.shape} and desired_goal {desired.shape}")
        if not (np.isfinite(achieved).all() and np.isfinite(desired).all()):
            raise SceneError("achieved_goal or desired_goal holds numbers that are not finite")
        values = self._rewards(achieved.astype(np.float32, copy=False), desired.astype(np.float32, copy=False))
        return values if batched else float(values[0])

    def _observation(self) -> Observation:
        assert self._achieved is not None
        achieved = self._achieved.ravel()
        first = self._picture() if self.observation_mode == "pixels" else achieved.copy()
        return {"observation": first, "achieved_goal": achieved.copy(), "desired_goal": self._desired.ravel().copy()}

    def _picture(self) -> NDArray[np.uint8]:
        from spatialsim_env.pictures import ARENA_WINDOW, picture

        assert self._achieved is not None
        return picture(self._achieved[0], PIXELS, ARENA_WINDOW)

    @property
    def scenes(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Copies of the scene in the arena and of the goal, (n_max, 10) each.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self._achieved is None:
            raise gym.error.ResetNeeded("call reset first")
        return self._achieved[0].copy(), self._desired[0].copy()

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """Goal and arena side by side: an array (height, width, 3) uint8, or a window in human mode.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self.render_mode is None:
            gym.logger.warn('render needs gym.make(..., render_mode="rgb_array") or "human"')
            return None
        if self._viewer is None:
            from spatialsim_env.rendering import Viewer

            self._viewer = Viewer(self.render_mode, self.metadata["render_fps"])
        arena, goal = self.scenes
        distance = float(self._distance[0])
        return self._viewer.draw(goal, arena, distance=distance, achieved=distance <= 1, step=self._steps)

    def close(self) -> None:
        """Close the window, if there is one; more than once is fine."""
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None


class DiscriminationEnv(SpatialSimEnv):
    """``SpatialSim-Discrim-v0``: a new goal every episode, the number of objects drawn from a range."""

    def __init__(self, n_objects: int | tuple[int, int] = (3, 8), **options: Any) -> None:
        if options.get("reference_seed") is not None:
            raise ValueError("reference_seed belongs to SpatialSim-Ident-v0; here every episode has a new goal")
        super().__init__(n_objects, **options)


class IdentificationEnv(SpatialSimEnv):
    """``SpatialSim-Ident-v0``: one goal, a function of ``reference_seed`` and ``n_objects``."""

    def __init__(self, n_objects: int = 5, *, reference_seed: int = 0, **options: Any) -> None:
        check_seed("reference_seed", reference_seed)
        if not isinstance(n_objects, (int, np.integer)):
            raise ValueError(f"n_objects is {n_objects!r}; SpatialSim-Ident-v0 has one reference scene: give an int")
        super().__init__(n_objects, reference_seed=reference_seed, **options)


def _check_choice(name: str, value: Any, accepted: tuple[Any, ...]) -> None:
    if value not in accepted:
        raise ValueError(f"{name} is {value!r}; accepted are {', '.join(map(str, accepted))}")


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


def _checked_start(start: str, criterion: Criterion, dynamics: Dynamics) -> negatives.Negative:
    negative = negatives.by_name(start)
    if criterion.name not in negative.criteria:
        raise ValueError(f"start {start!r} is achieved already under criterion {criterion.name!r}")
    if negative.turns and dynamics.max_turn == 0 and criterion.name == "similarity":
        raise ValueError(f"start {start!r} turns objects, and max_turn=0 leaves no way to turn them back")
    return negative
