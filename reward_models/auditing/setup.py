"""Parts of an audit that depend on the world, and the units of its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from reward_models.agents.configs import AgentConfig
from reward_models.auditing.moves import Moves
from reward_models.judges.judge import Lifted
from spatialsim_env.core.judges import Flags, Floats

GRADIENT, SEARCH, AGENT = "gradient", "search", "agent"

Row = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Starts of one kind, and what may change of them."""

    labels: Row  # what its row calls it
    moves: Moves
    begin: Callable[[], Any]  # the starts, a question
    rng: Callable[[], np.random.Generator]  # of the search


@dataclass(frozen=True)
class Job:
    """One optimiser let loose on groups of starts: a row for each group and, where it has labels, one for all."""

    optimiser: str
    budget: int  # scores from each start, at most
    groups: tuple[Group, ...]
    config: AgentConfig | None = None  # of an agent
    episodes: int = 0  # that an agent plays
    all: Row | None = None  # labels of the row of all groups

    @property
    def name(self) -> str:
        """The optimiser and, of a single group, its labels, as gradient/positions/n3."""
        labels = self.groups[0].labels if self.all is None else {}
        return "/".join([self.optimiser, *(f"n{x}" if isinstance(x, int) else x for x in labels.values())])


@dataclass(frozen=True)
class Agents:
    """Settings of the agents that are trained."""

    config: Callable[[int, int], AgentConfig | None]  # of numbers of objects and a seed; None for no agent
    folder: Path
    on_truth: Path | None = None  # folder of those on the truth, which many audits may share


class Setup(Protocol):
    """A world as an audit sees it; a frozen dataclass of the audit's settings."""

    name: str  # of the world
    parts: tuple[str, ...]  # of a report, lists that are empty where a check failed
    drawn: bool  # whether a report has pictures
    gallery: int  # false claims that are kept of a group
    n_paths: int  # starts of each optimiser whose paths are reported

    @property
    def truth(self) -> Lifted:
        """The truth as a judge."""

    def probes(self, judge: Lifted) -> Iterator[tuple[Any, Mapping[str, Sequence[Any]]]]:
        """Questions that a judge is checked with, each with others that have the same scores."""

    def jobs(self, judge: Lifted, agents: Agents) -> tuple[list[Job], dict[str, str]]:
        """List the jobs, and the skipped ones with the reason."""

    def verdict(self, question: Any) -> tuple[Floats, Flags]:
        """The truth's distance, and whether that is achieved, (B,) each."""

    def medians(self, distance: Floats, claimed: Flags) -> Row:
        """Medians of the distances at the ends, as a row's entries."""

    def claim(self, question: Any, distance: float, evaluations: int) -> Row:
        """Entry of one false claim in a report, a question of one pair."""

    def finished(self, judge: Lifted, claims: list[Row]) -> Row:
        """The parts of a report beside its rows."""
