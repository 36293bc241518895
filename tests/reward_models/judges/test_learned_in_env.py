"""Every learned reward inside every environment: checkers, processes, copies, memory, hindsight."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import SAC, HerReplayBuffer
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

import spatialsim_env
from reward_models import models
from reward_models.models import checkpoint
from reward_models.training.config import TrainingConfig
from spatialsim_env.arrangements.scene import N_FEATURES
from spatialsim_env.testing import assert_environment

DISCRIM, IDENT = (f"spatialsim_env:{env_id}" for env_id in spatialsim_env.ENV_IDS)
KINDS = ("sparse", "dense")
OBJECT_MODELS = {kind: model for kind, model in models.REGISTRY.items() if not model.sees_pictures}  # test_resnet.py
ONE_INPUT = [kind for kind, model in OBJECT_MODELS.items() if not model.two_inputs]
REWARDS = [(env_id, kind) for kind, model in OBJECT_MODELS.items() for env_id in (DISCRIM, IDENT)
           if model.two_inputs or env_id == IDENT]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("env_id", "model"), REWARDS)
def test_both_checkers_fifty_times(env_id, model, kind, untrained):
    env = gym.make(env_id, reward=f"{untrained(model)}:{kind}")
    assert_environment(env)
    for _ in range(50):
        gym.utils.env_checker.check_env(env.unwrapped, skip_render_check=True)
        sb3_check_env(env.unwrapped)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("env_id", "model"), REWARDS)
def test_compute_reward_takes_every_form(env_id, model, kind, untrained):
    """SB3#1337, #1959, #854, #1015: a row's value in every form and every batch is the same bits."""
    env = gym.make(env_id, reward=f"{untrained(model)}:{kind}").unwrapped
    pairs = [env.reset(seed=seed)[0] for seed in range(204)]
    achieved, desired = (np.stack([pair[key] for pair in pairs]) for key in ("achieved_goal", "desired_goal"))
    expected = env.compute_reward(achieved, desired, np.array([{}] * 204))
    assert expected.shape == (204,)
    assert len(np.unique(expected)) > 1 or kind == "sparse"
    for size in (1, 2):
        assert np.array_equal(env.compute_reward(achieved[:size], desired[:size], [{}] * size), expected[:size])
    for form in forms(achieved, desired):
        assert np.array_equal(env.compute_reward(*form, None), expected)
        for row in range(5):
            assert env.compute_reward(*(part[row] for part in form), {}) == expected[row]


def forms(achieved, desired):
    """Flat float32, flat float64 and scenes: what ``compute_reward`` takes of batches (B, 10 n)."""
    yield achieved, desired
    yield achieved.astype(np.float64), desired.astype(np.float64)
    yield tuple(goals.reshape(len(goals), -1, N_FEATURES) for goals in (achieved, desired))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", ONE_INPUT)
def test_a_model_of_one_input_refuses_relabelled_goals_in_every_form(model, kind, untrained):
    """SB3#1337, #1959, #854, #1015; one foreign goal in a batch is enough."""
    env = gym.make(IDENT, reward=f"{untrained(model)}:{kind}").unwrapped
    pairs = [env.reset(seed=seed)[0] for seed in range(204)]
    achieved, desired = (np.stack([pair[key] for pair in pairs]) for key in ("achieved_goal", "desired_goal"))
    for relabelled in (achieved, np.concatenate([desired[:-1], achieved[-1:]])):
        for size in (1, 2, 204):
            for form in forms(achieved[-size:], relabelled[-size:]):
                for info in ([{}] * size, np.array([{}] * size), {}, None):
                    with pytest.raises(ValueError, match="use a two-input model"):
                        env.compute_reward(*form, info)
    for form in forms(achieved, achieved):
        with pytest.raises(ValueError, match="use a two-input model"):
            env.compute_reward(form[0][0], form[1][0], {})


@pytest.mark.parametrize("model", ONE_INPUT)
def test_a_model_of_one_input_refuses_new_goals(model, untrained):
    """HighwayEnv#500, panda-gym#53: where every episode has another goal, its first reset says so."""
    env = gym.make(DISCRIM, reward=str(untrained(model)), n_objects=5)
    with pytest.raises(ValueError, match="use a two-input model"):
        env.reset(seed=0)


@pytest.mark.parametrize(("env_id", "model"), [(DISCRIM, "mpgnn"), (IDENT, "mpgnn"), (IDENT, "mpgnn_single")])
def test_compute_reward_is_pure(env_id, model, untrained):
    """hill-a#794: the same value, or refusal, for another episode's goals and after a reset."""

    def answer(*pair):
        try:
            return env.compute_reward(*pair, {})
        except ValueError as error:
            return str(error)

    env = gym.make(env_id, reward=f"{untrained(model)}:dense", n_objects=5).unwrapped
    first, _ = env.reset(seed=0)
    pairs = [(first["achieved_goal"], first[goal]) for goal in ("desired_goal", "achieved_goal")]
    before = [answer(*pair) for pair in pairs]
    env.step(env.action_space.sample())
    env.reset(seed=1)
    env.step(env.action_space.sample())
    assert [answer(*pair) for pair in pairs] == before
    assert [type(value) for value in before] == [float, float if models.REGISTRY[model].two_inputs else str]


def test_the_truth_stays_beside_what_the_network_says(untrained):
    env = gym.make(DISCRIM, reward=f"{untrained('mpgnn')}:dense", n_objects=3)
    env.reset(seed=0)
    for _ in range(20):
        observation, reward, _, _, info = env.step(env.action_space.sample())
        goals = observation["achieved_goal"], observation["desired_goal"]
        assert reward == info["reward_model"] == env.unwrapped.compute_reward(*goals, info)
        assert info["is_success"] == spatialsim_env.arrangements.goals.achieved(*goals)
        assert info["is_success_model"] == (reward >= -0.5)


def test_spec_round_trips_through_json(untrained):
    """humenv#13."""
    env = gym.make(DISCRIM, reward=str(untrained("matching")), n_objects=3)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    first, second = (world.reset(seed=1)[0]["achieved_goal"].tobytes() for world in (env, again))
    assert first == second
    action = env.action_space.sample()
    assert env.step(action)[1] == again.step(action)[1]


def test_a_spec_of_many_round_trips_through_json(untrained):
    """humenv#13."""
    envs = gym.make_vec(DISCRIM, num_envs=2, reward=f"{untrained('matching')}:dense", n_objects=3)
    again = gym.make_vec(gym.envs.registration.EnvSpec.from_json(envs.spec.to_json()))
    assert again.reward.name == envs.reward.name
    for world in (envs, again):
        world.reset(seed=1)
    actions = envs.action_space.sample()
    assert np.array_equal(envs.step(actions)[1], again.step(actions)[1])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_in_mid_episode_have_equal_futures(duplicate, untrained):
    env = gym.make(DISCRIM, reward=f"{untrained('mpgnn')}:dense", n_objects=4).unwrapped
    env.reset(seed=0)
    env.step(env.action_space.sample())
    other = duplicate(env)
    for _ in range(5):
        action = env.action_space.sample()
        (_, value, *_), (_, other_value, *_) = env.step(action), other.step(action)
        assert value == other_value


def _loaded_after(path: str) -> tuple[bool, bool, float, int, set[str]]:
    """In a fresh process: is the model there before the first use, and after it; the reward; torch's threads; where."""
    env = gym.make(DISCRIM, reward=path, n_objects=3)
    reward = env.unwrapped.reward
    before = reward._model is not None
    torch.set_num_threads(2)
    env.reset(seed=0)
    value = env.step(np.zeros(9, np.float32))[1]
    places = {str(weights.device) for weights in reward.model.module.parameters()}
    return before, reward._model is not None, value, torch.get_num_threads(), places


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_the_model_is_loaded_lazily_in_each_process(method, untrained):
    """DI-engine#816; evaluation takes one thread and gives the count back (godot_rl_agents#266)."""
    path = f"{untrained('mpgnn')}:dense"
    threads = torch.get_num_threads()
    with multiprocessing.get_context(method).Pool(1) as pool:
        [found] = pool.map(_loaded_after, [path])
    here = _loaded_after(path)
    torch.set_num_threads(threads)
    assert found == here
    assert found[:2] == (False, True)
    assert found[3:] == (2, {"cpu"})


def test_subprocess_environments(untrained):
    envs = make_vec_env(DISCRIM, 2, seed=0, vec_env_cls=SubprocVecEnv,
                        env_kwargs={"reward": str(untrained("matching")), "n_objects": 3})  # fmt: skip
    observation = envs.reset()
    found = envs.env_method("compute_reward", observation["achieved_goal"], observation["desired_goal"], [{}, {}])
    assert np.array_equal(found[0], found[1])
    envs.close()


def hindsight(env_id: str, path: str) -> SAC:
    env = gym.make(env_id, reward=path, n_objects=3, max_episode_steps=10)
    return SAC("MultiInputPolicy", env, replay_buffer_class=HerReplayBuffer, learning_starts=20, buffer_size=200,
               batch_size=8, policy_kwargs={"net_arch": [8]}, seed=0, device="cpu")  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("env_id", [DISCRIM, IDENT])
@pytest.mark.parametrize("model", [kind for kind, model in OBJECT_MODELS.items() if model.two_inputs])
def test_stable_baselines3s_own_hindsight(env_id, model, kind, untrained):
    """SB3#950, #704: models of two inputs judge relabelled goals."""
    agent = hindsight(env_id, f"{untrained(model)}:{kind}").learn(40)
    assert agent.num_timesteps == 40


@pytest.mark.parametrize("model", ONE_INPUT)
def test_hindsight_raises_where_a_model_of_one_input_is_the_reward(model, tmp_path):
    """HighwayEnv#500, panda-gym#53."""
    task = TrainingConfig.identification(3).describe_task()
    path = checkpoint.save(models.create(model), tmp_path / "single", task).parent
    with pytest.raises(ValueError, match="two-input model"):
        hindsight(IDENT, str(path)).learn(40)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory of the process from /proc")
def test_memory_is_flat_over_twenty_thousand_steps(untrained):
    """ray#6962."""

    def held() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    envs = gym.make_vec(DISCRIM, num_envs=10, reward=str(untrained("matching")), n_objects=3)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    for call in range(20_000 // envs.num_envs):
        envs.step(envs.action_space.sample())
        if call == 200:
            before = held()
    grown = held() - before
    assert grown < 4e6, f"{grown} bytes more after 18,000 steps"  # a kilobyte leaked a step would be 18,000,000


def test_a_missing_or_foreign_model_is_an_error_when_the_environment_is_made(tmp_path):
    (tmp_path / "model.json").write_text("{}")
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(ValueError, match=r"model\.json"):
            gym.make(DISCRIM, reward=str(path))


def test_no_warning_anywhere(untrained):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make(DISCRIM, reward=str(untrained("matching")), n_objects=2)
        for seed in range(20):
            env.reset(seed=seed)
            env.step(env.action_space.sample())
