"""Rollouts as data: the environment's own episodes, the truth's own labels, the same bytes however they came about."""

from __future__ import annotations

import hashlib

import gymnasium as gym
import numpy as np
import pytest

from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.datasets import named, rollouts, shards
from spatialsim_env.arrangements.datasets.rollouts import Rollouts, RolloutWorld, pairs, play
from spatialsim_env.arrangements.dynamics import MODES

WORLD = RolloutWorld({"n_objects": (3, 5)}, horizon=20)


def wanted(world=WORLD, names=("expert", "random"), **options) -> Rollouts:
    return Rollouts(world, tuple(world.policy(name) for name in names), **{"seed": 2, "per_shard": 6, **options})


def played(world=WORLD, size=12, names=("expert", "random")):
    policies = [world.policy(name) for name in names]
    return play(world, policies, np.arange(100, 100 + size), np.random.default_rng(0))


def digests(folder) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# --- episodes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        *({"n_objects": (3, 5), "action_mode": mode} for mode in MODES),
        {"n_objects": 4, "criterion": "positions", "start": "poses", "max_turn": 0.2},
        {"n_objects": 5, "reference_seed": 3},
    ],
    ids=str,
)
def test_episodes_are_those_of_the_environment(options):
    world = RolloutWorld(options, horizon=8)
    episodes = played(world, 6)
    env = gym.make(world.env_id, max_episode_steps=8, **options)
    for i, seed in enumerate(episodes.seed):
        observation, info = env.reset(seed=int(seed))
        for step in range(9):
            assert np.array_equal(episodes.achieved[step, i].ravel(), observation["achieved_goal"])
            assert np.array_equal(episodes.desired[i].ravel(), observation["desired_goal"])
            assert episodes.distance[step, i] == info["distance"]
            if step < 8:
                observation, *_, info = env.step(episodes.actions[step, i])
    assert episodes.policy.tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("mode", MODES)
def test_random_actions_cover_the_space(mode):
    world = RolloutWorld({"n_objects": 3, "action_mode": mode})
    actions = world.policy("random")(np.zeros((2000, 3, 10)), np.zeros((2000, 3, 10)), np.random.default_rng(0))
    space = world.world.dynamics.action_space
    assert all(space.contains(action.astype(space.dtype)) for action in actions)
    if mode == "discrete":
        assert len(np.unique(actions, axis=0)) == 18
    else:
        assert np.abs(actions.mean(axis=0)).max() < 0.06  # 4.6 standard errors of a uniform's mean
        assert actions.min() < -0.99
        assert actions.max() > 0.99


def test_unknown_policies_and_numbers_are_refused():
    with pytest.raises(ValueError, match="policy is 'best'; accepted are random, expert"):
        WORLD.policy("best")
    with pytest.raises(ValueError, match="there is no policy"):
        Rollouts(WORLD, ())
    with pytest.raises(ValueError, match="per_shard is 0; accepted is an int from 1"):
        wanted(per_shard=0)
    with pytest.raises(ValueError, match="horizon is 0"):
        wanted(RolloutWorld({"n_objects": 3}, horizon=0))
    with pytest.raises(ValueError, match="seed is -1"):
        wanted(seed=-1)
    with pytest.raises(ValueError, match="action_mode is 'fly'"):
        RolloutWorld({"n_objects": 3, "action_mode": "fly"}).policy("random")


# --- pairs ----------------------------------------------------------------------------------------------------------


def test_pairs_are_labelled_by_the_truth():
    episodes = played()
    samples, columns = pairs(episodes)
    distance = goals.distance(samples.reference, samples.target)
    assert np.array_equal(columns["distance"], distance)
    assert np.array_equal(samples.label, (distance <= 1).astype(np.float32))
    where = [episodes.seed.tolist().index(seed) for seed in columns["seed"]]
    assert np.array_equal(samples.reference, episodes.achieved[columns["step"], where])
    assert np.array_equal(samples.target, episodes.desired[where])
    assert np.array_equal(columns["policy"], episodes.policy[where])
    assert set(samples.label[columns["policy"] == 0]) == {0, 1}


def test_every_scene_of_an_episode_is_there_once():
    episodes = played()
    samples, columns = pairs(episodes)
    for i, seed in enumerate(episodes.seed):
        rows = columns["seed"] == seed
        steps = columns["step"][rows]
        changes = [0] + [t for t in range(1, 21) if (episodes.achieved[t, i] != episodes.achieved[t - 1, i]).any()]
        assert steps.tolist() == changes
        if episodes.policy[i] == 0:
            assert len(steps) < 20  # the expert has arrived, and waits
            assert len(np.unique(samples.reference[rows], axis=0)) == len(steps)


def test_balanced_pairs_are_as_many_of_each_label():
    episodes = played(size=30)
    everything, columns = pairs(episodes)
    positive = int(everything.label.sum())
    assert 0 < 2 * positive < len(everything)
    samples, kept = pairs(episodes, True, np.random.default_rng(1))
    assert (len(samples), samples.label.sum()) == (2 * positive, positive)
    keys = [set(zip(part["seed"].tolist(), part["step"].tolist(), strict=True)) for part in (kept, columns)]
    assert len(keys[0]) == len(samples)
    assert keys[0] <= keys[1]
    again, _ = pairs(episodes, True, np.random.default_rng(1))
    assert np.array_equal(samples.reference, again.reference)
    assert not np.array_equal(samples.reference, pairs(episodes, True, np.random.default_rng(2))[0].reference)


def test_one_label_alone_cannot_be_balanced(tmp_path):
    samples, _ = pairs(played(names=("random",)), True, np.random.default_rng(0))
    assert len(samples) == 0
    with pytest.raises(ValueError, match="all pairs of random have one label; accepted are policies that bring both"):
        wanted(names=("random",), balanced=True).write(tmp_path, "train", 3)
    assert not (tmp_path / "train.json").exists()


# --- sets -----------------------------------------------------------------------------------------------------------


def test_same_bytes_however_they_came_about(tmp_path, monkeypatch):
    wanted(balanced=True).write(tmp_path / "one", "train", 15)
    wanted(balanced=True).write(tmp_path / "grown", "train", 7)
    wanted(balanced=True).write(tmp_path / "grown", "train", 15)
    save, done = named.save, []

    def killed(*arguments):
        if done:
            raise KeyboardInterrupt
        done.append(save(*arguments))

    monkeypatch.setattr(named, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        wanted(balanced=True).write(tmp_path / "killed", "train", 15)
    assert not (tmp_path / "killed" / "train.json").exists()
    monkeypatch.undo()
    told = []
    wanted(balanced=True).write(tmp_path / "killed", "train", 15, lambda path, made: told.append((path.name, made)))
    assert told == [("00000", False), ("00001", True), ("00002", True)]
    assert digests(tmp_path / "one") == digests(tmp_path / "grown") == digests(tmp_path / "killed")
    assert len(digests(tmp_path / "one")) == 7


def test_a_set_says_what_it_is_and_comes_back(tmp_path):
    manifest = wanted().write(tmp_path, "train", 8)
    settings = named.read_manifest(manifest)["settings"]
    assert settings["policies"] == ["expert", "random"]
    assert (settings["n_objects"], settings["episodes"], settings["horizon"]) == ([3, 5], 8, 20)
    samples, columns = shards.load(tmp_path / "train"), shards.load_columns(tmp_path / "train")
    assert set(columns) == {"distance", "step", "policy", "seed"}
    assert {len(column) for column in columns.values()} == {len(samples)}
    assert len(np.unique(columns["seed"])) == 8
    first, rng = wanted().shard("train", 0)
    assert np.array_equal(pairs(first, False, rng)[0].reference, samples.reference[: len(pairs(first)[0])])


def test_parts_seeds_and_shards_hold_different_episodes():
    seeds = [
        wanted(seed=seed).shard(part, index)[0].seed
        for seed, part, index in ((2, "train", 0), (2, "train", 1), (2, "valid", 0), (3, "train", 0))
    ]
    assert len(np.unique(seeds)) == 24


def test_other_rollouts_are_not_replaced(tmp_path):
    wanted().write(tmp_path, "train", 3)
    before = digests(tmp_path)
    with pytest.raises(ValueError, match=r"holds other rollouts \(seed: 2 there, 5 now\)"):
        wanted(seed=5).write(tmp_path, "train", 3)
    with pytest.raises(ValueError, match=r"policies: \['expert', 'random'\] there, \['expert'\] now"):
        wanted(names=("expert",)).write(tmp_path, "train", 3)
    narrow = RolloutWorld({"n_objects": (3, 5), "goal_scale": (0.5, 0.6)}, horizon=20)
    with pytest.raises(ValueError, match=r"goal_scale: None there, \[0\.5, 0\.6\] now"):
        wanted(narrow).write(tmp_path, "train", 3)
    with pytest.raises(ValueError, match="episodes is 0"):
        wanted().write(tmp_path, "train", 0)
    assert digests(tmp_path) == before


def test_a_damaged_shard_is_made_again(tmp_path):
    wanted().write(tmp_path, "train", 3)
    before = digests(tmp_path)
    (tmp_path / "train" / "00000.npz").write_bytes(b"cut")
    wanted().write(tmp_path, "train", 3)
    assert digests(tmp_path) == before


def test_any_policy_will_do(tmp_path):
    class Still:
        name = "still"

        def __call__(self, achieved, desired, rng):
            return np.zeros((len(achieved), 15), np.float32)

    rollouts.Rollouts(WORLD, (Still(),)).write(tmp_path, "train", 4)
    assert shards.load_columns(tmp_path / "train")["step"].tolist() == [0, 0, 0, 0]
