"""Rows of the study of agents: whole or not there, and read only if they are what the study says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reward_models.shares import share, wilson
from reward_models.studies.agents import rows as study_rows
from reward_models.studies.agents import runs as study
from reward_models.studies.agents.rows import row_of
from reward_models.studies.paper.rows import RowError

RESULTS = Path(__file__).parents[4] / "results/agents"
RUNS = study.runs()
RUN = RUNS["agents/discrim_n3/matching/seed1"]
NETWORK = RUNS["rewards/matching"]


def made(run, **changes):
    """The row of a run that ended well."""
    if isinstance(run, study.NetworkRun):
        return row_of(run, accuracy={"3-8": share(9, 10)}, **changes)
    found = {name: share(run.episodes // 2, run.episodes) for name in study_rows.SHARES}
    return row_of(run, evaluation=found, **changes)


def test_round_trip(tmp_path):
    assert study_rows.of_run(tmp_path, RUN) is None
    assert study_rows.read(tmp_path) == []
    for run in (RUN, NETWORK):
        study_rows.write(tmp_path, run, made(run))
    assert study_rows.path_of(tmp_path, RUN) == tmp_path / "rows/agents/discrim_n3/matching/seed1.json"
    assert study_rows.of_run(tmp_path, RUN) == made(RUN)
    assert study_rows.read(tmp_path) == [made(NETWORK), made(RUN)]  # in the order of the study
    assert list((tmp_path / "rows").rglob(".*")) == []


def test_what_a_row_says():
    row = row_of(RUN)
    assert (row["id"], row["version"], row["error"]) == (RUN.id, study.VERSION, None)
    assert row["settings"]["config"] == RUN.config.as_json()
    assert row["settings"]["reward"] == "matching"
    assert set(row["versions"]) == {"python", "numpy", "torch", "numba", "gymnasium", "stable-baselines3"}
    assert json.loads(json.dumps(row)) == row
    assert share(3, 10) == {"hits": 3, "total": 10, "interval": list(wilson(3, 10))}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda row: "", "is not JSON"),
        (lambda row: json.dumps(row)[:-20], "is not JSON"),
        (lambda row: "[]", "holds a list; accepted is a JSON object"),
        (lambda row: json.dumps({key: row[key] for key in row if key != "curve"}), "lacks curve"),
        (lambda row: json.dumps(row | {"steps": "many"}), "steps is 'many'; accepted is a int"),
        (lambda row: json.dumps(row | {"claims": {"mpgnn": {"claimed": {"hits": 3, "total": 2}}}}), "3 hits of 2"),
        (lambda row: json.dumps(row | {"accuracy": {"3-8": {"hits": 3}}}), "3 hits of None"),
    ],
)
def test_damaged_rows_are_named(damage, message, tmp_path):
    path = study_rows.write(tmp_path, RUN, made(RUN))
    path.write_text(damage(made(RUN)))
    for reading in (lambda: study_rows.of_run(tmp_path, RUN), lambda: study_rows.read(tmp_path)):
        with pytest.raises(RowError, match=message) as error:
            reading()
        assert str(path) in str(error.value)
        assert "remove it, and it is run again" in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 0}, "agents/discrim_n3/matching/seed1 is of version 0, commit"),
        ({"id": "agents/discrim_n3/matching/seed2"}, "seed2 lies where agents/discrim_n3/matching/seed1 belongs"),
        ({"settings": RUN.settings | {"reward": "mpgnn"}}, "reward is 'mpgnn' there and 'matching' in the study"),
        ({"settings": RUN.quick().settings}, "total_steps is 96 there and"),
        ({"settings": RUN.settings | {"config": {"name": "x", "colour": 1}}}, "no field colour"),
        ({"evaluation": {"success": share(1, 4)}}, "4 episodes, where the study has 500"),
        ({"evaluation": {}}, "neither results nor an error"),
    ],
)
def test_rows_of_other_runs_are_named(changes, message, tmp_path):
    study_rows.write(tmp_path, RUN, made(RUN) | changes)
    with pytest.raises(RowError, match=message):
        study_rows.of_run(tmp_path, RUN)
    with pytest.raises(RowError, match=message):
        study_rows.read(tmp_path)


def test_rows_of_no_run_of_the_study_are_named(tmp_path):
    study_rows.write(tmp_path, RUN, made(RUN))
    path = tmp_path / "rows/agents/discrim_n4/sparse/seed0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(made(RUN)))
    with pytest.raises(RowError, match="agents/discrim_n4/sparse/seed0 is not in the study"):
        study_rows.read(tmp_path)


def test_the_small_study_is_not_mixed_with_the_whole_one(tmp_path):
    study_rows.write(tmp_path, RUN, made(RUN.quick()))
    assert study_rows.read(tmp_path, quick=True) == [made(RUN.quick())]
    with pytest.raises(RowError, match="total_steps is 96"):
        study_rows.read(tmp_path)


def test_a_setting_that_a_row_lacks_had_its_default(tmp_path):
    row = made(NETWORK)
    del row["settings"]["training"]["data_seed"]
    study_rows.write(tmp_path, NETWORK, row)
    assert study_rows.read(tmp_path) == [row]
    del row["settings"]["training"]["negative"]
    study_rows.write(tmp_path, NETWORK, row)
    with pytest.raises(RowError, match="negative is 'redrawn' there and 'mixture' in the study"):
        study_rows.read(tmp_path)


def test_an_error_is_a_row(tmp_path):
    row = row_of(RUN, error="ValueError: no")
    study_rows.write(tmp_path, RUN, row)
    assert study_rows.read(tmp_path) == [row]


def test_all_recorded_rows_are_of_this_study_and_of_committed_code():
    for row in study_rows.read(RESULTS):
        assert row["commit"], row["id"]
        assert not row["commit"].endswith("-dirty"), row["id"]
