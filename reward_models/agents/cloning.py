"""Behaviour cloning: an agent learns to act as the scripted expert, without any reward.

The policy is the configuration's own, so a clone says what its network can express, and a training on a reward can be
held against it. States come from episodes in which the expert acts and, with a fixed probability per step, chance does
(``SHARES``); labels are always the expert's, so the clone also sees what to do off the expert's path.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from stable_baselines3 import SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import CSVOutputFormat
from torch import Tensor
from tqdm import tqdm

from reward_models.agents.agent_policy import observe, world_of
from reward_models.agents.configs import AgentConfig
from reward_models.agents.reward_source import SPARSE
from reward_models.agents.run import CURVE, Run
from reward_models.agents.training import Agent, complete, load_agent
from spatialsim_env.arrangements.datasets.rollouts import RolloutPolicy, Rollouts
from spatialsim_env.checks import require, require_whole

SHARES = (0.0, 0.25, 0.5, 0.75)  # of random actions, one for each episode in turn


@dataclass(frozen=True)
class PolicyMixture:
    """Acts as the expert, and at random with a probability at each step (protocol ``rollouts.Policy``)."""

    expert: RolloutPolicy
    random: RolloutPolicy
    share: float  # of random actions

    @property
    def name(self) -> str:
        """Its share of random actions, in words."""
        return f"{self.share} random"

    def __call__(
        self, achieved: NDArray[np.float32], desired: NDArray[np.float32], rng: np.random.Generator
    ) -> NDArray[Any]:
        actions = np.asarray(self.expert(achieved, desired, rng))
        strays = np.flatnonzero(rng.random(len(actions)) < self.share)
        actions[strays] = self.random(achieved[strays], desired[strays], rng)
        return actions


def demonstrations(config: AgentConfig, episodes: int) -> tuple[dict[str, Tensor], Tensor, np.random.Generator]:
    """Play episodes; observations of all their steps, the expert's actions there, and the generator behind them."""
    world = world_of(config)
    expert, chance = world.policy("expert"), world.policy("random")
    mixtures = tuple(PolicyMixture(expert, chance, share) for share in SHARES)
    played, rng = Rollouts(world, mixtures, config.seed, per_shard=episodes).shard("cloning", 0)
    achieved = played.achieved[:-1]
    labels = np.concatenate([expert(scenes, played.desired, rng) for scenes in achieved])
    seen = observe(np.concatenate(achieved), np.tile(played.desired, (len(achieved), 1, 1)))
    return {key: torch.from_numpy(part) for key, part in seen.items()}, torch.from_numpy(labels), rng


def clone(
    config: AgentConfig,
    directory: str | os.PathLike[str] = "runs/clone",
    *,
    episodes: int = 400,
    epochs: int = 20,
    progress: bool = True,
    resume: bool = False,
) -> Agent:
    """Clone the expert, evaluate the clone and write it into a directory, as a run that ``load_agent`` reads.

    Of SAC the actor's deterministic action is brought near the expert's (mean square), of PPO the expert's action is
    made likely (mean log-likelihood); critics and value stay untrained. The record's ``cloned`` holds episodes and
    epochs, its ``steps`` are those of the demonstrations, and its reward is the sparse truth, which the clone did not
    see. Threads, random states and equality of clones are as of ``training.train``.

    Args:
        config: the environment, the policy, its learning rate and batch size, the seed.
        directory: of the run; made if missing.
        episodes: of the demonstrations.
        epochs: passes over their states.
        progress: show a bar.
        resume: begin an unfinished clone anew, or return the finished one. Without a run in it, begin one.

    Raises:
        FileExistsError: the directory holds this clone and ``resume`` is False.
        ValueError: the directory holds another run, a number below 1, or the agent would see pictures.
    """
    require_whole("episodes", episodes)
    require_whole("epochs", epochs)
    sees = config.env_kwargs.get("observation", "state")
    require(sees == "state", "observation", sees, "'state': demonstrations hold no pictures")
    folder = Path(directory)
    run = Run.begin(folder, config, SPARSE, resume, cloned={"episodes": episodes, "epochs": epochs})
    if run.record["finished"]:
        return load_agent(folder)
    in_process = replace(config, subprocess=False)
    return complete(run, in_process, SPARSE, lambda model: _imitate(model, run, episodes, epochs, progress))


def _imitate(model: BaseAlgorithm, run: Run, episodes: int, epochs: int, progress: bool) -> None:
    """Train the policy on demonstrations; the learning curve has a row for each epoch."""
    seen, labels, rng = demonstrations(run.config, episodes)
    model.num_timesteps = len(labels)
    actor: Any = model.actor if isinstance(model, SAC) else model.policy
    optimizer = torch.optim.Adam(actor.parameters(), run.config.learning_rate)
    model.policy.set_training_mode(True)
    with closing(CSVOutputFormat(str(run.folder / CURVE))) as curve:
        for epoch in tqdm(range(epochs), run.config.name, unit="epoch", disable=not progress):
            losses = []
            for rows in torch.from_numpy(rng.permutation(len(labels))).split(run.config.batch_size):
                loss = _loss(model, {key: part[rows] for key, part in seen.items()}, labels[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            curve.write({"epoch": epoch + 1, "train/loss": float(np.mean(losses))}, {})
    model.policy.set_training_mode(False)


def _loss(model: Any, seen: dict[str, Tensor], labels: Tensor) -> Tensor:
    if isinstance(model, SAC):
        return F.mse_loss(model.actor(seen, deterministic=True), labels)
    _, log_likelihood, _ = model.policy.evaluate_actions(seen, labels)
    return -log_likelihood.mean()
