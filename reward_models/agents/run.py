"""The files of an agent's training.

A run is a directory: ``agent.json`` (configuration, reward, progress and evaluation), ``progress.csv`` (the learning
curve), ``agent.zip`` (the agent, in stable-baselines3's format) when finished, and ``checkpoint-STEPS`` until then.
All but the learning curve, which grows, are whole or not there.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import shutil
import time
import warnings
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from stable_baselines3 import SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from reward_models.agents import reward_source
from reward_models.agents.algorithms import load_model
from reward_models.agents.configs import AgentConfig
from reward_models.agents.evaluation import Evaluation
from spatialsim_env.checks import read_object, require_entries
from spatialsim_env.core.rewards import Reward
from spatialsim_env.files import replace_file

FORMAT = "spatialsim-env agent 1"
RECORD, AGENT, CURVE, BUFFER, CHECKPOINT = "agent.json", "agent.zip", "progress.csv", "buffer.pkl", "checkpoint-"
PACKAGES = ("spatialsim-env", "gymnasium", "stable-baselines3", "torch", "numpy")
_ENTRIES = {"config": dict, "steps": int, "finished": bool, "seconds": (int, float), "cpu_seconds": (int, float),
            "evaluation": (dict, type(None))}  # fmt: skip


class VersionWarning(UserWarning):
    """An agent of another version than the one that reads it; it may act otherwise than it did."""


@dataclass
class Run:
    """The files of one training."""

    folder: Path
    config: AgentConfig
    record: dict[str, Any]
    started: tuple[float, float] = field(default_factory=lambda: (time.perf_counter(), time.process_time()))

    @classmethod
    def begin(
        cls,
        folder: Path,
        config: AgentConfig,
        reward: str | Reward,
        resume: bool,
        cloned: dict[str, int] | None = None,
    ) -> Run:
        """Take up the run of a directory, or make a new one. Nothing is written yet.

        Args:
            folder: the directory.
            config: what is trained.
            reward: of its environment.
            resume: whether a run that is there is taken up.
            cloned: what it is cloned from, in place of training on the reward.

        Raises:
            FileExistsError: the directory holds this run and ``resume`` is False.
            ValueError: it holds another one, or the reward's name is unknown.
        """
        wanted: dict[str, Any] = {
            "format": FORMAT,
            "config": config.as_json(),
            "cloned": cloned,
            **reward_source.describe(reward, folder),
        }
        if (folder / RECORD).exists():
            run = cls(folder, config, read_record(folder))
            run.check(wanted, resume)
            run.record.update(wanted)  # a model may lie elsewhere now
        else:
            progress = {"steps": 0, "finished": False, "seconds": 0.0, "cpu_seconds": 0.0, "evaluation": None}
            run = cls(folder, config, {**wanted, "versions": _versions(), **progress})
        run.tidy()
        return run

    def tidy(self) -> None:
        """Remove what an interrupted run left behind."""
        for left_over in self.folder.glob(f".{CHECKPOINT}*"):
            shutil.rmtree(left_over)
        if self.record["finished"]:
            for checkpoint in self._checkpoints():
                shutil.rmtree(checkpoint)

    def check(self, wanted: dict[str, Any], resume: bool) -> None:
        """Refuse to resume another run than the wanted one."""
        own = {**self.record["config"], "cloned": self.record.get("cloned")}
        changes = [
            f"{name} is {own.get(name)!r} there and {value!r} here"
            for name, value in {**wanted["config"], "cloned": wanted["cloned"]}.items()
            if own.get(name) != value
        ]
        changes += reward_source.differences(self.record, wanted)
        if changes:
            raise ValueError(f"{self.folder} holds another run: {'; '.join(changes)}. Choose another directory")
        if not resume:
            state = "finished" if self.record["finished"] else f"at {self.record['steps']} steps"
            raise FileExistsError(
                f"{self.folder} holds this run, {state}; resume=True takes it up, another directory begins anew"
            )

    def write(self, **changes: Any) -> None:
        """Write the record, changed."""
        self.record.update(changes)
        with replace_file(self.folder / RECORD) as path:
            path.write_text(json.dumps(self.record, indent=2) + "\n")

    def _count_time(self) -> dict[str, float]:
        now = (time.perf_counter(), time.process_time())
        wall, cpu = (after - before for after, before in zip(now, self.started, strict=True))
        self.started = now
        return {"seconds": self.record["seconds"] + wall, "cpu_seconds": self.record["cpu_seconds"] + cpu}

    def _checkpoints(self) -> list[Path]:
        """Oldest first."""
        return sorted(self.folder.glob(f"{CHECKPOINT}*"))

    def save_checkpoint(self, model: BaseAlgorithm) -> None:
        """Save the agent and its replay buffer; earlier checkpoints go when this one is whole."""
        earlier = self._checkpoints()
        target = self.folder / f"{CHECKPOINT}{model.num_timesteps:010d}"
        temporary = target.with_name(f".{target.name}")
        temporary.mkdir()
        model.save(temporary / AGENT)
        if isinstance(model, SAC):
            model.save_replay_buffer(temporary / BUFFER)
        temporary.rename(target)
        for old in earlier:
            shutil.rmtree(old)
        self.write(steps=model.num_timesteps, **self._count_time())

    def restore(self, envs: VecEnv) -> BaseAlgorithm | None:
        """Load the agent of the last checkpoint with its replay buffer; None without one."""
        checkpoints = self._checkpoints()
        if not checkpoints:
            return None
        warn_of_versions(self.folder, self.record)
        model = load_model(self.config, checkpoints[-1] / AGENT, envs, seed=self.config.seed + self.record["steps"])
        if isinstance(model, SAC):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The last trajectory in the replay buffer will be truncated")
                model.load_replay_buffer(checkpoints[-1] / BUFFER)
        return model

    def finish(self, model: BaseAlgorithm, evaluation: Evaluation) -> None:
        """Write the agent and its figures; checkpoints go."""
        with replace_file(self.folder / AGENT) as path:
            model.save(path)
        self.write(steps=model.num_timesteps, finished=True, evaluation=evaluation.summary(), **self._count_time())
        self.tidy()


def read_record(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a run's ``agent.json``.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is broken, or not one of ours.
    """
    path = Path(directory) / RECORD
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; accepted is the directory of a trained agent")
    record = read_object(path)
    if record.get("format") != FORMAT:
        raise ValueError(f"{path} is not of the format {FORMAT!r}; accepted is a file that training an agent wrote")
    require_entries(path, record, _ENTRIES, ValueError)
    reward_source.check(path, record)
    return record


def learning_curve(directory: str | os.PathLike[str]) -> list[dict[str, float]]:
    """Read the rows of a run's ``progress.csv``; empty if there is none. A row holds the columns that were logged then.

    A last line that is still being written is left out.
    """
    path = Path(directory) / CURVE
    if not path.exists():
        return []
    with open(path, newline="") as file:
        whole = [line for line in file if line.endswith("\n")]
    return [{key: float(value) for key, value in row.items() if key and value} for row in csv.DictReader(whole)]


def warn_of_versions(directory: Path, record: dict[str, Any]) -> None:
    """Warn of an agent that another version of this package wrote, or another major one of stable-baselines3."""
    present, earlier = _versions(), record.get("versions", {})
    changes = [
        f"{name} {earlier[name]} and is read with {present[name]}"
        for name, parts in (("spatialsim-env", None), ("stable-baselines3", 1))
        if name in earlier and earlier[name].split(".")[:parts] != present[name].split(".")[:parts]
    ]
    if changes:
        text = f"{directory} was written with {', with '.join(changes)}; evaluate it before you rely on it"
        warnings.warn(f"{text}, or train it again", VersionWarning, stacklevel=3)


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
