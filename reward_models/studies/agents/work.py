"""What each kind of run of the study of agents does: from the run to the entries of its row."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reward_models.agents import cloning, training
from reward_models.agents.evaluation import Evaluation, Policy, evaluate
from reward_models.agents.run import learning_curve
from reward_models.agents.training import STEPS_COLUMN, Agent, train
from reward_models.judges.learned import LearnedReward
from reward_models.measuring import evaluation
from reward_models.models import checkpoint
from reward_models.shares import share, share_of
from reward_models.studies.agents.rows import SHARES, Row
from reward_models.studies.agents.runs import (
    FIRST_EPISODE,
    NETWORKS,
    TRUTHS,
    AgentRun,
    ClonedRun,
    NetworkRun,
    PlayedRun,
    PolicyRun,
    Run,
    TransferRun,
)
from reward_models.studies.claims import FOREVER
from reward_models.training.config import ROLLOUTS, VALID
from reward_models.training.protocol import read_log
from reward_models.training.protocol import train as train_network
from spatialsim_env.arrangements.datasets.rollouts import POLICIES, Rollouts, World, pairs
from spatialsim_env.arrangements.tasks import Samples

if TYPE_CHECKING:
    from reward_models.studies.agents.runner import Study

PAIRS = "rollouts/pairs"  # where the pairs of all networks lie, and the claim on them
COLUMNS = ("rollout/success_rate", "rollout/success_rate_model", "reward/true", "reward/model")  # of a row's curve
EVALUATED = ("eval/success_rate", "eval/success_rate_model")  # of a row's evaluations
POINTS = 60  # of a row's curve, at most

Point = list[float | None]


def done(what: Run, here: Study) -> Row:
    """Do a run; returns the entries of its row that are not the same in every row."""
    start = time.perf_counter(), time.process_time()
    entries = _KINDS[type(what)](what, here)
    spent = {"seconds": time.perf_counter() - start[0], "cpu_seconds": time.process_time() - start[1]}
    return spent | entries


def _network(what: NetworkRun, here: Study) -> Row:
    folder = _weights(what, here)
    model = checkpoint.load(folder).model
    found = {
        name: share(known.correct, known.total)
        for name, known in evaluation.accuracy_by_range(model, what.test_samples).items()
    }
    fresh = evaluation.accuracy(model, _fresh(what))
    return {
        "network": _described(what, folder),
        "seconds": sum(epoch.seconds for epoch in read_log(folder)),
        "n_weights": model.n_weights,
        "accuracy": {**found, "rollouts": share(fresh.correct, fresh.total)},
    }


def _weights(what: NetworkRun, here: Study) -> Path:
    """The folder of a run's network, trained now if it is not there."""
    folder = here.folder(what.id)
    if not (folder / checkpoint.INFO).exists():
        config = what.training
        if what.rollouts is not None:
            place = here.folder(PAIRS)
            with here.claim(PAIRS, FOREVER):
                of = _rollouts(what.rollouts.n_objects, what.rollouts.seed)
                of.write(place, "train", what.rollouts.train)
                of.write(place, VALID, what.rollouts.valid)
            config = replace(config, data=f"{ROLLOUTS}{place}")
        train_network(config, folder, progress=False)
    return folder


def _rollouts(n_objects: int | tuple[int, int], seed: int) -> Rollouts:
    """Of the random policy and the expert in turns, as many pairs of each label."""
    world = World({"n_objects": n_objects})
    return Rollouts(world, tuple(world.policy(name) for name in POLICIES), seed, balanced=True)


def _fresh(what: NetworkRun) -> Samples:
    """Pairs of episodes that no network was trained on."""
    played, rng = _rollouts(what.training.n_objects, 0).shard("test", 0, what.test_episodes)
    return pairs(played, True, rng)[0]


def _described(what: NetworkRun, folder: Path) -> Row:
    digest = checkpoint.read_info(folder)["sha256"]
    return {"run": what.id, "sha256": digest, "training": what.settings["training"]}


def _learned(name: str, here: Study) -> tuple[Path, Row]:
    """The folder of a network that is a reward, and what a row says of it."""
    what = here.needed(f"rewards/{name}")
    assert isinstance(what, NetworkRun)
    with here.claim(what.id, FOREVER):
        folder = _weights(what, here)
    return folder, _described(what, folder)


def _policy(what: PolicyRun, here: Study) -> Row:
    return {"evaluation": _measured(_played(what.policy, what))}


def _agent(what: AgentRun, here: Study) -> Row:
    agent, network = _trained(what, here)
    logged = learning_curve(here.folder(what.id))
    return {
        **_spent(agent),
        "network": network,
        "evaluation": _measured(_played(agent, what, agent.reward)),
        "curve": thinned(points(logged, COLUMNS)),
        "evaluations": points(logged, EVALUATED),
    }


def _trained(what: AgentRun, here: Study) -> tuple[Agent, Row | None]:
    """The agent of a run, trained now if it is not there, and what a row says of its reward's network."""
    reward, network = what.reward, None
    if what.reward not in TRUTHS:
        folder, network = _learned(what.reward, here)
        reward = str(folder)
    agent = train(what.config, reward, here.folder(what.id), resume=True, progress=False)
    agent.close()
    return agent, network


def _cloned(what: ClonedRun, here: Study) -> Row:
    sizes = {"episodes": what.demonstrations, "epochs": what.epochs}
    agent = cloning.clone(what.config, here.folder(what.id), **sizes, progress=False, resume=True)
    agent.close()
    return {**_spent(agent), "evaluation": _measured(_played(agent, what))}


def _spent(agent: Agent) -> Row:
    """What the training took, those parts of it that a kill ended included."""
    return {name: agent.record[name] for name in ("seconds", "cpu_seconds", "steps")}


def _transfer(what: TransferRun, here: Study) -> Row:
    origin = here.needed(what.agent)
    assert isinstance(origin, AgentRun)
    with here.claim(origin.id, FOREVER):
        agent, _ = _trained(origin, here)
    there = training.transferred(agent, what.config)
    there.close()
    found = _played(there, what)
    claims = {name: _claims(LearnedReward(_learned(name, here)[0]), found) for name in NETWORKS}
    return {"evaluation": _measured(found), "claims": claims}


def _claims(reward: LearnedReward, found: Evaluation) -> dict[str, Any]:
    """What a network says of the scenes in which episodes ended."""
    claimed = reward(found.achieved, found.desired) >= reward.success_threshold
    return {"claimed": share_of(claimed), "precision": share_of(found.success[claimed])}


def _played(policy: Policy | str, what: PlayedRun, reward: Any = "sparse") -> Evaluation:
    return evaluate(policy, what.config, reward, episodes=what.episodes, seed=FIRST_EPISODE)


def _measured(found: Evaluation) -> dict[str, Any]:
    of = {name: getattr(found, name) for name in SHARES if name != "precision"}
    return {name: share_of(hits) for name, hits in {**of, "precision": found.success[found.claimed]}.items()}


def points(logged: list[dict[str, float]], columns: Sequence[str]) -> list[Point]:
    """What an agent's ``progress.csv`` says as [steps, *columns], wherever it has the first of the columns."""
    said = [row for row in logged if STEPS_COLUMN in row and columns[0] in row]
    return [[row[STEPS_COLUMN], *(_short(row.get(column)) for column in columns)] for row in said]


def thinned(curve: list[Point]) -> list[Point]:
    """``POINTS`` points at most, evenly spread, the first and the last ones among them."""
    places = np.linspace(0, max(len(curve) - 1, 0), POINTS).round().astype(int)
    return [curve[place] for place in np.unique(places)] if curve else []


def _short(value: float | None) -> float | None:
    return round(value, 4) if value is not None and math.isfinite(value) else None


_KINDS: dict[type[Run], Callable[[Any, Study], Row]] = {
    NetworkRun: _network,
    PolicyRun: _policy,
    AgentRun: _agent,
    ClonedRun: _cloned,
    TransferRun: _transfer,
}
