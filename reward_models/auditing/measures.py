"""What is read off the ends of an optimiser: shares with their intervals, and how far the model's confidence is right.

claimed      share of the starts at whose end the model says achieved
achieved     share of the ends that are truly achieved
precision    P(truly achieved | the model says achieved), the headline; undefined without a claim
reach        share of the starts that end in a claim that is true; 0 without a claim
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from reward_models.auditing.optimisers import Ends, Path
from reward_models.shares import format_share, share_of
from spatialsim_env.arrangements.goals import Criterion

SHARES = ("claimed", "achieved", "precision", "reach")
BINS = 10  # of the reliability curve, equally wide
POINTS = 40  # of a path, at most
DIGITS = 6  # after the point

Flags = NDArray[np.bool_]


def measured(ends: Ends, criterion: Criterion) -> dict[str, Any]:
    """What the ends of an optimiser amount to, as JSON values."""
    distance = criterion.align(ends.achieved, ends.desired).distance
    achieved, claimed = distance <= 1, ends.claimed
    return {
        "claimed": share_of(claimed),
        "achieved": share_of(achieved),
        "precision": share_of(achieved[claimed]),
        "reach": share_of(achieved & claimed),
        "median_distance": number(np.median(distance)),
        "median_distance_of_claims": median(distance[claimed]),
        "median_evaluations_to_claim": median(ends.evaluations[claimed]),
        "evaluations": int(ends.evaluations.sum()),
        "calibration": calibration(ends.score, achieved),
        "paths": [
            _path(path, ends.desired[row], bool(claimed[row]), bool(achieved[row]), criterion)
            for row, path in enumerate(ends.paths)
        ],
    }


def median(values: NDArray[Any]) -> float | None:
    """The median; None without a value."""
    return number(np.median(values)) if len(values) else None


def number(x: Any) -> float | None:
    """A number as JSON has it: rounded, None if it is not finite."""
    return round(float(x), DIGITS) if math.isfinite(x) else None


def calibration(score: NDArray[np.float64], achieved: Flags) -> dict[str, Any]:
    """How far the probability, the logistic of the score, is the share that is truly achieved.

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


def _path(path: Path, desired: NDArray[Any], claimed: bool, achieved: bool, criterion: Criterion) -> dict[str, Any]:
    """[evaluations, score, true distance] along the way from one start, thinned."""
    places = np.unique(np.linspace(0, len(path.scores) - 1, POINTS).round().astype(int)).tolist()
    scenes = np.stack([path.scenes[place] for place in places])
    distance = criterion.align(scenes, np.broadcast_to(desired, scenes.shape)).distance
    points = [
        [path.evaluations[place], number(path.scores[place]), number(far)]
        for place, far in zip(places, distance, strict=True)
    ]
    return {"claimed": claimed, "achieved": achieved, "points": points}


def false_claims(ends: Ends, criterion: Criterion, most: int) -> list[dict[str, Any]]:
    """The ends that are farthest from what the model says of them, farthest first, as JSON values."""
    distance = criterion.align(ends.achieved, ends.desired).distance
    rows = np.flatnonzero(ends.claimed & (distance > 1))
    worst = rows[np.argsort(-distance[rows], kind="stable")][:most]
    return [
        {
            "score": number(ends.score[row]),
            "distance": number(distance[row]),
            "evaluations": int(ends.evaluations[row]),
            "achieved": _scene(ends.achieved[row]),
            "desired": _scene(ends.desired[row]),
        }
        for row in worst
    ]


def label(row: dict[str, Any]) -> str:
    """What a row is of."""
    of = "" if row["moves"] == row["optimiser"] else f" of {row['moves']}"
    return f"{row['optimiser']}{of}, {row['n_objects']} objects"


def said(row: dict[str, Any]) -> str:
    """A row on a line."""
    return f"{label(row)}: " + ", ".join(f"{name} {format_share(row[name])}" for name in SHARES)


def _scene(scene: NDArray[Any]) -> list[list[float]]:
    return scene.astype(np.float64).round(DIGITS).tolist()
