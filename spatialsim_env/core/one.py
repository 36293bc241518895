"""One world of episodes as an environment of gymnasium: a step is truth, reward and observation of the next moment."""

from __future__ import annotations

from typing import Any, Generic

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.checks import check_choice
from spatialsim_env.core.judges import Array, M
from spatialsim_env.core.rewards import Reward, resolve
from spatialsim_env.core.verdict import Referee
from spatialsim_env.core.world import Observation, Viewer, World

_NEVER = np.zeros(1, np.bool_)


class OneWorld(gym.Env[Observation, NDArray[Any]], Generic[M]):
    """One world of episodes as an environment of gymnasium.

    ``info`` carries, at every reset and step: ``is_success`` (the truth, now), ``ever_success`` (the truth, at any
    step so far), ``distance`` (the truth's), ``reward_true`` (the truth's sparse reward), ``reward_model`` (the reward
    that is plugged in, as returned) and ``is_success_model`` (whether that reward says achieved). The horizon
    truncates through ``max_episode_steps`` of ``gym.make``.

    Args:
        world: what is stepped.
        reward: "sparse", "dense", "hub:NAME" or a path of a model; a live object goes in through ``set_reward``.
        terminate_on_success: end the episode when the truth says achieved.
        render_mode: None, "rgb_array" or "human".

    Raises:
        ValueError: unknown names.
    """

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(
        self,
        world: World[M],
        reward: str = "sparse",
        terminate_on_success: bool = False,
        render_mode: str | None = None,
    ) -> None:
        check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self.world, self.terminate_on_success, self.render_mode = world, terminate_on_success, render_mode
        self._referee = Referee(world, resolve(reward, world))
        self.action_space: gym.Space[Any] = world.dynamics.action_space
        self.observation_space: gym.Space[Any] = world.goals.space
        self._now: M | None = None
        self._viewer: Viewer[M] | None = None
        self._ever_success, self._steps = _NEVER, 0  # of the episode

    @property
    def reward(self) -> Reward:
        """The reward that is plugged in."""
        return self._referee.reward

    def set_reward(self, reward: str | Reward) -> None:
        """Plug in a reward: a name, or an object that satisfies ``rewards.Reward``; see ``Referee``."""
        self._referee = Referee(self.world, resolve(reward, self.world) if isinstance(reward, str) else reward)

    def compute_reward(self, achieved_goal: ArrayLike, desired_goal: ArrayLike, info: Any = None) -> Any:
        """Reward goals; see ``Referee.compute_reward``. ``info`` is not used."""
        return self._referee.compute_reward(achieved_goal, desired_goal)

    @property
    def now(self) -> M:
        """The episode, a batch of one.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self._now is None:
            raise gym.error.ResetNeeded("call reset first")
        return self._now

    @property
    def scenes(self) -> tuple[Array, Array]:
        """Copies of the two arrays that say how the world lies.

        Raises:
            ResetNeeded: before the first reset.
        """
        first, second = self.now.shown
        return first[0].copy(), second[0].copy()

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
        now = self.world.begin([self.np_random])
        info = self._referee.info(now, _NEVER)
        self._now, self._ever_success, self._steps = now, info["ever_success"], 0
        if self.render_mode == "human":
            self.render()
        return _first(self.world.goals.observe(now)), _values(info)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Carry out an action; the horizon is TimeLimit's.

        Raises:
            ActionError: a wrong shape or numbers that are not finite; the state is unchanged.
            ResetNeeded: before the first reset.
            ValueError: the reward is not a finite number; the state is unchanged.
        """
        now = self.world.step(self.now, np.asarray(action)[None])
        judged = self._referee.info(now, self._ever_success)
        self._now, self._ever_success = now, judged["ever_success"]
        self._steps += 1
        if self.render_mode == "human":
            self.render()
        info = _values(judged)
        terminated = info["is_success"] and self.terminate_on_success
        return _first(self.world.goals.observe(now)), info["reward_model"], terminated, False, info

    def render(self) -> NDArray[np.uint8] | None:
        """Show the world: an array (height, width, 3) uint8, or a window in human mode.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self.render_mode is None:
            gym.logger.warn('render needs gym.make(..., render_mode="rgb_array") or "human"')
            return None
        now = self.now
        if self._viewer is None:
            self._viewer = self.world.viewer(self.render_mode, self.metadata["render_fps"])
        return self.world.show(self._viewer, now, 0, self._steps)

    @property
    def is_shown(self) -> bool:
        """Whether a window shows the episodes: drawn in human mode, and not closed by its user."""
        return self._viewer is not None and self._viewer.is_open

    def close(self) -> None:
        """Close the window, if there is one; more than once is fine."""
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None


def _first(observations: Observation) -> Observation:
    return {name: array[0] for name, array in observations.items()}


def _values(judged: dict[str, NDArray[Any]]) -> dict[str, Any]:
    return {name: array.item() for name, array in judged.items()}
