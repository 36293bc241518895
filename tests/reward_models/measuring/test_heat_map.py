"""The values of Figure 2, from their definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reward_models import models
from reward_models.measuring import heat_map
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.scene import POSITION
from spatialsim_env.arrangements.tasks import reference_scene

SCENE = reference_scene(5, 0)


def test_the_grid_covers_the_arena():
    """40 points a side in the middle of squares of half a unit; y from low to high, x fastest; the rest stays."""
    targets = heat_map.displacements(SCENE, 2)
    assert targets.shape == (1600, 5, 10)
    assert targets[0, 2, POSITION].tolist() == [0.25, 0.25]
    assert targets[1, 2, POSITION].tolist() == [0.75, 0.25]
    assert targets[-1, 2, POSITION].tolist() == [19.75, 19.75]
    same = np.ones((5, 10), bool)
    same[2, POSITION] = False
    assert (targets[:, same] == SCENE[same]).all()


def test_values_stand_where_the_object_is():
    found = heat_map.heat_map(lambda targets, references: targets[:, 0, POSITION.start] + 100 * targets[:, 0, 8])
    assert found["displaced"] == 0
    assert np.array(found["scene"]) == pytest.approx(SCENE, abs=1e-6)
    logits = np.array(found["logits"])
    places = (np.arange(40) + 0.5) / 2
    assert logits == pytest.approx(places[None, :] + 100 * places[:, None])


def test_the_truth_is_positive_where_the_scenes_are_the_same():
    logits = np.array(heat_map.of_truth()["logits"])
    x, y = SCENE[0, POSITION]
    places = (np.arange(40) + 0.5) / 2
    near = np.hypot(places[None, :] - x, places[:, None] - y)
    assert (logits[near < 0.8] > 0).all()
    assert (logits[near > 2] < 0).all()
    row, column = np.unravel_index(logits.argmax(), logits.shape)
    assert near[row, column] < 0.5
    moved = SCENE.copy()
    moved[0, POSITION] = 0.25, 19.75
    assert logits[39, 0] == pytest.approx(1 - goals.distance(SCENE, moved), abs=1e-4)


@pytest.mark.parametrize("kind", ["mpgnn_single", "mpgnn", "matching", "mlp"])
def test_a_network_says_its_score(kind):
    model = models.create(kind, seed=1)
    logits = np.array(heat_map.of_model(model)["logits"])
    assert logits.shape == (40, 40)
    targets = torch.from_numpy(heat_map.displacements(SCENE, 0))
    reference = torch.from_numpy(SCENE.copy()).expand_as(targets) if model.two_inputs else None
    with torch.no_grad():
        assert logits.ravel() == pytest.approx(model.score(targets, reference).numpy(), rel=1e-3, abs=2e-4)
