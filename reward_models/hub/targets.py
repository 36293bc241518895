"""Targets of a shipped model's card, on fixed data and under optimisation."""

from __future__ import annotations

from typing import Any

from reward_models.auditing.targets import Target, targets

ACCURACY = {"3-8": 0.999, "9-20": 0.9995, "21-30": 0.9995}  # on the benchmark
FAR, FAR_ACCURACY = "n100", 0.999  # on redrawn arrangements of a hundred objects
WEIGHTS, SECONDS = 1_000, 60  # at most, and of training
THRESHOLD_RANGE, THRESHOLD_RATIO = "3-8", 1.1  # detection threshold in units of the ideal observer's, at most
IDEAL_THRESHOLD = 3.116  # the ideal observer's, deviations of the noise: rows of the hard suite, results/hard

Card = dict[str, Any]


def card_targets(card: Card, threshold: float | None = None, ideal: float = IDEAL_THRESHOLD) -> list[Target]:
    """The targets of a card, those of its audit last; what was not measured meets none.

    Args:
        card: of a shipped model.
        threshold: its detection threshold on 3-8 objects, in deviations of the noise; the card's by default.
        ideal: the ideal observer's.
    """
    found = [_at_least(f"accuracy, {key} objects", least, card["accuracy"].get(key)) for key, least in ACCURACY.items()]
    found += [
        _at_most("weights", WEIGHTS, card["n_weights"]),
        _at_most("seconds of training", SECONDS, card["seconds"]),
    ]
    hard = card["hard_suite"]
    if hard is not None:
        far = hard["accuracy"].get("redrawn", {}).get(FAR)
        found.append(_at_least("accuracy, 100 objects", FAR_ACCURACY, far))
    own = hard["thresholds"].get(THRESHOLD_RANGE) if threshold is None and hard is not None else threshold
    ratio = None if own is None else own / ideal
    found.append(_at_most("detection threshold by the ideal observer's", THRESHOLD_RATIO, ratio))
    return found + ([] if card["audit"] is None else targets(card["audit"]))


def _at_least(name: str, target: float, counted: Card | None) -> Target:
    value = None if counted is None or counted["correct"] is None else counted["correct"] / counted["total"]
    return Target(name, target, value, value is not None and value >= target)


def _at_most(name: str, target: float, value: float | None) -> Target:
    return Target(name, target, value, value is not None and value <= target, most=True)
