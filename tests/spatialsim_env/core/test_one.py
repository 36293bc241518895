"""The environments against their contract; the reports behind single tests are named at them."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spatialsim_env
from spatialsim_env.arrangements import goals, scene
from spatialsim_env.arrangements.dynamics import MODES
from spatialsim_env.arrangements.scene import N_FEATURES, ORIENTATION, POSITION, SceneError
from spatialsim_env.arrangements.tasks import reference_scene
from spatialsim_env.arrangements.world import PIXELS
from spatialsim_env.core import rewards
from spatialsim_env.core.world import ActionError
from spatialsim_env.testing import assert_environment, global_random_state

GOLDEN = Path(__file__).parents[2] / "data" / "golden_resets.json"
QUALIFIED = [f"spatialsim_env:{env_id}" for env_id in spatialsim_env.ENV_IDS]
DISCRIM, IDENT = QUALIFIED


def make(env_id: str = DISCRIM, **options):
    return gym.make(env_id, **options)


def expert_action(env) -> np.ndarray:
    """Moves every object towards its place in the goal brought onto the arena by sizes and orientations."""
    arena, goal = env.unwrapped.scenes
    present = scene.present(arena)
    fit = env.unwrapped.world.truth.criterion.align(arena[None], goal[None])
    matched = goal[fit.matching[0][present]].astype(np.float64)
    here = arena[present].astype(np.float64)
    scale = np.exp(np.mean(np.log(here[:, scene.SIZE] / matched[:, scene.SIZE])))
    turn = np.angle(np.exp(1j * (here[:, ORIENTATION] - matched[:, ORIENTATION])).mean())
    points = matched[:, POSITION] @ np.array([1, 1j]) * scale * np.exp(1j * turn)
    low = np.array([points.real.min(), points.imag.min()])
    high = np.array([points.real.max(), points.imag.max()])
    shift = np.clip(here[:, POSITION].mean(0) - (low + high) / 2, -low, 20 - high)
    places = np.stack([points.real, points.imag], axis=-1) + shift
    action = np.zeros((len(arena), 2), np.float32)
    action[present] = np.clip(places - here[:, POSITION], -1, 1)
    return action.ravel()


# --- the checkers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", QUALIFIED)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reward", rewards.TRUTHS)
def test_contract(env_id, mode, reward):
    assert_environment(make(env_id, action_mode=mode, reward=reward))


@pytest.mark.parametrize(
    "options", [{"observation": "pixels"}, {"criterion": "positions"}, {"max_turn": 0}, {"start": "poses"}]
)
@pytest.mark.parametrize("env_id", QUALIFIED)
def test_contract_with_options(env_id, options):
    assert_environment(make(env_id, **options))


@pytest.mark.parametrize("env_id", QUALIFIED)
@pytest.mark.parametrize("reward", rewards.TRUTHS)
def test_both_checkers_fifty_times(env_id, reward):
    """HighwayEnv#500, panda-gym#53."""
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    for _ in range(50):
        env = make(env_id, reward=reward).unwrapped
        gym.utils.env_checker.check_env(env, skip_render_check=True)
        sb3.check_env(env)


@pytest.mark.parametrize("env_id", QUALIFIED)
def test_render_passes_the_checker(env_id, monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    gym.utils.env_checker.check_env(make(env_id, render_mode="rgb_array").unwrapped)
    env = make(env_id, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    env.step(env.action_space.sample())
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert (first != env.render()).any()
    env.close()
    env.close()


def test_fifty_windows_open_and_close(monkeypatch):
    """MAgent2#79, gym#2684: through the environment; test_rendering does it on a real screen."""
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    for seed in range(50):
        env = make(render_mode="human", n_objects=3)
        env.reset(seed=seed)
        assert pygame.display.get_init()
        assert env.render() is None
        env.close()
        env.close()
        assert not pygame.display.get_init()


# --- observations, types, bounds -----------------------------------------------------------------------------------


def test_observation_holds_the_scene_and_the_goal():
    env = make(n_objects=(3, 8))
    for seed in range(20):
        observation, info = env.reset(seed=seed)
        assert {key: value.dtype for key, value in observation.items()} == dict.fromkeys(
            observation, np.dtype("float32")
        )
        arena, goal = (observation[key].reshape(8, N_FEATURES) for key in ("achieved_goal", "desired_goal"))
        assert np.array_equal(observation["observation"], observation["achieved_goal"])
        n = scene.count(arena)
        assert 3 <= n <= 8
        assert scene.count(goal) == n
        assert scene.present(arena)[:n].all()  # present objects first
        goals.distance(arena, goal)  # raises unless they hold the same objects
        assert info["distance"] > 1
        assert info["reward_true"] == info["reward_model"] == -1
        assert not info["is_success"]


def test_order_differs_between_arena_and_goal():
    env = make(n_objects=8)
    same = 0
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        arena, goal = (observation[key].reshape(8, N_FEATURES) for key in ("achieved_goal", "desired_goal"))
        same += np.allclose(arena[:, scene.COLOR], goal[:, scene.COLOR])
    assert same == 0  # 20 / 8! expected


def test_goal_is_a_similarity_of_the_start_that_keeps_sizes_and_orientations():
    env = make(n_objects=5, max_turn=0)
    for seed in range(20):
        env.reset(seed=seed)
        arena, goal = env.unwrapped.scenes
        matching = env.unwrapped.world.truth.criterion.align(arena[None], goal[None]).matching[0]
        ratio = goal[matching, scene.SIZE] / arena[:, scene.SIZE]
        assert np.allclose(ratio, ratio[0], atol=1e-5)
        turn = np.exp(1j * (goal[matching, ORIENTATION] - arena[:, ORIENTATION]))
        assert np.allclose(turn, turn[0], atol=1e-5)


def test_pixels_show_the_arena_only():
    pytest.importorskip("pygame")
    env = make(observation="pixels", n_objects=3)
    first, _ = env.reset(seed=0)
    assert first["observation"].shape == (PIXELS, PIXELS, 3)
    assert first["observation"].dtype == np.uint8
    after, *_ = env.step(np.ones(env.action_space.shape, np.float32))
    assert (first["observation"] != after["observation"]).any()


@settings(deadline=None, max_examples=30)
@given(data=st.data(), mode=st.sampled_from(MODES), seed=st.integers(0, 2**31))
def test_no_action_leaves_the_space(data, mode, seed):
    """SB3#1992: random and corner actions, beyond the box too, since they are clipped."""
    env = make(action_mode=mode, n_objects=(3, 4)).unwrapped
    env.reset(seed=seed)
    space = env.action_space
    for _ in range(15):
        if mode == "discrete":
            action = [data.draw(st.integers(0, int(n) - 1)) for n in space.nvec]
        else:
            action = np.array(
                [data.draw(st.sampled_from([-3.0, -1.0, -1e-9, 0.0, 0.5, 1.0])) for _ in range(space.shape[0])]
            )
        observation, *_ = env.step(np.array(action))
        assert env.observation_space.contains(observation)


def test_returned_arrays_share_no_memory():
    """Gymnasium#1683."""
    env = make(n_objects=3)
    first, _ = env.reset(seed=0)
    kept = copy.deepcopy(first)
    for value in first.values():
        value[:] = 0
    second, *_ = env.step(np.zeros(env.action_space.shape, np.float32))
    assert np.array_equal(second["achieved_goal"], kept["achieved_goal"])
    assert not any(np.shares_memory(a, b) for a in first.values() for b in second.values())


@pytest.mark.parametrize("mode", MODES)
def test_bad_actions_change_nothing(mode):
    env = make(action_mode=mode, n_objects=3).unwrapped
    env.reset(seed=1)
    before = env.scenes
    good = np.zeros(env.action_space.shape, env.action_space.dtype)
    bad = [np.zeros(99), np.zeros((2, 2)), 0.5, good.astype(float) * np.nan]
    bad += [np.array([3, 0]), np.array([-1, 0]), np.array([0, 6])] if mode == "discrete" else [good + np.inf]
    for action in bad:
        with pytest.raises(ActionError):
            env.step(action)
        assert all(np.array_equal(a, b) for a, b in zip(before, env.scenes, strict=True))
    env.step(good)


def test_step_before_reset():
    with pytest.raises(gym.error.ResetNeeded):
        make().unwrapped.step(np.zeros(24, np.float32))
    with pytest.raises(gym.error.ResetNeeded):
        make(render_mode="rgb_array").unwrapped.render()


def test_stepping_after_the_end_and_closing_twice():
    """Nothing begins anew by itself: the world goes on and every step says that the horizon is passed."""
    limited, unlimited = make(n_objects=3, max_episode_steps=2), make(n_objects=3, max_episode_steps=-1)
    first = limited.reset(seed=0)[0]
    unlimited.reset(seed=0)
    actions = [limited.action_space.sample() for _ in range(4)]
    steps = [(limited.step(action), unlimited.step(action)) for action in actions]
    assert [one[3] for one, _ in steps] == [False, True, True, True]
    for one, other in steps:
        np.testing.assert_equal(one[:3] + one[4:], other[:3] + other[4:])
    limited.close()
    limited.close()
    np.testing.assert_equal(limited.reset(seed=0)[0], first)


# --- rewards and goals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", rewards.TRUTHS)
@pytest.mark.parametrize("size", [1, 2, 204])
def test_compute_reward_takes_every_form(reward, size):
    """SB3#1337, #1959, #854, #1015."""
    env = make(reward=reward, n_objects=(3, 5)).unwrapped
    pairs = [env.reset(seed=seed)[0] for seed in range(size)]
    achieved, desired = (np.stack([pair[key] for pair in pairs]) for key in ("achieved_goal", "desired_goal"))
    infos = [{} for _ in range(size)]
    expected = env.compute_reward(achieved, desired, infos)
    assert isinstance(expected, np.ndarray)
    assert expected.shape == (size,)
    scenes = [x.reshape(size, 5, N_FEATURES) for x in (achieved, desired)]
    for info in (None, {}, infos, np.array(infos, object)):
        assert np.array_equal(env.compute_reward(*scenes, info), expected)
        assert np.array_equal(
            env.compute_reward(achieved.astype(np.float64), desired.astype(np.float64), info), expected
        )
    for row in range(min(size, 10)):
        for one in ((achieved[row], desired[row]), (scenes[0][row], scenes[1][row])):
            value = env.compute_reward(*one, {})
            assert type(value) is float
            assert value == expected[row]


def test_compute_reward_is_pure():
    """hill-a#794: the value for goals of another episode, after a reset."""
    env = make(n_objects=4, reward="dense").unwrapped
    first, _ = env.reset(seed=0)
    expected = env.compute_reward(first["achieved_goal"], first["desired_goal"], {})
    env.reset(seed=1)
    env.step(env.action_space.sample())
    assert env.compute_reward(first["achieved_goal"], first["desired_goal"], {}) == expected
    assert expected == -min(goals.distance(first["achieved_goal"], first["desired_goal"]), 20)


def test_compute_reward_of_different_objects_is_not_achieved():
    env = make(n_objects=(3, 5)).unwrapped
    one, other = env.reset(seed=0)[0], env.reset(seed=1)[0]
    assert env.compute_reward(one["achieved_goal"], other["achieved_goal"], {}) == -1
    empty = np.zeros_like(one["achieved_goal"])
    assert env.compute_reward(empty, empty, {}) == -1
    assert env.compute_reward(one["achieved_goal"], one["achieved_goal"], {}) == 0


def test_compute_reward_refuses_nonsense():
    env = make(n_objects=3).unwrapped
    goal = env.reset(seed=0)[0]["achieved_goal"]
    for achieved, desired in ((goal[:-1], goal), (goal, np.stack([goal, goal])), (goal * np.nan, goal)):
        with pytest.raises(SceneError):
            env.compute_reward(achieved, desired, {})


@pytest.mark.parametrize("criterion", ["similarity", "positions"])
def test_an_expert_succeeds_and_the_truth_says_so(criterion):
    successes = 0
    for seed in range(10):
        env = make(n_objects=(3, 6), max_turn=0, criterion=criterion, reward="dense")
        env.reset(seed=seed)
        for _ in range(50):
            observation, reward, terminated, truncated, info = env.step(expert_action(env))
            assert not terminated
        assert truncated
        assert info["is_success"] == goals.achieved(
            observation["achieved_goal"], observation["desired_goal"], criterion
        )
        assert info["is_success"] == (reward >= -1) == info["is_success_model"]
        assert info["ever_success"] >= info["is_success"]
        successes += info["is_success"]
    assert successes == 10


def test_terminate_on_success():
    env = make(n_objects=3, max_turn=0, terminate_on_success=True)
    env.reset(seed=0)
    for _ in range(50):
        _, reward, terminated, _, info = env.step(expert_action(env))
        assert terminated == info["is_success"] == (reward == 0)
        if terminated:
            return
    pytest.fail("the expert never arrived")


class Half:
    """A reward that says yes to everything."""

    name, success_threshold = "yes", -0.5

    def __call__(self, achieved, desired):
        return np.zeros(len(achieved))


def test_a_live_reward_is_plugged_in_and_the_truth_stays_beside_it():
    env = make(n_objects=3)
    env.unwrapped.set_reward(Half())
    observation, _ = env.reset(seed=0)
    observation, reward, _, _, info = env.step(env.action_space.sample())
    assert reward == info["reward_model"] == 0
    assert info["is_success_model"]
    assert info["reward_true"] == -1
    assert not info["is_success"]
    assert env.unwrapped.compute_reward(observation["achieved_goal"], observation["desired_goal"], {}) == 0
    with pytest.raises(TypeError, match="success_threshold"):
        env.unwrapped.set_reward(len)
    with pytest.raises(TypeError, match="class Half"):
        env.unwrapped.set_reward(Half)
    with pytest.raises(TypeError, match="set_reward"):
        make(reward=Half(), disable_env_checker=True)


@pytest.mark.parametrize("when", ["reset", "step"])
def test_a_reward_that_fails_leaves_the_state_as_it_was(when):
    env = make(n_objects=3).unwrapped
    env.reset(seed=0)
    before, steps = env.scenes, env._steps

    class Failing(Half):
        def __call__(self, achieved, desired):
            return np.full(len(achieved), np.nan)

    env.set_reward(Failing())
    with pytest.raises(ValueError, match="'yes' gave nan"):
        env.reset() if when == "reset" else env.step(np.ones(9, np.float32))
    assert all(np.array_equal(a, b) for a, b in zip(before, env.scenes, strict=True))
    assert env._steps == steps


@pytest.mark.parametrize("value", [0.0, [[0.0]], [0.0, 0.0]])
def test_a_reward_of_another_shape_is_named(value):
    class Odd(Half):
        def __call__(self, achieved, desired):
            return value

    env = make(n_objects=3).unwrapped
    env.set_reward(Odd())
    with pytest.raises(ValueError, match=r"'yes' gave shape .*; accepted is \(1,\)"):
        env.reset(seed=0)


def test_a_reward_cannot_write_into_the_scenes():
    class Writing(Half):
        def __call__(self, achieved, desired):
            achieved[:] = 0
            return np.zeros(len(achieved))

    env = make(n_objects=3).unwrapped
    env.set_reward(Writing())
    with pytest.raises(ValueError, match="read-only"):
        env.reset(seed=0)


def test_identification_has_one_goal():
    env = make(IDENT, n_objects=4, reference_seed=3)
    goals_seen = {env.reset(seed=seed)[0]["desired_goal"].tobytes() for seed in range(5)}
    assert len(goals_seen) == 1
    _, goal = env.unwrapped.scenes
    assert goals.achieved(reference_scene(4, 3), goal)
    other = make(IDENT, n_objects=4, reference_seed=4)
    assert other.reset(seed=0)[0]["desired_goal"].tobytes() not in goals_seen


def test_wrappers_hand_on_what_hindsight_calls():
    """Gymnasium#535: those of ``gym.make``, and gymnasium's own around them."""
    env = gym.wrappers.RecordEpisodeStatistics(make(n_objects=3, max_episode_steps=5))
    observation, _ = env.reset(seed=0)
    pair = observation["achieved_goal"], observation["desired_goal"]
    assert env.get_wrapper_attr("compute_reward")(*pair, {}) == -1
    env.get_wrapper_attr("set_reward")(Half())
    assert env.get_wrapper_attr("compute_reward")(*pair, {}) == 0


# --- options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "options", "message"),
    [
        (DISCRIM, {"n_objects": 1}, "n_objects is 1"),
        (DISCRIM, {"n_objects": 2, "criterion": "positions"}, "n_objects is 2"),
        (DISCRIM, {"n_objects": (5, 3)}, r"n_objects is \(5, 3\)"),
        (DISCRIM, {"n_objects": 2.5}, "n_objects"),
        (DISCRIM, {"action_mode": "fly"}, "fly.*move_all"),
        (DISCRIM, {"criterion": "near"}, "near.*similarity"),
        (DISCRIM, {"orientation": "upright"}, "upright.*visual"),
        (DISCRIM, {"tolerances": (1, 2)}, "three positive"),
        (DISCRIM, {"tolerances": (1, 0, 1)}, "three positive"),
        (DISCRIM, {"observation": "sound"}, "sound.*pixels"),
        (DISCRIM, {"start": "nowhere"}, "nowhere.*redrawn"),
        (DISCRIM, {"start": "twisted", "criterion": "positions"}, "achieved already"),
        (DISCRIM, {"start": "poses", "max_turn": 0}, "max_turn=0"),
        (DISCRIM, {"max_turn": 9}, "max_turn is 9"),
        (DISCRIM, {"reward": "no/such/model"}, "no/such/model"),
        (DISCRIM, {"reference_seed": 1}, "SpatialSim-Ident-v0"),
        (DISCRIM, {"tolerances": "abc"}, "three positive"),
        (DISCRIM, {"n_objects": True}, "n_objects is True"),
        (IDENT, {"n_objects": (3, 5)}, "one reference scene"),
        (IDENT, {"reference_seed": None}, "reference_seed is None; accepted is an int from 0"),
        (IDENT, {"reference_seed": -1}, "reference_seed is -1"),
        (IDENT, {"reference_seed": 1.5}, "reference_seed is 1.5"),
    ],
)
def test_bad_options_are_named(env_id, options, message):
    with pytest.raises((ValueError, TypeError, ImportError), match=message):
        make(env_id, **options)


def test_unknown_reset_option():
    env = make()
    env.reset(seed=0)
    state = env.unwrapped.np_random.bit_generator.state
    with pytest.raises(ValueError, match="goal"):
        env.reset(seed=5, options={"goal": 1})
    assert env.unwrapped.np_random.bit_generator.state == state


def test_starts_that_are_always_achieved_are_an_error():
    env = make(n_objects=2, tolerances=(1000, 10, 1000))
    with pytest.raises(RuntimeError, match="achieved already"):
        env.reset(seed=0)


# --- seeds and processes -------------------------------------------------------------------------------------------


def trajectory(env, seed: int, steps: int = 60) -> list[bytes]:
    observation, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    record = [observation["achieved_goal"].tobytes()]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        record.append(
            observation["achieved_goal"].tobytes() + observation["desired_goal"].tobytes() + bytes(str(reward), "ascii")
        )
        if terminated or truncated:
            observation, _ = env.reset()
    return record


@pytest.mark.parametrize("env_id", QUALIFIED)
def test_seeded_trajectories_are_equal_after_other_episodes(env_id):
    """Gymnasium-Robotics#207, panda-gym#94."""
    first, second = make(env_id), make(env_id)
    trajectory(second, 7, steps=20)
    state = global_random_state()
    assert trajectory(first, 3) == trajectory(second, 3)
    assert state == global_random_state()


@pytest.mark.parametrize(("env_id", "key"), [(DISCRIM, "desired_goal"), (IDENT, "achieved_goal")])
def test_unseeded_resets_differ(env_id, key):
    """ViZDoom#695."""
    first, second = make(env_id), make(env_id)
    assert len({env.reset()[0][key].tobytes() for env in (first, second, first)}) == 3


def reset_hashes(env_id: str) -> list[str]:
    env = make(f"spatialsim_env:{env_id}")
    hashes = []
    for seed in range(4):
        observation, _ = env.reset(seed=seed)
        rounded = np.round(
            np.concatenate([observation["achieved_goal"], observation["desired_goal"]]).astype(np.float64), 3
        )
        hashes.append(hashlib.sha256((rounded + 0.0).tobytes()).hexdigest()[:16])
    return hashes


@pytest.mark.parametrize("env_id", spatialsim_env.ENV_IDS)
def test_golden_resets(env_id):
    """What a seed gives is part of an id: a change needs a new version of the id and new hashes."""
    assert reset_hashes(env_id) == json.loads(GOLDEN.read_text())[env_id]


def test_pickle_and_deepcopy_in_mid_episode():
    env = make(n_objects=4, render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    env.step(env.action_space.sample())
    actions = [env.action_space.sample() for _ in range(5)]
    futures = []
    for world in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env), env):
        futures.append([world.step(action)[0]["achieved_goal"].tobytes() for action in actions])
        futures[-1].append(world.reset()[0]["desired_goal"].tobytes())
    assert futures[0] == futures[1] == futures[2]


def first_observation(env_id: str) -> bytes:
    return gym.make(env_id).reset(seed=0)[0]["achieved_goal"].tobytes()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_qualified_ids_work_in_processes(method):
    """gym#2370, ray#4591."""
    import multiprocessing

    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(first_observation, QUALIFIED) == [first_observation(env_id) for env_id in QUALIFIED]


def test_qualified_ids_work_under_joblib():
    joblib = pytest.importorskip("joblib")
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(first_observation)(env_id) for env_id in QUALIFIED)
    assert found == [first_observation(env_id) for env_id in QUALIFIED]


def test_spec_round_trips_through_json():
    env = make(n_objects=(3, 4), tolerances=(1.0, 0.5, 0.2), reward="dense")
    spec = gym.envs.registration.EnvSpec.from_json(env.spec.to_json())
    again = gym.make(spec)
    assert again.reset(seed=5)[0]["desired_goal"].tobytes() == env.reset(seed=5)[0]["desired_goal"].tobytes()
    assert again.unwrapped.world.truth.criterion == env.unwrapped.world.truth.criterion


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasiums_own_vectors(mode):
    """Gymnasium#952, #983."""
    pytest.importorskip("pygame")
    options = {"max_episode_steps": 5, "render_mode": "rgb_array", "n_objects": 3}
    kwargs = {"context": "spawn"} if mode == "async" else {}
    envs = gym.make_vec(DISCRIM, num_envs=2, vectorization_mode=mode, vector_kwargs=kwargs, **options)
    envs.reset(seed=0)
    for _ in range(5):
        _, _, _, truncated, infos = envs.step(envs.action_space.sample())
    assert truncated.all()
    assert infos["distance"].shape == (2,)
    assert [frame.dtype for frame in envs.render()] == [np.uint8] * 2
    envs.close()


def test_record_video(tmp_path):
    """Gymnasium#356."""
    pytest.importorskip("pygame")
    pytest.importorskip("moviepy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # moviepy's own
        env = gym.wrappers.RecordVideo(
            make(render_mode="rgb_array", max_episode_steps=5), str(tmp_path), lambda _: True
        )
        env.reset(seed=0)
        for _ in range(5):
            env.step(env.action_space.sample())
        env.close()
    assert [path.suffix for path in tmp_path.iterdir()] == [".mp4"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # gymnasium 1.1 in its __del__
def test_record_video_without_moviepy_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "moviepy", None)
    with pytest.raises(gym.error.DependencyNotInstalled, match=r"(?i)moviepy"):
        gym.wrappers.RecordVideo(make(render_mode="rgb_array"), str(tmp_path / "videos"))
