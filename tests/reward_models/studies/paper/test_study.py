"""``spatialsim study`` with the paper's study."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from reward_models import models
from reward_models.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str, *arguments: object) -> str:
    result = CliRunner().invoke(main.app, ["study", command, "paper", *map(str, arguments)])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


def counts(text: str, table: str) -> list[int]:
    """Done, failed, running, missing."""
    [line] = [line for line in text.splitlines() if line.split()[0] == table]
    return [int(number.replace(",", "")) for number in line.split()[1:]]


def test_run_status_and_again(here):
    assert counts(run("status", "--quick", "--filter", "rules"), "all") == [0, 0, 0, 17]
    text = run("run", "--quick", "--filter", "rules/truth", "--filter", "rules/spread/n3")
    assert text.splitlines()[-1] == "6 done"
    assert "[1 of 6] rules/spread/n3: accuracy 0." in text
    found = run("status", "--quick", "--units")
    assert counts(found, "rules") == [6, 0, 0, 11]
    of_objects = [kind for kind, model in models.REGISTRY.items() if not model.sees_pictures]
    maps = len(of_objects) + 2  # one a model; in Identification matching and small pictures, too
    assert counts(found, "figure2") == [2, 0, 0, maps]  # and the truth in both tasks
    assert sum(line.endswith("1 done") for line in found.splitlines()) == 6
    assert run("run", "--quick", "--filter", "rules/truth").count("there already") == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--filter", "identification/transformer/n5"], "accepted after identification are mpgnn"),
        (
            ["status", "--filter", "discrimination/mpgnn/4-8"],
            "accepted after discrimination/mpgnn are 3-8, 9-20, 21-30",
        ),
        (["run", "--filter", "table9"], "no run matches 'table9'"),
        (["status", "--filter", "figure1"], "no run matches 'figure1'"),
        (["run", "--filter", "identification/gcn/n5", "--data", "none"], "does not exist; spatialsim generate makes"),
        (["report"], "results/rows does not exist"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(arguments, message, here, refusal):
    assert message in refusal("study", arguments[0], "paper", *arguments[1:])
    assert list(here.rglob("*")) == []
