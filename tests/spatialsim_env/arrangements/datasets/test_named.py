"""Named sets on disk: the same bytes for the same seed, and nothing but whole files."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

import numpy as np
import pytest

from spatialsim_env.arrangements.datasets import named as datasets
from spatialsim_env.arrangements.datasets.named import (
    NAMES,
    PAPER,
    DataSetError,
    find,
    generate,
    load,
    sample,
    save,
    select,
    set_name,
)
from spatialsim_env.arrangements.negatives import Displaced, DisplacedFew, RadiusMatched, SpreadMatched
from spatialsim_env.arrangements.scene import SceneError
from spatialsim_env.arrangements.tasks import STAGES, Discrimination, Identification, Samples
from spatialsim_env.arrangements.variants import Fixed

SMALL = (
    "identification/n5/train",
    "discrimination/3-8/stage1",
    "discrimination/9-20/test",
    "discrimination/n4/test",
    "discrimination-displaced_few/3-8/valid",
    "discrimination-abstract-distractors/3-8/stage2",
    "identification-distractors/n6/test",
    "discrimination-rotation/3-8/090",
)


def test_the_papers_sets_are_named():
    """Sections 2.2 and 2.3: 28 references with three splits, three ranges with five stages and two splits."""
    assert len(PAPER) == 28 * 3 + 3 * (5 + 2)
    assert NAMES[: len(PAPER)] == PAPER
    assert {find(f"identification/n{n}/train").size for n in range(3, 31)} == {10_000}
    assert {find(f"identification/n{n}/{split}").size for n in range(3, 31) for split in ("valid", "test")} == {5_000}
    for low, high in ((3, 8), (9, 20), (21, 30)):
        stages = [find(f"discrimination/{low}-{high}/stage{k}") for k in range(1, 6)]
        assert [stage.size for stage in stages] == [100_000] * 5
        assert np.allclose([stage.task.max_rotation / np.pi for stage in stages], [0.1, 0.6, 1.1, 1.6, 2.0])
        for split in ("valid", "test"):
            chosen = find(f"discrimination/{low}-{high}/{split}")
            assert chosen.size == 10_000
            assert chosen.task == Discrimination((low, high))


@pytest.mark.parametrize("name", SMALL)
def test_round_trip_and_same_bytes(name, tmp_path):
    one = generate(name, tmp_path / "one", seed=3, size=700)
    other = generate(name, tmp_path / "other", seed=3, size=700)
    assert one.read_bytes() == other.read_bytes()
    assert one.with_suffix(".npz").read_bytes() == other.with_suffix(".npz").read_bytes()
    assert generate(name, tmp_path / "third", seed=4, size=700).read_bytes() != one.read_bytes()
    loaded, expected = load(one), sample(name, seed=3, size=700)
    for part in ("target", "reference", "label"):
        assert getattr(loaded, part).dtype == np.float32
        assert np.array_equal(getattr(loaded, part), getattr(expected, part))
    assert sorted(path.name for path in one.parent.iterdir()) == sorted([one.name, one.with_suffix(".npz").name])


def test_manifest_says_what_was_made(tmp_path):
    manifest = json.loads(generate("identification/n5/test", tmp_path, seed=7, size=10).read_text())
    assert manifest["samples"] == 10
    assert manifest["settings"] | {"name": "identification/n5/test", "seed": 7, "n_objects": 5} == manifest["settings"]
    assert len(manifest["sha256"]) == 64


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("displaced", {"negative": Displaced(5.0, 20.0)}),
        ("displaced_few", {"negative": DisplacedFew(5.0, 20.0, most=3)}),
        ("abstract", {"abstract": True}),
        ("distractors", {"distractors": 3}),
        ("abstract-distractors", {"abstract": True, "distractors": 3}),
        ("spread_matched", {"negative": SpreadMatched()}),
        ("radius_matched", {"negative": RadiusMatched()}),
    ],
)
def test_variants_have_the_objects_parts_and_sizes_of_the_papers_sets(kind, options):
    for name in PAPER:
        task, rest = name.split("/", maxsplit=1)
        variant, plain = find(f"{task}-{kind}/{rest}"), find(name)
        assert variant.size == plain.size
        assert variant.task == replace(plain.task, **options)


def test_sets_of_one_number_of_objects():
    for n in range(3, 31):
        assert find(f"discrimination/n{n}/test") == datasets.NamedSet(Discrimination(n), 10_000)
    for k, limit in enumerate(STAGES, start=1):
        assert find(f"discrimination/n3/stage{k}") == datasets.NamedSet(Discrimination(3, limit), 100_000)


def test_grids_give_one_part_of_the_similarity():
    """Scale from 0.5 to 2, rotation once around, translation over [-20, 20]^2: the ranges of section 2.2."""
    points = {
        "scale": [(f"{scale:.2f}", scale) for scale in (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)],
        "rotation": [(f"{degrees:03d}", degrees * np.pi / 180) for degrees in range(0, 360, 30)],
        "translation": [(f"{x},{y}", (x, y)) for x in (-20, -10, 0, 10, 20) for y in (-20, -10, 0, 10, 20)],
    }
    bases = (("discrimination", "3-8", Discrimination((3, 8))), ("identification", "n14", Identification(14)))
    for part, values in points.items():
        for label, value in values:
            for kind, objects, task in bases:
                found = find(f"{kind}-{part}/{objects}/{label}").task
                assert found.fixed.names == (part,)
                assert getattr(found.fixed, part) == pytest.approx(value)
                assert replace(found, fixed=Fixed()) == task
        assert len(select([f"discrimination-{part}/9-20"])) == len(values)


def test_every_name_is_that_of_its_task():
    for name, chosen in datasets.REGISTRY.items():
        assert set_name(chosen.task, name.split("/")[2]) == name


def test_names_of_tasks():
    assert set_name(Identification(5), "train") == "identification/n5/train"
    assert set_name(Identification(5, reference_seed=3), "train") == "identification/n5/train"
    assert set_name(Discrimination((3, 8), STAGES[0]), "stage1") == "discrimination/3-8/stage1"
    assert set_name(Discrimination(3), "test") == set_name(Discrimination((3, 3)), "test") == "discrimination/n3/test"
    assert set_name(Discrimination((2, 4), negative="twisted"), "test") == "discrimination-twisted/2-4/test"
    assert set_name(Discrimination(4, distractors=1), "own") == "discrimination-distractors/n4/own"
    assert set_name(Discrimination(4, lookalikes=2), "own") == "discrimination-lookalikes/n4/own"


def test_a_set_is_what_its_task_draws_from_the_stream_of_its_name():
    for name in SMALL:
        task = find(name).task
        stream = np.random.default_rng([5, zlib.crc32(name.encode())])
        assert np.array_equal(sample(name, 5, 30).target, task.sample(30, stream).target)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["discrimination/*-*/test"], [f"discrimination/{part}/test" for part in ("3-8", "9-20", "21-30")]),
        (["identification/n3"], [f"identification/n3/{part}" for part in ("train", "valid", "test")]),
        (["identification/n3/"], [f"identification/n3/{part}" for part in ("train", "valid", "test")]),
        (["identification/n1[29]/t?st"], ["identification/n12/test", "identification/n19/test"]),
        (["identification/n4/test", "identification/n4/*t"], ["identification/n4/test"]),
        ([], []),
    ],
)
def test_patterns(patterns, expected):
    assert select(patterns) == expected


def test_patterns_stay_within_a_part():
    assert set(select(["*"])) == set(NAMES)
    assert len(select(["discrimination"])) == 3 * 7 + 7 + 27
    assert {name.split("/")[0] for name in select(["discrimination*/9-20/test"])} == {
        "discrimination",
        *(f"discrimination-{kind}" for kind in ("displaced", "displaced_few", "abstract", "distractors")),
        "discrimination-abstract-distractors",
        "discrimination-spread_matched",
        "discrimination-radius_matched",
    }


@pytest.mark.parametrize("pattern", ["", "/", "nothing", "discrimination/*/train", "identification/n5/test/*", "*/n31"])
def test_patterns_that_nothing_fits(pattern):
    with pytest.raises(DataSetError, match="is unknown; accepted are identification"):
        select(["identification/n5", pattern])


def test_sets_of_different_names_differ():
    assert len({zlib.crc32(name.encode()) for name in NAMES}) == len(NAMES)
    streams = [sample(name, seed=0, size=50).label.tobytes() for name in NAMES[::10]]
    assert len(set(streams)) == len(streams)


def test_manifests_tell_variants_apart(tmp_path):
    names = select(["identification*/n5/test", "identification-scale/n5/1.00"])
    settings = [json.loads(generate(name, tmp_path, size=3).read_text())["settings"] for name in names]
    plain = settings[0]
    assert set(plain) == {"name", "seed", "task", "n_objects", "max_rotation", "reference_seed"}
    changes = [{key: value for key, value in one.items() if key not in plain} for one in settings]
    assert changes == [
        {},
        {"negative": {"name": "displaced", "low": 5.0, "high": 20.0}},
        {"negative": {"name": "displaced_few", "low": 5.0, "high": 20.0, "most": 3}},
        {"abstract": True},
        {"distractors": 3},
        {"abstract": True, "distractors": 3},
        {"negative": {"name": "spread_matched"}},
        {"negative": {"name": "radius_matched"}},
        {"fixed": {"scale": 1.0}},
    ]
    for name in names:
        assert datasets.is_made(name, tmp_path, size=3)


def test_smaller_than_the_authors_text_files(tmp_path):
    """749 bytes a sample at n = 5, and 1,651 at 3-8, in the published archive."""
    for name, theirs in (("identification/n5/train", 749), ("discrimination/3-8/test", 1651)):
        path = generate(name, tmp_path, size=1000).with_suffix(".npz")
        assert path.stat().st_size / 1000 < theirs / 4


def test_own_sets_and_paths(tmp_path):
    samples = Discrimination(4, negative=Displaced()).sample(30, np.random.default_rng(0))
    save(samples, tmp_path / "own.v1", {"mine": True})
    for path in ("own.v1", "own.v1.npz", "own.v1.json"):
        assert np.array_equal(load(tmp_path / path).target, samples.target)
    empty = Identification(3).sample(0, np.random.default_rng(0))
    assert len(load(save(empty, tmp_path / "empty"))) == 0


def test_a_missing_cut_or_changed_file_is_refused(tmp_path):
    manifest = generate("identification/n3/test", tmp_path, size=50)
    data = manifest.with_suffix(".npz")
    whole = data.read_bytes()
    data.write_bytes(whole[:-10])
    with pytest.raises(DataSetError, match="cut or changed"):
        load(manifest)
    data.write_bytes(whole[:500] + bytes([whole[500] ^ 1]) + whole[501:])
    with pytest.raises(DataSetError, match="cut or changed"):
        load(manifest)
    data.unlink()
    with pytest.raises(DataSetError, match=r"npz is missing"):
        load(manifest)
    for text, message in (("{", "not a manifest"), ('{"format": 99}', "format 99"), ("[]", "format")):
        manifest.write_text(text)
        with pytest.raises(DataSetError, match=message):
            load(manifest)
    manifest.unlink()
    with pytest.raises(DataSetError, match="does not exist"):
        load(manifest)


def test_unknown_name(tmp_path):
    with pytest.raises(DataSetError, match=r"n31.*n3\.\.n30"):
        generate("identification/n31/train", tmp_path)


def test_a_failed_write_leaves_the_old_set(tmp_path, monkeypatch):
    manifest = generate("identification/n3/test", tmp_path, size=20)
    before = {path: path.read_bytes() for path in manifest.parent.iterdir()}

    def full(file, **arrays):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(datasets.np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        generate("identification/n3/test", tmp_path, seed=1, size=20)
    assert {path: path.read_bytes() for path in manifest.parent.iterdir()} == before


@pytest.mark.parametrize("name", SMALL)
def test_expected_bytes(name, tmp_path):
    data = generate(name, tmp_path, size=2000).with_suffix(".npz")
    assert datasets.expected_bytes(name, 2000) == pytest.approx(data.stat().st_size, rel=0.05)


def test_is_made(tmp_path):
    name = "identification/n3/test"
    assert not datasets.is_made(name, tmp_path, size=30)
    data = generate(name, tmp_path, seed=1, size=30).with_suffix(".npz")
    assert datasets.is_made(name, tmp_path, seed=1, size=30)
    assert not datasets.is_made(name, tmp_path, seed=2, size=30)
    assert not datasets.is_made(name, tmp_path, seed=1, size=31)
    data.write_bytes(data.read_bytes()[:-1])
    assert not datasets.is_made(name, tmp_path, seed=1, size=30)
    data.unlink()
    assert not datasets.is_made(name, tmp_path, seed=1, size=30)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": None}, "lacks sha256"),
        ({"n_max": "a"}, "lacks n_max"),
        ({"n_max": 2}, "does not fit its manifest"),
        ({"n_max_reference": "a"}, "lacks n_max_reference"),
        ({"n_max_reference": 2}, "does not fit its manifest"),
        ({"samples": 7}, "it says 7 samples"),
        ({"one_reference": True}, "20 references"),
    ],
)
def test_a_manifest_that_does_not_fit(changes, message, tmp_path):
    manifest = generate("discrimination/3-8/test", tmp_path, size=20)
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changes))
    with pytest.raises(DataSetError, match=message):
        load(manifest)


def test_what_is_not_saved(tmp_path):
    good = Discrimination(3).sample(10, np.random.default_rng(0))
    with pytest.raises(DataSetError, match=r"\[10, 10, 4\]"):
        save(Samples(good.target, good.reference, good.label[:4]), tmp_path / "uneven")
    with pytest.raises(SceneError, match="not a finite number"):
        save(Samples(good.target * np.nan, good.reference, good.label), tmp_path / "nan")
    wide = np.zeros((10, 300, 10), np.float32)
    with pytest.raises(DataSetError, match="300 rows"):
        save(Samples(wide, wide, good.label), tmp_path / "wide")
    assert list(tmp_path.iterdir()) == []
