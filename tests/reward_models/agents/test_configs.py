import json
import math
from dataclasses import replace

import gymnasium as gym
import pytest

from reward_models.agents.algorithms import make_model
from reward_models.agents.configs import CONFIGS, FROM_ONE, AgentConfig, buffer_bytes, by_name
from reward_models.agents.training import make_envs
from spatialsim_env.arrangements.truth import SceneTruth
from spatialsim_env.core.rewards import Dense

N3 = by_name("discrim_n3")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy": "lstm"}, "policy is 'lstm'; accepted is objects or mlp"),
        ({"features": "pixels"}, "features is 'pixels'; accepted is placed, deep_set, message_passing"),
        ({"net": (64, 64)}, r'policy is "objects", net \(64, 64\) .* accepted are one width and "placed"'),
        ({"features": "deep_set"}, 'accepted are one width and "placed"'),
        ({"learning_starts": 200}, r"learning_starts is 200; .* horizon \* n_envs = 50 \* 4 = 200"),
        ({"buffer_size": 300}, "buffer_size is 300; accepted is at least learning_starts = 400"),
        ({"env_id": "SpatialSim-Discrim-v0"}, "env_id is 'SpatialSim-Discrim-v0'; accepted is module:id"),
        ({"algorithm": "dqn"}, "algorithm is 'dqn'; accepted is sac or ppo"),
        ({"total_steps": 400}, "total_steps is 400; accepted is more than learning_starts = 400"),
        ({"name": ""}, "name is ''"),
        ({"env_id": None}, "env_id is None; accepted is module:id"),
        ({"env_kwargs": 3}, "env_kwargs is 3; accepted is keywords of gym.make as a mapping"),
        ({"subprocess": 1}, "subprocess is 1; accepted is a bool"),
        ({"learning_starts": 400.0}, "learning_starts is 400.0; accepted is an int from 0"),
        ({"seed": -1}, "seed is -1; accepted is an int from 0 to 2147483647"),
        ({"seed": 2**31}, "seed is 2147483648"),
        ({"seed": True}, "seed is True"),
        ({"net": (64, 0)}, r"net is \(64, 0\); accepted is a tuple of widths, each an int from 1"),
        ({"net": [64]}, r"net is \[64\]"),
        ({"gamma": 1.0}, "gamma is 1.0"),
        ({"gamma": "0.9"}, "gamma is '0.9'"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; accepted is a positive number"),
        ({"learning_rate": math.inf}, "learning_rate is inf"),
        ({"learning_rate": math.nan}, "learning_rate is nan"),
        ({"tau": 0}, "tau is 0; accepted is a share above 0, up to 1"),
        ({"tau": 1.1}, "tau is 1.1"),
        ({"entropy": -0.1}, "entropy is -0.1; accepted is a number from 0"),
        ({"env_kwargs": {"n_objects": 3, "reward": "dense"}}, r"'reward', which train\(config, reward\) sets"),
        ({"env_kwargs": {"n_objects": 3, "max_episode_steps": 9}}, "'max_episode_steps', which horizon sets"),
        ({"env_kwargs": {"n_objects": {3}}}, "accepted are values that JSON can hold"),
        ({"env_kwargs": {"action_mode": "discrete"}}, '"ppo" is the one for discrete actions'),
        ({"env_kwargs": {"terminate_on_success": True}}, r'hindsight relabels .*: leave it out, or take "ppo"'),
        ({"algorithm": "ppo", "rollout": 100}, r"batch_size is 256; accepted is a divisor .* = 400"),
        ({"algorithm": "ppo", "batch_size": 1}, "batch_size is 1; accepted is a divisor above 1"),
    ],
)
def test_bad_values_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(N3, **changes)


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "2"])
@pytest.mark.parametrize("name", FROM_ONE)
def test_counts_are_ints_from_one(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value!r}; accepted is an int from 1"):
        replace(N3, **{name: value})


def test_the_bounds_themselves_are_accepted():
    replace(N3, tau=1, entropy=0, seed=2**31 - 1, net=(1,), total_steps=401)
    replace(N3, algorithm="ppo", total_steps=1, env_kwargs={"terminate_on_success": True})
    replace(N3, env_kwargs={"terminate_on_success": False})


def test_an_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match="'nope' is unknown; there are discrim_n3, discrim_n5"):
        by_name("nope")


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_named_configurations_hold_what_they_promise(config):
    assert by_name(config.name) is config
    assert config.algorithm == "ppo" or config.learning_starts > config.horizon * config.n_envs
    assert config.checkpoint_every > 0
    env = config.make_env()
    assert env.spec.max_episode_steps == config.horizon
    assert isinstance(env.action_space, gym.spaces.Box) == (config.algorithm == "sac")
    env.close()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_json_gives_a_configuration_back(config):
    again = AgentConfig.from_json(json.loads(json.dumps(config.as_json())))
    assert again.as_json() == config.as_json()
    assert again.net == config.net


def test_json_with_an_unknown_field_is_refused():
    with pytest.raises(ValueError, match="no field colour"):
        AgentConfig.from_json({**N3.as_json(), "colour": 1})


@pytest.mark.parametrize(("values", "message"), [({}, "name is None"), ({"name": "x", "net": 64}, "net is 64")])
def test_json_that_is_no_configuration_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        AgentConfig.from_json(values)


def test_json_without_a_field_takes_its_default():
    assert AgentConfig.from_json({"name": "x", "seed": 3}) == AgentConfig("x", seed=3)


def test_a_live_reward_goes_in_beside_the_spec():
    reward = Dense(SceneTruth())
    env = N3.make_env(reward)
    assert env.get_wrapper_attr("reward") is reward
    assert "reward" not in env.spec.kwargs


@pytest.mark.parametrize("n_envs", [1, 3])
def test_buffer_bytes_are_those_of_the_buffer(n_envs):
    config = replace(N3, n_envs=n_envs, total_steps=500, buffer_size=1000)
    model = make_model(config, make_envs(config))
    buffer = model.replay_buffer
    arrays = [*buffer.observations.values(), *buffer.next_observations.values(), buffer.actions, buffer.rewards,
              buffer.dones, buffer.timeouts, buffer.ep_start, buffer.ep_length, buffer.infos]  # fmt: skip
    empty_dictionaries = 64 * buffer.infos.size
    assert buffer_bytes(config) == sum(array.nbytes for array in arrays) + empty_dictionaries
    assert config.capacity == buffer.buffer_size * n_envs


def test_the_buffer_reserves_no_more_than_the_training_fills():
    assert replace(N3, total_steps=1001).capacity == 1004
    assert replace(N3, total_steps=1_000_000).capacity == 100_000
    ppo = replace(N3, algorithm="ppo")
    assert ppo.capacity == buffer_bytes(ppo) == 0
