from __future__ import annotations

import numpy as np
import torch

from reward_models import models
from reward_models.models import batch
from spatialsim_env.arrangements import scene
from spatialsim_env.arrangements.pictures import pictures
from spatialsim_env.arrangements.tasks import Discrimination, Identification

RNG = np.random.default_rng(0)


def test_trim_drops_rows_that_are_padding_everywhere():
    scenes = scene.sample([2, 4, 3], 9, RNG)
    assert batch.trim(scenes).shape == (3, 4, 10)
    assert np.array_equal(scene.pad(batch.trim(scenes), 9), scenes)


def test_trim_keeps_a_gap_and_one_row_of_nothing():
    scenes = scene.sample([3], 5, RNG)
    scenes[0, 1] = 0
    assert batch.trim(scenes).shape == (1, 3, 10)
    assert batch.trim(np.zeros((2, 5, 10))).shape == (2, 1, 10)


def test_samples_become_tensors_of_their_own_memory():
    samples = Discrimination((3, 5)).sample(7, RNG)
    tensors = batch.from_samples(samples)
    assert len(tensors) == 7
    assert tensors.label.dtype == torch.int64
    assert tensors.target.dtype == torch.float32
    assert tensors.reference is not None
    assert np.array_equal(tensors.target.numpy(), batch.trim(samples.target))
    assert np.array_equal(tensors.label.numpy(), samples.label)
    tensors.target.zero_()
    assert samples.target.any()


def test_a_slice_is_a_batch():
    tensors = batch.from_samples(Discrimination(4).sample(7, RNG))[2:5]
    assert len(tensors) == len(tensors.target) == len(tensors.reference) == 3


def test_the_reference_can_be_left_out():
    """Identification repeats one read-only scene; a model of one input never sees it."""
    samples = Identification(5).sample(6, RNG)
    assert batch.from_samples(samples, with_reference=False).reference is None
    assert batch.from_samples(samples).reference.shape == (6, 5, 10)
    assert batch.from_samples(samples, with_reference=False)[:2].reference is None


def test_samples_as_a_model_of_objects_takes_them():
    samples = Identification(5).sample(6, RNG)
    for kind, with_reference in (("mpgnn", True), ("mpgnn_single", False)):
        tensors = batch.for_model(models.create(kind), samples)
        expected = batch.from_samples(samples, with_reference)
        assert torch.equal(tensors.target, expected.target)
        assert torch.equal(tensors.label, expected.label)
        assert (tensors.reference is not None) == with_reference
        assert not with_reference or torch.equal(tensors.reference, expected.reference)


def test_samples_as_a_model_of_pictures_takes_them():
    """Both scenes in the same window, colours before rows and columns, from the top left."""
    samples = Discrimination((3, 5)).sample(6, RNG)
    tensors = batch.for_model(models.create("resnet18", {"pixels": 40}), samples)
    for found, scenes in ((tensors.target, samples.target), (tensors.reference, samples.reference)):
        assert found.dtype == torch.uint8
        assert found.shape == (6, 3, 40, 40)
        assert np.array_equal(found.numpy(), np.moveaxis(pictures(scenes, 40), -1, 1))
    assert tensors[torch.tensor([4, 1])].target.shape == (2, 3, 40, 40)
    assert batch.for_model(models.create("resnet18_single", {"pixels": 40}), samples).reference is None


def test_a_scene_beyond_the_window_has_a_picture():
    scenes = scene.sample([3], 3, RNG)
    scenes[0, :, scene.POSITION] += 1000
    assert (batch.to_pictures(scenes, 32) == 255).all()
