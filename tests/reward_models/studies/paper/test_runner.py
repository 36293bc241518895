"""One pass: claimed, run, gone on with, and its rows written last."""

from __future__ import annotations

import errno
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from reward_models.measuring import evaluation, heat_map
from reward_models.models import checkpoint
from reward_models.studies import claims
from reward_models.studies.paper import experiments, rows, runner
from reward_models.studies.paper.runner import DONE, FAILED, MISSING, RUNNING, Bench
from reward_models.training import protocol
from reward_models.training.folder import STATE, DamagedState, State
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.datasets import named

SMALL = experiments.cells(quick=True)
NETWORK = SMALL["identification/gcn/n5"]
TWO_SETS = SMALL["discrimination/mlp/9-20"]
RULE = SMALL["rules/truth/3-8"]


@pytest.fixture
def bench(tmp_path) -> Bench:
    return Bench(tmp_path / "results", tmp_path / "work")


def state(cell, bench) -> str:
    """Of all runs of a pass, which is the same here."""
    found = runner.states(cell, bench)
    assert list(found) == cell.ids
    [only] = set(found.values())
    return only


def without_timings(found):
    return [row | {"seconds": 0, "log": [epoch[:-1] for epoch in row["log"]]} for row in found]


def stop_after(writes, monkeypatch):
    """Ctrl-C once a state was kept that often."""
    save, calls = State.save, []

    def stopping(*arguments):
        save(*arguments)
        calls.append(0)
        if len(calls) == writes:
            raise KeyboardInterrupt

    monkeypatch.setattr(State, "save", stopping)


def test_rows_of_networks_say_what_the_networks_do(bench):
    """Each figure again from the kept weights and the named test set."""
    bench = replace(bench, keep_weights=True)
    outcome = runner.run(NETWORK, bench)
    found = rows.read(bench.results)
    assert [row["id"] for row in found] == NETWORK.ids
    assert (outcome.state, outcome.new, outcome.seeds) == (DONE, True, 2)
    assert outcome.accuracy == pytest.approx(np.mean([rows.share(row) for row in found]))
    test = named.sample("identification/n5/test", 0, NETWORK.tests["identification/n5/test"])
    for seed, row in enumerate(found):
        folder = bench.work / "weights" / NETWORK.name / f"seed{seed}"
        model, log = checkpoint.load(folder).model, protocol.read_log(folder)
        assert row["settings"] == NETWORK.config(seed).to_json()
        assert row["accuracy"] == {"identification/n5/test": asdict(evaluation.accuracy(model, test))}
        assert row["n_weights"] == model.n_weights == 2_530
        assert np.array(row["log"]) == pytest.approx(
            np.array([list(asdict(epoch).values()) for epoch in log]), abs=1e-6
        )
        assert row["seconds"] == pytest.approx(sum(epoch.seconds for epoch in log), abs=1e-4)
        assert row["heat_map"] == (heat_map.of_model(model) if seed == 0 else None)
        assert (row["seeds_together"], row["device"], row["error"]) == ([0, 1], "cpu", None)


def test_rows_of_several_test_sets(bench):
    runner.run(TWO_SETS, bench)
    for row in rows.read(bench.results):
        assert list(row["accuracy"]) == ["discrimination/3-8/test", "discrimination/9-20/test"]


def test_a_rule_is_a_row_too(bench):
    runner.run(RULE, bench)
    [row] = rows.read(bench.results)
    test = named.sample("discrimination/3-8/test", 0, 100)
    right = (goals.achieved(test.reference, test.target) == (test.label == 1)).sum()
    assert row["accuracy"] == {"discrimination/3-8/test": {"correct": right, "total": 100}}
    assert row["heat_map"] == heat_map.of_truth()
    assert (row["n_weights"], row["log"], row["settings"]) == (None, [], {"rule": "truth", "samples": 200, "seed": 0})


def test_a_pass_is_run_once_and_its_work_folder_goes(bench):
    assert state(RULE, bench) == MISSING
    first = runner.run(RULE, bench)
    assert not bench.folder(RULE).exists()
    path = rows.path_of(bench.results, RULE)
    before = path.stat()
    again = runner.run(RULE, bench)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert (again.new, again.state, again.accuracy) == (False, DONE, first.accuracy)
    assert state(RULE, bench) == DONE


def test_what_another_process_has_claimed_is_left_to_it(bench, tmp_path):
    """Whatever its work folder, data and device are."""
    other = replace(bench, work=tmp_path / "elsewhere", data=tmp_path / "data", device="meta")
    with other.claim(RULE):
        assert state(RULE, bench) == RUNNING
        assert runner.run(RULE, bench).state == RUNNING
        assert not rows.path_of(bench.results, RULE).exists()
    assert state(RULE, bench) == MISSING
    assert runner.run(RULE, bench).state == DONE


def test_other_results_have_claims_of_their_own(bench, tmp_path):
    with replace(bench, results=tmp_path / "others").claim(RULE):
        assert state(RULE, bench) == MISSING
        assert runner.run(RULE, bench).state == DONE


def test_places_are_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bench = Bench(Path("r"), Path("w"), data=Path("d"))
    assert (bench.results, bench.work, bench.data) == (tmp_path / "r", tmp_path / "w", tmp_path / "d")
    assert Bench().data is None


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_an_interrupted_pass_ends_with_the_same_rows(writes, bench, tmp_path, monkeypatch):
    whole = Bench(tmp_path / "whole", tmp_path / "work-whole")
    runner.run(TWO_SETS, whole)
    stop_after(writes, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        runner.run(TWO_SETS, bench)
    monkeypatch.undo()
    assert not rows.path_of(bench.results, TWO_SETS).exists()
    assert (bench.folder(TWO_SETS) / STATE).exists()
    runner.run(TWO_SETS, bench)
    assert without_timings(rows.read(bench.results)) == without_timings(rows.read(whole.results))


@pytest.mark.parametrize("left", [b"", b"cut"])
def test_a_damaged_state_is_begun_again(left, bench, tmp_path, monkeypatch):
    whole = Bench(tmp_path / "whole", tmp_path / "work-whole")
    runner.run(NETWORK, whole)
    stop_after(1, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        runner.run(NETWORK, bench)
    monkeypatch.undo()
    (bench.folder(NETWORK) / STATE).write_bytes(left)
    assert runner.run(NETWORK, bench).state == DONE
    assert without_timings(rows.read(bench.results)) == without_timings(rows.read(whole.results))


def test_a_state_that_is_damaged_again_is_a_failure(bench, monkeypatch):
    def damaged(*_, **__):
        raise DamagedState("unreadable")

    monkeypatch.setattr(runner, "train_together", damaged)
    assert runner.run(NETWORK, bench).error.endswith("DamagedState: unreadable")


def test_killed_between_its_rows_and_the_end(bench, monkeypatch):
    """The rows are whole; what is left behind goes with the next run."""
    monkeypatch.setattr(runner.shutil, "rmtree", lambda *_, **__: None)
    runner.run(RULE, bench)
    monkeypatch.undo()
    assert bench.folder(RULE).exists()
    assert not runner.run(RULE, bench).new
    assert not bench.folder(RULE).exists()


def test_all_that_is_run_and_where_its_rows_go_name_the_work_folder(bench, tmp_path):
    places = (
        bench,
        *(replace(bench, **change) for change in ({"data": tmp_path}, {"results": tmp_path}, {"device": "cuda"})),
    )
    folders = {place.folder(cell) for place in places for cell in (NETWORK, experiments.CELLS[NETWORK.name])}
    assert len(folders) == 8


def test_a_failure_is_a_row_and_is_not_tried_again_unless_told(bench, monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("the network\nis down")

    monkeypatch.setattr(runner, "train_together", failing)
    outcome = runner.run(NETWORK, bench)
    assert (outcome.state, outcome.error) == (FAILED, "RuntimeError: the network")
    for row in rows.read(bench.results):
        assert (row["error"], row["accuracy"]) == ("RuntimeError: the network", {})
    kept = (bench.folder(NETWORK) / runner.TRACEBACK).read_text()
    assert "in failing" in kept
    assert "is down" in kept
    assert runner.run(RULE, bench).state == DONE
    monkeypatch.undo()
    again = runner.run(NETWORK, bench)
    assert (again.state, again.new) == (FAILED, False)
    assert (bench.folder(NETWORK) / runner.TRACEBACK).exists()
    assert state(NETWORK, bench) == FAILED
    assert runner.run(NETWORK, replace(bench, retry=True)).state == DONE
    assert not bench.folder(NETWORK).exists()
    assert not runner.run(NETWORK, replace(bench, retry=True)).new


def test_a_killed_retry_is_gone_on_with_even_after_a_plain_run(bench, monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("once")

    monkeypatch.setattr(runner, "train_together", failing)
    runner.run(NETWORK, bench)
    monkeypatch.undo()
    retry = replace(bench, retry=True)
    stop_after(1, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        runner.run(NETWORK, retry)
    monkeypatch.undo()
    kept = (bench.folder(NETWORK) / STATE).read_bytes()
    assert runner.run(NETWORK, bench).state == FAILED
    assert (bench.folder(NETWORK) / STATE).read_bytes() == kept
    assert runner.run(NETWORK, retry).state == DONE
    assert not bench.folder(NETWORK).exists()


def test_one_seed_that_diverges_leaves_the_others(bench, monkeypatch):
    read = runner.read_logs

    def diverged(folder):
        first, *others = read(folder)
        return [[replace(epoch, loss=float("nan")) for epoch in first], *others]

    monkeypatch.setattr(runner, "read_logs", diverged)
    assert runner.run(NETWORK, bench).state == FAILED
    first, second = rows.read(bench.results)
    assert first["error"] == "FloatingPointError: the loss ended at nan"
    assert [epoch[2] for epoch in first["log"]] == [None, None]
    assert first["accuracy"] == {}
    assert second["error"] is None
    assert runner.states(NETWORK, bench) == {first["id"]: FAILED, second["id"]: DONE}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("where", ["state", "rows", "wrapped"])
def test_a_full_disk_ends_the_study_without_a_row(where, code, bench, monkeypatch):
    def full(*_, **__):
        raise OSError(code, "No space left on device")

    def wrapped(*_, **__):
        try:
            full()
        except OSError as error:
            raise RuntimeError("the state could not be kept") from error

    part, function = {"state": (State, "save"), "wrapped": (State, "save"), "rows": (rows.os, "fsync")}[where]
    monkeypatch.setattr(part, function, wrapped if where == "wrapped" else full)
    with pytest.raises(claims.NoSpaceLeft, match="gcn/n5 was run; no row of it was written"):
        runner.run(NETWORK, bench)
    monkeypatch.undo()
    assert not any(path.is_file() for path in (bench.results / rows.FOLDER).rglob("*"))
    assert runner.run(NETWORK, bench).state == DONE


def test_other_errors_of_writing_rows_are_not_hidden(bench, monkeypatch):
    def refused(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(rows.os, "fsync", refused)
    with pytest.raises(OSError, match="Input/output error"):
        runner.run(RULE, bench)
    assert state(RULE, bench) == MISSING


def test_damaged_rows_are_named_and_kept(bench):
    runner.run(RULE, bench)
    path = rows.path_of(bench.results, RULE)
    path.write_text(path.read_text()[:50])
    for work in (runner.run, runner.states):
        with pytest.raises(rows.RowError, match=str(path)):
            work(RULE, bench)
    assert len(path.read_text()) == 50


def generate(folder, seed=0, size=None):
    for name, few in (
        ("discrimination/9-20/valid", 64),
        *((f"discrimination/9-20/stage{k}", 256) for k in range(1, 6)),
    ):
        named.generate(name, folder, seed, few if size is None else size)


def test_stored_sets_give_the_same_rows(bench, tmp_path):
    generate(tmp_path / "data")
    stored = replace(bench, results=tmp_path / "stored", data=tmp_path / "data")
    stored.check([TWO_SETS, RULE])
    runner.run(TWO_SETS, bench)
    runner.run(TWO_SETS, stored)
    theirs = rows.read(stored.results)
    assert all(row["settings"].pop("data") == str(tmp_path / "data") for row in theirs)
    ours = rows.read(bench.results)
    assert all(row["settings"].pop("data") is None for row in ours)
    assert without_timings(ours) == without_timings(theirs)


def test_stored_sets_that_do_not_fit_are_refused_before_the_first_pass(bench, tmp_path):
    bench = replace(bench, data=tmp_path / "data")
    with pytest.raises(named.DataSetError, match=r"discrimination/9-20/stage1.json does not exist"):
        bench.check([TWO_SETS])
    generate(tmp_path / "data", size=100)
    with pytest.raises(
        named.DataSetError, match="does not fit discrimination/mlp/9-20: samples is 100 there, 256 needed"
    ):
        bench.check([TWO_SETS])
    generate(tmp_path / "data", seed=5)
    with pytest.raises(named.DataSetError, match="seed is 5 there, 0 needed"):
        bench.check([TWO_SETS])
    for name in ("ablation/no_rotations/3-8", "discrimination/matching/3-8"):
        with pytest.raises(named.DataSetError, match="run it without --data"):
            bench.check([SMALL[name]])
    bench.check([RULE])
    assert not bench.work.exists()


def test_a_relabelled_set_is_refused_before_the_first_pass(bench, tmp_path):
    """The samples of one stage under the name of another."""
    generate(tmp_path / "data")
    first, last = (tmp_path / f"data/discrimination/9-20/stage{k}.json" for k in (1, 5))
    first.with_suffix(".npz").replace(last.with_suffix(".npz"))
    last.write_text(first.read_text().replace("stage1", "stage5"))
    with pytest.raises(ValueError, match=r"stage5 was made for something else: max_rotation is"):
        replace(bench, data=tmp_path / "data").check([TWO_SETS])


def test_a_set_that_changed_is_a_failure_with_its_name(bench, tmp_path):
    generate(tmp_path / "data")
    (tmp_path / "data/discrimination/9-20/stage3.npz").write_bytes(b"cut")
    runner.run(TWO_SETS, replace(bench, data=tmp_path / "data"))
    assert "stage3.npz is cut or changed" in rows.read(bench.results)[0]["error"]


@pytest.mark.parametrize("device", ["cuda", "gpu", "cuda:99"])
def test_devices_that_are_not_there(device, bench):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("it is there")
    with pytest.raises(ValueError, match=f"device is '{device}'; accepted are cpu and cuda where there is one"):
        replace(bench, device=device).check([RULE])


def test_the_claim_file_is_no_row(bench):
    runner.run(RULE, bench)
    found = {path.relative_to(bench.results).as_posix() for path in bench.results.rglob("*") if path.is_file()}
    assert found == {"rows/rules/truth/3-8.jsonl", ".claims/rules/truth/3-8.lock"}
    assert json.loads(rows.path_of(bench.results, RULE).read_text())["id"] == "rules/truth/3-8/seed0"
