"""Units of the study: the checks of each model's answers, and each job of its audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from reward_models.agents.configs import AgentConfig
from reward_models.auditing.audit import SETUPS, config_for
from reward_models.auditing.setup import Agents, Setup
from reward_models.judges import judge as judges
from reward_models.judges import shipped
from reward_models.judges.learned import LearnedModel, LearnedReward
from reward_models.models import checkpoint
from reward_models.studies.engine.study import Json, Unit, as_json

AgentSettings = Callable[[int, int], AgentConfig | None]  # of numbers of objects and a seed

CHECK = "check"  # the unit that all others of a model build on
QUICK: Json = {
    "n_objects": [3], "starts": 4, "gradient_evaluations": 5, "search_evaluations": 40, "agent": False,
    "fixed_samples": 16,
}  # fmt: skip


@dataclass(frozen=True)
class AuditUnit(Unit):
    """One job of an audit, or the checks before it."""

    name: str  # of the model in ids
    model: str  # a name or path that ``judges.of`` takes
    sha256: str | None  # of its weights
    world: str
    given: Json  # settings of the audit
    job: str  # its name, or CHECK

    @property
    def needs(self) -> tuple[str, ...]:
        """The checks of the same model."""
        return () if self.job == CHECK else (f"{self.name}/{CHECK}",)

    def settings(self, run: str) -> Json:
        """All that decides its result."""
        return {"sha256": self.sha256, "world": self.world, "audit": self.given, "job": self.job}

    def setup(self) -> Setup:
        """The settings as a value."""
        return setup_of(self.world, self.given)


def setup_of(world: str, given: Json) -> Setup:
    """The settings of an audit of a world, of JSON values."""
    setup: Setup = SETUPS[world](**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})
    return setup


def units_of(
    models: Mapping[str, str], world: str, given: Json, agent_config: AgentSettings = config_for
) -> dict[str, AuditUnit]:
    """The units of some models by id, the checks of each first.

    Args:
        models: names or paths, by their names in ids.
    """
    setup = setup_of(world, given)
    settings = as_json(asdict(setup))  # type: ignore[call-overload]
    units = {}
    for name, model in models.items():
        judge = judges.of(model, setup)
        jobs, _ = setup.jobs(judge, Agents(agent_config, Path()))
        digest = None
        if isinstance(judge.model, LearnedModel) and (folder := LearnedReward(judge.model).folder) is not None:
            digest = checkpoint.read_info(folder)["sha256"]
        for job in (CHECK, *(one.name for one in jobs)):
            unit = AuditUnit(f"{name}/{job}", name, model, digest, world, settings, job)
            units[unit.id] = unit
    return units


def units(quick: bool) -> dict[str, AuditUnit]:
    """The audits of the shipped models and of the truth."""
    names = ("matching",) if quick else shipped.names()
    known = {judges.TRUTH: judges.TRUTH} | {name: shipped.PREFIX + name for name in names}
    return units_of(known, next(iter(SETUPS)), QUICK if quick else {})
