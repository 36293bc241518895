"""The algorithms of stable-baselines3 as a configuration sets them up: new, or read from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stable_baselines3 import PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from reward_models.agents.buffer import WorldHerReplayBuffer
from reward_models.agents.configs import AgentConfig
from reward_models.agents.object_policy import ObjectPPOPolicy, ObjectSACPolicy
from reward_models.agents.relation_features import RelationExtractor
from reward_models.agents.set_extractors import EXTRACTORS
from spatialsim_env.arrangements.dynamics import MODES

ALGORITHMS: dict[str, type[BaseAlgorithm]] = {"sac": SAC, "ppo": PPO}
WINDOW = 100  # episodes of the running means
_EXTRACTORS = {**EXTRACTORS, "relation": RelationExtractor}
_OBJECT_POLICIES = {"sac": ObjectSACPolicy, "ppo": ObjectPPOPolicy}


def make_model(config: AgentConfig, envs: VecEnv) -> BaseAlgorithm:
    """An untrained agent of a configuration."""
    common: dict[str, Any] = {
        "policy": _OBJECT_POLICIES[config.algorithm] if config.policy == "objects" else "MultiInputPolicy",
        "env": envs,
        "learning_rate": config.learning_rate,
        "batch_size": config.batch_size,
        "gamma": config.gamma,
        "ent_coef": config.entropy,
        "policy_kwargs": _policy_options(config),
        "stats_window_size": WINDOW,
        "seed": config.seed,
        "device": "cpu",
    }
    if config.algorithm == "ppo":
        return PPO(n_steps=config.rollout, **common)
    return SAC(
        buffer_size=config.capacity,
        learning_starts=config.learning_starts,
        train_freq=1,
        gradient_steps=config.gradient_steps,
        tau=config.tau,
        replay_buffer_class=WorldHerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": config.her_goals, "goal_selection_strategy": "future"},
        **common,
    )


def load_model(config: AgentConfig, path: Path, envs: VecEnv, seed: int | None) -> BaseAlgorithm:
    """Read an agent from a file of stable-baselines3; its classes are the configuration's, wherever they are by now.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it cannot be read.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; accepted is an agent that a training wrote")
    classes: dict[str, Any] = {"policy_kwargs": _policy_options(config)}
    if config.policy == "objects":
        classes["policy_class"] = _OBJECT_POLICIES[config.algorithm]
    if config.algorithm == "sac":
        classes["replay_buffer_class"] = WorldHerReplayBuffer
    try:
        return ALGORITHMS[config.algorithm].load(path, env=envs, device="cpu", custom_objects=classes, seed=seed)
    except Exception as error:
        raise ValueError(f"{path} cannot be read as an agent ({type(error).__name__}: {error})") from error


def _policy_options(config: AgentConfig) -> dict[str, Any]:
    mode = {"action_mode": config.env_kwargs.get("action_mode", MODES[0])} if config.policy == "objects" else {}
    return {"net_arch": list(config.net), "features_extractor_class": _EXTRACTORS[config.features], **mode}
