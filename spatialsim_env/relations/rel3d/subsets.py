"""Contrastive and non-contrastive subsets of a split file, to compare what they teach at equal numbers of samples.

A group is all samples of one (predicate, subject, object). A contrastive subset keeps a share of the groups of each
predicate with the samples that hold and those that do not; a non-contrastive one keeps twice as many groups, each
with the samples of one label alone (Rel3D, "Minimally contrastive examples improve sample efficiency"). No group is
in both training and validation; the test samples stay.

Within a predicate the groups are put in a random order once: training takes them from the front, validation from the
back. So a smaller share is part of a larger one, and validation does not depend on the training share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations.rel3d.published import RelationSamples, Split, concatenate

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class _Pool:
    """Samples to draw from, and per predicate its groups with both labels in a random order, as rows."""

    samples: RelationSamples
    groups: list[list[Rows]]


def contrastive(split: Split, train_share: float, valid_share: float, rng: np.random.Generator) -> Split:
    """A split of ``train_share`` and ``valid_share`` of the groups of train and valid together, both labels of each.

    Raises:
        ValueError: shares that are negative or together more than 1.
    """
    _check_shares(train_share, valid_share, 1.0)
    pool = _pool(split, rng)
    train = [_both(pool, groups[: _n(train_share, groups)]) for groups in pool.groups]
    valid = [_both(pool, groups[len(groups) - _n(valid_share, groups) :]) for groups in pool.groups]
    return _split(split, pool, "c", (train_share, valid_share), _join(train), _join(valid))


def both_kinds(split: Split, train_share: float, valid_share: float, rng: np.random.Generator) -> tuple[Split, Split]:
    """A contrastive and a non-contrastive split with equally many samples of each predicate and label.

    The contrastive one has up to ``train_share`` and ``valid_share`` of the groups of train and valid together, the
    other up to twice as many with one random label each, such that both labels have about as many samples. Groups
    differ in size: the last samples of whichever would have more are left out.

    Raises:
        ValueError: shares that are negative or together more than 0.5.
    """
    _check_shares(train_share, valid_share, 0.5)
    pool = _pool(split, rng)
    parts: dict[str, list[Rows]] = {"c train": [], "nc train": [], "c valid": [], "nc valid": []}
    for groups in pool.groups:
        for part, share, order in (("train", train_share, groups), ("valid", valid_share, groups[::-1])):
            n = min(_n(share, groups), len(groups) // 2)
            both, one = _both(pool, order[:n]), _one(pool, order[: 2 * n], rng)
            most = min(len(labels) for kind in (both, one) for labels in kind)
            parts[f"c {part}"] += [labels[:most] for labels in both]
            parts[f"nc {part}"] += [labels[:most] for labels in one]
    rows = {name: np.sort(np.concatenate([np.zeros(0, np.int64), *part])) for name, part in parts.items()}
    shares = (train_share, valid_share)
    return (
        _split(split, pool, "c", shares, rows["c train"], rows["c valid"]),
        _split(split, pool, "nc", shares, rows["nc train"], rows["nc valid"]),
    )


def _pool(split: Split, rng: np.random.Generator) -> _Pool:
    samples = concatenate([split.train, split.valid])
    group = samples.group
    order = np.lexsort((np.arange(len(samples)), samples.pair, group))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    by_predicate: list[list[Rows]] = [[] for _ in split.predicates]
    for rows in np.split(order, starts[1:]) if len(order) else []:
        if samples.label[rows].any() and not samples.label[rows].all():
            by_predicate[samples.predicate[rows[0]]].append(rows)
    return _Pool(samples, [[groups[i] for i in rng.permutation(len(groups))] for groups in by_predicate])


def _n(share: float, groups: list[Rows]) -> int:
    """Number of groups of a share; rounded down, so that shares that add up to at most 1 never overlap."""
    return int(share * len(groups) + 1e-9)


def _both(pool: _Pool, groups: list[Rows]) -> tuple[Rows, Rows]:
    """Rows of the groups that hold and that do not; members of a pair have the same place where pairs are complete."""
    rows = np.concatenate([np.zeros(0, np.int64), *groups])
    label = pool.samples.label[rows]
    return rows[label], rows[~label]


def _one(pool: _Pool, groups: list[Rows], rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Rows of the groups whose random label is true, and of those whose is false.

    Labels are drawn group by group: the one that has fewer samples so far, either where there are as many.
    """
    chosen: dict[bool, list[Rows]] = {True: [np.zeros(0, np.int64)], False: [np.zeros(0, np.int64)]}
    n = {True: 0, False: 0}
    for index in rng.permutation(len(groups)):
        rows = groups[index]
        label = bool(rng.random() < 0.5) if n[True] == n[False] else n[True] < n[False]
        kept = rows[pool.samples.label[rows] == label]
        chosen[label].append(kept)
        n[label] += len(kept)
    return np.concatenate(chosen[True]), np.concatenate(chosen[False])


def _join(parts: list[tuple[Rows, Rows]]) -> Rows:
    return np.sort(np.concatenate([np.zeros(0, np.int64), *(rows for labels in parts for rows in labels)]))


def _split(split: Split, pool: _Pool, kind: str, shares: tuple[float, float], train: Rows, valid: Rows) -> Split:
    name = "_".join(f"{kind}_{share:g}" for share in shares)
    train_part, valid_part = _of(pool.samples, train), _of(pool.samples, valid)
    return replace(split, train=train_part, valid=valid_part, name=name, problems=())


def _of(samples: RelationSamples, rows: Rows) -> RelationSamples:
    """These rows; those whose partner is not among them have no pair."""
    some = samples[rows]
    numbers, place, count = np.unique(some.pair, return_inverse=True, return_counts=True)
    return replace(some, pair=np.where(count[place] == 2, numbers[place], -1))


def _check_shares(train_share: float, valid_share: float, most: float) -> None:
    if not (train_share >= 0 and valid_share >= 0 and train_share + valid_share <= most + 1e-9):
        raise ValueError(
            f"shares are {train_share} and {valid_share}; accepted are shares of 0 and more, together up to {most:g}"
        )
