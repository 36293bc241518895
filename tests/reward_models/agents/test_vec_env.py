"""The adapter against DummyVecEnv over monitored single environments, and under stable-baselines3's algorithms."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.wrappers import TimeLimit
from stable_baselines3 import PPO, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

from reward_models.agents.buffer import WorldHerReplayBuffer
from reward_models.agents.configs import DISCRIMINATION, IDENTIFICATION, AgentConfig
from reward_models.agents.training import learning_curve, make_envs, train
from reward_models.agents.vec_env import SpatialSimVecEnv
from reward_models.judges.learned import LearnedReward
from spatialsim_env.core.world import ActionError

LOOSE = {"tolerances": (6.0, 2.0, 1.0), "terminate_on_success": True}  # random actions succeed now and then


def small():
    """Of a policy; stable-baselines3 writes into it."""
    return {"net_arch": [16]}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def native(n_envs: int = 4, env_id: str = DISCRIMINATION, **options) -> SpatialSimVecEnv:
    return SpatialSimVecEnv.make(env_id, n_envs, **{"n_objects": 3, "max_episode_steps": 7, **options})


def one_by_one(n_envs: int = 4, env_id: str = DISCRIMINATION, seed=None, **options) -> DummyVecEnv:
    options = {"n_objects": 3, "max_episode_steps": 7, **options}
    return make_vec_env(env_id, n_envs, seed=seed, env_kwargs=options)


def untimed(infos):
    """Infos without the seconds of their episodes, which they are checked for."""
    out = []
    for info in copy.deepcopy(infos):
        if "episode" in info:
            assert 0 <= info["episode"].pop("t") < 60
        out.append(info)
    return out


def assert_same_steps(ours, theirs, steps: int) -> list:
    """Both play the same actions; all infos of episodes that ended."""
    ours.action_space.seed(0)
    one, other = ours.reset(), theirs.reset()
    np.testing.assert_equal(one, dict(other))
    assert ours.reset_infos == theirs.reset_infos
    ended = []
    for _ in range(steps):
        actions = np.stack([ours.action_space.sample() for _ in range(ours.num_envs)])
        one, other = ours.step(actions), theirs.step(actions)
        np.testing.assert_equal(one[0], dict(other[0]))
        for a, b in zip(one[1:3], other[1:3], strict=True):
            assert a.dtype == b.dtype
            assert np.array_equal(a, b)
        np.testing.assert_equal(untimed(one[3]), untimed(other[3]))
        types = [{name: type(value) for name, value in info.items()} for info in (one[3][0], other[3][0])]
        assert types[0] == types[1]
        assert ours.reset_infos == theirs.reset_infos
        ended += [info for info, done in zip(one[3], one[2], strict=True) if done]
    return ended


@pytest.mark.parametrize("env_id", [DISCRIMINATION, IDENTIFICATION])
@pytest.mark.parametrize(
    "options", [{"reward": "dense", **LOOSE}, {"action_mode": "discrete"}], ids=["dense", "discrete"]
)
def test_it_is_dummy_vec_env_value_for_value(env_id, options):
    """IsaacLab#4369: terminal observations and limits of time, Monitor's statistics, truth and reward apart."""
    ended = assert_same_steps(
        native(env_id=env_id, seed=5, **options), one_by_one(env_id=env_id, seed=5, **options), 40
    )
    assert {info["TimeLimit.truncated"] for info in ended} == ({True, False} if "reward" in options else {True})
    assert all(
        {"terminal_observation", "episode", "is_success", "reward_true", "reward_model"} <= set(i) for i in ended
    )


def test_a_learned_reward_in_the_loop(untrained):
    """Both rewards in the infos (imitation#252)."""
    reward = LearnedReward(untrained("mpgnn"), "dense")
    ours, theirs = native(seed=1, reward=reward), one_by_one(seed=1)
    theirs.env_method("set_reward", reward)
    ended = assert_same_steps(ours, theirs, 16)
    assert all(info["reward_true"] in (0, -1) for info in ended)
    assert all(-1 < info["reward_model"] < 0 for info in ended)
    named = native(seed=1, reward=reward.name)
    assert named.get_attr("reward")[0].name == reward.name


def test_returned_arrays_are_the_callers():
    envs, undisturbed = native(seed=0), native(seed=0)
    envs.reset()
    undisturbed.reset()
    kept = []
    for _ in range(9):
        actions = np.stack([envs.action_space.sample() for _ in range(4)])
        result, same = envs.step(actions), undisturbed.step(actions)
        np.testing.assert_equal(untimed(result[3]), untimed(same[3]))
        np.testing.assert_equal(result[:3], same[:3])
        kept.append((same, copy.deepcopy(same)))
        for array in (*result[0].values(), *result[1:3]):
            array[...] = 0
    for result, before in kept:
        np.testing.assert_equal(result, before)


def test_seeds_are_used_once():
    envs = native(2)
    assert envs.seed(3) == [3, 4]
    first = envs.reset()["desired_goal"]
    assert not np.array_equal(envs.reset()["desired_goal"], first)
    envs.seed(3)
    assert np.array_equal(envs.reset()["desired_goal"], first)
    single = gym.make(DISCRIMINATION, n_objects=3)
    assert np.array_equal(single.reset(seed=4)[0]["desired_goal"], first[1])


# --- the algorithms (SB3#2106, #2180, #950, #704) -------------------------------------------------------------------


def hindsight(algorithm, envs, **options):
    return algorithm(
        "MultiInputPolicy",
        envs,
        learning_starts=60,
        buffer_size=2000,
        batch_size=32,
        policy_kwargs=small(),
        seed=0,
        device="cpu",
        **{"replay_buffer_class": WorldHerReplayBuffer, **options},
    )


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("algorithm", [SAC, TD3])
def test_hindsight(algorithm, n_envs, tmp_path):
    envs = native(n_envs, reward="dense")
    model = hindsight(algorithm, envs).learn(200)
    assert model.num_timesteps == 200
    assert model.replay_buffer.ep_length.max() == 7
    assert len(model.ep_info_buffer) == len(model.ep_success_buffer) == 4 * (50 // 7) if n_envs == 4 else 200 // 7
    model.save(tmp_path / "agent")
    again = algorithm.load(tmp_path / "agent", env=native(n_envs, reward="dense"))
    observation = envs.reset()
    assert np.array_equal(
        again.predict(observation, deterministic=True)[0], model.predict(observation, deterministic=True)[0]
    )


def in_processes(n_envs: int, **options) -> SubprocVecEnv:
    options = {"n_objects": 3, "max_episode_steps": 7, **options}
    return make_vec_env(DISCRIMINATION, n_envs, env_kwargs=options, vec_env_cls=SubprocVecEnv)


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("maker", [one_by_one, in_processes, native])
def test_stable_baselines3s_own_hindsight(maker, n_envs):
    """SB3#950, #704."""
    envs = maker(n_envs, reward="dense")
    model = hindsight(SAC, envs, replay_buffer_class=HerReplayBuffer).learn(100)
    rewards = model.replay_buffer.sample(64).rewards.ravel()
    assert model.num_timesteps == 100
    assert rewards.max() > -1  # a goal that was reached, since it is the scene at a later step
    assert rewards.min() < -1
    envs.close()


def test_hindsight_without_relabelling_needs_no_goals():
    model = SAC("MultiInputPolicy", native(), learning_starts=60, buffer_size=1000, policy_kwargs=small(), device="cpu")
    assert model.learn(120).num_timesteps == 120


@pytest.mark.parametrize("action_mode", ["move_all", "discrete"])
def test_ppo(action_mode):
    envs = native(8, action_mode=action_mode)
    model = PPO("MultiInputPolicy", envs, n_steps=16, batch_size=32, policy_kwargs=small(), seed=0, device="cpu").learn(
        256
    )
    assert model.num_timesteps == 256
    assert {entry["l"] for entry in model.ep_info_buffer} == {7}
    assert len(model.ep_success_buffer) == 32


def test_training_is_the_same_as_with_dummy_vec_env():
    weights = []
    for maker in (native, one_by_one):
        model = hindsight(SAC, maker(2, reward="dense", seed=0), gradient_steps=2).learn(120)
        weights.append(torch.nn.utils.parameters_to_vector(model.policy.parameters()))
    assert torch.equal(*weights)


def test_a_learned_reward_relabels(untrained):
    model = hindsight(SAC, native(reward=LearnedReward(untrained("matching")))).learn(120)
    rewards = model.replay_buffer.sample(64).rewards
    assert set(rewards.ravel().tolist()) <= {0.0, -1.0}


def test_a_model_of_one_input_refuses_the_goals_of_others(untrained):
    reward = LearnedReward(untrained("mpgnn_single"))
    envs = native(2, IDENTIFICATION, n_objects=5, reward=reward, seed=0)
    goals = [envs.reset()[key] for key in ("achieved_goal", "desired_goal")]
    assert envs.env_method("compute_reward", *goals, [{}] * 2, indices=[0])[0].shape == (2,)
    with pytest.raises(ValueError, match="knows one reference scene"):
        hindsight(SAC, envs).learn(120)


def test_evaluation_reads_the_statistics_without_a_warning():
    envs = native(3, reward="dense")
    model = PPO("MultiInputPolicy", envs, n_steps=16, batch_size=16, policy_kwargs=small(), device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        returns, lengths = evaluate_policy(model, envs, n_eval_episodes=6, return_episode_rewards=True)
    assert lengths == [7] * 6
    assert all(-20 * 7 <= value <= 0 for value in returns)


def test_normalised_observations():
    envs = VecNormalize(native(2), norm_obs_keys=["observation"])
    model = PPO("MultiInputPolicy", envs, n_steps=16, batch_size=16, policy_kwargs=small(), device="cpu").learn(32)
    assert model.num_timesteps == 32


CONFIG = AgentConfig(
    "small",
    env_kwargs={"n_objects": 3, "max_turn": 0},
    horizon=10,
    total_steps=120,
    learning_starts=50,
    batch_size=32,
    net=(16,),
    native=True,
    episodes=2,
)


def test_a_configuration_asks_for_it(tmp_path):
    """The agent is the same bit for bit, and so is its learning curve."""
    agents = [
        train(replace(CONFIG, native=choice), "dense", tmp_path / str(choice), progress=False)
        for choice in (True, False)
    ]
    assert isinstance(agents[0].model.get_env(), SpatialSimVecEnv)
    assert torch.equal(*(torch.nn.utils.parameters_to_vector(agent.model.policy.parameters()) for agent in agents))
    curves = [
        {key: value for key, value in learning_curve(tmp_path / str(choice))[-1].items() if "time" not in key}
        for choice in (True, False)
    ]
    assert curves[0] == curves[1]
    for agent in agents:
        agent.close()


def test_a_configuration_with_a_live_reward(untrained):
    reward = LearnedReward(untrained("mpgnn"))
    envs = make_envs(CONFIG, reward, n_envs=3)
    assert envs.num_envs == 3
    assert envs.get_attr("reward") == [reward] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"native": 1}, "native is 1; accepted is a bool"), ({"subprocess": True}, "accepted is one of them")],
)
def test_configurations_that_contradict_themselves(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **changes)


# --- what stable-baselines3 asks of a VecEnv -----------------------------------------------------------------------


def test_attributes_and_methods():
    envs, theirs = native(3, seed=0), one_by_one(3, seed=0)
    envs.reset()
    theirs.reset()
    for name in ("action_space", "observation_space", "np_random_seed"):
        assert envs.get_attr(name) == theirs.get_attr(name), name
    assert envs.observation_space == theirs.observation_space
    assert envs.has_attr("world")
    assert not envs.has_attr("nothing")
    for ours, alone in zip(envs.get_attr("scenes", [0, 2]), theirs.get_attr("scenes", [0, 2]), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(ours, alone, strict=True))
    observations = envs.step(np.ones((3, 9), np.float32))[0]
    goals = observations["achieved_goal"], observations["desired_goal"]
    values = envs.env_method("compute_reward", *goals, [{}] * 3, indices=[0])
    assert len(values) == 1
    assert np.array_equal(values[0], theirs.env_method("compute_reward", *goals, [{}] * 3, indices=[0])[0])
    assert envs.env_is_wrapped(Monitor) == [True] * 3
    assert envs.env_is_wrapped(TimeLimit, 1) == [False]
    assert envs.env_method("set_reward", "dense") == [None] * 3
    assert envs.get_attr("reward", 1)[0].name == "dense"
    envs.set_attr("terminate_on_success", True)
    assert envs.get_attr("terminate_on_success") == [True] * 3


def test_what_the_copies_share_is_not_set_for_some():
    envs = native(3)
    with pytest.raises(ValueError, match="reward is set for copies"):
        envs.env_method("set_reward", "dense", indices=[0, 1])
    with pytest.raises(ValueError, match="'terminate_on_success' is set for copies 1"):
        envs.set_attr("terminate_on_success", True, indices=1)
    with pytest.raises(AttributeError, match="'reset' is not one of all copies; those are compute_reward, set_reward"):
        envs.env_method("reset")


def test_pictures_are_tiled():
    pytest.importorskip("pygame")
    envs, theirs = native(2, seed=0, render_mode="rgb_array"), one_by_one(2, seed=0, render_mode="rgb_array")
    envs.reset()
    theirs.reset()
    assert np.array_equal(envs.render(), theirs.render())
    assert envs.metadata["render_fps"] == 15
    assert native(2).render_mode is None


def test_bad_input():
    with pytest.raises(TypeError, match="SyncVectorEnv; accepted is a ManyWorlds"):
        SpatialSimVecEnv(gym.make_vec(DISCRIMINATION, num_envs=2, vectorization_mode="sync"))
    with pytest.raises(ValueError, match=r"NEXT_STEP; accepted is .*SAME_STEP"):
        SpatialSimVecEnv(gym.make_vec(DISCRIMINATION, num_envs=2))
    with pytest.raises(TypeError, match="without"):
        native(reward=len)
    envs = native(2, seed=0)
    for options in ({"goal": 1}, {"reset_mask": np.array([True, False])}):
        envs.set_options(options)
        with pytest.raises(ValueError, match=f"'{next(iter(options))}' is unknown; there are none"):
            envs.reset()
    envs.reset()
    before = envs.envs.scenes
    with pytest.raises(ActionError):
        envs.step(np.full((2, 9), np.nan))
    assert all(np.array_equal(a, b) for a, b in zip(before, envs.envs.scenes, strict=True))
    assert envs.step(np.zeros((2, 9)))[3][0].keys() >= {"TimeLimit.truncated"}
    envs.close()
    envs.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.reset()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.step(np.zeros((2, 9)))
