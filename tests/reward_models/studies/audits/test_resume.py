"""A killed audit goes on where it was, and gives the report of one that was not."""

from __future__ import annotations

import json

import pytest

from reward_models.auditing import audit, report
from reward_models.auditing.relations import RelationAudit
from reward_models.studies.audits import tables, work
from reward_models.studies.engine.registry import study
from reward_models.studies.engine.sweep import Sweep

SMALL = {
    "n_objects": (3,), "moves": ("positions",), "starts": 4, "gradient_evaluations": 10, "search_evaluations": 40,
    "fixed_samples": 20, "agent": False,
}  # fmt: skip


class Killed(BaseException):
    """What a kill is to Python."""


@pytest.fixture
def asked(monkeypatch):
    """The optimisers that were run, in order; the second call of the first audit is killed."""
    ran = []
    do = audit.work

    def once(judge, setup, job, agents, say):
        ran.append(job.name)
        if len(ran) == 2:
            raise Killed
        return do(judge, setup, job, agents, say)

    monkeypatch.setattr(audit, "work", once)
    return ran


def test_a_killed_audit_is_resumed(untrained, tmp_path, asked):
    folder = untrained("mpgnn")
    with pytest.raises(Killed):
        tables.resume(folder, tmp_path / "out", progress=lambda line: None, **SMALL)
    found = tables.resume(folder, tmp_path / "out", progress=lambda line: None, **SMALL)
    assert asked == ["gradient/positions/n3", "search/positions/n3", "search/positions/n3"]
    whole = audit.audit(str(folder), out=tmp_path / "whole", **SMALL)
    assert json.loads(json.dumps(found)) == whole
    assert report.read(tmp_path / "out") == report.read(tmp_path / "whole")
    tables.resume(folder, tmp_path / "out", progress=lambda line: None, **SMALL)
    assert len(asked) == 5  # none of the first folder anew


def test_other_settings_are_run_anew(tmp_path):
    few = {"predicates": ("near",), "starts": 3, "search_evaluations": 30}
    found = [
        tables.resume("truth", tmp_path, RelationAudit.name, progress=lambda line: None, seed=seed, **few)
        for seed in (0, 1, 0)
    ]
    assert found[0] == found[2] != found[1]
    assert found[0] == audit.audit("truth", RelationAudit.name, seed=0, **few)


def test_what_is_no_verdict_stops_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "check", lambda judge, setup: {"repeat": "3 of 4 scores change"})
    found = tables.resume("truth", tmp_path, progress=lambda line: None, **SMALL)
    assert found["failures"] == {"repeat": "3 of 4 scores change"}
    assert found["rows"] == []


def test_the_small_study(tmp_path):
    chosen = study("audits")
    sweep = Sweep(chosen, tmp_path / "results", tmp_path / "work", quick=True)
    assert set(sweep.units) >= {"truth/check", "matching/check", "matching/search/poses/n3"}
    assert all(unit.needs in ((), (f"{unit.name}/{work.CHECK}",)) for unit in sweep.units.values())
