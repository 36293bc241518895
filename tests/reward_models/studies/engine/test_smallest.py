"""Adding a study takes one file of under 80 lines and a line of the registry; the commands then know it."""

from __future__ import annotations

import inspect

import pytest
from typer.testing import CliRunner

from reward_models.cli import main
from reward_models.studies.engine import registry
from tests.reward_models.studies.engine import smallest

LIMIT = 80  # lines


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(registry.STUDIES, "dice", f"{smallest.__name__}:STUDY")
    return tmp_path


def study(*arguments: str) -> str:
    result = CliRunner().invoke(main.app, ["study", *arguments])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


def test_the_commands_run_it_and_write_its_report(here):
    assert "dice" in study("list")
    assert study("list", "dice").split() == ["dice/d4", "dice/d6", "dice/d8"]
    assert study("run", "dice", "--filter", "dice/d6").splitlines()[-1] == "1 done"
    assert study("run", "dice").count("there already") == 1
    assert study("status", "dice").splitlines()[-1].split() == ["all", "3", "0", "0", "0"]
    study("report", "dice")
    text = (here / "results/dice/report/report.md").read_text()
    means = [float(line.split("|")[2]) for line in text.splitlines() if line.startswith("| dice/")]
    assert means == pytest.approx([2.5, 3.5, 4.5], abs=0.25)


def test_it_is_small():
    assert len(inspect.getsource(smallest).splitlines()) < LIMIT
