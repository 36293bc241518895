"""``spatialsim agent``: what its commands print and write, the window, and what they refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from reward_models import models
from reward_models.agents import evaluation
from reward_models.agents.configs import AgentConfig
from reward_models.agents.training import train
from reward_models.cli import watch
from reward_models.cli.main import app
from reward_models.models import checkpoint

CONFIG = AgentConfig(
    "small",
    env_kwargs={"n_objects": 3, "max_turn": 0},
    horizon=6,
    total_steps=60,
    learning_starts=50,
    net=(8,),
    episodes=2,
)
FRAMES = 1 + CONFIG.horizon + watch.HOLD  # of one episode


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["agent", *(str(argument) for argument in arguments)])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of an agent that has learned next to nothing."""
    folder = tmp_path_factory.mktemp("watched") / "agent"
    train(CONFIG, "dense", folder, progress=False).close()
    return folder


@pytest.fixture
def window(monkeypatch):
    """A display that nobody sees, and no waiting between frames."""
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    from spatialsim_env.arrangements.env import DiscriminationEnv

    monkeypatch.setattr(DiscriminationEnv, "metadata", {**DiscriminationEnv.metadata, "render_fps": 10_000})
    return pygame


def test_an_agent_on_a_learned_reward(tmp_path):
    checkpoint.save(models.create("matching"), tmp_path / "matching", {"name": "discrimination"})
    assert "discrim_n3" in run("list")
    out = tmp_path / "agent"
    text = run("train", "discrim_n3", "--out", out, "--reward", f"{tmp_path / 'matching'}:dense", "--steps", 404)
    assert "404 steps" in text
    assert "truly achieved" in text
    ends = json.loads(run("evaluate", out, "--episodes", 5, "--json"))
    assert ends["episodes"] == 5
    assert "its reward says achieved" in run("evaluate", out, "--episodes", 2)


@pytest.mark.parametrize(("policy", "share"), [("expert", "1.00"), ("random", "0.00")])
def test_what_needs_no_training_is_evaluated_in_a_named_world(policy, share):
    lines = run("evaluate", policy, "--config", "discrim_n3", "--episodes", 3).splitlines()
    assert lines[0] == f"{policy}: 3 episodes"
    assert all(f"achieved {share}" in " ".join(line.split()) for line in lines[1:])


def test_a_film_of_each_kind(folder, tmp_path):
    image, video = pytest.importorskip("PIL.Image"), pytest.importorskip("moviepy")
    pytest.importorskip("pygame")
    for name, frames in (("a.png", "1 frame"), ("a.gif", f"{2 * FRAMES} frames"), ("a.mp4", f"{2 * FRAMES} frames")):
        out = tmp_path / name
        assert run("watch", folder, "--episodes", 2, "--out", out) == f"wrote {out}, {frames}\n"
    with image.open(tmp_path / "a.png") as png, image.open(tmp_path / "a.gif") as gif:
        assert png.size == gif.size == (784, 480)
        assert gif.n_frames > CONFIG.horizon
    with video.VideoFileClip(str(tmp_path / "a.mp4")) as film:
        assert film.size == [784, 480]
        assert film.n_frames == 2 * FRAMES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gif", "a.mp4", "a.png"]


@pytest.mark.usefixtures("window")
def test_the_window_shows_the_episodes_that_are_evaluated(folder):
    lines = run("watch", folder, "--episodes", 2, "--seed", 5).splitlines()
    expected = evaluation.evaluate("random", CONFIG, "dense", episodes=2, seed=5)
    ends = watch.show("random", CONFIG, "dense", episodes=2, seed=5)
    assert lines[0] == f"{folder}: 2 episodes seen to the end"
    assert [end["distance"] for end in ends] == expected.distance.tolist()
    assert [end["is_success_model"] for end in ends] == expected.claimed.tolist()


class Disturbs:
    """Acts at random until its third step, and does something then."""

    def __init__(self, what):
        self.what, self.step = what, 0
        self.space = CONFIG.make_env().action_space

    def predict(self, observation, *, deterministic=True):
        self.step += 1
        if self.step == CONFIG.horizon + 3:  # in the second episode
            self.what()
        return self.space.sample()[None], None


def test_closing_the_window_ends_it(window):
    policy = Disturbs(lambda: window.event.post(window.event.Event(window.WINDOWCLOSE)))
    assert len(watch.show(policy, CONFIG, episodes=50)) == 1
    assert policy.step == CONFIG.horizon + 3
    assert not window.display.get_init()


def test_an_interrupt_ends_it_and_closes_the_window(window):
    def interrupt():
        raise KeyboardInterrupt

    assert len(watch.show(Disturbs(interrupt), CONFIG, episodes=50)) == 1
    assert not window.display.get_init()


def test_ctrl_c_in_a_terminal_is_a_clean_end(folder):
    pytest.importorskip("pygame")
    command = [sys.executable, "-m", "reward_models.cli.main", "agent", "watch", str(folder), "--episodes", "100000"]
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from reward_models.cli import main\n"
        "from reward_models.cli import watch\n"
        "steps, seen = watch.steps, []\n"
        "def counted(*args):\n"
        "    for info in steps(*args):\n"
        "        seen.append(info)\n"
        "        if len(seen) == 3: signal.raise_signal(signal.SIGINT)\n"
        "        yield info\n"
        "watch.steps = counted\n"
        f"sys.argv = {command[2:]!r}\n"
        "main.main()\n"
    )
    environment = os.environ | {"SDL_VIDEODRIVER": "dummy"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "0 episodes seen to the end" in done.stdout


def test_a_film_without_moviepy_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "moviepy", None)
    with pytest.raises(ImportError, match=r'needs moviepy: pip install "spatialsim-env\[video\]"'):
        watch.save("random", replace(CONFIG, horizon=1), tmp_path / "a.mp4", episodes=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "discrim_n99", "--out", "x"], "'discrim_n99' is unknown"),
        (["train", "discrim_n3", "--out", "x", "--reward", "no/model"], "model.json does not exist"),
        (["evaluate", "no/agent"], "no/agent/agent.json does not exist"),
        (["evaluate", "expert"], "expert acts in the world of --config NAME; accepted are discrim_n3"),
        (["watch", "no/agent"], "no/agent/agent.json does not exist"),
        (["watch", "no/agent", "--config", "discrim_n3"], "--config and no/agent contradict"),
        (["watch", "random", "--config", "discrim_n99"], "'discrim_n99' is unknown"),
        (["watch", "random", "--config", "discrim_n3", "--out", "a.bmp"], "accepted are .png, .gif and .mp4"),
    ],
)
def test_errors_are_one_line_and_exit_with_1(arguments, message, refusal, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert message in refusal("agent", *arguments)
    assert list(tmp_path.rglob("*.*")) == []
