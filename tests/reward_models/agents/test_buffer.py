import pickle
from dataclasses import replace

import numpy as np
import pytest

from reward_models.agents.algorithms import make_model
from reward_models.agents.configs import AgentConfig
from reward_models.agents.training import make_envs
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.scene import COLOR, ORIENTATION, SIZE, as_batch, count, present

CONFIG = AgentConfig(
    "buffer", env_kwargs={"n_objects": (2, 5)}, horizon=6, n_envs=2, learning_starts=20, total_steps=240, batch_size=32
)


def filled_model(config=CONFIG, rounds=60):
    model = make_model(config, make_envs(config))
    envs, buffer = model.get_env(), model.replay_buffer
    observation = envs.reset()
    for _ in range(rounds):
        actions = np.stack([envs.action_space.sample() for _ in range(envs.num_envs)])
        new, rewards, dones, infos = envs.step(actions)
        ends = {key: value.copy() for key, value in new.items()}
        for i in np.flatnonzero(dones):
            for key in ends:
                ends[key][i] = infos[i]["terminal_observation"][key]
        buffer.add(observation, ends, actions, rewards, dones, infos)
        observation = new
    return model


@pytest.fixture(scope="module")
def buffer():
    model = filled_model()
    yield model.replay_buffer
    model.get_env().close()


def final_goals(buffer):
    """Relabelled goals of all transitions, and the achieved scene that each of them was made of."""
    rows, envs = np.nonzero(buffer.ep_length > 0)
    last = buffer.ep_start[rows, envs] + buffer.ep_length[rows, envs] - 1
    buffer.goal_selection_strategy = type(buffer.goal_selection_strategy).FINAL
    source = buffer.next_observations["achieved_goal"][last % buffer.buffer_size, envs]
    return buffer._sample_goals(rows, envs), source


def test_goals_are_achieved_by_the_scenes_they_were_made_of(buffer):
    relabelled, source = final_goals(buffer)
    assert goals.distance(source, relabelled).max() < 1e-2
    assert (buffer.env.env_method("compute_reward", source, relabelled, None, indices=[0])[0] == 0).all()


def test_goals_are_transformed_and_reordered(buffer):
    relabelled, source = final_goals(buffer)
    a, g = as_batch(source)[0], as_batch(relabelled)[0]
    assert (np.abs(a[..., COLOR] - g[..., COLOR]).max(axis=(1, 2)) > 0).mean() > 0.5
    scale = np.log(g[..., SIZE].sum(axis=1) / a[..., SIZE].sum(axis=1))
    assert scale.min() < -0.3
    assert scale.max() > 0.3
    assert len(np.unique(scale.round(5))) > 0.9 * len(scale)


def test_goals_are_scaled_and_turned_as_the_environments_are():
    """What is held out of the environment's goals does not come back through hindsight."""
    ranges = {"goal_scale": (2.1, 2.3), "goal_angle": (1.0, 1.5)}
    model = filled_model(replace(CONFIG, env_kwargs={"n_objects": 4, "max_turn": 0, **ranges}), rounds=20)
    relabelled, source = (as_batch(x)[0] for x in final_goals(model.replay_buffer))
    model.get_env().close()
    scales = relabelled[..., SIZE].sum(axis=1) / source[..., SIZE].sum(axis=1)
    angles = (relabelled[..., ORIENTATION].sum(axis=1) - source[..., ORIENTATION].sum(axis=1)) / 4
    for values, (low, high) in zip((scales, angles), ranges.values(), strict=True):
        assert values.min() >= low - 1e-4
        assert values.max() <= high + 1e-4
        assert np.ptp(values) > 0.5 * (high - low)


def test_goals_are_in_the_observation_space_with_padding_last(buffer):
    relabelled, _ = final_goals(buffer)
    space = buffer.observation_space["desired_goal"]
    assert relabelled.dtype == np.float32
    assert all(space.contains(goal) for goal in relabelled)
    scenes = as_batch(relabelled)[0]
    assert set(count(scenes)) == {2, 3, 4, 5}
    assert (present(scenes) == (np.arange(5) < count(scenes)[:, None])).all()


def test_future_goals_come_from_the_rest_of_the_episode(buffer):
    buffer.goal_selection_strategy = type(buffer.goal_selection_strategy).FUTURE
    rows, envs = np.nonzero(buffer.ep_length > 0)
    relabelled = buffer._sample_goals(rows, envs)
    ends = buffer.ep_start[rows, envs] + buffer.ep_length[rows, envs]
    for row, env, end, goal in zip(rows, envs, ends, relabelled, strict=True):
        rest = buffer.next_observations["achieved_goal"][row:end, env]
        assert goals.distance(rest, goal).min() < 1e-2


def test_one_seed_gives_one_stream_and_another_another():
    def goals_of(seed):
        model = filled_model(replace(CONFIG, seed=seed))
        model.get_env().close()
        return model.replay_buffer.sample(32).observations["desired_goal"].numpy()

    first = goals_of(3)
    assert (first == goals_of(3)).all()
    assert (first != goals_of(4)).any()


def test_pickling_keeps_the_stream(buffer):
    copy = pickle.loads(pickle.dumps(buffer))
    rows, envs = np.nonzero(buffer.ep_length > 0)
    buffer.goal_selection_strategy = copy.goal_selection_strategy = type(copy.goal_selection_strategy).FINAL
    assert (copy._sample_goals(rows, envs) == buffer._sample_goals(rows, envs)).all()
