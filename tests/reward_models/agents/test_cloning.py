"""Clones of the scripted expert: what they learn from, what they are worth, and their files."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from reward_models.agents.agent_policy import AgentPolicy, world_of
from reward_models.agents.cloning import SHARES, PolicyMixture, clone, demonstrations
from reward_models.agents.configs import AgentConfig, by_name
from reward_models.agents.evaluation import evaluate
from reward_models.agents.policies import ExpertPolicy
from reward_models.agents.run import read_record
from reward_models.agents.training import learning_curve, load_agent, train
from reward_models.cli.main import app
from spatialsim_env.arrangements.datasets.rollouts import RolloutWorld
from spatialsim_env.arrangements.scene import as_batch

N3 = by_name("discrim_n3")
SMALL = AgentConfig("small", env_kwargs={"n_objects": 3, "max_turn": 0}, horizon=10, learning_starts=50, net=(16,),
                    total_steps=60, episodes=4)  # fmt: skip
PPO = {"algorithm": "ppo", "rollout": 64, "n_envs": 4}


def cloned(config, folder, episodes=8, epochs=2):
    agent = clone(config, folder, episodes=episodes, epochs=epochs, progress=False)
    agent.close()
    return agent


def weights(agent):
    return torch.nn.utils.parameters_to_vector(agent.model.policy.parameters()).detach()


@pytest.mark.parametrize("changes", [{}, PPO], ids=["sac", "ppo"])
def test_a_clone_is_truly_successful(tmp_path, changes):
    agent = cloned(replace(N3, **changes), tmp_path, episodes=100, epochs=15)
    assert agent.evaluation.episodes == 100
    assert agent.evaluation.success_rate >= 0.9
    rows = learning_curve(tmp_path)
    assert [row["epoch"] for row in rows] == list(range(1, 16))
    assert rows[-1]["train/loss"] < rows[0]["train/loss"]


def test_a_clone_in_discrete_steps_does_what_the_expert_does_more_often_than_by_chance(tmp_path):
    config = replace(N3, **PPO, env_kwargs={"n_objects": 3, "max_turn": 0, "action_mode": "discrete"}, episodes=1)
    agent = cloned(config, tmp_path, episodes=100, epochs=10)
    seen, labels, _ = demonstrations(replace(config, seed=1), 20)
    actions = agent.predict({key: part.numpy() for key, part in seen.items()})[0]
    assert (actions == labels.numpy()).all(axis=1).mean() > 2 / 12  # 3 objects, 4 directions


@pytest.mark.parametrize(
    "changes",
    [
        {"env_kwargs": {"n_objects": (2, 4), "action_mode": "pick_place"}},
        {**PPO, "env_kwargs": {"n_objects": (2, 4), "action_mode": "discrete"}},
        {"subprocess": True, "n_envs": 2},
        {"native": True},
    ],
)
def test_one_seed_gives_one_clone_and_another_another(tmp_path, changes):
    config = replace(SMALL, **changes)
    first = weights(cloned(config, tmp_path / "a"))
    assert torch.equal(first, weights(cloned(config, tmp_path / "b")))
    assert not torch.equal(first, weights(cloned(replace(config, seed=1), tmp_path / "c")))


def test_labels_are_the_experts_wherever_the_states_come_from():
    config = replace(SMALL, env_kwargs={"n_objects": (2, 4)})
    seen, labels, _ = demonstrations(config, 2 * len(SHARES))
    assert len(labels) == 2 * len(SHARES) * config.horizon
    env = config.make_env()
    actions = ExpertPolicy(env).predict({key: part.numpy() for key, part in seen.items()})[0]
    assert np.array_equal(actions, labels.numpy())
    assert all(env.observation_space[key].contains(row) for key, part in seen.items() for row in part.numpy())


def test_some_of_the_states_are_off_the_experts_path():
    """Episodes of one share each, in turn: the larger it is, the farther from done is their last state."""
    config = replace(N3, horizon=20)
    seen, _, _ = demonstrations(config, 50 * len(SHARES))
    last = {key: as_batch(part.numpy()[-50 * len(SHARES) :])[0] for key, part in seen.items()}
    distance = world_of(config).world.truth.criterion.align(last["achieved_goal"], last["desired_goal"]).distance
    medians = [np.median(distance[turn :: len(SHARES)]) for turn in range(len(SHARES))]
    assert medians == sorted(medians)
    assert medians[0] < 0.1 < medians[-1]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_mixture_acts_at_random_as_often_as_it_says(share):
    world = RolloutWorld({"n_objects": 3, "max_turn": 0})
    world_, rng = world.world, np.random.default_rng(0)
    begun = world_.episodes.begin(rng.random((2000, world_.episodes.n_uniform), np.float32))
    expert = world.policy("expert")
    actions = PolicyMixture(expert, world.policy("random"), share)(begun.achieved, begun.desired, rng)
    strayed = (actions != expert(begun.achieved, begun.desired)).any(axis=1).mean()
    assert strayed == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 2000))


def test_a_clone_is_a_run_like_any_other(tmp_path):
    agent = cloned(SMALL, tmp_path)
    loaded = load_agent(tmp_path)
    assert loaded.record == agent.record == read_record(tmp_path)
    assert loaded.record["cloned"] == {"episodes": 8, "epochs": 2}
    assert (loaded.reward, loaded.record["steps"], loaded.record["finished"]) == ("sparse", 80, True)
    assert torch.equal(weights(loaded), weights(agent))
    again = evaluate(loaded, loaded.config, episodes=SMALL.episodes)
    assert again.summary() == loaded.record["evaluation"]
    assert AgentPolicy(tmp_path).world.horizon == 10
    loaded.close()
    loaded.close()


def test_other_runs_in_its_place_are_refused(tmp_path):
    cloned(SMALL, tmp_path / "clone")
    train(SMALL, "sparse", tmp_path / "trained", progress=False).close()
    with pytest.raises(FileExistsError, match="holds this run, finished; resume=True takes it up"):
        cloned(SMALL, tmp_path / "clone")
    clone(SMALL, tmp_path / "clone", episodes=8, epochs=2, progress=False, resume=True).close()
    with pytest.raises(ValueError, match=r"cloned is .*'epochs': 2} there and .*'epochs': 3} here"):
        cloned(SMALL, tmp_path / "clone", epochs=3)
    with pytest.raises(ValueError, match="cloned is None there and"):
        cloned(SMALL, tmp_path / "trained")
    with pytest.raises(ValueError, match=r"cloned is .* there and None here"):
        train(SMALL, "sparse", tmp_path / "clone", progress=False, resume=True)


def test_a_killed_clone_begins_again(tmp_path, monkeypatch):
    from reward_models.agents import training

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cloned(SMALL, tmp_path / "parts")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="unfinished run"):
        load_agent(tmp_path / "parts")
    agent = clone(SMALL, tmp_path / "parts", episodes=8, epochs=2, progress=False, resume=True)
    agent.close()
    assert torch.equal(weights(agent), weights(cloned(SMALL, tmp_path / "whole")))


def test_the_callers_random_states_are_given_back(tmp_path):
    drawn = []
    for work in (lambda: None, lambda: cloned(SMALL, tmp_path)):
        np.random.seed(7), random.seed(7), torch.manual_seed(7)  # noqa: NPY002
        work()
        drawn.append((np.random.random(), random.random(), torch.rand(1).item()))  # noqa: NPY002
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        (SMALL, {"episodes": 0}, "episodes is 0; accepted is an int from 1"),
        (SMALL, {"epochs": 1.5}, "epochs is 1.5; accepted is an int from 1"),
        (
            replace(SMALL, env_kwargs={"observation": "pixels"}),
            {},
            "observation is 'pixels'; accepted is 'state': demonstrations hold no pictures",
        ),
    ],
)
def test_bad_arguments_are_named(tmp_path, config, options, message):
    with pytest.raises(ValueError, match=message):
        clone(config, tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_the_command_clones_and_says_what_it_is_worth(tmp_path):
    arguments = ["agent", "clone", "discrim_n3", "--out", tmp_path, "--episodes", 4, "--epochs", 1, "--seed", 3]
    for _ in range(2):  # the second time it is there already
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == 0, result.output
        assert f"{tmp_path}: 200 steps of demonstrations" in result.output
        assert "truly achieved" in result.output
    record = read_record(tmp_path)
    assert (record["cloned"], record["config"]["seed"]) == ({"episodes": 4, "epochs": 1}, 3)
