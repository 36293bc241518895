"""Agents that were saved by earlier code load and act as they did; their files hold paths of classes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.test_golden_traces import machine

pytest.importorskip("stable_baselines3")

DATA = Path(__file__).parent / "data"
GOLDEN = DATA / "golden_agents.json"
AGENTS = ("objects", "relation")  # trained for 60 steps, with networks of width 8
STEPS = 12


def acted(name: str) -> dict[str, object]:
    """SHA-256 and sum of what a saved agent does in its own environment from a seed."""
    from reward_models.agents.training import load_agent

    agent = load_agent(DATA / "agents" / name)
    envs = agent.model.get_env()
    envs.seed(3)
    observation, digest, total = envs.reset(), hashlib.sha256(), 0.0
    for _ in range(STEPS):
        action, _ = agent.predict(observation)
        observation, reward, _, _ = envs.step(action)
        digest.update(np.ascontiguousarray(action).tobytes() + np.asarray(reward).tobytes())
        total += float(np.abs(action).sum())
    agent.close()
    return {"sha256": digest.hexdigest()[:32], "sum": round(total, 4)}


@pytest.mark.filterwarnings("ignore:.*was written with")  # of another version of the package
@pytest.mark.parametrize("name", AGENTS)
def test_a_saved_agent_acts_as_it_did(name):
    golden, given = json.loads(GOLDEN.read_text()), acted(name)
    assert given["sum"] == pytest.approx(golden[name]["sum"], abs=0.01)
    if golden["machine"] == machine():
        assert given["sha256"] == golden[name]["sha256"]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({"machine": machine(), **{name: acted(name) for name in AGENTS}}, indent=1) + "\n")
