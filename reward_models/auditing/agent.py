"""The third optimiser: an agent that is trained on the model's sparse reward alone, then plays until a first claim."""

from __future__ import annotations

import warnings
from pathlib import Path as Folder
from typing import Any

import gymnasium as gym

from reward_models.agents.configs import AgentConfig
from reward_models.agents.fit import RewardRangeWarning
from reward_models.agents.policies import Policy
from reward_models.agents.training import Agent, train
from reward_models.auditing.moves.arrangements import MOVES
from reward_models.auditing.optimisers import Ends, Progress
from reward_models.judges.judge import Lifted
from reward_models.shares import share
from spatialsim_env.arrangements.scene import as_batch
from spatialsim_env.core.judges import Pairs
from spatialsim_env.core.rewards import Reward

FIRST_EPISODE = 10_000  # seed; the others follow


def agent(
    judge: Lifted,
    config: AgentConfig,
    folder: Folder,
    episodes: int,
    n_paths: int = 0,
    on_truth: Folder | None = None,
) -> tuple[Ends, dict[str, Any]]:
    """Train an agent on the model's reward, and one on the truth's to compare it with.

    Args:
        config: of the agents and their environment.
        folder: of their trainings, NAME/model and NAME/truth; a run that is there is taken up.
        episodes: to play with the deterministic policy.
        on_truth: folder of the trainings on the truth instead, NAME, which many audits may share.

    Returns:
        Where the episodes stopped, at their first claim or where their score was best; and the steps of the training
        and the true success at the last step of episodes, of the agent and of the one that was trained on the truth.

    Raises:
        JudgeError: a score that is none.
        ValueError: the folder holds another run.
    """
    trained = _trained(config, judge.reward(), folder / config.name / "model")
    ends = _played(judge, trained, config, episodes, n_paths)
    there = folder / config.name / "truth" if on_truth is None else on_truth / config.name
    beside = _trained(config, "sparse", there)
    success = {
        name: share(round(of.record["evaluation"]["success"] * config.episodes), config.episodes)
        for name, of in (("success", trained), ("success_on_truth", beside))
    }
    return ends, {"steps": trained.record["steps"], **success}


def _trained(config: AgentConfig, reward: str | Reward, folder: Folder) -> Agent:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RewardRangeWarning)  # whether its verdicts hold there is what is asked
        found = train(config, reward, folder, resume=True, progress=False)
    found.close()
    return found


def _played(judge: Lifted, policy: Policy, config: AgentConfig, episodes: int, n_paths: int) -> Ends:
    options = {**config.gym_options(), "max_episode_steps": config.horizon + 1}  # none ends before it is looked at
    envs: Any = gym.make_vec(config.env_id, num_envs=episodes, **options)
    observations, _ = envs.reset(seed=list(range(FIRST_EPISODE, FIRST_EPISODE + episodes)))
    progress = Progress(judge, MOVES["poses"], _goals(observations), n_paths)
    for _ in range(config.horizon):
        rows = progress.open
        if not len(rows):
            break
        actions, _ = policy.predict(observations, deterministic=True)
        observations, *_ = envs.step(actions)
        progress.judge_candidates(rows, _goals(observations).rows(rows))
    envs.close()
    return progress.ends()


def _goals(observations: Any) -> Pairs:
    return Pairs(*(as_batch(observations[name])[0] for name in ("achieved_goal", "desired_goal")))
