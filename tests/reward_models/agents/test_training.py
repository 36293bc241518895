import json
import multiprocessing
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from reward_models.agents import training
from reward_models.agents.configs import IDENTIFICATION, AgentConfig, buffer_bytes, by_name
from reward_models.agents.run import Run
from reward_models.agents.training import learning_curve, load_agent, read_record, train
from spatialsim_env.arrangements.scene import POSITION
from spatialsim_env.arrangements.truth import SceneTruth
from spatialsim_env.core.rewards import Sparse

CONFIG = AgentConfig(
    "small",
    env_kwargs={"n_objects": 3, "max_turn": 0},
    horizon=10,
    total_steps=120,
    learning_starts=50,
    batch_size=32,
    net=(16,),
    gradient_steps=2,
    checkpoint_every=1000,
    episodes=3,
)
PPO = replace(CONFIG, name="ppo", algorithm="ppo", rollout=32, batch_size=64, total_steps=256)


class Spread:
    """A stand-in for a learned reward: looks at the positions' spread alone, and says so dense."""

    name, success_threshold = "spread", -0.1

    def __call__(self, achieved, desired):
        spreads = [scenes[..., POSITION].std(axis=(1, 2)).astype(np.float64) for scenes in (achieved, desired)]
        return -np.minimum(np.abs(np.log(np.maximum(spreads[0], 1e-9) / np.maximum(spreads[1], 1e-9))), 5)


class Interrupted:
    """The truth until it has been asked ``calls`` times, then a kill."""

    name, success_threshold = "sparse truth", -0.5

    def __init__(self, calls):
        self.calls, self.truth = calls, Sparse(SceneTruth())

    def __call__(self, achieved, desired):
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return self.truth(achieved, desired)


class OneGoal:
    """A single-input reward: knows one goal and refuses every other."""

    name, success_threshold = "one goal", -0.5

    def __init__(self, goal):
        self.goal = goal

    def __call__(self, achieved, desired):
        if not (desired == self.goal).all():
            raise ValueError("this reward knows one goal; use a model with two inputs")
        return -np.ones(len(achieved))


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("reward", ["sparse", "dense", Spread()], ids=["sparse", "dense", "live"])
def test_hindsight_trains_on_every_kind_of_reward(tmp_path, reward, n_envs):
    agent = train(replace(CONFIG, n_envs=n_envs), reward, tmp_path, progress=False)
    agent.close()
    assert agent.record["steps"] == agent.model.num_timesteps == 120
    assert agent.model._n_updates > 0
    assert agent.evaluation.episodes == 3
    row = learning_curve(tmp_path)[-1]
    assert {"rollout/success_rate", "rollout/success_rate_model", "reward/true", "reward/model"} <= set(row)
    assert -1 <= row["reward/true"] <= 0
    assert (row["reward/model"] == row["reward/true"]) == (reward == "sparse")


def test_worker_processes_train_on_a_live_reward(tmp_path):
    agent = train(replace(CONFIG, n_envs=2, subprocess=True), Spread(), tmp_path, progress=False)
    agent.close()
    assert agent.record["steps"] == 120
    loaded = load_agent(tmp_path)
    assert loaded.model.get_env().num_envs == 1
    loaded.close()


def test_ppo_logs_the_success_rate(tmp_path):
    agent = train(PPO, "dense", tmp_path, progress=False, tensorboard=True)
    agent.close()
    row = learning_curve(tmp_path)[-1]
    assert {"rollout/success_rate", "rollout/success_rate_model", "reward/true", "reward/model"} <= set(row)
    assert agent.record["steps"] == 256
    assert list((tmp_path / "tensorboard").iterdir())


def test_one_seed_gives_one_agent_and_another_another(tmp_path):
    def weights(name, seed):
        agent = train(replace(CONFIG, seed=seed), "sparse", tmp_path / name, progress=False)
        agent.close()
        return torch.cat([weight.detach().flatten() for weight in agent.model.policy.parameters()])

    first = weights("a", 1)
    assert (first == weights("b", 1)).all()
    assert (first != weights("c", 2)).any()


def test_the_callers_threads_and_random_states_are_given_back(tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    np.random.seed(7), random.seed(7), torch.manual_seed(7)  # noqa: NPY002
    try:
        train(CONFIG, "sparse", tmp_path, progress=False).close()
        load_agent(tmp_path).close()
        assert torch.get_num_threads() == 2
        drawn = np.random.random(), random.random(), torch.rand(1).item()  # noqa: NPY002
        np.random.seed(7), random.seed(7), torch.manual_seed(7)  # noqa: NPY002
        assert drawn == (np.random.random(), random.random(), torch.rand(1).item())  # noqa: NPY002
    finally:
        torch.set_num_threads(threads)


def test_a_killed_run_goes_on_to_the_right_number_of_steps(tmp_path):
    config = replace(CONFIG, total_steps=240, checkpoint_every=60)
    with pytest.raises(KeyboardInterrupt):
        train(config, Interrupted(280), tmp_path, progress=False)
    record = read_record(tmp_path)
    assert not record["finished"]
    assert 60 <= record["steps"] < 240
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == [f"checkpoint-{record['steps']:010d}"]
    with pytest.raises(ValueError, match=rf"unfinished run, at {record['steps']} of 240 steps"):
        load_agent(tmp_path)
    with pytest.raises(FileExistsError, match="resume=True takes it up"):
        train(config, Interrupted(10**6), tmp_path, progress=False)

    agent = train(config, Interrupted(10**6), tmp_path, progress=False, resume=True)
    agent.close()
    assert agent.record["steps"] == agent.model.num_timesteps == 240
    assert agent.record["finished"]
    assert agent.record["seconds"] > record["seconds"]
    assert not list(tmp_path.glob("*checkpoint*"))
    steps = [row[training.STEPS_COLUMN] for row in learning_curve(tmp_path)]
    assert steps == sorted(set(steps))
    assert steps[0] < record["steps"] < steps[-1]


def test_a_resumed_run_has_its_replay_buffer_back(tmp_path):
    config = replace(CONFIG, total_steps=240, checkpoint_every=60)
    with pytest.raises(KeyboardInterrupt):
        train(config, Interrupted(280), tmp_path, progress=False)
    steps = read_record(tmp_path)["steps"]
    run = Run.begin(tmp_path, config, Interrupted(0), resume=True)
    envs = training.make_envs(config)
    model = run.restore(envs)
    envs.close()
    assert model.num_timesteps == steps
    assert model.replay_buffer.size() * config.n_envs == steps
    assert model.replay_buffer.env is envs


@pytest.mark.parametrize("calls", [5, 60, 130])
@pytest.mark.parametrize("config", [CONFIG, PPO], ids=["sac", "ppo"])
def test_a_run_killed_before_its_first_checkpoint_begins_again(tmp_path, config, calls):
    with pytest.raises(KeyboardInterrupt):
        train(config, Interrupted(calls), tmp_path / "parts", progress=False)
    agents = [
        train(config, Interrupted(10**6), tmp_path / name, progress=False, resume=True) for name in ("parts", "whole")
    ]
    assert [agent.record["steps"] for agent in agents] == [config.total_steps] * 2
    killed, whole = ([weight.tolist() for weight in agent.model.policy.parameters()] for agent in agents)
    assert killed == whole
    assert [agent.close() for agent in agents]


@pytest.mark.parametrize("step", ["evaluate", "learn", "write", "tidy"])
@pytest.mark.parametrize("config", [CONFIG, PPO], ids=["sac", "ppo"])
def test_a_run_goes_on_wherever_it_was_interrupted(tmp_path, monkeypatch, config, step):
    """In the evaluation, in saving a checkpoint, in writing the last record, and after it."""
    config = replace(config, checkpoint_every=60)

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    if step == "evaluate":
        monkeypatch.setattr(training, "evaluate", interrupted)
    elif step == "learn":
        monkeypatch.setattr(Path, "rename", interrupted)
    elif step == "write":
        write = Run.write
        monkeypatch.setattr(Run, "write", lambda run, **c: interrupted() if c.get("finished") else write(run, **c))
    else:
        tidy = Run.tidy
        monkeypatch.setattr(Run, "tidy", lambda run: interrupted() if run.record["finished"] else tidy(run))
    with pytest.raises(KeyboardInterrupt):
        train(config, "sparse", tmp_path, progress=False)
    monkeypatch.undo()
    assert read_record(tmp_path)["finished"] == (step == "tidy")
    agent = train(config, "sparse", tmp_path, progress=False, resume=True)
    agent.close()
    assert agent.record["finished"]
    assert agent.record["steps"] == agent.model.num_timesteps == config.total_steps
    assert not list(tmp_path.glob("*checkpoint*"))
    assert load_agent(tmp_path).close() is None


def test_a_learning_curve_cut_in_its_last_line_is_mended(tmp_path):
    config = replace(CONFIG, total_steps=240, checkpoint_every=60)
    with pytest.raises(KeyboardInterrupt):
        train(config, Interrupted(280), tmp_path, progress=False)
    rows = learning_curve(tmp_path)
    with open(tmp_path / "progress.csv", "a") as file:
        file.write("0.5,-")
    assert learning_curve(tmp_path) == rows
    train(config, Interrupted(10**6), tmp_path, progress=False, resume=True).close()
    assert all(training.STEPS_COLUMN in row for row in learning_curve(tmp_path))


def test_worker_processes_that_die_leave_a_run_to_go_on_with(tmp_path):
    config = replace(CONFIG, n_envs=2, subprocess=True)
    others = set(multiprocessing.active_children())
    with pytest.raises((EOFError, OSError)):
        train(config, Interrupted(10), tmp_path, progress=False)
    left = [process for process in multiprocessing.active_children() if process not in others]
    for process in left:
        process.join(timeout=30)
    assert not any(process.is_alive() for process in left)
    agent = train(config, Interrupted(10**6), tmp_path, progress=False, resume=True)
    agent.close()
    assert agent.record["steps"] == 120


THREADS = """
import sys
from dataclasses import replace

import numpy as np
import torch

from reward_models.agents.configs import by_name
from reward_models.agents.training import make_envs


class Threads:
    name, success_threshold = "threads", 0.0

    def __call__(self, achieved, desired):
        return np.full(len(achieved), float(torch.get_num_threads()))


if __name__ == "__main__":
    torch.set_num_threads(3)
    envs = make_envs(replace(by_name("discrim_n3"), n_envs=2, native=False, subprocess=True), Threads())
    envs.reset()
    _, threads, _, _ = envs.step(np.zeros((2, *envs.action_space.shape), np.float32))
    envs.close()
    print(*map(int, threads), torch.get_num_threads())
"""


def test_worker_processes_have_one_thread_and_the_main_process_keeps_its_own(tmp_path):
    script = tmp_path / "threads_of_workers.py"
    script.write_text(THREADS)
    environment = os.environ | {"OMP_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["1", "1", "3"], done.stderr


def test_a_finished_run_is_returned_and_other_runs_are_refused(tmp_path):
    train(CONFIG, "sparse", tmp_path, progress=False).close()
    before = (tmp_path / "agent.zip").read_bytes()
    agent = train(CONFIG, "sparse", tmp_path, progress=False, resume=True)
    agent.close()
    assert agent.record["finished"]
    assert (tmp_path / "agent.zip").read_bytes() == before
    with pytest.raises(ValueError, match="holds another run: seed is 0 there and 1 here"):
        train(replace(CONFIG, seed=1), "sparse", tmp_path, progress=False, resume=True)
    with pytest.raises(ValueError, match="reward is 'sparse' there and 'dense' here"):
        train(CONFIG, "dense", tmp_path, progress=False)


@pytest.mark.parametrize(
    ("start", "reward", "error", "message"),
    [
        ("nonsense", "sparse", ValueError, "'nonsense'"),
        ("redrawn", object(), TypeError, "reward is a object without name, success_threshold"),
    ],
)
def test_what_cannot_be_made_leaves_no_run_behind(tmp_path, start, reward, error, message):
    config = replace(CONFIG, env_kwargs={**CONFIG.env_kwargs, "start": start})
    with pytest.raises(error, match=message):
        train(config, reward, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_loading_an_agent_recreates_its_environment(tmp_path):
    config = replace(CONFIG, env_kwargs={"n_objects": (2, 4), "tolerances": (2.0, 1.0, 0.5)}, total_steps=60)
    agent = train(config, "dense", tmp_path, progress=False)
    loaded = load_agent(tmp_path)
    env = loaded.model.get_env().envs[0].unwrapped
    assert env.world.truth.criterion.tolerances == (2.0, 1.0, 0.5)
    assert env.reward.name == loaded.reward == "dense"
    spec = loaded.model.get_env().get_attr("spec")[0]
    assert spec.id == "SpatialSim-Discrim-v0"
    assert spec.max_episode_steps == 10
    observation = loaded.model.get_env().reset()
    assert (loaded.predict(observation)[0] == agent.predict(observation)[0]).all()
    assert loaded.record["versions"]["stable-baselines3"]
    agent.close(), loaded.close()


def test_an_agent_of_a_live_reward_loads_with_the_truth_or_with_what_is_given(tmp_path):
    train(replace(CONFIG, total_steps=60), Spread(), tmp_path, progress=False).close()
    agent = load_agent(tmp_path)
    assert agent.record["live_reward"]
    assert agent.model.get_env().envs[0].unwrapped.reward.name == "sparse"
    reward = Spread()
    again = load_agent(tmp_path, reward)
    assert again.model.get_env().envs[0].unwrapped.reward is reward
    agent.close(), again.close()


@pytest.mark.parametrize("content", [b"", b"no zip"])
def test_a_broken_agent_is_named(tmp_path, content):
    train(replace(CONFIG, total_steps=60), "sparse", tmp_path, progress=False).close()
    (tmp_path / "agent.zip").write_bytes(content)
    with pytest.raises(ValueError, match=r"agent\.zip cannot be read as an agent"):
        load_agent(tmp_path)
    (tmp_path / "agent.zip").unlink()
    with pytest.raises(FileNotFoundError, match=r"agent\.zip does not exist; accepted is"):
        load_agent(tmp_path)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, FileNotFoundError, "agent.json does not exist"),
        ("{", ValueError, "is not JSON"),
        (json.dumps({"format": "another"}), ValueError, "is not of the format 'spatialsim-env agent 1'"),
    ],
)
def test_foreign_directories_are_refused(tmp_path, content, error, message):
    if content is not None:
        (tmp_path / "agent.json").write_text(content)
    with pytest.raises(error, match=message):
        load_agent(tmp_path)


def test_a_reward_that_knows_one_goal_raises_on_relabelled_goals(tmp_path):
    config = replace(CONFIG, env_id=IDENTIFICATION, env_kwargs={"n_objects": 3, "max_turn": 0})
    env = config.make_env()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="use a model with two inputs"):
        train(config, OneGoal(env.unwrapped.scenes[1]), tmp_path, progress=False)


def test_the_memory_of_the_buffer_is_printed(tmp_path, capsys):
    train(replace(CONFIG, total_steps=60), "sparse", tmp_path).close()
    out = capsys.readouterr()
    assert f"the replay buffer takes {buffer_bytes(replace(CONFIG, total_steps=60)) / 1e6:.1f} MB" in out.out
    assert "small" in out.err


def test_the_agent_learns(tmp_path):
    config = replace(by_name("discrim_n3"), total_steps=1_200, gradient_steps=2, episodes=50)
    agent = train(config, "sparse", tmp_path, progress=False)
    agent.close()
    assert agent.evaluation.success_rate >= 0.8
