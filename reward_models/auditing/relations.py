"""The audit of judges of relations: where the optimisers begin, a group of starts for each predicate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from reward_models.agents.configs import SEVEN
from reward_models.auditing.measures import median, number, round_numbers
from reward_models.auditing.moves.relations import PoseMoves
from reward_models.auditing.setup import GRADIENT, SEARCH, Agents, Group, Job, Row
from reward_models.judges.judge import TRUTH, Lifted
from reward_models.judges.relations import Situations
from spatialsim_env.checks import require, require_seed, require_whole
from spatialsim_env.core.judges import Flags, Floats
from spatialsim_env.registry import RELATIONS
from spatialsim_env.relations.vocabulary import PREDICATES
from spatialsim_env.relations.world.episodes import RelationEpisodes

ALL = "all"
PROBES = 32  # scenes that the checks ask about
_STARTS, _SEARCH = range(2)  # streams of random numbers


@dataclass(frozen=True)
class RelationAudit:
    """Settings of an audit of a judge of relations.

    Raises:
        ValueError: a value that is not accepted.
    """

    predicates: tuple[str, ...] = SEVEN  # each audited by itself
    starts: int = 64  # of each optimiser, for each predicate
    gradient_evaluations: int = 300  # scores from each start, at most
    search_evaluations: int = 3_000  # scores from each start, at most
    seed: int = 0

    name = RELATIONS
    parts = ("rows", "gallery")
    drawn = False
    gallery = 3
    n_paths = 0

    def __post_init__(self) -> None:
        known = isinstance(self.predicates, tuple) and len(self.predicates) > 0
        known = known and len(set(self.predicates)) == len(self.predicates) and set(self.predicates) <= set(PREDICATES)
        require(known, "predicates", self.predicates, f"a tuple of different names of {', '.join(PREDICATES)}")
        require_whole("starts", self.starts)
        for name in ("gradient_evaluations", "search_evaluations"):
            require_whole(name, getattr(self, name), 2)
        require_seed("seed", self.seed)

    @property
    def truth(self) -> Lifted:
        """The rules as a judge: the least margin of what is required."""
        return Lifted(_margin, None, TRUTH, self.name)

    def verdict(self, question: Situations) -> tuple[Floats, Flags]:
        """Minus the rule's margin, and whether the predicate holds, (B,) each."""
        return question.distance, question.distance < 0

    def probes(self, judge: Lifted) -> Iterator[tuple[Situations, Mapping[str, Sequence[Situations]]]]:
        """The first starts of each predicate."""
        for name in self.predicates:
            yield self._starts(name).rows(slice(PROBES)), {}

    def _starts(self, predicate: str) -> Situations:
        return begin(predicate, self.starts, self._rng(_STARTS, predicate))

    def _rng(self, stream: int, predicate: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, stream, PREDICATES.index(predicate)])

    def jobs(self, judge: Lifted, agents: Agents) -> tuple[list[Job], dict[str, str]]:
        """Gradient and search, each on the starts of all predicates."""
        moves = PoseMoves()
        groups = tuple(
            Group({"predicate": name}, moves, partial(self._starts, name), partial(self._rng, _SEARCH, name))
            for name in self.predicates
        )
        budgets = {GRADIENT: self.gradient_evaluations, SEARCH: self.search_evaluations}
        reason = moves.no_gradient(judge)
        not_run = {} if reason is None else {GRADIENT: f"not run: {reason}"}
        return [
            Job(optimiser, budget, groups, all={"predicate": ALL})
            for optimiser, budget in budgets.items()
            if optimiser not in not_run
        ], not_run

    def medians(self, distance: Floats, claimed: Flags) -> Row:
        """The median of the rule's margin."""
        return {"median_margin_of_claims": median(-distance[claimed])}

    def claim(self, question: Situations, distance: float, evaluations: int) -> Row:
        """The rule's margin, scene and observer."""
        seen = {"scene": round_numbers(question.scenes[0]), "observer": round_numbers(question.observers[0])}
        return {"margin": number(-distance), "evaluations": evaluations, **seen}

    def finished(self, judge: Lifted, claims: list[Row]) -> Row:
        """The false claims."""
        return {"gallery": claims}


def begin(predicate: str, size: int, rng: np.random.Generator) -> Situations:
    """Starts of the environment's episodes whose goal is a predicate."""
    episodes = RelationEpisodes((predicate,))
    begun = episodes.begin(rng.random((size, episodes.n_uniform), np.float32))
    return Situations(begun.scenes, begun.observers, begun.required)


def _margin(question: Any) -> Floats:
    return -question.distance
