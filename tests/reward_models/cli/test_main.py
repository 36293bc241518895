"""The command line: what it prints, what it refuses and how, and its exit codes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from reward_models.cli.arguments import objects
from reward_models.cli.main import app
from spatialsim_env.arrangements.datasets import named

COMMANDS = ("demo", "generate", "train", "evaluate", "hard", "agent", "render", "play")


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


def test_help_names_every_command_and_teaches():
    text = run("--help")
    assert all(command in text for command in COMMANDS)
    for command in COMMANDS:
        assert len(run(command, "--help").splitlines()) > 5


@pytest.mark.parametrize(("text", "expected"), [("5", 5), ("3-8", (3, 8))])
def test_objects(text, expected):
    assert objects(text) == expected


@pytest.mark.parametrize("text", ["", "a", "3-", "1-2-3", "-3"])
def test_what_is_not_a_number_of_objects(text):
    with pytest.raises(ValueError, match="as 5, or a range, as 3-8"):
        objects(text)


def test_generate_lists_and_writes(tmp_path):
    listed = run("generate")
    assert all(name in listed for name in named.NAMES)
    text = run("generate", "identification/n3/test", "discrimination/3-8/valid", "--size", 50, "--out", tmp_path)
    assert text.count("50 samples") == 2
    assert len(named.load(tmp_path / "identification/n3/test")) == 50


def test_generate_all_makes_what_is_missing(tmp_path):
    run("generate", "identification/n7/train", "--size", 3, "--out", tmp_path)
    text = run("generate", "--all", "--size", 3, "--out", tmp_path)
    assert text.splitlines()[0].startswith(f"{len(named.PAPER)} data sets, some 0.")
    assert text.count("there already") == 1
    assert run("generate", "--all", "--size", 3, "--out", tmp_path).count("there already") == len(named.PAPER)


@pytest.mark.parametrize(
    ("model", "options", "n_weights"),
    [
        ("matching", ["--samples", 300, "--epochs", 1, "--no-curriculum", "--negative", "mixture"], "383"),
        ("mpgnn", ["--samples", 130, "--epochs", 1, "--n-objects", "3"], "4,366"),
        ("mpgnn_single", ["--samples", 300, "--epochs", 1, "--n-objects", "4"], "2,208"),
    ],
)
def test_train_evaluate_and_again(model, options, n_weights, tmp_path):
    out = tmp_path / model
    assert f"{n_weights} weights" in run("train", model, "--out", out, *options)
    first = (out / "model.safetensors").read_bytes()
    run("train", model, "--out", out, *options)
    assert (out / "model.safetensors").read_bytes() == first
    lines = run("evaluate", out, "--size", 200).splitlines()
    assert f"{n_weights} weights" in lines[0]
    assert len(lines) == (2 if model == "mpgnn_single" else 4)
    assert all("the truth 1.0000" in line for line in lines[1:])


def test_render(tmp_path):
    image = pytest.importorskip("PIL.Image")
    run("render", tmp_path / "one.png", "--n-objects", "4")
    assert "51 frames" in run("render", tmp_path / "one.gif", "--seed", 3)
    with image.open(tmp_path / "one.gif") as gif, image.open(tmp_path / "one.png") as png:
        assert gif.n_frames > 1
        assert png.size == (784, 480)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "nothing"], "data set 'nothing' is unknown"),
        (["generate", "--all", "identification/n3/test"], "--all and identification/n3/test contradict"),
        (["train", "transformer", "--out", "x"], "'transformer'; accepted are"),
        (["train", "matching", "--out", "x", "--n-objects", "many"], "'many'"),
        (["train", "matching", "--out", "x", "--negative", "upside_down"], "'upside_down' is unknown"),
        (["train", "mpgnn_single", "--out", "x", "--n-objects", "3-8"], "give an int"),
        (["train", "mpgnn_single", "--out", "x", "--curriculum"], "--curriculum and mpgnn_single contradict"),
        (["train", "matching", "--out", "x", "--reference-seed", "1"], "--reference-seed and matching contradict"),
        (["train", "matching", "--out", "x", "--samples", "0"], "samples_per_stage is 0"),
        (["evaluate", "no/model"], "model.json does not exist"),
        (["hard", "no/model"], "model.json does not exist"),
        (["render", "picture.bmp"], "accepted are .png, .gif and .mp4"),
    ],
)
def test_errors_are_one_line_and_exit_with_1(arguments, message, refusal, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert message in refusal(*arguments)
    assert list(tmp_path.rglob("*.*")) == []


def test_an_interrupt_exits_with_130_and_says_how_to_go_on(tmp_path):
    arguments = ["train", "mpgnn", "--epochs", "1000", "--out", str(tmp_path / "run")]
    command = [sys.executable, "-m", "reward_models.cli.main", *arguments]

    def heed_interrupts() -> None:
        """Whoever runs the tests in the background may have them ignored, which is inherited."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts) as process:
        while not (tmp_path / "run" / "config.json").exists():
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command resumes" in error
    assert "Traceback" not in error


def test_wrong_usage_exits_with_2():
    assert CliRunner().invoke(app, ["train"]).exit_code == 2
    assert CliRunner().invoke(app, ["fly"]).exit_code == 2
