"""The tables of relations in 3D, from rows made by hand."""

from __future__ import annotations

import json

import pytest

from reward_models.shares import wilson
from reward_models.studies.readme import relations
from reward_models.studies.relation_agents import runs
from reward_models.studies.relation_agents.tables import STUDY
from reward_models.studies.relation_agents.work import RelationAgentRow


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(relations, "RESULTS", tmp_path)
    return tmp_path


def share(hits, total):
    return {"hits": hits, "total": total, "interval": list(wilson(hits, total))}


def agent(name, success, claimed):
    """The row of an agent."""
    unit = runs.units()[name]
    shares = {"success": share(success, 10), "claimed": share(claimed, 10)}
    settings = unit.settings(name) | {"episodes": 10}
    return RelationAgentRow(name, STUDY.stamp(), settings, steps=1000, predicates={"on": shares, "all": shares})


def cells(line):
    return line.strip("| ").split(" | ")


def test_agents_are_means_over_seeds():
    rows = [agent("rule/seed0", 9, 9), agent("rule/seed1", 8, 8), agent("relational/seed0", 2, 10)]
    text = relations.compare_agents(rows)
    header, _, on, _ = text.split("\n\n")[0].splitlines()
    assert cells(header) == ["relation", "on the rule", "on pairs: says", "on pairs: truly"]
    assert cells(on) == ["on", "0.850", "1.000", "0.200"]
    assert "2 on the rule, 1 on pairs; 1,000 steps" in text


def test_audits_hold_the_precision_of_each_relation(results):
    rows = [
        {"optimiser": "search", "predicate": "on", "precision": share(1, 4)},
        {"optimiser": "search", "predicate": "all", "precision": share(0, 0)},
    ]
    path = results / "audit" / "relational" / "audit.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"rows": rows, "settings": {"starts": 4}}))
    header, _, line = relations.audits().split("\n\n")[0].splitlines()
    assert cells(header) == ["trained, optimiser", "on", "all"]
    assert cells(line) == ["on pairs, search", "0.25", "none"]


@pytest.mark.parametrize("table", [relations.study, relations.agents, relations.audits])
def test_without_a_row_it_says_what_makes_one(table):
    assert "`spatialsim " in table()
