"""The audit of a judge: optimisers against its score, and the truth of what they come to, in every world."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import spatialsim_env
from reward_models.agents.configs import CONFIGS, AgentConfig
from reward_models.auditing import optimisers, report
from reward_models.auditing.arrangements import ArrangementAudit
from reward_models.auditing.measures import false_claims, format_row, join, measure, paths, sample_of
from reward_models.auditing.optimisers import Ends
from reward_models.auditing.relations import RelationAudit
from reward_models.auditing.setup import AGENT, GRADIENT, Agents, Group, Job, Row, Setup
from reward_models.judges.judge import CHECKS, JudgeError, Lifted, differ, failures, of
from reward_models.judges.learned import LearnedModel, LearnedReward
from reward_models.models import checkpoint
from reward_models.threads import one_thread
from spatialsim_env.checks import require

FORMAT = 1
SETUPS: dict[str, type[Any]] = {setup.name: setup for setup in (ArrangementAudit, RelationAudit)}


def config_for(n_objects: int, seed: int) -> AgentConfig | None:
    """The named configuration of an agent with a number of objects; None where there is none."""
    config = CONFIGS.get(f"discrim_n{n_objects}")
    return None if config is None else replace(config, seed=seed)


def audit(
    model: Any,
    world: Any = ArrangementAudit.name,
    *,
    out: str | os.PathLike[str] | None = None,
    agent_config: Callable[[int, int], AgentConfig | None] = config_for,
    truth_agents: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Optimise the score of a judge: precision under optimisation, and what explains it.

    From starts that are truly not achieved, gradient ascent, CMA-ES and, in 2D, an agent look for what the model calls
    achieved, and stop at the first claim; the truth says what it is worth. A model whose answers are not verdicts
    (``judge.failures``) gets the names of what is wrong with them and no number. Equal models, settings and versions
    give equal reports; no global state is changed.

    Args:
        model: a path or "hub:NAME", "truth", a network, a reward, or any object with ``score(achieved, desired)``; see
            ``judges.judge`` for the convention and for ``gradient``.
        world: the name of the world that it judges, or an object with that ``name``; arrangements by default.
        out: folder for audit.json, report.md and pictures, and for the agents' trainings.
        agent_config: (objects, seed) -> the agent's configuration, or None for no agent; the named ones by default.
        truth_agents: folder of the agents that are trained on the truth, which are the same for every model; in ``out``
            by default.
        progress: is told a line about each part that is done.
        settings: fields of ``ArrangementAudit``, as n_objects=(3, 5), or of ``RelationAudit``, as predicates=("on",).

    Returns:
        The report as JSON values: see ``report``.

    Raises:
        TypeError: not a model, or an unknown setting.
        ValueError: a setting that is not accepted, a path without a model, numbers of objects that a model of one
            input does not know.
        ImportError: a package of the extra "audit" is not installed.
    """
    name = getattr(world, "name", world)
    require(name in SETUPS, "world", name, " or ".join(map(repr, SETUPS)))
    setup: Setup = SETUPS[name](**settings)
    report.require_packages(drawn=setup.drawn and out is not None)
    judge = of(model, setup)
    with one_thread(), tempfile.TemporaryDirectory() as temporary:
        agents = Agents(
            agent_config, Path(out or temporary) / AGENT, None if truth_agents is None else Path(truth_agents)
        )
        found = run(judge, setup, agents, progress or _silent)
    if out is not None:
        report.write(found, out)
    return found


def _silent(line: str) -> None:
    """Say nothing."""


def run(judge: Lifted, setup: Setup, agents: Agents, say: Callable[[str], None]) -> Row:
    """Check a judge, then let the optimisers at it; returns the report."""
    found = {**described(judge, setup), "failures": {}, "not_run": {}, **{part: [] for part in setup.parts}}
    try:
        failed = check(judge, setup)
        if failed:
            return found | {"failures": failed}
        jobs, not_run = setup.jobs(judge, agents)
        parts = [work(judge, setup, job, agents, say) for job in jobs]
        return found | {"not_run": not_run} | assembled(judge, setup, parts)
    except JudgeError as error:
        return found | {"failures": {error.check: error.message}}


def check(judge: Lifted, setup: Setup) -> dict[str, str]:
    """Collect the failures of a judge, by the name of the check."""
    failed: dict[str, str] = {}
    for question, equal in setup.probes(judge):
        failed |= failures(judge, question, equal)
    return failed


def work(
    judge: Lifted, setup: Setup, job: Job, agents: Agents, say: Callable[[str], None]
) -> tuple[list[Row], list[Row]]:
    """Do one job; returns its rows and the worst of its false claims.

    Raises:
        JudgeError: an answer that is no verdict.
    """
    rows, claims, samples = [], [], []
    for group in job.groups:
        ends, more = _ends(judge, setup, job, group, agents)
        _ask_again(judge, group, ends, job.optimiser)
        samples.append(sample_of(setup, ends))
        labels = {"optimiser": job.optimiser, **group.labels}
        row = {**labels, "starts": len(ends.score), "budget": job.budget, **more, **measure(setup, samples[-1])}
        rows.append(row | ({"paths": paths(setup, ends, samples[-1])} if ends.paths else {}))
        claims += [{**labels, **claim} for claim in false_claims(setup, ends, samples[-1])]
        say(format_row(row))
    if job.all is not None:
        whole = join(samples)
        counts = {"starts": len(whole.score), "budget": job.budget}
        rows.append({"optimiser": job.optimiser, **job.all, **counts, **measure(setup, whole)})
        say(format_row(rows[-1]))
    return rows, claims


def _ends(judge: Lifted, setup: Setup, job: Job, group: Group, agents: Agents) -> tuple[Ends, Row]:
    """Run an optimiser; return its ends and the other entries of its row."""
    if job.config is not None:
        from reward_models.auditing.agent import agent

        ends, training = agent(judge, job.config, agents.folder, job.episodes, setup.n_paths, agents.on_truth)
        return ends, {"training": training}
    starts = group.begin()
    if job.optimiser == GRADIENT:
        return optimisers.gradient(judge, group.moves, starts, job.budget, setup.n_paths), {}
    return optimisers.search(judge, group.moves, starts, job.budget, group.rng(), setup.n_paths), {}


def _ask_again(judge: Lifted, group: Group, ends: Ends, optimiser: str) -> None:
    """Refuse ends whose scores are not what the judge says of them again; a score with a cost is none."""
    rows = group.moves.cost(ends.question) == 0
    if differ(judge.score(ends.question.rows(rows)), ends.score[rows]).any():
        raise JudgeError("batch size", f"scores change {CHECKS['batch size']}, at the ends of {optimiser}")


def assembled(judge: Lifted, setup: Setup, parts: Sequence[tuple[list[Row], list[Row]]]) -> Row:
    """The rows of all jobs, and the parts of a report beside them."""
    rows, claims = ([entry for part in parts for entry in part[k]] for k in range(2))
    return {"rows": rows, **setup.finished(judge, claims)}


def described(judge: Lifted, setup: Setup) -> Row:
    """Describe the audit: the judge, the settings, the version."""
    model = judge.model
    about: Row = {"name": judge.name, "kind": "Truth" if model is None else type(model).__name__}
    about |= {"n_weights": None, "sha256": None}
    if isinstance(model, LearnedModel):
        folder = LearnedReward(model).folder
        digest = None if folder is None else checkpoint.read_info(folder)["sha256"]
        about |= {"kind": model.kind, "n_weights": model.module.n_weights, "sha256": digest}
    settings = json.loads(json.dumps(asdict(setup)))  # type: ignore[call-overload]
    return {"format": FORMAT, "version": spatialsim_env.__version__, "model": about, "settings": settings}
