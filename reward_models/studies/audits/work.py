"""Work of a unit: a job of an audit becomes a row, an answer that is no verdict too."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from reward_models.auditing import audit
from reward_models.auditing.measures import format_row
from reward_models.auditing.setup import AGENT, Agents
from reward_models.judges import judge as judges
from reward_models.provenance import Stamp
from reward_models.studies.audits.runs import CHECK, AgentSettings, AuditUnit
from reward_models.studies.engine.run import Place
from reward_models.studies.engine.study import Json
from reward_models.threads import one_thread

TRUTH_AGENTS = "truth_agents"  # folder of the agents that are trained on the truth, the same for every model


@dataclass(frozen=True)
class AuditRow:
    """Result of a job."""

    id: str
    stamp: Stamp
    settings: Json
    failures: Json = field(default_factory=dict)  # what disqualifies the model, by the name of the check
    rows: list = field(default_factory=list)  # of a report
    claims: list = field(default_factory=list)  # the worst false ones
    error: str | None = None


def work(unit: AuditUnit, place: Place, agent_config: AgentSettings = audit.config_for) -> list[AuditRow]:
    """Check a model's answers, or let one optimiser at it."""
    setup = unit.setup()
    judge = judges.of(unit.model, setup)

    def row(**found: list | Json) -> list[AuditRow]:
        return [AuditRow(unit.id, place.stamp, unit.settings(unit.id), **found)]  # type: ignore[arg-type]

    with one_thread():
        try:
            if unit.job == CHECK:
                return row(failures=audit.check(judge, setup))
            if place.needed(unit.needs[0])[0].failures:
                return row()
            given = place.option(TRUTH_AGENTS)
            on_truth = place.sweep.work / TRUTH_AGENTS if given is None else Path(given)
            agents = Agents(agent_config, place.folder / AGENT, on_truth)
            job = next(job for job in setup.jobs(judge, agents)[0] if job.name == unit.job)
            with nullcontext() if job.config is None else place.shared(TRUTH_AGENTS):
                rows, claims = audit.work(judge, setup, job, agents, lambda line: None)
            return row(rows=rows, claims=claims)
        except judges.JudgeError as error:
            return row(failures={error.check: error.message})


def failed(unit: AuditUnit, run: str, stamp: Stamp, error: str) -> AuditRow:
    """The row of a job that failed."""
    return AuditRow(run, stamp, unit.settings(run), error=error)


def line(rows: Sequence[AuditRow]) -> str:
    """Format the result of a job in a few words."""
    found = [format_row(row) for each in rows for row in each.rows]
    return "; ".join(found) or ", ".join(name for each in rows for name in each.failures) or "verdicts"
