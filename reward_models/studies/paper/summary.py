"""Summary of the rows of a benchmark: mean, deviation and interval over runs, and a verdict.

A run is one row: one seed of one cell, which is one training set with its fixed seeds. A figure of a table is over all
runs of one cell (Discrimination) or of several (the sets of a group in Identification). Failed rows carry no accuracy;
they are kept apart and never counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

import numpy as np

from reward_models.studies.paper.work import PaperRow

RESAMPLES = 10_000
LEVEL = 0.95  # of the intervals
CLOSE = 0.05  # two means that differ by less are called close, where no deviation over runs is published
_SLACK = 1e-9  # a mean that lies one deviation away is within, whatever the last bit says


@cache
def published() -> dict[str, Any]:
    """The paper's Tables 1-3, and what is known of the reference rules, each with its source."""
    return json.loads(resources.files(__package__).joinpath("published.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Summary:
    """Accuracy over the runs of one or several cells."""

    n_cells: int
    n_runs: int
    mean: float  # over all runs, in 0..1
    deviation: float | None  # of the runs, with n - 1 in the denominator; None for one run
    interval: tuple[float, float] | None  # 95 %, bootstrap; None where there is nothing to resample


@dataclass(frozen=True)
class Published:
    """A figure of the paper."""

    mean: float
    deviation: float  # over 10 runs
    weights: int


class Cells:
    """The rows of the study, by cell."""

    def __init__(self, rows: Iterable[PaperRow]) -> None:
        self.rows = tuple(sorted(rows, key=lambda row: (row.cell, row.seed)))

    @cached_property
    def failed(self) -> tuple[PaperRow, ...]:
        """The rows with an error."""
        return tuple(row for row in self.rows if row.error is not None)

    @cached_property
    def cells(self) -> dict[str, tuple[PaperRow, ...]]:
        """The rows without an error by cell, in order of seeds."""
        found: dict[str, list[PaperRow]] = {}
        for row in self.rows:
            if row.error is None:
                found.setdefault(row.cell, []).append(row)
        return {cell: tuple(rows) for cell, rows in found.items()}

    def runs(self, cells: Sequence[str]) -> list[PaperRow]:
        """The rows without an error of several cells."""
        return [row for cell in cells for row in self.cells.get(cell, ())]

    def accuracies(self, cell: str, test: str) -> list[float]:
        """Accuracy on a test set of each run of a cell that was tested on it."""
        return [share(row.accuracy[test]) for row in self.runs([cell]) if test in row.accuracy]


def share(measured: dict[str, int]) -> float:
    """Right answers of all, in 0..1."""
    return measured["correct"] / measured["total"]


def summarise(*values: Sequence[float]) -> Summary | None:
    """Summary of the accuracies of one or several cells; cells without a run do not count. None without any run."""
    cells = [of_cell for of_cell in values if of_cell]
    runs = np.array([value for of_cell in cells for value in of_cell])
    if not cells:
        return None
    deviation = float(runs.std(ddof=1)) if len(runs) > 1 else None
    return Summary(len(cells), len(runs), float(runs.mean()), deviation, bootstrap(cells))


def bootstrap(values: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """The 95 % percentile interval of the mean over all runs; the same values give the same interval.

    Several cells are resampled whole, each with all its runs, because the runs of a cell share its reference scene and
    its samples. One cell is resampled run by run.

    Returns:
        (low, high), or None where there is one unit only.
    """
    units = [list(of_cell) for of_cell in values]
    if len(units) == 1:
        units = [[value] for value in units[0]]
    if len(units) < 2:
        return None
    sums, counts = np.array([sum(unit) for unit in units]), np.array([len(unit) for unit in units])
    picked = np.random.default_rng(0).integers(0, len(units), (RESAMPLES, len(units)))
    means = sums[picked].sum(axis=1) / counts[picked].sum(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def published_for(task: str, model: str, group: str) -> Published | None:
    """The figure of Table 1 (task "identification") or 2 ("discrimination"); None for a model that it does not have."""
    found = published()[task].get(model)
    if found is None:
        return None
    column = published()["groups"].index(group)
    return Published(found["accuracy"][column], found["std"][column], found["weights"][column])


def verdict(mean: float, reference: Published) -> str:
    """ "within" one published deviation of the published mean, "above" or "below"."""
    difference = mean - reference.mean
    if abs(difference) <= reference.deviation + _SLACK:
        return "within"
    return "above" if difference > 0 else "below"


def closeness(mean: float, reference: float) -> str:
    """ "close" where two means differ by at most ``CLOSE``, else "above" or "below"."""
    difference = mean - reference
    if abs(difference) <= CLOSE + _SLACK:
        return "close"
    return "above" if difference > 0 else "below"
