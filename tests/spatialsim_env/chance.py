"""Tolerances of statistical tests: how far an estimate may lie from its definition by chance alone.

Seeds are fixed, so a test gives the same answer every time; 4.5 standard errors leave a wrong alarm one chance in
150,000 when a seed or a generator changes.
"""

from __future__ import annotations

import numpy as np

DEVIATIONS = 4.5


def of_rate(probability: float, trials: int) -> float:
    """Of a relative frequency: sqrt(p (1 - p) / n), with one count added so that rates of nought keep a width."""
    return DEVIATIONS * np.sqrt(probability * (1 - probability) / trials) + 1 / trials


def of_mean(deviation: float, samples: int) -> float:
    """Of a mean of independent numbers: sigma / sqrt(n)."""
    return DEVIATIONS * deviation / np.sqrt(samples)


def of_deviation(deviation: float, samples: int) -> float:
    """Of the standard deviation of a normal sample: sigma / sqrt(2 n)."""
    return DEVIATIONS * deviation / np.sqrt(2 * samples)


def uniform_fits(values: np.ndarray, low: float, high: float) -> bool:
    """Kolmogorov-Smirnov against U[low, high]: sqrt(n) D stays under 2.5 but for one case in 130,000."""
    x = (np.sort(np.ravel(values)) - low) / (high - low)
    steps = np.arange(len(x) + 1) / len(x)
    gap = max(np.abs(x - steps[:-1]).max(), np.abs(x - steps[1:]).max())
    return bool(x[0] >= -1e-6 and x[-1] <= 1 + 1e-6 and np.sqrt(len(x)) * gap < 2.5)
