"""Compiled scorers against the networks that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reward_models import models
from reward_models.judges.learned import LearnedModel
from reward_models.models.scorers import scorer_of
from spatialsim_env.arrangements import scene
from spatialsim_env.arrangements.scene import COLOR, POSITION, SHAPE
from spatialsim_env.arrangements.tasks import Discrimination

CASES = (
    ("mpgnn", {}),
    ("mpgnn", {"rounds": 1}),
    ("mpgnn", {"rounds": 3, "width": 16}),
    ("mpgnn_single", {}),
    ("matching", {}),
    ("matching", {"hidden": 5, "features": 3}),
)


def lookalikes(size: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of scenes whose objects colours hardly tell apart, or not at all."""
    samples = Discrimination(n).sample(size, np.random.default_rng(3))
    target, reference = np.array(samples.target), np.array(samples.reference)
    for scenes in (target, reference):
        scenes[..., SHAPE] = (1, 0, 0)
        scenes[..., COLOR] = 0.5 + 0.005 * np.random.default_rng(4).standard_normal(scenes[..., COLOR].shape)
    return target, reference


def assert_equal_scores(model, target, reference):
    """To what float64 leaves of sums in another order."""
    scenes = [np.asarray(x, np.float64) for x in ((target, reference) if model.two_inputs else (target,))]
    with torch.no_grad():
        expected = model.score(*map(torch.from_numpy, scenes)).numpy()
    scorer = scorer_of(model)
    assert scorer is not None
    assert scorer(*scenes) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n_objects", [1, 3, (3, 8), (21, 30)])
@pytest.mark.parametrize(("kind", "settings"), CASES)
def test_scores_are_those_of_the_network(kind, settings, n_objects):
    samples = Discrimination(n_objects).sample(64, np.random.default_rng(0))
    for seed in range(3):
        assert_equal_scores(models.create(kind, settings, seed).double(), samples.target, samples.reference)


@pytest.mark.parametrize(("kind", "settings"), CASES)
def test_scenes_that_are_hard_to_tell_apart_or_far_away(kind, settings):
    model = models.create(kind, settings).double()
    target, reference = lookalikes(64, 6)
    assert_equal_scores(model, target, reference)
    target[:, 0, POSITION] += 1e4
    assert_equal_scores(model, target, reference)
    reference[:] = reference[:, :1]
    assert_equal_scores(model, target, reference)


@pytest.mark.parametrize("kind", ["mpgnn", "matching"])
def test_scenes_of_unequal_numbers_and_paddings(kind):
    model = models.create(kind).double()
    target = scene.sample([1, 4, 6, 2], 9, np.random.default_rng(0))[:, ::-1]
    assert_equal_scores(model, target, scene.sample([5, 4, 1, 3], 5, np.random.default_rng(1)))


@pytest.mark.parametrize("kind", ["mpgnn", "mpgnn_single", "matching"])
def test_a_row_has_the_same_bits_in_every_batch(kind):
    model = models.create(kind).double()
    samples = Discrimination((3, 8)).sample(50, np.random.default_rng(0))
    scenes = [np.asarray(x, np.float64) for x in (samples.target, samples.reference)][: 1 + model.two_inputs]
    scorer = scorer_of(model)
    whole = scorer(*scenes)
    for row in range(50):
        assert scorer(*(x[row : row + 1] for x in scenes))[0] == whole[row]


@pytest.mark.parametrize(("kind", "settings"), [("mpgnn", {"width": 17}), ("mpgnn_single", {"width": 17}),
                                                ("matching", {"hidden": 17}), ("rds", {})])  # fmt: skip
def test_what_has_no_scorer_is_judged_by_its_network(kind, settings):
    model = models.create(kind, settings)
    assert scorer_of(model) is None
    samples = Discrimination(3).sample(4, np.random.default_rng(0))
    assert np.isfinite(LearnedModel(model).score(samples.reference, samples.target)).all()
