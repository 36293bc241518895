"""The tables of the audit, from cards made by hand."""

from __future__ import annotations

import pytest

from reward_models.hub.targets import IDEAL_THRESHOLD
from reward_models.measuring.hard_cases import CEILING
from reward_models.shares import wilson
from reward_models.studies.readme import audit as audit_tables


def test_the_ideal_observers_threshold_is_that_of_the_rows():
    assert audit_tables.detection()[CEILING] == pytest.approx(IDEAL_THRESHOLD, abs=5e-4)


@pytest.fixture
def no_rows(tmp_path, monkeypatch):
    """No recorded truth, no recorded rows of the hard suite."""
    monkeypatch.setattr(audit_tables, "TRUTH", tmp_path / "truth.json")
    monkeypatch.setattr(audit_tables, "HARD", tmp_path)


def share(hits, total):
    return {"hits": hits, "total": total, "interval": list(wilson(hits, total))}


def row(optimiser, n, right, claimed, moves="positions"):
    where = {"optimiser": optimiser, "moves": moves, "n_objects": n}
    return {**where, "precision": share(right, claimed), "reach": share(right, 200)}


ROWS = [
    row("gradient", 3, 200, 200),
    row("gradient", 3, 150, 200, "poses"),
    row("gradient", 5, 0, 0),
    row("search", 3, 199, 200),
    {**row("agent", 3, 190, 200, "agent"), "training": {"success": share(95, 100), "success_on_truth": share(99, 100)}},
]


def card(**audit):
    accuracy = {key: {"correct": 9990, "total": 10_000} for key in ("3-8", "9-20", "21-30")}
    hard = {"accuracy": {"redrawn": {"n100": {"correct": 1, "total": 1}}}, "thresholds": {"3-8": 3.25}}
    found = {"rows": ROWS, "failures": {}, **audit}
    return {"accuracy": accuracy, "n_weights": 1427, "seconds": 9.0, "hard_suite": hard, "audit": found}


@pytest.mark.usefixtures("no_rows")
def test_a_line_of_a_model():
    table = audit_tables.models({"mine": card()})
    header, _, line = table.split("\n\n")[0].splitlines()
    cells = dict(zip(header.strip("| ").split(" | "), line.strip("| ").split(" | "), strict=True))
    assert cells == {
        "model": "`hub:mine`",
        "weights": "1,427",
        "3-8": "0.9990",
        "9-20": "0.9990",
        "21-30": "0.9990",
        "detected from": "3.25",
        "gradient": "0.75 / none / - / -",
        "search": "0.99 / - / - / -",
        "agent": "0.95 / - / -",
        "reach": "0.75 / 0.00 / - / -",
    }


@pytest.mark.usefixtures("no_rows")
def test_a_model_whose_answers_are_no_verdicts():
    line = audit_tables.models({"mine": card(rows=[], failures={"finite": "..."})}).splitlines()[2]
    assert line.count("fails: finite") == 4


@pytest.mark.usefixtures("no_rows")
def test_thresholds_that_are_not_there():
    never, unknown = card(), card()
    never["hard_suite"]["thresholds"]["3-8"] = unknown["hard_suite"] = None
    lines = audit_tables.models({"never": never, "unknown": unknown}).splitlines()[2:4]
    assert [line.split(" | ")[5] for line in lines] == ["never", "-"]


@pytest.mark.usefixtures("no_rows")
def test_targets_of_a_model():
    text = audit_tables.targets({"mine": card()})
    assert text.startswith("**`hub:mine`**, 9 of 16 met\n\n| target | bound | value | met |\n")
    assert "| weights | at most 1,000 | 1,427 | **no** |" in text
    assert "| gradient of poses, 3 objects: precision | at least 0.98 | 0.75 | **no** |" in text
    assert "| gradient of positions, 5 objects: precision | at least 0.98 | undefined | **no** |" in text
    assert "| agent, 3 objects: success short of the truth's agent | at most 0.05 | 0.04 | yes |" in text


@pytest.mark.usefixtures("no_rows")
@pytest.mark.parametrize("table", [audit_tables.models, audit_tables.targets])
def test_without_a_card_it_says_what_makes_one(table):
    assert "`spatialsim hub build NAME`" in table({})
