"""Frozen configurations of agents, some of them named: the environment, the algorithm, the steps.

The reward is not part of a configuration, because the same one is run on the truth and on every learned reward.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from spatialsim_env import HORIZON, RELATION_IDS
from spatialsim_env.checks import is_finite, is_whole, require, require_seed, require_whole

ALGORITHMS = ("sac", "ppo")
POLICIES = ("objects", "mlp")
FEATURES = ("placed", "deep_set", "message_passing", "relation")  # the last one is that of relations in 3D
DISCRIMINATION = "spatialsim_env:SpatialSim-Discrim-v0"
IDENTIFICATION = "spatialsim_env:SpatialSim-Ident-v0"
RELATION = f"spatialsim_env:{RELATION_IDS[0]}"
SEVEN = (  # relations that agents are trained on and audits ask about
    "on",
    "under",
    "near",
    "to the left of",
    "to the left of (wrt you)",
    "in front of",
    "in front of (wrt you)",
)
SET_ELSEWHERE = {"reward": "train(config, reward)", "max_episode_steps": "horizon", "render_mode": "film"}
FROM_ONE = ("horizon", "total_steps", "n_envs", "batch_size", "buffer_size", "gradient_steps", "her_goals", "rollout",
            "checkpoint_every", "evaluate_every", "episodes")  # fmt: skip
_DICT_BYTES = 64  # of the empty dictionary that HerReplayBuffer keeps per transition


@dataclass(frozen=True)
class AgentConfig:
    """The training of an agent. Steps are environment steps, those of all copies counted together.

    Raises:
        ValueError: a value that is not accepted, or values that contradict each other.
    """

    name: str  # how it is listed
    env_id: str = DISCRIMINATION  # "module:id", the form that worker processes know
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)  # keywords of gym.make, JSON values
    horizon: int = HORIZON  # steps per episode
    algorithm: str = "sac"  # "sac" with hindsight goals, or "ppo"
    total_steps: int = 4_000  # steps, rounded up to whole rounds of all copies
    n_envs: int = 4  # copies of the environment
    subprocess: bool = False  # whether each copy has a process of its own
    native: bool = False  # whether all copies are one vector environment: the same episodes in less time
    seed: int = 0  # of the networks, the exploration and the environments
    policy: str = "objects"  # "objects" share one network (object_policy.py); "mlp" reads them as a list
    features: str = "placed"  # extractor that an "mlp" reads, one of FEATURES
    net: tuple[int, ...] = (64,)  # widths of the hidden layers of actor and critics; one width for "objects"
    learning_rate: float = 1e-3  # of Adam
    batch_size: int = 256  # transitions
    gamma: float = 0.95  # discount per step
    entropy: float = 0.02  # coefficient of the policy's entropy, in units of reward per nat
    tau: float = 0.02  # share of the critics that their targets take over per update (sac)
    buffer_size: int = 100_000  # transitions kept; never more than total_steps are reserved (sac)
    learning_starts: int = 400  # steps before the first update (sac)
    gradient_steps: int = 4  # updates per round of all copies (sac)
    her_goals: int = 4  # relabelled transitions per transition kept as it was (sac)
    rollout: int = 256  # steps of each copy per update (ppo)
    checkpoint_every: int = 1_000  # steps
    evaluate_every: int = 1_000  # steps between evaluations, whose figures are in the learning curve
    episodes: int = 100  # of the evaluation at the end

    def __post_init__(self) -> None:
        for name in FROM_ONE:
            require_whole(name, getattr(self, name))
        require_whole("learning_starts", self.learning_starts, 0)
        require_seed("seed", self.seed)
        self._check_numbers()
        require(isinstance(self.name, str) and self.name != "", "name", self.name, "a str with something in it")
        named = isinstance(self.env_id, str) and ":" in self.env_id
        require(named, "env_id", self.env_id, f"module:id, as in {DISCRIMINATION!r}")
        require(self.algorithm in ALGORITHMS, "algorithm", self.algorithm, " or ".join(ALGORITHMS))
        for name in ("subprocess", "native"):
            require(isinstance(getattr(self, name), bool), name, getattr(self, name), "a bool")
        if self.native and self.subprocess:
            raise ValueError("native and subprocess are True; accepted is one of them: native copies share a process")
        self._check_env_kwargs()
        self._check_policy()
        if self.algorithm == "sac":
            self._check_hindsight()
        elif self.batch_size == 1 or self.rollout * self.n_envs % self.batch_size:
            raise ValueError(
                f"batch_size is {self.batch_size}; accepted is a divisor above 1 of rollout * n_envs = "
                f"{self.rollout} * {self.n_envs} = {self.rollout * self.n_envs}"
            )

    def _check_numbers(self) -> None:
        for name, accepted, holds in (
            ("learning_rate", "a positive number", lambda x: x > 0),
            ("gamma", "a discount between 0 and 1", lambda x: 0 < x < 1),
            ("entropy", "a number from 0", lambda x: x >= 0),
            ("tau", "a share above 0, up to 1", lambda x: 0 < x <= 1),
        ):
            value = getattr(self, name)
            require(is_finite(value) and holds(value), name, value, accepted)
        fits = isinstance(self.net, tuple) and all(map(is_whole, self.net))
        require(fits, "net", self.net, "a tuple of widths, each an int from 1")

    def _check_policy(self) -> None:
        require(self.policy in POLICIES, "policy", self.policy, " or ".join(POLICIES))
        require(self.features in FEATURES, "features", self.features, ", ".join(FEATURES))
        if self.policy == "objects" and (len(self.net) != 1 or self.features != "placed"):
            raise ValueError(
                f'policy is "objects", net {self.net} and features {self.features!r}; accepted are one width and '
                '"placed": its objects share a network of two hidden layers, and read their ways to their places'
            )
        if (self.features == "relation") != (self.env_id == RELATION):
            raise ValueError(
                f'features is {self.features!r} and env_id {self.env_id!r}; accepted is "relation" for {RELATION}, and '
                "for no other"
            )

    def _check_env_kwargs(self) -> None:
        require(
            isinstance(self.env_kwargs, Mapping), "env_kwargs", self.env_kwargs, "keywords of gym.make as a mapping"
        )
        for name, place in SET_ELSEWHERE.items():
            if name in self.env_kwargs:
                raise ValueError(f"env_kwargs holds {name!r}, which {place} sets")
        try:
            json.dumps(dict(self.env_kwargs))
        except TypeError as error:
            raise ValueError(f"env_kwargs is {self.env_kwargs!r}; accepted are values that JSON can hold") from error

    def _check_hindsight(self) -> None:
        first_episodes = self.horizon * self.n_envs
        if self.learning_starts <= first_episodes:
            raise ValueError(
                f"learning_starts is {self.learning_starts}; accepted is more than horizon * n_envs = {self.horizon} "
                f"* {self.n_envs} = {first_episodes}: hindsight needs a finished episode before the first update"
            )
        if self.buffer_size < self.learning_starts:
            raise ValueError(
                f"buffer_size is {self.buffer_size}; accepted is at least learning_starts = {self.learning_starts}"
            )
        if self.total_steps <= self.learning_starts:
            raise ValueError(
                f"total_steps is {self.total_steps}; accepted is more than learning_starts = {self.learning_starts}: "
                "else the agent is never updated"
            )
        if self.env_kwargs.get("action_mode") == "discrete":
            raise ValueError('action_mode is "discrete" and algorithm "sac"; "ppo" is the one for discrete actions')
        if self.env_kwargs.get("terminate_on_success"):
            raise ValueError(
                'terminate_on_success is True and algorithm "sac"; hindsight relabels rewards, not the ends of '
                'episodes: leave it out, or take "ppo"'
            )

    @property
    def capacity(self) -> int:
        """Transitions that the replay buffer holds: a multiple of ``n_envs``, 0 without a buffer."""
        if self.algorithm != "sac":
            return 0
        rounds = min(self.buffer_size // self.n_envs, math.ceil(self.total_steps / self.n_envs))
        return rounds * self.n_envs

    def as_json(self) -> dict[str, Any]:
        """The configuration as JSON would give it back."""
        values: dict[str, Any] = json.loads(json.dumps({**asdict(self), "env_kwargs": dict(self.env_kwargs)}))
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> AgentConfig:
        """The inverse of ``as_json``.

        Raises:
            ValueError: an unknown field, no name, or a value that is not accepted.
        """
        unknown = set(values) - {entry.name for entry in fields(cls)}
        if unknown:
            raise ValueError(f"a configuration has no field {', '.join(sorted(unknown))}")
        require("name" in values, "name", None, "the name of a configuration")
        net = values.get("net", cls.net)
        return cls(**{**values, "net": tuple(net) if isinstance(net, list) else net})

    def make_env(self, reward: Any = "sparse", render_mode: str | None = None) -> gym.Env[Any, Any]:
        """One copy of the environment, unseeded, with a reward given by name or as a live object.

        Raises:
            ValueError, TypeError: what ``gym.make`` and ``set_reward`` raise.
        """
        env = gym.make(self.env_id, render_mode=render_mode, **self.gym_options(reward))
        if not isinstance(reward, str):
            env.get_wrapper_attr("set_reward")(reward)
        return env

    def gym_options(self, reward: Any = "sparse") -> dict[str, Any]:
        """Keywords of ``gym.make``; a live reward is not among them, it goes in through ``set_reward``."""
        named = {"reward": reward} if isinstance(reward, str) else {}
        return {"max_episode_steps": self.horizon, **self.env_kwargs, **named}


def buffer_bytes(config: AgentConfig) -> int:
    """Memory that the replay buffer of a configuration takes when it is full, in bytes."""
    if not config.capacity:
        return 0
    env = config.make_env()
    observation, action = env.observation_space, env.action_space
    env.close()
    assert isinstance(observation, spaces.Dict)
    assert isinstance(action, spaces.Box)
    scenes = 2 * sum(math.prod(box.shape or ()) * np.dtype(box.dtype).itemsize for box in observation.values())
    moves = math.prod(action.shape) * np.dtype(action.dtype).itemsize
    reward_done_timeout = 3 * np.dtype(np.float32).itemsize
    episode = 2 * np.dtype(np.int64).itemsize
    info = np.dtype(object).itemsize + _DICT_BYTES
    return config.capacity * (scenes + moves + reward_done_timeout + episode + info)


CONFIGS = {
    config.name: config
    for config in (
        AgentConfig("discrim_n3", env_kwargs={"n_objects": 3}, native=True, total_steps=3_000),
        AgentConfig("discrim_n5", env_kwargs={"n_objects": 5}, native=True),
        AgentConfig("discrim_n8", env_kwargs={"n_objects": 8}, native=True, total_steps=6_000),
        AgentConfig("discrim", env_kwargs={"n_objects": (3, 8)}, native=True, total_steps=6_000),
        AgentConfig("discrim_3_5", env_kwargs={"n_objects": (3, 5)}, native=True),
        AgentConfig("ident_n5", IDENTIFICATION, {"n_objects": 5}, native=True),
        AgentConfig("positions_n5", env_kwargs={"n_objects": 5, "criterion": "positions"}, native=True),
        AgentConfig("pick_place_n3", env_kwargs={"n_objects": 3, "action_mode": "pick_place"}, native=True,
                    total_steps=6_000),
        AgentConfig("discrete_n3", env_kwargs={"n_objects": 3, "action_mode": "discrete"}, native=True, horizon=100,
                    algorithm="ppo", total_steps=256_000, n_envs=64, rollout=50, batch_size=800, entropy=0.01,
                    checkpoint_every=64_000, evaluate_every=32_000),
    )
}  # fmt: skip


def by_name(name: str) -> AgentConfig:
    """A named configuration.

    Raises:
        ValueError: an unknown name.
    """
    if name not in CONFIGS:
        raise ValueError(f"agent configuration {name!r} is unknown; there are {', '.join(CONFIGS)}")
    return CONFIGS[name]
