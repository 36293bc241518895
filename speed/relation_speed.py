"""Cost of relations in 3D: rules, pairs of scenes, loading, worlds.

    python speed/relation_speed.py            measures, and writes relation_speed.json beside this file
    python speed/relation_speed.py --print    prints the table of the last run

*Pairs*: minimally contrastive pairs without pictures, written with all their files, by two processes. *Loading*: as
many samples as the published main file has, generated ones, from the split file. *Rules*: all 30 predicates of one
scene each. *Worlds*: steps of copies of the environment with random actions, the truth as reward. Wall time; rules and
worlds on one thread, the least of several calls.
"""

from __future__ import annotations

import recording

# isort: split
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from recording import Row

import spatialsim_env  # noqa: F401  registers the environments
from spatialsim_env.relations.pairs import generation, scene_sets
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.rel3d import published
from spatialsim_env.relations.vocabulary import COUNTS

PAIRS, JOBS = 20_000, 2
TARGET = 600.0  # s, of the pairs; under
COPIES, STEPS = 1_024, 50
REPEATS = 3
PACKAGES = ("numpy", "numba", "scipy", "gymnasium")


def row(work: str, unit: str, value: float, target: float | None = None) -> Row:
    """A line of the table."""
    met = None if target is None else value < target
    return {"work": work, "unit": unit, "value": value, "target": target, "met": met}


def seconds(work: Callable[[], Any], repeats: int = 1) -> float:
    """The least wall time of several calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def pairs(folder: Path, number: int = PAIRS) -> Row:
    """A whole data set without pictures."""
    took = seconds(lambda: generation.generate(folder, number, 0, jobs=JOBS))
    return row(f"{number:,} pairs of scenes, {JOBS} processes", "s", took, TARGET * number / PAIRS)


def loading(folder: Path) -> Row:
    """As many samples as the published file has, or all that there are."""
    split = published.load(folder)
    wanted = sum(sum(counts) for counts in COUNTS.values())
    took = seconds(lambda: published.load(folder), REPEATS)
    size = sum(len(part) for part in (split.train, split.valid, split.test))
    return row(f"loading of {wanted:,} samples", "s", took * wanted / size)


def rules(folder: Path) -> Row:
    """All predicates of a scene."""
    known = scene_sets.load(folder / generation.SCENES)
    scenes, observers = known.scenes[:, 0], known.observers[:, 0]
    predicates.margins(scenes, observers)
    took = seconds(lambda: predicates.margins(scenes, observers), REPEATS)
    return row("all 30 predicates of a scene", "us", took / len(scenes) * 1e6)


def worlds() -> Row:
    """Steps of many worlds in one process."""
    env = gym.make_vec("SpatialSim-Relation3D-v0", num_envs=COPIES)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    actions = [rng.uniform(-1, 1, env.action_space.shape).astype(np.float32) for _ in range(STEPS)]

    def play() -> None:
        for action in actions:
            env.step(action)

    play()
    return row(f"a step of one of {COPIES:,} worlds", "us", seconds(play, REPEATS) / STEPS / COPIES * 1e6)


def measure() -> dict[str, Any]:
    """All rows, with what they were measured on."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [pairs(folder), loading(folder), rules(folder), worlds()]
    return recording.state_origin(PACKAGES) | {"rows": rows}


def table(result: dict[str, Any]) -> str:
    """The rows as Markdown."""
    lines = []
    for line in result["rows"]:
        value = f"{line['value']:.1f}" if line["value"] < 100 else f"{line['value']:,.0f}"
        bound = "-" if line["target"] is None else f"under {line['target']:g} {line['unit']}"
        lines.append((line["work"], f"{value} {line['unit']}", bound, recording.format_met(line["met"])))
    return recording.markdown(("work", "here", "target", "met"), lines)


if __name__ == "__main__":
    recording.main(__file__, measure, table)
