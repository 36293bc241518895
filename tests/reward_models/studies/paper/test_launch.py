"""The same passes in this process, in several, on a Ray cluster and as submitit's jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest

from reward_models.studies.claims import NoSpaceLeft
from reward_models.studies.paper import experiments, launch, rows, runner
from reward_models.studies.paper.experiments import RuleCell
from reward_models.studies.paper.runner import Bench, Outcome

SMALL = experiments.cells(quick=True)
RULES = experiments.select(["rules/truth"], quick=True)


@pytest.fixture
def bench(tmp_path) -> Bench:
    return Bench(tmp_path / "results", tmp_path / "work")


def timeless(bench):
    found = rows.read(bench.results)
    return [row | {"commit": None, "seconds": 0, "log": [epoch[:-1] for epoch in row["log"]]} for row in found]


@dataclass(frozen=True)
class Deadly(RuleCell):
    """Kills the worker that takes it up."""

    by: int = 0  # process that it spares

    def settings(self, seed):
        if os.getpid() != self.by:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().settings(seed)


@dataclass(frozen=True)
class Filling(RuleCell):
    """Finds the disk full in a worker."""

    by: int = 0

    def settings(self, seed):
        if os.getpid() != self.by:
            raise NoSpaceLeft(28, "no space left")
        return super().settings(seed)


def test_one_process_and_two_give_the_same_rows(bench, tmp_path):
    cells = [*RULES, SMALL["identification/mlp/n4"]]
    two = Bench(tmp_path / "two", tmp_path / "work-two")
    ours = list(launch.outcomes(cells, bench))
    theirs = list(launch.outcomes(cells, two, jobs=2))
    assert [outcome.cell for outcome in ours] == [cell.name for cell in cells]
    assert {outcome.cell for outcome in theirs} == {cell.name for cell in cells}
    assert all(outcome.new and outcome.state == runner.DONE for outcome in ours + theirs)
    assert timeless(bench) == timeless(two)


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (Filling, NoSpaceLeft, "no space left"),
        (Deadly, RuntimeError, "a worker process was killed"),
    ],
)
def test_what_ends_a_worker_ends_the_sweep_with_its_reason(kind, error, message, bench):
    cell = kind("rules/truth/n3", (0,), {"discrimination/n3/test": 10}, by=os.getpid())
    with pytest.raises(error, match=message):
        list(launch.outcomes([cell], bench, jobs=2))


def test_unknown_backends_and_numbers(bench):
    with pytest.raises(ValueError, match="backend is 'dask'; accepted are loky, ray"):
        launch.outcomes(RULES, bench, backend="dask")
    with pytest.raises(ValueError, match="jobs is 0"):
        launch.outcomes(RULES, bench, jobs=0)
    with pytest.raises(ValueError, match="device is 'gpu'"):
        launch.outcomes(RULES, replace(bench, device="gpu"))
    with pytest.raises(ValueError, match="shards is 0"):
        launch.shards(RULES, 0)


@pytest.mark.parametrize("number", [1, 2, 3, 5, 9])
def test_shards_begin_with_their_own_part_and_go_on_with_the_others(number):
    found = launch.shards(RULES, number)
    names = [cell.name for cell in RULES]
    assert len(found) == min(number, len(RULES))
    assert all(sorted(cell.name for cell in part) == sorted(names) for part in found)
    assert len({part[0].name for part in found}) == len(found)


RAY = """
import json, os, signal, sys, ray
from dataclasses import dataclass
from pathlib import Path
from reward_models.studies.paper import experiments, launch, runner
from reward_models.studies.paper.experiments import RuleCell
from reward_models.studies.paper.runner import Bench

by, here, run = os.getpid(), Path(sys.argv[1]), runner.run

def noting(cell, bench):
    (here / f"process{os.getpid()}").touch()
    return run(cell, bench)

@dataclass(frozen=True)
class Deadly(RuleCell):
    def settings(self, seed):
        if os.getpid() != by:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().settings(seed)

ray.init(num_cpus=2, include_dashboard=False)
os.chdir(here)
bench = Bench(Path("results"), Path("work"))
runner.run = noting
found = list(launch.outcomes(experiments.select(["rules/truth"], quick=True), bench, backend="ray"))
runner.run = run
try:
    list(launch.outcomes([Deadly("rules/truth/n3", (0,), {})], Bench(Path("r"), Path("w")), backend="ray"))
except RuntimeError as error:
    killed = str(error)
Path("said").write_text(json.dumps([launch.summary(found), by, killed]))
"""


def test_ray_on_this_machine(bench, tmp_path):
    """All that Ray has to do, since its start takes long: relative places, jobs by itself, a worker that is killed."""
    pytest.importorskip("ray")
    here = Bench(tmp_path / "here", tmp_path / "work-here")
    list(launch.outcomes(RULES, here))
    command = [sys.executable, "-c", RAY, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    summary, by, killed = json.loads((tmp_path / "said").read_text())
    assert summary == "5 done"
    assert timeless(bench) == timeless(here)
    workers = [path.name for path in tmp_path.glob("process*")]
    assert 1 <= len(workers) <= 2
    assert f"process{by}" not in workers
    assert killed.startswith("a worker process was killed, perhaps for want of memory")


def test_submitit_on_this_machine(bench, tmp_path):
    pytest.importorskip("submitit")
    here = Bench(tmp_path / "here", tmp_path / "work-here")
    list(launch.outcomes(RULES, here))
    jobs = launch.submit(RULES, bench, 2, {"timeout_min": 5}, "local")
    ends = [job.result() for job in jobs]
    assert len(jobs) == 2
    assert all(len(found) == len(RULES) for found in ends)
    made = [outcome.cell for found in ends for outcome in found if outcome.new]
    assert sorted(made) == sorted(cell.name for cell in RULES)  # each once, whoever made it
    assert timeless(bench) == timeless(here)


def test_unknown_options_of_submitit(bench):
    pytest.importorskip("submitit")
    with pytest.raises(ValueError, match=r"options of submitit are \{'cheese': 1\}"):
        launch.submit(RULES, bench, 1, {"cheese": 1}, "local")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome("a/b", "done", 10, True, 0.98765, 12.34), "a/b: accuracy 0.9877, 10 runs, 12.3 s"),
        (Outcome("a/b", "done", 1, False, 0.5), "a/b: accuracy 0.5000, 1 run, there already"),
        (Outcome("a/b", "running", 3), "a/b: another process is at it"),
        (Outcome("a/b", "failed", 3, True, None, 1.0, "ValueError: no"), "a/b: failed, ValueError: no"),
        (
            Outcome("a/b", "failed", 3, False, None, 0.0, "ValueError: no"),
            "a/b: failed before (--retry runs it again), ValueError: no",
        ),
    ],
)
def test_lines(outcome, expected):
    assert launch.line(outcome) == expected


def test_a_sweep_is_a_line_a_pass_and_a_sum():
    lines: list[str] = []
    found = [
        Outcome("a", "done", 1, True, 0.5, 1.0),
        Outcome("b", "running", 1),
        Outcome("c", "done", 1, True, 0.5, 1.0),
    ]
    assert launch.follow(iter(found), 3, lines.append) == found
    assert [line[:8] for line in lines] == ["[1 of 3]", "[2 of 3]", "[3 of 3]", "2 done, "]
    assert lines[-1] == "2 done, 1 skipped (claimed by another process)"
