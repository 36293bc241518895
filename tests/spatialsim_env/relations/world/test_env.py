"""``SpatialSim-Relation3D-v0`` against the contract of the environments; its truth is ``predicates`` alone."""

from __future__ import annotations

import copy
import hashlib
import json
import multiprocessing
import pickle
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

import spatialsim_env
from spatialsim_env.arrangements.truth import SceneTruth
from spatialsim_env.core.rewards import TRUTHS, Dense, Sparse
from spatialsim_env.core.world import ActionError
from spatialsim_env.relations import scene
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.scene import CENTER, HALF, OBJECT, SUBJECT, RoomError
from spatialsim_env.relations.vocabulary import INDEX, PREDICATES
from spatialsim_env.relations.world import goals
from spatialsim_env.relations.world.dynamics import MAX_MOVE, clear
from spatialsim_env.relations.world.episodes import RelationEpisodes
from spatialsim_env.relations.world.truth import RelationMoment, RelationTruth
from spatialsim_env.testing import assert_environment, global_random_state

GOLDEN = Path(__file__).parents[3] / "data" / "golden_relation_resets.json"
ID = f"spatialsim_env:{spatialsim_env.RELATION_IDS[0]}"


def make(**options):
    return gym.make(ID, **options)


def native(num_envs=4, **options):
    return gym.make_vec(ID, num_envs=num_envs, **options)


# --- the checkers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", TRUTHS)
def test_contract(reward):
    assert_environment(make(reward=reward))


@pytest.mark.parametrize("name", PREDICATES)
def test_contract_of_each_predicate(name):
    assert_environment(make(predicates=name, reward="dense"), seed=INDEX[name], steps=25)


@pytest.mark.parametrize("reward", TRUTHS)
def test_both_checkers(reward):
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    for _ in range(5):
        env = make(reward=reward).unwrapped
        gym.utils.env_checker.check_env(env, skip_render_check=True)
        sb3.check_env(env)


def test_render_passes_the_checker(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    gym.utils.env_checker.check_env(make(render_mode="rgb_array").unwrapped)


# --- observations and goals ----------------------------------------------------------------------------------------


def test_observations_hold_the_scene_the_facts_and_the_goal():
    env = make()
    for seed in range(30):
        observation, info = env.reset(seed=seed)
        scenes, observer = env.unwrapped.scenes
        scene.validate(scenes[None], observer[None])
        achieved, desired = observation["achieved_goal"], observation["desired_goal"]
        assert np.array_equal(observation["observation"], achieved[goals.STATE])
        assert np.array_equal(achieved[goals.SCENE], scenes.ravel())
        assert np.array_equal(achieved[goals.OBSERVER], observer)
        holds = predicates.holds(scenes[None].astype(float), observer[None].astype(float))[0]
        assert np.array_equal(achieved[goals.FLAGS] > 0.5, holds)
        (name,) = env.unwrapped.goal
        assert np.array_equal(desired, np.eye(goals.N_GOAL, dtype=np.float32)[INDEX[name]])
        margin = predicates.margins(scenes[None].astype(float), observer[None].astype(float), (name,))[0, 0]
        assert info["distance"] == -margin
        assert not info["is_success"]
        assert not holds[INDEX[name]]


@settings(deadline=None, max_examples=30)
@given(data=st.data(), seed=st.integers(0, 2**31))
def test_no_action_leaves_the_space(data, seed):
    env = make().unwrapped
    env.reset(seed=seed)
    for _ in range(8):
        action = [data.draw(st.sampled_from([-3.0, -1.0, -1e-9, 0.0, 0.5, 1.0])) for _ in range(6)]
        observation, *_ = env.step(np.array(action))
        assert env.observation_space.contains(observation)


@pytest.mark.parametrize("name", PREDICATES)
def test_no_episode_begins_achieved_or_with_an_overlap(name):
    episodes = RelationEpisodes((name,))
    begun = episodes.begin(np.random.default_rng(INDEX[name]).random((64, episodes.n_uniform), np.float32))
    scene.validate(begun.scenes, begun.observers)
    holds = predicates.holds(begun.scenes.astype(float), begun.observers.astype(float))
    assert not holds[:, INDEX[name]].any()
    assert clear(begun.scenes).all()
    assert (begun.required.sum(axis=1) == 1).all()
    assert begun.required[:, INDEX[name]].all()


def test_each_episode_draws_one_of_the_predicates():
    names = ("on", "behind", "near")
    envs = native(600, predicates=names)
    envs.reset(seed=0)
    drawn = [goal for (goal,) in envs.goals]
    assert set(drawn) == set(names)
    counts = [drawn.count(name) for name in names]
    assert min(counts) > 140  # 200 expected, 5 deviations of 11.5


def test_returned_arrays_share_no_memory():
    env = make()
    first, _ = env.reset(seed=0)
    kept = copy.deepcopy(first)
    for value in first.values():
        value[:] = 0
    second, *_ = env.step(np.zeros(6, np.float32))
    assert np.array_equal(second["achieved_goal"], kept["achieved_goal"])
    arrays = [*first.values(), *second.values()]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


def test_bad_actions_change_nothing():
    env = make().unwrapped
    env.reset(seed=1)
    before = env.scenes
    for action in (np.zeros(99), np.zeros((2, 6)), 0.5, np.full(6, np.nan), np.full(6, np.inf)):
        with pytest.raises(ActionError):
            env.step(action)
        assert all(np.array_equal(a, b) for a, b in zip(before, env.scenes, strict=True))
    with pytest.raises(gym.error.ResetNeeded):
        make().unwrapped.step(np.zeros(6))


# --- experts: that goals are reached by what their words say --------------------------------------------------------


def along(name, scenes, observer):
    """A unit vector on the floor in the direction that a goal names, from the object."""
    front, left = scene.rotation(scenes[OBJECT].astype(float))[:2, :2].T
    away = scene.away(observer.astype(float))
    own = {"to the left of": left, "to the right of": -left, "in front of": front, "behind": -front}
    right = np.array([away[1], -away[0]])
    seen = {"to the left of": -right, "to the right of": right, "in front of": -away, "behind": away}
    word, _, you = name.partition(" (wrt you)")
    found = seen[word] if name.endswith("(wrt you)") else own[word]
    return found / np.hypot(*found), you


def go(env, target):
    """Move the subject along the axes until it stands where it should; ``info`` of the last step."""
    info = {}
    for _ in range(60):
        way = target - env.scenes[0][SUBJECT, CENTER]
        *_, info = env.step(np.concatenate([np.clip(way / MAX_MOVE, -1, 1), np.zeros(3)]))
        if np.abs(way).max() < 1e-4:
            break
    return info


def over_and_down(env, at, height):
    """Lift the subject over the object, bring it to a place on the floor plan, lower it to a height."""
    subject, still = env.scenes[0]
    high = max(still[CENTER][2] + still[HALF].max() * 1.8, subject[CENTER][2]) + subject[HALF].max() * 1.8
    go(env, np.array([*subject[CENTER][:2], high]))
    go(env, np.array([*at, high]))
    return go(env, np.array([*at, height]))


DIRECTIONS = [
    word + you for word in ("to the left of", "to the right of", "in front of", "behind") for you in ("", " (wrt you)")
]


@pytest.mark.parametrize("name", [*DIRECTIONS, "to the side of", "to the side of (wrt you)"])
def test_going_where_a_direction_points_reaches_it(name):
    env = make(predicates=name).unwrapped
    for seed in range(6):
        env.reset(seed=seed)
        scenes, observer = env.scenes
        way, _ = along(name.replace("the side", "the right"), scenes, observer)
        still = scenes[OBJECT]
        at = still[CENTER][:2] + way * (0.9 if still[HALF].max() < 0.5 else 1.2)
        info = over_and_down(env, at, max(still[CENTER][2], scenes[SUBJECT, HALF].max() * 1.8))
        assert info["is_success"], (seed, info)


@pytest.mark.parametrize("name", ["on", "over", "on top of", "covering", "around"])
def test_lowering_the_subject_onto_the_middle_of_the_object_reaches_it(name):
    env = make(predicates=name).unwrapped
    for seed in range(6):
        env.reset(seed=seed)
        still = env.scenes[0][OBJECT]
        lowest = {"around": still[CENTER][2], "over": still[CENTER][2] + 1.0}  # a small subject fits into a ring
        info = over_and_down(env, still[CENTER][:2], lowest.get(name, 0.0))
        assert info["is_success"], (seed, info)


def test_putting_the_subject_into_a_container_reaches_in_and_inside():
    for name in ("in", "inside"):
        env = make(predicates=name).unwrapped
        for seed in range(6):
            env.reset(seed=seed)
            info = over_and_down(env, env.scenes[0][OBJECT, CENTER][:2], 0.0)
            assert info["is_success"], (seed, info)


def test_taking_the_subject_out_of_a_container_reaches_outside():
    env = make(predicates="outside").unwrapped
    for seed in range(6):
        env.reset(seed=seed)
        info = go(env, env.scenes[0][SUBJECT, CENTER] + np.array([0, 0, 1.5]))
        assert info["is_success"]


@pytest.mark.parametrize("name", ["under", "below"])
def test_going_along_the_floor_below_a_hanging_object_reaches_under(name):
    env = make(predicates=name).unwrapped
    for seed in range(6):
        env.reset(seed=seed)
        subject, still = env.scenes[0]
        go(env, np.array([*subject[CENTER][:2], 0.0]))
        info = go(env, np.array([*still[CENTER][:2], 0.0]))
        assert info["is_success"]


def test_coming_near_and_going_away():
    for name, sign in (("near", 1), ("touching", 1), ("far from", -1)):
        env = make(predicates=name).unwrapped
        for seed in range(6):
            env.reset(seed=seed)
            subject, still = env.scenes[0]
            way = sign * (still[CENTER] - subject[CENTER]) * (1, 1, sign > 0)
            info = go(env, subject[CENTER] + way * (1 if sign > 0 else 9))
            assert info["ever_success"], (name, seed, info)


# --- rewards -------------------------------------------------------------------------------------------------------


def pairs(size, seed=0, **options):
    envs = native(size, **options)
    envs.reset(seed=seed)
    envs.action_space.seed(seed)
    for _ in range(3):
        observations, *_ = envs.step(envs.action_space.sample())
    return observations["achieved_goal"], observations["desired_goal"]


@pytest.mark.parametrize("reward", TRUTHS)
@pytest.mark.parametrize("size", [1, 2, 204])
def test_compute_reward_takes_every_form(reward, size):
    env = make(reward=reward).unwrapped
    achieved, desired = pairs(size)
    expected = env.compute_reward(achieved, desired, [{}] * size)
    assert expected.shape == (size,)
    for info in (None, {}, np.array([{}] * size, object)):
        assert np.array_equal(env.compute_reward(achieved.astype(float), desired.astype(float), info), expected)
    for row in range(min(size, 10)):
        value = env.compute_reward(achieved[row], desired[row], {})
        assert type(value) is float
        assert value == expected[row]


def test_the_reward_reads_boxes_and_required_flags_alone():
    """Not what the achieved goal's flags say, and nothing else of a desired goal."""
    env = make(reward="dense").unwrapped
    achieved, desired = pairs(100)
    expected = env.compute_reward(achieved, desired, None)
    achieved[:, goals.FLAGS] = 1 - achieved[:, goals.FLAGS]
    desired[:, goals.STATE] = 0.3
    assert np.array_equal(env.compute_reward(achieved, desired, None), expected)


def test_a_goal_of_several_predicates_is_as_far_as_the_farthest():
    dense, sparse = make(reward="dense").unwrapped, make().unwrapped
    achieved, _ = pairs(300)
    names = ("to the left of (wrt you)", "to the side of")
    one, other = (np.tile(np.eye(goals.N_GOAL)[INDEX[name]], (300, 1)) for name in names)
    both = np.maximum(one, other)
    rewards = [dense.compute_reward(achieved, each, None) for each in (one, other, both)]
    assert np.array_equal(rewards[2], np.minimum(rewards[0], rewards[1]))
    each = [sparse.compute_reward(achieved, goal, None) for goal in (one, other, both)]
    assert np.array_equal(each[2] == 0, (each[0] == 0) & (each[1] == 0))
    assert (each[2] == 0).any()
    assert (sparse.compute_reward(achieved, np.zeros_like(both), None) == 0).all()  # nothing is required


def test_what_holds_is_a_goal_that_is_reached():
    env = make().unwrapped
    achieved, _ = pairs(200)
    assert (env.compute_reward(achieved, achieved, None) == 0).all()


def test_the_dense_reward_keeps_the_order_and_the_sign_of_margins():
    margins = np.array([-1e9, -150.0, -50.0, -1.0, -1e-300, 0.0, 1e-300, 0.5, 1.0, 40.0])
    empty = np.zeros((len(margins), 1))
    reward = Dense(RelationTruth())
    values = reward.of(RelationMoment(empty, empty, empty > 0, empty, -margins))
    assert (np.diff(values) >= 0).all()
    assert values.max() == 1
    assert values[0] == -6
    assert values[3] == pytest.approx(-np.log(2))
    assert np.array_equal(values >= reward.success_threshold, margins > 0)


def test_success_is_the_dense_rewards_and_the_sparse_ones():
    for reward in TRUTHS:
        envs = native(64, reward=reward, predicates=("near", "faces away", "to the side of"))
        envs.reset(seed=0)
        seen = 0
        for _ in range(30):
            observations, rewards, _, _, infos = envs.step(envs.action_space.sample())
            goal = observations["achieved_goal"], observations["desired_goal"]
            assert np.array_equal(envs.compute_reward(*goal), rewards)
            assert np.array_equal(infos["is_success"], infos["is_success_model"])
            assert np.array_equal(infos["is_success"], infos["distance"] < 0)
            seen += infos["is_success"].sum()
        assert seen


def test_compute_reward_refuses_nonsense():
    env = make().unwrapped
    goal = env.reset(seed=0)[0]["achieved_goal"]
    for achieved, desired in ((goal[:-1], goal), (goal, np.stack([goal, goal])), (goal * np.nan, goal)):
        with pytest.raises(RoomError):
            env.compute_reward(achieved, desired, {})


@pytest.mark.parametrize("part", [scene.HALF, scene.FRONT, scene.KIND])
def test_compute_reward_refuses_what_is_no_scene(part):
    env = make().unwrapped
    goal = env.reset(seed=0)[0]["achieved_goal"]
    broken = goal.copy()
    broken[goals.SCENE][part] = 0
    with pytest.raises(RoomError, match="scene 0 of 1"):
        env.compute_reward(broken, goal, {})


def test_a_reward_of_another_world_is_refused():
    with pytest.raises(ValueError, match="judges 2D scenes; the environment has relations in 3D"):
        make().unwrapped.set_reward(Sparse(SceneTruth()))
    with pytest.raises(ValueError, match="judges relations in 3D; the environment has 2D scenes"):
        gym.make("spatialsim_env:SpatialSim-Discrim-v0").unwrapped.set_reward(Sparse(RelationTruth()))


class Yes:
    """A reward that says yes to everything."""

    name, success_threshold = "yes", -0.5

    def __call__(self, achieved, desired):
        return np.zeros(len(achieved))


def test_a_live_reward_is_plugged_in_and_the_truth_stays_beside_it():
    env = make()
    env.unwrapped.set_reward(Yes())
    env.reset(seed=0)
    _, reward, _, _, info = env.step(env.action_space.sample())
    assert reward == info["reward_model"] == 0
    assert info["is_success_model"]
    assert info["reward_true"] == -1
    with pytest.raises(TypeError, match="class Yes"):
        env.unwrapped.set_reward(Yes)


def test_terminate_on_success():
    env = make(predicates="outside", terminate_on_success=True).unwrapped
    env.reset(seed=0)
    for _ in range(30):
        _, _, terminated, _, info = env.step(np.array([0, 0, 1, 0, 0, 0]))
        assert terminated == info["is_success"]
        if terminated:
            return
    pytest.fail("the subject never left")


# --- options, seeds, processes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"predicates": "beside"}, "predicates is 'beside'; accepted are on, "),
        ({"predicates": ("on", "On")}, "predicates is 'On'"),
        ({"predicates": ()}, "one name or several"),
        ({"reward": "no/such/model"}, "no/such/model"),
        ({"reward": "hub:matching"}, "judges 2D scenes"),
        ({"render_mode": "ansi"}, "render_mode is 'ansi'"),
    ],
)
def test_bad_options_are_named(options, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # gymnasium's own, of the render mode
        with pytest.raises((ValueError, TypeError, ImportError), match=message):
            make(**options)


def trajectory(env, seed, steps=60):
    observation, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    record = [observation["achieved_goal"].tobytes() + observation["desired_goal"].tobytes()]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        record.append(observation["achieved_goal"].tobytes() + bytes(str(reward), "ascii"))
        if terminated or truncated:
            observation, _ = env.reset()
    return record


def test_seeded_trajectories_are_equal_after_other_episodes():
    first, second = make(reward="dense"), make(reward="dense")
    trajectory(second, 7, steps=20)
    state = global_random_state()
    assert trajectory(first, 3) == trajectory(second, 3)
    assert state == global_random_state()
    assert len({make().reset()[0]["achieved_goal"].tobytes() for _ in range(3)}) == 3


def reset_hashes():
    env, hashes = make(), []
    for seed in range(6):
        observation, _ = env.reset(seed=seed)
        numbers = np.concatenate([observation["achieved_goal"][goals.STATE], observation["desired_goal"]])
        rounded = np.round(numbers.astype(np.float64), 3) + 0.0
        hashes.append(hashlib.sha256(rounded.tobytes()).hexdigest()[:16])
    return hashes


def test_golden_resets():
    """What a seed gives is part of an id: a change needs a new version of the id and new hashes."""
    assert reset_hashes() == json.loads(GOLDEN.read_text())[spatialsim_env.RELATION_IDS[0]]


def test_pickle_and_deepcopy_in_mid_episode():
    env = make(render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    env.step(env.action_space.sample())
    actions = [env.action_space.sample() for _ in range(5)]
    futures = []
    for world in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env), env):
        futures.append([world.step(action)[0]["achieved_goal"].tobytes() for action in actions])
        futures[-1].append(world.reset()[0]["desired_goal"].tobytes())
    assert futures[0] == futures[1] == futures[2]


def first_observation(env_id):
    return gym.make(env_id).reset(seed=0)[0]["achieved_goal"].tobytes()


def test_the_qualified_id_works_in_a_process():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(first_observation, [ID]) == [first_observation(ID)]


def test_spec_round_trips_through_json():
    env = make(predicates=["on", "under"], reward="dense")
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.reset(seed=5)[0]["desired_goal"].tobytes() == env.reset(seed=5)[0]["desired_goal"].tobytes()


# --- vectors -------------------------------------------------------------------------------------------------------


def assert_same(one, other, where):
    if isinstance(one, dict):
        assert set(one) == set(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, tuple) or (isinstance(one, np.ndarray) and one.dtype == object):
        for row, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{row}]")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        assert np.array_equal(one, other), where
    else:
        assert one == other, where


@pytest.mark.parametrize("mode", AutoresetMode)
def test_parity_with_single_environments_in_turn(mode):
    options = {"max_episode_steps": 7, "reward": "dense", "predicates": ("near", "faces away", "to the side of")}
    options |= {"terminate_on_success": True}
    ours = native(6, autoreset_mode=mode, **options)
    vector = {"vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": mode}}
    theirs = native(6, **vector, **options)
    ours.action_space.seed(1)
    assert_same(ours.reset(seed=2), theirs.reset(seed=2), "reset")
    ended_early = False
    for step in range(25):
        actions = ours.action_space.sample()
        one, other = ours.step(actions), theirs.step(actions)
        for name, a, b in zip(("observation", "reward", "terminated", "truncated", "info"), one, other, strict=True):
            assert_same(a, b, f"{name} at {step}")
        ended_early |= bool(one[2].any())
        ended = one[2] | one[3]
        if mode is AutoresetMode.DISABLED and ended.any():
            begun = [envs.reset(options={"reset_mask": ended.copy()}) for envs in (ours, theirs)]
            assert_same(begun[0], begun[1], f"reset at {step}")
    assert ended_early


def test_hindsight_of_stable_baselines3(monkeypatch):
    sb3 = pytest.importorskip("stable_baselines3")
    model = sb3.SAC(
        "MultiInputPolicy",
        make(max_episode_steps=10),
        replay_buffer_class=sb3.HerReplayBuffer,
        learning_starts=20,
        buffer_size=200,
        batch_size=16,
        policy_kwargs={"net_arch": [8]},
    )
    model.learn(60)
    assert model.num_timesteps == 60


# --- pictures ------------------------------------------------------------------------------------------------------


def test_a_picture_shows_both_objects_and_changes_with_the_scene(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.delenv("DISPLAY", raising=False)
    env = make(render_mode="rgb_array")
    for seed in range(4):
        env.reset(seed=seed)
        first = env.render()
        assert first.dtype == np.uint8
        colors = first.astype(int)
        assert (colors[..., 0] - colors[..., 2] > 100).sum() > 100  # orange: the subject, in the view and the plan
        assert (colors[..., 2] - colors[..., 0] > 60).sum() > 100  # blue: the object
        env.step(np.array([1, 1, 1, 1, 1, 1], np.float32))
        assert (first != env.render()).any()
    env.close()
    env.close()


def test_pictures_of_a_vector():
    pytest.importorskip("pygame")
    envs = native(3, render_mode="rgb_array")
    envs.reset(seed=0)
    frames = envs.render()
    assert len(frames) == 3
    assert envs.tiled().shape[0] >= frames[0].shape[0]
    envs.close()


def test_windows_open_and_close(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    for seed in range(10):
        env = make(render_mode="human")
        env.reset(seed=seed)
        assert pygame.display.get_init()
        assert env.unwrapped.is_shown
        assert env.render() is None
        env.close()
        env.close()
        assert not pygame.display.get_init()


def test_a_near_box_is_drawn_over_a_far_one():
    """Two boxes in line with the observer: its picture's middle is of the near one's colour."""
    pytest.importorskip("pygame")
    from spatialsim_env.relations.world.viewer import RelationViewer

    observer = scene.observers((0.0, -2.5, 1.0), (0.0, 0.0, 0.3))
    near, far = (scene.objects((0, y, 0.3), np.eye(3), (0.2, 0.2, 0.3), 0) for y in (-0.8, 0.8))
    for subject, still, orange in ((near, far, True), (far, near, False)):
        now = np.stack([subject, still])
        frame = RelationViewer().draw(now, observer, ("near",), distance=1.0, step=0)
        left = frame[:, : frame.shape[1] // 2].astype(int)
        middle = left[44 + 368 // 2 + 20, 16 + 368 // 2]
        assert (middle[0] > middle[2]) == orange
