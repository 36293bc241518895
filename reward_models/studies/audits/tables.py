"""The reports of audits from their rows: of one model as ``auditing.report`` has it, and of all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from reward_models.auditing import audit, report
from reward_models.auditing.setup import Agents
from reward_models.judges import judge as judges
from reward_models.studies.audits.runs import AgentSettings, AuditUnit, units, units_of
from reward_models.studies.audits.work import TRUTH_AGENTS, AuditRow, failed, line, work
from reward_models.studies.engine import launch
from reward_models.studies.engine.report import failures, missing
from reward_models.studies.engine.rows import RowError, path_of
from reward_models.studies.engine.study import Files, Json, Report, Results, Study
from reward_models.studies.engine.sweep import Sweep
from reward_models.threads import one_thread


def report_of(own: Sequence[AuditUnit], rows: Sequence[AuditRow], agent_config: AgentSettings) -> Json:
    """The report of one model, of the rows of all its units."""
    setup = own[0].setup()
    judge = judges.of(own[0].model, setup)
    found = {**audit.described(judge, setup), "failures": {}, "not_run": {}, **{part: [] for part in setup.parts}}
    failed_checks = {name: text for row in rows for name, text in row.failures.items()}
    if failed_checks:
        return found | {"failures": failed_checks}
    _, not_run = setup.jobs(judge, Agents(agent_config, Path()))
    with one_thread():
        return found | {"not_run": not_run} | audit.assembled(judge, setup, [(row.rows, row.claims) for row in rows])


def study_report(results: Results[AuditRow]) -> Report:
    """Precision under optimisation of every model."""
    parts: list[Any] = []
    for name in dict.fromkeys(run.partition("/")[0] for run in results.done):
        own = [row for run, row in results.done.items() if run.partition("/")[0] == name]
        table = report.table({"settings": own[0].settings["audit"], "rows": [row for each in own for row in each.rows]})
        parts.append(replace(table, name=name, title=name, note=line(own) if any(row.failures for row in own) else ""))
    return Report("Audits", (*parts, *failures(results), *missing(results)))


STUDY: Study[AuditUnit, AuditRow] = Study(
    "audits",
    1,
    AuditRow,
    units,
    work,
    study_report,
    failed,
    line,
    Files("runs/audits"),
    title="What optimisers make of the shipped models: precision under optimisation.",
    packages=("cmaes",),
    options={TRUTH_AGENTS: "folder of the agents that are trained on the truth"},
)


def resume(
    model: str | os.PathLike[str],
    out: str | os.PathLike[str],
    world: str = next(iter(audit.SETUPS)),
    *,
    agent_config: AgentSettings = audit.config_for,
    truth_agents: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] = print,
    **settings: Any,
) -> Json:
    """Audit a stored model into a folder, or go on where an earlier call of the same settings and code stopped.

    Args:
        model, world, agent_config, truth_agents, settings: as of ``auditing.audit.audit``.
        out: folder of the report, and of the rows it is made of.
        progress: is told a line about each job.

    Returns:
        The report as JSON values.

    Raises:
        ValueError: a setting that is not accepted, or a path without a model.
        RuntimeError: a job failed.
        ImportError: a package of the extra "audit" is not installed.
    """
    folder = Path(out)
    setup = audit.SETUPS[world](**settings)
    report.require_packages(drawn=setup.drawn)
    of_one = partial(_of_one, os.fspath(model), world, settings, agent_config)
    study = replace(STUDY, units=of_one, work=partial(work, agent_config=agent_config))
    options = {} if truth_agents is None else {TRUTH_AGENTS: os.fspath(Path(truth_agents).resolve())}
    sweep = Sweep(study, folder, folder / "unfinished", options=options)
    own = list(sweep.units.values())
    _remove_stale(own, sweep)
    for outcome in launch.outcomes(own, sweep, progress=False):
        if outcome.error is not None:
            raise RuntimeError(f"{outcome.unit}: {outcome.error}")
        progress(line(outcome.rows))
    found = report_of(own, [row for unit in own for row in sweep.rows(unit) or []], agent_config)
    report.write(found, folder)
    return found


def _of_one(model: str, world: str, settings: Json, agent_config: AgentSettings, quick: bool) -> dict[str, AuditUnit]:
    return units_of({"audit": model}, world, settings, agent_config)


def _remove_stale(own: Sequence[AuditUnit], sweep: Sweep[AuditUnit, AuditRow]) -> None:
    """Remove rows of other settings or another commit, and those of an error."""
    for unit in own:
        try:
            stale = any(row.error or row.stamp.commit != sweep.stamp.commit for row in sweep.rows(unit) or [])
        except RowError:
            stale = True
        if stale:
            path_of(sweep.study, sweep.results, unit).unlink()
