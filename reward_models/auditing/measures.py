"""Measures of an optimiser's ends: shares with their intervals, and the calibration of the model's confidence.

claimed      share of the starts at whose end the model says achieved
achieved     share of the ends that are truly achieved
precision    P(truly achieved | the model says achieved), the headline; undefined without a claim
reach        share of the starts that end in a claim that is true; 0 without a claim
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from reward_models.auditing.optimisers import Ends, Path
from reward_models.shares import format_share, share_of
from spatialsim_env.core.judges import Flags, Floats

if TYPE_CHECKING:
    from reward_models.auditing.setup import Setup

SHARES = ("claimed", "achieved", "precision", "reach")
BINS = 10  # of the reliability curve, equally wide
POINTS = 40  # of a path, at most
DIGITS = 6  # after the point


@dataclass(frozen=True)
class Sample:
    """The ends of an optimiser from S starts, as numbers."""

    distance: Floats  # the truth's
    achieved: Flags  # by the truth
    claimed: Flags  # by the model
    score: Floats
    evaluations: NDArray[np.int64]


def sample_of(setup: Setup, ends: Ends) -> Sample:
    """The ends with what the truth says of them."""
    return Sample(*setup.verdict(ends.question), ends.claimed, ends.score, ends.evaluations)


def join(samples: Sequence[Sample]) -> Sample:
    """The ends of several groups of starts as one."""
    return Sample(*(np.concatenate([getattr(x, part.name) for x in samples]) for part in fields(Sample)))


def measure(setup: Setup, sample: Sample) -> dict[str, Any]:
    """Measure the ends of an optimiser, as JSON values."""
    achieved, claimed = sample.achieved, sample.claimed
    return {
        "claimed": share_of(claimed),
        "achieved": share_of(achieved),
        "precision": share_of(achieved[claimed]),
        "reach": share_of(achieved & claimed),
        **setup.medians(sample.distance, claimed),
        "median_evaluations_to_claim": median(sample.evaluations[claimed]),
        "evaluations": int(sample.evaluations.sum()),
        "calibration": calibration(sample.score, achieved),
    }


def paths(setup: Setup, ends: Ends, sample: Sample) -> list[dict[str, Any]]:
    """[evaluations, score, true distance] along the way from the first starts, thinned."""
    return [
        {"claimed": bool(sample.claimed[row]), "achieved": bool(sample.achieved[row]), "points": points}
        for row, path in enumerate(ends.paths)
        if (points := _points(setup, path, ends.question.rows(slice(row, row + 1))))
    ]


def _points(setup: Setup, path: Path, end: Any) -> list[list[Any]]:
    places = np.unique(np.linspace(0, len(path.scores) - 1, POINTS).round().astype(int)).tolist()
    along = replace(end.rows(np.zeros(len(places), int)), achieved=np.stack([path.achieved[place] for place in places]))
    return [
        [path.evaluations[place], number(path.scores[place]), number(far)]
        for place, far in zip(places, setup.verdict(along)[0], strict=True)
    ]


def false_claims(setup: Setup, ends: Ends, sample: Sample) -> list[dict[str, Any]]:
    """The ends that are farthest from what the model says of them, farthest first, as JSON values."""
    rows = np.flatnonzero(sample.claimed & ~sample.achieved)
    worst = rows[np.argsort(-sample.distance[rows], kind="stable")][: setup.gallery]
    return [
        {
            "score": number(ends.score[row]),
            **setup.claim(
                ends.question.rows(slice(row, row + 1)), float(sample.distance[row]), int(ends.evaluations[row])
            ),
        }
        for row in worst
    ]


def median(values: NDArray[Any]) -> float | None:
    """The median; None without a value."""
    return number(np.median(values)) if len(values) else None


def number(x: Any) -> float | None:
    """A number as JSON has it: rounded, None if it is not finite."""
    return round(float(x), DIGITS) if math.isfinite(x) else None


def round_numbers(values: NDArray[Any]) -> list[Any]:
    """Numbers as JSON has them."""
    return values.astype(np.float64).round(DIGITS).tolist()


def calibration(score: NDArray[np.float64], achieved: Flags) -> dict[str, Any]:
    """Calibration: compare the probability, the logistic of the score, with the share that is truly achieved.

    Returns:
        ``ece``, the expected calibration error: the mean over all of |share - mean probability| of their bins; and
        ``bins``, [lower end, number, mean probability, share] of those that hold something.
    """
    probability = expit(score)
    places = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    bins, error = [], 0.0
    for place in np.unique(places).tolist():
        rows = places == place
        mean, truly = probability[rows].mean(), achieved[rows].mean()
        bins.append([place / BINS, int(rows.sum()), number(mean), number(truly)])
        error += rows.mean() * abs(truly - mean)
    return {"ece": number(error), "bins": bins}


def label(row: dict[str, Any]) -> str:
    """Label of a row: its optimiser, and its size or predicate."""
    if "predicate" in row:
        return f"{row['optimiser']}, {row['predicate']}"
    of = "" if row["moves"] == row["optimiser"] else f" of {row['moves']}"
    return f"{row['optimiser']}{of}, {row['n_objects']} objects"


def format_row(row: dict[str, Any]) -> str:
    """Format a row as a line."""
    return f"{label(row)}: " + ", ".join(f"{name} {format_share(row[name])}" for name in SHARES)
