from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from spatialsim_env.arrangements import goals, scene
from spatialsim_env.arrangements.ideal.observer import DENSITIES, accuracy, decide, log_likelihood_ratio, parts_of
from spatialsim_env.arrangements.negatives import (
    Displaced,
    Mirrored,
    MisScaled,
    Mixture,
    RadiusMatched,
    Redrawn,
    Twisted,
)
from spatialsim_env.arrangements.scene import NOISE, POSITION, SIZE
from spatialsim_env.arrangements.tasks import Discrimination, Identification
from spatialsim_env.arrangements.variants import Fixed
from tests.spatialsim_env import chance
from tests.spatialsim_env.arrangements.ideal import by_force as force


def drawn(task, size, seed=0):
    samples = task.sample(size, np.random.default_rng(seed))
    return samples, log_likelihood_ratio(task, samples.target, samples.reference)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(
    ("negative", "arrangement", "grid"),
    [
        (Displaced(0.4, 0.4), force.displaced(0.4), {"points": (25, 11)}),
        (Mirrored(reflect_orientation=False), force.mirrored, {}),
        (Redrawn(), force.redrawn, {"jitter": 21.0, "points": (9, 161)}),
    ],
    ids=["displaced", "mirrored", "redrawn"],
)
def test_against_the_sum_over_grids(n, negative, arrangement, grid):
    task = Discrimination(n, negative=negative, lookalikes=2)
    samples, ratio = drawn(task, 3000)
    rows = np.flatnonzero((np.abs(ratio.value) < 20) & (samples.label == 1))[:2]
    assert len(rows)
    for row in rows:
        pair = samples.target[row].astype(float), samples.reference[row].astype(float)
        expected = math.log(force.density(*pair, force.same) / force.density(*pair, arrangement, **grid))
        assert ratio.value[row] == pytest.approx(expected, abs=0.1)  # of the coarse grids


def test_nothing_displaced_cannot_be_told():
    task = Discrimination((3, 8), negative=Displaced(0, 0))
    _, ratio = drawn(task, 1000)
    assert np.abs(ratio.value).max() < 1e-3
    assert abs(accuracy(task, 1000, 1).value - 0.5) < chance.of_rate(0.5, 1000)


def test_more_displacement_is_told_more_often():
    tallies = [accuracy(Discrimination((3, 8), negative=Displaced(d, d)), 1500, 2) for d in (0.0, 0.4, 0.8, 1.2, 2.4)]
    assert all(tally.exact == tally.total for tally in tallies)
    assert (np.diff([tally.value for tally in tallies]) > 0).all()


@pytest.mark.parametrize("negative", sorted(DENSITIES))
def test_order_and_padding_do_not_matter(negative):
    task = Discrimination((3, 5), negative=negative)
    samples, ratio = drawn(task, 20)
    order = np.random.default_rng(1).permutation(task.n_max)
    moved = log_likelihood_ratio(task, scene.pad(samples.target, 7)[:, np.r_[5, order, 6]], samples.reference[:, order])
    assert np.allclose(moved.value, ratio.value, rtol=1e-6, atol=1e-3)


def spread_rule(samples):
    """The rule of one number: the ratio of the RMS spreads divided by that of the sizes lies near 1."""
    logs = []
    for scenes in (samples.target, samples.reference):
        mask = scene.present(scenes)
        squares = ((scenes[..., POSITION] - scene.barycenter(scenes)) ** 2).sum(axis=-1) * mask
        logs.append(np.log(squares.sum(axis=1)) / 2 - np.log((scenes[..., SIZE] * mask).sum(axis=1)))
    return np.abs(logs[0] - logs[1]) < 0.1


def truth(samples):
    return goals.achieved(samples.reference, samples.target)


@pytest.mark.parametrize("rule", [spread_rule, truth])
@pytest.mark.parametrize("negative", [Redrawn(), Displaced(1.0, 1.0)], ids=["redrawn", "displaced"])
def test_no_rule_is_better(negative, rule):
    task = Discrimination(3, negative=negative)
    samples, ratio = drawn(task, 3000)
    label = samples.label > 0.5
    ours, theirs = (ratio.value > 0) == label, rule(samples) == label
    only_ours, only_theirs = (ours & ~theirs).sum(), (theirs & ~ours).sum()
    assert only_theirs - only_ours <= chance.DEVIATIONS * np.sqrt(only_ours + only_theirs)


@pytest.mark.parametrize("n", [2, 3, (3, 8)], ids=str)
@pytest.mark.parametrize(
    "negative",
    [
        "redrawn",
        "swapped",
        "spread_matched",
        Displaced(0.6, 0.6),
        Displaced(1.0, 6.0),
        Mirrored(),
        Mirrored(reflect_orientation=False),
        Twisted(0.05, 0.2),
        MisScaled(1.03, 1.1),
        Mixture((Displaced(0.3, 0.9), Twisted(0.05, 0.1))),
    ],
    ids=repr,
)
def test_ratios_are_calibrated(negative, n):
    samples, ratio = drawn(Discrimination(n, negative=negative), 1000, seed=3)
    assert_calibrated(samples, ratio)


def assert_calibrated(samples, ratio):
    """Under equal priors P(positive | log ratio = x) = 1 / (1 + exp(-x))."""
    said = 1 / (1 + np.exp(-np.clip(ratio.value, -50, 50)))
    for part in np.split(np.argsort(said), 5):
        expected, spread = said[part].sum(), np.sqrt((said[part] * (1 - said[part])).sum())
        assert abs(samples.label[part].sum() - expected) < chance.DEVIATIONS * spread + 1


@pytest.mark.parametrize(
    "task",
    [
        Discrimination(2, abstract=True),
        Discrimination((2, 4), abstract=True),
        Discrimination(1, distractors=3),
        Discrimination((1, 3), distractors=2),
        Discrimination(2, distractors=1, max_rotation=0.3),
        Discrimination(2, abstract=True, max_rotation=0.3),
    ],
    ids=repr,
)
def test_ratios_of_changed_targets_are_calibrated(task):
    samples, ratio = drawn(task, 1000, seed=4)
    assert ratio.exact.all()
    assert_calibrated(samples, ratio)


def test_distractors_that_are_not_there_change_nothing():
    """Targets of the plain task are those of the other whose distractors happen to be none."""
    task = Discrimination((1, 5))
    samples, ratio = drawn(task, 200)
    other = log_likelihood_ratio(replace(task, distractors=2), samples.target, samples.reference)
    assert np.allclose(other.value, ratio.value, atol=1e-6)


@pytest.mark.parametrize("changes", [{"abstract": True}, {"distractors": 3}], ids=str)
def test_order_does_not_matter_to_changed_targets(changes):
    task = Discrimination((2, 4), **changes)
    samples, ratio = drawn(task, 100)
    rng = np.random.default_rng(1)
    orders = [rng.permutation(scenes.shape[1] + 1) for scenes in (samples.target, samples.reference)]
    pair = (samples.target, samples.reference)
    moved = (scene.pad(part, part.shape[1] + 1)[:, order] for part, order in zip(pair, orders, strict=True))
    assert np.allclose(log_likelihood_ratio(task, *moved).value, ratio.value, rtol=1e-6, atol=1e-3)


def test_a_colour_that_is_never_drawn_is_of_no_distractor():
    task = Discrimination(2, distractors=2)
    samples, ratio = drawn(task, 300)
    crowded = scene.count(samples.target) == 4
    target = samples.target[crowded].copy()
    target[..., scene.COLOR] += 1.2
    shifted = samples.reference[crowded].copy()
    shifted[..., scene.COLOR] += 1.2
    assert (log_likelihood_ratio(task, target, shifted).value == -np.inf).all()
    assert np.isfinite(ratio.value[crowded]).all()


@pytest.mark.parametrize("n", [3, (3, 8)], ids=str)
def test_mean_of_the_inverse_ratio_over_positives(n):
    """E[p(negative) / p(positive)] over positives is the mass of the negatives, 1."""
    samples, ratio = drawn(Discrimination(n, negative=Displaced(0.4, 0.4)), 4000)
    inverse = np.exp(-ratio.value[samples.label == 1])
    assert abs(inverse.mean() - 1) < chance.of_mean(inverse.std(), len(inverse))


@pytest.mark.parametrize("max_rotation", [0.0, 0.3])
def test_limited_rotation_is_known(max_rotation):
    """Positives lie within the limit; with it known, a twist shows that takes the positions beyond."""
    task = Discrimination(3, max_rotation=max_rotation, negative=Twisted(0.05, 0.05))
    samples = task.sample(2000, np.random.default_rng(4))
    knowing = log_likelihood_ratio(task, samples.target, samples.reference).value > 0
    label = samples.label > 0.5
    other = decide(replace(task, max_rotation=2 * np.pi), samples.target, samples.reference)
    assert (knowing == label).mean() > (other == label).mean()


def test_matchings_of_lookalikes():
    """Three objects of one appearance that exchange places are the same scene, and so is it said."""
    task = Discrimination(3, lookalikes=3, negative=Displaced(1.0, 1.0))
    samples, ratio = drawn(task, 200)
    swapped = samples.reference.copy()
    swapped[:, :, POSITION], swapped[:, :, 9] = swapped[:, [1, 2, 0], POSITION], swapped[:, [1, 2, 0], 9]
    again = log_likelihood_ratio(task, samples.target, swapped)
    assert ratio.exact.all()
    assert np.allclose(again.value, ratio.value, atol=1e-3)


def test_too_many_matchings_are_not_exact():
    task = Discrimination(9, lookalikes=9)
    samples, ratio = drawn(task, 40)
    assert not ratio.exact.any()
    assert ((ratio.value > 0) == (samples.label > 0.5)).all()
    _, other = drawn(Discrimination(4, negative=RadiusMatched()), 10)
    assert not other.exact.any()


def test_certified_negatives_are_never_achieved():
    task = Discrimination(3, negative=Displaced(8 * NOISE.position, 8 * NOISE.position), certified=True)
    samples, ratio = drawn(task, 400)
    achieved = goals.achieved(samples.reference, samples.target)
    assert (ratio.value[achieved] == np.inf).all()
    assert ((ratio.value > 0) == (samples.label > 0.5)).mean() >= accuracy(replace(task, certified=False), 400, 0).value


def test_identification_knows_its_reference():
    task = Identification(4, negative=Displaced(1.0, 1.0))
    samples, ratio = drawn(task, 200)
    assert np.array_equal(log_likelihood_ratio(task, samples.target).value, ratio.value)
    assert np.array_equal(decide(task, samples.target, task.reference), ratio.value > 0)
    assert accuracy(task, 200, 5) == accuracy(task, 200, 5)
    assert accuracy(task, 200, 5).value > 0.75


def test_mixture_is_made_of_its_parts():
    parts = parts_of("redrawn+mirrored")
    assert [part.probability for part in parts] == [0.5, 0.5]
    assert sum(part.probability for part in parts_of(Mixture())) == pytest.approx(1)


def test_refusals():
    samples, _ = drawn(Discrimination(3), 4)
    with pytest.raises(ValueError, match=r"'displaced_few', whose density is not known; accepted are redrawn"):
        log_likelihood_ratio(Discrimination(3, negative="displaced_few"), samples.target, samples.reference)
    pair = samples.target, samples.reference
    for changes, message in (
        ({"abstract": True, "distractors": 1}, "accepted are abstract tasks of up to 8 objects without distractors"),
        ({"abstract": True, "n_objects": (3, 9)}, "accepted are abstract tasks of up to 8 objects"),
        ({"distractors": 1, "negative": "swapped"}, "'swapped', and the task abstract or with distractors"),
        ({"fixed": Fixed(scale=1.0)}, "the task fixes scale"),
    ):
        with pytest.raises(ValueError, match=message):
            log_likelihood_ratio(replace(Discrimination(3), **changes), *pair)
    with pytest.raises(ValueError, match="reference is None; accepted is None only with an Identification task"):
        log_likelihood_ratio(Discrimination(3), samples.target)
    fewer = samples.reference.copy()
    fewer[2, 0] = 0
    with pytest.raises(scene.SceneError, match="pair 2: target and reference do not hold the same objects"):
        log_likelihood_ratio(Discrimination(3), samples.target, fewer)
    alike = Discrimination(9, lookalikes=9, distractors=1)
    with pytest.raises(ValueError, match="pair 0 has distractors, and more matchings than are summed"):
        drawn(alike, 5)
    for task in (Discrimination(3, distractors=1), Discrimination(3, abstract=True)):
        with pytest.raises(scene.SceneError, match="pair 2: target and reference do not hold the same objects"):
            log_likelihood_ratio(task, *((fewer, samples.reference) if task.distractors else (samples.target, fewer)))
