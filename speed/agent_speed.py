"""Cost of a learned reward for an agent, and time that an agent takes to learn on the truth.

    python speed/agent_speed.py            measures, and writes agent_speed.json beside this file
    python speed/agent_speed.py --print    prints the tables of the last run

*Cost*: agents of one configuration, equal but for their reward, are trained a few rounds at a time, in turn, on one
thread; milliseconds are CPU time per gradient step, everything in it: environment steps, replay with hindsight, the
reward, the update. A share is what a learned reward adds, in units of the truth's time; the learned rewards are
untrained networks, which cost what trained ones do. *Learning*: the named configuration on the sparse truth, on one
thread, three seeds; seconds are wall time with the evaluation at the end.
"""

from __future__ import annotations

import recording

# isort: split
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from recording import Row
from stable_baselines3 import SAC

from reward_models import models
from reward_models.agents.configs import CONFIGS, AgentConfig
from reward_models.agents.training import make_envs, make_model, train
from reward_models.judges.learned import LearnedModel, LearnedReward
from spatialsim_env.core.rewards import Reward

CONFIG = "discrim_n3"
TRUTH = "truth"
LEARNED = ("mpgnn", "matching")
GRADIENT_STEPS = 100  # of each agent and repetition
REPETITIONS = 9
SEEDS = 3
TARGET = {"share": 0.15, "success": 0.95, "steps": 10_000, "seconds": 180.0}
PACKAGES = ("numpy", "numba", "gymnasium", "torch", "stable-baselines3")


def agent(config: AgentConfig, name: str) -> Any:
    """An agent on the truth or on an untrained network, just before its first gradient step."""
    reward: str | Reward = "sparse" if name == TRUTH else LearnedReward(LearnedModel(models.create(name)))
    model = make_model(config, make_envs(config, reward))
    assert isinstance(model, SAC)
    return model.learn(config.learning_starts)


def milliseconds(model: Any, config: AgentConfig, gradient_steps: int) -> float:
    """CPU time of a gradient step with its share of the environment steps."""
    steps = gradient_steps * config.n_envs // config.gradient_steps
    start = time.process_time()
    model.learn(steps, reset_num_timesteps=False)
    return 1e3 * (time.process_time() - start) / gradient_steps


def costs(gradient_steps: int = GRADIENT_STEPS, repetitions: int = REPETITIONS) -> list[Row]:
    """Milliseconds per gradient step by reward, medians; after one repetition that is not counted."""
    config = replace(CONFIGS[CONFIG], total_steps=max(CONFIGS[CONFIG].total_steps, 10_000))
    agents = {name: agent(config, name) for name in (TRUTH, *LEARNED)}
    times = [[milliseconds(model, config, gradient_steps) for model in agents.values()] for _ in range(repetitions + 1)]
    milliseconds_of = dict(zip(agents, np.median(times[1:], axis=0).tolist(), strict=True))
    for model in agents.values():
        model.get_env().close()
    rows: list[Row] = []
    for name, ms in milliseconds_of.items():
        share = ms / milliseconds_of[TRUTH] - 1
        met = None if name == TRUTH else share <= TARGET["share"]
        rows.append({"reward": name, "ms": ms, "share": share, "met": met})
    return rows


def learning(steps: int | None = None, episodes: int | None = None, seeds: int = SEEDS) -> list[Row]:
    """Success and seconds of agents that are trained on the truth, one row a seed."""
    named = CONFIGS[CONFIG]
    total, episodes = steps or named.total_steps, episodes or named.episodes
    rows: list[Row] = []
    for seed in range(seeds):
        config = replace(named, total_steps=total, episodes=episodes, seed=seed)
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            trained = train(config, directory=Path(folder) / "agent", progress=False)
            seconds = time.perf_counter() - start
        assert trained.evaluation is not None
        success = trained.evaluation.success_rate
        trained.close()
        met = success >= TARGET["success"] and total <= TARGET["steps"] and seconds <= TARGET["seconds"]
        rows.append({"seed": seed, "steps": total, "success": success, "seconds": seconds, "met": met})
    return rows


def measure() -> dict[str, Any]:
    """All figures, with what they were measured on."""
    torch.set_num_threads(1)
    return recording.state_origin(PACKAGES) | {
        "settings": {"config": CONFIGS[CONFIG].as_json(), "gradient_steps": GRADIENT_STEPS, "repetitions": REPETITIONS},
        "target": TARGET,
        "costs": costs(),
        "learning": learning(),
    }


def table(result: dict[str, Any]) -> str:
    """The figures as Markdown."""
    target, config = result["target"], result["settings"]["config"]
    lines = []
    for row in result["costs"]:
        known = row["met"] is not None
        share, bound = (f"{row['share']:.1%}", f"at most {target['share']:.0%}") if known else ("-", "-")
        lines.append((row["reward"], f"{row['ms']:.1f}", share, bound, recording.format_met(row["met"])))
    costs = recording.markdown(("reward", "ms per gradient step", "added by the reward", "target", "met"), lines)
    bound = f"{target['success']:.2f} within {target['steps']:,} steps and {target['seconds']:.0f} s"
    seeds = []
    for row in result["learning"]:
        figures = (f"{row['steps']:,}", f"{row['success']:.2f}", f"{row['seconds']:.0f}")
        seeds.append((f"seed {row['seed']}", *figures, bound, recording.format_met(row["met"])))
    columns = (f"`{config['name']}` on the truth", "steps", "success", "s", "target", "met")
    return f"{costs}\n\n{recording.markdown(columns, seeds)}"


if __name__ == "__main__":
    recording.main(__file__, measure, table)
