"""The tables of relations in 3D, from the rows of the study, of the agents and of the audits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reward_models import shares
from reward_models.auditing.report import JSON, MARKDOWN
from reward_models.shares import value_of
from reward_models.studies.engine import rows as study_rows
from reward_models.studies.rel3d import report, tables
from reward_models.studies.rel3d.runs import VARIANTS
from reward_models.studies.relation_agents.tables import STUDY
from reward_models.studies.relation_agents.work import RelationAgentRow
from reward_models.tables import markdown
from spatialsim_env.relations.pairs.categories import NAMES

RESULTS = Path(__file__).parents[3] / "results" / "rel3d"
RULE = "rule"
REWARDS = {RULE: "on the rule", "relational": "on pairs", "questions": "on pairs and questions"}  # beginnings of ids
NOTHING = "No run is recorded yet: `{}` makes them."


def study() -> str:
    """Every model: accuracy on test pairs of our own scenes."""
    if not (RESULTS / "rows").is_dir():
        return NOTHING.format("spatialsim study run rel3d")
    known = report.read(RESULTS)
    header = ["model", "weights", "runs", "accuracy", "95 % interval", "pairs"]
    lines = []
    for name in known.variants:
        found = known.runs(name)
        lines.append(
            [
                VARIANTS[name].title,
                f"{found[0].n_weights:,}",
                str(len(found)),
                tables.spread(tables.values(found)),
                tables.bounds(known.interval(name)),
                tables.spread(tables.values(found, "pair_mean")),
            ]
        )
    samples = found[0].data["samples"]
    note = (
        f"{samples['train']:,} training and {samples['test']:,} test samples of scenes of our own. Accuracy: mean over "
        "30 predicates, ± over seeds; pairs: both members right (guessing: 0.25).\nThe relational model is told the "
        f"shapes of the objects, the others are not. Weights: with our {len(NAMES)} categories. "
        f"Commit {(found[0].stamp.commit or '')[:7]}."
    )
    return f"{markdown(header, lines)}\n\n{note}"


def agents() -> str:
    """Success by the rule of agents on the rule and on learned models, means over seeds."""
    if not (RESULTS / "agents").is_dir():
        return NOTHING.format("spatialsim study run relation_agents")
    return compare_agents(list(study_rows.read(STUDY, RESULTS / "agents").done.values()))


def compare_agents(rows: list[RelationAgentRow]) -> str:
    """Compare agents on the rule with agents on learned models, means over seeds."""
    by_kind = {kind: chosen for kind in REWARDS if (chosen := [row for row in rows if row.id.startswith(f"{kind}/")])}
    learned = [kind for kind in by_kind if kind != RULE]
    header = [
        "relation",
        "on the rule",
        *(f"{REWARDS[kind]}: {verdict}" for kind in learned for verdict in ("says", "truly")),
    ]
    lines = [
        [
            name,
            f"{_mean(by_kind[RULE], name, 'success'):.3f}",
            *(f"{_mean(by_kind[kind], name, key):.3f}" for kind in learned for key in ("claimed", "success")),
        ]
        for name in rows[0].predicates
    ]
    counts = ", ".join(f"{len(chosen)} {REWARDS[kind]}" for kind, chosen in by_kind.items())
    note = (
        f"Agents: {counts}; {rows[0].steps:,} steps of training, {rows[0].settings['episodes']} episodes of each "
        "relation.\nAn episode counts by its last step. *Says*: the reward's own verdict, *truly*: the rule's. Commits "
        f"{', '.join(dict.fromkeys((row.stamp.commit or '')[:7] for row in rows))}."
    )
    return f"{markdown(header, lines)}\n\n{note}"


def audits() -> str:
    """Precision of the models' claims under optimisation, for each relation."""
    found = {path.parent.name: json.loads(path.read_text()) for path in sorted(RESULTS.glob(f"audit/*/{JSON}"))}
    if not found:
        return NOTHING.format("spatialsim rel3d audit MODEL --out results/rel3d/audit/NAME")
    cells = {
        (name, row["optimiser"], row["predicate"]): _format_share(row["precision"])
        for name, held in found.items()
        for row in held["rows"]
    }
    relations = list(dict.fromkeys(relation for _, _, relation in cells))
    lines = [
        [f"{REWARDS[name]}, {optimiser}", *(cells[name, optimiser, relation] for relation in relations)]
        for name, optimiser in dict.fromkeys((name, optimiser) for name, optimiser, _ in cells)
    ]
    starts = next(iter(found.values()))["settings"]["starts"]
    note = f"{starts} starts a relation and optimiser; all figures: " + ", ".join(
        f"[{REWARDS[name]}](results/rel3d/audit/{name}/{MARKDOWN})" for name in found
    )
    return f"{markdown(['trained, optimiser', *relations], lines)}\n\n{note}."


def _mean(rows: list[RelationAgentRow], name: str, key: str) -> float:
    values = [shares.value_of(row.predicates[name][key]) or 0.0 for row in rows]
    return sum(values) / len(values)


def _format_share(share: Any) -> str:
    value = value_of(share)
    return "none" if value is None else f"{value:.2f}"
