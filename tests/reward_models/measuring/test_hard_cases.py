"""Judges on the hard suite: what simple ones get, the threshold's closed form, refusals, the table, the command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_models import models
from reward_models.judges.learned import LearnedModel
from reward_models.measuring import hard_cases
from reward_models.measuring.hard_cases import (
    CEILING,
    HardResult,
    Ideal,
    RuleJudge,
    TaskTruth,
    detection_threshold,
    ratio_to_ceiling,
    reference_judges,
    run,
    share_of_ceiling,
    size_for,
    table,
    thresholds,
)
from reward_models.shares import wilson
from spatialsim_env.arrangements import hard_suite
from spatialsim_env.arrangements.hard_suite import DISPLACEMENTS, rng_of
from spatialsim_env.arrangements.ideal import observer
from spatialsim_env.arrangements.tasks import Discrimination

DISPLACED = [name for name in hard_suite.NAMES if name.startswith("displaced")]


class Constant:
    """Says one thing of every pair, and remembers what it was asked."""

    def __init__(self, value: float) -> None:
        self.value, self.asked = value, []

    def score(self, achieved, desired):
        self.asked.append((desired, achieved))
        return np.full(len(achieved), self.value)


def accuracy(rows, judge, task, certified=None) -> float:
    chosen = [row for row in rows if (row.judge, row.task) == (judge, task) and certified in (None, row.certified)]
    assert len(chosen) == 1
    return chosen[0].accuracy.value


@pytest.fixture(scope="module")
def rows():
    """Every task at its least range, judged by a constant yes, the truth and the rules."""
    return run(Constant(1.0), "yes", objects=[(3, 8)], size=400)


def test_a_constant_is_right_half_of_the_time_and_detects_nothing(rows):
    found = [row for row in rows if row.judge == "yes"]
    assert {row.task for row in found} == set(hard_suite.NAMES)
    assert all(row.correct == row.total / 2 == 200 for row in found)
    assert thresholds(rows)["yes", "3-8"] is None


def test_the_truth_is_right_where_it_certifies(rows):
    for row in rows:
        if row.judge == "truth" and row.certified:
            assert row.accuracy.value >= 0.995
    assert accuracy(rows, "truth", "displaced/2sigma") == pytest.approx(0.5, abs=0.01)
    assert 5 < thresholds(rows)["truth", "3-8"] < 8  # the tolerance is 5 sigmas, of which the fit takes a share


def test_the_rules_see_what_the_tasks_leave_them(rows):
    """A figure of the specification's section 7, and the shortcuts that the matched negatives close."""
    assert accuracy(rows, "spread", "redrawn") == pytest.approx(0.924, abs=0.06)
    closed = {"spread_matched": ["spread"], "radius_matched": ["spread", "sorted_distances"]}
    for task in ("mirrored/turned", "mirrored/kept", "swapped", "twisted"):
        closed[task] = ["spread", "sorted_distances"]
    for task, blind in closed.items():
        for rule in blind:
            assert abs(accuracy(rows, rule, task) - 0.5) < 0.06  # 2.4 standard errors
        assert accuracy(rows, "matching_rule", task) > 0.97
    assert accuracy(rows, "sorted_distances", "spread_matched") > 0.9


def test_what_has_no_truth_is_refused(rows):
    refused = [row for row in rows if row.correct is None]
    assert [(row.judge, row.task) for row in refused] == [
        ("ideal observer", "abstract_distractors"),
        ("truth", "abstract_distractors"),
    ]
    assert refused[0].accuracy is refused[1].accuracy is None
    assert "accepted are abstract tasks of up to 8 objects without distractors" in refused[0].refusal
    assert "no truth for abstract scenes with distractors" in refused[1].refusal


def test_displacements_beyond_the_tolerance_stand_with_and_without_certificates(rows):
    for name in DISPLACED:
        ways = [row.certified for row in rows if row.task == name and row.judge == "yes"]
        assert ways == ([False] if hard_suite.find(name).displacement <= 6 else [False, True])


# --- threshold ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ({2: 0.75}, 2.0),
        ({2: 1.0}, 1.0),  # on the line from one half at 0
        ({2: 0.6, 4: 0.7, 6: 0.8}, 5.0),
        ({6: 0.8, 2: 0.6, 4: 0.7}, 5.0),
        ({2: 0.5, 4: 0.76, 6: 0.6, 8: 1.0}, 2 + 2 * 25 / 26),  # the first crossing
        ({2: 0.5, 4: 0.7}, None),
        ({}, None),
    ],
)
def test_detection_threshold(curve, expected):
    assert detection_threshold(curve) == (None if expected is None else pytest.approx(expected))


@given(st.floats(0.5, 40), st.lists(st.floats(0.5, 60), min_size=1, max_size=9, unique=True))
def test_the_threshold_of_a_straight_line_is_where_it_meets_three_quarters(slope_at, points):
    curve = {d: 0.5 + 0.25 * d / slope_at for d in points}
    found = detection_threshold(curve)
    assert found is None if max(points) < slope_at * (1 - 1e-12) else found == pytest.approx(slope_at)


def test_a_threshold_needs_the_whole_curve():
    part = run(Constant(1.0), beside={}, tasks=DISPLACED[:3], objects=[5], size=4)
    assert thresholds(part) == {}
    whole = run(Constant(1.0), beside={}, tasks=DISPLACED, objects=[5], size=4)
    assert thresholds(whole) == {("model", "n5"): None}
    assert len(DISPLACED) == len(DISPLACEMENTS)


# --- ceiling --------------------------------------------------------------------------------------------------------


def test_the_ideal_observer_says_where_it_is_exact(rows):
    for row in rows:
        if row.judge != CEILING or row.correct is None:
            assert row.exact is None
        elif row.task == "radius_matched":
            assert row.exact < row.total
        else:
            assert row.exact == row.total


def test_the_observer_is_told_which_negatives_the_suite_certified():
    """Abstract ones of three objects are often achieved as they are drawn, and never where they were drawn again."""
    task = hard_suite.find("abstract").task(3)
    samples = hard_suite.sample("abstract", 3, 200, rng_of("abstract", 3, 0))
    achieved = hard_suite.distance(task, samples.target, samples.reference) <= 1
    assert (Ideal(task).score(samples.reference, samples.target)[achieved] == np.inf).all()
    drawn = task.sample(200, np.random.default_rng(0))
    unknowing = observer.log_likelihood_ratio(task, drawn.target, drawn.reference)
    assert np.isfinite(unknowing.value[drawn.label == 1]).all()


def row_of(judge: str, correct: int | None) -> HardResult:
    return HardResult("swapped", "n5", judge, True, correct, 100)


def test_share_of_the_ceiling():
    """(accuracy - 1/2) / (ceiling - 1/2)."""
    ceiling = row_of(CEILING, 90)
    assert share_of_ceiling(row_of("model", 70), ceiling) == pytest.approx(0.5)
    assert share_of_ceiling(row_of("model", 50), ceiling) == 0
    assert share_of_ceiling(ceiling, ceiling) == 1
    for nothing in (None, row_of("other", None), row_of(CEILING, 50)):
        assert share_of_ceiling(row_of("model", 70), nothing) is None
    assert share_of_ceiling(row_of("model", None), ceiling) is share_of_ceiling(None, ceiling) is None


def test_threshold_beside_the_ideal_observer():
    found = {("model", "n5"): 4.4, (CEILING, "n5"): 4.0, ("model", "n6"): 1.0, ("never", "n5"): None}
    assert ratio_to_ceiling(found, "model", "n5") == pytest.approx(1.1)
    assert ratio_to_ceiling(found, "model", "n6") is ratio_to_ceiling(found, "never", "n5") is None


def test_sizes_fall_with_the_number_of_objects():
    assert [size_for(part) for part in hard_suite.RANGES] == [10_000, 2_000, 2_000, 400]
    assert size_for(5) == size_for((4, 8)) == 10_000


# --- judges ---------------------------------------------------------------------------------------------------------


def test_all_judges_see_the_same_samples_of_the_suite():
    one, other = Constant(1.0), Constant(-1.0)
    found = run(one, "one", {"other": lambda task: other}, tasks=["swapped", "redrawn"], objects=[4], size=30, seed=5)
    assert [(row.task, row.judge) for row in found] == [
        *(("swapped", "one"), ("swapped", "other"), ("redrawn", "one"), ("redrawn", "other"))
    ]
    for (target, reference), (again, _) in zip(one.asked, other.asked, strict=True):
        assert target is again
        assert target.shape == reference.shape
    expected = hard_suite.sample("swapped", 4, 30, rng_of("swapped", 4, 5))
    assert np.array_equal(one.asked[0][0], expected.target)


def test_a_judge_is_made_for_its_task():
    asked = []

    def made(task: Discrimination) -> Constant:
        asked.append(task)
        return Constant(0.5)

    run(Constant(1.0), beside={"made": made}, tasks=["twisted", "displaced/12sigma"], objects=[5, (3, 8)], size=4)
    kinds = [(task.negative.name, task.n_objects, task.certified) for task in asked]
    twisted = [("twisted", (5, 5), True), ("twisted", (3, 8), True)]
    assert kinds == twisted + [("displaced", n, certified) for n in ((5, 5), (3, 8)) for certified in (False, True)]


def test_a_trained_model_is_a_judge():
    model = LearnedModel(models.create("mpgnn", seed=0))
    found = run(model, beside={}, tasks=["distractors", "swapped"], objects=[(3, 5)], size=60)
    samples = hard_suite.sample("swapped", (3, 5), 60, rng_of("swapped", (3, 5), 0))
    right = (model.score(samples.reference, samples.target) > 0) == (samples.label == 1)
    assert (found[1].correct, found[1].total) == (right.sum(), 60)
    assert found[0].correct is not None


def test_a_judge_that_takes_the_goal_first_is_refused():
    class Old:
        def score(self, target, reference):
            return np.ones(len(target))

    with pytest.raises(TypeError, match=r"give score\(achieved, desired\)"):
        run(Old(), beside={}, tasks=["swapped"], objects=[3], size=10)


def test_a_judge_that_takes_few_objects_refuses_the_others():
    class Small:
        def score(self, achieved, desired):
            if desired.shape[1] > 8:
                raise ValueError("up to 8 objects")
            return np.ones(len(achieved))

    found = run(Small(), beside={}, tasks=["redrawn"], size=4)
    assert [row.refusal for row in found] == ["", *["up to 8 objects"] * 3]
    assert [row.objects for row in found] == ["3-8", "9-20", "21-30", "n100"]


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda size: np.zeros((size, 2)), r"model gave scores of shape \(10, 2\); accepted is \(10,\)"),
        (lambda size: 1.0, r"shape \(\); accepted is \(10,\)"),
        (lambda size: np.full(size, np.nan), "model gave NaN on swapped, n3 objects"),
    ],
)
def test_a_judge_that_gives_something_else(score, message):
    class Broken:
        def score(self, achieved, desired):
            return score(len(achieved))

    with pytest.raises(ValueError, match=message):
        run(Broken(), beside={}, tasks=["swapped"], objects=[3], size=10)


def test_bad_arguments():
    yes = Constant(1.0)
    for options, message in (
        ({"tasks": ["upside_down"]}, "'upside_down' is unknown"),
        ({"size": 1}, "size is 1"),
        ({"seed": -1}, "seed is -1"),
        ({"name": "truth", "beside": {"truth": TaskTruth}}, "two judges are called 'truth'"),
        ({"name": "ideal observer", "beside": None}, "two judges are called 'ideal observer'"),
    ):
        with pytest.raises(ValueError, match=message):
            run(yes, **{"beside": {}, "size": 4, "objects": [3], **options})


def test_rules_are_fitted_on_the_benchmark():
    judge = RuleJudge.fitted("spread", seed=3)
    assert judge == RuleJudge.fitted("spread", seed=3)
    assert set(reference_judges()) == {"ideal observer", "truth", "spread", "sorted_distances", "matching_rule"}
    samples = Discrimination((3, 8), distractors=3).sample(20, np.random.default_rng(0))
    assert judge.score(samples.reference, samples.target).shape == (20,)


# --- what is shown --------------------------------------------------------------------------------------------------


def test_table_shows_every_task_and_judge(rows):
    lines = table(rows).splitlines()
    names = ["ideal observer", "yes", "of the ceiling", "truth", "spread", "sorted_distances", "matching_rule"]
    assert lines[0] == f"| task | objects | negatives | {' | '.join(names)} |"
    assert len(lines) == 2 + len(hard_suite.NAMES) + 1
    assert len({line.count("|") for line in lines}) == 1
    low, high = wilson(200, 400)
    for name, line in zip(hard_suite.NAMES, lines[2:], strict=False):
        assert line.startswith(f"| {name} | ")
        assert f"0.500 ({low:.3f} to {high:.3f})" in line
    assert "| - |" in lines[-2]
    assert sum("approximate)" in line for line in lines) == 1
    assert all("| 0.000 |" in line for line in lines[2:-2])  # a constant has no share of any ceiling
    cells = lines[-1].strip("| ").split(" | ")
    assert cells[:3] == ["right 75% of the time from, sigma", "3-8", "by construction"]
    assert 2 < float(cells[3]) < 5
    assert cells[4:6] == ["never", "-"]


def test_table_without_the_ideal_observer():
    found = table(run(Constant(1.0), beside={"truth": TaskTruth}, tasks=["swapped"], objects=[4], size=10))
    assert found.splitlines()[0] == "| task | objects | negatives | model | truth |"


def test_json_holds_the_rows(rows):
    found = json.loads(json.dumps(hard_cases.to_json(rows)))
    assert len(found["rows"]) == len(rows)
    first = found["rows"][0]
    assert (first["task"], first["judge"], first["accuracy"]) == ("redrawn", "yes", 0.5)
    assert first["interval"] == list(wilson(200, 400))
    assert {entry["judge"] for entry in found["thresholds"]} == {row.judge for row in rows}
    ratios = {entry["judge"]: entry["ratio"] for entry in found["thresholds"]}
    assert ratios["ideal observer"] == 1
    assert ratios["yes"] is None
    assert ratios["truth"] > 1
