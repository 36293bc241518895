"""Models of known worth, from outside the package: anything with ``score(target, reference)``."""

from __future__ import annotations

import numpy as np

from reward_models.auditing.judge import Truth
from spatialsim_env.arrangements.scene import POSITION, SIZE

CORNER = np.array([4.0, 4.0])  # where the planted hole is
HOLE = 4.0  # units, its radius


class Constant:
    """Says the same of everything."""

    def __init__(self, score: float) -> None:
        self.value = score

    def score(self, target, reference):
        return np.full(len(target), self.value)

    def gradient(self, target, reference):
        return np.zeros(reference.shape)


class NoGradient:
    """The truth, in a form that cannot be climbed."""

    def score(self, target, reference):
        return Truth().score(target, reference)


def largest(scenes):
    """The position of the largest object, (B, 2), and its row (B,)."""
    row = scenes[..., SIZE].argmax(axis=1)
    return scenes[np.arange(len(scenes)), row][:, POSITION].astype(np.float64), row


class Hole:
    """Says achieved wherever the largest object lies within the hole, and is the truth elsewhere."""

    def score(self, target, reference):
        far = np.linalg.norm(largest(reference)[0] - CORNER, axis=1)
        return np.maximum(Truth().score(target, reference), HOLE - far)


class Slope:
    """Falls with the distance of the largest object to the hole's centre; it knows nothing of the goal."""

    def score(self, target, reference):
        return HOLE - np.linalg.norm(largest(reference)[0] - CORNER, axis=1)

    def gradient(self, target, reference):
        place, row = largest(reference)
        way, out = CORNER - place, np.zeros(reference.shape)
        out[np.arange(len(row)), row, POSITION] = way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-12)
        return out
