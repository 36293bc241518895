"""Rows of the study of agents: whole or not there, and read only if they are what the study says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reward_models.shares import share, wilson
from reward_models.studies.agents import runs, work
from reward_models.studies.agents.tables import STUDY
from reward_models.studies.agents.work import AgentRow
from reward_models.studies.engine import rows
from reward_models.studies.engine.rows import RowError

RESULTS = Path(__file__).parents[4] / "results/agents"
RUNS = runs.units()
RUN = RUNS["agents/discrim_n3/matching/seed1"]
NETWORK = RUNS["rewards/matching"]


def row_of(run, **entries):
    return AgentRow(run.id, STUDY.stamp(), run.settings(run.id), **entries)


def made(run, **changes):
    """The row of a run that ended well."""
    if isinstance(run, runs.NetworkRun):
        return row_of(run, accuracy={"3-8": share(9, 10)}, **changes)
    shares = {name: share(run.episodes // 2, run.episodes) for name in work.SHARES}
    return row_of(run, evaluation=shares, **changes)


def write(tmp_path, run, entries):
    """Write the row of a run from its entries in JSON."""
    path = rows.path_of(STUDY, tmp_path, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries) + "\n")
    return path


def read(tmp_path, quick=False):
    return list(rows.read(STUDY, tmp_path, quick=quick).rows.values())


def test_round_trip(tmp_path):
    assert rows.of_unit(STUDY, tmp_path, RUN) is None
    for run in (RUN, NETWORK):
        rows.write(STUDY, tmp_path, run, [made(run)])
    assert rows.path_of(STUDY, tmp_path, RUN) == tmp_path / "rows/agents/discrim_n3/matching/seed1.json"
    assert rows.of_unit(STUDY, tmp_path, RUN) == [made(RUN)]
    assert read(tmp_path) == [made(NETWORK), made(RUN)]  # in the order of the study
    assert list((tmp_path / "rows").rglob(".*")) == []


def test_entries_of_a_row():
    entries = rows.to_json(work.fail(RUN, RUN.id, STUDY.stamp(), "ValueError: no"))
    assert (entries["id"], entries["version"], entries["error"]) == (RUN.id, runs.VERSION, "ValueError: no")
    assert entries["settings"]["config"] == RUN.config.as_json()
    assert entries["settings"]["reward"] == "matching"
    assert set(entries["versions"]) == {"python", "numpy", "torch", "numba", "gymnasium", "stable-baselines3"}
    assert json.loads(json.dumps(entries)) == entries
    assert share(3, 10) == {"hits": 3, "total": 10, "interval": list(wilson(3, 10))}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda row: "", "it is empty"),
        (lambda row: json.dumps(row)[:-20], "is not JSON"),
        (lambda row: "[]", "holds a list"),
        (lambda row: json.dumps({key: row[key] for key in row if key != "curve"}), "lacks curve"),
        (lambda row: json.dumps(row | {"steps": "many"}), "steps is 'many'; accepted is a int"),
        (lambda row: json.dumps(row | {"claims": {"mpgnn": {"claimed": {"hits": 3, "total": 2}}}}), "3 hits of 2"),
        (lambda row: json.dumps(row | {"accuracy": {"3-8": {"hits": 3}}}), "3 hits of None"),
    ],
)
def test_damaged_rows_are_named(damage, message, tmp_path):
    path = rows.write(STUDY, tmp_path, RUN, [made(RUN)])
    path.write_text(damage(rows.to_json(made(RUN))))
    for reading in (lambda: rows.of_unit(STUDY, tmp_path, RUN), lambda: read(tmp_path)):
        with pytest.raises(RowError, match=message) as error:
            reading()
        assert str(path) in str(error.value)
        assert "remove it, and it is run again" in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 0}, "agents/discrim_n3/matching/seed1 is of version 0, commit"),
        ({"id": "agents/discrim_n3/matching/seed2"}, "seed2, where the study has agents/discrim_n3/matching/seed1"),
        (
            {"settings": RUN.settings(RUN.id) | {"reward": "mpgnn"}},
            "reward is 'mpgnn' there and 'matching' in",
        ),
        ({"settings": RUN.quick().settings(RUN.id)}, "batch_size is 16 there and 256"),
        ({"settings": RUN.settings(RUN.id) | {"config": {"name": "x", "colour": 1}}}, "no field colour"),
        ({"evaluation": {"success": share(1, 4)}}, "4 episodes, where the study has 500"),
        ({"evaluation": {}}, "neither results nor an error"),
    ],
)
def test_rows_of_other_runs_are_named(changes, message, tmp_path):
    write(tmp_path, RUN, rows.to_json(made(RUN)) | changes)
    with pytest.raises(RowError, match=message):
        rows.of_unit(STUDY, tmp_path, RUN)
    with pytest.raises(RowError, match=message):
        read(tmp_path)


def test_rows_of_no_run_of_the_study_are_named(tmp_path):
    rows.write(STUDY, tmp_path, RUN, [made(RUN)])
    path = tmp_path / "rows/agents/discrim_n4/sparse/seed0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(rows.to_json(made(RUN))))
    with pytest.raises(RowError, match="is not in the study"):
        read(tmp_path)


def test_the_small_study_is_not_mixed_with_the_whole_one(tmp_path):
    rows.write(STUDY, tmp_path, RUN, [made(RUN.quick())])
    assert read(tmp_path, quick=True) == [made(RUN.quick())]
    with pytest.raises(RowError, match="batch_size is 16 there and 256"):
        read(tmp_path)


def test_a_setting_that_a_row_lacks_had_its_default(tmp_path):
    entries = rows.to_json(made(NETWORK))
    del entries["settings"]["training"]["data_seed"]
    write(tmp_path, NETWORK, entries)
    assert [rows.to_json(row) for row in read(tmp_path)] == [entries]
    del entries["settings"]["training"]["negative"]
    write(tmp_path, NETWORK, entries)
    with pytest.raises(RowError, match="negative is 'redrawn' there and 'mixture' in the study"):
        read(tmp_path)


def test_an_error_is_a_row(tmp_path):
    row = work.fail(RUN, RUN.id, STUDY.stamp(), "ValueError: no")
    rows.write(STUDY, tmp_path, RUN, [row])
    assert read(tmp_path) == [row]


def test_all_recorded_rows_are_of_this_study_and_of_committed_code():
    for row in read(RESULTS):
        assert row.stamp.commit, row.id
        assert not row.stamp.commit.endswith("-dirty"), row.id
