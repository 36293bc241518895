"""Train an agent on a reward, with checkpoints, and load finished agents.

On every reward, ``rollout/success_rate`` is the truth. ``run`` describes the files.
"""

from __future__ import annotations

import math
import os
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import CSVOutputFormat, KVWriter, Logger, TensorBoardOutputFormat
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv
from tqdm import tqdm

from reward_models.agents import reward_source
from reward_models.agents.algorithms import WINDOW, load_model, make_model
from reward_models.agents.configs import AgentConfig, buffer_bytes
from reward_models.agents.evaluation import Evaluation, evaluate
from reward_models.agents.fit import check_fit
from reward_models.agents.run import (
    AGENT,
    CURVE,
    RECORD,
    Run,
    learning_curve,
    read_record,
    warn_of_versions,
)
from reward_models.agents.vec_env import SpatialSimVecEnv
from spatialsim_env.core.rewards import Reward

STEPS_COLUMN = "time/total_timesteps"
EVALUATION_SEED = 20_000  # of evaluations during the training; the one at its end has episodes of its own


@dataclass(frozen=True)
class Agent:
    """A trained agent with an environment to act in, its configuration and its record."""

    model: Any  # a stable-baselines3 algorithm; ``model.get_env()`` is its environment
    config: AgentConfig
    reward: str | Reward  # what it was trained on
    record: dict[str, Any]  # the contents of agent.json
    evaluation: Evaluation | None = field(default=None, repr=False)  # at the end of the training; None when loaded

    def predict(self, observation: Any, *, deterministic: bool = True) -> tuple[Any, Any]:
        """Choose actions for a batch of observations, as stable-baselines3 does."""
        return self.model.predict(observation, deterministic=deterministic)

    def close(self) -> None:
        """Close its environment; more than once is fine."""
        envs = self.model.get_env()
        if not getattr(envs, "closed", False):
            envs.close()


def make_envs(config: AgentConfig, reward: str | Reward = "sparse", n_envs: int | None = None) -> VecEnv:
    """Make the environments of a configuration, seeded, all with the same reward.

    A live reward object goes in through ``env_method``, so worker processes get a copy of it by pickle.
    """
    copies = n_envs or config.n_envs
    if config.native:
        options = {"reward": reward, **config.gym_options(reward)}
        return SpatialSimVecEnv.make(config.env_id, copies, seed=config.seed, **options)
    envs = make_vec_env(
        _WorkerMaker(config.env_id) if config.subprocess else config.env_id,
        n_envs=copies,
        seed=config.seed,
        env_kwargs={"render_mode": None, **config.gym_options(reward)},
        vec_env_cls=SubprocVecEnv if config.subprocess else DummyVecEnv,
    )
    if not isinstance(reward, str):
        envs.env_method("set_reward", reward)
    return envs


@dataclass(frozen=True)
class _WorkerMaker:
    """Makes an environment in a process that has one thread."""

    env_id: str

    def __call__(self, **options: Any) -> gym.Env[Any, Any]:
        torch.set_num_threads(1)
        return gym.make(self.env_id, **options)


def train(
    config: AgentConfig,
    reward: str | Reward = "sparse",
    directory: str | os.PathLike[str] = "runs/agent",
    *,
    resume: bool = False,
    progress: bool = True,
    tensorboard: bool = False,
) -> Agent:
    """Train an agent, evaluate it and write it into a directory.

    One torch thread is used, and NumPy's, Python's and torch's global random states, which stable-baselines3 seeds;
    all are given back as they were. Equal configurations, rewards and versions give equal agents, bit for bit on one
    machine; a resumed run starts from its last checkpoint with new episodes. A model as a reward is known by its
    weights: it may lie elsewhere when the run is taken up, but not have been trained again.

    Args:
        config: what is trained.
        reward: "sparse" or "dense" for the truth, "hub:NAME", the path of a model, or a live object.
        directory: of the run; made if missing.
        resume: resume the unfinished run in the directory, or return the finished one. Without a run in it,
            begin one.
        progress: print the memory of the replay buffer and show a bar.
        tensorboard: also log for TensorBoard.

    Raises:
        FileExistsError: the directory holds a run and ``resume`` is False.
        ValueError: the directory holds a run of another configuration or reward, names are unknown, or the reward
            does not fit the environment (``fit.check_fit``, which also warns).
    """
    folder = Path(directory)
    reward = reward_source.fix_path(reward)
    run = Run.begin(folder, config, reward, resume)
    if run.record["finished"]:
        return load_agent(folder, reward)
    check_fit(config, reward)
    if progress:
        print(f"{config.name}: the replay buffer takes {buffer_bytes(config) / 1e6:.1f} MB")
    return complete(run, config, reward, lambda model: _learn(model, run, reward, progress, tensorboard))


def complete(run: Run, config: AgentConfig, reward: str | Reward, learn: Callable[[BaseAlgorithm], None]) -> Agent:
    """Make or restore the agent of a run, let it learn, evaluate it and write all of it.

    Args:
        config: of the environments that it learns in.
        learn: trains the agent in place.
    """
    with isolate():
        envs = make_envs(config, reward)
        try:
            model = run.restore(envs) or make_model(config, envs)
            run.write()
            learn(model)
            evaluation = evaluate(model, run.config, reward, episodes=run.config.episodes)
            run.finish(model, evaluation)
        except BaseException:
            _close(envs)
            raise
    return Agent(model, run.config, reward, run.record, evaluation)


def _close(envs: VecEnv) -> None:
    """Close environments whose worker processes may be gone, as all of them are after Ctrl-C in a terminal."""
    try:
        envs.close()
    except (EOFError, OSError):
        for process in getattr(envs, "processes", ()):
            process.terminate()
            process.join()


def _learn(model: BaseAlgorithm, run: Run, reward: str | Reward, progress: bool, tensorboard: bool) -> None:
    remaining = run.config.total_steps - model.num_timesteps
    if remaining <= 0:
        return
    logger = _make_logger(run.folder, model.num_timesteps, tensorboard)
    watcher = _Watcher(run, reward, model.num_timesteps, progress)
    model.set_logger(logger)
    try:
        model.learn(remaining, callback=watcher, reset_num_timesteps=model.num_timesteps == 0)
    finally:
        logger.close()
        watcher.bar.close()


def _make_logger(folder: Path, steps: int, tensorboard: bool) -> Logger:
    """Make a logger that continues the learning curve of the first ``steps`` steps."""
    earlier = [row for row in learning_curve(folder) if row.get(STEPS_COLUMN, math.inf) <= steps]
    writer = CSVOutputFormat(str(folder / CURVE))
    for row in earlier:
        writer.write(row, {})
    writers: list[KVWriter] = [writer]
    if tensorboard:
        writers.append(TensorBoardOutputFormat(str(folder / "tensorboard")))
    return Logger(str(folder), writers)


class _Watcher(BaseCallback):
    """Logs the truth and the plugged-in reward apart, evaluates, saves checkpoints, moves the bar."""

    def __init__(self, run: Run, reward: str | Reward, steps: int, progress: bool) -> None:
        super().__init__()
        self.run, self.reward = run, reward
        self.claimed: deque[bool] = deque(maxlen=WINDOW)
        self.ever: deque[bool] = deque(maxlen=WINDOW)
        self.next_checkpoint = steps + run.config.checkpoint_every
        self.next_evaluation = steps + run.config.evaluate_every
        self.bar = tqdm(
            desc=run.config.name, total=run.config.total_steps, initial=steps, unit="step", disable=not progress
        )

    def _on_step(self) -> bool:
        infos = self.locals["infos"]
        for kind in ("true", "model"):
            self.logger.record_mean(f"reward/{kind}", float(np.mean([info[f"reward_{kind}"] for info in infos])))
        ended = [info for info, done in zip(infos, self.locals["dones"], strict=True) if done]
        if ended:
            self.claimed.extend(info["is_success_model"] for info in ended)
            self.ever.extend(info["ever_success"] for info in ended)
            self.logger.record("rollout/success_rate_model", float(np.mean(self.claimed)))
            self.logger.record("rollout/ever_success_rate", float(np.mean(self.ever)))
            true = float(np.mean(self.model.ep_success_buffer or [0]))
            self.bar.set_postfix(success=f"{true:.2f}", claimed=f"{np.mean(self.claimed):.2f}", refresh=False)
        self.bar.update(len(infos))
        return True

    def _on_rollout_end(self) -> None:
        config = self.run.config
        if self.next_evaluation <= self.num_timesteps < config.total_steps:
            self.next_evaluation = self.num_timesteps + config.evaluate_every
            ends = evaluate(self.model, config, self.reward, episodes=config.episodes, seed=EVALUATION_SEED)
            self.logger.record("eval/success_rate", ends.success_rate)
            self.logger.record("eval/success_rate_model", ends.claimed_rate)
        if self.next_checkpoint <= self.num_timesteps < self.run.config.total_steps:
            self.next_checkpoint = self.num_timesteps + self.run.config.checkpoint_every
            self.run.save_checkpoint(self.model)


def load_agent(directory: str | os.PathLike[str], reward: str | Reward | None = None) -> Agent:
    """Load a finished agent, with one copy of the environment it was trained in.

    Load only what you trust: stable-baselines3's format holds pickles. An agent of another version gets a
    ``run.VersionWarning``.

    Args:
        directory: of the run.
        reward: for its environment; by default the one it was trained on, or the sparse truth if that was a live
            object, which files cannot hold. A model is found where it was, or as it lay to the run.

    Raises:
        FileNotFoundError: there is no run.
        ValueError: the run is not finished, its files are broken or foreign, or the model that was its reward is
            gone or has other weights by now.
    """
    folder = Path(directory)
    record = read_record(folder)
    if not record["finished"]:
        raise ValueError(
            f"{folder} holds an unfinished run, at {record['steps']} of {record['config']['total_steps']} steps; "
            "train(..., resume=True) finishes it"
        )
    try:
        config = AgentConfig.from_json(record["config"])
    except ValueError as error:
        raise ValueError(f"{folder / RECORD}: {error}") from error
    reward = reward_source.find(record, folder) if reward is None else reward_source.fix_path(reward)
    warn_of_versions(folder, record)
    with isolate():
        envs = make_envs(replace(config, subprocess=False), reward, n_envs=1)
        model = load_model(config, folder / AGENT, envs, seed=None)
    return Agent(model, config, reward, record)


@contextmanager
def isolate() -> Iterator[None]:
    """Use one torch thread inside; give back the thread count and the global random states."""
    threads, python, numpy_state = torch.get_num_threads(), random.getstate(), np.random.get_state()  # noqa: NPY002
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)
        random.setstate(python)
        np.random.set_state(numpy_state)  # noqa: NPY002


def transfer(agent: Agent, config: AgentConfig) -> Agent:
    """Put an agent, with its weights, into another environment, as one with more objects than it was trained with.

    Args:
        agent: whose policy attends to objects, and so has weights for any number of them.
        config: of the environment; same algorithm and action mode.

    Raises:
        ValueError: its policy is a perceptron, or the weights do not fit.
    """
    if agent.config.policy != "objects":
        raise ValueError(f'policy is {agent.config.policy!r}; accepted is "objects", whose weights fit any number')
    network = {name: getattr(agent.config, name) for name in ("policy", "features", "net")}
    in_process = replace(config, **network, subprocess=False)
    with isolate():
        model = make_model(in_process, make_envs(in_process, agent.reward))
    try:
        model.policy.load_state_dict(agent.model.policy.state_dict())
    except RuntimeError as error:
        raise ValueError(f"the weights of {agent.config.name} do not fit {config.name}: {error}") from error
    return Agent(model, config, agent.reward, agent.record)
