"""A trained agent as a policy of rollouts, and its environment as their world."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_models.agents.configs import IDENTIFICATION, AgentConfig
from reward_models.agents.run import AGENT
from reward_models.agents.training import load_agent
from reward_models.threads import one_thread
from spatialsim_env.arrangements.datasets.rollouts import RolloutWorld
from spatialsim_env.files import sha256


class AgentPolicy:
    """The deterministic policy of a finished run (protocol ``spatialsim_env.arrangements.datasets.rollouts.Policy``).

    It is called by its folder's name and the beginning of the SHA-256 of its file: ``discrim_n3@0f3c5a7e9b1d``.

    Args:
        folder: of the run.

    Raises:
        FileNotFoundError: there is no run.
        ValueError: the run is not finished or cannot be read, or the agent sees pictures.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.agent = load_agent(folder, "sparse")
        self.agent.close()
        if self.agent.config.env_kwargs.get("observation", "state") != "state":
            raise ValueError(f"{folder} holds an agent that sees pictures; accepted are those that see the state")
        self.name = f"{Path(folder).resolve().name}@{sha256(Path(folder) / AGENT)[:12]}"

    @property
    def world(self) -> RolloutWorld:
        """Options of the world in which it was trained."""
        return world_of(self.agent.config)

    def check(self, world: RolloutWorld) -> None:
        """Refuse a world whose scenes it cannot read, or whose actions are not its own.

        Raises:
            ValueError: the message says which.
        """
        played, model = world.world, self.agent.model
        for verb, own, other in (
            ("sees", model.observation_space["achieved_goal"], played.goals.space["achieved_goal"]),
            ("gives actions of", model.action_space, played.dynamics.action_space),
        ):
            if own != other:
                raise ValueError(f"the agent {self.name} {verb} {own}, and the world has {other}")

    def __call__(
        self, achieved: NDArray[np.float32], desired: NDArray[np.float32], rng: np.random.Generator
    ) -> NDArray[Any]:
        with one_thread():
            return np.asarray(self.agent.predict(observe(achieved, desired))[0])


def world_of(config: AgentConfig) -> RolloutWorld:
    """Make the world of rollouts of a configuration's environment."""
    fixed = {"reference_seed": 0} if config.env_id == IDENTIFICATION else {}
    return RolloutWorld({**fixed, **config.env_kwargs}, config.horizon)


def observe(achieved: NDArray[np.float32], desired: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    """Give the environment's observations of scenes (B, n_max, 10) and their goals, state as ``observation``."""
    flat = [scenes.reshape(len(scenes), -1) for scenes in (achieved, achieved, desired)]
    return dict(zip(("observation", "achieved_goal", "desired_goal"), flat, strict=True))
