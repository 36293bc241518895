"""Rollouts as a Minari data set: the environment's own episodes, whole or not there."""

from __future__ import annotations

import hashlib

import gymnasium as gym
import numpy as np
import pytest

from spatialsim_env.arrangements.datasets import minari as minari_export
from spatialsim_env.arrangements.datasets.rollouts import Rollouts, RolloutWorld

minari = pytest.importorskip("minari")
pytest.importorskip("h5py")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:minari.*")
WORLD = RolloutWorld({"n_objects": (3, 4), "action_mode": "pick_place"}, horizon=12)
ROLLOUTS = Rollouts(WORLD, (WORLD.policy("expert"), WORLD.policy("random")), seed=3, per_shard=4)
NAME = "spatialsim/n3-v0"


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def test_episodes_are_those_of_the_environment(root):
    minari_export.write(ROLLOUTS, NAME, "train", 6)
    stored = minari.load_dataset(NAME)
    assert (stored.total_episodes, stored.total_steps) == (6, 6 * 12)
    assert set(minari.list_local_datasets()) == {NAME}
    seeds = [metadata["seed"] for metadata in stored.storage.get_episode_metadata(range(6))]
    env = gym.make(WORLD.env_id, max_episode_steps=12, **WORLD.options)
    for index, (episode, seed) in enumerate(zip(stored.iterate_episodes(), seeds, strict=True)):
        observation, info = env.reset(seed=seed)
        for step in range(13):
            for key, value in observation.items():
                assert np.array_equal(episode.observations[key][step], value)
            assert episode.infos["distance"][step] == info["distance"]
            assert episode.infos["is_success"][step] == info["is_success"]
            if step == 12:
                break
            observation, reward, terminated, truncated, info = env.step(episode.actions[step])
            assert episode.rewards[step] == reward
            assert (episode.terminations[step], episode.truncations[step]) == (terminated, truncated)
        assert set(episode.infos["policy"]) == {index % 2}


def test_the_environment_comes_back(root):
    minari_export.write(ROLLOUTS, NAME, "train", 2)
    env = minari.load_dataset(NAME).recover_environment()
    assert env.spec.kwargs["action_mode"] == "pick_place"
    assert env.spec.max_episode_steps == 12
    env.close()


def test_same_bytes(root, monkeypatch):
    digests = []
    for name in ("one", "other"):
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(root / name))
        folder = minari_export.write(ROLLOUTS, NAME, "train", 5)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        digests.append([(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files])
    assert digests[0] == digests[1]
    assert len(digests[0]) == 2


def test_a_set_is_kept_and_a_failure_leaves_nothing(root):
    minari_export.write(ROLLOUTS, NAME, "train", 2)
    with pytest.raises(FileExistsError, match="is there already"):
        minari_export.write(ROLLOUTS, NAME, "train", 3)
    assert minari.load_dataset(NAME).total_episodes == 2

    class Broken:
        name = "broken"

        def __call__(self, achieved, desired, rng):
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        minari_export.write(Rollouts(WORLD, (Broken(),)), "spatialsim/other-v0", "train", 2)
    assert [path.name for path in (root / "spatialsim").iterdir() if path.is_dir()] == ["n3-v0"]


def test_discrete_actions(root):
    world = RolloutWorld({"n_objects": 3, "action_mode": "discrete", "reference_seed": 1}, horizon=5)
    minari_export.write(Rollouts(world, (world.policy("random"),)), "ident-v0", "train", 2)
    stored = minari.load_dataset("ident-v0")
    assert all(stored.action_space.contains(action) for episode in stored for action in episode.actions)
