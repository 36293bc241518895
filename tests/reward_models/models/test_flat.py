"""The perceptron on padded objects."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reward_models import models
from reward_models.models.batch import to_tensor
from spatialsim_env.arrangements import scene


def test_it_is_its_layers_on_the_padded_features():
    scenes = to_tensor(scene.sample([3, 5], 5, np.random.default_rng(0)), torch.float64)
    for kind, both in (("mlp_single", [scenes]), ("mlp", [scenes, scenes.flip(0)])):
        model = models.create(kind, seed=1).double()
        padded = torch.zeros(2, len(both) * 80, dtype=torch.float64)
        for k, x in enumerate(both):
            padded[:, 80 * k : 80 * k + 50] = x.reshape(2, 50)
        assert torch.equal(model(scenes, scenes.flip(0))[0], model.layers(padded))


def test_padding_at_the_end_is_nothing_and_too_many_objects_are_refused():
    model = models.create("mlp_single", {"n_min": 3, "n_max": 4})
    scenes = torch.tensor(scene.sample([4, 3], 4, np.random.default_rng(0)))
    wide = torch.cat([scenes, torch.zeros(2, 3, 10)], dim=1)
    assert torch.equal(model(wide), model(scenes))
    with pytest.raises(ValueError, match="more than 4 objects"):
        model(torch.tensor(scene.sample([5], 5, np.random.default_rng(0))))


@pytest.mark.parametrize("bounds", [(0, 3), (5, 3), (3.5, 8)])
def test_ranges_that_are_none(bounds):
    with pytest.raises(ValueError, match="accepted is 1 <= n_min <= n_max"):
        models.create("mlp", {"n_min": bounds[0], "n_max": bounds[1]})
