"""``spatialsim study``: what it prints, and what it refuses and how."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from reward_models.cli import main
from reward_models.studies.engine import commands, launch, registry, rows
from reward_models.studies.engine.sweep import Sweep
from tests.reward_models.studies.engine import toy


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "STUDIES", {"toy": f"{toy.__name__}:STUDY"})
    return tmp_path


def run(*arguments: object) -> str:
    result = CliRunner().invoke(main.app, ["study", *map(str, arguments)])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


def counts(text: str, group: str) -> list[int]:
    """Done, failed, running, missing."""
    [line] = [line for line in text.splitlines() if line.split()[0] == group]
    return [int(number.replace(",", "")) for number in line.split()[1:]]


def test_run_status_report_and_again(here):
    assert counts(run("status", "toy", "--quick"), "all") == [0, 0, 0, 5]
    text = run("run", "toy", "--quick", "--filter", "coins/fair", "--filter", "compared")
    assert text.splitlines()[-1] == "2 done"
    assert "[1 of 2] coins/fair: share 0." in text
    results = here / "runs/toy-quick/results"
    assert len(rows.read(toy.STUDY, results, quick=True).rows) == 5
    found = run("status", "toy", "--quick", "--units")
    assert "".join([f"{'coins/bent':28}", *(f"{number:>9}" for number in (2, 0, 0, 0))]) in found
    assert counts(found, "all") == [5, 0, 0, 0]
    assert sum(line.endswith("2 done") for line in found.splitlines()) == 2
    again = run("run", "toy", "--quick", "--jobs", 1)
    assert again.count("there already") == 3
    assert run("report", "toy", "--quick").strip() == f"wrote {results}/report/report.md"


def test_places_and_a_unit_in_full(here):
    run("run", "toy", "--filter", "coins/fair/seed0", "--results", "r", "--work", "w", "--option", "mint=1")
    [row, _] = rows.read(toy.STUDY, here / "r").rows.values()
    assert row.settings["tosses"] == 1_000
    assert sorted(path.name for path in here.iterdir()) == ["r", "w"]
    assert run("report", "toy", "--results", "r", "--out", "o").strip() == "wrote o/report.md"


def test_lists(here):
    assert run("list").split() == ["toy", "Coins"]
    assert run("list", "toy").split() == ["coins/fair", "coins/bent", "compared/all"]
    assert run("list", "toy", "--filter", "compared").split() == ["compared/all"]


def test_the_exit_code_tells_a_failure_now_or_before(here, monkeypatch):
    def failing(*_):
        raise RuntimeError("no coin")

    monkeypatch.setattr(toy, "toss", failing)
    for said in ("failed, RuntimeError", "failed before"):
        result = CliRunner().invoke(main.app, ["study", "run", "toy", "--quick", "--filter", "coins/fair"])
        assert result.exit_code == 1
        assert said in result.output
        assert result.output.splitlines()[-1] == "1 failed"


def test_units_that_others_have_claimed_are_said_in_the_last_line(here):
    sweep = Sweep(toy.STUDY, quick=True, work=here / "elsewhere")
    with sweep.claim("coins/fair"):
        text = run("run", "toy", "--quick", "--filter", "coins")
        assert counts(run("status", "toy", "--quick"), "all") == [2, 0, 2, 1]
    assert text.splitlines()[-1] == "1 done, 1 skipped (claimed by another process)"


def test_the_jobs_of_slurm(here, monkeypatch):
    asked = []

    def submit(units, sweep, number, options):
        asked.append((len(units), str(sweep.work), number, options))
        return [SimpleNamespace(job_id=f"12_{k}") for k in range(number)]

    monkeypatch.setattr(launch, "submit", submit)
    text = run("run", "toy", "--quick", "--slurm", 2, "--slurm-option", "timeout_min=5")
    work = here / "runs/toy-quick/work"
    assert text.strip() == f"submitted 2 jobs for 3 units: 12_0, 12_1; logs in {work}/slurm"
    assert asked == [(3, str(work), 2, {"timeout_min": 5})]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "game"], "study is 'game'; accepted are toy"),
        (["run", "toy", "--filter", "coins/odd"], "accepted after coins are fair, bent"),
        (["status", "toy", "--filter", "dice"], "'dice' is unknown: accepted are coins, compared"),
        (["run", "toy", "--backend", "dask"], "backend is 'dask'; accepted are loky, ray"),
        (["run", "toy", "--device", "gpu"], "device is 'gpu'; accepted are cpu"),
        (["run", "toy", "--option", "bank=1"], "option 'bank' is unknown to the study toy; accepted are mint"),
        (["run", "toy", "--slurm-option", "a=1"], "--slurm-option goes with --slurm alone"),
        (["run", "toy", "--slurm", "1", "--jobs", "1"], "--slurm and --jobs or --backend contradict"),
        (["run", "toy", "--slurm", "1", "--slurm-option", "fast"], "--slurm-option is 'fast'; accepted is NAME=VALUE"),
        (["report", "toy"], "results/toy/rows does not exist"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(arguments, message, here, refusal):
    assert message in refusal("study", *arguments)
    assert list(here.rglob("*")) == []


def test_damaged_rows_are_an_error_with_their_name(here, monkeypatch, capsys):
    run("run", "toy", "--quick", "--filter", "coins/fair")
    path = here / "runs/toy-quick/results/rows/coins/fair.jsonl"
    path.write_text(path.read_text()[:20])
    for command in ("run", "status", "report"):
        monkeypatch.setattr(sys, "argv", ["spatialsim", "study", command, "toy", "--quick"])
        with pytest.raises(SystemExit) as stopped:
            main.main()
        assert stopped.value.code == 1
        assert "coins/fair.jsonl is damaged: line 1" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "expected"), [("a=1", {"a": 1}), ("slurm_partition=gpu", {"slurm_partition": "gpu"})])
def test_pairs(text, expected):
    assert commands.pairs_of("--slurm-option", [text]) == expected
