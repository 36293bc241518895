"""Exact accuracy of a model, its interval, and the loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

from reward_models.models import RewardModel
from reward_models.models.batch import Batch, for_model, pictures_at_once, rows_at_once
from reward_models.shares import Accuracy
from reward_models.threads import one_thread
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.datasets.named import set_name
from spatialsim_env.arrangements.negatives import Negative
from spatialsim_env.arrangements.tasks import RANGES, Discrimination, Samples, Task
from spatialsim_env.streams import stream


@contextmanager
def judging(model: RewardModel) -> Iterator[None]:
    """Evaluation mode without gradients on one thread; every flag is as before afterwards."""
    training = model.training
    model.eval()
    try:
        with one_thread(), torch.inference_mode():
            yield
    finally:
        model.train(training)


def logits(model: RewardModel, batch: Batch) -> Tensor:
    """Logits (rounds, B, 2) of a set of any size, in the model's own precision."""
    like = next(model.parameters())
    n = max(x.shape[1] for x in (batch.target, batch.reference) if x is not None)
    size = pictures_at_once(batch.target.shape[-1]) if model.sees_pictures else rows_at_once(n)
    with judging(model):
        parts = []
        for start in range(0, len(batch), size):
            part = batch[start : start + size]
            parts.append(model(part.target.to(like), None if part.reference is None else part.reference.to(like)))
        return torch.cat(parts, dim=1)


def loss_of(logits: Tensor, label: Tensor) -> Tensor:
    """Cross-entropy, summed over the rounds (section 3.2 of the paper; the authors' code).

    Args:
        logits: (..., rounds, B, 2).
        label: (..., B).

    Returns:
        (...), means over the batch.
    """
    of_rounds = label.unsqueeze(-2).expand(logits.shape[:-1])
    each = F.cross_entropy(logits.flatten(0, -2), of_rounds.flatten(), reduction="none")
    return each.unflatten(0, of_rounds.shape).mean(-1).sum(-1)


def _as_batch(model: RewardModel, samples: Samples | Batch) -> Batch:
    return samples if isinstance(samples, Batch) else for_model(model, samples)


def loss(model: RewardModel, samples: Samples | Batch) -> float:
    """The training loss on a set."""
    batch = _as_batch(model, samples)
    return loss_of(logits(model, batch), batch.label.to(next(model.parameters()).device)).item()


def accuracy(model: RewardModel, samples: Samples | Batch) -> Accuracy:
    """Exact share of right answers of the last round over a whole set.

    Raises:
        ValueError: an empty set.
    """
    batch = _as_batch(model, samples)
    if not len(batch):
        raise ValueError("accuracy of an empty set is not defined")
    last = logits(model, batch)[-1]
    right = (last[:, 1] > last[:, 0]).cpu() == (batch.label.cpu() == 1)
    return Accuracy(int(right.sum()), len(batch))


def accuracy_on(model: RewardModel, task: Task, size: int, seed: int = 0) -> Accuracy:
    """Accuracy on ``size`` fresh samples of a task; the test stream of a seed, apart from its training stream."""
    return accuracy(model, _test_samples(task, size, seed))


def truth_on(task: Task, size: int, seed: int = 0, criterion: str = "similarity") -> Accuracy:
    """Accuracy of the exact geometry on the very samples that ``accuracy_on`` takes: what the labels allow."""
    samples = _test_samples(task, size, seed)
    achieved = goals.achieved(samples.reference, samples.target, criterion)
    return Accuracy(int((achieved == (samples.label == 1)).sum()), len(samples))


def _test_samples(task: Task, size: int, seed: int) -> Samples:
    return task.sample(size, stream(seed, set_name(task, "test")))


def accuracy_by_range(
    model: RewardModel,
    size: int = 10_000,
    seed: int = 0,
    negative: str | Negative = "redrawn",
    ranges: Sequence[tuple[int, int]] = RANGES,
) -> dict[str, Accuracy]:
    """Accuracy on Discrimination with 3-8, 9-20 and 21-30 objects, as in Table 3 of the paper.

    Args:
        size: test samples per range.

    Raises:
        ValueError: a model of one input, which knows one scene only.
    """
    if not model.two_inputs:
        raise ValueError(
            f"{model.kind} sees one scene and belongs to one reference: measure it with accuracy_on(Identification)"
        )
    return {
        f"{low}-{high}": accuracy_on(model, Discrimination((low, high), negative=negative), size, seed)
        for low, high in ranges
    }
