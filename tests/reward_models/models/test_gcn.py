"""The graph convolution against its definition, and what it cannot see."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reward_models import models
from reward_models.measuring.evaluation import loss_of
from reward_models.models.batch import from_samples, to_tensor
from spatialsim_env.arrangements import scene
from spatialsim_env.arrangements.scene import N_FEATURES, POSITION
from spatialsim_env.arrangements.tasks import Discrimination


def literal(branch, objects, rounds):
    """Sum over the nodes after each round, with the normalised adjacency of Kipf and Welling written out."""
    n = len(objects)
    adjacency = torch.ones(n, n, dtype=objects.dtype)  # complete, self loops included
    degree = adjacency.sum(1)
    normalised = adjacency / (degree[:, None] * degree[None]).sqrt()
    x, sums = branch.projection(objects), []
    for _ in range(rounds):
        x = normalised @ (x @ branch.convolution.weight.T) + branch.convolution.bias
        sums.append(x.sum(0))
    return sums


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_values_are_those_of_the_definition(rounds):
    scenes = scene.sample([1, 3, 5], 5, np.random.default_rng(0))
    target = to_tensor(scenes, torch.float64)
    model = models.create("gcn", {"rounds": rounds}, seed=1).double()
    with torch.no_grad():
        found = model(target, target.flip(0))
        for row in range(3):
            parts = [literal(branch, x[: scene.count(x.numpy())], rounds)
                     for branch, x in zip(model.branches, (target[row], target.flip(0)[row]), strict=True)]  # fmt: skip
            expected = torch.stack([model.head(torch.cat(both)) for both in zip(*parts, strict=True)])
            assert torch.allclose(found[:, row], expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["gcn", "gcn_single"])
def test_it_sees_the_mean_of_a_scene_and_no_arrangement(kind):
    """Positions redrawn with their mean kept: every score is as before."""
    rng = np.random.default_rng(1)
    scenes = scene.sample([5] * 20, 5, rng).astype(np.float64)
    other = scenes.copy()
    other[..., POSITION] = rng.uniform(0, 20, (20, 5, 2))
    other[..., POSITION] += (scenes - other)[..., POSITION].mean(axis=1, keepdims=True)
    model = models.create(kind, seed=3).double()
    with torch.no_grad():
        before, after = (
            model.score(to_tensor(x, torch.float64), to_tensor(scenes, torch.float64)) for x in (scenes, other)
        )
    assert torch.allclose(before, after, rtol=1e-9)


def test_the_authors_projection_leaves_352_weights_unused():
    model = models.create("gcn", {"authors_projection": True}, seed=1)
    batch = from_samples(Discrimination(3).sample(16, np.random.default_rng(3)))
    loss_of(model(batch.target, batch.reference), batch.label).backward()
    unused = sum(parameter.numel() for parameter in model.parameters() if parameter.grad is None)
    assert unused == N_FEATURES * 32 + 32 == 352
    assert models.create("gcn").n_weights == model.n_weights
