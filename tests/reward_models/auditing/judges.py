"""Models of known worth, from outside the package: anything with ``score(achieved, desired)``."""

from __future__ import annotations

import numpy as np

from reward_models.auditing.arrangements import ArrangementAudit
from reward_models.judges.judge import of
from spatialsim_env.arrangements.scene import POSITION, SIZE
from spatialsim_env.core.judges import Pairs

CORNER = np.array([4.0, 4.0])  # where the planted hole is
HOLE = 4.0  # units, its radius
SCENES = ArrangementAudit()


def judge_of(model):
    """The judge of arrangements that a model is."""
    return of(model, SCENES)


def truth(achieved, desired):
    """1 - distance."""
    return SCENES.truth.score(Pairs(achieved, desired))


class Constant:
    """Says the same of everything."""

    def __init__(self, score: float) -> None:
        self.value = score

    def score(self, achieved, desired):
        return np.full(len(achieved), self.value)

    def gradient(self, achieved, desired):
        return np.zeros(achieved.shape)


class NoGradient:
    """The truth, in a form that cannot be climbed."""

    def score(self, achieved, desired):
        return truth(achieved, desired)


def largest(scenes):
    """The position of the largest object, (B, 2), and its row (B,)."""
    row = scenes[..., SIZE].argmax(axis=1)
    return scenes[np.arange(len(scenes)), row][:, POSITION].astype(np.float64), row


class Hole:
    """Says achieved wherever the largest object lies within the hole, and is the truth elsewhere."""

    def score(self, achieved, desired):
        far = np.linalg.norm(largest(achieved)[0] - CORNER, axis=1)
        return np.maximum(truth(achieved, desired), HOLE - far)


class Slope:
    """Falls with the distance of the largest object to the hole's centre; it knows nothing of the goal."""

    def score(self, achieved, desired):
        return HOLE - np.linalg.norm(largest(achieved)[0] - CORNER, axis=1)

    def gradient(self, achieved, desired):
        place, row = largest(achieved)
        way, out = CORNER - place, np.zeros(achieved.shape)
        out[np.arange(len(row)), row, POSITION] = way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-12)
        return out
