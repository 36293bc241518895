"""The message-passing networks against their definition, one object and one edge after the other."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reward_models import models
from reward_models.models.batch import to_tensor
from spatialsim_env.arrangements import scene, similarities


def literal_branch(branch, objects, rounds):
    """u after each round for one scene without padding, a list of (10,) tensors, by loops over objects and edges."""
    n = len(objects)
    x = list(objects)
    u = torch.stack(x).mean(0)
    edges = {(i, j): x[j] - x[i] for i in range(n) for j in range(n) if i != j}
    totals = []
    for _ in range(rounds):
        edges = {(i, j): branch.edge(torch.cat([x[i], x[j], e, u])) for (i, j), e in edges.items()}
        incoming = [sum((edges[i, j] for i in range(n) if i != j), torch.zeros_like(u)) for j in range(n)]
        x = [branch.node(torch.cat([x[j], incoming[j], u])) for j in range(n)]
        u = branch.total(torch.cat([sum(x), u]))
        totals.append(u)
    return totals


def literal(model, target, reference, rounds):
    """Logits (rounds, B, 2) of batches of padded scenes."""
    logits = []
    for pair in zip(target, reference, strict=True):
        objects = [rows[rows[:, scene.SHAPE].sum(-1) > 0] for rows in pair]
        if model.two_inputs:
            parts = [literal_branch(b, o, rounds) for b, o in zip(model.branches, objects, strict=True)]
            totals = [torch.cat(both) for both in zip(*parts, strict=True)]
        else:
            totals = literal_branch(model.branch, objects[0], rounds)
        logits.append(torch.stack([model.head(u) for u in totals]))
    return torch.stack(logits, dim=1)


@pytest.mark.parametrize(
    ("kind", "settings", "rounds"),
    [("mpgnn_single", {}, 1), ("mpgnn", {"rounds": 1}, 1), ("mpgnn", {}, 2), ("mpgnn", {"rounds": 3}, 3)],
)
def test_values_and_gradients_are_those_of_the_definition(kind, settings, rounds):
    rng = np.random.default_rng(0)
    reference = scene.sample([1, 2, 3, 5, 4, 3], 6, rng)
    target = similarities.sample(6, rng).apply(reference[:, ::-1])
    scenes = [to_tensor(x, torch.float64).requires_grad_() for x in (target, reference)]
    model = models.create(kind, settings, seed=2).double()
    results = []
    for forward in (lambda: model(*scenes), lambda: literal(model, *scenes, rounds)):
        logits = forward()
        variables = [*model.parameters(), *(scenes if model.two_inputs else scenes[:1])]
        results.append([logits, *torch.autograd.grad(logits.square().sum(), variables)])
    for fast, slow in zip(*results, strict=True):
        assert fast.shape == slow.shape
        assert torch.allclose(fast, slow, rtol=1e-9, atol=1e-9 * slow.abs().max().item())


def literal_round(branch, x, edges, u):
    """One round by loops, u being all that is known: (objects, edges, own u)."""
    n = len(x)
    edges = {(i, j): branch.edge(torch.cat([x[i], x[j], e, u])) for (i, j), e in edges.items()}
    incoming = [sum((edges[i, j] for i in range(n) if i != j), torch.zeros(10, dtype=u.dtype)) for j in range(n)]
    x = [branch.node(torch.cat([x[j], incoming[j], u])) for j in range(n)]
    return x, edges, branch.total(torch.cat([sum(x), u]))


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_second_graph_knows_the_first(rounds):
    rng = np.random.default_rng(1)
    reference = scene.sample([1, 2, 4], 4, rng)
    scenes = [to_tensor(x, torch.float64) for x in (similarities.sample(3, rng).apply(reference), reference)]
    model = models.create("conditioned_mpgnn", {"rounds": rounds}, seed=2).double()
    with torch.no_grad():
        found = model(*scenes)
        for row, n in enumerate((1, 2, 4)):
            graphs = []
            for objects in (list(x[row, :n]) for x in scenes):
                edges = {(i, j): objects[j] - objects[i] for i in range(n) for j in range(n) if i != j}
                graphs.append((objects, edges, torch.stack(objects).mean(0)))
            for step in range(rounds):
                graphs[0] = literal_round(model.first, *graphs[0])
                objects, edges, u = graphs[1]
                graphs[1] = literal_round(model.second, objects, edges, torch.cat([u, graphs[0][2]]))
                assert torch.allclose(found[step, row], model.head(graphs[1][2]), rtol=1e-9)


def test_rounds_share_their_weights():
    assert models.create("mpgnn", {"rounds": 1}).n_weights == models.create("mpgnn", {"rounds": 3}).n_weights
