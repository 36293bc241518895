"""Reference rules without learning: a number for a pair of scenes, and one threshold fitted on training samples.

What they reach says what the task asks for: in the benchmark's negatives all positions are drawn anew, so already the
spread of the positions gives most of them away. The truth needs no threshold: a distance of at most 1 is achieved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_models.shares import Accuracy
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.alignment import OK
from spatialsim_env.arrangements.goals import Criterion
from spatialsim_env.arrangements.scene import POSITION, SIZE, barycenter, present
from spatialsim_env.arrangements.tasks import Samples

Statistic = Callable[[Samples], NDArray[np.float64]]  # (B,), small where both scenes show the same configuration


def spread(samples: Samples) -> NDArray[np.float64]:
    """|log| of the ratio of the RMS distances to the barycentre, divided by the size ratio."""
    target, reference = (np.sqrt(np.mean(_distances(x) ** 2, axis=1, where=present(x))) for x in _scenes(samples))
    return np.abs(np.log(target / reference / size_ratio(samples)))


def sorted_distances(samples: Samples) -> NDArray[np.float64]:
    """RMS difference of the sorted distances to the barycentre, the target's divided by the size ratio, units."""
    target, reference = (np.sort(np.where(present(x), _distances(x), np.inf), axis=1) for x in _scenes(samples))
    held = np.isfinite(reference)
    apart = np.subtract(target / size_ratio(samples)[:, None], reference, out=np.zeros_like(reference), where=held)
    return np.sqrt(np.mean(apart**2, axis=1, where=held))


def matching_rule(samples: Samples) -> NDArray[np.float64]:
    """RMS residual of the positions (units) after matching by shape and colour and the likeliest similarity.

    Infinite where the scenes hold different objects.
    """
    aligned = Criterion().align(samples.reference, samples.target)
    alike = (aligned.status == OK)[:, None]
    squares = np.where(alike, aligned.residuals[..., 0], np.inf) ** 2
    return np.sqrt(np.mean(squares, axis=1, where=present(samples.reference)))


def truth(samples: Samples) -> NDArray[np.float64]:
    """The truth's distance: largest residual in units of its tolerance."""
    return goals.distance(samples.reference, samples.target)


RULES: dict[str, Statistic] = {rule.__name__: rule for rule in (spread, sorted_distances, matching_rule, truth)}


def size_ratio(samples: Samples) -> NDArray[np.float64]:
    """Sum of the target's sizes over that of the reference's, (B,): an estimate of the scale."""
    target, reference = (x[..., SIZE].sum(axis=1) for x in _scenes(samples))
    return target / reference


def _scenes(samples: Samples) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return samples.target.astype(np.float64), samples.reference.astype(np.float64)


def _distances(scenes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance of each object to the barycentre, (B, n)."""
    return np.linalg.norm(scenes[..., POSITION] - barycenter(scenes), axis=-1)


def threshold(statistic: NDArray[np.float64], label: NDArray[Any]) -> float:
    """The threshold under which "the same" is right most often; halfway between two values of the statistic.

    The lowest one where several are equally good; infinities stand for "never" and "always".
    """
    order = np.argsort(statistic, kind="stable")
    values, same = statistic[order], label[order] == 1
    # right[k]: right answers if the k lowest are called the same
    right = np.concatenate([[0], np.cumsum(same)]) + np.concatenate([np.cumsum(~same[::-1])[::-1], [0]])
    edges = np.concatenate([[True], values[1:] > values[:-1], [True]])
    best = int(np.flatnonzero(edges & (right == right[edges].max()))[0])
    if best in (0, len(values)):
        return -np.inf if best == 0 else np.inf
    return float((values[best - 1] + values[best]) / 2)


def accuracy(rule: str, training: Samples, test: Samples) -> Accuracy:
    """Right answers of a rule on a test set, its threshold fitted on training samples; the truth's is 1.

    Raises:
        ValueError: an unknown rule.
    """
    if rule not in RULES:
        raise ValueError(f"rule is {rule!r}; accepted are {', '.join(RULES)}")
    statistic = RULES[rule]
    limit = 1.0 if statistic is truth else threshold(statistic(training), training.label)
    answers = statistic(test) <= limit
    return Accuracy(int((answers == (test.label == 1)).sum()), len(test))
