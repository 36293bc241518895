"""The native vector environment as stable-baselines3 wants it.

stable-baselines3 knows nothing of gymnasium's vector environments. ``SpatialSimVecEnv`` gives it what ``DummyVecEnv``
over monitored single environments gives, value for value, without stepping them one by one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from spatialsim_env.core.many import ManyWorlds
from spatialsim_env.core.rewards import Reward

SHARED = ("compute_reward", "set_reward")  # methods that concern all copies at once
LIMITED = "TimeLimit.truncated"  # stable-baselines3's name for an end by the horizon alone
_OF_ONE = {"action_space": "single_action_space", "observation_space": "single_observation_space"}
_PER_COPY = ("np_random", "np_random_seed")

Observations = dict[str, NDArray[Any]]
Info = dict[str, Any]


class SpatialSimVecEnv(VecEnv):
    """A ``VecEnv`` whose copies are one native vector environment; they share their reward and their options.

    ``infos`` are those of the single environment with, as ``DummyVecEnv`` and ``Monitor`` have them,
    ``TimeLimit.truncated`` at every step and, where an episode ended, ``terminal_observation`` and ``episode``: its
    return ``r``, its length ``l`` and the seconds ``t`` since this object was made.

    Args:
        envs: what is adapted, with autoreset SAME_STEP; ``make`` makes it too.

    Raises:
        TypeError: another kind of environment.
        ValueError: another autoreset mode.
    """

    def __init__(self, envs: ManyWorlds) -> None:
        if not isinstance(envs, ManyWorlds):
            raise TypeError(f"envs is a {type(envs).__name__}; accepted is a ManyWorlds, unwrapped")
        if envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise ValueError(f"autoreset_mode is {envs.autoreset_mode}; accepted is {AutoresetMode.SAME_STEP}")
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.metadata = dict(envs.metadata)
        self._begun = time.time()
        self._actions: NDArray[Any] | None = None
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(self.num_envs, np.int64)

    @classmethod
    def make(
        cls,
        env_id: str,
        n_envs: int = 1,
        *,
        seed: int | None = None,
        reward: str | Reward = "sparse",
        **options: Any,
    ) -> SpatialSimVecEnv:
        """Copies of an environment, seeded ``seed + i``.

        Args:
            env_id: "module:id", as of ``gym.make``.
            n_envs: number of copies.
            seed: of the first copy; None leaves all unseeded.
            reward: a name or a live object.
            options: keywords of ``gym.make``, ``max_episode_steps`` among them.

        Raises:
            ValueError, TypeError: what ``gym.make_vec`` and ``set_reward`` raise.
        """
        if isinstance(reward, str):
            options["reward"] = reward
        envs: Any = gym.make_vec(env_id, num_envs=n_envs, autoreset_mode=AutoresetMode.SAME_STEP.value, **options)
        if not isinstance(reward, str):
            envs.set_reward(reward)
        made = cls(envs)
        if seed is not None:
            made.seed(seed)
        return made

    def reset(self) -> Observations:
        """Begin an episode in each copy, with the seeds that ``seed`` left.

        Raises:
            ValueError: options were set; there are none.
        """
        named = [name for options in self._options for name in options]
        if named:
            self._reset_options()
            raise ValueError(f"reset option {named[0]!r} is unknown; there are none")
        observations, infos = self.envs.reset(seed=self._seeds)
        self._reset_seeds()
        self.reset_infos = _rows(infos)
        self._returns[:], self._lengths[:] = 0, 0
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions (B, ...) that ``step_wait`` carries out."""
        self._actions = actions

    def step_wait(self) -> tuple[Observations, NDArray[np.float32], NDArray[np.bool_], list[Info]]:
        """Observations, rewards (B,), which episodes ended (B,), and an info for each copy.

        Raises:
            ActionError, ValueError: what the environment raises; the episodes are unchanged.
        """
        observations, rewards, terminated, truncated, known = self.envs.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        dones, limited = terminated | truncated, truncated & ~terminated
        infos = _rows({**known, LIMITED: limited})
        if dones.any():
            final = {**known["final_info"], LIMITED: limited}
            self._end(np.flatnonzero(dones), infos, final, known["final_obs"])
        return observations, rewards.astype(np.float32), dones, infos

    def _end(self, rows: NDArray[np.intp], infos: list[Info], final: Info, observations: NDArray[Any]) -> None:
        """Put what is known of episodes that ended in the place of those that began, which ``reset_infos`` keeps."""
        seconds = round(time.time() - self._begun, 6)
        ended = _rows({name: column[rows] for name, column in final.items()})
        for row, info in zip(rows.tolist(), ended, strict=True):
            self.reset_infos[row], infos[row] = infos[row], info
            del self.reset_infos[row][LIMITED]
            total, length = round(float(self._returns[row]), 6), int(self._lengths[row])
            info["episode"] = {"r": total, "l": length, "t": seconds}
            info["terminal_observation"] = observations[row]
        self._returns[rows], self._lengths[rows] = 0, 0

    def close(self) -> None:
        """Close the environment; more than once is fine."""
        self.envs.close()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """A frame of each copy, or None without a render mode."""
        return self.envs.render() or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute for each copy; those of all copies are repeated.

        Raises:
            AttributeError: there is none of this name.
        """
        rows = list(self._get_indices(indices))
        if attr_name == "scenes":
            first, second = self.envs.scenes
            return [(first[row], second[row]) for row in rows]
        value = getattr(self.envs, _OF_ONE.get(attr_name, attr_name))
        return [value[row] if attr_name in _PER_COPY else value for row in rows]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of all copies; ``env_method("set_reward", reward)`` is the way to another reward.

        Raises:
            ValueError: for some of the copies only.
        """
        self._refuse_some(f"attribute {attr_name!r}", indices)
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **options: Any) -> list[Any]:
        """Call a method that concerns all copies, once; its result is repeated for each index.

        Raises:
            AttributeError: another method than those of ``SHARED``.
            ValueError: a reward for some of the copies only.
        """
        if method_name not in SHARED:
            raise AttributeError(f"method {method_name!r} is not one of all copies; those are {', '.join(SHARED)}")
        if method_name == "set_reward":
            self._refuse_some("the reward", indices)
        result = getattr(self.envs, method_name)(*args, **options)
        return [result for _ in self._get_indices(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> Any:
        """Check that the copies do what a wrapper does: True for ``Monitor``, whose statistics are in ``infos``."""
        return [issubclass(Monitor, wrapper_class) for _ in self._get_indices(indices)]

    def _refuse_some(self, what: str, indices: VecEnvIndices) -> None:
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise ValueError(f"{what} is set for copies {indices}; the copies share it: leave the indices out")


def _rows(infos: Info) -> list[Info]:
    """The batched entries of gymnasium's ``info``, without masks and those of final steps, a dictionary per copy."""
    columns = {name: infos[name].tolist() for name in infos if not name.startswith(("_", "final_"))}
    rows: list[Info] = [{} for _ in next(iter(columns.values()))]
    for name, column in columns.items():
        for row, value in zip(rows, column, strict=True):
            row[name] = value
    return rows
