"""How a run knows its reward again: names, paths, models that moved or were trained again."""

import json
import pickle
import shutil
from dataclasses import replace

import pytest

from reward_models import models
from reward_models.agents.configs import AgentConfig
from reward_models.agents.training import load_agent, read_record, train
from reward_models.judges.learned import LearnedModel, LearnedReward
from reward_models.models import checkpoint
from reward_models.training.config import TrainingConfig

CONFIG = AgentConfig(
    "small",
    env_kwargs={"n_objects": 3, "max_turn": 0},
    horizon=10,
    total_steps=60,
    learning_starts=50,
    batch_size=32,
    net=(16,),
    gradient_steps=1,
    episodes=2,
)


def save_net(folder, seed=0):
    return checkpoint.save(
        models.create("matching", seed=seed), folder, TrainingConfig("matching").describe_task()
    ).parent


def reward_of(agent):
    """The reward in an agent's environment."""
    reward = agent.model.get_env().get_attr("reward")[0]
    agent.close()
    return reward


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A folder with a network, which is the working directory."""
    tree = tmp_path / "tree"
    save_net(tree / "net")
    monkeypatch.chdir(tree)
    return tree


@pytest.mark.parametrize("suffix", ["", ":dense"])
def test_an_agent_loads_from_any_working_directory(tree, tmp_path, monkeypatch, suffix):
    agent = train(CONFIG, f"./net{suffix}", "runs/agent", progress=False)
    monkeypatch.chdir(tmp_path)
    assert agent.reward == f"{tree / 'net'}{suffix}"
    assert reward_of(agent).name == agent.reward
    loaded = load_agent(tree / "runs" / "agent")
    assert loaded.reward == agent.reward
    assert reward_of(loaded).name == agent.reward
    assert loaded.record["model"] == {
        "folder": str(tree / "net"),
        "beside": None,
        "kind": "dense" if suffix else "sparse",
        "sha256": checkpoint.read_info(tree / "net")["sha256"],
    }


@pytest.mark.parametrize("again", ["net", "./net", "absolute", "runs/../net", "live"])
def test_one_model_is_one_reward_however_it_is_given(tree, again):
    train(CONFIG, "./net", "run", progress=False).close()
    reward = {"absolute": str(tree / "net"), "live": LearnedReward("net")}.get(again, again)
    (tree / "runs").mkdir()
    agent = train(CONFIG, reward, "run", progress=False, resume=True)
    agent.close()
    assert agent.record["finished"]


def test_sparse_and_dense_of_one_model_are_two_rewards(tree):
    train(CONFIG, "./net", "run", progress=False).close()
    with pytest.raises(ValueError, match="holds another run: reward is sparse there and dense here"):
        train(CONFIG, "net:dense", "run", progress=False, resume=True)
    with pytest.raises(ValueError, match=r"reward is '.*/tree/net' there and 'sparse' here"):
        train(CONFIG, "sparse", "run", progress=False, resume=True)


def test_a_model_that_was_trained_again_is_another_reward(tree):
    train(CONFIG, "net", "run", progress=False).close()
    before = checkpoint.read_info("net")["sha256"]
    save_net(tree / "net", seed=1)
    after = checkpoint.read_info("net")["sha256"]
    with pytest.raises(
        ValueError, match=rf"/net' with weights of SHA-256 {before[:12]} there and .* {after[:12]} here"
    ):
        train(CONFIG, "net", "run", progress=False, resume=True)
    with pytest.raises(ValueError, match=rf"/net', weights of SHA-256 {before[:12]}, has other weights by now"):
        load_agent("run")
    assert reward_of(load_agent("run", "net")).name == str(tree / "net")
    shutil.rmtree("net")
    with pytest.raises(ValueError, match="is gone; accepted is that model in its place, or another reward by name"):
        load_agent("run")
    assert reward_of(load_agent("run", "dense")).name == "dense"


@pytest.mark.parametrize(("net", "beside"), [("net", "../net"), ("run/net", "net"), ("nets/a", "../nets/a")])
def test_a_tree_that_moved_still_loads(tree, tmp_path, monkeypatch, net, beside):
    save_net(tree / net)
    train(CONFIG, f"{net}:dense", "run", progress=False).close()
    assert read_record("run")["model"]["beside"] == beside
    monkeypatch.chdir(tmp_path)
    tree.rename(tmp_path / "moved")
    moved = f"{tmp_path / 'moved' / net}:dense"
    assert reward_of(load_agent(tmp_path / "moved" / "run")).name == moved
    again = train(CONFIG, moved, tmp_path / "moved" / "run", progress=False, resume=True)
    assert reward_of(again).name == moved


def test_a_copied_tree_uses_its_own_model(tree, tmp_path):
    train(CONFIG, "net", "run", progress=False).close()
    shutil.copytree(tree, tmp_path / "copy")
    assert reward_of(load_agent(tmp_path / "copy" / "run")).name == str(tmp_path / "copy" / "net")
    save_net(tmp_path / "copy" / "net", seed=1)
    assert reward_of(load_agent(tmp_path / "copy" / "run")).name == str(tree / "net")


def test_a_live_reward_of_a_folder_is_a_named_one(tree):
    train(CONFIG, LearnedReward("net", "dense"), "run", progress=False).close()
    record = read_record("run")
    assert not record["live_reward"]
    assert record["reward"] == f"{tree / 'net'}:dense"
    assert reward_of(load_agent("run")).kind == "dense"


def test_a_model_in_no_file_is_a_live_reward(tree):
    reward = LearnedReward(LearnedModel(models.create("matching", seed=2)))
    train(CONFIG, pickle.loads(pickle.dumps(reward)), "run", progress=False).close()
    record = read_record("run")
    assert (record["live_reward"], record["reward"], record["model"]) == (True, "matching", None)
    assert reward_of(load_agent("run")).name == "sparse"


def test_a_path_without_a_model_leaves_no_run(tree):
    with pytest.raises(ValueError, match=r"nothing/model.json does not exist"):
        train(CONFIG, "./nothing", "run", progress=False)
    assert not (tree / "run").exists()
    train(CONFIG, "net", "run", progress=False).close()


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        *((key, None, f"agent.json lacks {key}") for key in ("config", "steps", "finished", "evaluation")),
        *((key, None, f"agent.json lacks {key}") for key in ("reward", "live_reward", "model")),
        ("config", [], r"agent.json: config is \[\]; accepted is a dict"),
        ("config", {"name": "x", "horizon": 0}, "agent.json: horizon is 0"),
        ("config", {"colour": 1}, "agent.json: a configuration has no field colour"),
        ("finished", "yes", "agent.json: finished is 'yes'; accepted is a bool"),
        ("reward", 3, "agent.json: reward is 3; accepted is a str"),
        ("model", "net", "agent.json: model is 'net'; accepted is a dict or NoneType"),
        ("model", {"folder": "net"}, "agent.json lacks beside, kind, sha256"),
    ],
)
def test_a_record_that_is_not_whole_is_named(tree, entry, value, message):
    record = {"format": "spatialsim-env agent 1", "config": CONFIG.as_json(), "reward": "sparse", "live_reward": False}
    record |= {"model": None, "steps": 60, "finished": True, "seconds": 1.0, "cpu_seconds": 1, "evaluation": None}
    record[entry] = value
    if value is None:
        del record[entry]
    (tree / "agent.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=message):
        load_agent(tree)


def test_a_record_that_is_no_object_is_named(tree):
    (tree / "agent.json").write_text("[]")
    with pytest.raises(ValueError, match=r"agent.json holds a list; accepted is a JSON object"):
        load_agent(tree)
    with pytest.raises(ValueError, match=r"agent.json holds a list"):
        train(replace(CONFIG, seed=1), "sparse", tree, progress=False)
