from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from reward_models import models, shares
from reward_models.measuring import evaluation
from reward_models.models.batch import from_samples
from reward_models.shares import Accuracy
from spatialsim_env.arrangements.tasks import Discrimination, Identification


@pytest.mark.parametrize(("correct", "total"), [(0, 10), (7, 10), (10, 10), (9_987, 10_000)])
def test_the_interval_is_wilsons(correct, total):
    """Its ends are the shares p whose own standard error just reaches the observed one: (x - p)^2 = z^2 p(1-p)/n."""
    accuracy = Accuracy(correct, total)
    x = correct / total
    assert accuracy.value == x
    for end in accuracy.interval:
        assert (x - end) ** 2 == pytest.approx(shares.Z**2 * end * (1 - end) / total, abs=1e-12)
    assert accuracy.interval[0] - 1e-12 <= x <= accuracy.interval[1] + 1e-12


def test_a_set_in_parts_is_the_set(monkeypatch):
    """Exact over the set, not a mean over batches: the last part is smaller."""
    samples = Discrimination((3, 6)).sample(101, np.random.default_rng(0))
    model = models.create("mpgnn")
    batch = from_samples(samples)
    whole = model(batch.target, batch.reference).detach()
    expected = (whole[-1].argmax(-1) == batch.label).sum().item()
    monkeypatch.setattr("reward_models.models.batch.PAIRS_AT_ONCE", 36 * 7)
    assert torch.allclose(evaluation.logits(model, batch), whole, rtol=1e-4, atol=1e-4)
    assert evaluation.accuracy(model, samples) == Accuracy(expected, 101)
    loss = F.cross_entropy(whole[0], batch.label) + F.cross_entropy(whole[1], batch.label)
    assert evaluation.loss(model, samples) == pytest.approx(loss.item(), rel=1e-5)


def test_an_untrained_loss_is_that_of_guessing():
    logits = torch.zeros(2, 8, 2)
    assert evaluation.loss_of(logits, torch.arange(8) % 2).item() == pytest.approx(2 * math.log(2))


def test_accuracy_by_range(mixed_folder):
    import reward_models

    model = reward_models.load(mixed_folder).module
    result = evaluation.accuracy_by_range(model, 300, seed=1)
    assert list(result) == ["3-8", "9-20", "21-30"]
    assert all(a.total == 300 and a.value >= 0.98 for a in result.values())
    assert evaluation.accuracy_by_range(model, 300, seed=1) == result
    narrow = evaluation.accuracy_by_range(model, 50, negative="displaced", ranges=[(4, 4)])
    assert list(narrow) == ["4-4"]


def test_one_input_has_one_scene():
    model = models.create("mpgnn_single")
    with pytest.raises(ValueError, match="belongs to one reference"):
        evaluation.accuracy_by_range(model, 10)
    assert evaluation.accuracy_on(model, Identification(5), 64).total == 64


def test_accuracy_of_nothing_is_refused():
    with pytest.raises(ValueError, match="empty set"):
        evaluation.accuracy(models.create("mpgnn"), Discrimination().sample(0, np.random.default_rng(0)))


def test_judging_leaves_no_trace(two_threads):
    model = models.create("mpgnn")
    model.train()
    with evaluation.judging(model):
        assert not model.training
        assert torch.get_num_threads() == 1
        assert torch.is_inference_mode_enabled()
    assert model.training
    assert torch.get_num_threads() == two_threads
    assert torch.is_grad_enabled()
    with pytest.raises(RuntimeError), evaluation.judging(model.eval()):
        raise RuntimeError
    assert not model.training
    assert torch.get_num_threads() == two_threads


def test_streams_differ_by_purpose_and_seed():
    draws = {evaluation.stream(seed, name).random() for seed in (0, 1) for name in ("stage/0", "stage/1", "valid")}
    assert len(draws) == 6
    assert evaluation.stream(0, "valid").random() == evaluation.stream(0, "valid").random()
