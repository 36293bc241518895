"""Rollouts as a Minari data set, for programs that learn from whole episodes: observations, actions, rewards.

Minari keeps its sets under ``MINARI_DATASETS_PATH`` (by default ``~/.minari/datasets``); ``minari.load_dataset(id)``
finds them there. An episode has the observations of the environment, the truth's sparse reward, its own seed, and as
infos, start included, the truth's ``distance`` and ``is_success`` and which ``policy`` of the set acted. The horizon
truncates and nothing terminates.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from spatialsim_env.arrangements.datasets.rollouts import Played, Rollouts


def write(rollouts: Rollouts, dataset_id: str, part: str, episodes: int) -> Path:
    """Write the episodes that ``rollouts.write`` makes pairs of as a Minari data set; returns its folder.

    The set is made under another name and renamed, so it is whole or not there; a set that is there is kept.

    Args:
        dataset_id: as "spatialsim/n5-expert-v0".
        part: of the rollouts, as "train".

    Raises:
        FileExistsError: there is a set of this name.
        ImportError: Minari is not installed.
        ValueError: Minari does not accept the name, or no episodes.
    """
    try:
        import minari
        from minari.dataset.minari_dataset import parse_dataset_id
        from minari.dataset.minari_storage import MinariStorage
        from minari.namespace import create_namespace, list_local_namespaces
        from minari.storage.datasets_root_dir import get_dataset_path
    except ImportError as error:
        raise ImportError(
            f'a Minari data set needs its package: pip install "spatialsim-env[data]" ({error})'
        ) from error
    sizes = rollouts.sizes(episodes)
    namespace, *_ = parse_dataset_id(dataset_id)
    target = get_dataset_path(dataset_id)
    if target.exists():
        raise FileExistsError(f"{target} is there already; give another name or version, or remove it")
    world = rollouts.world
    env = gym.make(world.env_id, max_episode_steps=world.horizon, **world.options)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        (temporary / "data").mkdir(parents=True)
        storage = MinariStorage.new(
            temporary / "data",
            observation_space=env.observation_space,
            action_space=env.action_space,
            env_spec=env.spec,
        )
        names = ", ".join(policy.name for policy in rollouts.policies)
        storage.update_metadata(
            {
                "dataset_id": dataset_id,
                "minari_version": minari.__version__,
                "algorithm_name": names,
                "description": f"Rollouts of {names} from spatialsim-env, seed {rollouts.seed}, part {part}.",
            }
        )
        for index, size in enumerate(sizes):
            storage.update_episodes(_episodes(rollouts.shard(part, index, size)[0]))
        if namespace is not None and namespace not in list_local_namespaces():
            create_namespace(namespace)
        os.replace(temporary, target)
    finally:
        env.close()
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _episodes(played: Played) -> Iterator[Any]:
    """Minari's form of each episode."""
    from minari.data_collector import EpisodeBuffer

    scenes = played.achieved.swapaxes(0, 1).reshape(len(played.seed), len(played.achieved), -1)
    steps = len(played.actions)
    for i in range(len(played.seed)):
        goal = np.repeat(played.desired[i].reshape(1, -1), steps + 1, axis=0)
        distance = played.distance[:, i]
        yield EpisodeBuffer(
            seed=int(played.seed[i]),
            observations={"observation": scenes[i], "achieved_goal": scenes[i], "desired_goal": goal},
            actions=played.actions[:, i],
            rewards=list(np.where(distance[1:] <= 1, 0.0, -1.0)),
            terminations=[False] * steps,
            truncations=[False] * (steps - 1) + [True],
            infos={
                "distance": distance,
                "is_success": distance <= 1,
                "policy": np.full(steps + 1, played.policy[i]),
            },
        )
