"""``spatialsim rollouts`` and what is trained on its pairs."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from reward_models import load, models
from reward_models.cli import main
from reward_models.measuring.evaluation import accuracy
from reward_models.models.checkpoint import read_info
from reward_models.training.config import TrainingConfig
from reward_models.training.protocol import train
from spatialsim_env.arrangements.datasets import named, shards

TWO_INPUTS = [name for name, kind in models.REGISTRY.items() if kind.two_inputs]
SMALL = ("--n-objects", 3, "--horizon", 15, "--per-shard", 40)


def invoke(*arguments: object):
    return CliRunner().invoke(main.app, [str(argument) for argument in arguments])


def run(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pairs of 400 and 100 episodes with three objects, as many of each label."""
    out = tmp_path_factory.mktemp("rollouts") / "n3"
    run("rollouts", out, "--episodes", 400, "--valid", 100, "--balanced", *SMALL)
    return out


def test_it_resumes_and_grows(tmp_path):
    text = run("rollouts", tmp_path, "--episodes", 50, "--valid", 10, *SMALL)
    assert "00001.npz\n" in text
    assert "pairs of 50 episodes" in text
    text = run("rollouts", tmp_path, "--episodes", 100, "--valid", 10, *SMALL)
    assert "00000.npz: there already" in text
    assert "00002.npz\n" in text
    settings = named.read_manifest(tmp_path / "train")["settings"]
    assert (settings["n_objects"], settings["policies"]) == (3, ["random", "expert"])
    train_seeds, valid_seeds = (shards.load_columns(tmp_path / part)["seed"] for part in ("train", "valid"))
    assert not set(train_seeds) & set(valid_seeds)


def test_a_classifier_learns_from_them(folder, tmp_path):
    text = run("train", "matching", "--data", f"rollouts:{folder}", "--n-objects", 3, "--epochs", 20, "--out", tmp_path)
    assert "matching" in text
    model = load(tmp_path)
    fresh = folder.parent / "fresh"
    run("rollouts", fresh, "--episodes", 60, "--valid", 60, "--seed", 9, "--balanced", *SMALL)
    assert accuracy(model.module, shards.load(fresh / "valid")).value > 0.9
    digest = named.read_manifest(folder / "train")["sha256"]
    assert read_info(tmp_path)["task"]["data"]["sha256"]["train"] == digest


def test_an_agent_plays_in_its_own_world(tmp_path):
    from reward_models.agents.configs import AgentConfig
    from reward_models.agents.training import train as train_agent

    config = AgentConfig("ppo", env_kwargs={"n_objects": 4}, horizon=6, algorithm="ppo", total_steps=64, n_envs=2,
                         rollout=32, batch_size=32, net=(8,), episodes=2)  # fmt: skip
    train_agent(config, "sparse", tmp_path / "agent", progress=False).close()
    policies = ("--policy", tmp_path / "agent", "--policy", "expert")
    run("rollouts", tmp_path / "data", *policies, "--episodes", 6, "--valid", 2)
    settings = named.read_manifest(tmp_path / "data" / "train")["settings"]
    assert (settings["n_objects"], settings["horizon"], settings["policies"][1]) == (4, 6, "expert")
    assert settings["policies"][0].startswith("agent@")
    result = invoke("rollouts", tmp_path / "other", *policies, "--n-objects", 3)
    assert "and the world has" in str(result.exception)


def test_episodes_as_a_minari_set(tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    pytest.importorskip("h5py")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    run("rollouts", tmp_path / "data", "--episodes", 5, "--valid", 1, "--minari", "n3-v0", *SMALL)
    assert minari.load_dataset("n3-v0").total_episodes == 5


@pytest.mark.parametrize("name", [name for name in TWO_INPUTS if "resnet" not in name])
def test_every_two_input_model_trains_on_them(folder, tmp_path, name):
    config = TrainingConfig.plain(
        name, n_objects=3, data=f"rollouts:{folder}", samples_per_stage=64, validation_samples=32, epochs_per_stage=1
    )
    train(config, tmp_path, progress=False)
    pairs = shards.load(folder / "valid", 3)
    assert np.isfinite(load(tmp_path).score(pairs.reference, pairs.target)).all()


def test_every_stage_of_a_curriculum_has_the_same_pairs(folder, tmp_path):
    config = TrainingConfig(
        "mpgnn", n_objects=3, data=f"rollouts:{folder}", samples_per_stage=64, validation_samples=32, epochs_per_stage=1
    )
    train(config, tmp_path, progress=False)
    assert set(read_info(tmp_path)["task"]["data"]["sha256"]) == {"train", "valid"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rollouts", "x", "--policy", "best"], "best/agent.json does not exist"),
        (
            ["rollouts", "x", "--policy", "random", "--balanced", "--n-objects", "3", "--episodes", "2"],
            "have one label",
        ),
        (["rollouts", "x", "--n-objects", "1"], "accepted are 2 and more"),
        (["rollouts", "x", "--action-mode", "fly"], "action_mode is 'fly'"),
        (["train", "mpgnn", "--data", "rollouts:none", "--out", "x"], "train.json does not exist"),
        (["train", "mpgnn_single", "--data", "rollouts:none", "--out", "x"], "rollouts are pairs of scenes"),
    ],
)
def test_what_is_refused(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert message in str(result.exception)


def test_other_numbers_of_objects_are_refused(folder, tmp_path):
    result = invoke("train", "matching", "--data", f"rollouts:{folder}", "--out", tmp_path / "x")
    assert "n_objects is 3 there and [3, 8] in the configuration" in str(result.exception)
