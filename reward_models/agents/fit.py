"""Check, before training, that a reward can judge the goals of an environment."""

from __future__ import annotations

import warnings

from reward_models.agents.configs import AgentConfig
from reward_models.judges.learned import LearnedReward
from spatialsim_env.arrangements.tasks import object_range
from spatialsim_env.core import rewards
from spatialsim_env.core.env import SpatialSimEnv
from spatialsim_env.core.rewards import Reward


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
    found = rewards.resolve(reward) if isinstance(reward, str) else reward
    if not isinstance(found, LearnedReward):
        return
    env = config.make_env()
    world = env.unwrapped
    env.close()
    if isinstance(world, SpatialSimEnv):
        _check_range(found, world) if found.model.two_inputs else _check_reference(found, world, config.algorithm)


def _check_range(reward: LearnedReward, world: SpatialSimEnv) -> None:
    trained = reward.model.task.get("training", {}).get("n_objects")
    if trained is None:
        return
    least, most = object_range(trained)
    low, high = world.episodes.object_range
    if low < least or high > most:
        warnings.warn(
            f"{reward.name} was trained on {least} to {most} objects and the environment has {low} to {high}; its "
            "verdicts may be wrong there: train it on that range, or choose n_objects within its own",
            RewardRangeWarning,
            stacklevel=4,
        )


def _check_reference(reward: LearnedReward, world: SpatialSimEnv, algorithm: str) -> None:
    knows = f"{reward.name} has one input and knows one reference scene"
    remedy = "use a two-input model, which compares any two scenes"
    if world.episodes.fixed is None:
        raise ValueError(f"{knows}, and the environment draws new goals; take SpatialSim-Ident-v0, or {remedy}")
    reward(*world.episodes.fixed)  # refuses another reference
    if algorithm == "sac":
        raise ValueError(f'{knows}, and hindsight asks about other goals; take algorithm "ppo", or {remedy}')
