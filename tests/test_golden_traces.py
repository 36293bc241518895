"""Whole episodes keep their bits: every environment, single and as a vector, with every kind of reward.

A trace is what an episode shows under seeded actions: observations, rewards, flags and infos. Its SHA-256 is compared
where processor and packages are those of the recording; elsewhere the sums of its parts are, which rounding moves
little. ``python -m tests.test_golden_traces`` records, which only a new case or version of an id justifies.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

DATA = Path(__file__).parent / "data"
GOLDEN = DATA / "golden_traces.json"
STEPS, HORIZON, COPIES = 60, 25, 3
WIDE = {"tolerances": (5.0, 3.2, 5.0), "start": "displaced"}  # met by random actions now and then
RELATIONS = "SpatialSim-Relation3D-v0"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    f"{name}/{reward.partition(':')[0]}": (f"SpatialSim-{name}-v0", {"n_objects": 4, "reward": reward})
    for name in ("Discrim", "Ident")
    for reward in ("sparse", "dense", "hub:matching")
} | {
    "Discrim/range": ("SpatialSim-Discrim-v0", {"n_objects": (3, 8)}),
    "Discrim/wide": ("SpatialSim-Discrim-v0", {"n_objects": 4, **WIDE}),
    "Discrim/ends": ("SpatialSim-Discrim-v0", {"n_objects": 4, **WIDE, "terminate_on_success": True}),
    "Discrim/pick_place": ("SpatialSim-Discrim-v0", {"n_objects": 3, "action_mode": "pick_place", "max_turn": 0}),
    "Discrim/discrete": ("SpatialSim-Discrim-v0", {"n_objects": 3, "action_mode": "discrete"}),
    "Discrim/positions": ("SpatialSim-Discrim-v0", {"n_objects": 4, "criterion": "positions", "reward": "dense"}),
    "Discrim/visual": ("SpatialSim-Discrim-v0", {"n_objects": 4, "orientation": "visual", "start": "displaced_few"}),
    "Discrim/pixels": ("SpatialSim-Discrim-v0", {"n_objects": 3, "observation": "pixels"}),
    "Discrim/hub_dense": ("SpatialSim-Discrim-v0", {"n_objects": 4, "reward": "hub:matching:dense"}),
    "Discrim/mpgnn": ("SpatialSim-Discrim-v0", {"n_objects": 3, "reward": "hub:mpgnn:dense"}),
    "Ident/own_goal": ("SpatialSim-Ident-v0", {"n_objects": 5, "reference_seed": 7, "start": "swapped"}),
    "Relation3D/sparse": (RELATIONS, {}),
    "Relation3D/dense": (RELATIONS, {"reward": "dense"}),
    "Relation3D/some": (RELATIONS, {"predicates": ["near", "to the left of"], "terminate_on_success": True}),
    "Relation3D/learned": (RELATIONS, {"reward": "models/relations"}),
    "Relation3D/learned_dense": (RELATIONS, {"reward": "models/relations:dense"}),
}  # fmt: skip


def machine() -> str:
    """Processor and packages, all that a last bit may depend on."""
    simd = np.show_config(mode="dicts")["SIMD Extensions"]  # type: ignore[call-overload,index]
    packages = [f"{name} {version(name)}" for name in ("numpy", "numba", "llvmlite", "scipy", "torch")]
    about = [platform.system(), platform.machine(), *simd["baseline"], *simd["found"], *packages]
    return hashlib.sha256(" ".join(about).encode()).hexdigest()[:16]


def options_of(case: str) -> tuple[str, dict[str, Any]]:
    """Id and keywords of a case; a model of the tests' data is found by its path."""
    env_id, options = CASES[case]
    reward = options.get("reward", "sparse")
    options = {**options, "reward": f"{DATA / reward}"} if reward.startswith("models/") else options
    return f"spatialsim_env:{env_id}", {"max_episode_steps": HORIZON, **options}


def actions_of(space: spaces.Space[Any], seed: int) -> Iterator[Any]:
    """Seeded actions of a space, through numpy alone."""
    rng = np.random.default_rng(seed)
    while True:
        if isinstance(space, spaces.Box):
            yield rng.uniform(space.low, space.high).astype(space.dtype)
        elif isinstance(space, spaces.MultiDiscrete):
            yield rng.integers(space.nvec)
        else:
            assert isinstance(space, spaces.Discrete)
            yield int(rng.integers(space.n))


def single(case: str) -> Iterator[dict[str, Any]]:
    """The parts of a trace of the single environment, reset wherever an episode ends."""
    env_id, options = options_of(case)
    env = gym.make(env_id, **options)
    observation, info = env.reset(seed=11)
    yield {**observation, **info}
    for _, action in zip(range(STEPS), actions_of(env.action_space, 5), strict=False):
        observation, reward, terminated, truncated, info = env.step(action)
        yield {**observation, "reward": reward, "terminated": terminated, "truncated": truncated, **info}
        if terminated or truncated:
            observation, info = env.reset()
            yield {**observation, **info}


def vector(case: str) -> Iterator[dict[str, Any]]:
    """The parts of a trace of the vector environment, which begins episodes by itself."""
    env_id, options = options_of(case)
    envs = gym.make_vec(env_id, num_envs=COPIES, **options)
    observation, info = envs.reset(seed=11)
    yield {**observation, **info}
    for _, action in zip(range(STEPS), actions_of(envs.action_space, 5), strict=False):
        observation, reward, terminated, truncated, info = envs.step(action)
        yield {**observation, "reward": reward, "terminated": terminated, "truncated": truncated, **info}


FORMS = {"single": single, "vector": vector}


def trace(case: str, form: str) -> dict[str, Any]:
    """SHA-256 over all parts of a trace, and the sum of each."""
    digest, sums = hashlib.sha256(), dict[str, float]()
    for parts in FORMS[form](case):
        for name, value in sorted(parts.items()):
            array = np.ascontiguousarray(value)
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
            sums[name] = sums.get(name, 0.0) + float(array.sum(dtype=np.float64))
    return {"sha256": digest.hexdigest()[:32], "sums": {name: round(value, 4) for name, value in sums.items()}}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_a_trace_keeps_its_bits(case, form):
    if "hub" in str(CASES[case]) or "models/" in str(CASES[case]):
        pytest.importorskip("torch")
    if "pixels" in case:
        pytest.importorskip("pygame")
    golden = json.loads(GOLDEN.read_text())
    expected, given = golden["traces"][f"{case}/{form}"], trace(case, form)
    assert given["sums"] == pytest.approx(expected["sums"], rel=1e-4, abs=0.05)
    if golden["machine"] == machine():
        assert given["sha256"] == expected["sha256"]


def test_every_case_is_recorded():
    assert set(json.loads(GOLDEN.read_text())["traces"]) == {f"{case}/{form}" for case in CASES for form in FORMS}


if __name__ == "__main__":
    traces = {f"{case}/{form}": trace(case, form) for case in CASES for form in FORMS}
    GOLDEN.write_text(json.dumps({"machine": machine(), "traces": traces}, indent=1) + "\n")
