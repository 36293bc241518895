"""``spatialsim agent study``: what it prints, and what it refuses."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from reward_models.cli import main
from reward_models.studies.agents import rows as study_rows
from reward_models.studies.agents import runner
from reward_models.studies.agents import runs as study
from reward_models.studies.agents import work as study_work
from reward_models.studies.agents.runner import Study

RANDOM = ("--filter", "agents/*/random")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(main.app, ["agent", "study", *map(str, arguments)])
    assert result.exit_code == code, result.output + str(result.exception)
    return result.output


def counts(text: str, part: str) -> list[int]:
    """Done, failed, running, missing."""
    [line] = [line for line in text.splitlines() if line.split()[0] == part]
    return [int(number) for number in line.split()[1:]]


def test_run_status_report_and_again(here):
    total = len(study.runs())
    assert counts(run("status", "--quick"), "all") == [0, 0, 0, total]
    text = run("run", "--quick", *RANDOM)
    assert text.splitlines()[-1] == "10 done"
    assert "[ 1 of 10] agents/discrim_n3/random: truly achieved 0." in text
    assert len(study_rows.read(here / "runs/agents-quick/results", quick=True)) == 10
    found = run("status", "--quick", "--runs")
    assert counts(found, "all") == [10, 0, 0, total - 10]
    assert counts(found, "agents/discrim_n8") == [1, 0, 0, 2]
    assert counts(found, "rewards") == [0, 0, 0, 2]
    assert sum(line.split()[1:] == ["done"] for line in found.splitlines()) == 10
    assert run("run", "--quick", *RANDOM).count("there already") == 10
    assert run("report", "--quick") == "wrote runs/agents-quick/results/report.md\n"
    assert (here / "runs/agents-quick/results/report.md").exists()


def test_a_report_of_nothing_is_refused(here):
    result = CliRunner().invoke(main.app, ["agent", "study", "report", "--results", "elsewhere"])
    assert "elsewhere/rows does not exist; accepted is a folder that agent study run wrote" in str(result.exception)
    assert list(here.iterdir()) == []


def test_places_and_jobs(here):
    chosen = ("--filter", "agents/discrim/random", "--filter", "agents/discrim/expert")
    text = run("run", "--quick", *chosen, "--results", "r", "--work", "w", "--jobs", 2)
    assert text.splitlines()[-1] == "2 done"
    assert len(study_rows.read(here / "r", quick=True)) == 2
    assert sorted(path.name for path in here.iterdir()) == ["r", "w"]


def test_the_exit_code_tells_a_failure_now_or_before(here, monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("no episodes")

    chosen = ("run", "--quick", "--filter", "agents/discrim/random")
    with monkeypatch.context() as patch:
        patch.setattr(study_work, "evaluate", failing)
        assert "agents/discrim/random: failed, RuntimeError: no episodes" in run(*chosen, code=1)
    assert "failed before (--retry runs it again)" in run(*chosen, code=1)
    assert run(*chosen, "--retry").splitlines()[-1] == "1 done"


def test_runs_that_others_have_claimed_are_said(here):
    place = Study(here / "runs/agents-quick/results", here / "runs/agents-quick/work", quick=True)
    with place.claim("agents/discrim/random"):
        text = run("run", "--quick", "--filter", "agents/discrim/random", "--filter", "agents/discrim/expert")
        assert counts(run("status", "--quick"), "agents/discrim") == [1, 0, 1, 1]
    assert "agents/discrim/random: another process is at it" in text
    assert text.splitlines()[-1] == "1 running, 1 done"


def test_rows_of_other_runs_end_it_before_the_first_run(here):
    run("run", "--quick", "--filter", "agents/discrim/random", "--results", "r", "--work", "w")
    result = CliRunner().invoke(
        main.app, ["agent", "study", "run", "--filter", "agents/discrim", "--results", "r", "--work", "other"]
    )
    assert "total_steps is 96 there" in str(result.exception)
    assert runner.state(study.runs(True)["agents/discrim/random"], Study(here / "r", quick=True)) == "done"


def test_unknown_filters(here):
    result = CliRunner().invoke(main.app, ["agent", "study", "run", "--filter", "agents/discrim_n4"])
    assert "no run matches 'agents/discrim_n4'" in str(result.exception)
    assert list(here.iterdir()) == []
