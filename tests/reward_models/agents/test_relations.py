"""Agents of relations: what they see, their hindsight, their files, and what is said of them."""

from __future__ import annotations

import json
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import spatialsim_env
from reward_models.agents import relation_features
from reward_models.agents import relations as agent
from reward_models.agents.algorithms import make_model
from reward_models.agents.buffer import WorldHerReplayBuffer
from reward_models.agents.configs import RELATION, AgentConfig
from reward_models.agents.relations import ALL, CONFIG, SEVEN, config_of
from reward_models.agents.training import load_agent, make_envs
from reward_models.cli.relation_agents import agent_app
from reward_models.shares import share_of
from spatialsim_env.relations import scene
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.scene import CENTER, EYE, EYE_RIGHT, EYE_UP, FRONT, OBJECT, SUBJECT, UP
from spatialsim_env.relations.vocabulary import DIRECTIONAL, INDEX
from spatialsim_env.relations.world import goals

ID = f"spatialsim_env:{spatialsim_env.RELATION_IDS[0]}"
TINY = {"net": (8,), "n_envs": 4, "learning_starts": 220, "total_steps": 320, "batch_size": 16, "gradient_steps": 1,
        "buffer_size": 1_000, "episodes": 4, "checkpoint_every": 240, "evaluate_every": 240}  # fmt: skip


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(agent, "CONFIG", replace(CONFIG, **TINY))


def worlds(size=40, seed=0, **options):
    envs = gym.make_vec(ID, num_envs=size, **options)
    observations, _ = envs.reset(seed=seed)
    return envs, {name: torch.from_numpy(array) for name, array in observations.items()}


# --- what an agent sees --------------------------------------------------------------------------------------------


def test_features_have_the_width_that_is_said():
    envs, observations = worlds()
    extractor = relation_features.RelationExtractor(envs.single_observation_space)
    found = extractor(observations)
    assert found.shape == (40, extractor.features_dim)
    assert found.isfinite().all()
    assert not list(extractor.parameters())


def turned(scenes, observers, degrees):
    """The whole world turned about the vertical through the room's middle."""
    turn = torch.from_numpy(scene.yaw_rotation(degrees))
    scenes, observers = scenes.clone(), observers.clone()
    for part in (CENTER, FRONT, UP):
        scenes[..., part] = scenes[..., part] @ turn.T
    for part in (EYE, EYE_RIGHT, EYE_UP):
        observers[..., part] = observers[..., part] @ turn.T
    return scenes, observers


def test_the_way_in_each_frame_is_that_of_the_frame():
    """Turning the world leaves what the object and the observer see, and turns what the world's axes say."""
    envs, _ = worlds()
    scenes, observers = (torch.from_numpy(x.astype(np.float64)) for x in envs.scenes)
    before = relation_features.relation_features(scenes, observers)[:, :9]
    after = relation_features.relation_features(*turned(scenes, observers, 40.0))[:, :9]
    turn = torch.from_numpy(scene.yaw_rotation(40.0))
    assert torch.allclose(after[:, :3], before[:, :3] @ turn.T)
    assert torch.allclose(after[:, 3:], before[:, 3:])
    way = scenes[:, SUBJECT, CENTER] - scenes[:, OBJECT, CENTER]
    still = torch.from_numpy(scene.rotation(scenes[:, OBJECT].numpy()))
    assert torch.allclose(before[:, :3], way)
    assert torch.allclose(before[:, 3:6], torch.einsum("bki,bk->bi", still, way))
    away = torch.from_numpy(scene.away(observers.numpy()))
    assert torch.allclose(before[:, 7], (way[:, :2] * away).sum(-1))


@pytest.mark.parametrize("name", [word + you for word in DIRECTIONAL for you in ("", " (wrt you)")])
def test_a_subject_that_is_where_the_word_points_is_there_by_the_rule(name):
    """At a metre along the unit vector that the features give, the rule's margin is positive."""
    envs, _ = worlds(30)
    scenes, observers = (x.astype(np.float64) for x in envs.scenes)
    flags = torch.zeros(30, goals.N_FLAGS, dtype=torch.float64)
    flags[:, INDEX[name]] = 1
    named = relation_features.direction_features(torch.from_numpy(scenes), torch.from_numpy(observers), flags).numpy()
    assert np.hypot(named[:, 0], named[:, 1]) == pytest.approx(1)
    way = (scenes[:, SUBJECT] - scenes[:, OBJECT])[:, CENTER][:, :2]
    assert named[:, 2] == pytest.approx((way * named[:, :2]).sum(axis=1))
    assert named[:, 2] ** 2 + named[:, 3] ** 2 == pytest.approx((way**2).sum(axis=1))
    scenes[:, SUBJECT, :2] = scenes[:, OBJECT, :2] + named[:, :2]
    assert (predicates.margins(scenes, observers, (name,)) > 0).all()


def test_goals_without_a_direction_have_none():
    envs, _ = worlds(5)
    scenes, observers = (torch.from_numpy(x) for x in envs.scenes)
    flags = torch.zeros(5, goals.N_FLAGS)
    flags[:, INDEX["on"]] = 1
    assert (relation_features.direction_features(scenes, observers, flags)[:, :6] == 0).all()


# --- hindsight -----------------------------------------------------------------------------------------------------


def test_relabelled_goals_are_such_as_the_environment_draws():
    """One of its predicates each, and nothing else."""
    names = ("near", "to the side of", "faces away")
    config = replace(CONFIG, env_kwargs={"predicates": list(names)}, **{**TINY, "total_steps": 400})
    envs = make_envs(config)
    model = make_model(config, envs)
    model.learn(400)
    buffer = model.replay_buffer
    assert isinstance(buffer, WorldHerReplayBuffer)
    rows, copies = np.arange(90) % 45, np.arange(90) % 4
    wanted = np.concatenate([goals.required(buffer._sample_goals(rows, copies)) for _ in range(20)])
    assert (wanted.sum(axis=1) == 1).all()
    assert set(np.flatnonzero(wanted.any(axis=0))) == {INDEX[name] for name in names}
    assert (buffer._sample_goals(rows, copies)[:, goals.STATE] == 0).all()


def test_a_relabelled_goal_that_held_later_is_reached_by_the_reward():
    config = replace(CONFIG, env_kwargs={"predicates": ["outside", "far from"]}, **{**TINY, "total_steps": 400})
    model = make_model(config, make_envs(config))
    model.learn(400)
    sample = model.replay_buffer.sample(200)
    assert set(sample.rewards.flatten().tolist()) == {0.0, -1.0}
    reached = sample.rewards.flatten() == 0
    flags = sample.observations["desired_goal"][:, goals.FLAGS] > 0.5
    held = sample.next_observations["achieved_goal"][:, goals.FLAGS] > 0.5
    assert torch.equal((held | ~flags).all(dim=1), reached)


# --- training and evaluation ---------------------------------------------------------------------------------------


def test_a_training_writes_its_record_and_is_taken_up(tiny, tmp_path):
    trained = agent.train(tmp_path / "run", predicates=("near", "under"), progress=False)
    record = json.loads((tmp_path / "run" / "agent.json").read_text())
    assert record["finished"]
    assert record["reward"] == "dense"
    assert record["config"]["env_kwargs"] == {"predicates": ["near", "under"]}
    again = load_agent(tmp_path / "run")
    _, observations = worlds(6)
    given = {name: tensor.numpy() for name, tensor in observations.items()}
    assert np.array_equal(trained.predict(given)[0], again.predict(given)[0])
    assert agent.train(tmp_path / "run", predicates=("near", "under"), progress=False).record == record
    with pytest.raises(ValueError, match="another run"):
        agent.train(tmp_path / "run", predicates=("on",), progress=False)


def test_an_interrupted_training_goes_on(tiny, tmp_path, monkeypatch):
    from reward_models.agents.run import Run

    class Stop(Exception):
        pass

    def stop(self, model):
        save(self, model)
        raise Stop

    save = Run.save_checkpoint
    monkeypatch.setattr(Run, "save_checkpoint", stop)
    with pytest.raises(Stop):
        agent.train(tmp_path / "run", progress=False)
    monkeypatch.undo()
    monkeypatch.setattr(agent, "CONFIG", replace(CONFIG, **TINY))
    assert not json.loads((tmp_path / "run" / "agent.json").read_text())["finished"]
    assert agent.train(tmp_path / "run", progress=False).record["steps"] >= TINY["total_steps"]


def test_evaluation_is_by_the_rules_for_each_predicate():
    config = config_of(("near", "outside"))
    found = agent.evaluate("random", config, "sparse", episodes=20, seed=3)
    assert list(found) == ["near", "outside"]
    for name, ends in found.items():
        assert ends.achieved.shape == ends.desired.shape == (20, goals.N_GOAL)
        assert (goals.required(ends.desired).nonzero()[1] == INDEX[name]).all()
        holds = predicates.holds(*goals.state(ends.achieved))[:, INDEX[name]]
        assert np.array_equal(ends.success, holds)
        assert np.array_equal(ends.claimed, holds)
    together = agent.shares(found)
    assert together["near"]["success"] == share_of(found["near"].success)
    assert together[ALL]["success"]["hits"] == sum(ends.success.sum() for ends in found.values())
    assert together[ALL]["success"]["total"] == 40


class Downward:
    """A policy that knows one thing: under a hanging object it is always lower."""

    def predict(self, observation, *, deterministic=True):
        now = observation["achieved_goal"][:, goals.SCENE].reshape(-1, 2, scene.N_FEATURES)
        way = (now[:, OBJECT] - now[:, SUBJECT])[:, CENTER]
        way[:, 2] = -1
        return np.concatenate([np.clip(way * 10, -1, 1), np.zeros_like(way)], axis=1).astype(np.float32), None


def test_a_policy_that_knows_how_is_found_to():
    found = agent.evaluate(Downward(), config_of(("under",)), "sparse", episodes=30)
    assert found["under"].success_rate > 0.9


def test_configurations_name_what_does_not_fit():
    with pytest.raises(ValueError, match='"relation" for'):
        AgentConfig("x", RELATION, native=True, policy="mlp", features="placed")
    with pytest.raises(ValueError, match='"relation" for'):
        AgentConfig("x", policy="mlp", features="relation")
    assert config_of(steps=5_000, seed=4).env_kwargs == {"predicates": list(SEVEN)}


def test_the_commands(tiny, tmp_path):
    run = str(tmp_path / "run")
    invoke = CliRunner().invoke
    done = invoke(agent_app, ["train", "--out", run, "--predicate", "near"])
    assert done.exit_code == 0, done.output
    assert "achieved by the rules" in done.output
    done = invoke(agent_app, ["evaluate", run, "--episodes", "5"])
    assert done.exit_code == 0, done.output
    assert "near: success" in done.output
