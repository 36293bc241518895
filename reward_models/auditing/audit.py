"""The audit of a reward model: three optimisers against its score, judged by the truth."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spatialsim_env
from reward_models.agents.configs import CONFIGS, AgentConfig
from reward_models.auditing import optimisers, problems, report
from reward_models.auditing.judge import CHECKS, PROBES, Judge, JudgeError, Scenes, differ, failures, judge_of
from reward_models.auditing.measures import calibration, false_claims, measured, said
from reward_models.auditing.optimisers import Ends
from reward_models.auditing.problems import MOVES
from reward_models.judges.learned import LearnedModel, LearnedReward
from reward_models.measuring.heat_map import heat_map
from reward_models.models import checkpoint
from reward_models.shares import share_of
from reward_models.threads import one_thread
from spatialsim_env.arrangements.goals import Criterion, criterion_of
from spatialsim_env.arrangements.tasks import reference_scene
from spatialsim_env.checks import require, require_seed, require_whole

FORMAT = 1
GRADIENT, SEARCH, AGENT = "gradient", "search", "agent"
PATHS = 16  # starts of each optimiser whose paths are reported
GALLERY = 4  # false achievements that are reported for each number of objects
LEAST_OBJECTS = 2  # with fewer, every configuration is achieved
PARTS = ("rows", "fixed", "gallery", "heat_maps")  # of a report, empty where a check failed
_PROBE, _FIXED, _STARTS, _SEARCH = range(4)  # streams of random numbers


@dataclass(frozen=True)
class AuditConfig:
    """What an audit does.

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


def config_for(n_objects: int, seed: int) -> AgentConfig | None:
    """The named configuration of an agent with a number of objects; None where there is none."""
    config = CONFIGS.get(f"discrim_n{n_objects}")
    return None if config is None else replace(config, seed=seed)


def audit(
    model: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    agent_config: Callable[[int, int], AgentConfig | None] = config_for,
    truth_agents: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """What happens when the score of a reward model is optimised: precision under optimisation, and what explains it.

    From starts that are truly not achieved, gradient ascent, CMA-ES and an agent look for what the model calls
    achieved, and stop at the first claim; the truth says what it is worth. A model whose answers are not verdicts
    (``judge.failures``) gets the names of what is wrong with them and no number. Equal models, settings and versions
    give equal reports; no global state is changed.

    Args:
        model: a path or "hub:NAME", "truth", a network, or any object with ``score(target, reference)``; see
            ``judge`` for the convention and for ``gradient``.
        out: folder for audit.json, report.md and pictures, and for the agents' trainings.
        agent_config: (objects, seed) -> the agent's configuration, or None for no agent; the named ones by default.
        truth_agents: folder of the agents that are trained on the truth, which are the same for every model; in ``out``
            by default.
        progress: is told a line about each part that is done.
        settings: fields of ``AuditConfig``, as n_objects=(3, 5), starts=64, agent=False.

    Returns:
        The report as JSON values: see ``report``.

    Raises:
        TypeError: not a model, or an unknown setting.
        ValueError: a setting that is not accepted, a path without a model, numbers of objects that a model of one
            input does not know.
        ImportError: a package of the extra "audit" is not installed.
    """
    config = AuditConfig(**settings)
    report.require_packages(drawn=out is not None)
    judge = judge_of(model, Criterion(config.criterion))
    with one_thread(), tempfile.TemporaryDirectory() as temporary:
        folders = Path(out or temporary), None if truth_agents is None else Path(truth_agents)
        found = _Audit(judge, config, folders, agent_config, progress or _silent).run()
    if out is not None:
        report.write(found, out)
    return found


def _silent(line: str) -> None:
    """What a part of an audit found goes unsaid."""


class _Audit:
    """One audit under way."""

    def __init__(
        self,
        judge: Judge,
        config: AuditConfig,
        folders: tuple[Path, Path | None],
        agent_config: Callable[[int, int], AgentConfig | None],
        say: Callable[[str], None],
    ) -> None:
        self.judge, self.config, self.agent_config, self.say = judge, config, agent_config, say
        self.folder, self.truth_agents = folders
        self.criterion = Criterion(config.criterion)
        self.rows: list[dict[str, Any]] = []
        self.false_claims: list[dict[str, Any]] = []
        self.not_run: dict[str, str] = {}

    def run(self) -> dict[str, Any]:
        """Check the judge, then let the optimisers at it."""
        found = {
            "format": FORMAT,
            "version": spatialsim_env.__version__,
            "model": _described(self.judge),
            "settings": json.loads(json.dumps(asdict(self.config))),
            "failures": {},
            "not_run": {},
            **{part: [] for part in PARTS},
        }
        try:
            failed = self._failures()
            return found | ({"failures": failed} if failed else self._measured())
        except JudgeError as error:
            return found | {"failures": {error.check: error.message}}

    def _failures(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for n in self.config.n_objects:
            goals, scenes = self._pairs(PROBES, _PROBE, n)
            found |= failures(self.judge, goals, scenes)
        return found

    def _pairs(self, size: int, stream: int, n: int) -> tuple[Scenes, Scenes]:
        """Goals and scenes in the arena of the benchmark; a model of one input judges its transformed scenes."""
        drawn = problems.task(self.judge, n).sample(size, self._rng(stream, n))
        target, reference = drawn.target, np.array(drawn.reference)
        return (target, reference) if self.judge.two_inputs else (reference, target)

    def _measured(self) -> dict[str, Any]:
        reason = self.judge.no_gradient
        if reason is not None:
            self.not_run[GRADIENT] = f"not run: {reason}"
        for n in self.config.n_objects:
            for moves in self.config.moves:
                self._optimised(n, moves)
            if self.config.agent:
                self._agent(n)
        return {
            "not_run": self.not_run,
            "rows": self.rows,
            "fixed": [self._fixed(n) for n in self.config.n_objects],
            "gallery": self._gallery(),
            "heat_maps": [self._heat_map(n) for n in self.config.n_objects],
        }

    def _rng(self, stream: int, n: int) -> np.random.Generator:
        return np.random.default_rng([self.config.seed, stream, n])

    def _optimised(self, n: int, moves: str) -> None:
        """Gradient and search from the same starts."""
        config = self.config
        starts = problems.problems(self.judge, n, config.starts, self._rng(_STARTS, n), moves, self.criterion)
        if GRADIENT not in self.not_run:
            budget = config.gradient_evaluations
            self._add(GRADIENT, moves, n, budget, optimisers.gradient(self.judge, starts, budget, PATHS))
        budget, rng = config.search_evaluations, self._rng(_SEARCH, n)
        self._add(SEARCH, moves, n, budget, optimisers.search(self.judge, starts, budget, rng, PATHS))

    def _agent(self, n: int) -> None:
        from reward_models.auditing.agent import agent

        config = self.agent_config(n, self.config.seed)
        if not self.judge.two_inputs:
            self.not_run[AGENT] = "not run: the model has one input, and hindsight asks about other goals"
        elif config is None:
            self.not_run[f"{AGENT}, {n} objects"] = "not run: no configuration of an agent has so many objects"
        else:
            config = replace(config, env_kwargs={**config.env_kwargs, "criterion": self.criterion.name})
            folder, episodes = self.folder / AGENT, self.config.episodes
            ends, training = agent(self.judge, config, folder, episodes, PATHS, self.truth_agents)
            self._add(AGENT, AGENT, n, config.horizon + 1, ends, training=training)

    def _add(self, optimiser: str, moves: str, n: int, budget: int, ends: Ends, **more: Any) -> None:
        again = self.judge(ends.desired, ends.achieved)
        if differ(again, ends.score).any():
            raise JudgeError("batch size", f"scores change {CHECKS['batch size']}, at the ends of {optimiser}")
        where = {"optimiser": optimiser, "moves": moves, "n_objects": n}
        row = {**where, "starts": len(ends.score), "budget": budget, **more, **measured(ends, self.criterion)}
        self.rows.append(row)
        self.false_claims += [{**where, **claim} for claim in false_claims(ends, self.criterion, GALLERY)]
        self.say(said(row))

    def _gallery(self) -> list[dict[str, Any]]:
        """The worst false achievements of each number of objects."""
        farthest = sorted(self.false_claims, key=lambda claim: -(claim["distance"] or math.inf))
        of = [[claim for claim in farthest if claim["n_objects"] == n][:GALLERY] for n in self.config.n_objects]
        return [claim for claims in of for claim in claims]

    def _fixed(self, n: int) -> dict[str, Any]:
        """Accuracy and calibration on the benchmark's pairs, by the truth."""
        goals, scenes = self._pairs(self.config.fixed_samples, _FIXED, n)
        score = self.judge(goals, scenes)
        achieved = self.criterion.align(scenes, goals).distance <= 1
        right = share_of((score > 0) == achieved)
        return {"n_objects": n, "accuracy": right, "calibration": calibration(score, achieved)}

    def _heat_map(self, n: int) -> dict[str, Any]:
        """Figure 2 of the paper with this number of objects, one of them displaced."""
        one_scene = not self.judge.two_inputs
        scene = reference_scene(n, problems.reference_seed(self.judge, n) if one_scene else 0)

        def score(displaced: Scenes, still: Scenes) -> NDArray[np.float64]:
            return self.judge(still, displaced) if one_scene else self.judge(displaced, still)

        return {"n_objects": n, **heat_map(score, scene)}


def _described(judge: Judge) -> dict[str, Any]:
    """What was audited."""
    if not isinstance(judge.model, LearnedModel):
        return {"name": judge.name, "kind": type(judge.model).__name__, "n_weights": None, "sha256": None}
    folder = LearnedReward(judge.model).folder
    digest = None if folder is None else checkpoint.read_info(folder)["sha256"]
    weights = judge.model.module.n_weights
    return {"name": judge.name, "kind": judge.model.kind, "n_weights": weights, "sha256": digest}
