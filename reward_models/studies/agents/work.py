"""Work of the study of agents: from a run to its row, ``results/agents/rows/ID.json``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from reward_models.agents import cloning, training
from reward_models.agents.configs import AgentConfig
from reward_models.agents.evaluation import Evaluation, evaluate
from reward_models.agents.policies import Policy
from reward_models.agents.run import learning_curve
from reward_models.agents.training import STEPS_COLUMN, Agent, train
from reward_models.judges.learned import LearnedReward
from reward_models.measuring import evaluation
from reward_models.models import checkpoint
from reward_models.provenance import Stamp
from reward_models.shares import share, share_of
from reward_models.studies.agents.runs import (
    FIRST_EPISODE,
    NETWORKS,
    TRUTHS,
    AgentRun,
    AgentUnit,
    ClonedRun,
    NetworkRun,
    PlayedRun,
    PolicyRun,
    TransferRun,
)
from reward_models.studies.engine.run import Place
from reward_models.studies.engine.study import Json
from reward_models.threads import one_thread
from reward_models.training.config import ROLLOUTS, VALID, TrainingConfig
from reward_models.training.protocol import read_log
from reward_models.training.protocol import train as train_network
from spatialsim_env.arrangements.datasets.rollouts import POLICIES, Rollouts, RolloutWorld, pairs
from spatialsim_env.arrangements.tasks import Samples

PAIRS = "rollouts/pairs"  # folder of the pairs of all networks, and the claim on them
COLUMNS = ("rollout/success_rate", "rollout/success_rate_model", "reward/true", "reward/model")  # of a row's curve
EVALUATED = ("eval/success_rate", "eval/success_rate_model")  # of a row's evaluations
POINTS = 60  # of a row's curve, at most
SHARES = ("success", "ever_success", "claimed", "ever_claimed", "precision")

Point = list[float | None]


@dataclass(frozen=True)
class AgentRow:
    """The result of a run. Shares are {"hits", "total", "interval"} of episodes or samples, intervals after Wilson."""

    id: str  # agents/discrim_n5/matching/seed0
    stamp: Stamp
    settings: Json  # the agent's configuration, the reward, the network's training, the episodes
    network: Json | None = None  # {"run", "sha256", "training"} of the network that was the reward or was trained
    seconds: float = 0.0  # of training, those before a kill included; of the whole run where nothing is trained
    cpu_seconds: float = 0.0
    steps: int = 0  # of the environment in training
    n_weights: int | None = None  # of the network that was trained; None for agents
    evaluation: Json = field(default_factory=dict)  # shares by name of ``SHARES``; empty where nothing is played
    claims: Json = field(default_factory=dict)  # {network: {"claimed", "precision"}} at the last step
    accuracy: Json = field(default_factory=dict)  # shares of "3-8", "9-20", "21-30", "rollouts" of a network
    curve: list[Point] = field(default_factory=list)  # [steps, success, claimed, true reward, reward] in training
    # [steps, success, claimed] of the deterministic policy in between; steps are those of the line of the log that it
    # is in, with sac up to a round of episodes later than the evaluation
    evaluations: list[Point] = field(default_factory=list)
    error: str | None = None  # one line; evaluation, claims and accuracy are then empty

    def __post_init__(self) -> None:
        if self.error is None and not (self.evaluation or self.claims or self.accuracy):
            raise ValueError(f"{self.id} has neither results nor an error")
        for results in (self.evaluation, self.claims, self.accuracy):
            _check_shares(results)


def _check_shares(results: Any) -> None:
    """Refuse shares that are none, wherever they lie in the results of a row."""
    if not isinstance(results, dict):
        return
    if "hits" not in results:
        for part in results.values():
            _check_shares(part)
        return
    hits, total = results["hits"], results.get("total")
    if not (isinstance(hits, int) and isinstance(total, int) and 0 <= hits <= total):
        raise ValueError(f"{hits!r} hits of {total!r}; accepted is 0 <= hits <= total")


def upgrade(entries: Json) -> Json:
    """Add the device, which the first rows did not name."""
    return {"device": "cpu", **entries}


def fail(unit: AgentUnit, run: str, stamp: Stamp, error: str) -> AgentRow:
    """Make the row of a run that failed."""
    return AgentRow(run, stamp, unit.settings(run), error=error)


_DEFAULTS: dict[str, Callable[[Json], Json]] = {  # settings with the defaults of what they lack
    "config": lambda values: AgentConfig.from_json(values).as_json(),
    "training": lambda values: TrainingConfig.from_json(values).to_json(),
}


def list_differences(unit: AgentUnit, row: AgentRow) -> list[str]:
    """List how a row differs from what the study says; a setting that is not there had its default."""
    theirs, ours = row.settings, unit.settings(row.id)
    differences = []
    for name in sorted(theirs.keys() | ours.keys()):
        there, here = theirs.get(name), ours.get(name)
        if name in _DEFAULTS and isinstance(there, dict) and isinstance(here, dict):
            try:
                there = _DEFAULTS[name](there)
            except (TypeError, ValueError) as error:
                differences.append(f"{name} is of another version of the code ({error})")
                continue
            changed: Sequence[str] = [key for key in here if there[key] != here[key]]
            differences += [f"{key} is {there[key]!r} there and {here[key]!r} in the study" for key in changed]
        elif there != here:
            differences.append(f"{name} is {there!r} there and {here!r} in the study")
    played = row.evaluation.get("success")
    if played is not None and played["total"] != ours["episodes"]:
        differences.append(f"{played['total']} episodes, where the study has {ours['episodes']}")
    return differences


def work(unit: AgentUnit, place: Place) -> list[AgentRow]:
    """Do a run."""
    start = time.perf_counter(), time.process_time()
    with one_thread():
        entries = _KINDS[type(unit)](unit, place)
    spent: Json = {"seconds": time.perf_counter() - start[0], "cpu_seconds": time.process_time() - start[1]}
    return [AgentRow(unit.id, place.stamp, unit.settings(unit.id), **(spent | entries))]


def _network(unit: NetworkRun, place: Place) -> Json:
    folder = _train_network(unit, place)
    model = checkpoint.load(folder).model
    by_range = {
        name: share(measured.correct, measured.total)
        for name, measured in evaluation.accuracy_by_range(model, unit.test_samples).items()
    }
    fresh = evaluation.accuracy(model, _fresh_pairs(unit))
    return {
        "network": _describe(unit, folder),
        "seconds": sum(epoch.seconds for epoch in read_log(folder)),
        "n_weights": model.n_weights,
        "accuracy": {**by_range, "rollouts": share(fresh.correct, fresh.total)},
    }


def _train_network(unit: NetworkRun, place: Place) -> Path:
    """Train the network of a run, unless it is there; returns its folder."""
    if not (place.folder / checkpoint.INFO).exists():
        config = unit.training
        if unit.rollouts is not None:
            with place.shared(PAIRS) as folder:
                rollouts = _rollouts(unit.rollouts.n_objects, unit.rollouts.seed)
                rollouts.write(folder, "train", unit.rollouts.train)
                rollouts.write(folder, VALID, unit.rollouts.valid)
            config = replace(config, data=f"{ROLLOUTS}{folder}")
        train_network(config, place.folder, progress=False)
    return place.folder


def _rollouts(n_objects: int | tuple[int, int], seed: int) -> Rollouts:
    """The random policy and the expert in turns, with as many pairs of each label."""
    world = RolloutWorld({"n_objects": n_objects})
    return Rollouts(world, tuple(world.policy(name) for name in POLICIES), seed, balanced=True)


def _fresh_pairs(unit: NetworkRun) -> Samples:
    """Pairs of episodes that no network was trained on."""
    played, rng = _rollouts(unit.training.n_objects, 0).shard("test", 0, unit.test_episodes)
    return pairs(played, True, rng)[0]


def _describe(unit: NetworkRun, folder: Path) -> Json:
    digest = checkpoint.read_info(folder)["sha256"]
    return {"run": unit.id, "sha256": digest, "training": unit.settings(unit.id)["training"]}


def _needed_network(name: str, place: Place) -> tuple[Path, Json]:
    """The folder of a network that is a reward, and its entry in a row."""
    unit = place.sweep.units[f"rewards/{name}"]
    assert isinstance(unit, NetworkRun)
    folder = place.product(unit.id)
    return folder, _describe(unit, folder)


def _policy(unit: PolicyRun, place: Place) -> Json:
    return {"evaluation": _evaluate(unit.policy, unit)[1]}


def _agent(unit: AgentRun, place: Place) -> Json:
    reward, network = unit.reward, None
    if unit.reward not in TRUTHS:
        folder, network = _needed_network(unit.reward, place)
        reward = str(folder)
    agent = train(unit.config, reward, place.folder, resume=True, progress=False)
    agent.close()
    logged = learning_curve(place.folder)
    return {
        **_costs(agent),
        "network": network,
        "evaluation": _evaluate(agent, unit, agent.reward)[1],
        "curve": thin(read_points(logged, COLUMNS)),
        "evaluations": read_points(logged, EVALUATED),
    }


def _cloned(unit: ClonedRun, place: Place) -> Json:
    sizes = {"episodes": unit.demonstrations, "epochs": unit.epochs}
    agent = cloning.clone(unit.config, place.folder, **sizes, progress=False, resume=True)
    agent.close()
    return {**_costs(agent), "evaluation": _evaluate(agent, unit)[1]}


def _costs(agent: Agent) -> Json:
    """Costs of the training, those parts of it that a kill ended included."""
    return {name: agent.record[name] for name in ("seconds", "cpu_seconds", "steps")}


def _transfer(unit: TransferRun, place: Place) -> Json:
    agent = training.load_agent(place.product(unit.agent))
    moved = training.transfer(agent, unit.config)
    moved.close()
    played, measured = _evaluate(moved, unit)
    claims = {name: _claims(LearnedReward(_needed_network(name, place)[0]), played) for name in NETWORKS}
    return {"evaluation": measured, "claims": claims}


def _claims(reward: LearnedReward, played: Evaluation) -> Json:
    """Claims of a network about the scenes in which episodes ended."""
    claimed = reward(played.achieved, played.desired) >= reward.success_threshold
    return {"claimed": share_of(claimed), "precision": share_of(played.success[claimed])}


def _evaluate(policy: Policy | str, unit: PlayedRun, reward: Any = "sparse") -> tuple[Evaluation, Json]:
    """Play the episodes of a run; returns them and their shares."""
    played = evaluate(policy, unit.config, reward, episodes=unit.episodes, seed=FIRST_EPISODE)
    flags = {name: getattr(played, name) for name in SHARES if name != "precision"}
    return played, {
        name: share_of(hits) for name, hits in {**flags, "precision": played.success[played.claimed]}.items()
    }


def read_points(logged: Sequence[Mapping[str, float]], columns: Sequence[str]) -> list[Point]:
    """Read [steps, *columns] from an agent's ``progress.csv``, wherever it has the first of the columns."""
    rows = [row for row in logged if STEPS_COLUMN in row and columns[0] in row]
    return [[row[STEPS_COLUMN], *(_round(row.get(column)) for column in columns)] for row in rows]


def thin(curve: list[Point]) -> list[Point]:
    """Keep ``POINTS`` points at most, evenly spread, the first and the last ones among them."""
    places = np.linspace(0, max(len(curve) - 1, 0), POINTS).round().astype(int)
    return [curve[place] for place in np.unique(places)] if curve else []


def _round(value: float | None) -> float | None:
    return round(value, 4) if value is not None and math.isfinite(value) else None


def summarise_row(rows: Sequence[AgentRow]) -> str:
    """Say in a line what a run found."""
    row = rows[0]
    shares = {"truly achieved": row.evaluation.get("success"), "accuracy on 3-8": row.accuracy.get("3-8")}
    return ", ".join(f"{title} {of['hits'] / of['total']:.3f}" for title, of in shares.items() if of is not None)


_KINDS: dict[type[AgentUnit], Callable[[Any, Place], Json]] = {
    NetworkRun: _network,
    PolicyRun: _policy,
    AgentRun: _agent,
    ClonedRun: _cloned,
    TransferRun: _transfer,
}
