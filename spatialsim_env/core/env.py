"""The environments: a junction of episodes, dynamics, a criterion and a reward.

``SpatialSim-Discrim-v0`` draws a new goal every episode, ``SpatialSim-Ident-v0`` has one goal per
``reference_seed``. The agent moves the objects of the arena until they form the goal, up to a similarity.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.episodes import Batch
from spatialsim_env.core.episodic import Episodic, Observation
from spatialsim_env.core.worlds import PIXELS as PIXELS
from spatialsim_env.core.worlds import NewGoals, OneGoal, Worlds
from spatialsim_env.core.worlds import feature_bounds as feature_bounds

_NEVER = np.zeros(1, np.bool_)


class OneWorld(Episodic, gym.Env[Observation, NDArray[Any]]):
    """One world of episodes as an environment of gymnasium."""

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 15}  # noqa: RUF012
    _ever_success, _steps = _NEVER, 0  # of the episode

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
        now = self._begun([self.np_random])
        judged = self._judged(now, _NEVER)
        self._now, self._ever_success, self._steps = now, judged["ever_success"], 0
        if self.render_mode == "human":
            self.render()
        return _first(self._observed(now)), _values(judged)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move and turn objects; the horizon is TimeLimit's.

        Raises:
            ActionError: a wrong shape or numbers that are not finite; the state is unchanged.
            ResetNeeded: before the first reset.
            ValueError: the reward is not a finite number; the state is unchanged.
        """
        now = self._advanced(self._under_way(), np.asarray(action)[None])
        judged = self._judged(now, self._ever_success)
        self._now, self._ever_success = now, judged["ever_success"]
        self._steps += 1
        if self.render_mode == "human":
            self.render()
        info = _values(judged)
        terminated = info["is_success"] and self.terminate_on_success
        return _first(self._observed(now)), info["reward_model"], terminated, False, info

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """What is to be seen of it: an array (height, width, 3) uint8, or a window in human mode.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self.render_mode is None:
            gym.logger.warn('render needs gym.make(..., render_mode="rgb_array") or "human"')
            return None
        return self._drawn(0, self._steps)

    @property
    def is_shown(self) -> bool:
        """Whether a window shows the episodes: drawn in human mode, and not closed by its user."""
        return self._viewer is not None and self._viewer.is_open

    def close(self) -> None:
        """Close the window, if there is one; more than once is fine."""
        self._close_viewer()


class SpatialSimEnv(Worlds, OneWorld):
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
        goal_scale: lowest and highest scale of the goal, relative to the reference scene; within 0.01 and 2.5.
        goal_angle: lowest and highest angle that the goal is turned by, radians; within 0 and 2 pi.

    Raises:
        ValueError: unknown names, options that contradict each other, too few objects.
    """

    @property
    def scenes(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Copies of the scene in the arena and of the goal, (n_max, 10) each.

        Raises:
            ResetNeeded: before the first reset.
        """
        now: Batch = self._under_way()
        return now.achieved[0].copy(), now.desired[0].copy()


class DiscriminationEnv(NewGoals, SpatialSimEnv):
    """``SpatialSim-Discrim-v0``: a new goal every episode, the number of objects drawn from a range."""


class IdentificationEnv(OneGoal, SpatialSimEnv):
    """``SpatialSim-Ident-v0``: one goal, a function of ``reference_seed`` and ``n_objects``."""


def _first(observations: Observation) -> Observation:
    return {name: array[0] for name, array in observations.items()}


def _values(judged: dict[str, NDArray[Any]]) -> dict[str, Any]:
    return {name: array.item() for name, array in judged.items()}
