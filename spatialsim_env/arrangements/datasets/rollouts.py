"""Rollouts as data: what happens to scenes under a policy, as labelled pairs for classifiers.

A pair is the goal of an episode (``target``, the transformed scene) and the scene in the arena at one step
(``reference``), labelled by the truth. Columns beside it: ``distance`` (the truth's), ``step`` (0 is the start),
``policy`` (its place in the settings' ``policies``) and ``seed`` of the episode: ``reset(seed=seed)`` of the
environment with the settings' options begins it. A step that leaves the scene as it was gives no pair, so a policy
that has arrived and waits does not fill the set with copies.

Of the pairs that remain most are negative: an expert's episode ends in a few positives, a random one in none. With
``balanced`` each shard keeps as many of one label as of the other, drawn without replacement from those it has.

``write`` makes one set in shards (``shards.py``), ``FOLDER/train`` or ``FOLDER/valid``. A shard is a function of
world, policies, seed, the part's name and its own number: run again, what is there stays, and more episodes are more
shards. The same arguments give the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from gymnasium.utils.seeding import np_random
from numpy.typing import NDArray

from spatialsim_env import HORIZON
from spatialsim_env.arrangements.datasets import named, shards
from spatialsim_env.arrangements.dynamics import DIRECTIONS, SceneDynamics
from spatialsim_env.arrangements.expert import Expert
from spatialsim_env.arrangements.similarities import ANGLES, SCALES
from spatialsim_env.arrangements.tasks import Samples
from spatialsim_env.arrangements.world import SceneWorld, discrimination, identification
from spatialsim_env.checks import check_seed
from spatialsim_env.core.world import split
from spatialsim_env.streams import stream

POLICIES = ("random", "expert")
EPISODES = "episodes"  # key of the settings: how many
_MOST_SEED = 2**62


class RolloutPolicy(Protocol):
    """Policy of rollouts: maps goals to actions."""

    @property
    def name(self) -> str:
        """Its name in the settings of a set."""

    def __call__(
        self, achieved: NDArray[np.float32], desired: NDArray[np.float32], rng: np.random.Generator
    ) -> NDArray[Any]:
        """One action for each pair of scenes: (B, n_max, 10), (B, n_max, 10) -> (B, ...) of the action space."""


@dataclass(frozen=True)
class Random:
    """Actions drawn uniformly from the action space."""

    dynamics: SceneDynamics
    name = "random"

    def __call__(
        self, achieved: NDArray[np.float32], desired: NDArray[np.float32], rng: np.random.Generator
    ) -> NDArray[Any]:
        if self.dynamics.mode == "discrete":
            choices = len(DIRECTIONS) if self.dynamics.max_turn > 0 else 4
            return rng.integers(0, (self.dynamics.n_max, choices), (len(achieved), 2))
        shape = self.dynamics.action_space.shape or ()
        return 2 * rng.random((len(achieved), *shape), np.float32) - 1


@dataclass(frozen=True)
class RolloutWorld:
    """Environment of rollouts, as its id and options.

    Raises:
        ValueError, TypeError: what the environment's constructor raises, when it is first asked for.
    """

    options: Mapping[str, Any]  # keywords of the environment; one with a reference_seed is SpatialSim-Ident-v0
    horizon: int = HORIZON  # steps per episode

    @property
    def env_id(self) -> str:
        """Its id for ``gym.make``."""
        kind = "Discrim" if self.options.get("reference_seed") is None else "Ident"
        return f"spatialsim_env:SpatialSim-{kind}-v0"

    @cached_property
    def world(self) -> SceneWorld:
        """The world of the options."""
        kind = discrimination if self.options.get("reference_seed") is None else identification
        return split(kind, (), dict(self.options))[0]

    @property
    def settings(self) -> dict[str, Any]:
        """Its entries in a manifest, as JSON gives them back; ranges of the goals where they are narrower."""
        world, episodes = self.world, self.world.episodes
        criterion = world.truth.criterion
        low, high = episodes.object_range
        entries = {
            "n_objects": low if low == high else [low, high],
            "action_mode": world.dynamics.mode,
            "max_turn": world.dynamics.max_turn,
            "criterion": criterion.name,
            "tolerances": list(criterion.tolerances),
            "orientation": criterion.orientation,
            "start": self.options.get("start", episodes.start.name),
            "reference_seed": episodes.reference_seed,
            "horizon": self.horizon,
        }
        goals = {"goal_scale": (episodes.goal_scale, SCALES), "goal_angle": (episodes.goal_angle, ANGLES)}
        entries |= {name: list(own) for name, (own, usual) in goals.items() if own != usual}
        return json.loads(json.dumps(entries))

    def policy(self, name: str) -> RolloutPolicy:
        """ "random" or "expert".

        Raises:
            ValueError: another name.
        """
        if name == "random":
            return Random(self.world.dynamics)
        if name == "expert":
            return Expert(self.world.dynamics, self.world.truth.criterion)
        raise ValueError(f"policy is {name!r}; accepted are {', '.join(POLICIES)}")


@dataclass(frozen=True)
class Played:
    """B whole episodes of T steps."""

    achieved: NDArray[np.float32]  # (T + 1, B, n_max, 10) the scenes in the arena, the start first
    desired: NDArray[np.float32]  # (B, n_max, 10) their goals
    actions: NDArray[Any]  # (T, B, ...)
    distance: NDArray[np.float64]  # (T + 1, B) the truth's
    policy: NDArray[np.uint8]  # (B,) which of the policies acted
    seed: NDArray[np.int64]  # (B,) of the episode


def play(
    world: RolloutWorld, policies: Sequence[RolloutPolicy], seeds: NDArray[np.int64], rng: np.random.Generator
) -> Played:
    """Episodes that begin as the environment's do with ``reset(seed=seed)``, side by side; the policies take turns.

    Args:
        seeds: (B,) of the episodes.
        rng: for policies that draw.
    """
    episodes, dynamics, criterion = world.world.episodes, world.world.dynamics, world.world.truth.criterion
    blocks = [np_random(int(seed))[0].random((1, episodes.n_uniform), np.float32) for seed in seeds]
    begun = episodes.begin(np.concatenate(blocks))
    policy = (np.arange(len(seeds)) % len(policies)).astype(np.uint8)
    scenes, distances, actions = [begun.achieved], [begun.distance], []
    space = dynamics.action_space
    for _ in range(world.horizon):
        chosen = np.empty((len(seeds), *(space.shape or ())), space.dtype)
        for index, act in enumerate(policies):
            rows = policy == index
            if rows.any():
                chosen[rows] = act(scenes[-1][rows], begun.desired[rows], rng)
        actions.append(chosen)
        scenes.append(dynamics.step(scenes[-1], chosen))
        distances.append(criterion.align(scenes[-1], begun.desired).distance)
    return Played(np.stack(scenes), begun.desired, np.stack(actions), np.stack(distances), policy, seeds)


def pairs(
    episodes: Played, balanced: bool = False, rng: np.random.Generator | None = None
) -> tuple[Samples, dict[str, NDArray[Any]]]:
    """The labelled pairs of episodes, one episode after the other, and their columns.

    Args:
        balanced: keep as many of one label as of the other; none, if all have one label.
        rng: draws those that are kept.
    """
    changed = np.ones(episodes.distance.shape, bool)
    changed[1:] = (episodes.achieved[1:] != episodes.achieved[:-1]).any(axis=(2, 3))
    episode, step = np.nonzero(changed.T)
    distance = episodes.distance[step, episode]
    label = distance <= 1
    if balanced:
        kept = _balance(label, rng or np.random.default_rng())
        episode, step, distance, label = episode[kept], step[kept], distance[kept], label[kept]
    samples = Samples(episodes.desired[episode], episodes.achieved[step, episode], label.astype(np.float32))
    columns: dict[str, NDArray[Any]] = {
        "distance": distance,
        "step": step.astype(np.int32),
        "policy": episodes.policy[episode],
        "seed": episodes.seed[episode],
    }
    return samples, columns


def _balance(label: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """Places of as many of one label as of the other, in order."""
    sides = [np.flatnonzero(label == value) for value in (False, True)]
    size = min(map(len, sides))
    return np.sort(np.concatenate([rng.choice(side, size, replace=False) for side in sides]))


@dataclass(frozen=True)
class Rollouts:
    """Arguments of a set of rollouts; equal ones give equal bytes."""

    world: RolloutWorld
    policies: tuple[RolloutPolicy, ...]  # they take turns, episode by episode
    seed: int = 0
    balanced: bool = False  # as many pairs of one label as of the other, in each shard
    per_shard: int = 1_000  # episodes

    def __post_init__(self) -> None:
        check_seed("seed", self.seed)
        for name, value in (("per_shard", self.per_shard), ("horizon", self.world.horizon)):
            _require_from_one(name, value)
        if not self.policies:
            raise ValueError("there is no policy; accepted is at least one")

    def settings(self, part: str) -> dict[str, Any]:
        """Return the settings in the manifest of a part."""
        return {
            "source": "rollouts",
            **self.world.settings,
            "policies": [policy.name for policy in self.policies],
            "seed": self.seed,
            "balanced": self.balanced,
            "part": part,
            "per_shard": self.per_shard,
        }

    def shard(self, part: str, index: int, episodes: int | None = None) -> tuple[Played, np.random.Generator]:
        """The episodes of a shard, or its first ones, and its generator behind them."""
        rng = stream(self.seed, f"rollouts/{part}/{index}")
        seeds = rng.integers(_MOST_SEED, size=self.per_shard)[:episodes]
        return play(self.world, self.policies, seeds, rng), rng

    def sizes(self, episodes: int) -> list[int]:
        """Episodes of each shard of a part of ``episodes``.

        Raises:
            ValueError: no episodes.
        """
        _require_from_one("episodes", episodes)
        return [min(self.per_shard, episodes - start) for start in range(0, episodes, self.per_shard)]

    def write(
        self,
        folder: str | os.PathLike[str],
        part: str,
        episodes: int,
        on_shard: Callable[[Path, bool], None] = lambda manifest, made: None,
    ) -> Path:
        """Write a part of ``episodes`` under a folder, or what is missing of it; returns the path of its manifest.

        Args:
            part: a name, as "train" or "valid"; parts of different names hold different episodes.
            on_shard: called after each shard with its path, and whether it was made now.

        Raises:
            ValueError: no episodes, other rollouts in their place, or ``balanced`` and pairs of one label alone.
            OSError: the files cannot be written; nothing half-written is left under the names.
        """
        path, sizes, settings = Path(folder) / part, self.sizes(episodes), self.settings(part)
        for index, size in enumerate(sizes):
            shard, own = shards.shard_path(path, index), settings | {"shard": index, EPISODES: size}
            made = not shards.is_whole(shard, own)
            if made:
                _refuse_others(shard, own)
                played, rng = self.shard(part, index, size)
                samples, columns = pairs(played, self.balanced, rng)
                named.save(samples, shard, own, columns)
            on_shard(shard, made)
        if not any(named.read_manifest(shards.shard_path(path, index))["samples"] for index in range(len(sizes))):
            raise ValueError(
                f"all pairs of {', '.join(policy.name for policy in self.policies)} have one label; accepted are "
                "policies that bring both, as random with expert, or pairs that are not balanced"
            )
        return shards.join(path, len(sizes), settings | {EPISODES: episodes})


def _refuse_others(shard: Path, settings: dict[str, Any]) -> None:
    """Refuse to replace rollouts of other settings; the number of episodes may grow."""
    try:
        there = named.read_manifest(shard)["settings"]
    except named.DataSetError:
        return
    keys = sorted(key for key in settings | there if key != EPISODES and settings.get(key) != there.get(key))
    if keys:
        changes = ", ".join(f"{key}: {there.get(key)!r} there, {settings.get(key)!r} now" for key in keys)
        raise ValueError(f"{shard} holds other rollouts ({changes}); give another folder or remove it")


def _require_from_one(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} is {value!r}; accepted is an int from 1")
