"""``spatialsim study`` with the study of agents."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from reward_models.cli import main
from reward_models.studies.agents import runs, work
from reward_models.studies.agents.tables import STUDY
from reward_models.studies.engine import rows

RANDOM = ("--filter", "agents/*/random")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(verb: str, *arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(main.app, ["study", verb, "agents", *map(str, arguments)])
    assert result.exit_code == code, result.output + str(result.exception)
    return result.output


def counts(text: str, part: str) -> list[int]:
    """Done, failed, running, missing."""
    [line] = [line for line in text.splitlines() if line.split()[0] == part]
    return [int(number) for number in line.split()[1:]]


def test_run_status_report_and_again(here):
    total = len(runs.units())
    assert counts(run("status", "--quick"), "all") == [0, 0, 0, total]
    text = run("run", "--quick", *RANDOM)
    assert text.splitlines()[-1] == "10 done"
    assert "agents/discrim_n3/random: truly achieved 0." in text
    assert len(rows.read(STUDY, here / "runs/agents-quick/results", quick=True).rows) == 10
    states = run("status", "--quick", "--units")
    assert counts(states, "all") == [10, 0, 0, total - 10]
    assert counts(states, "agents/discrim_n8") == [1, 0, 0, 2]
    assert counts(states, "rewards") == [0, 0, 0, 2]
    assert run("run", "--quick", *RANDOM).count("there already") == 10
    assert run("report", "--quick").startswith("wrote ")
    assert (here / "runs/agents-quick/results/report.md").exists()


def test_the_exit_code_tells_a_failure_now_or_before(here, monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("no episodes")

    chosen = ("--quick", "--filter", "agents/discrim/random")
    with monkeypatch.context() as patch:
        patch.setattr(work, "evaluate", failing)
        assert "agents/discrim/random: failed, RuntimeError: no episodes" in run("run", *chosen, code=1)
    assert "failed before (--retry runs it again)" in run("run", *chosen, code=1)
    assert run("run", *chosen, "--retry").splitlines()[-1] == "1 done"
