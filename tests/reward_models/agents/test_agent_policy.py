"""A trained agent as a policy of rollouts, and the expert of rollouts as the policy of an agent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reward_models.agents.agent_policy import AgentPolicy, observe, world_of
from reward_models.agents.configs import DISCRIMINATION, IDENTIFICATION, AgentConfig
from reward_models.agents.policies import ExpertPolicy
from reward_models.agents.training import train
from spatialsim_env.arrangements.datasets import shards
from spatialsim_env.arrangements.datasets.rollouts import Rollouts, RolloutWorld
from spatialsim_env.arrangements.dynamics import MODES

CONFIG = AgentConfig(
    "small",
    IDENTIFICATION,
    {"n_objects": 3, "max_turn": 0},
    horizon=10,
    algorithm="ppo",
    total_steps=64,
    n_envs=2,
    rollout=32,
    batch_size=32,
    net=(8,),
    episodes=2,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("agents") / "small"
    train(CONFIG, "sparse", out, progress=False).close()
    return out


def test_it_acts_as_the_agent_does(folder):
    policy = AgentPolicy(folder)
    world = policy.world
    assert (world.env_id, world.horizon, world.world.dynamics.max_turn) == (IDENTIFICATION, 10, 0)
    episodes, _ = Rollouts(world, (policy,), per_shard=5).shard("train", 0)
    for step in range(10):
        scenes = episodes.achieved[step].reshape(5, -1)
        goals = episodes.desired.reshape(5, -1)
        observation = {"observation": scenes, "achieved_goal": scenes, "desired_goal": goals}
        assert np.array_equal(episodes.actions[step], policy.agent.predict(observation)[0])


def test_its_name_is_that_of_its_weights(folder, tmp_path):
    policy = AgentPolicy(folder)
    assert policy.name.startswith("small@")
    Rollouts(policy.world, (policy,), per_shard=4).write(tmp_path, "train", 4)
    Rollouts(policy.world, (AgentPolicy(folder),), per_shard=4).write(tmp_path, "train", 4)  # the same one
    assert set(shards.load_columns(tmp_path / "train")["policy"]) == {0}


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n_objects": 4, "max_turn": 0}, "sees"), ({"n_objects": 3}, "gives actions of")],
)
def test_other_worlds_are_refused(folder, options, message):
    with pytest.raises(ValueError, match=rf"the agent small@[0-9a-f]+ {message} "):
        AgentPolicy(folder).check(RolloutWorld(options))


def test_no_agent(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"agent\.json does not exist"):
        AgentPolicy(tmp_path)


@pytest.mark.parametrize("action_mode", MODES)
def test_the_expert_acts_as_in_rollouts(action_mode):
    config = replace(CONFIG, env_id=DISCRIMINATION, env_kwargs={"n_objects": (2, 4), "action_mode": action_mode})
    world = world_of(config)
    episodes, _ = Rollouts(world, (world.policy("expert"),), per_shard=5).shard("train", 0)
    policy = ExpertPolicy(config.make_env())
    for scenes, actions in zip(episodes.achieved, episodes.actions, strict=False):
        given, state = policy.predict(observe(scenes, episodes.desired), deterministic=True)
        assert state is None
        assert np.array_equal(given, actions)
