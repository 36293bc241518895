"""The Graph Matching Network against its definition, object by object."""

from __future__ import annotations

import numpy as np
import torch

from reward_models import models
from reward_models.models.batch import to_tensor
from spatialsim_env.arrangements import scene, similarities


def literal(model, target, reference):
    """Logits (rounds, 2) of one pair of scenes without padding."""
    graphs, logits = [[model.encode(x) for x in rows] for rows in (target, reference)], []
    for _ in range(model.rounds):
        after = []
        for own, other in (graphs, graphs[::-1]):
            nodes = []
            for j, h in enumerate(own):
                zero = torch.zeros_like(h)
                received = sum((model.message(torch.cat([x, h])) for i, x in enumerate(own) if i != j), zero)
                weight = torch.stack([(h * x).sum() for x in other]).div(10**0.5).softmax(0)
                nodes.append(model.node(torch.cat([h, received, h - sum(w * x for w, x in zip(weight, other))])))  # noqa: B905
            after.append(nodes)
        graphs, seen = after, []
        for nodes in graphs:
            parts = [model.gate(h).chunk(2) for h in nodes]
            seen.append(sum(value * gate.sigmoid() for value, gate in parts))
        logits.append(model.head(torch.cat(seen)))
    return torch.stack(logits)


def test_values_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    scenes = scene.sample([1, 2, 3, 5], 5, rng)
    target, reference = (to_tensor(x, torch.float64) for x in (similarities.sample(4, rng).apply(scenes), scenes))
    model = models.create("graph_matching", seed=4).double()
    with torch.no_grad():
        found = model(target, reference)
        for row, n in enumerate((1, 2, 3, 5)):
            assert torch.allclose(found[:, row], literal(model, target[row, :n], reference[row, :n]), rtol=1e-9)
