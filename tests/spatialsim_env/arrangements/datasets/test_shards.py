"""Sets in several pieces: what is read back is what was written, and nothing of another set."""

from __future__ import annotations

import json

import numpy as np
import pytest

from spatialsim_env.arrangements.datasets import named, shards
from spatialsim_env.arrangements.datasets.named import DataSetError
from spatialsim_env.arrangements.tasks import Discrimination, Samples

SIZES = (5, 0, 7, 3)


def parts_of(samples: Samples) -> tuple[np.ndarray, ...]:
    return samples.target, samples.reference, samples.label


@pytest.fixture
def made(tmp_path):
    """A set of four shards, one of them empty, and its samples."""
    samples = Discrimination((2, 4)).sample(sum(SIZES), np.random.default_rng(0))
    start = 0
    for index, size in enumerate(SIZES):
        rows = slice(start, start + size)
        columns = {"number": np.arange(15)[rows]}
        named.save(samples[rows], shards.shard_path(tmp_path / "set", index), {"shard": index}, columns)
        start += size
    manifest = shards.join(tmp_path / "set", len(SIZES), {"seed": 1})
    assert manifest == tmp_path / "set.json"
    return tmp_path / "set", samples


def test_round_trip(made):
    path, samples = made
    manifest = named.read_manifest(path)
    assert (manifest["samples"], manifest["n_max"], manifest["settings"]) == (15, 4, {"seed": 1})
    for most in (None, 0, 1, 5, 6, 12, 15, 99):
        for one, other in zip(parts_of(shards.load(path, most)), parts_of(samples[:most]), strict=True):
            assert np.array_equal(one, other)
    assert np.array_equal(shards.load_columns(path)["number"], np.arange(15))


def test_shards_that_are_not_needed_are_not_read(made):
    path, _ = made
    (path / "00003.npz").write_bytes(b"damaged")
    assert len(shards.load(path, 12)) == 12
    with pytest.raises(DataSetError, match=r"00003\.npz is cut or changed"):
        shards.load(path)


def test_a_set_without_shards_is_read_as_it_is(made, tmp_path):
    _, samples = made
    named.save(samples, tmp_path / "plain", columns={"number": np.arange(15)})
    assert np.array_equal(shards.load(tmp_path / "plain", 4).target, samples.target[:4])
    assert np.array_equal(shards.load_columns(tmp_path / "plain")["number"], np.arange(15))


def test_shards_of_another_set_are_refused(made):
    path, samples = made
    named.save(samples[:2], path / "00002")
    with pytest.raises(DataSetError, match="are others than its manifest says"):
        shards.load(path)
    (path / "00002.json").unlink()
    with pytest.raises(DataSetError, match=r"00002\.json does not exist"):
        shards.load(path)


def test_what_cannot_be_joined(made):
    path, _ = made
    with pytest.raises(ValueError, match="n_shards is 0; accepted is at least 1"):
        shards.join(path, 0, {})
    with pytest.raises(DataSetError, match=r"00004\.json does not exist"):
        shards.join(path, 5, {})
    wider = Discrimination(6).sample(2, np.random.default_rng(0))
    named.save(wider, path / "00004")
    with pytest.raises(DataSetError, match=r"have \[4, 6\] rows a scene"):
        shards.join(path, 5, {})


def test_whole_means_these_settings_this_version_and_undamaged(made, monkeypatch):
    path, _ = made
    first = shards.shard_path(path, 0)
    assert shards.is_whole(first, {"shard": 0})
    assert not shards.is_whole(first, {"shard": 1})
    assert not shards.is_whole(shards.shard_path(path, 9), {"shard": 9})
    manifest = json.loads((path / "00000.json").read_text())
    (path / "00000.json").write_text(json.dumps(manifest | {"version": "0"}))
    assert not shards.is_whole(first, {"shard": 0})
    (path / "00002.npz").write_bytes(b"cut")
    assert not shards.is_whole(shards.shard_path(path, 2), {"shard": 2})


def test_columns_are_of_the_samples_length(made, tmp_path):
    _, samples = made
    with pytest.raises(DataSetError, match=r"target, reference, label, number hold \[15, 15, 15, 3\] samples"):
        named.save(samples, tmp_path / "other", columns={"number": np.arange(3)})
    with pytest.raises(DataSetError, match=r"none\.npz is missing"):
        named.load_columns(tmp_path / "none")
