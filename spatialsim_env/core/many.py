"""Worlds by the thousand: gymnasium's vector environments in one process, all arrays batched.

``gymnasium.make_vec("spatialsim_env:SpatialSim-Discrim-v0", num_envs=...)`` makes them. Copy i gives, step for step,
what the single environment gives under its seed; ``SyncVectorEnv`` over single environments gives the same arrays.
"""

from __future__ import annotations

import math
from typing import Any, Generic

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.checks import check_choice, check_seed
from spatialsim_env.core.judges import Array, Flags, M
from spatialsim_env.core.rewards import Reward, resolve
from spatialsim_env.core.screen import tile
from spatialsim_env.core.verdict import Referee
from spatialsim_env.core.world import ActionError, Observation, Viewer, World
from spatialsim_env.registry import HORIZON

RESET_MASK = "reset_mask"  # the one option of reset

Infos = dict[str, Any]


class ManyWorlds(VectorEnv[Observation, NDArray[Any], NDArray[Any]], Generic[M]):
    """Copies of a world of episodes with one reward. Observations and actions are its own, batched.

    ``info`` holds what the single environment's holds, each entry (B,), and beside each entry ``name`` a mask
    ``_name`` of the copies that it is there for. The horizon truncates here, there is no wrapper for it.

    What happens to a copy whose episode has ended is its ``autoreset_mode``, also found in ``metadata``:
    NEXT_STEP begins an episode at the next step, whose action is not looked at and whose reward is 0; SAME_STEP
    begins it at once, and ``info`` holds ``final_obs`` (an observation for each copy that ended, else None) and
    ``final_info``; DISABLED leaves it to ``reset(options={"reset_mask": mask})``.

    Returned arrays are the caller's: nothing here writes to them later, or reads them.

    Args:
        world, reward, terminate_on_success: as ``OneWorld`` has them.
        render_mode: None or "rgb_array".
        num_envs: number of copies.
        max_episode_steps: steps after which an episode is truncated; None is the registered 50, -1 never.
        autoreset_mode: an ``AutoresetMode`` or its value: "NextStep", "SameStep", "Disabled".

    Raises:
        ValueError: options that the single environment refuses, or other numbers than these.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15, "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        world: World[M],
        reward: str = "sparse",
        terminate_on_success: bool = False,
        render_mode: str | None = None,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.num_envs = _checked_count("num_envs", num_envs, "an int from 1")
        horizon = HORIZON if max_episode_steps is None else max_episode_steps
        unlimited = not isinstance(horizon, bool) and horizon == -1
        self._horizon = math.inf if unlimited else _checked_count("max_episode_steps", horizon, "an int from 1, or -1")
        self.autoreset_mode = _checked_mode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self.world, self.terminate_on_success, self.render_mode = world, terminate_on_success, render_mode
        self._referee = Referee(world, resolve(reward, world))
        self.single_action_space: gym.Space[Any] = world.dynamics.action_space
        self.single_observation_space: gym.Space[Any] = world.goals.space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._now: M | None = None
        self._viewer: Viewer[M] | None = None
        self._streams: list[Any] = [None] * self.num_envs  # a generator each, from the first reset on
        self._seeds: list[int | None] = [None] * self.num_envs
        self._ever_success = self._ended = np.zeros(self.num_envs, np.bool_)
        self._steps = np.zeros(self.num_envs, np.int64)
        self._everywhere = np.ones(self.num_envs, np.bool_)

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
        """The episodes.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self._now is None:
            raise gym.error.ResetNeeded("call reset first")
        return self._now

    @property
    def scenes(self) -> tuple[Array, Array]:
        """Copies of the two arrays (B, ...) that say how the worlds lie.

        Raises:
            ResetNeeded: before the first reset.
        """
        first, second = self.now.shown
        return first.copy(), second.copy()

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The stream of numbers of each copy."""
        return tuple(self._stream(row) for row in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]
        """The seed of each copy's stream."""
        self.np_random  # noqa: B018, makes the streams that were not seeded
        return tuple(self._seeds)

    def _stream(self, row: int | np.intp) -> np.random.Generator:
        stream = self._streams[row]
        if stream is None:
            stream, self._seeds[row] = seeding.np_random()
            self._streams[row] = stream
        return stream

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Infos]:
        """Begin an episode in each copy, or in those of a mask; each takes one block of numbers from its stream.

        Args:
            seed: an int gives copy i the seed ``seed + i``; a list holds one for each copy, None goes on.
            options: ``{"reset_mask": mask}``, (B,) of bool, at least one of them True.

        Returns:
            Observations of all copies, and what is known of those that were reset.

        Raises:
            ValueError: another option, a mask or list of another length, an empty mask, a goal that the reward
                cannot judge (the episodes are then unchanged).
            TypeError: a mask that is not an array of bool.
            ResetNeeded: a mask at the first reset.
            ClosedEnvironmentError: after ``close``.
        """
        self._refuse_closed()
        mask = self._checked_mask(options)
        seeds = self._checked_seeds(seed)
        rows = np.flatnonzero(mask)
        for row in rows:
            if seeds[row] is not None:
                self._streams[row], self._seeds[row] = seeding.np_random(seeds[row])
        begun = self.world.begin([self._stream(row) for row in rows])
        judged = self._referee.info(begun, np.zeros(len(rows), np.bool_))
        self._now = begun if self._now is None else self._now.replaced(rows, begun)
        self._ever_success, self._ended = self._ever_success & ~mask, self._ended & ~mask
        self._steps = np.where(mask, 0, self._steps)
        return self.world.goals.observe(self._now), _spread(judged, mask)

    def step(self, actions: Any) -> tuple[Observation, NDArray[np.float64], Flags, Flags, Infos]:
        """One action for each copy, (B, ...); copies whose episode has ended are treated as their mode says.

        Raises:
            ActionError: a wrong shape or numbers that are not finite; the state is unchanged.
            ResetNeeded: before the first reset; with autoreset DISABLED after the end of an episode.
            ValueError: the reward is not a finite number; the episodes are unchanged.
            ClosedEnvironmentError: after ``close``.
        """
        self._refuse_closed()
        fresh = self._ended  # begun by this step, in place of moving
        now = self._moved(np.asarray(actions), fresh)
        judged = self._referee.info(now, self._ever_success & ~fresh)
        steps = np.where(fresh, 0, self._steps + 1)
        reward = np.where(fresh, 0.0, judged["reward_model"])
        terminated = judged["is_success"] & bool(self.terminate_on_success)
        truncated = steps >= self._horizon
        ended, infos = terminated | truncated, Infos()
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended.any():
            infos = self._final(now, judged, ended)
            rows = np.flatnonzero(ended)
            now, anew = self._begun_in(now, rows)
            for name, values in self._referee.info(anew, np.zeros(len(rows), np.bool_)).items():
                judged[name][rows] = values
            steps, ended = np.where(ended, 0, steps), np.zeros(self.num_envs, np.bool_)
        self._now, self._steps, self._ended = now, steps, ended
        self._ever_success = judged["ever_success"].copy()
        return self.world.goals.observe(now), reward, terminated, truncated, infos | _spread(judged, self._everywhere)

    def _moved(self, actions: NDArray[Any], fresh: Flags) -> M:
        """The episodes after the actions (B, ...); where ``fresh``, a new episode."""
        now = self.now
        if actions.shape[:1] != (self.num_envs,):
            accepted = self.action_space.shape
            raise ActionError(f"actions have shape {actions.shape}; accepted is {accepted}")
        if not fresh.any():
            return self.world.step(now, actions)
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise gym.error.ResetNeeded(
                f"the episodes of copies {np.flatnonzero(fresh).tolist()} have ended; "
                'reset(options={"reset_mask": mask}) begins new ones'
            )
        others = np.flatnonzero(~fresh)
        if len(others):
            now = now.replaced(others, self.world.step(now.rows(others), actions[others]))
        return self._begun_in(now, np.flatnonzero(fresh))[0]

    def _begun_in(self, now: M, rows: NDArray[np.intp]) -> tuple[M, M]:
        """New episodes in some rows of others: all of them, and the new ones."""
        anew = self.world.begin([self._streams[row] for row in rows.tolist()])
        return now.replaced(rows, anew), anew

    def _final(self, now: M, judged: dict[str, NDArray[Any]], ended: Flags) -> Infos:
        """What ``info`` holds of episodes that ended and are begun anew in the same step."""
        observations = self.world.goals.observe(now.rows(ended))
        final_obs = np.full(self.num_envs, None, object)
        for row, parts in zip(np.flatnonzero(ended), zip(*observations.values(), strict=True), strict=True):
            final_obs[row] = dict(zip(observations, parts, strict=True))
        final_info = _spread({name: array[ended] for name, array in judged.items()}, ended)
        return {"final_obs": final_obs, "_final_obs": ended, "final_info": final_info, "_final_info": ended.copy()}

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """A frame of each copy, (height, width, 3) uint8; ``tiled`` joins them.

        Raises:
            ResetNeeded: before the first reset; ClosedEnvironmentError: after ``close``.
        """
        return self._frames(self.num_envs)

    def tiled(self, copies: int = 16) -> NDArray[np.uint8] | None:
        """The frames of the first ``copies`` in one picture, (height, width, 3) uint8.

        Raises:
            ResetNeeded: before the first reset; ClosedEnvironmentError: after ``close``.
        """
        frames = self._frames(min(_checked_count("copies", copies, "an int from 1"), self.num_envs))
        if frames is None:
            return None
        return tile(frames)

    def _frames(self, copies: int) -> tuple[NDArray[np.uint8], ...] | None:
        self._refuse_closed()
        if self.render_mode is None:
            gym.logger.warn('render needs gym.make_vec(..., render_mode="rgb_array")')
            return None
        now = self.now
        if self._viewer is None:
            self._viewer = self.world.viewer(self.render_mode, self.metadata["render_fps"])
        frames = [self.world.show(self._viewer, now, row, int(self._steps[row])) for row in range(copies)]
        return tuple(frame for frame in frames if frame is not None)

    def close_extras(self, **kwargs: Any) -> None:
        """Let go of what drawing took."""
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None

    def _refuse_closed(self) -> None:
        if self.closed:
            raise gym.error.ClosedEnvironmentError("the vector environment is closed; make another one")

    def _checked_seeds(self, seed: Any) -> list[int | None]:
        if seed is None or isinstance(seed, (int, np.integer)):
            seeds = [None if seed is None else int(seed) + row for row in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed holds {len(seeds)} seeds; accepted are an int, or one for each of {self.num_envs}")
        for value in seeds:
            if value is not None:
                check_seed("seed", value)
        return [None if value is None else int(value) for value in seeds]

    def _checked_mask(self, options: dict[str, Any] | None) -> Flags:
        unknown = set(options or {}) - {RESET_MASK}
        if unknown:
            raise ValueError(f"reset option {min(unknown)!r} is unknown; there is {RESET_MASK!r}")
        if not options:
            return np.ones(self.num_envs, np.bool_)
        mask = options[RESET_MASK]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            kind = f"an array of {mask.dtype}" if isinstance(mask, np.ndarray) else f"a {type(mask).__name__}"
            raise TypeError(f"{RESET_MASK} is {kind}; accepted is a NumPy array of bool")
        if mask.shape != (self.num_envs,):
            raise ValueError(f"{RESET_MASK} has shape {mask.shape}; accepted is {(self.num_envs,)}")
        if not mask.any():
            raise ValueError(f"{RESET_MASK} is False everywhere; accepted is a mask with at least one True")
        if self._now is None and not mask.all():
            raise gym.error.ResetNeeded(f"the first reset is of all copies, and {RESET_MASK} leaves some out")
        return mask.copy()


def _spread(values: dict[str, NDArray[Any]], mask: Flags) -> Infos:
    """Entries of ``info`` with their masks, from what is known of the copies of a mask."""
    infos: Infos = {}
    for name, known in values.items():
        array = known
        if len(known) < len(mask):
            array = np.zeros(len(mask), known.dtype)
            array[mask] = known
        infos[name], infos[f"_{name}"] = array, mask.copy()
    return infos


def _checked_count(name: str, value: Any, accepted: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} is {value!r}; accepted is {accepted}")
    return int(value)


def _checked_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        accepted = ", ".join(repr(each.value) for each in AutoresetMode)
        raise ValueError(f"autoreset_mode is {mode!r}; accepted are {accepted}, or an AutoresetMode") from None
