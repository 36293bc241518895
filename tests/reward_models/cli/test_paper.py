"""``spatialsim bench``: what it prints, and what it refuses and how."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from reward_models import models
from reward_models.cli import main, paper
from reward_models.measuring import rules
from reward_models.studies.paper import experiments, launch, report, rows
from reward_models.studies.paper.runner import Bench


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: object) -> str:
    result = CliRunner().invoke(main.app, ["bench", *map(str, arguments)])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


def counts(text: str, table: str) -> list[int]:
    """Done, failed, running, missing."""
    [line] = [line for line in text.splitlines() if line.split()[0] == table]
    return [int(number.replace(",", "")) for number in line.split()[1:]]


def test_run_status_and_again(here):
    assert counts(run("status", "--quick", "--table", "rules"), "all") == [0, 0, 0, 17]
    text = run("run", "--quick", "--filter", "rules/truth", "--filter", "rules/spread/n3")
    assert text.splitlines()[-1] == "6 done"
    assert "[1 of 6] rules/spread/n3: accuracy 0." in text
    assert len(rows.read(here / "runs/bench-quick/results")) == 6
    found = run("status", "--quick", "--cells")
    assert counts(found, "rules") == [6, 0, 0, 11]
    of_objects = [kind for kind, model in models.REGISTRY.items() if not model.sees_pictures]
    maps = len(of_objects) + 2  # one a model; in Identification matching and small pictures, too
    assert counts(found, "figure2") == [2, 0, 0, maps]  # and the truth in both tasks
    assert counts(found, "figure1") == [0, 0, 0, 0]
    assert sum(line.endswith("1 done") for line in found.splitlines()) == 6
    again = run("run", "--quick", "--table", "rules", "--filter", "rules/truth")
    assert again.count("there already") == 5


def test_places_and_a_cell_in_full(here):
    run("run", "--filter", "rules/spread/n3/seed0", "--results", "r", "--work", "w", "--jobs", 1)
    [row] = rows.read(here / "r", quick=False)
    assert row["accuracy"]["discrimination/n3/test"]["total"] == 10_000
    assert sorted(path.name for path in here.iterdir()) == ["r", "w"]


def test_the_exit_code_tells_a_failure_now_or_before(here, monkeypatch):
    def failing(*_):
        raise RuntimeError("no rule")

    monkeypatch.setattr(rules, "accuracy", failing)
    for said in ("failed, RuntimeError", "failed before"):
        result = CliRunner().invoke(main.app, ["bench", "run", "--quick", "--filter", "rules/truth/n3"])
        assert result.exit_code == 1
        assert said in result.output
        assert result.output.splitlines()[-1] == "1 failed"


def test_passes_that_others_have_claimed_are_said_in_the_last_line(here):
    bench = Bench(here / "runs/bench-quick/results", here / "elsewhere")
    with bench.claim(experiments.CELLS["rules/truth/n3"]):
        text = run("run", "--quick", "--filter", "rules/truth/n3", "--filter", "rules/truth/n5")
        assert counts(run("status", "--quick"), "rules") == [1, 0, 1, 15]
    assert text.splitlines()[-1] == "1 done, 1 skipped (claimed by another process)"


def test_the_jobs_of_slurm(here, monkeypatch):
    asked = []

    def submit(cells, bench, number, options):
        asked.append((len(cells), str(bench.work), number, options))
        return [SimpleNamespace(job_id=f"12_{k}") for k in range(number)]

    monkeypatch.setattr(launch, "submit", submit)
    text = run("run", "--quick", "--filter", "rules/truth", "--slurm", 2, "--slurm-option", "timeout_min=5")
    work = here / "runs/bench-quick/work"
    assert text.strip() == f"submitted 2 jobs for 5 passes: 12_0, 12_1; logs in {work}/slurm"
    assert asked == [(5, str(work), 2, {"timeout_min": 5})]


def test_report_is_written_from_the_rows(here, monkeypatch):
    asked = []
    monkeypatch.setattr(
        report, "write", lambda results, out: asked.append((str(results), str(out))) or out / "report.md"
    )
    assert run("report").strip() == "wrote results/report/report.md"
    run("report", "--results", "r", "--out", "o")
    run("report", "--quick")
    quick = "runs/bench-quick/results"
    assert asked == [("results", "results/report"), ("r", "o"), (quick, f"{quick}/report")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--filter", "identification/transformer/n5"], "accepted after identification are mpgnn"),
        (
            ["status", "--filter", "discrimination/mpgnn/4-8"],
            "accepted after discrimination/mpgnn are 3-8, 9-20, 21-30",
        ),
        (["run", "--table", "table9"], "table is 'table9'; accepted are table1"),
        (["run", "--table", "table1", "--filter", "rules"], "--table table1 --filter rules selects no run"),
        (["status", "--table", "figure1"], "--table figure1 selects no run"),
        (["run", "--filter", "rules", "--backend", "dask"], "backend is 'dask'; accepted are loky, ray"),
        (["run", "--filter", "rules", "--device", "gpu"], "device is 'gpu'; accepted are cpu"),
        (["run", "--filter", "identification/gcn/n5", "--data", "none"], "does not exist; spatialsim generate makes"),
        (["run", "--filter", "rules", "--slurm-option", "a=1"], "--slurm-option goes with --slurm alone"),
        (["run", "--filter", "rules", "--slurm", "1", "--jobs", "1"], "--slurm and --jobs or --backend contradict"),
        (["run", "--filter", "rules", "--slurm", "1", "--slurm-option", "fast"], "accepted is NAME=VALUE"),
        (["report"], "results/rows does not exist"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(arguments, message, here, refusal):
    assert message in refusal("bench", *arguments)
    assert list(here.rglob("*")) == []


def test_damaged_rows_are_an_error_with_their_name(here, monkeypatch, capsys):
    run("run", "--quick", "--filter", "rules/truth/n3")
    path = here / "runs/bench-quick/results/rows/rules/truth/n3.jsonl"
    path.write_text(path.read_text()[:-20])
    for command in ("run", "status", "report"):
        monkeypatch.setattr(sys, "argv", ["spatialsim", "bench", command, "--quick"])
        with pytest.raises(SystemExit) as stopped:
            main.main()
        assert stopped.value.code == 1
        assert "rules/truth/n3.jsonl is damaged, line 1" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "expected"), [("a=1", {"a": 1}), ("slurm_partition=gpu", {"slurm_partition": "gpu"})])
def test_options_of_submitit(text, expected):
    assert paper.options_of([text]) == expected
