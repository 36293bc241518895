"""The audit of judges of arrangements: where the optimisers begin, and what is measured beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reward_models.auditing.measures import calibration, median, number, round_numbers
from reward_models.auditing.moves.arrangements import MOVES
from reward_models.auditing.setup import AGENT, GRADIENT, SEARCH, Agents, Group, Job, Row
from reward_models.judges.judge import TRUTH, Lifted
from reward_models.judges.learned import LearnedModel
from reward_models.measuring.heat_map import heat_map
from reward_models.shares import share_of
from spatialsim_env.arrangements import negatives
from spatialsim_env.arrangements.episodes import SceneEpisodes
from spatialsim_env.arrangements.goals import Criterion, criterion_of
from spatialsim_env.arrangements.tasks import Discrimination, Identification, Task, reference_scene
from spatialsim_env.checks import require, require_seed, require_whole
from spatialsim_env.core.judges import Flags, Floats, Pairs
from spatialsim_env.registry import SCENES

PROBES = 64  # pairs that the checks ask about
UNDEFINED = 1e6  # distance in place of infinity, which is not a score
LEAST_OBJECTS = 2  # with fewer, every configuration is achieved
_PROBE, _FIXED, _STARTS, _SEARCH = range(4)  # streams of random numbers


@dataclass(frozen=True)
class ArrangementAudit:
    """Settings of an audit of a judge of arrangements.

    Raises:
        ValueError: a value that is not accepted.
    """

    n_objects: tuple[int, ...] = (3, 5, 8, 20)  # objects per scene, each audited by itself
    moves: tuple[str, ...] = tuple(MOVES)  # what gradient and search change: positions; poses, angles too
    starts: int = 256  # of gradient and search, for each number of objects
    gradient_evaluations: int = 500  # scores from each start, at most
    search_evaluations: int = 10_000  # scores from each start, at most
    agent: bool = True  # whether agents are trained
    episodes: int = 256  # of each agent
    fixed_samples: int = 4_096  # of the benchmark, for calibration on fixed data
    criterion: str = "similarity"  # of the truth
    seed: int = 0

    name = SCENES
    parts = ("rows", "fixed", "gallery", "heat_maps")
    drawn = True
    gallery = 4
    n_paths = 16

    def __post_init__(self) -> None:
        sizes = self.n_objects
        fits = isinstance(sizes, tuple) and len(sizes) > 0 and len(set(sizes)) == len(sizes)
        require(fits, "n_objects", sizes, "a tuple of different numbers")
        for size in sizes:
            require_whole("n_objects", size, LEAST_OBJECTS)
        known = isinstance(self.moves, tuple) and len(self.moves) > 0 and set(self.moves) <= set(MOVES)
        require(known, "moves", self.moves, f"a tuple of {', '.join(MOVES)}")
        require_whole("starts", self.starts)
        for name in ("gradient_evaluations", "search_evaluations", "episodes", "fixed_samples"):
            require_whole(name, getattr(self, name), 2)
        require(isinstance(self.agent, bool), "agent", self.agent, "a bool")
        require_seed("seed", self.seed)
        criterion_of(self.criterion)

    @property
    def truth(self) -> Lifted:
        """The truth as a judge: 1 - distance."""
        return Lifted(self._closeness, None, TRUTH, self.name, np.float64(0))

    def _closeness(self, question: Any) -> Floats:
        return 1 - np.minimum(self.verdict(question)[0], UNDEFINED)

    def verdict(self, question: Any) -> tuple[Floats, Flags]:
        """The truth's distance, and whether that is achieved, (B,) each."""
        distance = Criterion(self.criterion).align(question.achieved, question.desired).distance
        return distance, distance <= 1

    def probes(self, judge: Lifted) -> Iterator[tuple[Pairs, Mapping[str, Sequence[Pairs]]]]:
        """Pairs of the benchmark, and the same with their objects in another order."""
        for n in self.n_objects:
            pairs, order = self._pairs(judge, PROBES, _PROBE, n), np.random.default_rng(0).permutation(n)
            desired = replace(pairs, desired=pairs.desired[:, order])
            yield pairs, {"object order": [desired, replace(pairs, achieved=pairs.achieved[:, order])]}

    def _pairs(self, judge: Lifted, size: int, stream: int, n: int) -> Pairs:
        """Pairs of the benchmark; a model of one input judges its transformed scenes."""
        drawn = task(judge, n).sample(size, self._rng(stream, n))
        target, reference = drawn.target, np.array(drawn.reference)
        return Pairs(reference, target) if judge.two_inputs else Pairs(target, reference)

    def _rng(self, stream: int, n: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, stream, n])

    def jobs(self, judge: Lifted, agents: Agents) -> tuple[list[Job], dict[str, str]]:
        """Gradient and search for each number of objects and way to change a scene; an agent for each number."""
        budgets = {GRADIENT: self.gradient_evaluations, SEARCH: self.search_evaluations}
        jobs, not_run = [], {}
        reason = MOVES[self.moves[0]].no_gradient(judge)
        if reason is not None:
            not_run[GRADIENT] = f"not run: {reason}"
        for n in self.n_objects:
            groups = [self._group(judge, n, moves, moves) for moves in self.moves]
            jobs += [
                Job(optimiser, budget, (group,))
                for group in groups
                for optimiser, budget in budgets.items()
                if optimiser not in not_run
            ]
            if not self.agent:
                continue
            if not judge.two_inputs:
                not_run[AGENT] = "not run: the model has one input, and hindsight asks about other goals"
            elif (config := agents.config(n, self.seed)) is None:
                not_run[f"{AGENT}, {n} objects"] = "not run: no configuration of an agent has so many objects"
            else:
                config = replace(config, env_kwargs={**config.env_kwargs, "criterion": self.criterion})
                jobs.append(
                    Job(AGENT, config.horizon + 1, (self._group(judge, n, "poses", AGENT),), config, self.episodes)
                )
        return jobs, not_run

    def _group(self, judge: Lifted, n: int, moves: str, label: str) -> Group:
        return Group(
            {"moves": label, "n_objects": n},
            MOVES[moves],
            lambda: begin(judge, n, self.starts, self._rng(_STARTS, n), moves, Criterion(self.criterion)),
            lambda: self._rng(_SEARCH, n),
        )

    def medians(self, distance: Floats, claimed: Flags) -> Row:
        """The medians of the distances."""
        return {"median_distance": median(distance), "median_distance_of_claims": median(distance[claimed])}

    def claim(self, question: Any, distance: float, evaluations: int) -> Row:
        """The distance, and both scenes, of one pair."""
        scenes = {name: round_numbers(getattr(question, name)[0]) for name in ("achieved", "desired")}
        return {"distance": number(distance), "evaluations": evaluations, **scenes}

    def finished(self, judge: Lifted, claims: list[Row]) -> Row:
        """Accuracy and calibration on fixed data, the worst claims of each number of objects, and heat maps."""
        farthest = sorted(claims, key=lambda claim: -(claim["distance"] or math.inf))
        of = [[claim for claim in farthest if claim["n_objects"] == n][: self.gallery] for n in self.n_objects]
        return {
            "fixed": [self._fixed(judge, n) for n in self.n_objects],
            "gallery": [claim for worst in of for claim in worst],
            "heat_maps": [self._heat_map(judge, n) for n in self.n_objects],
        }

    def _fixed(self, judge: Lifted, n: int) -> Row:
        """Accuracy and calibration on the benchmark's pairs, by the truth."""
        pairs = self._pairs(judge, self.fixed_samples, _FIXED, n)
        score, achieved = judge.score(pairs), self.verdict(pairs)[1]
        right = share_of((score >= judge.threshold) == achieved)
        return {"n_objects": n, "accuracy": right, "calibration": calibration(score, achieved)}

    def _heat_map(self, judge: Lifted, n: int) -> Row:
        """Figure 2 of the paper with this number of objects, one of them displaced; in the goal, of two inputs."""
        one_scene = not judge.two_inputs
        scene = reference_scene(n, reference_seed(judge, n) if one_scene else 0)

        def score(displaced: Any, still: Any) -> Floats:
            return judge.score(Pairs(displaced, still) if one_scene else Pairs(still, displaced))

        return {"n_objects": n, **heat_map(score, scene)}


def begin(
    judge: Lifted, n_objects: int, size: int, rng: np.random.Generator, moves: str, criterion: Criterion
) -> Pairs:
    """Starts of the environment's episodes with a number of objects; a model of one input has its own goal.

    Raises:
        ValueError: a number of objects that is not that of the model's one reference scene.
    """
    seed = None if judge.two_inputs else reference_seed(judge, n_objects)
    episodes = SceneEpisodes((n_objects, n_objects), negatives.by_name(MOVES[moves].start), criterion, seed)
    begun = episodes.begin(rng.random((size, episodes.n_uniform), np.float32))
    return Pairs(begun.achieved, begun.desired)


def task(judge: Lifted, n_objects: int) -> Task:
    """The benchmark's task with a number of objects, both labels equally often."""
    if judge.two_inputs:
        return Discrimination(n_objects, balanced=True)
    return Identification(n_objects, reference_seed=reference_seed(judge, n_objects), balanced=True)


def reference_seed(judge: Lifted, n_objects: int) -> int:
    """Of the one reference scene that a model of one input knows.

    Raises:
        ValueError: its file does not say, or the scene holds another number of objects.
    """
    training = judge.model.task.get("training", {}) if isinstance(judge.model, LearnedModel) else {}
    if "reference_seed" not in training:
        raise ValueError(f"{judge.name} has one input and does not say which reference it knows; it cannot be audited")
    if training["n_objects"] != n_objects:
        raise ValueError(f"n_objects is {n_objects}; {judge.name} knows one scene of {training['n_objects']}")
    return int(training["reference_seed"])
