"""Speeds, side by side with a plain one-sample-at-a-time implementation of the same definition, in one run.

    python speed/speed.py            measures, and writes speed.json beside this file
    python speed/speed.py --print    prints the table of the last run

The plain implementation is the one that the tests equate the package with (tests/spatialsim_env/literal.py); for a
learned reward it is the same network, one call a row. Each figure is the median of several repetitions on one thread;
a ratio compares figures of the same run. Absolute figures depend on the machine and on what else it does.
"""

from __future__ import annotations

import recording

# isort: split
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from recording import Row, median

from reward_models import models
from reward_models.judges.learned import LearnedModel, LearnedReward
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.scene import ARENA, ORIENTATION, POSITION, TURN
from spatialsim_env.arrangements.tasks import Discrimination, Identification, Task
from tests.spatialsim_env import literal

REPETITIONS = 7
PACKAGES = ("numpy", "numba", "gymnasium", "torch")


def row(name: str, unit: str, ours: float, plain: float, target: float, settings: str) -> Row:
    """A line of the table; with a unit of time less is better, else more."""
    is_time = unit == "ms"
    return {
        "work": name,
        "settings": settings,
        "unit": unit,
        "ours": ours,
        "plain": plain,
        "ratio": plain / ours if is_time else ours / plain,
        "target": target,
        "met": ours <= target if is_time else ours >= target,
    }


def generation(name: str, task: Task, target: float, size: int = 50_000, few: int = 200) -> Row:
    """Samples per second."""
    low, high = task.object_range

    def plainly() -> None:
        rng = np.random.default_rng(0)
        references, draws = task.references(few, rng), task.draw(few, rng)
        for k in range(few):
            literal.reference_scene(rng.random((high, 8)), int(rng.integers(low, high + 1)))
            literal.target(references[k], draws, k, task.negative, task.max_rotation)

    fast = median(lambda: task.sample(size, np.random.default_rng(0)))
    sizes = f"{size:,} samples, {few} plainly"
    return row(f"generation, {name}", "samples/s", size / fast, few / median(plainly, 3), target, sizes)


def truth(size: int = 4096, n: int = 8, few: int = 100) -> Row:
    """The truth on a batch of pairs, half of them achieved."""
    pairs = Discrimination(n).sample(size, np.random.default_rng(0))
    fast = median(lambda: goals.distance(pairs.reference, pairs.target))
    plain = median(lambda: [literal.distance(pairs.reference[k], pairs.target[k]) for k in range(few)], 3)
    return row(
        f"truth, {size:,} pairs of {n}",
        "ms",
        1e3 * fast,
        1e3 * plain / few * size,
        20,
        f"{size:,} pairs, {few} plainly",
    )


def stepping(steps: int = 5_000, few: int = 200, n: int = 5) -> Row:
    """Steps per second through gym.make, success by the truth at each."""
    env: Any = gym.make("spatialsim_env:SpatialSim-Discrim-v0", n_objects=n)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(steps)]

    def run() -> None:
        env.reset(seed=0)
        for action in actions:
            *_, truncated, _ = env.step(action)
            if truncated:
                env.reset()

    def plainly() -> None:
        env.reset(seed=0)
        arena, goal = env.unwrapped.scenes
        for action in actions[:few]:
            for thing, (right, up, turn) in zip(arena, action.reshape(n, 3).tolist(), strict=True):
                x, y = thing[POSITION].tolist()
                thing[POSITION] = min(max(x + right, 0), ARENA), min(max(y + up, 0), ARENA)
                thing[ORIENTATION] = (thing[ORIENTATION] + 0.3 * turn) % TURN
            literal.distance(arena, goal)

    fast, plain = median(run), median(plainly, 3)
    return row(f"gym.make, n = {n}", "steps/s", steps / fast, few / plain, 20_000, f"{steps:,} steps, {few} plainly")


def learned_reward(name: str, n_objects: int | tuple[int, int], rows: int = 204) -> Row:
    """The rows that one gradient step of SAC with hindsight relabelling asks for; plainly, one call a row."""
    reward = LearnedReward(LearnedModel(models.create(name)))
    task = Discrimination(n_objects)
    pairs = task.sample(rows, np.random.default_rng(0))
    achieved, desired = np.array(pairs.reference), pairs.target
    fast = median(lambda: reward(achieved, desired), 30)
    plain = median(lambda: [reward(achieved[k : k + 1], desired[k : k + 1]) for k in range(rows)], 3)
    low, high = task.object_range
    title = f"learned reward {name}, {rows} rows, n = {low}" + (f"-{high}" if high > low else "")
    return row(title, "ms", 1e3 * fast, 1e3 * plain, 2, f"{rows} rows in one call, or one call a row")


def measure() -> dict[str, Any]:
    """All rows, with what they were measured on."""
    torch.set_num_threads(1)
    rows = [
        generation("Identification n = 5", Identification(5), 600_000),
        generation("Discrimination 3-8", Discrimination((3, 8)), 300_000),
        generation("Discrimination 9-20", Discrimination((9, 20)), 120_000),
        generation("Discrimination 21-30", Discrimination((21, 30)), 75_000),
        truth(),
        stepping(),
        *(learned_reward(name, n) for name in ("mpgnn", "matching") for n in (3, (3, 8))),
    ]
    return recording.state_origin(PACKAGES) | {
        "repetitions": REPETITIONS,
        "rows": rows,
    }


def table(result: dict[str, Any]) -> str:
    """The rows as Markdown."""
    lines = []
    for line in result["rows"]:
        digits, bound = (1, "under") if line["unit"] == "ms" else (0, "at least")
        speeds = (f"{line[key]:,.{digits}f} {line['unit']}" for key in ("ours", "plain"))
        target = f"{bound} {line['target']:,} {line['unit']}"
        lines.append((line["work"], *speeds, f"{line['ratio']:,.0f}", target, recording.format_met(line["met"])))
    return recording.markdown(("work", "here", "plain", "ratio", "target", "met"), lines)


if __name__ == "__main__":
    recording.main(__file__, measure, table)
