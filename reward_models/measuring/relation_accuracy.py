"""Accuracy of models of relations: per predicate, the mean over predicates, pairs, and intervals.

A logit above 0 says that the predicate holds. The headline is the unweighted mean of the accuracies of the predicates
that occur. A pair is right where both of its members are; guessing gives a quarter. Samples without a partner count
for the accuracies and not for the pairs.

Intervals are bootstraps over pairs of scenes: the views of a pair are no independent samples and are drawn together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from reward_models.models import checkpoint
from reward_models.models.relations.columns import Columns
from reward_models.threads import one_thread
from spatialsim_env.relations.rel3d.published import SPLITS, RelationSamples, Split
from spatialsim_env.relations.rel3d.records import members, parse_name
from spatialsim_env.streams import stream

RESAMPLES = 10_000
LEVEL = 0.95  # of the intervals


@dataclass(frozen=True)
class Counts:
    """Right answers of all, for each predicate."""

    correct: NDArray[np.int64]  # (P,)
    total: NDArray[np.int64]  # (P,)

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """Of each predicate (P,), in 0..1; nan for one that does not occur."""
        out = np.full(len(self.total), np.nan)
        return np.divide(self.correct, self.total, out=out, where=self.total > 0)

    @property
    def mean(self) -> float:
        """Unweighted over the predicates that occur; nan if none does."""
        present = self.accuracies[self.total > 0]
        return float(present.mean()) if len(present) else float("nan")


def logits(model: Any, parts: Iterable[dict[str, Tensor]]) -> NDArray[np.float64]:
    """Logits (N,) of a relation model on inputs that come in parts, in evaluation mode; its flags stay as they were."""
    training = model.training
    model.eval()
    try:
        with one_thread(), torch.inference_mode():
            outputs = [model(part) for part in parts]
            return torch.cat(outputs).double().cpu().numpy() if outputs else np.zeros(0)
    finally:
        model.train(training)


def right(logits: ArrayLike, label: ArrayLike) -> NDArray[np.bool_]:
    """Compare the signs of logits (N,) with labels (N,): (N,) of bool; a NaN logit is wrong."""
    logits = np.asarray(logits)
    return ((logits > 0) == np.asarray(label, bool)) & ~np.isnan(logits)


def accuracy(correct: ArrayLike, predicate: ArrayLike, n_predicates: int) -> Counts:
    """Counts of right answers (N,) to questions about predicates (N,)."""
    predicate = np.asarray(predicate)
    total = np.bincount(predicate, minlength=n_predicates)
    return Counts(np.bincount(predicate[np.asarray(correct, bool)], minlength=n_predicates), total)


def pair_accuracy(correct: ArrayLike, predicate: ArrayLike, pair: ArrayLike, n_predicates: int) -> Counts:
    """Counts of pairs whose members are both right."""
    both = members(pair)
    return accuracy(np.asarray(correct, bool)[both].all(axis=1), np.asarray(predicate)[both[:, 0]], n_predicates)


def scenes_of(samples: RelationSamples) -> NDArray[np.int64]:
    """The same number (N,) for all views of a pair of scenes, from the pictures' names.

    A picture whose name does not tell is alone with its partner.
    """
    keys = []
    for row, (name, group, pair) in enumerate(zip(samples.rgb, samples.group.tolist(), samples.pair, strict=True)):
        parts = parse_name(name)
        keys.append((parts[0], group) if parts is not None else ("", -1 - pair) if pair >= 0 else (str(row), group))
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return np.array([places[key] for key in keys], np.int64)


def measure(logits: ArrayLike, samples: RelationSamples, n_predicates: int) -> dict[str, Any]:
    """Measure logits (N,) on samples, as a row's entries: counts per predicate, both headlines with their intervals."""
    correct = right(logits, samples.label)
    of_samples = accuracy(correct, samples.predicate, n_predicates)
    of_pairs = pair_accuracy(correct, samples.predicate, samples.pair, n_predicates)
    unit = scenes_of(samples)
    return {
        "correct": of_samples.correct.tolist(),
        "total": of_samples.total.tolist(),
        "mean": _known(of_samples.mean),
        "interval": interval(correct, samples.predicate, unit),
        "pairs_correct": of_pairs.correct.tolist(),
        "pairs": of_pairs.total.tolist(),
        "pair_mean": _known(of_pairs.mean),
        "pair_interval": pair_interval(correct, samples.predicate, samples.pair, unit),
    }


def of_folder(
    folder: str | os.PathLike[str],
    split: Split,
    part: str = "test",
    *,
    device: torch.device | str = "cpu",
    pictures: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Measure a trained model on a part of a split file.

    Args:
        part: "train", "valid" or "test".
        pictures: folder of the pictures, for models that see them.

    Raises:
        ValueError: an unknown part; or the model is none of relations, or knows other predicates or categories.
        checkpoint.CheckpointError: it cannot be read.
    """
    if part not in SPLITS:
        raise ValueError(f"part is {part!r}; accepted are {', '.join(SPLITS)}")
    stored = checkpoint.load(folder)
    if stored.task.get("name") != "relations":
        raise ValueError(f"{folder} holds {stored.model.kind!r}, which was not trained on relations")
    for name in ("predicates", "objects"):
        if stored.task[name] != list(getattr(split, name)):
            raise ValueError(f"{folder} was trained on other {name} than those of {split.name}, or in another order")
    samples = getattr(split, part)
    pixels = stored.task["training"]["pixels"]
    columns = Columns.of(stored.model.to(device), samples, device, pictures, pixels)
    return measure(logits(stored.model, columns.parts()), samples, len(split.predicates))


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def interval(score: ArrayLike, predicate: ArrayLike, unit: ArrayLike, seed: int = 0) -> tuple[float, float] | None:
    """The 95 % percentile interval of the mean over predicates of the mean score, by bootstrap over pairs of scenes.

    What is resampled are pairs of scenes with all of their views, those of each predicate among themselves. Units of
    one predicate differ in few values, so how often each value is drawn is one multinomial draw.

    Args:
        score: (N,), right or not; or its mean over several runs, or the difference of two models', which then are
            compared on the same pairs.
        predicate: (N,) indices.
        unit: (N,); samples of the same number and predicate are drawn together, see ``scenes_of``.
        seed: the same one gives the same interval.

    Returns:
        (low, high); None without samples.
    """
    score, predicate, unit = np.asarray(score, np.float64), np.asarray(predicate), np.asarray(unit)
    if len(score) == 0:
        return None
    rng = stream(seed, "relations/bootstrap")
    total = np.zeros(RESAMPLES)
    predicates = np.unique(predicate)
    for one in predicates:
        rows = predicate == one
        _, place = np.unique(unit[rows], return_inverse=True)
        of_units = np.stack([np.bincount(place, score[rows]), np.bincount(place)], axis=1)
        values, times = np.unique(of_units.round(9), axis=0, return_counts=True)
        drawn = rng.multinomial(times.sum(), times / times.sum(), RESAMPLES)
        total += (drawn @ values[:, 0]) / (drawn @ values[:, 1])
    low, high = np.quantile(total / len(predicates), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def pair_interval(
    correct: ArrayLike, predicate: ArrayLike, pair: ArrayLike, unit: ArrayLike, seed: int = 0
) -> tuple[float, float] | None:
    """The same of pair accuracy, from answers (N,) of one run or (runs, N) of several; None without pairs."""
    both = members(pair)
    right = np.atleast_2d(np.asarray(correct, bool))[:, both].all(axis=2).mean(axis=0)
    return interval(right, np.asarray(predicate)[both[:, 0]], np.asarray(unit)[both[:, 0]], seed)
