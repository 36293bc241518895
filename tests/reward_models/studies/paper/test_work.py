"""A pass: its rows are what its networks and rules do, and it is resumed."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from reward_models.measuring import evaluation, heat_map
from reward_models.models import checkpoint
from reward_models.studies.engine import rows
from reward_models.studies.engine.run import DONE, FAILED, KEPT, run, states
from reward_models.studies.engine.sweep import Sweep
from reward_models.studies.paper import runs, work
from reward_models.studies.paper.study import STUDY
from reward_models.training import protocol
from reward_models.training.folder import STATE, DamagedState, State
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.datasets import named
from tests.reward_models.studies.paper.synthetic import STAMP, settings_of
from tests.reward_models.studies.paper.synthetic import row as make_row

SMALL = runs.cells(quick=True)
NETWORK = SMALL["identification/gcn/n5"]
TWO_SETS = SMALL["discrimination/mlp/9-20"]
RULE = SMALL["rules/truth/3-8"]
CELL = runs.CELLS["discrimination/rds/3-8"]


@pytest.fixture
def sweep(tmp_path) -> Sweep:
    return Sweep(STUDY, tmp_path / "results", tmp_path / "work", quick=True)


def read(sweep):
    return list(rows.read(STUDY, sweep.results, quick=True).rows.values())


def without_timings(found):
    return [replace(row, seconds=0, log=[epoch[:-1] for epoch in row.log]) for row in found]


def stop_after(writes, monkeypatch):
    """Ctrl-C once a state was kept that often."""
    save, calls = State.save, []

    def stopping(*arguments):
        save(*arguments)
        calls.append(0)
        if len(calls) == writes:
            raise KeyboardInterrupt

    monkeypatch.setattr(State, "save", stopping)


def test_rows_of_networks_say_what_the_networks_do(sweep):
    """Each figure again from the kept weights and the named test set."""
    sweep = replace(sweep, keep=True)
    outcome = run(NETWORK, sweep)
    found = read(sweep)
    assert tuple(row.id for row in found) == NETWORK.runs
    assert (outcome.state, outcome.new, len(outcome.rows)) == (DONE, True, 2)
    assert work.line(found) == f"accuracy {np.mean([work.share(row) for row in found]):.4f}, 2 runs"
    test = named.sample("identification/n5/test", 0, NETWORK.tests["identification/n5/test"])
    for seed, row in enumerate(found):
        folder = sweep.work / KEPT / NETWORK.id / f"seed{seed}"
        model, log = checkpoint.load(folder).model, protocol.read_log(folder)
        assert row.settings == NETWORK.config(seed).to_json()
        assert row.accuracy == {"identification/n5/test": asdict(evaluation.accuracy(model, test))}
        assert row.n_weights == model.n_weights == 2_530
        assert np.array(row.log) == pytest.approx(np.array([list(asdict(epoch).values()) for epoch in log]), abs=1e-6)
        assert row.seconds == pytest.approx(sum(epoch.seconds for epoch in log), abs=1e-4)
        assert row.heat_map == (heat_map.of_model(model) if seed == 0 else None)
        assert (row.seeds_together, row.stamp.device, row.error) == ([0, 1], "cpu", None)


def test_rows_of_several_test_sets(sweep):
    run(TWO_SETS, sweep)
    for row in read(sweep):
        assert list(row.accuracy) == ["discrimination/3-8/test", "discrimination/9-20/test"]


def test_a_rule_is_a_row_too(sweep):
    run(RULE, sweep)
    [row] = read(sweep)
    test = named.sample("discrimination/3-8/test", 0, 100)
    right = (goals.achieved(test.reference, test.target) == (test.label == 1)).sum()
    assert row.accuracy == {"discrimination/3-8/test": {"correct": right, "total": 100}}
    assert row.heat_map == heat_map.of_truth()
    assert (row.n_weights, row.log, row.settings) == (None, [], {"rule": "truth", "samples": 200, "seed": 0})


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_an_interrupted_pass_ends_with_the_same_rows(writes, sweep, tmp_path, monkeypatch):
    whole = Sweep(STUDY, tmp_path / "whole", tmp_path / "work-whole", quick=True)
    run(TWO_SETS, whole)
    stop_after(writes, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(TWO_SETS, sweep)
    monkeypatch.undo()
    assert sweep.rows(TWO_SETS) is None
    assert (sweep.folder(TWO_SETS) / STATE).exists()
    run(TWO_SETS, sweep)
    assert without_timings(read(sweep)) == without_timings(read(whole))


@pytest.mark.parametrize("left", [b"", b"cut"])
def test_a_damaged_state_is_begun_again(left, sweep, tmp_path, monkeypatch):
    whole = Sweep(STUDY, tmp_path / "whole", tmp_path / "work-whole", quick=True)
    run(NETWORK, whole)
    stop_after(1, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(NETWORK, sweep)
    monkeypatch.undo()
    (sweep.folder(NETWORK) / STATE).write_bytes(left)
    assert run(NETWORK, sweep).state == DONE
    assert without_timings(read(sweep)) == without_timings(read(whole))


def test_a_state_that_is_damaged_again_is_a_failure(sweep, monkeypatch):
    def damaged(*_, **__):
        raise DamagedState("unreadable")

    monkeypatch.setattr(work, "train_together", damaged)
    assert run(NETWORK, sweep).error.endswith("DamagedState: unreadable")
    assert [(row.error[-10:], row.accuracy) for row in read(sweep)] == [("unreadable", {})] * 2


def test_one_seed_that_diverges_leaves_the_others(sweep, monkeypatch):
    read_logs = work.read_logs

    def diverged(folder):
        first, *others = read_logs(folder)
        return [[replace(epoch, loss=float("nan")) for epoch in first], *others]

    monkeypatch.setattr(work, "read_logs", diverged)
    assert run(NETWORK, sweep).state == FAILED
    first, second = read(sweep)
    assert first.error == "FloatingPointError: the loss ended at nan"
    assert [epoch[2] for epoch in first.log] == [None, None]
    assert first.accuracy == {}
    assert second.error is None
    assert states(NETWORK, sweep) == {first.id: FAILED, second.id: DONE}


def generate(folder, seed=0, size=None):
    for name, few in (
        ("discrimination/9-20/valid", 64),
        *((f"discrimination/9-20/stage{k}", 256) for k in range(1, 6)),
    ):
        named.generate(name, folder, seed, few if size is None else size)


def test_stored_sets_give_the_same_rows(sweep, tmp_path):
    generate(tmp_path / "data")
    stored = replace(sweep, results=tmp_path / "stored", data=tmp_path / "data")
    stored.check([TWO_SETS, RULE])
    run(TWO_SETS, sweep)
    run(TWO_SETS, stored)
    theirs = read(stored)
    assert all(row.settings.pop("data") == str(tmp_path / "data") for row in theirs)
    ours = read(sweep)
    assert all(row.settings.pop("data") is None for row in ours)
    assert without_timings(ours) == without_timings(theirs)


def test_stored_sets_that_do_not_fit_are_refused_before_the_first_pass(sweep, tmp_path):
    sweep = replace(sweep, data=tmp_path / "data")
    with pytest.raises(named.DataSetError, match=r"discrimination/9-20/stage1.json does not exist"):
        sweep.check([TWO_SETS])
    generate(tmp_path / "data", size=100)
    with pytest.raises(
        named.DataSetError, match="does not fit discrimination/mlp/9-20: samples is 100 there, 256 needed"
    ):
        sweep.check([TWO_SETS])
    generate(tmp_path / "data", seed=5)
    with pytest.raises(named.DataSetError, match="seed is 5 there, 0 needed"):
        sweep.check([TWO_SETS])
    for name in ("ablation/no_rotations/3-8", "discrimination/matching/3-8"):
        with pytest.raises(named.DataSetError, match="run it without --data"):
            sweep.check([SMALL[name]])
    sweep.check([RULE])
    assert not sweep.work.exists()


def test_a_relabelled_set_is_refused_before_the_first_pass(sweep, tmp_path):
    """The samples of one stage under the name of another."""
    generate(tmp_path / "data")
    first, last = (tmp_path / f"data/discrimination/9-20/stage{k}.json" for k in (1, 5))
    first.with_suffix(".npz").replace(last.with_suffix(".npz"))
    last.write_text(first.read_text().replace("stage1", "stage5"))
    with pytest.raises(ValueError, match=r"stage5 was made for something else: max_rotation is"):
        replace(sweep, data=tmp_path / "data").check([TWO_SETS])


def test_a_set_that_changed_is_a_failure_with_its_name(sweep, tmp_path):
    generate(tmp_path / "data")
    (tmp_path / "data/discrimination/9-20/stage3.npz").write_bytes(b"cut")
    run(TWO_SETS, replace(sweep, data=tmp_path / "data"))
    assert "stage3.npz is cut or changed" in read(sweep)[0].error


def test_rows_are_lines_with_the_entries_of_all_recorded_ones(tmp_path):
    path = rows.write(STUDY, tmp_path, CELL, [make_row(CELL.id, seed) for seed in CELL.seeds])
    assert path == tmp_path / "rows/discrimination/rds/3-8.jsonl"
    assert list(rows.to_json(make_row(CELL.id, 0))) == [
        "id", "cell", "seed", "version", "package", "commit", "versions", "machine", "device", "settings",
        "seeds_together", "n_weights", "seconds", "accuracy", "log", "heat_map", "error",
    ]  # fmt: skip


def test_the_small_study_is_never_mixed_with_the_whole_one(tmp_path):
    small = SMALL[CELL.id]
    tested = {name: {"correct": 1, "total": total} for name, total in small.tests.items()}
    changes = {"accuracy": tested, "seeds_together": [0, 1]}
    made = [make_row(CELL.id, seed, settings=settings_of(small, seed), **changes) for seed in small.seeds]
    rows.write(STUDY, tmp_path, small, made)
    assert list(rows.read(STUDY, tmp_path, quick=True).rows) == list(small.runs)
    with pytest.raises(rows.RowError, match="holds discrimination/rds/3-8/seed0, discrimination/rds/3-8/seed1, where"):
        rows.read(STUDY, tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": settings_of(CELL) | {"learning_rate": 0.1}}, "learning_rate is 0.1 there and 0.001 in the study"),
        ({"settings": settings_of(CELL) | {"momentum": 0.9}}, "momentum is 0.9 there and None in the study"),
        ({"accuracy": {"discrimination/3-8/test": {"correct": 5, "total": 10}}}, "where the study has"),
        ({"accuracy": {}}, "where the study has"),
        ({"seed": 1}, "discrimination/rds/3-8/seed0: seed is 1"),
        ({"cell": "rules"}, "discrimination/rds/3-8/seed0: cell is 'rules'"),
        ({"seeds_together": [0, 1]}, r"seeds_together is \[0, 1\]"),
        ({"stamp": replace(STAMP, version=runs.VERSION + 1)}, "seed0 is of version 2, commit 0123456789abcdef"),
    ],
)
def test_other_runs_are_named(changes, message, tmp_path):
    made = [make_row(CELL.id, seed) for seed in CELL.seeds]
    rows.write(STUDY, tmp_path, CELL, [replace(made[0], **changes), *made[1:]])
    with pytest.raises(rows.RowError, match=message) as error:
        rows.read(STUDY, tmp_path)
    assert "discrimination/rds/3-8/seed0" in str(error.value)


def test_shares_that_are_none_are_refused():
    with pytest.raises(
        ValueError, match=r"accuracy on discrimination/3-8/test is .* accepted is 0 <= correct <= total"
    ):
        make_row(CELL.id, 0, accuracy={"discrimination/3-8/test": {"correct": 20_000, "total": 10_000}})
    assert work.share(make_row(CELL.id, 0, 0.5)) == 0.5
    assert work.share(work.failed(CELL, CELL.run(1), STAMP, "ValueError: no")) is None
