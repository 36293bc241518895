"""The rules without learning, from their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from reward_models.measuring import rules
from spatialsim_env.arrangements import goals, similarities
from spatialsim_env.arrangements.scene import COLOR, NOISE, ORIENTATION, POSITION, SIZE
from spatialsim_env.arrangements.tasks import Discrimination, Samples

TRAINING, TEST = (Discrimination((3, 8)).sample(size, np.random.default_rng(size)) for size in (5_000, 4_000))


def moved(scenes: np.ndarray) -> Samples:
    """Each scene as a reference, and under a similarity of its own, its objects in reverse order, as its target."""
    numbers = np.random.default_rng(1).random((len(scenes), similarities.N_UNIFORM), np.float32)
    target = similarities.from_uniform(numbers).apply(scenes)[:, ::-1]
    return Samples(target, scenes, np.ones(len(scenes), np.float32))


@pytest.fixture
def exact() -> Samples:
    return moved(Discrimination(6).sample(50, np.random.default_rng(0)).reference)


@pytest.mark.parametrize("rule", rules.RULES)
def test_an_exact_copy_has_the_least_value(rule, exact):
    assert rules.RULES[rule](exact) == pytest.approx(0, abs=2e-3)


@pytest.mark.parametrize("rule", rules.RULES)
def test_padding_and_order_change_nothing(rule):
    part = TEST[:200]
    padded = Samples(
        np.pad(part.target[:, ::-1], ((0, 0), (2, 0), (0, 0))),
        np.pad(part.reference, ((0, 0), (0, 2), (0, 0))),
        part.label,
    )
    assert rules.RULES[rule](padded) == pytest.approx(rules.RULES[rule](part), rel=1e-4, abs=1e-4)


def test_spread_of_one_pair():
    """Three objects on a line at 0, 3, 6 and at 0, 6, 12, all sizes the same: a ratio of 2."""
    scene = np.zeros((1, 3, 10), np.float32)
    scene[..., 1] = scene[..., SIZE] = 1
    wide = scene.copy()
    scene[0, :, POSITION.start], wide[0, :, POSITION.start] = (0, 3, 6), (0, 6, 12)
    pair = Samples(wide, scene, np.zeros(1, np.float32))
    assert rules.spread(pair) == pytest.approx([np.log(2)])
    assert rules.sorted_distances(pair) == pytest.approx([np.sqrt(2 * 9 / 3)])  # sorted 0, 3, 3 and 0, 6, 6
    wide[..., SIZE] = 2  # now it is the same scene, twice as large
    assert rules.spread(pair) == pytest.approx([0], abs=1e-6)
    assert rules.sorted_distances(pair) == pytest.approx([0], abs=1e-6)


def test_spread_and_distances_do_not_see_who_is_where(exact):
    swapped = exact.target.copy()
    swapped[..., COLOR] = exact.target[:, ::-1, COLOR]
    other = Samples(swapped, exact.reference, exact.label)
    for rule in (rules.spread, rules.sorted_distances):
        assert rule(other) == pytest.approx(rule(exact))
    assert np.median(rules.matching_rule(other)) > 5 * NOISE.position


def test_the_matching_rule_is_the_residual_after_the_fit(exact):
    """One of six objects moved away: the fit follows it a little, what is left is near its share of the RMS."""
    target = exact.target.copy()
    scale = exact.target[:, :, SIZE].sum(1) / exact.reference[:, :, SIZE].sum(1)
    target[:, 0, POSITION.start] += 6 * scale
    found = rules.matching_rule(Samples(target, exact.reference, exact.label))
    assert (found > 0.3 * 6 / np.sqrt(6)).all()
    assert (found < 1.01 * 6 / np.sqrt(6)).all()
    turned = exact.target.copy()
    turned[:, :, ORIENTATION] += 1.0
    assert rules.matching_rule(Samples(turned, exact.reference, exact.label)).max() < 10


@pytest.mark.parametrize(
    ("values", "same", "expected", "right"),
    [
        ([1, 2, 3, 4], [1, 1, 0, 0], 2.5, 4),
        ([4, 1, 3, 2], [0, 1, 0, 1], 2.5, 4),
        ([1, 2, 3, 4], [1, 0, 1, 0], 1.5, 3),
        ([1, 1, 1, 2], [1, 0, 1, 0], 1.5, 3),
        ([1, 2], [1, 1], np.inf, 2),
        ([1, 2], [0, 0], -np.inf, 2),
    ],
)
def test_threshold(values, same, expected, right):
    statistic, label = np.array(values, float), np.array(same, np.float32)
    limit = rules.threshold(statistic, label)
    assert limit == expected
    assert ((statistic <= limit) == (label == 1)).sum() == right


def test_no_threshold_is_better():
    rng = np.random.default_rng(5)
    statistic, label = rng.integers(0, 20, 60).astype(float), rng.integers(0, 2, 60).astype(np.float32)

    def right(limit):
        return ((statistic <= limit) == (label == 1)).sum()

    assert right(rules.threshold(statistic, label)) == max(map(right, np.arange(-1, 21) + 0.5))


@pytest.mark.parametrize(
    ("rule", "published"), [("spread", 0.924), ("sorted_distances", 0.998), ("matching_rule", 0.9998)]
)
def test_accuracy_is_what_is_known_of_the_task(rule, published):
    """Two samples of some thousands each: within three deviations."""
    found = rules.accuracy(rule, TRAINING, TEST)
    assert found.total == len(TEST)
    assert found.value == pytest.approx(published, abs=3 * np.sqrt(published * (1 - published) / len(TEST)) + 0.003)


def test_the_truth_needs_no_training():
    said = goals.achieved(TEST.reference, TEST.target)
    assert rules.accuracy("truth", TEST[:0], TEST).correct == (said == (TEST.label == 1)).sum()


def test_an_unknown_rule():
    with pytest.raises(
        ValueError, match="rule is 'guess'; accepted are spread, sorted_distances, matching_rule, truth"
    ):
        rules.accuracy("guess", TRAINING, TEST)
