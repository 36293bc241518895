"""The audit of a model of relations: what happens when its score is optimised, judged by the rules.

    format, version     of the report and of the package
    model               {"name", "kind", "n_weights", "sha256"}; null for an object from outside
    settings            of the audit (``AuditConfig``)
    failures            {check: message}; where there is one, the rows are empty: no number would mean anything
    not_run             {optimiser: reason}
    rows                one for each optimiser and predicate, and one for each optimiser under "all": see ``measured``
    gallery             false claims of each predicate, the worst first: scene, observer, score, the rule's margin

Shares are {"hits", "total", "interval"}, the interval of 95 % after Wilson. The names are those of the audit of 2D
rewards (``auditing.measures``): claimed, achieved, precision, reach.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spatialsim_env
from reward_models.auditing import relation_climbing
from reward_models.auditing.judge import CHECKS, JudgeError, differ
from reward_models.auditing.measures import SHARES, calibration, median, number
from reward_models.auditing.relation_climbing import Ends, Starts
from reward_models.auditing.relation_judge import RelationJudge, failures, judge_of
from reward_models.auditing.report import JSON as JSON
from reward_models.auditing.report import MARKDOWN, listed, opening
from reward_models.judges.learned_relations import LearnedRelation, RelationReward
from reward_models.models import checkpoint
from reward_models.shares import format_share, share_of
from reward_models.studies.relation_agents.agent import ALL, SEVEN
from reward_models.tables import Table
from reward_models.threads import one_thread
from spatialsim_env.checks import require, require_seed, require_whole
from spatialsim_env.files import write_whole
from spatialsim_env.relations.predicates import predicates as rules
from spatialsim_env.relations.vocabulary import PREDICATES
from spatialsim_env.relations.world.episodes import Episodes

FORMAT = 1
GRADIENT, SEARCH = "gradient", "search"
GALLERY = 3  # false claims that are kept for each predicate
PROBES = 32  # scenes that the checks ask about
_STARTS, _SEARCH = range(2)  # streams of random numbers

Report = dict[str, Any]


@dataclass(frozen=True)
class AuditConfig:
    """What an audit does.

    Raises:
        ValueError: a value that is not accepted.
    """

    predicates: tuple[str, ...] = SEVEN  # each audited by itself
    starts: int = 64  # of each optimiser, for each predicate
    gradient_evaluations: int = 300  # scores from each start, at most
    search_evaluations: int = 3_000  # scores from each start, at most
    seed: int = 0

    def __post_init__(self) -> None:
        known = isinstance(self.predicates, tuple) and len(self.predicates) > 0
        known = known and len(set(self.predicates)) == len(self.predicates) and set(self.predicates) <= set(PREDICATES)
        require(known, "predicates", self.predicates, f"a tuple of different names of {', '.join(PREDICATES)}")
        require_whole("starts", self.starts)
        for name in ("gradient_evaluations", "search_evaluations"):
            require_whole(name, getattr(self, name), 2)
        require_seed("seed", self.seed)


def audit(
    model: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Report:
    """What happens when the score of a model of relations is optimised: precision under optimisation.

    From starts of the environment's episodes, which the rules certify as not achieved, gradient ascent and CMA-ES move
    the subject until the model says that the predicate holds, and stop there; the rules say what that is worth. Equal
    models, settings and versions give equal reports.

    Args:
        model: "truth" for the rules, a path or "hub:NAME", a network, a learned reward, or any object with
            ``score(scenes, observers, predicate)``.
        out: folder for audit.json and report.md.
        progress: is told a line about each part that is done.
        settings: fields of ``AuditConfig``, as predicates=("on",), starts=16.

    Returns:
        The report as JSON values.

    Raises:
        TypeError: not a model, or an unknown setting.
        ValueError: a setting that is not accepted, or a path without a model of relations.
        ImportError: cmaes is not installed.
    """
    config = AuditConfig(**settings)
    if find_spec("cmaes") is None:
        raise ImportError('the audit needs cmaes: pip install "spatialsim-env[audit]"')
    judge = judge_of(model)
    found: Report = {
        "format": FORMAT,
        "version": spatialsim_env.__version__,
        "model": _described(judge),
        "settings": json.loads(json.dumps(asdict(config))),
        "failures": {},
        "not_run": {},
        "rows": [],
        "gallery": [],
    }
    with one_thread():
        try:
            found |= _measured(judge, config, progress or _silent)
        except JudgeError as error:
            found |= {"failures": {error.check: error.message}, "rows": [], "gallery": []}
    if out is not None:
        write(found, out)
    return found


def _silent(line: str) -> None:
    """What a part of an audit found goes unsaid."""


def starts_of(predicate: str, size: int, rng: np.random.Generator) -> Starts:
    """Starts of the environment's episodes whose goal is a predicate."""
    episodes = Episodes((predicate,))
    begun = episodes.begin(rng.random((size, episodes.n_uniform), np.float32))
    return Starts(begun.scenes, begun.observers, np.full(size, PREDICATES.index(predicate)))


def _measured(judge: RelationJudge, config: AuditConfig, say: Callable[[str], None]) -> Report:
    """Check the judge, then let the optimisers at it."""
    starts = {
        name: starts_of(name, config.starts, np.random.default_rng([config.seed, _STARTS, PREDICATES.index(name)]))
        for name in config.predicates
    }
    for each in starts.values():
        few = slice(PROBES)
        failed = failures(judge, each.scenes[few], each.observers[few], each.which[few])
        if failed:
            return {"failures": failed}
    optimisers: dict[str, Callable[[Starts, np.random.Generator], Ends]] = {
        GRADIENT: lambda begun, _: relation_climbing.gradient(judge, begun, config.gradient_evaluations),
        SEARCH: lambda begun, rng: relation_climbing.search(judge, begun, config.search_evaluations, rng),
    }
    not_run = {} if judge.no_gradient is None else {GRADIENT: f"not run: {judge.no_gradient}"}
    budgets = {GRADIENT: config.gradient_evaluations, SEARCH: config.search_evaluations}
    rows, gallery = [], []
    for optimiser in (name for name in optimisers if name not in not_run):
        ends = {}
        for name, begun in starts.items():
            rng = np.random.default_rng([config.seed, _SEARCH, PREDICATES.index(name)])
            ends[name] = _checked(judge, optimisers[optimiser](begun, rng))
            rows.append(measured(optimiser, name, budgets[optimiser], [ends[name]]))
            gallery += [{"optimiser": optimiser, "predicate": name, **claim} for claim in false_claims(ends[name])]
            say(said(rows[-1]))
        rows.append(measured(optimiser, ALL, budgets[optimiser], list(ends.values())))
        say(said(rows[-1]))
    return {"not_run": not_run, "rows": rows, "gallery": gallery}


def _checked(judge: RelationJudge, ends: Ends) -> Ends:
    """Ends whose scores are what the judge says of them again."""
    rows = ends.claimed
    again = judge(ends.scenes[rows], ends.starts.observers[rows], ends.starts.which[rows])
    if differ(again, ends.score[rows]).any():
        raise JudgeError("batch size", f"scores change {CHECKS['batch size']}, at the ends of an optimiser")
    return ends


def margins_of(ends: Ends) -> NDArray[np.float64]:
    """The rules' margins at the ends, (S,)."""
    scenes, observers = (x.astype(np.float64) for x in (ends.scenes, ends.starts.observers))
    return rules.margin_of(ends.starts.which, scenes, observers)


def measured(optimiser: str, predicate: str, budget: int, parts: Sequence[Ends]) -> dict[str, Any]:
    """What the ends of an optimiser amount to, as JSON values."""
    margin = np.concatenate([margins_of(ends) for ends in parts])
    claimed, score, evaluations = (
        np.concatenate([getattr(ends, name) for ends in parts]) for name in ("claimed", "score", "evaluations")
    )
    holds = margin > 0
    return {
        "optimiser": optimiser,
        "predicate": predicate,
        "starts": len(margin),
        "budget": budget,
        "claimed": share_of(claimed),
        "achieved": share_of(holds),
        "precision": share_of(holds[claimed]),
        "reach": share_of(holds & claimed),
        "median_margin_of_claims": median(margin[claimed]),
        "median_evaluations_to_claim": median(evaluations[claimed]),
        "evaluations": int(evaluations.sum()),
        "calibration": calibration(np.clip(score, -700, 700), holds),
    }


def false_claims(ends: Ends, most: int = GALLERY) -> list[dict[str, Any]]:
    """The claims that are farthest from true, the worst first, as JSON values."""
    margin = margins_of(ends)
    rows = np.flatnonzero(ends.claimed & (margin <= 0))
    return [
        {
            "score": number(ends.score[row]),
            "margin": number(margin[row]),
            "evaluations": int(ends.evaluations[row]),
            "scene": ends.scenes[row].astype(np.float64).round(6).tolist(),
            "observer": ends.starts.observers[row].astype(np.float64).round(6).tolist(),
        }
        for row in rows[np.argsort(margin[rows], kind="stable")][:most]
    ]


def said(row: dict[str, Any]) -> str:
    """A row on a line."""
    return f"{row['optimiser']}, {row['predicate']}: " + ", ".join(
        f"{name} {format_share(row[name])}" for name in SHARES
    )


def _described(judge: RelationJudge) -> dict[str, Any]:
    """What was audited."""
    if not isinstance(judge.model, LearnedRelation):
        return {"name": judge.name, "kind": type(judge.model).__name__, "n_weights": None, "sha256": None}
    folder = RelationReward(judge.model).folder
    digest = None if folder is None else checkpoint.read_info(folder)["sha256"]
    return {"name": judge.name, "kind": judge.model.kind, "n_weights": judge.model.module.n_weights, "sha256": digest}


def write(found: Report, out: str | os.PathLike[str]) -> Path:
    """Write a report into a folder; returns the path of its Markdown.

    Raises:
        OSError: a file cannot be written.
    """
    folder = Path(out)
    write_whole(folder / JSON, (json.dumps(found, indent=1) + "\n").encode())
    write_whole(folder / MARKDOWN, markdown(found).encode())
    return folder / MARKDOWN


def markdown(found: Report) -> str:
    """The report as text."""
    parts = opening(found)
    if found["failures"]:
        return "\n\n".join(parts) + "\n"
    parts += ["## Precision under optimisation", _NOTE, table(found).markdown()]
    if found["not_run"]:
        parts.append(listed(found["not_run"]))
    return "\n\n".join(parts) + "\n"


_NOTE = (
    "From starts that the rules call not achieved, each optimiser moves the subject and stops at the first scene in "
    "which the model says that the predicate holds. Precision: the share of these claims that is true by the rules, "
    "which are no human judgements. Reach: the share of the starts that end in a true claim. Margin: the rule's, of "
    "the claims; above 0 it holds. Intervals of 95 %."
)


def table(found: Report) -> Table:
    """The rows of a report."""
    columns = ("optimiser", "predicate", "starts", "says achieved", "truly achieved", "**precision**", "reach",
               "median margin", "evaluations to a claim")  # fmt: skip
    lines = [
        (
            row["optimiser"],
            row["predicate"],
            str(row["starts"]),
            format_share(row["claimed"]),
            format_share(row["achieved"]),
            f"**{format_share(row['precision'])}**",
            format_share(row["reach"]),
            *("-" if row[key] is None else f"{row[key]:.4g}" for key in ("median_margin_of_claims", _TO_CLAIM)),
        )
        for row in found["rows"]
    ]
    return Table("optimisers", "Precision under optimisation", columns, tuple(lines))


_TO_CLAIM = "median_evaluations_to_claim"
