"""Runs of the study of agents of 3D relations: ``REWARD/seedK``, an agent on the rules or on a trained model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from reward_models.agents.configs import AgentConfig
from reward_models.agents.relations import EPISODES, EVALUATION_SEED, RULE, config_of
from reward_models.studies.engine.study import Json, Unit, as_json

VERSION = 1  # raised whenever a change of the code alters results; rows of two versions are never mixed
ON_RULE = "rule"
LEARNED = ("relational", "questions")  # options: folders of trained models, a model a seed in seedK
SEEDS = (0, 1)
_QUICK: dict[str, Any] = {
    "net": (8,), "n_envs": 4, "learning_starts": 220, "total_steps": 320, "batch_size": 16, "gradient_steps": 1,
    "buffer_size": 1_000, "episodes": 7, "checkpoint_every": 240, "evaluate_every": 240,
}  # fmt: skip


@dataclass(frozen=True)
class RelationAgentUnit(Unit):
    """An agent."""

    reward: str  # ON_RULE or one of LEARNED
    config: AgentConfig
    episodes: int = EPISODES  # of the evaluation, for each predicate

    def settings(self, run: str) -> Json:
        reward = RULE if self.reward == ON_RULE else f"{self.id}:{RULE}"
        values = {"config": self.config.as_json(), "reward": reward, "episodes": self.episodes, "seed": EVALUATION_SEED}
        return as_json(values)


def units(quick: bool = False) -> dict[str, RelationAgentUnit]:
    """List all agents; ``quick`` trains and plays too little to learn from."""
    listed = [
        RelationAgentUnit(f"{reward}/seed{seed}", reward, config_of(seed=seed))
        for reward in (ON_RULE, *LEARNED)
        for seed in SEEDS
    ]
    return {
        unit.id: replace(unit, config=replace(unit.config, **_QUICK), episodes=2) if quick else unit for unit in listed
    }
