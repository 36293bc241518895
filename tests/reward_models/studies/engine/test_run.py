"""One unit: claimed, run, resumed, and its rows written last."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from reward_models.studies.engine import claims, rows, run
from reward_models.studies.engine.run import DONE, FAILED, MISSING, RUNNING, TRACEBACK, WHOLE, Place, states
from reward_models.studies.engine.sweep import BEGUN, Sweep
from spatialsim_env import files
from tests.reward_models.studies.engine import toy

FAIR, BENT, COMPARED = toy.units(True).values()
WHOLE_FAIR = toy.units(False)["coins/fair"]


@pytest.fixture
def sweep(tmp_path) -> Sweep:
    return Sweep(toy.STUDY, tmp_path / "results", tmp_path / "work", quick=True)


@pytest.fixture
def keeping(tmp_path) -> Sweep:
    return Sweep(toy.KEEPING, tmp_path / "results", tmp_path / "work", quick=True)


def state(unit, sweep) -> str:
    """Of all runs of a unit, which is the same here."""
    of_runs = states(unit, sweep)
    assert tuple(of_runs) == unit.runs
    [only] = set(of_runs.values())
    return only


def path_of(unit, sweep) -> Path:
    return rows.path_of(sweep.study, sweep.results, unit)


def failing(*_):
    raise RuntimeError("the coin\nis lost")


def test_a_unit_is_run_once_and_its_work_folder_goes(sweep):
    assert state(FAIR, sweep) == MISSING
    first = run.run(FAIR, sweep)
    assert (first.new, first.state, first.error) == (True, DONE, None)
    assert [row.share for row in first.rows] == [toy.toss(FAIR, seed) for seed in range(2)]
    assert [row.stamp for row in first.rows] == [sweep.stamp] * 2
    assert not sweep.folder(FAIR).exists()
    before = path_of(FAIR, sweep).stat()
    again = run.run(FAIR, sweep)
    assert path_of(FAIR, sweep).stat().st_mtime_ns == before.st_mtime_ns
    assert (again.new, again.state, again.rows) == (False, DONE, first.rows)
    assert state(FAIR, sweep) == DONE


def test_what_a_unit_needs_is_made_first(sweep):
    outcome = run.run(COMPARED, sweep)
    assert (outcome.state, state(FAIR, sweep), state(BENT, sweep)) == (DONE, DONE, DONE)
    fair, bent = (rows.of_unit(toy.STUDY, sweep.results, unit)[0].share for unit in (FAIR, BENT))
    assert outcome.rows[0].share == bent - fair
    assert (sweep.results / "compared.txt").read_text() == f"{fair} {bent}\n"


def test_what_a_unit_needs_and_that_failed_is_its_error(sweep, monkeypatch):
    monkeypatch.setattr(toy, "toss", failing)
    assert "coins/fair failed, and this run builds on it; --retry --filter coins/fair" in run.run(COMPARED, sweep).error


def test_what_another_process_has_claimed_is_left_to_it(sweep, tmp_path):
    """Whatever its work folder, data and device are."""
    other = replace(sweep, work=tmp_path / "elsewhere", data=tmp_path / "data", device="meta")
    with other.claim(FAIR.id):
        assert state(FAIR, sweep) == RUNNING
        assert run.run(FAIR, sweep).state == RUNNING
        assert not path_of(FAIR, sweep).exists()
    assert state(FAIR, sweep) == MISSING
    assert run.run(FAIR, sweep).state == DONE


def test_other_results_have_claims_of_their_own(sweep, tmp_path):
    with replace(sweep, results=tmp_path / "others").claim(FAIR.id):
        assert state(FAIR, sweep) == MISSING
        assert run.run(FAIR, sweep).state == DONE


def test_places_are_absolute_and_have_defaults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep = Sweep(toy.STUDY, Path("r"), Path("w"), data=Path("d"))
    assert (sweep.results, sweep.work, sweep.data) == (tmp_path / "r", tmp_path / "w", tmp_path / "d")
    usual, small = Sweep(toy.STUDY), Sweep(toy.STUDY, quick=True)
    assert (usual.results, usual.work, usual.data) == (tmp_path / "results/toy", tmp_path / "runs/toy", None)
    assert (small.results, small.work) == (tmp_path / "runs/toy-quick/results", tmp_path / "runs/toy-quick/work")


def test_killed_between_its_rows_and_the_end(sweep, monkeypatch):
    """The rows are whole; what is left behind goes with the next run."""
    monkeypatch.setattr(run.shutil, "rmtree", lambda *_, **__: None)
    run.run(FAIR, sweep)
    monkeypatch.undo()
    assert sweep.folder(FAIR).exists()
    assert not run.run(FAIR, sweep).new
    assert not sweep.folder(FAIR).exists()


def test_all_that_is_run_and_where_its_rows_go_name_the_work_folder(sweep, tmp_path):
    changes = ({}, {"data": tmp_path}, {"results": tmp_path}, {"device": "cuda"}, {"options": {"mint": "Rome"}})
    places = [replace(sweep, **change) for change in changes]
    assert len({place.folder(unit) for place in places for unit in (FAIR, WHOLE_FAIR)}) == 10


def test_a_failure_is_a_row_and_is_not_tried_again_unless_told(sweep, monkeypatch):
    monkeypatch.setattr(toy, "toss", failing)
    outcome = run.run(FAIR, sweep)
    assert (outcome.state, outcome.error) == (FAILED, "RuntimeError: the coin")
    assert [(row.error, row.share) for row in outcome.rows] == [("RuntimeError: the coin", None)] * 2
    kept = (sweep.folder(FAIR) / TRACEBACK).read_text()
    assert "in failing" in kept
    assert "is lost" in kept
    monkeypatch.undo()
    assert run.run(BENT, sweep).state == DONE
    again = run.run(FAIR, sweep)
    assert (again.state, again.new, state(FAIR, sweep)) == (FAILED, False, FAILED)
    assert (sweep.folder(FAIR) / TRACEBACK).exists()
    assert run.run(FAIR, replace(sweep, retry=True)).state == DONE
    assert not sweep.folder(FAIR).exists()
    assert not run.run(FAIR, replace(sweep, retry=True)).new


def test_a_killed_retry_is_resumed_even_after_a_plain_run(sweep, monkeypatch):
    monkeypatch.setattr(toy, "toss", failing)
    run.run(FAIR, sweep)

    def killed(*_):
        (sweep.folder(FAIR) / "state").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(toy, "toss", killed)
    with pytest.raises(KeyboardInterrupt):
        run.run(FAIR, replace(sweep, retry=True))
    monkeypatch.undo()
    assert run.run(FAIR, sweep).state == FAILED
    assert (sweep.folder(FAIR) / "state").read_text() == "half"
    assert run.run(FAIR, replace(sweep, retry=True)).state == DONE
    assert not sweep.folder(FAIR).exists()


def test_one_row_of_a_unit_may_fail(sweep, monkeypatch):
    work = toy.work

    def half(unit, place):
        first, second = work(unit, place)
        return [replace(first, share=None, error="FloatingPointError: nan"), second]

    sweep = replace(sweep, study=replace(toy.STUDY, work=half))
    assert run.run(FAIR, sweep).state == FAILED
    assert list(states(FAIR, sweep).values()) == [FAILED, DONE]
    assert not sweep.folder(FAIR).exists()


def test_rows_of_other_runs_than_the_unit_has_are_an_error(sweep):
    study = replace(toy.STUDY, work=lambda unit, place: toy.work(unit, place)[:1])
    error = run.run(FAIR, replace(sweep, study=study)).error
    assert "coins/fair made rows coins/fair/seed0; its runs are coins/fair/seed0, coins/fair/seed1" in error


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("where", ["work", "wrapped", "rows"])
def test_a_full_disk_ends_the_study_without_a_row(where, code, sweep, monkeypatch):
    def full(*_):
        raise OSError(code, "No space left on device")

    def wrapped(*_):
        try:
            full()
        except OSError as error:
            raise RuntimeError("the state could not be kept") from error

    sweep.begin(FAIR)
    part, function = (files.os, "fsync") if where == "rows" else (toy, "toss")
    monkeypatch.setattr(part, function, wrapped if where == "wrapped" else full)
    with pytest.raises(claims.NoSpaceLeft, match="coins/fair was run; no row of it was written"):
        run.run(FAIR, sweep)
    monkeypatch.undo()
    assert not any(path.is_file() for path in (sweep.results / "rows").rglob("*"))
    assert run.run(FAIR, sweep).state == DONE


def test_other_errors_of_writing_rows_are_not_hidden(sweep, monkeypatch):
    def refused(*_):
        raise OSError(errno.EIO, "Input/output error")

    sweep.begin(FAIR)
    monkeypatch.setattr(files.os, "fsync", refused)
    with pytest.raises(OSError, match="Input/output error"):
        run.run(FAIR, sweep)
    assert state(FAIR, sweep) == MISSING


def test_damaged_rows_are_named_and_kept(sweep):
    run.run(FAIR, sweep)
    path = path_of(FAIR, sweep)
    path.write_text(path.read_text()[:50])
    for act in (run.run, states):
        with pytest.raises(rows.RowError, match=str(path)):
            act(FAIR, sweep)
    assert len(path.read_text()) == 50


@pytest.mark.parametrize("device", ["cuda", "gpu", "cuda:99"])
def test_devices_that_are_not_there(device, sweep):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("it is there")
    with pytest.raises(ValueError, match=f"device is '{device}'; accepted are cpu and cuda where there is one"):
        replace(sweep, device=device).check([FAIR])


def test_the_claim_file_is_no_row(sweep):
    run.run(FAIR, sweep)
    there = {path.relative_to(sweep.results).as_posix() for path in sweep.results.rglob("*") if path.is_file()}
    assert there == {"rows/coins/fair.jsonl", ".claims/coins/fair.lock", ".claims/mint.lock"}
    assert json.loads(path_of(FAIR, sweep).read_text().splitlines()[0])["id"] == "coins/fair/seed0"


def test_kept_work_is_a_product_and_made_again_when_it_is_gone(keeping, monkeypatch):
    run.run(FAIR, keeping)
    folder = keeping.work / "coins/fair"
    assert keeping.folder(FAIR) == folder
    assert (folder / WHOLE).exists()
    place = Place(COMPARED, keeping)
    (folder / "network").write_text("trained")
    assert (place.product(FAIR.id) / "network").read_text() == "trained"
    written = path_of(FAIR, keeping).stat().st_mtime_ns
    run.shutil.rmtree(folder)
    assert (place.product(FAIR.id) / WHOLE).exists()
    assert path_of(FAIR, keeping).stat().st_mtime_ns == written


def test_kept_work_of_another_run_is_refused(keeping):
    whole = replace(keeping, results=keeping.results / "whole", quick=False)
    run.run(WHOLE_FAIR, whole)
    for act in (lambda: keeping.check([COMPARED]), lambda: run.run(FAIR, keeping)):
        with pytest.raises(ValueError, match="coins/fair holds another run: tosses is 1000 there and 10 in the study"):
            act()
    assert not path_of(FAIR, keeping).exists()


def test_the_stamp_of_who_began_a_folder_stays(sweep, monkeypatch):
    folder = sweep.begin(FAIR)
    begun = json.loads((folder / BEGUN).read_text())
    (folder / BEGUN).write_text(json.dumps(begun | {"stamp": begun["stamp"] | {"commit": "earlier"}}))
    sweep.begin(FAIR)
    place = Place(FAIR, sweep)
    assert (place.began.commit, place.stamp) == ("earlier", sweep.stamp)
    (folder / "state").touch()
    place.restart()
    assert [path.name for path in folder.iterdir()] == [BEGUN]


def test_work_is_kept_where_it_is_asked_for(sweep):
    run.run(FAIR, replace(sweep, keep=True))
    assert (sweep.work / "kept/coins/fair" / BEGUN).exists()
    assert not sweep.folder(FAIR).exists()


def test_unknown_options(sweep):
    with pytest.raises(ValueError, match="option 'bank' is unknown to the study toy; accepted are mint"):
        replace(sweep, options={"bank": "1"})
    assert Place(FAIR, replace(sweep, options={"mint": "Rome"})).option("mint") == "Rome"
    assert Place(FAIR, sweep).option("mint") is None
