"""The native vector environment against SyncVectorEnv over the single one, and against gymnasium's conventions."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import spatialsim_env
from spatialsim_env.arrangements.env import DiscriminationVectorEnv
from spatialsim_env.core import rewards
from spatialsim_env.core.many import ManyWorlds
from spatialsim_env.core.screen import FRAME, tile
from spatialsim_env.core.world import ActionError
from spatialsim_env.testing import global_random_state

DISCRIM, IDENT = (f"spatialsim_env:{env_id}" for env_id in spatialsim_env.ENV_IDS)
NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode
LOOSE = {"tolerances": (6.0, 2.0, 1.0), "terminate_on_success": True}  # random actions succeed now and then


def native(env_id: str = DISCRIM, num_envs: int = 4, **options):
    envs = gym.make_vec(env_id, num_envs=num_envs, **{"n_objects": 3, **options})
    assert isinstance(envs, ManyWorlds)
    return envs


def in_turn(env_id: str = DISCRIM, num_envs: int = 4, autoreset_mode=NEXT_STEP, **options):
    """The same copies, single environments stepped one after the other."""
    vector = {"vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": autoreset_mode}}
    return gym.make_vec(env_id, num_envs=num_envs, **vector, **{"n_objects": 3, **options})


def assert_equal(one, other, where: str = "") -> None:
    assert type(one) is type(other), f"{where}: {type(one)} and {type(other)}"
    if isinstance(one, dict):
        assert set(one) == set(other), where
        for key in one:
            assert_equal(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, tuple):
        for index, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_equal(a, b, f"{where}[{index}]")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, f"{where}: {one.dtype} and {other.dtype}"
        assert one.shape == other.shape, where
        if one.dtype == object:
            for row, (a, b) in enumerate(zip(one, other, strict=True)):
                assert_equal(a, b, f"{where}[{row}]")
        else:
            assert np.array_equal(one, other), where
    else:
        assert one == other, where


def play_both(ours, theirs, steps: int, seed: int = 0):
    """Step both with the same actions, resetting by mask where that is the user's part; what ended and how."""
    ours.action_space.seed(seed)
    assert_equal(ours.reset(seed=seed), theirs.reset(seed=seed), "reset")
    terminations, truncations = [], []
    for step in range(steps):
        actions = ours.action_space.sample()
        one, other = ours.step(actions), theirs.step(actions)
        assert_equal(one, other, f"step {step}")
        terminations.append(one[2])
        truncations.append(one[3])
        ended = one[2] | one[3]
        if ours.metadata["autoreset_mode"] is DISABLED and ended.any():
            options = [{"reset_mask": ended.copy()} for _ in range(2)]
            assert_equal(ours.reset(options=options[0]), theirs.reset(options=options[1]), f"reset at {step}")
    return np.array(terminations), np.array(truncations)


# --- parity with SyncVectorEnv (cleanrl#499, rl#2477) -------------------------------------------------------------


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("env_id", [DISCRIM, IDENT])
def test_parity_with_episodes_that_end_at_different_steps(env_id, mode):
    options = {"max_episode_steps": 9, "reward": "dense", **LOOSE}
    ours = native(env_id, 6, autoreset_mode=mode, **options)
    terminated, truncated = play_both(ours, in_turn(env_id, 6, mode, **options), 60)
    assert terminated.any()
    assert truncated.any()
    assert len({tuple(np.flatnonzero(column)) for column in (terminated | truncated).T}) > 1


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(
    "options",
    [
        {"n_objects": (3, 6)},
        {"action_mode": "pick_place"},
        {"action_mode": "discrete", "max_turn": 0},
        {"criterion": "positions", "tolerances": (2.0, 1.0, 1.0), "terminate_on_success": True},
        {"orientation": "visual", "start": "mixture", "reward": "dense"},
        {"goal_scale": (2.1, 2.3), "goal_angle": (1.0, 1.5)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_parity_under_options(options, mode):
    options = {"max_episode_steps": 5, **options}
    play_both(native(autoreset_mode=mode, **options), in_turn(autoreset_mode=mode, **options), 14, seed=3)


def test_parity_with_interchangeable_objects():
    """Where appearance leaves several matchings, each step looks for the best one."""
    options = {"n_objects": 30, "start": "displaced"}
    ours = native(num_envs=16, **options)
    play_both(ours, in_turn(num_envs=16, **options), 6)
    assert ours._now.interchangeable.any()
    assert not ours._now.interchangeable.all()


def test_parity_of_pictures():
    pytest.importorskip("pygame")
    options = {"observation": "pixels", "max_episode_steps": 3}
    play_both(native(num_envs=2, **options), in_turn(num_envs=2, **options), 5)


class Near:
    """A reward of one's own: how near the first object is to the middle of the arena."""

    name, success_threshold = "near", -0.3

    def __call__(self, achieved, desired):
        return -np.abs(achieved[:, 0, 7:9] - 10).max(axis=-1).astype(np.float64) / 10


@pytest.mark.parametrize("mode", AutoresetMode)
def test_parity_with_a_reward_of_ones_own(mode):
    options = {"max_episode_steps": 4, "autoreset_mode": mode}
    ours, theirs = native(**options), in_turn(**options)
    ours.set_reward(Near())
    theirs.call("set_reward", Near())
    play_both(ours, theirs, 10)


# --- seeds --------------------------------------------------------------------------------------------------------


def test_each_copy_is_the_single_environment_under_its_seed():
    """Over several episodes, after others, whatever its neighbours do."""
    envs = native(num_envs=3, n_objects=(3, 5), max_episode_steps=4, autoreset_mode=SAME_STEP)
    envs.reset(seed=99)
    envs.step(envs.action_space.sample())
    state = global_random_state()
    observations, _ = envs.reset(seed=[11, None, 5])
    assert envs.np_random_seed == (11, 100, 5)
    for row, seed in ((0, 11), (2, 5)):
        single = gym.make(DISCRIM, n_objects=(3, 5), max_episode_steps=4)
        alone, _ = single.reset(seed=seed)
        assert all(np.array_equal(alone[key], observations[key][row]) for key in alone)
    envs.reset(seed=11)
    single = gym.make(DISCRIM, n_objects=(3, 5), max_episode_steps=4)
    single.reset(seed=12)
    for _ in range(13):
        actions = envs.action_space.sample()
        observations, reward, _, truncated, _ = envs.step(actions)
        alone, its_reward, _, its_end, _ = single.step(actions[1])
        if its_end:
            alone, _ = single.reset()
        assert (its_reward, its_end) == (reward[1], truncated[1])
        assert all(np.array_equal(alone[key], observations[key][1]) for key in alone)
    assert state == global_random_state()


def test_without_seeds_copies_and_resets_differ():
    """ViZDoom#695."""
    envs = native(num_envs=3)
    goals = [goal.tobytes() for _ in range(2) for goal in envs.reset()[0]["desired_goal"]]
    assert len(set(goals)) == 6
    assert len(set(envs.np_random_seed)) == 3
    assert all(isinstance(stream, np.random.Generator) for stream in envs.np_random)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_mask_resets_some_and_leaves_the_others(mode):
    envs, theirs = native(autoreset_mode=mode, max_episode_steps=3), in_turn(autoreset_mode=mode, max_episode_steps=3)
    for each in (envs, theirs):
        each.reset(seed=0)
    actions = np.ones((4, 9), np.float32)
    for _ in range(3):
        envs.step(actions)
        theirs.step(actions)
    mask = np.array([True, False, True, False])
    options = {"reset_mask": mask}
    assert_equal(envs.reset(seed=7, options=options), theirs.reset(seed=7, options=dict(options)))
    assert list(options) == ["reset_mask"]  # a wrapper outside reads it too
    assert envs.np_random_seed == (7, 1, 9, 3)
    if mode is not DISABLED:
        assert_equal(envs.step(actions), theirs.step(actions))


# --- gymnasium's conventions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("env_id", [DISCRIM, IDENT])
def test_attributes_and_spaces(env_id, mode):
    envs, single = native(env_id, 5, autoreset_mode=mode.value), gym.make(env_id, n_objects=3)
    assert envs.metadata["autoreset_mode"] is mode
    assert type(envs).metadata["autoreset_mode"] is NEXT_STEP
    assert envs.num_envs == 5
    assert envs.single_observation_space == single.observation_space
    assert envs.single_action_space == single.action_space
    theirs = in_turn(env_id, 5)
    assert envs.observation_space == theirs.observation_space
    assert envs.action_space == theirs.action_space
    assert envs.unwrapped is envs
    for observations in (envs.reset(seed=0)[0], envs.step(envs.action_space.sample())[0]):
        assert envs.observation_space.contains(observations)


def test_it_is_what_make_vec_makes_and_goes_through_a_spec():
    envs = native(num_envs=3, tolerances=(1.0, 0.5, 0.2), max_episode_steps=7, autoreset_mode="SameStep")
    spec = gym.envs.registration.EnvSpec.from_json(envs.spec.to_json())
    again = gym.make_vec(spec)
    assert type(again) is type(envs)
    assert again.num_envs == 3
    assert again.autoreset_mode is SAME_STEP
    assert_equal(again.reset(seed=5), envs.reset(seed=5))
    assert str(envs) == "DiscriminationVectorEnv(SpatialSim-Discrim-v0, num_envs=3)"


@pytest.mark.parametrize(
    ("given", "steps"), [({}, 50), ({"max_episode_steps": 3}, 3), ({"max_episode_steps": -1}, None)]
)
def test_the_horizon_is_make_vecs(given, steps):
    """Gymnasium#952, #983."""
    envs = native(num_envs=2, render_mode="rgb_array", **given)
    envs.reset(seed=0)
    actions = np.zeros((2, 9), np.float32)
    ends = [bool(envs.step(actions)[3].all()) for _ in range(60)]
    assert ends.index(True) + 1 == steps if steps else not any(ends)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_gymnasiums_statistics_of_episodes(mode):
    envs = gym.wrappers.vector.RecordEpisodeStatistics(native(autoreset_mode=mode, max_episode_steps=3))
    envs.reset(seed=0)
    for _ in range(3):
        *_, infos = envs.step(np.zeros((4, 9), np.float32))
    assert infos["_episode"].all()
    assert infos["episode"]["l"].tolist() == [3] * 4
    assert infos["episode"]["r"].tolist() == [-3.0] * 4


def test_final_observations_belong_to_the_episode_that_ended():
    """IsaacLab#4369."""
    envs = native(num_envs=2, max_episode_steps=2, autoreset_mode=SAME_STEP)
    first, _ = envs.reset(seed=0)
    envs.step(np.zeros((2, 9), np.float32))
    observations, reward, _, truncated, infos = envs.step(np.zeros((2, 9), np.float32))
    assert truncated.all()
    assert infos["_final_obs"].all()
    assert reward.tolist() == infos["final_info"]["reward_model"].tolist()
    for row in range(2):
        final = infos["final_obs"][row]
        assert np.array_equal(final["achieved_goal"], first["achieved_goal"][row])  # nothing was moved
        assert np.array_equal(final["desired_goal"], first["desired_goal"][row])
        assert not np.array_equal(final["desired_goal"], observations["desired_goal"][row])
    assert envs._steps.tolist() == [0, 0]


def everything_in(result):
    """All arrays of numbers that a call returned."""
    if isinstance(result, np.ndarray) and result.dtype != object:
        yield result
    elif isinstance(result, (dict, tuple, np.ndarray)):
        for part in result.values() if isinstance(result, dict) else result:
            yield from everything_in(part)


@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
def test_returned_arrays_are_the_callers(mode):
    """Gymnasium#1683: later steps do not write to them, and what is written to them changes nothing."""
    options = {"autoreset_mode": mode, "max_episode_steps": 2}
    envs, undisturbed = native(**options), native(**options)
    actions = np.random.default_rng(0).uniform(-1, 1, (6, 4, 9)).astype(np.float32)
    kept = [(result, copy.deepcopy(result)) for result in [envs.reset(seed=0), *map(envs.step, actions)]]
    for result, before in kept:
        assert_equal(result, before)
    arrays = [array for result, _ in kept for array in everything_in(result)]
    pairs = ((a, b) for i, a in enumerate(arrays) for b in arrays[:i])
    assert not any(np.shares_memory(a, b) for a, b in pairs if a.base is None or a.base is not b.base)
    envs.reset(seed=0)
    undisturbed.reset(seed=0)
    for action in actions:
        one, other = envs.step(action), undisturbed.step(action)
        assert_equal(one, other)
        for array in everything_in(one):
            array[...] = 1


def test_pickle_and_deepcopy_in_mid_episode():
    envs = native(max_episode_steps=4, render_mode="rgb_array")
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    actions = [envs.action_space.sample() for _ in range(6)]
    worlds = [pickle.loads(pickle.dumps(envs)), copy.deepcopy(envs), envs]
    futures = [[world.step(action) for action in actions] for world in worlds]
    for future in futures[1:]:
        for one, other in zip(future, futures[0], strict=True):
            assert_equal(one, other)


@pytest.mark.parametrize("reward", rewards.TRUTHS)
def test_compute_reward_is_the_single_environments(reward):
    envs, single = native(reward=reward, n_objects=4), gym.make(DISCRIM, reward=reward, n_objects=4)
    envs.reset(seed=0)
    observations, values, *_ = envs.step(envs.action_space.sample())
    goals = observations["achieved_goal"], observations["desired_goal"]
    assert np.array_equal(envs.compute_reward(*goals, {}), values)
    assert np.array_equal(single.unwrapped.compute_reward(*goals, {}), values)
    arenas, wanted = envs.scenes
    assert arenas.shape == wanted.shape == (4, 4, 10)
    assert np.array_equal(arenas.reshape(4, -1), goals[0])


# --- rendering ------------------------------------------------------------------------------------------------------


def test_frames_are_those_of_the_single_environments(monkeypatch):
    """gym#3037: without a display."""
    pytest.importorskip("pygame")
    for name in ("DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    envs, theirs = (maker(num_envs=3, render_mode="rgb_array") for maker in (native, in_turn))
    for each in (envs, theirs):
        each.reset(seed=0)
        each.step(np.ones((3, 9), np.float32))
    frames = envs.render()
    assert isinstance(frames, tuple)
    assert all(np.array_equal(a, b) for a, b in zip(frames, theirs.render(), strict=True))
    tiled = envs.tiled()
    assert np.array_equal(tiled, tile(frames))
    assert tiled.shape == (3 * FRAME[1], FRAME[0], 3)  # wide frames: one column of three is nearest to a square
    assert np.array_equal(envs.tiled(copies=1), frames[0])
    envs.close()


def test_tiles_lie_row_by_row():
    frames = [np.full((4, 4, 3), shade, np.uint8) for shade in range(5)]
    picture = tile(frames)  # five squares: two columns, hence three rows
    assert picture.shape == (12, 8, 3)
    assert picture[::4, ::4, 0].ravel().tolist()[:5] == [0, 1, 2, 3, 4]


def test_rendering_without_a_mode_is_a_warning():
    envs = native()
    with pytest.warns(UserWarning, match="render_mode"):
        assert envs.render() is None


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0; accepted is an int from 1"),
        ({"max_episode_steps": 0}, "max_episode_steps is 0; accepted is an int from 1, or -1"),
        ({"max_episode_steps": True}, "max_episode_steps is True"),
        ({"max_episode_steps": 2.5}, "max_episode_steps is 2.5"),
        ({"autoreset_mode": "later"}, "autoreset_mode is 'later'; accepted are 'NextStep', 'SameStep', 'Disabled'"),
        ({"n_objects": 1}, "n_objects is 1"),
        ({"criterion": "near"}, "near.*similarity"),
        ({"reference_seed": 1}, "SpatialSim-Ident-v0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        native(**options)


def test_a_window_is_not_among_the_render_modes():
    with pytest.raises(ValueError, match=r"human.*rgb_array"):
        DiscriminationVectorEnv(3, render_mode="human")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"goal": 1}, ValueError, "'goal' is unknown; there is 'reset_mask'"),
        ({"reset_mask": [True] * 4}, TypeError, "reset_mask is a list; accepted is a NumPy array of bool"),
        ({"reset_mask": np.ones(4)}, TypeError, "an array of float64"),
        ({"reset_mask": np.ones(3, bool)}, ValueError, r"shape \(3,\); accepted is \(4,\)"),
        ({"reset_mask": np.zeros(4, bool)}, ValueError, "False everywhere"),
    ],
)
def test_bad_masks_change_nothing(options, error, message):
    envs = native()
    envs.reset(seed=0)
    before, streams = envs.scenes, [stream.bit_generator.state for stream in envs.np_random]
    with pytest.raises(error, match=message):
        envs.reset(seed=3, options=options)
    assert all(np.array_equal(a, b) for a, b in zip(before, envs.scenes, strict=True))
    assert streams == [stream.bit_generator.state for stream in envs.np_random]


def test_the_first_reset_is_of_all():
    with pytest.raises(gym.error.ResetNeeded, match="first reset"):
        native().reset(options={"reset_mask": np.array([True, False, True, True])})


@pytest.mark.parametrize("seed", [[1, 2], -1, [0, 1, 2, -3], [0.5, 1, 2, 3]])
def test_bad_seeds_are_named(seed):
    with pytest.raises(ValueError, match="seed"):
        native().reset(seed=seed)


def test_stepping_before_the_reset_and_after_the_end():
    envs = native(autoreset_mode=DISABLED, max_episode_steps=2)
    actions = np.zeros((4, 9), np.float32)
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        envs.step(actions)
    envs.reset(seed=0)
    envs.step(actions)
    envs.step(actions)
    envs.reset(options={"reset_mask": np.array([True, False, True, True])})
    with pytest.raises(gym.error.ResetNeeded, match=r"copies \[1\] have ended.*reset_mask"):
        envs.step(actions)
    envs.reset(options={"reset_mask": np.array([False, True, False, False])})
    envs.step(actions)


def test_after_closing():
    envs = native()
    envs.reset(seed=0)
    envs.close()
    envs.close()
    for call in (envs.reset, envs.render, envs.tiled, lambda: envs.step(np.zeros((4, 9), np.float32))):
        with pytest.raises(gym.error.ClosedEnvironmentError, match="closed"):
            call()


@pytest.mark.parametrize("bad", [np.zeros((4, 8)), np.zeros((3, 9)), np.zeros(9), 0.5, np.full((4, 9), np.nan)])
def test_bad_actions_change_nothing(bad):
    envs = native()
    envs.reset(seed=1)
    before = envs.scenes
    with pytest.raises(ActionError):
        envs.step(bad)
    assert all(np.array_equal(a, b) for a, b in zip(before, envs.scenes, strict=True))
    assert envs._steps.tolist() == [0] * 4


def test_the_action_of_a_copy_that_begins_anew_is_not_looked_at():
    envs = native(max_episode_steps=1, autoreset_mode=NEXT_STEP)
    envs.reset(seed=0)
    envs.step(np.zeros((4, 9), np.float32))
    _, reward, terminated, truncated, infos = envs.step(np.full((4, 9), np.nan))
    assert reward.tolist() == [0.0] * 4
    assert not (terminated | truncated).any()
    assert infos["reward_model"].tolist() == [-1.0] * 4


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_reward_that_fails_leaves_the_episodes_as_they_were(mode):
    class Failing(Near):
        def __call__(self, achieved, desired):
            return np.full(len(achieved), np.nan)

    envs = native(autoreset_mode=mode, max_episode_steps=2)
    envs.reset(seed=0)
    envs.step(np.zeros((4, 9), np.float32))
    before, steps = envs.scenes, envs._steps
    envs.set_reward(Failing())
    for call in (envs.reset, lambda: envs.step(np.ones((4, 9), np.float32))):
        with pytest.raises(ValueError, match="'near' gave nan"):
            call()
    assert all(np.array_equal(a, b) for a, b in zip(before, envs.scenes, strict=True))
    assert np.array_equal(steps, envs._steps)
