"""Runs of the study of agents as data: an id says what is run, the same on a laptop and a cluster.

- ``rewards/NETWORK``: a network trained on the benchmark, the reward of agents;
- ``rollouts/NETWORK``: the same network trained on what a random policy and the expert do in the environment;
- ``agents/CONFIG/REWARD/seedN``: an agent trained on a reward, by the truth (``sparse``, ``dense``) or a network;
- ``agents/CONFIG/cloned/seedN``: an agent that imitates the expert;
- ``agents/CONFIG/random`` and ``agents/CONFIG/expert``: policies without training, in the same episodes;
- ``generalisation/CONFIG/WHERE``: a finished agent where it was not trained, and what the networks say of it there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from reward_models.agents.configs import AgentConfig, by_name
from reward_models.studies.engine.study import Json, Unit, as_json
from reward_models.training.config import REDRAWN, TrainingConfig
from spatialsim_env.arrangements.scene import TURN

VERSION = 1  # raised whenever a change of the code alters results; rows of two versions are never mixed

SEEDS = (0, 1, 2)
ONE_SEED = (0,)
EPISODES = 500  # of each evaluation
FIRST_EPISODE = 10_000  # seed of the first one; all policies play the same
TRUTHS = ("sparse", "dense")
NETWORKS = {  # the learned rewards: the paper's network in its protocol, the matching network on harder negatives
    "matching": TrainingConfig.plain("matching", negative="mixture"),
    "mpgnn": TrainingConfig("mpgnn"),
}
REWARDS = (*TRUTHS, *NETWORKS)

# what is trained on what, with which seeds
TRAINED: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "discrim_n3": (REWARDS, SEEDS),
    "discrim_n5": (REWARDS, SEEDS),
    "discrim_n8": (("sparse",), ONE_SEED),
    "discrim": (("sparse",), ONE_SEED),
    "ident_n5": (("sparse",), ONE_SEED),
    "pick_place_n3": (("sparse",), SEEDS),
    "discrete_n3": (("dense", "sparse"), SEEDS),  # without hindsight, the sparse truth says nothing for long
    "positions_n5": (("sparse",), ONE_SEED),
    "discrim_3_5": (("sparse",), ONE_SEED),
    "discrim_n5_narrow": (("sparse",), ONE_SEED),
}
CLONED = ("discrim_n3", "pick_place_n3")
TARGETS = {  # share of episodes that agents trained on the truth are to achieve
    "discrim_n3": 0.97, "discrim_n5": 0.95, "discrim_n8": 0.9, "discrim": 0.9, "pick_place_n3": 0.8, "discrete_n3": 0.7,
}  # fmt: skip
WITHIN = 0.05  # how far agents trained on the matching network may stay behind those trained on the truth

SEEN = {"goal_scale": (0.5, 1.0), "goal_angle": (0.0, math.pi)}  # goals that discrim_n5_narrow is trained on
UNSEEN = {"goal_scale": (1.0, 2.0), "goal_angle": (math.pi, TURN)}
GOALS: dict[str, tuple[str, ...]] = {  # what is unseen
    "seen": (), "scale": ("goal_scale",), "angle": ("goal_angle",), "both": tuple(UNSEEN),
}  # fmt: skip


_QUICK_NETWORK: dict[str, Any] = {"samples_per_stage": 256, "epochs_per_stage": 2, "validation_samples": 64}
_FEW = 4  # episodes of the small study
_QUICK_AGENT: dict[str, Any] = {
    "horizon": 6, "total_steps": 96, "n_envs": 2, "subprocess": False, "learning_starts": 24, "gradient_steps": 1,
    "batch_size": 16, "rollout": 16, "checkpoint_every": 32, "evaluate_every": 48, "episodes": 2,
}  # fmt: skip


@dataclass(frozen=True)
class AgentUnit(Unit):
    """A run of the study."""

    def settings(self, run: str) -> Json:
        """List all that a row says about what was run."""
        return as_json(self._settings())

    def quick(self) -> AgentUnit:
        """Shrink it to a moment, for tests: too little of everything to learn from."""
        raise NotImplementedError

    def _settings(self) -> Json:
        raise NotImplementedError


@dataclass(frozen=True)
class RolloutPairs:
    """Numbers of episodes of the random policy and the expert that, in turns, make pairs; labels are balanced."""

    n_objects: tuple[int, int] = (3, 8)
    train: int = 50_000  # episodes, two pairs each
    valid: int = 2_000
    seed: int = 0


@dataclass(frozen=True)
class NetworkRun(AgentUnit):
    """A classifier trained on the benchmark, or on rollouts, and tested on both."""

    training: TrainingConfig
    rollouts: RolloutPairs | None = None  # what it is trained on in place of the benchmark
    test_samples: int = 10_000  # of the benchmark, per range
    test_episodes: int = 2_000  # of fresh rollouts

    def _settings(self) -> Json:
        rollouts = None if self.rollouts is None else asdict(self.rollouts)
        tests = {"test_samples": self.test_samples, "test_episodes": self.test_episodes}
        return {"training": self.training.to_json(), "rollouts": rollouts, **tests}

    def quick(self) -> NetworkRun:
        rollouts = None if self.rollouts is None else replace(self.rollouts, train=40, valid=10)
        training = replace(self.training, **_QUICK_NETWORK)
        return replace(self, training=training, rollouts=rollouts, test_samples=50, test_episodes=10)


def _small(config: AgentConfig) -> AgentConfig:
    return replace(config, **_QUICK_AGENT)


@dataclass(frozen=True)
class PlayedRun(AgentUnit):
    """A policy in an environment."""

    config: AgentConfig
    episodes: int = EPISODES

    def _settings(self) -> Json:
        return {"config": self.config.as_json(), "episodes": self.episodes, "first_episode": FIRST_EPISODE}

    def quick(self) -> PlayedRun:
        return replace(self, config=_small(self.config), episodes=_FEW)


@dataclass(frozen=True)
class PolicyRun(PlayedRun):
    """A policy without training."""

    policy: str = "random"  # or "expert"

    def _settings(self) -> Json:
        return {**super()._settings(), "policy": self.policy}


@dataclass(frozen=True)
class AgentRun(PlayedRun):
    """An agent trained on a reward."""

    reward: str = "sparse"  # of REWARDS

    @property
    def needs(self) -> tuple[str, ...]:
        return (f"rewards/{self.reward}",) if self.reward in NETWORKS else ()

    def _settings(self) -> Json:
        return {**super()._settings(), "reward": self.reward}


@dataclass(frozen=True)
class ClonedRun(PlayedRun):
    """An agent that imitates the expert."""

    demonstrations: int = 400  # episodes of the expert
    epochs: int = 20

    def _settings(self) -> Json:
        return {**super()._settings(), "demonstrations": self.demonstrations, "epochs": self.epochs}

    def quick(self) -> ClonedRun:
        return replace(self, config=_small(self.config), episodes=_FEW, demonstrations=_FEW, epochs=1)


@dataclass(frozen=True)
class TransferRun(PlayedRun):
    """A finished agent in another environment, which ``config`` is."""

    agent: str = ""  # the id of its run

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.agent, *(f"rewards/{name}" for name in NETWORKS))

    def _settings(self) -> Json:
        return {**super()._settings(), "agent": self.agent}


def configuration(name: str) -> AgentConfig:
    """The configuration of a part of the study: a named one, or ``discrim_n5`` with goals of few scales and angles.

    Raises:
        ValueError: an unknown name.
    """
    if name == "discrim_n5_narrow":
        return _within(replace(by_name("discrim_n5"), name=name), SEEN)
    return by_name(name)


def _within(config: AgentConfig, options: Mapping[str, Any]) -> AgentConfig:
    return replace(config, env_kwargs={**config.env_kwargs, **options})


def units(quick: bool = False) -> dict[str, AgentUnit]:
    """List all runs by id, in the order worth having; ``quick`` is the small study, for tests."""
    configs = {name: configuration(name) for name in TRAINED}
    listed: list[AgentUnit] = [NetworkRun(f"rewards/{name}", training) for name, training in NETWORKS.items()]
    for reward in REWARDS:
        listed += [
            AgentRun(f"agents/{name}/{reward}/seed{seed}", replace(configs[name], seed=seed), reward=reward)
            for name, (rewards, seeds) in TRAINED.items()
            if reward in rewards
            for seed in seeds
        ]
    listed += [ClonedRun(f"agents/{name}/cloned/seed0", configs[name]) for name in CLONED]
    listed += [
        PolicyRun(f"agents/{name}/{policy}", config, policy=policy)
        for name, config in configs.items()
        for policy in ("random", "expert")
    ]
    listed += _transfers(configs)
    listed += [
        NetworkRun(f"rollouts/{name}", replace(training, negative=REDRAWN), RolloutPairs())
        for name, training in NETWORKS.items()
    ]
    return {run.id: run.quick() if quick else run for run in listed}


def _transfers(configs: Mapping[str, AgentConfig]) -> list[AgentUnit]:
    few, narrow = configs["discrim_3_5"], configs["discrim_n5_narrow"]
    places = {f"discrim_3_5/n{n}": _within(few, {"n_objects": n}) for n in range(3, 9)}
    for where, unseen in GOALS.items():
        options = {key: UNSEEN[key] for key in unseen}
        places[f"discrim_n5_narrow/{where}"] = _within(narrow, options)
    return [
        TransferRun(f"generalisation/{place}", config, agent=f"agents/{config.name}/sparse/seed0")
        for place, config in places.items()
    ]


def group(listed: Mapping[str, AgentUnit]) -> dict[str, list[str]]:
    """Group runs by configuration, or by kind where they have none."""
    groups: dict[str, list[str]] = {}
    for run in listed:
        parts = run.split("/")
        groups.setdefault("/".join(parts[: 1 + (parts[0] == "agents")]), []).append(run)
    return groups
