"""The table of agents of 3D relations, from their rows."""

from __future__ import annotations

from collections.abc import Iterable

from reward_models.agents.relations import ALL
from reward_models.shares import format_share, value_of
from reward_models.studies.engine import report as shell
from reward_models.studies.engine.study import Files, Report, Results, Study
from reward_models.studies.relation_agents import runs, work
from reward_models.studies.relation_agents.runs import RelationAgentUnit
from reward_models.studies.relation_agents.work import RelationAgentRow
from reward_models.tables import NONE, Table


def report(results: Results[RelationAgentRow]) -> Report:
    """Make the report."""
    origin = f"{shell.QUICK * results.quick}\n\n{shell.origin(results.rows.values())}".strip()
    parts = (origin, compare(results.done.values()), shell.failures(results), shell.missing(results))
    return Report("Agents of 3D relations", parts)


def compare(rows: Iterable[RelationAgentRow]) -> Table:
    """Compare success by the rule of each agent and predicate with the claims of its reward.

    The last column is the gap: how much less often an agent succeeds by the rule than the agent of the same seed that
    was trained on the rule.
    """
    rows = list(rows)
    on_rule = {_seed(row): value_of(row.predicates[ALL]["success"]) for row in rows if row.model is None}
    lines = []
    for row in rows:
        best, own = on_rule.get(_seed(row)), value_of(row.predicates[ALL]["success"])
        for name, measured in row.predicates.items():
            known = name == ALL and row.model and best is not None and own is not None
            gap = f"{best - own:+.3f}" if known else NONE  # type: ignore[operator]
            shares = (format_share(measured[key]) for key in ("success", "claimed", "precision"))
            lines.append((row.id, name, *shares, gap))
    columns = ("agent", "predicate", "success by the rule", "its reward says so", "precision", "gap")
    return Table("agents", "Agents on rules and on learned models", columns, tuple(lines))


def _seed(row: RelationAgentRow) -> int:
    return int(row.settings["config"]["seed"])


def row_file(unit: str) -> str:
    """Name the file of an agent's row after it."""
    return f"{unit}.json"


STUDY: Study[RelationAgentUnit, RelationAgentRow] = Study(
    "relation_agents",
    runs.VERSION,
    RelationAgentRow,
    runs.units,
    work.work,
    report,
    work.fail,
    work.summarise_row,
    Files("results/rel3d/agents", rows=".", path=row_file, form="object"),
    title="Agents of 3D relations, on rules and on trained models",
    packages=("gymnasium", "stable-baselines3"),
    options=dict.fromkeys(runs.LEARNED, "folder of trained models, one a seed in seedK"),
    check=work.check,
    upgraded=work.upgrade,
)
