"""The same units in this process, in several, on a Ray cluster and as submitit's jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from reward_models.studies.engine import launch, rows
from reward_models.studies.engine.claims import NoSpaceLeft
from reward_models.studies.engine.run import DONE, Outcome
from reward_models.studies.engine.sweep import Sweep
from tests.reward_models.studies.engine import toy
from tests.reward_models.studies.engine.toy import Coin, Row

UNITS = list(toy.units(True).values())
ROOT = Path(__file__).parents[4]


@pytest.fixture
def sweep(tmp_path) -> Sweep:
    return Sweep(toy.STUDY, tmp_path / "results", tmp_path / "work", quick=True)


def read(sweep):
    known = rows.read(toy.STUDY, sweep.results, quick=True).rows.values()
    return [replace(row, stamp=replace(row.stamp, commit=None)) for row in known]


@dataclass(frozen=True)
class Deadly(Coin):
    """Kills the worker that takes it up."""

    by: int = 0  # process that it spares

    def settings(self, run):
        if os.getpid() != self.by:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().settings(run)


@dataclass(frozen=True)
class Filling(Coin):
    """Finds the disk full in a worker."""

    by: int = 0

    def settings(self, run):
        if os.getpid() != self.by:
            raise NoSpaceLeft(28, "no space left")
        return super().settings(run)


def test_one_process_and_two_give_the_same_rows(sweep, tmp_path):
    two = replace(sweep, results=tmp_path / "two", work=tmp_path / "work-two")
    ours = list(launch.outcomes(UNITS, sweep))
    theirs = list(launch.outcomes(UNITS, two, jobs=2))
    assert [outcome.unit for outcome in ours] == [unit.id for unit in UNITS]
    assert {outcome.unit for outcome in theirs} == {unit.id for unit in UNITS}
    assert all(outcome.new and outcome.state == DONE for outcome in ours)
    assert read(sweep) == read(two)


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [(Filling, NoSpaceLeft, "no space left"), (Deadly, RuntimeError, "a worker process was killed")],
)
def test_what_ends_a_worker_ends_the_sweep_with_its_reason(kind, error, message, sweep):
    with pytest.raises(error, match=message):
        list(launch.outcomes([kind("coins/fair", by=os.getpid())], sweep, jobs=2))


def test_unknown_backends_and_numbers(sweep):
    with pytest.raises(ValueError, match="backend is 'dask'; accepted are loky, ray"):
        launch.outcomes(UNITS, sweep, backend="dask")
    with pytest.raises(ValueError, match="jobs is 0"):
        launch.outcomes(UNITS, sweep, jobs=0)
    with pytest.raises(ValueError, match="device is 'gpu'"):
        launch.outcomes(UNITS, replace(sweep, device="gpu"))
    with pytest.raises(ValueError, match="shards is 0"):
        launch.shards(UNITS, 0)


@pytest.mark.parametrize("number", [1, 2, 3, 5, 9])
def test_shards_begin_with_their_own_part_and_go_on_with_the_others(number):
    parts = launch.shards(UNITS, number)
    names = sorted(unit.id for unit in UNITS)
    assert len(parts) == min(number, len(UNITS))
    assert all(sorted(unit.id for unit in part) == names for part in parts)
    assert len({part[0].id for part in parts}) == len(parts)


RAY = """
import json, os, signal, sys, ray
from dataclasses import dataclass
from pathlib import Path
from reward_models.studies.engine import launch, run
from reward_models.studies.engine.sweep import Sweep
from tests.reward_models.studies.engine import toy
from tests.reward_models.studies.engine.toy import Coin

by, here, do = os.getpid(), Path(sys.argv[1]), run.run

def noting(unit, sweep):
    (here / f"process{os.getpid()}").touch()
    return do(unit, sweep)

@dataclass(frozen=True)
class Deadly(Coin):
    def settings(self, run):
        if os.getpid() != by:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().settings(run)

ray.init(num_cpus=2, include_dashboard=False)
os.chdir(here)
sweep = Sweep(toy.STUDY, Path("results"), Path("work"), quick=True)
launch.run = noting
ended = list(launch.outcomes(list(toy.units(True).values()), sweep, backend="ray"))
launch.run = do
try:
    list(launch.outcomes([Deadly("coins/fair")], Sweep(toy.STUDY, Path("r"), Path("w"), quick=True), backend="ray"))
except RuntimeError as error:
    killed = str(error)
Path("ended").write_text(json.dumps([launch.summary(ended), by, killed]))
"""


def test_ray_on_this_machine(sweep, tmp_path):
    """All that Ray has to do, since its start takes long: relative places, jobs by itself, a worker that is killed."""
    pytest.importorskip("ray")
    here = replace(sweep, results=tmp_path / "here", work=tmp_path / "work-here")
    list(launch.outcomes(UNITS, here))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", RAY, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500, env=environment)
    assert ended.returncode == 0, ended.stderr
    summary, by, killed = json.loads((tmp_path / "ended").read_text())
    assert summary == "3 done"
    assert read(sweep) == read(here)
    workers = [path.name for path in tmp_path.glob("process*")]
    assert 1 <= len(workers) <= 2
    assert f"process{by}" not in workers
    assert killed.startswith("a worker process was killed, perhaps for want of memory")


def test_submitit_on_this_machine(sweep, tmp_path):
    pytest.importorskip("submitit")
    here = replace(sweep, results=tmp_path / "here", work=tmp_path / "work-here")
    list(launch.outcomes(UNITS, here))
    coins = UNITS[:2]
    jobs = launch.submit(coins, sweep, 2, {"timeout_min": 5}, "local")
    ends = [job.result() for job in jobs]
    assert len(jobs) == 2
    assert all(len(ended) == len(coins) for ended in ends)
    made = [outcome.unit for ended in ends for outcome in ended if outcome.new]
    assert sorted(made) == sorted(unit.id for unit in coins)  # each once, whoever made it
    assert read(sweep) == read(here)[:4]


def test_unknown_options_of_submitit(sweep):
    pytest.importorskip("submitit")
    with pytest.raises(ValueError, match=r"options of submitit are \{'cheese': 1\}"):
        launch.submit(UNITS, sweep, 1, {"cheese": 1}, "local")


def ended(state, new=True, share=0.98765, seconds=12.34, error=None):
    row = Row("a/b", toy.STUDY.stamp(), {}, share, error=error)
    return Outcome("a/b", state, () if state == "running" else (row, row), new, seconds)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (ended("done"), "a/b: share 0.988, 12.3 s"),
        (ended("done", new=False), "a/b: share 0.988, there already"),
        (ended("running"), "a/b: another process is at it"),
        (ended("failed", error="ValueError: no"), "a/b: failed, ValueError: no"),
        (ended("failed", False, error="E: no"), "a/b: failed before (--retry runs it again), E: no"),
    ],
)
def test_lines(outcome, expected):
    assert launch.line_of(outcome, toy.STUDY) == expected


def test_a_sweep_is_a_line_a_unit_and_a_sum():
    lines: list[str] = []
    outcomes = [ended("done"), ended("running"), ended("done")]
    assert launch.follow(iter(outcomes), 3, toy.STUDY, lines.append) == outcomes
    assert [line[:8] for line in lines] == ["[1 of 3]", "[2 of 3]", "[3 of 3]", "2 done, "]
    assert lines[-1] == "2 done, 1 skipped (claimed by another process)"
