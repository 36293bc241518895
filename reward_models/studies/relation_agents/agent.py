"""Agents that bring relations about, trained on the rules or on a learned model, and what they are worth by both.

One goal-conditioned agent serves all of its predicates: SAC with hindsight goals (``hindsight``) on the features of
``agent_features``. Its reward is dense by default, the rule's margin or the model's probability; success is always the
rule's verdict at the last step of an episode. Rows are ``results/rel3d/agents/NAME.json``, an object a trained agent:

    id                       rule/seed0, relational/seed0: what it was trained on, and the seed
    package, commit, versions, machine      as in the rows of the benchmark (``benchmark/rows.py``)
    settings                 the agent's configuration, the reward, and the episodes of the evaluation
    model                    null, or what its output is made into and the SHA-256 of the model that was the reward
    steps, seconds, cpu_seconds     of training
    predicates               {predicate: shares of its episodes}, "all" of them together
    curve                    [[steps, success, claimed], ...] in training

Shares are {"hits", "total", "interval"}, 95 % after Wilson: ``success`` by the rule at the last step, ``ever_success``
at any, ``claimed`` what the agent's reward says at the last step, ``precision`` the share of the claims that are true.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reward_models import provenance
from reward_models.agents.configs import RELATION, SEVEN, AgentConfig
from reward_models.agents.evaluation import Evaluation
from reward_models.agents.evaluation import evaluate as evaluate_agent
from reward_models.agents.run import learning_curve
from reward_models.agents.training import STEPS_COLUMN, Agent
from reward_models.agents.training import train as train_agent
from reward_models.shares import format_share, share_of, value_of
from reward_models.tables import Table
from spatialsim_env.checks import read_object, require_entries
from spatialsim_env.core.rewards import Reward
from spatialsim_env.files import replace_file

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
ENDING = ".json"
_SHARES = ("success", "ever_success", "claimed", "precision")
_LOGGED = ("eval/success_rate", "eval/success_rate_model")
_ENTRIES = {"id": str, "package": str, "settings": dict, "model": (dict, type(None)), "steps": int,
            "seconds": (int, float), "cpu_seconds": (int, float), "predicates": dict, "curve": list}  # fmt: skip

Row = dict[str, Any]


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
    """Train an agent into a folder, or resume its unfinished run there (``agents.training.train``).

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


def shares(found: Mapping[str, Evaluation]) -> dict[str, Any]:
    """The shares of each predicate, and of all together."""
    parts = {name: (each.success, each.ever_success, each.claimed) for name, each in found.items()}
    parts[ALL] = tuple(np.concatenate(columns) for columns in zip(*parts.values(), strict=True))  # type: ignore[assignment]
    return {
        name: dict(zip(_SHARES, map(share_of, (success, ever, claimed, success[claimed])), strict=True))
        for name, (success, ever, claimed) in parts.items()
    }


def row_of(name: str, agent: Agent, folder: str | os.PathLike[str], episodes: int = EPISODES) -> Row:
    """The row of a trained agent, which is evaluated for it.

    Args:
        name: its id, as rule/seed0.
        agent: as ``train`` gives it.
        folder: of its run.
        episodes: for each predicate.
    """
    found = evaluate(agent, agent.config, agent.reward, episodes=episodes)
    record = agent.record
    settings = {
        "config": agent.config.as_json(),
        "reward": _named(record),
        "episodes": episodes,
        "seed": EVALUATION_SEED,
    }
    return {
        "id": name,
        **provenance.made_by(("gymnasium", "stable-baselines3")),
        "settings": settings,
        "model": record["model"] and {key: record["model"][key] for key in ("kind", "sha256")},
        **{key: record[key] for key in ("steps", "seconds", "cpu_seconds")},
        "predicates": shares(found),
        "curve": [
            [round(row[STEPS_COLUMN]), *(round(row[column], 4) for column in _LOGGED)]
            for row in learning_curve(folder)
            if _LOGGED[0] in row
        ],
    }


def write(results: str | os.PathLike[str], row: Row) -> Path:
    """Write a row; returns its file, which is whole or as it was before."""
    path = Path(results) / f"{row['id']}{ENDING}"
    with replace_file(path) as temporary:
        temporary.write_text(json.dumps(row, indent=1, allow_nan=False) + "\n")
    return path


def read(results: str | os.PathLike[str]) -> list[Row]:
    """The rows of a folder of results by id; none where there is no folder.

    Raises:
        ValueError: a file is not a row.
    """
    rows = []
    for path in sorted(Path(results).rglob(f"*{ENDING}")):
        row = read_object(path)
        require_entries(path, row, _ENTRIES, ValueError)
        rows.append(row)
    return rows


def table(rows: Sequence[Row]) -> Table:
    """Success by the rule of each agent and predicate, beside what its reward claims.

    The last column is the gap: how much less often an agent succeeds by the rule than the agent of the same seed that
    was trained on the rule.
    """
    on_rule = {_seed(row): value_of(row["predicates"][ALL]["success"]) for row in rows if row["model"] is None}
    lines = []
    for row in rows:
        best, own = on_rule.get(_seed(row)), value_of(row["predicates"][ALL]["success"])
        for name, found in row["predicates"].items():
            gap = f"{best - own:+.3f}" if name == ALL and row["model"] and best is not None and own is not None else "-"
            lines.append(
                (row["id"], name, *(format_share(found[key]) for key in ("success", "claimed", "precision")), gap)
            )
    columns = ("agent", "predicate", "success by the rule", "its reward says so", "precision", "gap")
    return Table("agents", "Agents on rules and on learned models", columns, tuple(lines))


def _named(record: Row) -> str:
    """The reward of a run, without where the folder of its model lay."""
    if record["model"] is None:
        return record["reward"]
    return f"{'/'.join(Path(record['model']['folder']).parts[-2:])}:{record['model']['kind']}"


def _seed(row: Row) -> int:
    return int(row["settings"]["config"]["seed"])
