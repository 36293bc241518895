"""What every world of the registry keeps, whatever it is made of."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from spatialsim_env import registry
from spatialsim_env.core.judges import Pairs
from spatialsim_env.core.many import ManyWorlds
from spatialsim_env.core.one import OneWorld
from spatialsim_env.core.rewards import TRUTHS
from spatialsim_env.core.world import Given
from spatialsim_env.testing import assert_batch_independent, assert_environment, assert_pure

COPIES, STEPS = 6, 30
every_world = pytest.mark.parametrize("name", registry.WORLDS)
every_reward = pytest.mark.parametrize("reward", TRUTHS)


def made(name: str):
    return registry.factory(name)()


def streams(seed: int = 0, copies: int = COPIES):
    return [np.random.default_rng([seed, row]) for row in range(copies)]


def wandered(world, copies: int = COPIES, steps: int = STEPS):
    """Moments of episodes under random actions."""
    now, space = world.begin(streams(copies=copies)), world.dynamics.action_space
    space.seed(0)
    for _ in range(steps):
        yield now
        now = world.step(now, np.stack([space.sample() for _ in range(copies)]))


@every_world
def test_names(name):
    world = made(name)
    assert world.name == name == world.truth.world
    assert {environment.world for environment in registry.ENVIRONMENTS.values()} == set(registry.WORLDS)


@every_world
@every_reward
def test_both_checkers_pass_without_a_warning(name, reward):
    check_sb3 = pytest.importorskip("stable_baselines3.common.env_checker").check_env
    assert_environment(OneWorld(made(name), reward=reward), steps=STEPS)
    check_sb3(OneWorld(made(name), reward=reward))


@every_world
@every_reward
def test_one_and_many_agree_bit_for_bit(name, reward):
    many = ManyWorlds(made(name), reward, num_envs=3)
    ones = [OneWorld(made(name), reward) for _ in range(3)]
    seen, _ = many.reset(seed=4)
    alone = [one.reset(seed=4 + row) for row, one in enumerate(ones)]
    many.action_space.seed(0)
    for _ in range(STEPS):
        for key, batch in seen.items():
            assert np.array_equal(batch, np.stack([observation[key] for observation, *_ in alone]))
        actions = many.action_space.sample()
        seen, rewards, *_, infos = many.step(actions)
        alone = [one.step(action) for one, action in zip(ones, actions, strict=True)]
        assert rewards.tolist() == [step[1] for step in alone]
        for key, value in alone[0][-1].items():
            assert infos[key].tolist() == [step[-1][key] for step in alone], key
            assert infos[key].dtype == np.asarray(value).dtype


@every_world
def test_goals_make_the_round_trip_to_a_question(name):
    """A question made of two arrays alone is answered as the moment of a step is."""
    world = made(name)
    for now in wandered(world):
        observed = world.goals.observe(now)
        goals = [world.goals.batch(observed[key]) for key in ("achieved_goal", "desired_goal")]
        assert all(batched for _, batched in goals)
        (achieved, _), (desired, _) = goals
        world.goals.check(achieved, desired)
        asked = world.truth.asked(world.goals.question(achieved, desired))
        assert world.truth.asked(now) is now
        assert np.allclose(asked.distance, now.distance)
        for answer in (world.truth.score, world.truth.achieved, world.truth.shaped):
            assert np.allclose(answer(asked), answer(now))
        assert np.array_equal(asked.achieved, now.achieved)
        assert np.array_equal(asked.desired, now.desired)


@every_world
def test_the_truth_is_a_judge(name):
    world = made(name)
    for now in wandered(world, copies=40, steps=5):
        achieved = world.truth.achieved(now)
        assert np.array_equal(achieved, world.truth.score(now) >= world.truth.threshold)
        assert np.array_equal(achieved, world.truth.shaped(now) >= world.truth.shaped_threshold)
        assert np.isfinite(world.truth.score(now)).all()
        for reward in TRUTHS.values():
            values = reward(world.truth)
            assert values.world == name
            assert np.array_equal(achieved, values.of(now) >= values.success_threshold)
            assert_pure(values, now.achieved, now.desired)
            assert_batch_independent(values, now.achieved, now.desired)


@every_world
def test_rows_and_replacement(name):
    now, other = (made(name).begin(streams(seed)) for seed in (0, 1))
    some = now.replaced([1, 4], other.rows([1, 4]))
    for part in ("achieved", "desired", "state", "distance"):
        first, second, mixed = (getattr(moment, part) for moment in (now, other, some))
        assert np.array_equal(mixed[[1, 4]], second[[1, 4]])
        assert np.array_equal(mixed[[0, 2, 3, 5]], first[[0, 2, 3, 5]])


@every_world
def test_everything_can_be_pickled(name):
    env = OneWorld(made(name), "dense", render_mode="rgb_array")
    env.reset(seed=3)
    env.action_space.seed(0)
    copies = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    action = env.action_space.sample()
    expected = env.step(action)
    for other in copies:
        observation, *rest = other.step(action)
        assert rest == list(expected[1:])
        assert all(np.array_equal(observation[key], expected[0][key]) for key in observation)


@every_world
def test_a_reward_of_another_world_is_refused(name):
    for other in registry.WORLDS:
        if other != name:
            with pytest.raises(ValueError, match=f"'sparse' judges {other}; the environment has {name}"):
                OneWorld(made(name)).set_reward(TRUTHS["sparse"](made(other).truth))


@every_world
@pytest.mark.parametrize("parts", [("achieved",), ("desired",), ("achieved", "desired")], ids="+".join)
def test_episodes_begin_from_what_is_given(name, parts):
    world = made(name)
    one = world.begin(streams(7, 1))  # whose objects all episodes have
    many = one.rows(np.zeros(COPIES, int))
    numbers = streams(8)
    now = world.begin(numbers, Given(**{part: getattr(many, part) for part in parts}))
    for part in parts:
        assert np.array_equal(getattr(now, part), getattr(many, part))
    for part in {"achieved", "desired"} - set(parts):
        assert len(np.unique(getattr(now, part), axis=0)) > 1
    assert not world.truth.achieved(now).any()
    assert np.allclose(now.distance, world.truth.asked(Pairs(now.achieved, now.desired)).distance)
    plain = streams(8)
    world.begin(plain)
    assert [a.random() for a in numbers] == [b.random() for b in plain]  # streams do not shift


@every_world
def test_what_is_given_is_checked(name):
    world = made(name)
    now = world.begin(streams())
    with pytest.raises(ValueError, match="6 goals are given; accepted is one for each of 2 episodes"):
        world.begin(streams(copies=2), Given(now.achieved))
    broken = np.array(now.achieved)
    broken[0] = np.nan
    with pytest.raises(ValueError, match="numbers that are not finite"):
        world.begin(streams(), Given(broken))
    for given in (Given(desired=now.desired * 0), Given(now.achieved, now.desired * 0)):
        with pytest.raises(ValueError, match=r"requires nothing|holds no object"):
            world.begin(streams(), given)


@every_world
def test_hindsight_makes_goals_of_the_world(name):
    world = made(name)
    now = world.begin(streams(copies=50))
    later = world.goals.observe(now)["achieved_goal"]
    goals, again = (world.goals.relabel(later, np.random.default_rng(0)) for _ in range(2))
    assert np.array_equal(goals, again)
    assert (goals.shape, goals.dtype) == (later.shape, np.float32)
    assert all(world.goals.space["desired_goal"].contains(goal) for goal in goals)
    batches = (world.goals.batch(array)[0] for array in (later, goals))
    assert world.truth.achieved(world.goals.question(*batches)).mean() > 0.4  # in 3D half of them held


@every_world
def test_pictures(name):
    pytest.importorskip("pygame")
    env = OneWorld(made(name), render_mode="rgb_array")
    env.reset(seed=0)
    many = ManyWorlds(made(name), render_mode="rgb_array", num_envs=2)
    many.reset(seed=0)
    frame, frames = env.render(), many.render()
    assert frame.dtype == np.uint8
    assert np.array_equal(frame, frames[0])
    assert not np.array_equal(frames[0], frames[1])
    env.close()
    many.close()
