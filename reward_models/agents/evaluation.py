"""Evaluation of an agent: its true success, beside the claims of the reward that it was trained on.

Success of an episode is the truth at its last step. The plugged-in reward's own verdict is counted apart, so the
difference between what a learned reward calls success and what is one can be read off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from reward_models.agents.configs import AgentConfig
from reward_models.agents.policies import Policy, make_policy
from reward_models.shares import wilson
from spatialsim_env.checks import require_whole

COPIES = 100  # episodes that are played side by side
ENDS = ("is_success", "ever_success", "is_success_model", "distance")  # of the last info


@dataclass(frozen=True)
class Evaluation:
    """Episodes and how they ended; episode i began with ``reset(seed=seed + i)``. E episodes."""

    seed: int
    success: NDArray[np.bool_]  # (E,) the truth, at the last step
    ever_success: NDArray[np.bool_]  # (E,) the truth, at any step
    claimed: NDArray[np.bool_]  # (E,) what the plugged-in reward says, at the last step
    ever_claimed: NDArray[np.bool_]  # (E,) what it says, at any step
    distance: NDArray[np.float64]  # (E,) the truth's distance at the last step, inf possible
    achieved: NDArray[np.float32]  # (E, n_max, 10) final scenes in the arena, or (E, 77) goals of relations
    desired: NDArray[np.float32]  # likewise, their goals

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.success)

    @property
    def success_rate(self) -> float:
        """Share of the episodes that are truly achieved at their last step."""
        return float(self.success.mean())

    @property
    def claimed_rate(self) -> float:
        """Share of the episodes that the reward calls achieved at their last step."""
        return float(self.claimed.mean())

    @property
    def precision(self) -> float:
        """Share of the claimed episodes that are truly achieved; nan without a claim."""
        return float(self.success[self.claimed].mean()) if self.claimed.any() else math.nan

    def summary(self) -> dict[str, Any]:
        """The figures as JSON values: shares with their 95 % Wilson intervals, and the median distance.

        What is not a finite number is None.
        """
        shares = {name: getattr(self, name) for name in ("success", "ever_success", "claimed", "ever_claimed")}
        shares["precision"] = self.success[self.claimed]
        out: dict[str, Any] = {"episodes": self.episodes, "seed": self.seed}
        for name, hits in shares.items():
            out[name] = float(hits.mean()) if len(hits) else None
            out[f"{name}_interval"] = list(wilson(int(hits.sum()), len(hits)))
        median = float(np.median(self.distance))
        return {**out, "median_distance": median if math.isfinite(median) else None}


def evaluate(
    policy: Policy | str, config: AgentConfig, reward: Any = "sparse", *, episodes: int = 100, seed: int = 10_000
) -> Evaluation:
    """Play episodes with the deterministic policy. Equal seeds give equal episodes, whatever the policy.

    Args:
        policy: what predicts, "random" for actions drawn from the action space, or "expert" for the scripted one.
        config: the environment's; the rest of it is not used.
        reward: a name or a live object: what is asked for its claims.
        episodes: how many.
        seed: of the first episode; the others follow.

    Raises:
        ValueError: no episodes, a seed below 0, or a policy of another name.
    """
    require_whole("episodes", episodes)
    require_whole("seed", seed, 0)
    blocks = [
        _play(policy, config, reward, range(first, min(first + COPIES, seed + episodes)))
        for first in range(seed, seed + episodes, COPIES)
    ]
    return Evaluation(seed, *(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def film(
    policy: Policy | str, config: AgentConfig, reward: Any = "sparse", *, seed: int = 10_000
) -> list[NDArray[np.uint8]]:
    """Frames (height, width, 3) of one episode, the start included; ``seed`` as of ``evaluate``'s episodes."""
    env = config.make_env(reward, render_mode="rgb_array")
    frames = [np.asarray(env.render()) for _ in steps(policy, env, seed)]
    env.close()
    return frames


def steps(policy: Policy | str, env: gym.Env[Any, Any], seed: int) -> Iterator[dict[str, Any]]:
    """Play one episode in an environment: its ``info`` at the start and after each step.

    Raises:
        ValueError: a policy of another name.
    """
    act = make_policy(policy, env, range(seed, seed + 1))
    observation, info = env.reset(seed=seed)
    yield info
    over = False
    while not over:
        actions, _ = act.predict({key: value[None] for key, value in observation.items()}, deterministic=True)
        observation, _, terminated, truncated, info = env.step(actions[0])
        yield info
        over = terminated or truncated


def _play(policy: Policy | str, config: AgentConfig, reward: Any, seeds: range) -> tuple[NDArray[Any], ...]:
    envs: Any = gym.make_vec(
        config.env_id, num_envs=len(seeds), autoreset_mode=AutoresetMode.SAME_STEP.value, **config.gym_options(reward)
    )
    if not isinstance(reward, str):
        envs.set_reward(reward)
    act = make_policy(policy, envs, seeds)
    observations, _ = envs.reset(seed=list(seeds))
    ends: dict[int, tuple[Any, ...]] = {}  # by copy; what follows the end of its episode is another one
    ever_claimed = np.zeros(len(seeds), bool)
    running = np.ones(len(seeds), bool)
    while running.any():
        actions, _ = act.predict(observations, deterministic=True)
        observations, _, terminated, truncated, infos = envs.step(actions)
        ended = running & (terminated | truncated)
        going = running & ~ended
        ever_claimed[going] |= infos["is_success_model"][going]
        for row in np.flatnonzero(ended).tolist():
            final, seen = infos["final_info"], infos["final_obs"][row]
            ever_claimed[row] |= final["is_success_model"][row]
            ends[row] = (*(final[name][row] for name in ENDS), seen["achieved_goal"], seen["desired_goal"])
        running = going
    envs.close()
    success, ever, claimed, distance, *goals = (
        np.stack(part) for part in zip(*(ends[row] for row in range(len(seeds))), strict=True)
    )
    achieved, desired = (envs.world.goals.batch(part)[0] for part in goals)
    return success, ever, claimed, ever_claimed, distance, achieved, desired
