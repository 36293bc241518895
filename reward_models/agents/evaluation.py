"""What an agent really does, beside what the reward it was trained on claims.

Success of an episode is the truth at its last step. The plugged-in reward's own verdict is counted apart, so the
difference between what a learned reward calls success and what is one can be read off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from reward_models.agents.configs import AgentConfig
from reward_models.evaluation import wilson

COPIES = 100  # episodes that are played side by side


class Policy(Protocol):
    """What is evaluated: a model of stable-baselines3 or anything that predicts as one."""

    def predict(self, observation: Any, *, deterministic: bool = True) -> tuple[NDArray[Any], Any]:
        """Actions for a batch of observations."""


@dataclass(frozen=True)
class Evaluation:
    """Episodes and how they ended; episode i began with ``reset(seed=seed + i)``. E episodes."""

    seed: int
    success: NDArray[np.bool_]  # (E,) the truth, at the last step
    ever_success: NDArray[np.bool_]  # (E,) the truth, at any step
    claimed: NDArray[np.bool_]  # (E,) what the plugged-in reward says, at the last step
    ever_claimed: NDArray[np.bool_]  # (E,) what it says, at any step
    distance: NDArray[np.float64]  # (E,) the truth's distance at the last step, inf possible
    achieved: NDArray[np.float32]  # (E, n_max, 10) final scenes in the arena
    desired: NDArray[np.float32]  # (E, n_max, 10) their goals

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
        policy: what predicts, or "random" for actions drawn from the action space.
        config: the environment's; the rest of it is not used.
        reward: a name or a live object: what is asked for its claims.
        episodes: how many.
        seed: of the first episode; the others follow.

    Raises:
        ValueError: no episodes, or a policy of another name.
    """
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; accepted is at least 1")
    _check_policy(policy)
    blocks = [
        _play(policy, config, reward, range(first, min(first + COPIES, seed + episodes)))
        for first in range(seed, seed + episodes, COPIES)
    ]
    return Evaluation(seed, *(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def film(
    policy: Policy | str, config: AgentConfig, reward: Any = "sparse", *, seed: int = 10_000
) -> list[NDArray[np.uint8]]:
    """Frames (height, width, 3) of one episode, the start included; ``seed`` as of ``evaluate``'s episodes."""
    _check_policy(policy)
    env = config.make_env(reward, render_mode="rgb_array")
    observation = _begin(env, seed)
    frames, over = [np.asarray(env.render())], False
    while not over:
        action = _actions(policy, [env], [observation])[0]
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
        frames.append(np.asarray(env.render()))
    env.close()
    return frames


def _check_policy(policy: Policy | str) -> None:
    if isinstance(policy, str) and policy != "random":
        raise ValueError(f'policy is {policy!r}; accepted are "random" and what has a predict method')


def _play(policy: Policy | str, config: AgentConfig, reward: Any, seeds: range) -> tuple[NDArray[Any], ...]:
    first = config.make_env(reward)
    shared = first.get_wrapper_attr("reward")  # a learned reward is read from its file once
    envs = [first, *(config.make_env(shared) for _ in seeds[1:])]
    observations = [_begin(env, seed) for env, seed in zip(envs, seeds, strict=True)]
    ends: list[dict[str, Any]] = [{} for _ in seeds]
    ever_claimed = np.zeros(len(envs), bool)
    running = list(range(len(envs)))
    while running:
        actions = _actions(policy, [envs[i] for i in running], [observations[i] for i in running])
        unfinished = []
        for i, action in zip(running, actions, strict=True):
            observations[i], _, terminated, truncated, ends[i] = envs[i].step(action)
            ever_claimed[i] |= ends[i]["is_success_model"]
            if not (terminated or truncated):
                unfinished.append(i)
        running = unfinished
    scenes = [env.get_wrapper_attr("scenes") for env in envs]
    for env in envs:
        env.close()
    success, ever, claimed, distance = (
        np.array([end[name] for end in ends]) for name in ("is_success", "ever_success", "is_success_model", "distance")
    )
    achieved, desired = (np.stack(part) for part in zip(*scenes, strict=True))
    return success, ever, claimed, ever_claimed, distance, achieved, desired


def _begin(env: gym.Env[Any, Any], seed: int) -> Any:
    env.action_space.seed(seed)
    return env.reset(seed=seed)[0]


def _actions(policy: Policy | str, envs: list[gym.Env[Any, Any]], observations: list[Any]) -> Any:
    """One action per environment."""
    if isinstance(policy, str):
        return [env.action_space.sample() for env in envs]
    batch = {key: np.stack([observation[key] for observation in observations]) for key in observations[0]}
    return policy.predict(batch, deterministic=True)[0]
