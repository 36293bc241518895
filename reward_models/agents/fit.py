"""Check, before training, that a reward can judge the goals of an environment."""

from __future__ import annotations

import warnings
from typing import Any

from reward_models.agents.configs import AgentConfig
from reward_models.agents.reward_source import learned
from reward_models.judges.learned import LearnedReward
from spatialsim_env.arrangements.tasks import object_range
from spatialsim_env.core.rewards import Reward
from spatialsim_env.core.world import World


class RewardRangeWarning(UserWarning):
    """A learned reward is asked about numbers of objects that it was not trained on."""


def check_fit(config: AgentConfig, reward: str | Reward) -> None:
    """Refuse a learned reward that knows other goals than the environment has; other rewards pass.

    A model of two inputs compares any two scenes; outside the numbers of objects that it was trained on, which its
    file holds, it gets a ``RewardRangeWarning``.

    Args:
        config: the environment and the algorithm.
        reward: a name, a path or a live object.

    Raises:
        ValueError: a model of one input, and goals that are not its reference, or an algorithm that makes up goals.
    """
    found = learned(reward)
    if found is None:
        return
    env = config.make_env()
    world: World[Any] = env.unwrapped.world  # type: ignore[attr-defined]
    env.close()
    if found.world != world.name:
        return  # which the environment refuses
    if getattr(found.model, "two_inputs", True):
        _check_range(found, world.episodes)
    else:
        _check_reference(found, world.episodes, config.algorithm)


def _check_range(reward: LearnedReward, episodes: Any) -> None:
    trained = reward.model.task.get("training", {}).get("n_objects")
    if trained is None:
        return
    least, most = object_range(trained)
    low, high = episodes.object_range
    if low < least or high > most:
        warnings.warn(
            f"{reward.name} was trained on {least} to {most} objects and the environment has {low} to {high}; its "
            "verdicts may be wrong there: train it on that range, or choose n_objects within its own",
            RewardRangeWarning,
            stacklevel=4,
        )


def _check_reference(reward: LearnedReward, episodes: Any, algorithm: str) -> None:
    knows = f"{reward.name} has one input and knows one reference scene"
    remedy = "use a two-input model, which compares any two scenes"
    if episodes.fixed is None:
        raise ValueError(f"{knows}, and the environment draws new goals; take SpatialSim-Ident-v0, or {remedy}")
    reward(*episodes.fixed)  # refuses another reference
    if algorithm == "sac":
        raise ValueError(f'{knows}, and hindsight asks about other goals; take algorithm "ppo", or {remedy}')
