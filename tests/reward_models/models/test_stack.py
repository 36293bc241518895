"""Networks side by side: each gives what it gives alone and learns as it learns alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reward_models import models
from reward_models.measuring.evaluation import loss_of
from reward_models.models.batch import Batch, for_model
from reward_models.models.stack import Stack
from spatialsim_env.arrangements.tasks import Discrimination

SEEDS = (0, 3, 4)
KINDS = tuple(models.REGISTRY)


def settings_of(kind):
    return {"pixels": 32} if models.REGISTRY[kind].sees_pictures else {}


def networks(kind):
    return [models.create(kind, settings_of(kind), seed) for seed in SEEDS]


def batches(kind, size=12):
    """A batch of each network's own, side by side."""
    size = 3 if models.REGISTRY[kind].sees_pictures else size
    samples = Discrimination((3, 6)).sample(size * len(SEEDS), np.random.default_rng(0))
    batch = for_model(networks(kind)[0], samples)
    return batch[torch.arange(len(batch)).reshape(len(SEEDS), size)]


def one(batch, place):
    return Batch(batch.target[place], None if batch.reference is None else batch.reference[place], batch.label[place])


@pytest.mark.parametrize("kind", KINDS)
def test_each_network_gives_what_it_gives_alone(kind):
    """Logits and gradients, for every model of the registry."""
    batch, stack = batches(kind), Stack(networks(kind))
    together = stack(batch.target, batch.reference)
    losses = loss_of(together, batch.label)
    losses.sum().backward()
    for place, network in enumerate(networks(kind)):
        part = one(batch, place)
        logits = network(part.target, part.reference)
        torch.testing.assert_close(together[place], logits, rtol=1e-4, atol=2e-4)
        loss = loss_of(logits, part.label)
        torch.testing.assert_close(losses[place], loss, rtol=1e-4, atol=1e-4)
        loss.backward()
        for name, parameter in network.named_parameters():
            gradient = stack.weights[name].grad[place]
            assert (gradient - parameter.grad).norm() <= 1e-3 * parameter.grad.norm() + 1e-6, name


def test_one_network_gives_the_same_bits():
    batch = batches("mpgnn")
    stack, network = Stack(networks("mpgnn")[:1]), networks("mpgnn")[0]
    part = one(batch, 0)
    assert torch.equal(stack(part.target[None], part.reference[None])[0], network(part.target, part.reference))


def test_networks_get_the_weights_back():
    stack = Stack(networks("mpgnn"))
    with torch.no_grad():
        for value in stack.weights.values():
            value += 1
    for before, after in zip(networks("mpgnn"), stack.networks, strict=True):
        for old, new in zip(before.parameters(), after.parameters(), strict=True):
            assert torch.equal(old + 1, new)
