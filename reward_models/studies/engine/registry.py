"""The studies by name, imported when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from reward_models.studies.engine.study import Study

STUDIES = {  # module and name of a Study
    "paper": "reward_models.studies.paper.study:STUDY",
    "agents": "reward_models.studies.agents.tables:STUDY",
    "hard_suite": "reward_models.studies.hard_suite.tables:STUDY",
    "hardening": "reward_models.studies.hardening.tables:STUDY",
    "relation_agents": "reward_models.studies.relation_agents.tables:STUDY",
    "rel3d": "reward_models.studies.rel3d.report:REL3D",
    "audits": "reward_models.studies.audits.tables:STUDY",
}


def study(name: str) -> Study[Any, Any]:
    """The study of a name.

    Raises:
        ValueError: an unknown name.
        ImportError: a package that it needs is not installed.
    """
    if name not in STUDIES:
        raise ValueError(f"study is {name!r}; accepted are {', '.join(STUDIES)}")
    module, _, attribute = STUDIES[name].partition(":")
    known: Study[Any, Any] = getattr(import_module(module), attribute)
    return known
