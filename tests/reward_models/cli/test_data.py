"""The commands about data sets: patterns, lists, export and import."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from reward_models.cli import main
from reward_models.training import torch_datasets
from spatialsim_env.arrangements.datasets import named


def run(*arguments: object) -> str:
    result = CliRunner().invoke(main.app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


def test_generate_takes_patterns(tmp_path):
    text = run("generate", "discrimination*/3-8/test", "discrimination-scale/9-20", "--size", 5, "--out", tmp_path)
    assert text.startswith("15 data sets, some 0.0 MB")
    assert len(named.load(tmp_path / "discrimination-abstract-distractors/3-8/test")) == 5
    assert len(list((tmp_path / "discrimination-scale/9-20").glob("*.npz"))) == 7


def test_generate_lists_without_writing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = run("generate", "discrimination/*-*/test", "--list").splitlines()
    assert [line.split()[0] for line in lines] == [f"discrimination/{part}/test" for part in ("3-8", "9-20", "21-30")]
    assert all("10,000 samples" in line and line.endswith("MB") for line in lines)
    assert len(run("generate", "--all", "--list").splitlines()) == len(named.PAPER)
    assert len(run("generate").splitlines()) == len(named.NAMES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["identification/n4/test", "discrimination-distractors/3-8/valid"])
def test_export_and_import(name, tmp_path):
    run("generate", name, "--size", 400, "--out", tmp_path)
    assert "400 samples" in run("export", tmp_path / name, "--out", tmp_path / "text")
    assert "400 samples" in run("import", tmp_path / "text", "--out", tmp_path / "back" / "set")
    one, other = named.load(tmp_path / name), named.load(tmp_path / "back" / "set")
    for part in ("target", "reference", "label"):
        assert np.array_equal(getattr(one, part), getattr(other, part))
    assert named.read_manifest(tmp_path / "back" / "set")["settings"]["source"] == "text"
    run("export", tmp_path / name, "--format", "torch", "--out", tmp_path / "set.safetensors")
    assert len(torch_datasets.load(tmp_path / "set.safetensors")) == 400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "discrimination/*/train"], r"'discrimination/\*/train' is unknown"),
        (["export", "none", "--out", "x"], "none.json does not exist"),
        (["export", "none", "--out", "x", "--format", "csv"], "--format is 'csv'; accepted are text and torch"),
        (["import", "none", "--out", "x"], "none"),
    ],
)
def test_what_is_refused(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main.app, arguments)
    assert isinstance(result.exception, main.EXPECTED)
    with pytest.raises(type(result.exception), match=message):
        raise result.exception
    assert list(tmp_path.iterdir()) == []
