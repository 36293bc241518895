"""What is recorded is what the code gives: some cheap passes are run again and compared with their rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from reward_models.studies.engine import rows
from reward_models.studies.engine.run import DONE, run
from reward_models.studies.engine.sweep import Sweep
from reward_models.studies.paper import runs
from reward_models.studies.paper.study import STUDY
from reward_models.studies.paper.work import share

RESULTS = Path(__file__).parents[4] / "results"

# of the share of right answers: none for a rule, which has no training; the rest is other processors' rounding, which
# grows over the steps of a training
TOLERANCE = {
    "rules/spread/n3": 0.0005,
    "rules/matching_rule/3-8": 0.0005,
    "rules/truth/3-8": 0.0005,
    "identification/matching/n3": 0.002,
    "identification/gcn/n3": 0.02,
}


@pytest.mark.parametrize("name", TOLERANCE)
def test_a_pass_run_again_gives_its_rows(name, tmp_path):
    cell = runs.CELLS[name]
    recorded = rows.of_unit(STUDY, RESULTS, cell)
    assert recorded is not None
    outcome = run(cell, Sweep(STUDY, tmp_path / "results", tmp_path / "work"))
    assert outcome.state == DONE
    for old, new in zip(recorded, outcome.rows, strict=True):
        assert share(new) == pytest.approx(share(old), abs=TOLERANCE[name])
        assert (new.n_weights, new.settings, new.id) == (old.n_weights, old.settings, old.id)


def test_all_recorded_rows_are_of_this_study():
    found = rows.read(STUDY, RESULTS).rows.values()
    assert found
    assert all(row.stamp.commit and not row.stamp.commit.endswith("-dirty") for row in found)
