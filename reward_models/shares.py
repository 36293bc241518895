"""Shares with their 95 % intervals: of one run after Wilson (1927), pooled over runs, and as rows hold them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Z = 1.959964  # normal quantile of a two-sided interval of 95 %
LEVEL = 0.95
RESAMPLES = 10_000


def wilson(hits: int, trials: int, z: float = Z) -> tuple[float, float]:
    """The interval of a share after Wilson (1927), 95 % by default; (0, 1) without a trial.

    Raises:
        ValueError: not 0 <= hits <= trials.
    """
    if not 0 <= hits <= trials:
        raise ValueError(f"{hits} hits of {trials} trials; accepted is 0 <= hits <= trials")
    if trials == 0:
        return 0.0, 1.0
    share, spread = hits / trials, z * z / trials
    center = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(center - half, 0.0), min(center + half, 1.0)


@dataclass(frozen=True)
class Accuracy:
    """Share of right answers."""

    correct: int
    total: int

    @property
    def value(self) -> float:
        """In 0..1."""
        return self.correct / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval."""
        return wilson(self.correct, self.total)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.4f} ({low:.4f} to {high:.4f}, {self.total:,} samples)"


def share(hits: int, total: int) -> dict[str, Any]:
    """Hits of a number of trials, with their 95 % interval after Wilson."""
    return {"hits": int(hits), "total": int(total), "interval": list(wilson(int(hits), int(total)))}


def share_of(hits: NDArray[np.bool_]) -> dict[str, Any]:
    """A share with its 95 % interval after Wilson."""
    return share(int(hits.sum()), len(hits))


def value_of(share: dict[str, Any]) -> float | None:
    """A share as a number; None where it is undefined."""
    return share["hits"] / share["total"] if share["total"] else None


def format_value(share: dict[str, Any]) -> str:
    """A share without its interval; "undefined" where there was no trial."""
    return "undefined" if not share["total"] else f"{value_of(share):.3f}"


def format_share(share: dict[str, Any]) -> str:
    """A share with its interval; "undefined" where there was no trial."""
    if not share["total"]:
        return "undefined"
    low, high = share["interval"]
    return f"{value_of(share):.3f} ({low:.3f} to {high:.3f})"


@dataclass(frozen=True)
class PooledShare:
    """A share over several runs."""

    value: float
    interval: tuple[float, float]  # 95 %
    runs: int

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.interval[0]:.3f} to {self.interval[1]:.3f})"


def pool(found: Iterable[dict[str, Any]]) -> PooledShare | None:
    """The share of all trials of several runs; None without a trial.

    Args:
        found: hits and total of each run, as rows have them.
    """
    counts = [(part["hits"], part["total"]) for part in found if part["total"]]
    if not counts:
        return None
    hits, totals = np.array(counts).T
    rng = np.random.default_rng(0)
    picked = rng.integers(0, len(counts), (RESAMPLES, len(counts)))
    drawn = rng.beta(hits[picked] + 0.5, totals[picked] - hits[picked] + 0.5) * totals[picked]
    low, high = np.quantile(drawn.sum(axis=1) / totals[picked].sum(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    value = float(hits.sum() / totals.sum())
    return PooledShare(value, (min(float(low), value), max(float(high), value)), len(counts))
