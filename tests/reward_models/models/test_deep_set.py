"""Deep Set and Recurrent Deep Set against their definitions, one object after the other."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reward_models import models
from reward_models.models.batch import to_tensor
from spatialsim_env.arrangements import scene, similarities


def pairs():
    rng = np.random.default_rng(0)
    reference = scene.sample([1, 2, 3, 5, 4, 3], 6, rng)
    return [to_tensor(x, torch.float64) for x in (similarities.sample(6, rng).apply(reference[:, ::-1]), reference)]


def held(rows):
    return [row for row in rows if row[scene.SHAPE].sum() > 0]


def recurrent(branch, objects, rounds):
    """u after each round."""
    x, u, totals = objects, torch.stack(objects).mean(0), []
    for _ in range(rounds):
        x = [branch.node(torch.cat([one, u])) for one in x]
        u = branch.total(torch.cat([sum(x), u]))
        totals.append(u)
    return totals


def plain(branch, objects, rounds):
    """The sum over the objects, once."""
    total = sum(branch.phi(one) for one in objects)
    return [total if branch.rho is None else branch.rho(total)]


@pytest.mark.parametrize(
    ("kind", "settings", "branch_of", "rounds"),
    [
        ("rds_single", {}, recurrent, 1),
        ("rds", {}, recurrent, 2),
        ("rds", {"rounds": 1}, recurrent, 1),
        ("deep_set_single", {}, plain, 1),
        ("deep_set", {}, plain, 1),
    ],
)
def test_values_are_those_of_the_definition(kind, settings, branch_of, rounds):
    model = models.create(kind, settings, seed=2).double()
    target, reference = pairs()
    with torch.no_grad():
        found = model(target, reference)
        for row in range(len(target)):
            if model.two_inputs:
                scenes = zip(model.branches, (target, reference), strict=True)
                seen = [branch_of(branch, held(x[row]), rounds) for branch, x in scenes]
                expected = [model.head(torch.cat(both)) for both in zip(*seen, strict=True)]
            else:
                expected = [model.head(u) for u in branch_of(model.branch, held(target[row]), rounds)]
            assert torch.allclose(found[:, row], torch.stack(expected), rtol=1e-9)
