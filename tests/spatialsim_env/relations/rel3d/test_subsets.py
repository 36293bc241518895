"""Contrastive and non-contrastive subsets: shares, equal numbers, no group on both sides."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialsim_env.relations.rel3d import published, subsets
from spatialsim_env.relations.rel3d.vectors import WIDTHS

SMALL = Path(__file__).parents[3] / "data" / "rel3d" / "c_0.7_c_0.3.json"
NAMES = tuple("abcdefgh")


def samples(groups: list[tuple[int, int, int]], pairs_per_group: list[int]) -> published.RelationSamples:
    """Groups of pairs; the first member of a pair holds."""
    rows = np.repeat(np.array(groups).reshape(-1, 3), 2 * np.array(pairs_per_group, int), axis=0)
    n = len(rows)
    return published.RelationSamples(
        *rows.T.astype(np.int64),
        label=np.arange(n) % 2 == 0,
        boxes=np.zeros((n, 2, 4), np.float32),
        picture_size=np.ones((n, 2), np.int32),
        vectors={name: np.zeros((n, width)) for name, width in WIDTHS.items()},
        pair=np.arange(n) // 2,
        rgb=tuple(map(str, range(n))),
        depth=("",) * n,
        cameras=(None,) * n,
    )


def file_of(sizes: list[int], n_predicates: int = 2) -> published.Split:
    """As many groups per predicate as there are sizes; the last quarter of them is in valid."""
    names = [*itertools.product(range(8), range(8))][: len(sizes)]
    cut = len(sizes) - len(sizes) // 4
    parts = [
        samples([(p, *names[i]) for p in range(n_predicates) for i in of], [sizes[i] for i in of] * n_predicates)
        for of in (range(cut), range(cut, len(sizes)))
    ]
    return published.Split(*parts, parts[1][:2], ("on", "in")[:n_predicates], NAMES, "c_0.75_c_0.25")


def groups(part: published.RelationSamples) -> set[int]:
    return {*part.group.tolist()}


def test_equal_groups_give_the_exact_shares():
    """20 groups of 3 pairs per predicate: 0.25 is 5 groups of 6 samples, or 10 groups of 3."""
    contrastive, other = subsets.both_kinds(file_of([3] * 20), 0.25, 0.1, np.random.default_rng(0))
    assert (len(contrastive.train), len(other.train)) == (2 * 30, 2 * 30)
    assert (len(contrastive.valid), len(other.valid)) == (2 * 12, 2 * 12)
    assert (len(groups(contrastive.train)), len(groups(other.train))) == (2 * 5, 2 * 10)
    assert (len(groups(contrastive.valid)), len(groups(other.valid))) == (2 * 2, 2 * 4)
    assert (contrastive.name, other.name) == ("c_0.25_c_0.1", "nc_0.25_nc_0.1")
    assert {*Counter(contrastive.train.pair.tolist()).values()} == {2}, "pairs stay whole"
    assert {*other.train.pair.tolist()} == {-1}, "no pair is left"


shares = st.sampled_from([(0.1, 0.1), (0.25, 0.1), (0.4, 0.1), (0.25, 0.25), (0.5, 0.0), (0.0, 0.3)])


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), shares, st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_what_holds_for_any_file(sizes, share, seed):
    split = file_of(sizes)
    contrastive, other = subsets.both_kinds(split, *share, np.random.default_rng(seed))
    for subset in (contrastive, other):
        assert not groups(subset.train) & groups(subset.valid)
        assert subset.test is split.test
    for part in ("train", "valid"):
        one, two = getattr(contrastive, part), getattr(other, part)
        for label in (False, True):
            counts = [np.bincount(x.predicate[x.label == label], minlength=2) for x in (one, two)]
            assert np.array_equal(*counts), "equally many of each predicate and label"
        assert all(np.bincount(one.label, minlength=2) == len(one) / 2)
        assert groups(one) <= groups(split.train) | groups(split.valid)
        labels = [{*zip(x.group.tolist(), x.label.tolist(), strict=True)} for x in (one, two)]
        assert len(labels[0]) == 2 * len(groups(one)), "both labels of each group"
        assert len(labels[1]) == len(groups(two)), "one label of each group"
        assert len(groups(one)) <= 2 * int(share[part == "valid"] * len(sizes) + 1e-9)


def test_smaller_shares_are_part_of_larger_ones_and_validation_stays():
    split = file_of([1, 2, 3, 4] * 5)
    previous: set[int] = set()
    for share in (0.1, 0.25, 0.4, 0.9):
        subset = subsets.contrastive(split, share, 0.1, np.random.default_rng(7))
        assert previous < groups(subset.train)
        previous = groups(subset.train)
        assert groups(subset.valid) == groups(subsets.contrastive(split, 0.1, 0.1, np.random.default_rng(7)).valid)
        assert not groups(subset.train) & groups(subset.valid)
    assert len(previous) == 2 * 18


def test_seeds():
    split = file_of([2] * 30)
    one, two, three = (subsets.both_kinds(split, 0.25, 0.1, np.random.default_rng(seed))[1].train for seed in (0, 0, 1))
    assert one.rgb == two.rgb
    assert one.rgb != three.rgb


def test_groups_of_one_label_are_left_out():
    part = samples([(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 3)], [2] * 4)
    split = published.Split(part[part.label | (part.object > 1)], part[:0], part[:0], ("on",), NAMES, "one")
    subset = subsets.contrastive(split, 1.0, 0.0, np.random.default_rng(0))
    assert {*subset.train.object.tolist()} == {2, 3}


def test_the_fixture(tmp_path):
    """Ten groups of one pair, one of them of two; "to the left of (wrt you)" has two, half of which is one pair."""
    split = published.load(SMALL)
    everything = subsets.contrastive(split, 1.0, 0.0, np.random.default_rng(0))
    assert len(everything.train) == len(split.train) + len(split.valid) == 22
    contrastive, other = subsets.both_kinds(split, 0.5, 0.0, np.random.default_rng(0))
    for subset in (contrastive, other):
        published.write(subset, tmp_path / f"{subset.name}.json")
        again = published.load(tmp_path / f"{subset.name}.json").train
        assert np.array_equal(again.pair < 0, subset.train.pair < 0)
    left = split.predicates.index("to the left of (wrt you)")
    assert Counter(contrastive.train.predicate.tolist())[left] == Counter(other.train.predicate.tolist())[left] == 2


@pytest.mark.parametrize("share", [(0.6, 0.5), (-0.1, 0.1), (float("nan"), 0.1)])
def test_refused_shares(share):
    with pytest.raises(ValueError, match="together up to 1"):
        subsets.contrastive(file_of([1]), *share, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"together up to 0\.5"):
        subsets.both_kinds(file_of([1]), 0.45, 0.1, np.random.default_rng(0))
