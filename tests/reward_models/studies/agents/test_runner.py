"""One run of the study of agents: claimed, done, gone on with after a kill, and its row written last."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

from reward_models.agents import training
from reward_models.agents.evaluation import evaluate
from reward_models.agents.training import load_agent
from reward_models.judges.learned import LearnedReward
from reward_models.measuring import evaluation
from reward_models.models import checkpoint
from reward_models.shares import share
from reward_models.studies import claims
from reward_models.studies.agents import rows as study_rows
from reward_models.studies.agents import runner
from reward_models.studies.agents import runs as study
from reward_models.studies.agents import work as study_work
from reward_models.studies.agents.runner import Study
from reward_models.studies.paper import launch
from reward_models.studies.paper.runner import DONE, FAILED, MISSING, RUNNING, TRACEBACK
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.arrangements.datasets.rollouts import Rollouts, World, pairs

SMALL = study.runs(quick=True)
AGENT = SMALL["agents/discrim_n3/sparse/seed0"]
LEARNED = SMALL["agents/discrim_n3/matching/seed0"]
NETWORK = SMALL["rewards/matching"]
ROLLOUTS = SMALL["rollouts/matching"]
POLICY = SMALL["agents/discrim_n3/random"]
EXPERT = SMALL["agents/pick_place_n3/expert"]
TRANSFER = SMALL["generalisation/discrim_3_5/n7"]


@pytest.fixture
def here(tmp_path) -> Study:
    return Study(tmp_path / "results", tmp_path / "work", quick=True)


def by_hand(policy, run, reward="sparse"):
    """What a row says of the episodes of a policy, from an evaluation of its own."""
    found = evaluate(policy, run.config, reward, episodes=run.episodes, seed=10_000)
    parts = {name: getattr(found, name) for name in ("success", "ever_success", "claimed", "ever_claimed")}
    parts["precision"] = found.success[found.claimed]
    return {name: share(part.sum(), len(part)) for name, part in parts.items()}


def test_an_agent_on_a_learned_reward_trains_its_network_first(here):
    outcome = runner.run(LEARNED, here)
    assert (outcome.run, outcome.state, outcome.new) == (LEARNED.id, DONE, True)
    network, row = study_rows.read(here.results, quick=True)
    assert (network["id"], row["id"]) == (NETWORK.id, LEARNED.id)
    assert outcome.row == row

    folder = here.folder(LEARNED.id)
    agent = load_agent(folder)
    agent.close()
    assert row["evaluation"] == by_hand(agent, LEARNED, str(here.folder(NETWORK.id)))
    digest = checkpoint.read_info(here.folder(NETWORK.id))["sha256"]
    expected = {"run": NETWORK.id, "sha256": digest, "training": NETWORK.training.to_json()}
    assert row["network"] == network["network"] == expected
    assert [row[name] for name in ("steps", "seconds", "cpu_seconds")] == [
        agent.record[name] for name in ("steps", "seconds", "cpu_seconds")
    ]
    logged = training.learning_curve(folder)
    assert row["curve"] == study_work.points(logged, study_work.COLUMNS)
    [[steps, *evaluated]] = row["evaluations"]
    assert steps >= LEARNED.config.evaluate_every
    assert evaluated == [next(line[name] for line in logged if name in line) for name in study_work.EVALUATED]
    assert row["curve"][-1][0] == row["steps"] == LEARNED.config.total_steps


@pytest.mark.parametrize("run", [NETWORK, ROLLOUTS], ids=lambda run: run.id)
def test_networks_are_measured_on_the_benchmark_and_on_fresh_rollouts(run, here):
    runner.run(run, here)
    [row] = study_rows.read(here.results, quick=True)
    stored = checkpoint.load(here.folder(run.id))
    world = World({"n_objects": (3, 8)})
    both = Rollouts(world, (world.policy("random"), world.policy("expert")), 0, balanced=True)
    tests = {f"{group}": named.sample(f"discrimination/{group}/test", 0, 50) for group in ("3-8", "9-20", "21-30")}
    tests["rollouts"] = pairs(*_fresh(both))[0]
    expected = {name: evaluation.accuracy(stored.model, samples) for name, samples in tests.items()}
    assert row["accuracy"] == {name: share(found.correct, found.total) for name, found in expected.items()}
    assert row["n_weights"] == stored.model.n_weights
    assert row["network"]["sha256"] == checkpoint.read_info(here.folder(run.id))["sha256"]
    data = stored.task.get("data", {"path": None})["path"]
    assert data == (f"rollouts:{here.folder('rollouts/pairs')}" if run is ROLLOUTS else None)


def _fresh(both):
    played, rng = both.shard("test", 0, 10)
    return played, True, rng


@pytest.mark.parametrize("run", [POLICY, EXPERT], ids=lambda run: run.id)
def test_policies_without_training(run, here):
    runner.run(run, here)
    [row] = study_rows.read(here.results, quick=True)
    assert row["evaluation"] == by_hand(run.policy, run)
    assert (row["steps"], row["curve"], row["network"]) == (0, [], None)


def test_a_clone(here):
    run = SMALL["agents/discrim_n3/cloned/seed0"]
    runner.run(run, here)
    [row] = study_rows.read(here.results, quick=True)
    agent = load_agent(here.folder(run.id))
    agent.close()
    assert row["evaluation"] == by_hand(agent, run)
    assert row["steps"] == agent.record["steps"] > 0


def test_an_agent_where_it_was_not_trained(here):
    assert runner.run(TRANSFER, here).state == DONE
    rows = {row["id"]: row for row in study_rows.read(here.results, quick=True)}
    assert rows.keys() == {TRANSFER.id, TRANSFER.agent, "rewards/mpgnn", "rewards/matching"}
    agent = load_agent(here.folder(TRANSFER.agent))
    agent.close()
    policy = training.transferred(agent, TRANSFER.config)
    assert rows[TRANSFER.id]["evaluation"] == by_hand(policy, TRANSFER)
    found = evaluate(policy, TRANSFER.config, episodes=TRANSFER.episodes)
    for name, claimed in rows[TRANSFER.id]["claims"].items():
        says = LearnedReward(here.folder(f"rewards/{name}"))(found.achieved, found.desired) == 0
        assert claimed == {
            "claimed": share(says.sum(), 4),
            "precision": share(found.success[says].sum(), says.sum()),
        }


KILLED = """
import os, signal, sys
from pathlib import Path
from reward_models.studies.agents import runs as study, runner
from reward_models.agents.run import Run

save = Run.save_checkpoint

def dying(self, model):
    save(self, model)
    os.kill(os.getpid(), signal.SIGKILL)

Run.save_checkpoint = dying
here = runner.Study(Path(sys.argv[1]), Path(sys.argv[2]), quick=True)
runner.run(study.runs(quick=True)[sys.argv[3]], here)
"""


def test_a_killed_run_goes_on_and_ends_with_its_row(here):
    command = [sys.executable, "-c", KILLED, str(here.results), str(here.work), AGENT.id]
    killed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert runner.state(AGENT, here) == MISSING  # the claim ended with its process
    steps = json.loads((here.folder(AGENT.id) / "agent.json").read_text())["steps"]
    assert 0 < steps < AGENT.config.total_steps

    assert runner.run(AGENT, here).state == DONE
    alone = Study(here.results.parent / "alone", here.work.parent / "alone-work", quick=True)
    runner.run(AGENT, alone)
    [row], [other] = (study_rows.read(place.results, quick=True) for place in (here, alone))
    same = ("id", "version", "settings", "network", "steps", "error")  # a resumed run goes on with new episodes
    assert {name: row[name] for name in same} == {name: other[name] for name in same}
    assert row["evaluation"]["success"]["total"] == 4


def test_a_run_is_done_once(here):
    assert runner.state(POLICY, here) == MISSING
    first = runner.run(POLICY, here)
    before = study_rows.path_of(here.results, POLICY).stat().st_mtime_ns
    again = runner.run(POLICY, here)
    assert (again.state, again.new, again.row) == (DONE, False, first.row)
    assert study_rows.path_of(here.results, POLICY).stat().st_mtime_ns == before
    assert runner.state(POLICY, here) == DONE


def test_two_processes_never_do_the_same_run(here):
    found = list(launch.in_parallel(partial(runner.run, here=here), [AGENT, AGENT], 2))
    assert sorted(outcome.new for outcome in found) == [False, True]
    assert {outcome.state for outcome in found} <= {DONE, RUNNING}


def test_what_another_process_has_claimed_is_left_to_it(here):
    with here.claim(POLICY.id):
        assert runner.state(POLICY, here) == RUNNING
        outcome = runner.run(POLICY, here)
        assert (outcome.state, outcome.row) == (RUNNING, None)
    assert study_rows.read(here.results, quick=True) == []
    assert runner.run(POLICY, here).state == DONE


def test_a_network_that_another_process_trains_is_waited_for(here):
    claimed, released = threading.Event(), []

    def hold():
        with here.claim(NETWORK.id):
            claimed.set()
            time.sleep(0.5)
            released.append(study_rows.of_run(here.results, NETWORK))

    holder = threading.Thread(target=hold)
    holder.start()
    claimed.wait()
    assert runner.run(LEARNED, here).state == DONE
    holder.join()
    assert released == [None]


def test_weights_that_are_gone_are_trained_again(here):
    runner.run(NETWORK, here)
    [network] = study_rows.read(here.results, quick=True)
    shutil.rmtree(here.work)
    assert runner.run(LEARNED, here).row["network"] == network["network"]


def test_a_failing_run_is_a_row_and_may_be_run_again(here, monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("no\nepisodes")

    monkeypatch.setattr(study_work, "evaluate", failing)
    outcome = runner.run(POLICY, here)
    [row] = study_rows.read(here.results, quick=True)
    assert (outcome.state, row["error"], row["evaluation"]) == (FAILED, "RuntimeError: no", {})
    assert "raise RuntimeError" in (here.folder(POLICY.id) / TRACEBACK).read_text()
    monkeypatch.undo()
    assert runner.run(POLICY, here).state == runner.state(POLICY, here) == FAILED
    retrying = Study(here.results, here.work, quick=True, retry=True)
    assert runner.run(POLICY, retrying).state == DONE
    assert not (here.folder(POLICY.id) / TRACEBACK).exists()


def test_what_builds_on_a_failed_run_fails_and_says_so(here, monkeypatch):
    def failing(*_, **__):
        raise FloatingPointError("nan")

    monkeypatch.setattr(study_work, "train_network", failing)
    assert (
        runner.run(LEARNED, here)
        .row["error"]
        .startswith("reward_models.studies.agents.runner.NeededFailed: rewards/matching")
    )
    assert [row["id"] for row in study_rows.read(here.results, quick=True)] == [NETWORK.id, LEARNED.id]


def test_a_full_disk_ends_the_study_without_a_row(here, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    for module, function in ((study_work, "evaluate"), (os, "fsync")):
        monkeypatch.setattr(module, function, full)
        with pytest.raises(claims.NoSpaceLeft, match="discrim_n3/random was run; no row of it was written"):
            runner.run(POLICY, here)
        monkeypatch.undo()
    assert study_rows.read(here.results, quick=True) == []


def test_a_folder_of_another_run_is_refused(here):
    runner.run(POLICY, here)
    shutil.rmtree(here.results)
    whole = Study(here.results, here.work)
    with pytest.raises(ValueError, match=r"agents/discrim_n3/random holds another run: .*total_steps is 96 there"):
        whole.check([study.runs()[POLICY.id]])
    here.check([POLICY])


def test_what_a_run_builds_on_is_checked_too(here):
    row = study_rows.row_of(NETWORK, accuracy={"3-8": share(1, 2)}) | {"version": 0}
    study_rows.write(here.results, NETWORK, row)
    here.check([POLICY])
    with pytest.raises(ValueError, match="rewards/matching is of version 0"):
        here.check([LEARNED])


def test_places_are_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Study().results == tmp_path / "results/agents"
    assert Study().work == tmp_path / "runs/agents"


@pytest.mark.parametrize("rows", [0, 1, 2, 60, 61, 1_000])
def test_a_curve_keeps_its_ends_and_at_most_sixty_points(rows):
    logged = [
        {
            "time/total_timesteps": 10.0 * k,
            "rollout/success_rate": k / 1_000,
            "reward/true": -1.0,
            "reward/model": np.nan,
        }
        for k in range(rows)
    ]
    said = study_work.thinned(study_work.points([{"time/total_timesteps": 5.0}, *logged], study_work.COLUMNS))
    assert len(said) == min(rows, 60)
    assert [point[0] for point in said] == sorted({point[0] for point in said})
    if rows:
        assert [said[0][0], said[-1][0]] == [0, 10 * (rows - 1)]
        assert said[-1][1:] == [round((rows - 1) / 1_000, 4), None, -1.0, None]
