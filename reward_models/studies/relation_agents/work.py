"""Work of the study of agents of 3D relations: from a run to its row, ``results/rel3d/agents/REWARD/seedK.json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reward_models.agents.relations import ALL, RULE, evaluate, shares
from reward_models.agents.run import learning_curve
from reward_models.agents.training import STEPS_COLUMN, train
from reward_models.provenance import Stamp
from reward_models.shares import value_of
from reward_models.studies.engine.run import Place
from reward_models.studies.engine.study import Json
from reward_models.studies.engine.sweep import Sweep
from reward_models.studies.relation_agents.runs import ON_RULE, VERSION, RelationAgentUnit

_LOGGED = ("eval/success_rate", "eval/success_rate_model")


@dataclass(frozen=True)
class RelationAgentRow:
    """The result of an agent. Shares are {"hits", "total", "interval"}, 95 % after Wilson.

    ``success`` is by the rule at the last step, ``ever_success`` at any, ``claimed`` by the agent's reward at the last
    step, ``precision`` the share of the claims that are true.
    """

    id: str  # rule/seed0, relational/seed0
    stamp: Stamp
    settings: Json  # the agent's configuration, the reward, and the episodes of the evaluation
    model: Json | None = None  # {"kind", "sha256"} of the model that was the reward
    steps: int = 0  # of training
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    predicates: Json = field(default_factory=dict)  # {predicate: shares of its episodes}, "all" of them together
    curve: list[list[float]] = field(default_factory=list)  # [steps, success, claimed] in training
    error: str | None = None


def upgrade(entries: Json) -> Json:
    """Give a recorded row its version, device and error."""
    return {"version": VERSION, "device": "cpu", "error": None, **entries}


def check(units: Sequence[RelationAgentUnit], sweep: Sweep[RelationAgentUnit, RelationAgentRow]) -> None:
    """Refuse agents on learned models without the models.

    Raises:
        ValueError: an option is missing.
        FileNotFoundError: there is no such folder.
    """
    for unit in units:
        if unit.reward != ON_RULE and sweep.rows(unit) is None:
            folder = sweep.options.get(unit.reward)
            if folder is None:
                raise ValueError(
                    f"{unit.id} is trained on a model; give the folder of its seeds, --option {unit.reward}=DIR, or a "
                    f"filter without it, --filter {ON_RULE}"
                )
            if not (Path(folder) / f"seed{unit.config.seed}").is_dir():
                raise FileNotFoundError(f"no folder {Path(folder) / f'seed{unit.config.seed}'} of a trained model")


def work(unit: RelationAgentUnit, place: Place) -> list[RelationAgentRow]:
    """Train and evaluate an agent."""
    reward = RULE
    if unit.reward != ON_RULE:
        reward = f"{Path(place.option(unit.reward) or '') / f'seed{unit.config.seed}'}:{RULE}"
    agent = train(unit.config, reward, place.folder, resume=True, progress=False)
    played = evaluate(agent, agent.config, agent.reward, episodes=unit.episodes)
    agent.close()
    record = agent.record
    curve = [
        [round(row[STEPS_COLUMN]), *(round(row[column], 4) for column in _LOGGED)]
        for row in learning_curve(place.folder)
        if _LOGGED[0] in row
    ]
    return [
        RelationAgentRow(
            unit.id,
            place.stamp,
            unit.settings(unit.id),
            model=record["model"] and {key: record["model"][key] for key in ("kind", "sha256")},
            **{key: record[key] for key in ("steps", "seconds", "cpu_seconds")},
            predicates=shares(played),
            curve=curve,
        )
    ]


def fail(unit: RelationAgentUnit, run: str, stamp: Stamp, error: str) -> RelationAgentRow:
    """Make the row of an agent that failed."""
    return RelationAgentRow(run, stamp, unit.settings(run), error=error)


def summarise_row(rows: Sequence[RelationAgentRow]) -> str:
    """Say in a line how often an agent succeeds."""
    return f"success by the rules {value_of(rows[0].predicates[ALL]['success']):.3f}"
