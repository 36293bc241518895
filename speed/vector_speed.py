"""Speeds of worlds by the thousand, side by side with single environments stepped one after the other, in one run.

    python speed/vector_speed.py            measures, and writes vector_speed.json beside this file
    python speed/vector_speed.py --print    prints the table of the last run

A step is one action of one copy, with its observation, its reward and its success by the truth; new episodes are begun
within the time (autoreset SAME_STEP, horizon 50). *Plain* is gymnasium's ``SyncVectorEnv`` or stable-baselines3's
``DummyVecEnv`` over monitored environments, of the same environment with the same actions. Each figure is the median of
several repetitions on one thread, the two in turn; a ratio compares figures of the same run. Absolute figures depend on
the machine and on what else it does.
"""

from __future__ import annotations

import recording

# isort: split
import time
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from recording import Row
from stable_baselines3.common.env_util import make_vec_env

from reward_models.agents.vec_env import SpatialSimVecEnv

ENV_ID = "spatialsim_env:SpatialSim-Discrim-v0"
OPTIONS: dict[str, Any] = {"n_objects": 5}
PLAIN_COPIES = 64  # of what is stepped one by one: its speed does not depend on their number
STEPS = 100  # of each copy and repetition: two episodes
PACKAGES = ("numpy", "numba", "gymnasium", "stable-baselines3")


def native(copies: int) -> Any:
    """Our vector environment."""
    return gym.make_vec(ENV_ID, num_envs=copies, autoreset_mode=AutoresetMode.SAME_STEP, **OPTIONS)


def in_turn(copies: int) -> Any:
    """Gymnasium's, over single environments."""
    vector: dict[str, Any] = {
        "vectorization_mode": "sync",
        "vector_kwargs": {"autoreset_mode": AutoresetMode.SAME_STEP},
    }
    return gym.make_vec(ENV_ID, num_envs=copies, **vector, **OPTIONS)


def step_all(envs: Any) -> float:
    """Step every copy ``STEPS`` times; return the seconds."""
    actions = [np.random.default_rng(k).uniform(-1, 1, (envs.num_envs, 15)).astype(np.float32) for k in range(8)]
    start = time.perf_counter()
    for step in range(STEPS):
        envs.step(actions[step % len(actions)])
    return time.perf_counter() - start


def rates(ours: Any, plain: Any, repetitions: int) -> tuple[float, float]:
    """Steps per second of both, after one repetition that is not counted."""
    for envs in (ours, plain):
        envs.reset()
        step_all(envs)
    times = np.array([[step_all(ours), step_all(plain)] for _ in range(repetitions)])
    fast, slow = np.median(times, axis=0)
    return STEPS * ours.num_envs / fast, STEPS * plain.num_envs / slow


def row(work: str, ours: Any, plain: Any, target: float, of_ratio: bool = False, repetitions: int = 7) -> Row:
    """A line of the table; the target is one of the speed, or of the ratio."""
    fast, slow = rates(ours, plain, repetitions)
    ratio = fast / slow
    return {
        "work": work,
        "settings": f"{ours.num_envs:,} copies, {plain.num_envs} plainly, {STEPS} steps each",
        "ours": fast,
        "plain": slow,
        "ratio": ratio,
        "target": target,
        "of_ratio": of_ratio,
        "met": bool((ratio if of_ratio else fast) >= target),
    }


def measure() -> dict[str, Any]:
    """All rows, with what they were measured on."""
    adapter = SpatialSimVecEnv.make(ENV_ID, PLAIN_COPIES, seed=0, **OPTIONS)
    dummy = make_vec_env(ENV_ID, PLAIN_COPIES, seed=0, env_kwargs=OPTIONS)
    rows = [
        row("make_vec, n = 5, 4,096 copies", native(4096), in_turn(PLAIN_COPIES), 1_000_000),
        row("make_vec, n = 5, 64 copies", native(64), in_turn(PLAIN_COPIES), 250_000),
        row("stable-baselines3, n = 5, 64 copies", adapter, dummy, 10, of_ratio=True),
    ]
    return recording.state_origin(PACKAGES) | {
        "rows": rows,
    }


def table(result: dict[str, Any]) -> str:
    """The rows as Markdown."""
    lines = []
    for line in result["rows"]:
        target = f"ratio {line['target']}" if line["of_ratio"] else f"{line['target']:,}"
        speeds = (f"{line[key]:,.0f}" for key in ("ours", "plain", "ratio"))
        lines.append((line["work"], *speeds, f"at least {target}", recording.format_met(line["met"])))
    return recording.markdown(("steps per second", "here", "one by one", "ratio", "target", "met"), lines)


if __name__ == "__main__":
    recording.main(__file__, measure, table)
