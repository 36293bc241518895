"""Work of the study of agents: rows of every kind of run, resume after a kill, failures."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from reward_models.agents import training
from reward_models.agents.evaluation import evaluate
from reward_models.agents.training import load_agent
from reward_models.judges.learned import LearnedReward
from reward_models.measuring import evaluation
from reward_models.models import checkpoint
from reward_models.shares import share
from reward_models.studies.agents import runs, work
from reward_models.studies.agents.tables import STUDY
from reward_models.studies.engine import claims, rows
from reward_models.studies.engine.run import DONE, FAILED, MISSING, TRACEBACK, run, states
from reward_models.studies.engine.sweep import Sweep
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.arrangements.datasets.rollouts import Rollouts, RolloutWorld, pairs

SMALL = runs.units(quick=True)
AGENT = SMALL["agents/discrim_n3/sparse/seed0"]
LEARNED = SMALL["agents/discrim_n3/matching/seed0"]
NETWORK = SMALL["rewards/matching"]
ROLLOUTS = SMALL["rollouts/matching"]
POLICY = SMALL["agents/discrim_n3/random"]
EXPERT = SMALL["agents/pick_place_n3/expert"]
TRANSFER = SMALL["generalisation/discrim_3_5/n7"]


@pytest.fixture
def here(tmp_path) -> Sweep:
    return Sweep(STUDY, tmp_path / "results", tmp_path / "work", quick=True)


def read(here):
    """Rows of a sweep."""
    return list(rows.read(STUDY, here.results, quick=True).rows.values())


def by_hand(policy, run, reward="sparse"):
    """What a row says of the episodes of a policy, from an evaluation of its own."""
    found = evaluate(policy, run.config, reward, episodes=run.episodes, seed=10_000)
    parts = {name: getattr(found, name) for name in ("success", "ever_success", "claimed", "ever_claimed")}
    parts["precision"] = found.success[found.claimed]
    return {name: share(part.sum(), len(part)) for name, part in parts.items()}


def test_an_agent_on_a_learned_reward_trains_its_network_first(here):
    outcome = run(LEARNED, here)
    assert (outcome.unit, outcome.state, outcome.new) == (LEARNED.id, DONE, True)
    network, row = read(here)
    assert (network.id, row.id) == (NETWORK.id, LEARNED.id)
    assert outcome.rows == (row,)

    folder = here.folder(LEARNED)
    agent = load_agent(folder)
    agent.close()
    assert row.evaluation == by_hand(agent, LEARNED, str(here.folder(NETWORK)))
    digest = checkpoint.read_info(here.folder(NETWORK))["sha256"]
    expected = {"run": NETWORK.id, "sha256": digest, "training": NETWORK.training.to_json()}
    assert row.network == network.network == expected
    assert [getattr(row, name) for name in ("steps", "seconds", "cpu_seconds")] == [
        agent.record[name] for name in ("steps", "seconds", "cpu_seconds")
    ]
    logged = training.learning_curve(folder)
    assert row.curve == work.read_points(logged, work.COLUMNS)
    [[steps, *evaluated]] = row.evaluations
    assert steps >= LEARNED.config.evaluate_every
    assert evaluated == [next(line[name] for line in logged if name in line) for name in work.EVALUATED]
    assert row.curve[-1][0] == row.steps == LEARNED.config.total_steps


@pytest.mark.parametrize("unit", [NETWORK, ROLLOUTS], ids=lambda unit: unit.id)
def test_networks_are_measured_on_the_benchmark_and_on_fresh_rollouts(unit, here):
    run(unit, here)
    [row] = read(here)
    stored = checkpoint.load(here.folder(unit))
    world = RolloutWorld({"n_objects": (3, 8)})
    both = Rollouts(world, (world.policy("random"), world.policy("expert")), 0, balanced=True)
    tests = {f"{group}": named.sample(f"discrimination/{group}/test", 0, 50) for group in ("3-8", "9-20", "21-30")}
    tests["rollouts"] = pairs(*_fresh(both))[0]
    expected = {name: evaluation.accuracy(stored.model, samples) for name, samples in tests.items()}
    assert row.accuracy == {name: share(found.correct, found.total) for name, found in expected.items()}
    assert row.n_weights == stored.model.n_weights
    assert row.network["sha256"] == checkpoint.read_info(here.folder(unit))["sha256"]
    data = stored.task.get("data", {"path": None})["path"]
    assert data == (f"rollouts:{here.work / 'rollouts/pairs'}" if unit is ROLLOUTS else None)


def _fresh(both):
    played, rng = both.shard("test", 0, 10)
    return played, True, rng


@pytest.mark.parametrize("unit", [POLICY, EXPERT], ids=lambda unit: unit.id)
def test_policies_without_training(unit, here):
    run(unit, here)
    [row] = read(here)
    assert row.evaluation == by_hand(unit.policy, unit)
    assert (row.steps, row.curve, row.network) == (0, [], None)


def test_a_clone(here):
    unit = SMALL["agents/discrim_n3/cloned/seed0"]
    run(unit, here)
    [row] = read(here)
    agent = load_agent(here.folder(unit))
    agent.close()
    assert row.evaluation == by_hand(agent, unit)
    assert row.steps == agent.record["steps"] > 0


def test_an_agent_where_it_was_not_trained(here):
    assert run(TRANSFER, here).state == DONE
    made = {row.id: row for row in read(here)}
    assert made.keys() == {TRANSFER.id, TRANSFER.agent, "rewards/mpgnn", "rewards/matching"}
    agent = load_agent(here.folder(SMALL[TRANSFER.agent]))
    agent.close()
    policy = training.transfer(agent, TRANSFER.config)
    assert made[TRANSFER.id].evaluation == by_hand(policy, TRANSFER)
    found = evaluate(policy, TRANSFER.config, episodes=TRANSFER.episodes)
    for name, claimed in made[TRANSFER.id].claims.items():
        says = LearnedReward(here.folder(SMALL[f"rewards/{name}"]))(found.achieved, found.desired) == 0
        assert claimed == {
            "claimed": share(says.sum(), 4),
            "precision": share(found.success[says].sum(), says.sum()),
        }


KILLED = """
import os, signal, sys
from pathlib import Path
from reward_models.agents.run import Run
from reward_models.studies.agents.tables import STUDY
from reward_models.studies.engine.run import run
from reward_models.studies.engine.sweep import Sweep

save = Run.save_checkpoint

def dying(self, model):
    save(self, model)
    os.kill(os.getpid(), signal.SIGKILL)

Run.save_checkpoint = dying
sweep = Sweep(STUDY, Path(sys.argv[1]), Path(sys.argv[2]), quick=True)
run(sweep.units[sys.argv[3]], sweep)
"""


def test_a_killed_run_is_resumed_and_ends_with_its_row(here):
    command = [sys.executable, "-c", KILLED, str(here.results), str(here.work), AGENT.id]
    killed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert states(AGENT, here) == {AGENT.id: MISSING}  # the claim ended with its process
    steps = json.loads((here.folder(AGENT) / "agent.json").read_text())["steps"]
    assert 0 < steps < AGENT.config.total_steps

    assert run(AGENT, here).state == DONE
    alone = Sweep(STUDY, here.results.parent / "alone", here.work.parent / "alone-work", quick=True)
    run(AGENT, alone)
    [row], [other] = read(here), read(alone)
    same = ("id", "stamp", "settings", "network", "steps", "error")  # a resumed run goes on with new episodes
    assert {name: getattr(row, name) for name in same} == {name: getattr(other, name) for name in same}
    assert row.evaluation["success"]["total"] == 4


def test_weights_that_are_gone_are_trained_again(here):
    run(NETWORK, here)
    [network] = read(here)
    shutil.rmtree(here.work)
    assert run(LEARNED, here).rows[0].network == network.network


def test_a_failing_run_is_a_row_and_may_be_run_again(here, monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("no\nepisodes")

    monkeypatch.setattr(work, "evaluate", failing)
    outcome = run(POLICY, here)
    [row] = read(here)
    assert (outcome.state, row.error, row.evaluation) == (FAILED, "RuntimeError: no", {})
    assert "raise RuntimeError" in (here.folder(POLICY) / TRACEBACK).read_text()
    monkeypatch.undo()
    assert run(POLICY, here).state == FAILED
    retrying = Sweep(STUDY, here.results, here.work, quick=True, retry=True)
    assert run(POLICY, retrying).state == DONE
    assert not (here.folder(POLICY) / TRACEBACK).exists()


def test_an_agent_on_a_network_that_failed_fails_and_says_so(here, monkeypatch):
    def failing(*_, **__):
        raise FloatingPointError("nan")

    monkeypatch.setattr(work, "train_network", failing)
    assert "NeededFailed: rewards/matching" in run(LEARNED, here).rows[0].error
    assert [row.id for row in read(here)] == [NETWORK.id, LEARNED.id]


def test_a_full_disk_ends_the_study_without_a_row(here, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    for module, function in ((work, "evaluate"), (os, "fsync")):
        monkeypatch.setattr(module, function, full)
        with pytest.raises(claims.NoSpaceLeft):
            run(POLICY, here)
        monkeypatch.undo()
    assert not list(here.results.rglob("*.json"))


def test_a_folder_of_another_run_is_refused(here):
    run(POLICY, here)
    shutil.rmtree(here.results)
    whole = Sweep(STUDY, here.results, here.work)
    with pytest.raises(ValueError, match=r"agents/discrim_n3/random holds another run: .*'total_steps': 96"):
        whole.check([runs.units()[POLICY.id]])
    here.check([POLICY])


@pytest.mark.parametrize("size", [0, 1, 2, 60, 61, 1_000])
def test_a_curve_keeps_its_ends_and_at_most_sixty_points(size):
    logged = [
        {
            "time/total_timesteps": 10.0 * k,
            "rollout/success_rate": k / 1_000,
            "reward/true": -1.0,
            "reward/model": np.nan,
        }
        for k in range(size)
    ]
    said = work.thin(work.read_points([{"time/total_timesteps": 5.0}, *logged], work.COLUMNS))
    assert len(said) == min(size, 60)
    assert [point[0] for point in said] == sorted({point[0] for point in said})
    if size:
        assert [said[0][0], said[-1][0]] == [0, 10 * (size - 1)]
        assert said[-1][1:] == [round((size - 1) / 1_000, 4), None, -1.0, None]
