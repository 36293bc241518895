"""Agents that bring relations about, trained on the rules or on a learned model, and their success by both.

One goal-conditioned agent serves all of its predicates: SAC with hindsight goals on the features of
``relation_features``. Its reward is dense by default, the rule's margin or the model's probability; success is always
the rule's verdict at the last step of an episode.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reward_models.agents.configs import RELATION, SEVEN, AgentConfig
from reward_models.agents.evaluation import Evaluation
from reward_models.agents.evaluation import evaluate as evaluate_agent
from reward_models.agents.training import Agent
from reward_models.agents.training import train as train_agent
from reward_models.shares import share_of
from spatialsim_env.core.rewards import Reward

RULE = "dense"  # the reward of agents on the rules
CONFIG = AgentConfig(
    "relations",
    RELATION,
    {"predicates": list(SEVEN)},
    native=True,
    policy="mlp",
    features="relation",
    net=(128, 128),
    total_steps=36_000,
    n_envs=32,
    gamma=0.9,
    tau=0.01,
    learning_starts=2_000,
    gradient_steps=8,
    her_goals=1,
    checkpoint_every=9_000,
    evaluate_every=9_000,
    episodes=210,
)
EPISODES = 100  # of the evaluation, for each predicate
EVALUATION_SEED = 30_000  # of the first episode of each predicate
ALL = "all"
_SHARES = ("success", "ever_success", "claimed", "precision")


def config_of(predicates: Sequence[str] = SEVEN, *, steps: int | None = None, seed: int = 0) -> AgentConfig:
    """The configuration of an agent that brings these predicates about.

    Raises:
        ValueError: a value that is not accepted.
    """
    chosen = replace(CONFIG, env_kwargs={"predicates": list(predicates)}, seed=seed)
    return chosen if steps is None else replace(chosen, total_steps=steps)


def train(
    out: str | os.PathLike[str],
    reward: str | Reward = RULE,
    predicates: Sequence[str] = SEVEN,
    *,
    steps: int | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Agent:
    """Train an agent into a folder, or go on with its unfinished run there (``agents.training.train``).

    Args:
        out: folder of the run.
        reward: "dense" or "sparse" for the rules, "FOLDER:dense" for a learned model, or a live object.
        predicates: what it learns to bring about.
        steps: of the environment.
        seed: of everything random.
        progress: show a bar.

    Raises:
        ValueError: unknown names, or the folder holds another run.
    """
    return train_agent(config_of(predicates, steps=steps, seed=seed), reward, out, resume=True, progress=progress)


def evaluate(
    policy: Any, config: AgentConfig, reward: str | Reward, *, episodes: int = EPISODES, seed: int = EVALUATION_SEED
) -> dict[str, Evaluation]:
    """Episodes of each predicate of a configuration, equally many, by the deterministic policy."""
    names = config.env_kwargs["predicates"]
    return {
        name: evaluate_agent(
            policy, replace(config, env_kwargs={"predicates": [name]}), reward, episodes=episodes, seed=seed
        )
        for name in names
    }


def shares(evaluations: Mapping[str, Evaluation]) -> dict[str, Any]:
    """The shares of each predicate, and of all together."""
    parts = {name: (each.success, each.ever_success, each.claimed) for name, each in evaluations.items()}
    parts[ALL] = tuple(np.concatenate(columns) for columns in zip(*parts.values(), strict=True))  # type: ignore[assignment]
    return {
        name: dict(zip(_SHARES, map(share_of, (success, ever, claimed, success[claimed])), strict=True))
        for name, (success, ever, claimed) in parts.items()
    }
