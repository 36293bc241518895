"""Figures in the text of the findings are those of the rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reward_models.demo import NEAR_CHANCE
from reward_models.hub.targets import THRESHOLD_RATIO

ROOT = Path(__file__).parents[1]
FINDINGS, AUDIT = ((ROOT / "docs" / name).read_text() for name in ("findings.md", "audit.md"))
ABLATION = AUDIT.partition("## What each ingredient")[2].partition("\n## ")[0]
MARKED = r"<!-- (\w+) -->.*?<!-- /\1 -->"


def accuracies(cell: str, objects: str) -> list[float]:
    """Accuracy of each run of a cell on a range."""
    rows = [json.loads(line) for line in (ROOT / f"results/rows/{cell}.jsonl").read_text().splitlines()]
    counts = [row["accuracy"][f"discrimination/{objects}/test"] for row in rows]
    return [part["correct"] / part["total"] for part in counts]


@pytest.mark.parametrize(("page", "least"), [(FINDINGS, 10), (ABLATION, 5)], ids=["findings", "ablation"])
def test_decimals_in_the_text_stand_in_a_table(page, least):
    tables = " ".join(part[0] for part in re.finditer(MARKED, page, re.DOTALL))
    text = re.sub(MARKED, "", page, flags=re.DOTALL).replace(f"{THRESHOLD_RATIO} times", "")
    known = {float(x) for x in re.findall(r"\d+\.\d+", tables)}
    quoted = re.findall(r"\d+\.\d+", re.sub(r"\n    .*", "", text))
    assert len(quoted) > least
    missing = [x for x in quoted if float(x) not in {round(y, len(x.split(".")[1])) for y in known}]
    assert missing == []


@pytest.mark.parametrize(
    ("cell", "objects", "at_chance", "of"),
    [
        ("discrimination/conditioned_mpgnn/9-20", "9-20", 3, 10),
        ("discrimination/conditioned_mpgnn/21-30", "21-30", 10, 10),
        ("ablation/no_curriculum/3-8", "3-8", 1, 3),
        ("ablation/width16/21-30", "21-30", 2, 3),
        ("ablation/width32/21-30", "21-30", 3, 3),
    ],
)
def test_as_many_runs_stay_at_chance_as_the_text_says(cell, objects, at_chance, of):
    values = accuracies(cell, objects)
    assert (sum(x < NEAR_CHANCE for x in values), len(values)) == (at_chance, of)
