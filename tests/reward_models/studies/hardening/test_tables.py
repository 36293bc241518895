"""The tables of the ablation, from rows made by hand."""

from __future__ import annotations

from reward_models.shares import wilson
from reward_models.studies.hardening import runs, tables
from reward_models.studies.hardening.tables import STUDY
from reward_models.studies.hardening.work import HardeningRow


def share(hits, total):
    return {"hits": hits, "total": total, "interval": list(wilson(hits, total))}


def audited(optimiser, moves, right, claimed):
    where = {"optimiser": optimiser, "moves": moves, "n_objects": 3}
    return {**where, "precision": share(right, claimed), "reach": share(right, 200)}


def made(variant, **changes):
    """The row of a variant of the matching network, by id."""
    unit = runs.unit_of("matching", variant)
    entries = {
        "cpu_seconds": 12.34,
        "accuracy": {key: {"correct": 1998, "total": 2000} for key in ("3-8", "9-20", "21-30")},
        "thresholds": {"3-8": 4.5, "9-20": None},
        "hard_suite": {"swapped": {"3-8": {"correct": 3, "total": 4}}},
        "audit": [
            audited("gradient", "positions", 200, 200),
            audited("gradient", "poses", 50, 100),
            audited("search", "positions", 0, 0),
        ],
    } | changes
    row = HardeningRow(unit.id, "matching", variant, 0, STUDY.stamp(), unit.settings(unit.id), **entries)
    return {row.id: row}


def cells(line):
    return line.strip("| ").split(" | ")


def test_a_line_of_a_variant():
    header, _, line = tables.table(made("mixture"), "matching").markdown().splitlines()
    assert dict(zip(cells(header), cells(line), strict=True)) == {
        "replay up to": "mixture",
        "3-8": "0.9990",
        "9-20": "0.9990",
        "21-30": "0.9990",
        "detected from": "4.50",
        "lookalikes": "-",
        "swapped": "0.75",
        "gradient, 3": "0.50",
        "search, 3": "none",
        "reach, 3": "0.25",
        "s": "12",
    }


def test_lines_are_in_the_order_of_the_ingredients():
    rows = {}
    for variant in ("ends", "plain", "benchmark"):
        rows |= made(variant, thresholds={"3-8": None})
    lines = tables.table(rows, "matching").lines
    assert [line[0] for line in lines] == ["all, default settings", "benchmark", "ends"]
    assert {line[4] for line in lines} == {"never"}
