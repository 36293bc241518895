"""The report of the study of agents, from rows made by hand."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from reward_models.shares import pool, share
from reward_models.studies.agents import runs, tables
from reward_models.studies.agents.runs import TransferRun
from reward_models.studies.agents.tables import STUDY
from reward_models.studies.agents.work import AgentRow
from reward_models.studies.engine import report, rows
from reward_models.studies.engine.study import Results

RUNS = runs.units()
CURVE = [[1_000.0 * k, 0.1 * k, 0.2 if k > 1 else None, -0.9, -0.8] for k in range(1, 6)]


def row_of(run, **entries):
    return AgentRow(run.id, STUDY.stamp(), run.settings(run.id), **entries)


def agent(name, success, claimed=None, right=None):
    """The row of an agent by its hits of 500; ``right`` of the claimed ones are true."""
    claimed = success if claimed is None else claimed
    hits = {"success": success, "ever_success": success, "claimed": claimed, "ever_claimed": claimed}
    evaluation = {key: share(value, 500) for key, value in hits.items()}
    evaluation["precision"] = share(success if right is None else right, claimed)
    return row_of(RUNS[name], evaluation=evaluation, steps=30_000, seconds=600.0, curve=CURVE)


def by_hand():
    """Rows of all that the tables show, with one failure and much that is missing."""
    made = [agent(f"agents/discrim_n3/sparse/seed{seed}", hits) for seed, hits in enumerate((490, 495, 500))]
    made += [agent(f"agents/discrim_n3/matching/seed{seed}", 480) for seed in range(3)]
    made += [agent("agents/discrim_n3/mpgnn/seed0", 5, 450, 4), agent("agents/discrim_n3/mpgnn/seed1", 0, 0, 0)]
    made += [
        agent("agents/pick_place_n3/sparse/seed0", 399),
        row_of(RUNS["agents/discrim_n5/sparse/seed0"], error="E: `no`"),
    ]
    made += [agent(f"agents/discrim_n3/{policy}", hits) for policy, hits in (("expert", 500), ("random", 0))]
    made.append(agent("agents/discrim_n3/cloned/seed0", 250))
    accuracy = {name: share(hits, 100) for name, hits in (("3-8", 98), ("9-20", 90), ("21-30", 80), ("rollouts", 70))}
    made += [
        row_of(RUNS[name], accuracy=accuracy, n_weights=1_234, seconds=61.4)
        for name in ("rewards/mpgnn", "rewards/matching", "rollouts/matching")
    ]
    claims = {"matching": {"claimed": share(400, 500), "precision": share(400, 400)}}
    claims["mpgnn"] = {"claimed": share(0, 500), "precision": share(0, 0)}
    made.append(replace(agent("generalisation/discrim_3_5/n6", 425), claims=claims))
    return made


def done(made):
    """Rows without an error by id."""
    return {row.id: row for row in made if row.error is None}


def lines(table):
    """Its lines as {column: cell}."""
    return [dict(zip(table.columns, line, strict=True)) for line in table.lines]


@pytest.mark.parametrize(("hits", "total"), [(0, 500), (3, 10), (250, 500), (500, 500)])
def test_one_run_has_the_interval_that_its_episodes_leave(hits, total):
    """Jeffreys' interval, apart from the draws."""
    found = pool([share(hits, total)])
    low, high = stats.beta.ppf([0.025, 0.975], hits + 0.5, total - hits + 0.5)
    assert found.value == hits / total
    assert found.interval == pytest.approx((0 if hits == 0 else low, 1 if hits == total else high), abs=0.006)


def test_the_interval_of_several_runs_is_over_runs_and_episodes():
    apart, alike = (pool([share(hits, 500) for hits in of]) for of in ((250, 350, 450), (350, 350, 350)))
    assert apart.value == alike.value == 0.7
    low, high = stats.beta.ppf([0.025, 0.975], 1050.5, 450.5)
    assert alike.interval == pytest.approx((low, high), abs=0.005)
    assert apart.interval[0] < 0.55
    assert apart.interval[1] > 0.85
    assert pool([share(250, 500), share(350, 500), share(450, 500)]) == apart


def test_runs_without_a_trial_do_not_count():
    assert pool([share(0, 0), share(3, 10)]) == pool([share(3, 10)])
    assert pool([share(0, 0)]) is None
    assert pool([]) is None


def test_configurations():
    found = {line["configuration"]: line for line in lines(tables.configurations(done(by_hand())))}
    assert found.keys() == runs.TRAINED.keys()
    first = found["discrim_n3"]
    assert first["truly achieved"].startswith("0.990 (0.9")
    figures = [first[name] for name in ("agents", "target", "met", "expert", "random", "cloned", "steps", "minutes")]
    assert figures == ["3 of 3", "0.97", "yes", "1.000", "0.000", "0.500", "30,000", "10.0"]
    pick = found["pick_place_n3"]
    assert [pick[name] for name in ("agents", "target", "met", "expert")] == ["1 of 3", "0.80", "no", "-"]
    failed = found["discrim_n5"]
    assert [failed[name] for name in ("truly achieved", "agents", "met", "steps")] == ["-", "0 of 3", "-", "-"]
    assert [found["ident_n5"][name] for name in ("target", "met")] == ["-", "-"]


def test_rewards_learned_and_true():
    found = {(line["configuration"], line["reward"]): line for line in lines(tables.rewards(done(by_hand())))}
    assert list(found) == [
        (config, reward)
        for config in ("discrim_n3", "discrim_n5")
        for reward in ("sparse truth", "dense truth", "matching", "mpgnn")
    ] + [("discrete_n3", "dense truth"), ("discrete_n3", "sparse truth")]
    matching, mpgnn = found["discrim_n3", "matching"], found["discrim_n3", "mpgnn"]
    assert matching["truly achieved"].startswith("0.960 (")
    assert matching["precision"].startswith("1.000 (")
    assert (matching["points beside the first"], matching["accuracy 3-8"]) == ("-3.0", "0.9800")
    assert mpgnn["says achieved"].startswith("0.450 (")  # 450 and 0 of 500
    assert mpgnn["truly achieved"].startswith("0.005 (")
    assert mpgnn["precision"].startswith("0.009 (")  # 4 of 450 claims
    assert (mpgnn["points beside the first"], mpgnn["agents"]) == ("-98.5", "2 of 3")
    assert found["discrim_n3", "dense truth"]["agents"] == "0 of 3"


def test_precision_without_a_claim_is_undefined():
    known = done([agent("agents/discrim_n3/mpgnn/seed1", 0, 0, 0)])
    [line] = [line for line in lines(tables.rewards(known)) if line["agents"] == "1 of 3"]
    assert (line["precision"], line["points beside the first"]) == ("undefined", "-")


def test_generalisation():
    found = {(line["agent"], line["tested on"]): line for line in lines(tables.generalisation(done(by_hand())))}
    assert len(found) == sum(isinstance(run, TransferRun) for run in RUNS.values()) == 10
    line = found["discrim_3_5", "6 objects"]
    assert line["truly achieved"].startswith("0.850 (")
    assert line["matching says achieved"].startswith("0.800 (")
    assert (line["mpgnn precision"], found["discrim_3_5", "7 objects"]["truly achieved"]) == ("-", "-")
    assert ("discrim_n5_narrow", "scales 1 to 2") in found


def test_classifiers():
    found = lines(tables.classifiers(done(by_hand())))
    assert [(line["network"], line["trained on"]) for line in found] == [
        (network, source) for network in ("matching", "mpgnn") for source in ("benchmark", "rollouts")
    ]
    assert found[0]["benchmark 9-20"].startswith("0.900 (")
    assert found[1]["fresh rollouts"].startswith("0.700 (")
    assert (found[1]["weights"], found[1]["seconds"]) == ("1,234", "61")
    assert set(list(found[3].values())[2:]) == {"-"}


def test_the_report_is_written_from_rows_alone_and_again_the_same(tmp_path):
    for row in by_hand():
        rows.write(STUDY, tmp_path, RUNS[row.id], [row])
    path = report.write_study(STUDY, tmp_path, tmp_path / "out")
    text = path.read_text()
    assert f"16 of {len(RUNS)} runs done, 1 failed" in text
    assert "- `agents/discrim_n5/sparse/seed0`: `E: 'no'`" in text
    assert text.count("- `agents/discrim_n5/sparse/seed1`") == 1
    assert "- `agents/discrim_n3/sparse/seed0`" not in text
    written = {file.relative_to(path.parent).as_posix(): file.read_bytes() for file in path.parent.rglob("*.*")}
    names = ("configurations", "rewards", "generalisation", "classifiers")
    assert written.keys() == {"report.md", "curves.png", *(f"tables/{name}.csv" for name in names)}
    [header, first, *_] = csv.reader(written["tables/configurations.csv"].decode().splitlines())
    assert (header[0], first[0]) == ("configuration", "discrim_n3")
    report.write_study(STUDY, tmp_path, path.parent)
    assert all((path.parent / name).read_bytes() == content for name, content in written.items())


def test_without_rows_there_is_a_report_and_no_figure(tmp_path):
    (tmp_path / "curves.png").touch()
    text = report.write(tables.report(Results({}, False, tuple(RUNS), tmp_path)), tmp_path).read_text()
    assert f"0 of {len(RUNS)} runs done" in text
    assert report.EMPTY in text
    assert not (tmp_path / "curves.png").exists()


def test_learning_curves_show_the_truth_and_what_learned_rewards_say():
    figure = tables.draw_curves(done(by_hand()))
    panels = {axes.get_title(): axes for axes in figure.axes if axes.get_title()}
    assert panels.keys() == {"discrim_n3", "pick_place_n3"}
    drawn = [line for line in panels["discrim_n3"].lines if line.get_linewidth() == 1.6]
    assert [(line.get_color(), line.get_linestyle()) for line in drawn] == [
        ("C0", "-"),  # the sparse truth
        *[(color, style) for color in ("C2", "C3") for style in ("-", "--")],  # matching, mpgnn
    ]
    assert drawn[0].get_xdata()[[0, -1]].tolist() == [1_000, 5_000]
    assert drawn[0].get_ydata() == pytest.approx(drawn[0].get_xdata() / 10_000)
    [target] = [line for line in panels["pick_place_n3"].lines if line.get_linestyle() == ":"]
    assert np.unique(target.get_ydata()) == [0.8]
