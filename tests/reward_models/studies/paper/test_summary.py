"""Means, deviations, intervals and verdicts, from their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reward_models.studies.paper.summary import (
    Cells,
    Published,
    bootstrap,
    closeness,
    published,
    published_for,
    summarise,
    verdict,
)
from tests.reward_models.studies.paper.synthetic import cell, row


def test_mean_and_deviation_are_over_all_runs():
    found = summarise([0.6, 0.8], [0.7])
    assert (found.n_cells, found.n_runs) == (2, 3)
    assert found.mean == pytest.approx(0.7)
    assert found.deviation == pytest.approx(math.sqrt((0.01 + 0.01 + 0) / 2))


def test_one_run_has_neither_deviation_nor_interval():
    found = summarise([0.75])
    assert (found.mean, found.deviation, found.interval) == (0.75, None, None)


def test_cells_without_a_run_do_not_count():
    assert summarise([], []) is None
    assert summarise([0.5, 0.7], []).n_cells == 1


def test_cells_are_resampled_whole():
    """Of two cells with constant runs, a mean of resampled cells is one, the other, or halfway: ends are the cells."""
    assert bootstrap([[0.5] * 10, [0.9] * 10]) == pytest.approx((0.5, 0.9))
    assert bootstrap([[0.7, 0.8], [0.8, 0.7]]) == pytest.approx((0.75, 0.75))


def test_a_single_cell_is_resampled_by_runs():
    """The interval of a mean of n runs is that of the normal limit, mean ± 1.96 deviations / sqrt(n), nearly."""
    values = np.random.default_rng(1).normal(0.8, 0.05, 100).tolist()
    low, high = bootstrap([values])
    half = 1.96 * np.std(values) / 10
    assert low == pytest.approx(np.mean(values) - half, abs=0.1 * half)
    assert high == pytest.approx(np.mean(values) + half, abs=0.1 * half)


def test_an_interval_is_a_function_of_the_values():
    values = [[0.6, 0.7, 0.9], [0.5, 0.8]]
    assert bootstrap(values) == bootstrap(values)


@pytest.mark.parametrize(
    ("mean", "says"), [(0.97, "within"), (0.944, "within"), (0.996, "within"), (0.943, "below"), (0.997, "above")]
)
def test_a_verdict_is_about_one_published_deviation(mean, says):
    assert verdict(mean, Published(0.97, 0.026, 2208)) == says


@pytest.mark.parametrize(("mean", "says"), [(0.68, "close"), (0.73, "close"), (0.74, "above"), (0.62, "below")])
def test_means_alone_are_compared_where_no_deviation_over_runs_is_published(mean, says):
    assert closeness(mean, 0.68) == says


def test_published_figures_are_those_of_the_paper():
    assert published_for("identification", "mpgnn", "3-8") == Published(0.97, 0.026, 2208)
    assert published_for("discrimination", "mpgnn", "21-30") == Published(0.71, 0.176, 4686)
    assert published_for("discrimination", "matching", "3-8") is None
    assert published()["transfer"]["rds"]["9-20"]["21-30"] == 0.68  # Table 3: column 9-20, row 21-30
    assert published()["rules"]["spread"][1] == 0.924


def test_failed_rows_are_kept_apart():
    good = cell("discrimination/rds/3-8", 0.8, 0.6)
    bad = row("discrimination/rds/3-8", 2, error="ValueError: no", accuracy={})
    results = Cells([bad, *good])
    assert results.failed == (bad,)
    assert results.accuracies("discrimination/rds/3-8", "discrimination/3-8/test") == [0.8, 0.6]
