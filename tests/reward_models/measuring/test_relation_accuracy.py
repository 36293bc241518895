"""Accuracy by predicate, pairs and their intervals, on answers made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reward_models.measuring import relation_accuracy
from reward_models.training.rel3d import RelationConfig, train
from spatialsim_env.relations.rel3d import records
from tests.reward_models.relation_splits import PREDICATES, samples, split

# two predicates: pairs 0, 1 of the first, pair 2 and a sample without a partner of the second
PREDICATE = np.array([0, 0, 0, 0, 1, 1, 1])
PAIR = np.array([0, 0, 1, 1, 2, 2, -1])
RIGHT = np.array([1, 1, 1, 0, 0, 0, 1], bool)


def test_a_logit_above_0_says_that_the_predicate_holds():
    logits = [0.1, 0.0, -0.1, 3.0, -3.0, math.nan, math.nan]
    label = [True, True, True, False, False, True, False]
    assert relation_accuracy.right(logits, label).tolist() == [True, False, False, False, True, False, False]


def test_accuracy_is_the_unweighted_mean_over_predicates_that_occur():
    found = relation_accuracy.accuracy(RIGHT, PREDICATE, 4)
    assert found.correct.tolist() == [3, 1, 0, 0]
    assert found.total.tolist() == [4, 3, 0, 0]
    assert found.accuracies[:2].tolist() == [3 / 4, 1 / 3]
    assert np.isnan(found.accuracies[2:]).all()
    assert found.mean == pytest.approx((3 / 4 + 1 / 3) / 2)


def test_without_samples_there_is_no_accuracy_and_no_interval():
    none = np.zeros(0, int)
    assert math.isnan(relation_accuracy.accuracy(none, none, 3).mean)
    assert relation_accuracy.interval(none, none, none) is None
    assert relation_accuracy.pair_interval(none, none, none, none) is None


def test_a_pair_is_right_where_both_members_are():
    found = relation_accuracy.pair_accuracy(RIGHT, PREDICATE, PAIR, 2)
    assert found.correct.tolist() == [1, 0]
    assert found.total.tolist() == [2, 1]
    assert found.mean == pytest.approx((1 / 2 + 0) / 2)


@given(st.permutations(range(7)))
def test_the_order_of_samples_does_not_matter(order):
    order = np.array(order)
    found = relation_accuracy.pair_accuracy(RIGHT[order], PREDICATE[order], PAIR[order], 2)
    assert found.correct.tolist() == [1, 0]
    assert found.total.tolist() == [2, 1]
    rows = records.members(PAIR[order])
    assert sorted(PAIR[order][rows].tolist()) == [[0, 0], [1, 1], [2, 2]]


def test_guessing_gets_a_quarter_of_pairs():
    """Independent fair answers: half of the samples, a quarter of the pairs."""
    rng = np.random.default_rng(0)
    n = 40_000
    right, pair = rng.random(n) < 0.5, np.repeat(np.arange(n // 2), 2)
    predicate = np.repeat(np.arange(n // 2) % 5, 2)
    assert relation_accuracy.accuracy(right, predicate, 5).mean == pytest.approx(0.5, abs=4 * math.sqrt(0.25 / n))
    deviation = math.sqrt(0.25 * 0.75 / (n / 2))
    assert relation_accuracy.pair_accuracy(right, predicate, pair, 5).mean == pytest.approx(0.25, abs=4 * deviation)


def test_one_answer_to_both_members_gets_half_of_samples_and_no_pair():
    data = samples(30, 0, n_views=2)
    found = relation_accuracy.measure(np.where(data.subject > 1, 1.0, -1.0), data, len(PREDICATES))
    assert found["correct"] == [20, 20, 20]
    assert found["total"] == [40, 40, 40]
    assert (found["mean"], found["pair_mean"]) == (0.5, 0.0)
    assert found["interval"] == (0.5, 0.5)
    assert found["pairs"] == [20, 20, 20]


def test_the_interval_has_the_width_of_the_normal_one():
    """Of independent answers to one predicate: mean ± 1.96 sqrt(p (1 - p) / n)."""
    n, p = 2_000, 0.8
    right = np.arange(n) < p * n
    low, high = relation_accuracy.interval(right, np.zeros(n, int), np.arange(n))
    half = 1.96 * math.sqrt(p * (1 - p) / n)
    assert (low, high) == (pytest.approx(p - half, abs=half / 10), pytest.approx(p + half, abs=half / 10))


def test_views_of_one_pair_of_scenes_count_once():
    """If all 12 views of a pair of scenes say the same, 12 times as many samples tell no more."""
    scenes, views, p = 400, 12, 0.7
    right = np.repeat(np.arange(scenes) < p * scenes, views)
    low, high = relation_accuracy.interval(right, np.zeros(len(right), int), np.repeat(np.arange(scenes), views))
    half = 1.96 * math.sqrt(p * (1 - p) / scenes)
    assert (low, high) == (pytest.approx(p - half, abs=half / 10), pytest.approx(p + half, abs=half / 10))


def test_predicates_are_weighted_alike_in_the_interval():
    """The variance of the mean of two accuracies is a quarter of the sum of theirs."""
    n, m, p = 4_000, 100, 0.6
    right = np.concatenate([np.ones(n, bool), np.arange(m) < p * m])
    predicate = np.repeat([0, 1], [n, m])
    low, high = relation_accuracy.interval(right, predicate, np.arange(n + m))
    half = 1.96 * math.sqrt(p * (1 - p) / m) / 2
    middle = (1 + p) / 2
    assert (low, high) == (pytest.approx(middle - half, abs=half / 10), pytest.approx(middle + half, abs=half / 10))


def test_intervals_cover_what_they_should():
    """Of 300 data sets, close to 95 % of the intervals hold the truth."""
    rng = np.random.default_rng(1)
    truth, n, covered = np.array([0.55, 0.85]), 200, 0
    predicate = np.repeat([0, 1], n)
    for _ in range(300):
        low, high = relation_accuracy.interval(rng.random(2 * n) < truth[predicate], predicate, np.arange(2 * n))
        covered += low <= truth.mean() <= high
    assert 0.9 <= covered / 300 <= 0.98


def test_intervals_are_the_same_each_time_and_differ_by_seed():
    rng = np.random.default_rng(2)
    right, predicate, unit = rng.random(500) < 0.7, rng.integers(0, 3, 500), np.arange(500) // 2
    first = relation_accuracy.interval(right, predicate, unit)
    assert first == relation_accuracy.interval(right, predicate, unit)
    assert first != relation_accuracy.interval(right, predicate, unit, seed=1)


def test_two_models_are_compared_on_the_same_pairs():
    """A difference that is the same on every pair is known exactly, however uncertain both accuracies are."""
    better, worse = np.tile([1.0, 1.0, 1.0, 0.0], 50), np.tile([1.0, 0.0, 0.0, 1.0], 50)
    unit = np.arange(200) // 4
    assert relation_accuracy.interval(better - worse, np.zeros(200, int), unit) == (0.25, 0.25)


def test_pair_intervals_of_several_runs():
    right = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], bool)
    low, high = relation_accuracy.pair_interval(right, [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1])
    assert (low, high) == (0.75, 0.75)  # one pair a predicate: nothing varies


def test_views_of_a_pair_of_scenes_have_one_number():
    data = samples(4, 0, n_views=3)
    unit = relation_accuracy.scenes_of(data)
    assert unit.tolist() == np.repeat([0, 1, 2, 3], 6).tolist()
    assert len(np.unique(relation_accuracy.scenes_of(data[[0, 7, 23]]))) == 3


def test_a_stored_model_is_measured(tmp_path):
    data = split()
    train(RelationConfig("relational", {"width": 8}, epochs=3), data, tmp_path)
    found = relation_accuracy.of_folder(tmp_path, data)
    assert found["total"] == [8, 8, 8]
    assert len(found["interval"]) == 2
    with pytest.raises(ValueError, match="part is 'tests'; accepted are train, valid, test"):
        relation_accuracy.of_folder(tmp_path, data, "tests")


def test_logits_leave_the_model_as_it_was():
    model = torch.nn.BatchNorm1d(2)
    inputs = [torch.ones(4, 2), torch.ones(3, 2)]
    found = relation_accuracy.logits(_First(model), [{"x": part} for part in inputs])
    assert model.training
    assert found.shape == (7,)
    assert model.num_batches_tracked == 0


class _First(torch.nn.Module):
    def __init__(self, normal):
        super().__init__()
        self.normal = normal

    def forward(self, inputs):
        return self.normal(inputs["x"])[:, 0]
