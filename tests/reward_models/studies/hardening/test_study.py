"""The ablation of hardening: variants, and the row of one."""

from __future__ import annotations

import pytest

from reward_models.hub.recipes import HARDENED
from reward_models.studies.engine import rows
from reward_models.studies.engine.run import DONE, run
from reward_models.studies.engine.sweep import Sweep
from reward_models.studies.hardening import runs, tables
from reward_models.studies.hardening.tables import STUDY


def test_variants_have_one_part_more_each():
    names = runs.variants_of("matching")
    parts = [set(runs.variant("matching", name).shares) for name in names[:-1]]
    assert parts[0] == {"benchmark"}
    assert [len(part) for part in parts[1:]] == [1, 2, 3, 4, 5]
    assert runs.variant("matching", "ends") == HARDENED["matching"]
    assert runs.variant("matching", "plain").training.settings == {}
    assert runs.variants_of("mpgnn") == ("benchmark", "mixture", "rollouts", "ends")


def test_the_row_of_a_variant_is_written_once(tmp_path):
    sweep = Sweep(STUDY, tmp_path / "results", tmp_path / "work", quick=True)
    unit = sweep.units["matching/mixture/seed0"]
    first, second = run(unit, sweep), run(unit, sweep)
    assert (first.state, first.new, second.new) == (DONE, True, False)
    [row] = rows.of_unit(STUDY, sweep.results, unit)
    assert (sweep.results / "matching/mixture/seed0.json").exists()
    assert row.settings["shares"] == {"mixture": HARDENED["matching"].shares["mixture"]}
    assert row.accuracy["3-8"]["total"] == 50
    assert row.hard_suite["swapped"]["3-8"]["total"] == 10
    assert {(entry["optimiser"], entry["moves"]) for entry in row.audit} == {
        (optimiser, moves) for optimiser in ("gradient", "search") for moves in ("positions", "poses")
    }
    assert row.rounds[0]["precision"] is None
    assert row.seed == 0
    assert "3-8" in row.thresholds
    table = tables.table({row.id: row}, "matching")
    assert [line[0] for line in table.lines] == ["mixture"]


def test_another_variant_is_refused():
    with pytest.raises(ValueError, match="model is 'rds'; accepted are matching, mpgnn"):
        runs.variant("rds", "ends")
    with pytest.raises(ValueError, match="variant of mpgnn is 'plain'; accepted is benchmark, mixture, rollouts, ends"):
        runs.variant("mpgnn", "plain")
