"""The kernel for pairs against its definition: values and gradients, padding, and many networks at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_models import models
from reward_models.measuring.evaluation import loss_of
from reward_models.models.batch import from_samples
from reward_models.models.kernels import pairs
from spatialsim_env.arrangements.tasks import Discrimination


def example(n, size, rounds, *, networks=None, share=0.7, seed=0, width=16, dtype=torch.float32):
    """Links, mix and held as ``pair_sums`` takes them; of several networks with a leading dimension."""
    generator = torch.Generator().manual_seed(seed)
    lead = () if networks is None else (networks,)

    def draw(*shape):
        return torch.randn(*lead, *shape, generator=generator, dtype=dtype).requires_grad_()

    links = [(draw(n, size, width), draw(n, size, width)) for _ in range(rounds)]
    held = torch.rand(*lead, n, size, 1, generator=generator) < share
    return links, draw(width, width), held


def by_hand(links, mix, held):
    """The sums one pair at a time."""
    n, size, width = links[0][0].shape
    out = torch.zeros(n, size, width, dtype=mix.dtype)
    for b in range(size):
        for j in range(n):
            for i in range(n):
                if i == j or not held[i, b] or not held[j, b]:
                    continue
                hidden = None
                for received, sent in links:
                    before = received[j, b] + sent[i, b]
                    hidden = (before if hidden is None else before + mix @ hidden).relu()
                out[j, b] += hidden
    return out


def gradients(function, links, mix, held):
    """Of a random weighing of the sums with respect to everything that has a part in them."""
    out = function(links, mix, held)
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(9), dtype=out.dtype)
    leaves = [x for link in links for x in link] + ([mix] if len(links) > 1 else [])
    return torch.autograd.grad((out * weight).sum(), leaves)


@pytest.fixture
def kernel_runs(monkeypatch):
    """Whoever falls back to the definition is found out."""

    def plain(*args):
        raise AssertionError("the kernel was not used")

    monkeypatch.setattr(pairs, "plain", plain)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_the_definition(rounds):
    links, mix, held = example(4, 3, rounds, width=5, dtype=torch.float64)
    torch.testing.assert_close(pairs.plain(links, mix, held), by_hand(links, mix, held))


@settings(max_examples=40)
@given(
    dtype=st.sampled_from([torch.float32, torch.float64]),
    n=st.integers(1, 9),
    size=st.integers(1, 5),
    rounds=st.integers(1, 2),
    share=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_the_kernel_gives_the_definition(dtype, n, size, rounds, share, seed):
    links, mix, held = example(n, size, rounds, share=share, seed=seed, dtype=dtype)
    torch.testing.assert_close(pairs.pair_sums(links, mix, held), pairs.plain(links, mix, held), rtol=1e-5, atol=1e-4)
    ours, theirs = gradients(pairs.pair_sums, links, mix, held), gradients(pairs.plain, links, mix, held)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rounds", [1, 2])
def test_many_networks_are_each_alone(rounds, kernel_runs):
    links, mix, held = example(6, 4, rounds, networks=3)
    together = pairs.pair_sums(links, mix, held)
    for k in range(3):
        alone = pairs.pair_sums([(r[k], s[k]) for r, s in links], mix[k], held[k])
        assert torch.equal(together[k], alone)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_the_definition_for_many_networks(rounds):
    links, mix, held = example(4, 3, rounds, networks=3, width=5, dtype=torch.float64)
    together = pairs.plain(links, mix, held)
    for k in range(3):
        torch.testing.assert_close(together[k], by_hand([(r[k], s[k]) for r, s in links], mix[k], held[k]))


def test_layouts_that_are_not_contiguous(kernel_runs):
    links, mix, held = example(5, 4, 2)
    turned = [tuple(x.transpose(0, 1).contiguous().transpose(0, 1) for x in link) for link in links]
    assert torch.equal(pairs.pair_sums(turned, mix.T.contiguous().T, held), pairs.pair_sums(links, mix, held))


@pytest.mark.parametrize(("rounds", "width", "dtype"), [(3, 16, torch.float32), (1, 8, torch.float32),
                                                        (2, 16, torch.bfloat16)])  # fmt: skip
def test_what_the_kernel_does_not_know_falls_back(rounds, width, dtype):
    links, mix, held = example(4, 3, rounds, width=width, dtype=dtype)
    assert torch.equal(pairs.pair_sums(links, mix, held), pairs.plain(links, mix, held))


@pytest.mark.parametrize("kind", ["mpgnn_single", "mpgnn", "conditioned_mpgnn", "graph_matching"])
def test_a_model_by_kernel_and_by_definition(kind, monkeypatch):
    """Logits and the gradient of every weight, to the tolerance of float32."""
    batch = from_samples(Discrimination((3, 8)).sample(64, np.random.default_rng(0)))
    found = []
    for function in (pairs.pair_sums, pairs.plain):
        for module in ("mpgnn", "graph_matching"):
            monkeypatch.setattr(f"reward_models.models.{module}.pair_sums", function)
        model = models.create(kind, seed=1)
        logits = model(batch.target, batch.reference)
        loss_of(logits, batch.label).backward()
        found.append((logits, {name: x.grad for name, x in model.named_parameters()}))
    torch.testing.assert_close(found[0][0], found[1][0], rtol=1e-4, atol=1e-3)
    for name, gradient in found[0][1].items():
        other = found[1][1][name]
        assert (gradient - other).norm() <= 1e-4 * other.norm(), name
