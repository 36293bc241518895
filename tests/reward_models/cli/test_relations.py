"""``spatialsim rel3d``, and the small study of its models with its report."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from reward_models.cli import main, relations
from reward_models.studies.rel3d.work import warn_of_problems
from spatialsim_env.relations.rel3d import published
from tests.reward_models.relation_splits import split


@pytest.fixture
def spatialsim(monkeypatch, capsys):
    """Runs the command line; returns its exit code and what it printed."""

    def run(*arguments) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["spatialsim", "rel3d", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main.main()
        return stopped.value.code or 0, capsys.readouterr().out

    return run


def study(*arguments) -> str:
    """Run ``spatialsim study``; returns what it printed."""
    result = CliRunner().invoke(main.app, ["study", *map(str, arguments)])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "scenes.json"
    published.write(split(60, 12, 12), path)
    return path


def test_train_and_evaluate(spatialsim, data, tmp_path):
    code, text = spatialsim("train", "relational", "--data", data, "--out", tmp_path / "run", "--epochs", 2)
    assert code == 0
    assert "relational," in text
    assert "validation accuracy" in text
    code, text = spatialsim("evaluate", tmp_path / "run", "--data", data)
    assert code == 0
    assert "on test of scenes: 24 samples" in text
    assert "mean over predicates" in text
    assert "both of a pair right" in text
    assert "near" in text


def test_the_small_study_and_its_report(data, tmp_path):
    places = ("--quick", "--results", tmp_path / "results")
    chosen = ("--filter", "rel3d/language_only/full/seed[01]", "--filter", "rel3d/relational/full/seed0")
    run = ("run", "rel3d", "--data", data, *places, "--work", tmp_path / "work", *chosen)
    text = study(*run)
    assert "rel3d/language_only/full/seed0: accuracy 0.5000, pairs 0.0000, 2 epochs" in text
    assert text.splitlines()[-1] == "3 done"
    assert study(*run).count("there already") == 3
    text = study("status", "rel3d", *places, "--filter", "rel3d/language_only", "--units")
    assert text.splitlines()[0].split() == ["rel3d/language_only/full/seed0", "1", "done"]
    assert text.splitlines()[-1].split() == ["all", "2", "0", "0", "3"]
    assert study("report", "rel3d", *places).strip() == f"wrote {tmp_path / 'results/report/report.md'}"
    assert "These are rows of the small study" in (tmp_path / "results/report/report.md").read_text()
    assert (tmp_path / "results/report/figures/boundaries_plane.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("study", "run", "rel3d"), "give it, or the folder that holds c_0.9_c_0.1.json: --data"),
        (("study", "run", "rel3d", "--data", "nowhere.json"), "nowhere.json"),
        (("study", "run", "rel3d", "--data", "DATA", "--filter", "rel3d/cheese"), "no run matches 'rel3d/cheese'"),
        (("study", "run", "rel3d", "--data", "DATA", "--filter", "rel3d/vtranse"), "vtranse sees pictures; give their"),
        (("rel3d", "train", "mpgnn", "--data", "DATA", "--out", "OUT"), "model is 'mpgnn'; accepted are language_only"),
        (("rel3d", "train", "drnet", "--data", "DATA", "--out", "OUT"), "drnet sees pictures; give the folder"),
        (("rel3d", "evaluate", "OUT", "--data", "DATA"), "model.json does not exist"),
        (("study", "report", "rel3d", "--results", "OUT"), "accepted is a folder that spatialsim study run wrote"),
        (("rel3d", "generate", "OUT", "--pictures", "large"), "--pictures is 'large'; accepted is WIDTHxHEIGHT"),
    ],
)
def test_errors_on_one_line(refusal, data, tmp_path, arguments, message):
    places = {"DATA": str(data), "OUT": str(tmp_path / "out")}
    assert message in refusal(*(places.get(argument, argument) for argument in arguments))


def test_sizes_of_pictures():
    assert relations.size_of("320x180") == (320, 180)


def test_a_generated_set_is_trained_on_and_tested(spatialsim, tmp_path):
    """Words alone are right on exactly half of it."""
    pytest.importorskip("mujoco")
    code, text = spatialsim("generate", tmp_path / "data", "--pairs", 330, "--seed", 3)
    assert code == 0
    assert "330 pairs, 660 samples; labels are rules, not human judgements" in text
    spatialsim("train", "language_only", "--data", tmp_path / "data", "--out", tmp_path / "run", "--epochs", 2)
    code, text = spatialsim("evaluate", tmp_path / "run", "--data", tmp_path / "data")
    assert code == 0
    assert "mean over predicates 0.5000 (0.5000 to 0.5000)" in text
    assert "both of a pair right 0.0000" in text


def test_odd_records_are_told(data, capsys):
    split = published.load(data)
    odd = published.records.Problem("train", 3, published.records.NAME, "'x' is not in the file's list")
    warn_of_problems(replace(split, problems=(odd,)))
    assert "left out: 1 unknown object" in capsys.readouterr().err
