from __future__ import annotations

import copy

import numpy as np
import pytest

from reward_models.auditing.measures import calibration
from reward_models.auditing.targets import card_of, compare, targets
from reward_models.shares import wilson


def share(hits, total):
    return {"hits": hits, "total": total, "interval": list(wilson(hits, total))}


def row(optimiser="gradient", n=3, claimed=240, right=240, **more):
    return {
        "optimiser": optimiser,
        "moves": "agent" if optimiser == "agent" else "positions",
        "n_objects": n,
        "starts": 256,
        "budget": 500,
        "claimed": share(claimed, 256),
        "achieved": share(right, 256),
        "precision": share(right, claimed),
        "reach": share(right, 256),
        "calibration": {},
        "paths": [],
        **more,
    }


def found(*rows, **more):
    parts = {
        "format": 1,
        "version": "0",
        "settings": {"criterion": "similarity"},
        "failures": {},
        "not_run": {},
        "fixed": [],
    }
    return {**parts, "rows": list(rows), **more}


def verdicts(report):
    return {target.name: (target.target, target.value, target.met) for target in targets(report)}


# --- targets --------------------------------------------------------------------------------------------------------


def test_precision_and_reach():
    assert verdicts(found(row(claimed=200, right=197), row("search", 20, claimed=100, right=97))) == {
        "gradient of positions, 3 objects: precision": (0.98, 197 / 200, True),
        "gradient of positions, 3 objects: reach": (0.8, 197 / 256, False),
        "search of positions, 20 objects: precision": (0.98, 0.97, False),
    }


def test_an_undefined_precision_meets_no_target():
    assert verdicts(found(row(claimed=0, right=0))) == {
        "gradient of positions, 3 objects: precision": (0.98, None, False),
        "gradient of positions, 3 objects: reach": (0.8, 0.0, False),
    }


def test_other_numbers_of_objects_have_no_target():
    assert targets(found(row(n=4), row("agent", 20))) == []


@pytest.mark.parametrize(("on_model", "met"), [(95, True), (94, False), (100, True)])
def test_agents(on_model, met):
    training = {"success": share(on_model, 100), "success_on_truth": share(100, 100)}
    known = verdicts(found(row("agent", 5, claimed=100, right=95, training=training)))
    assert known["agent, 5 objects: precision"] == (0.95, 0.95, True)
    gap, value, is_met = known["agent, 5 objects: success short of the truth's agent"]
    assert (gap, is_met) == (0.05, met)
    assert value == pytest.approx(1 - on_model / 100)


def test_a_target_is_read_as_a_line():
    lines = [str(target) for target in targets(found(row(claimed=0, right=0)))]
    assert lines[0] == "gradient of positions, 3 objects: precision: undefined, target at least 0.98: NOT MET"
    assert lines[1] == "gradient of positions, 3 objects: reach: 0, target at least 0.8: NOT MET"


# --- comparing with a card ------------------------------------------------------------------------------------------


def test_a_report_reproduces_itself_and_its_card():
    report = found(row(), row("search", claimed=0, right=0))
    assert compare(report, report) == compare(report, card_of(report)) == compare(card_of(report), report) == []


def test_a_card_keeps_no_paths():
    card = card_of(found(row()))
    assert "paths" not in card["rows"][0]
    assert "calibration" not in card["rows"][0]


def test_a_share_within_the_interval_is_reproduced_and_one_beyond_is_not():
    recorded = found(row(claimed=256, right=200))
    low, high = wilson(200, 256)
    within, beyond = int(np.ceil(low * 256)), int(np.floor(low * 256)) - 1
    assert compare(found(row(claimed=256, right=within)), recorded) == []
    differences = compare(found(row(claimed=256, right=beyond)), recorded)
    assert [line.split(":")[1].split()[0] for line in differences] == ["achieved", "precision", "reach"]
    assert "recorded 0.7812" in differences[0]
    assert compare(found(row(claimed=256, right=int(high * 256) + 1)), recorded)


def test_fewer_trials_have_a_wider_interval():
    recorded = found(row(claimed=256, right=128))
    few = row(claimed=256, right=128)
    few |= {name: share(5, 16) for name in ("achieved", "precision", "reach")} | {"claimed": share(16, 16)}
    assert compare(found(few), recorded) == []
    few |= {name: share(2, 16) for name in ("achieved", "precision", "reach")}
    assert len(compare(found(few), recorded)) == 3


def test_a_part_may_be_repeated_and_nothing_else():
    recorded = found(row(), row(n=5))
    assert compare(found(row(n=5)), recorded) == []
    assert compare(found(row(n=8)), recorded) == ["gradient of positions, 8 objects: not recorded"]
    assert compare(found(row(budget=100)), recorded) == ["gradient of positions, 3 objects: budget 100; recorded 500"]


def test_undefined_is_reproduced_by_undefined_alone():
    none, some = found(row(claimed=0, right=0)), found(row(claimed=1, right=1))
    assert any("precision 1.0000; recorded undefined" in line for line in compare(some, none))
    assert any("precision undefined; recorded 1.0000" in line for line in compare(none, some))


def test_failed_checks_are_compared():
    failed = found(failures={"finite": "…"})
    assert compare(failed, found(row())) == ["failed checks: finite; recorded: none"]
    assert compare(failed, copy.deepcopy(failed)) == []


def test_audits_by_other_criteria_are_not_the_same():
    other = found(row(), settings={"criterion": "positions"})
    assert compare(other, found(row())) == ["criterion positions; recorded similarity"]


# --- calibration ----------------------------------------------------------------------------------------------------


def test_who_is_as_sure_as_right_has_no_error():
    score = np.repeat([-np.log(3), np.log(3)], 400)  # probabilities 0.25 and 0.75
    achieved = np.tile([True, False, False, False], 200)
    achieved[400:] = ~achieved[400:]
    assert calibration(score, achieved) == {"ece": 0.0, "bins": [[0.2, 400, 0.25, 0.25], [0.7, 400, 0.75, 0.75]]}


@pytest.mark.parametrize(("score", "achieved", "ece"), [(1000.0, False, 1.0), (1000.0, True, 0.0), (0.0, True, 0.5)])
def test_the_error_is_the_distance_of_sure_and_right(score, achieved, ece):
    assert calibration(np.full(10, score), np.full(10, achieved))["ece"] == ece


def test_the_error_is_weighted_by_the_bins():
    score = np.array([50.0] * 3 + [-50.0])
    found_here = calibration(score, np.array([True, False, False, False]))
    assert found_here["ece"] == pytest.approx(3 / 4 * 2 / 3)
    assert [number for _, number, *_ in found_here["bins"]] == [1, 3]
