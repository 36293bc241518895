"""Whole data sets: shares, balance, bits, what is written and read."""

import json

import numpy as np
import pytest

from spatialsim_env.relations.pairs import categories, generation, picture_files, scene_sets
from spatialsim_env.relations.pairs.generation import PairSettings, generate, shards
from spatialsim_env.relations.rel3d import published, vectors
from spatialsim_env.relations.rel3d.records import RelationDataError
from spatialsim_env.relations.scene import RoomError
from spatialsim_env.relations.vocabulary import PREDICATES

FEW = ("on", "near", "to the left of (wrt you)")


EQUAL = tuple(1.0 for _ in PREDICATES)


def _settings(pairs=3000, seed=0, weights=EQUAL):
    return PairSettings(pairs, seed, 1, 0.2, False, weights)


def _files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("relations") / "set", 120, 5, predicates=FEW)


@pytest.fixture(scope="module")
def pairs(folder):
    return scene_sets.load(folder / generation.SCENES)


def test_plan_has_equal_numbers_and_the_shares():
    plan = list(shards(_settings()))
    slots = {name: np.concatenate([s.slots for s in plan if s.predicate == name]) for name in PREDICATES}
    assert {len(x) for x in slots.values()} == {100}
    assert all(len(shard.slots) <= generation.SHARD for shard in plan)
    for name, rows in slots.items():
        assert np.bincount(rows[:, 2]).tolist() == [81, 9, 10]
        groups = [{(s, o) for s, o, split in rows.tolist() if split == i} for i in range(3)]
        assert all(groups)
        assert not groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2]
        allowed = {(s, o) for s, o in categories.triples(name).tolist()}
        assert groups[0] | groups[1] | groups[2] <= allowed


def test_plan_spreads_over_the_triples_of_a_split():
    """With more pairs than triples no triple is asked for more than once more often than another of its split."""
    weights = tuple(float(name == "in") for name in PREDICATES)
    rows = np.concatenate([shard.slots for shard in shards(_settings(pairs=900, weights=weights))])
    for split in range(3):
        _, times = np.unique(rows[rows[:, 2] == split, :2], axis=0, return_counts=True)
        assert np.ptp(times) <= 1
    assert len(np.unique(rows[:, :2], axis=0)) == len(categories.triples("in"))


def test_numbers_follow_the_weights():
    weights = tuple({"on": 3.0, "in": 1.0}.get(name, 0.0) for name in PREDICATES)
    plan = list(shards(_settings(pairs=400, weights=weights)))
    numbers = {name: sum(len(s.slots) for s in plan if s.predicate == name) for name in PREDICATES}
    assert {name: n for name, n in numbers.items() if n} == {"on": 300, "in": 100}


def test_counts_and_balance_of_the_files(folder, pairs):
    assert len(pairs) == 120
    split = published.load(folder)
    for name, share in (("train", 0.81), ("valid", 0.09), ("test", 0.1)):
        samples = getattr(split, name)
        for predicate in FEW:
            labels = samples.label[samples.predicate == PREDICATES.index(predicate)]
            assert abs(len(labels) - 80 * share) < 2
            assert labels.mean() == 0.5
    groups = [set(getattr(split, name).group) for name in published.SPLITS]
    assert not groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2]


def test_every_pair_has_both_labels_and_shares_all_that_language_tells(folder):
    train = published.load(folder).train
    order = np.argsort(train.pair, kind="stable").reshape(-1, 2)
    assert (train.pair[order[:, 0]] == train.pair[order[:, 1]]).all()
    assert (train.label[order].sum(axis=1) == 1).all()
    for column in (train.predicate, train.subject, train.object):
        assert (column[order[:, 0]] == column[order[:, 1]]).all()
    assert all(train.cameras[i] == train.cameras[j] for i, j in order.tolist())


def test_order_and_state_do_not_tell_the_label():
    """The first member holds in about half of many pairs: five standard deviations of a fair coin."""
    first = []
    for seed in range(3):
        rows = np.tile([categories.INDEX["book"], categories.INDEX["table"], 0], (200, 1))
        order = generation.Order("near", 1, generation.Demands())
        first.append(generation.fill(order, rows, np.random.default_rng(seed), generation.ProposalCounts()).first)
    n = np.concatenate(first)
    assert abs(n.mean() - 0.5) < 5 * 0.5 / np.sqrt(len(n))


def test_names_of_pictures_follow_the_first_member(folder, pairs):
    samples = scene_sets.samples(pairs)
    initial = np.array(["initialState" in name for name in samples.rgb])
    assert initial.reshape(-1, 2).tolist() == [[True, False]] * len(pairs)
    np.testing.assert_array_equal(samples.label.reshape(-1, 2)[:, 0], pairs.first == 0)


def test_files_read_back_as_what_was_made(folder, pairs):
    split, made = published.load(folder), scene_sets.to_split(pairs, "c_0.9_c_0.1")
    assert split.problems == ()
    assert split.objects == categories.NAMES
    for name in published.SPLITS:
        there, ours = getattr(split, name), getattr(made, name)
        for column in ("predicate", "subject", "object", "label", "boxes", "picture_size"):
            np.testing.assert_array_equal(getattr(there, column), getattr(ours, column))
        for key in vectors.NAMES:
            np.testing.assert_allclose(there.vectors[key], ours.vectors[key])
        assert there.rgb == ours.rgb
        np.testing.assert_allclose(there.extra["margin"], ours.extra["margin"])
        np.testing.assert_array_equal(there.extra["margin"] > 0, there.label)


def test_vectors_give_the_scenes_back(pairs):
    samples = scene_sets.samples(pairs)
    pair, view, member = scene_sets.sample_rows(pairs)
    kinds = np.stack([categories.KIND[pairs.subject], categories.KIND[pairs.object]], axis=1)
    back = vectors.to_scenes(samples.vectors["aligned_absolute"], pairs.observers[pair, view], kinds[pair])
    np.testing.assert_allclose(back, pairs.scenes[pair, member], atol=1e-9)


def test_halves_have_equal_sizes(folder):
    both, one = (published.load(folder / f"{kind}_0.4_{kind}_0.1.json") for kind in ("c", "nc"))
    for name in published.SPLITS:
        first, second = getattr(both, name), getattr(one, name)
        assert len(first) == len(second)
        np.testing.assert_array_equal(np.bincount(first.label), np.bincount(second.label))


def test_the_same_seed_gives_the_same_bits_in_two_processes_and_after_an_interruption(folder, tmp_path):
    expected = _files(folder)
    assert _files(generate(tmp_path / "two", 120, 5, predicates=FEW, jobs=2)) == expected

    class Killed(BaseException):
        pass

    def stop(done, total):
        assert total == 3
        if done == 2:
            raise Killed

    with pytest.raises(Killed):
        generate(tmp_path / "again", 120, 5, predicates=FEW, progress=stop)
    assert not (tmp_path / "again" / generation.MANIFEST).exists()
    seen = []
    generate(tmp_path / "again", 120, 5, predicates=FEW, progress=lambda done, total: seen.append(done))
    assert seen == [3]
    assert _files(tmp_path / "again") == expected


def test_another_seed_gives_other_scenes(pairs, tmp_path):
    other = scene_sets.load(generate(tmp_path / "set", 120, 6, predicates=FEW) / generation.SCENES)
    assert not np.isclose(other.scenes, pairs.scenes).all(axis=(1, 2, 3)).any()


def test_what_is_there_stays_and_another_set_is_refused(folder):
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    generate(folder, 120, 5, predicates=FEW)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    with pytest.raises(RelationDataError, match="other settings"):
        generate(folder, 121, 5, predicates=FEW)


def test_manifest_tells_what_was_made(folder, pairs):
    about = json.loads((folder / generation.MANIFEST).read_text())
    assert about["statistics"].keys() == set(FEW)
    assert sum(row["pairs"] for row in about["statistics"].values()) == len(pairs)
    assert about["proposals"]["positive"] >= len(pairs)
    assert set(about["sha256"]) == {path.name for path in folder.iterdir()} - {generation.MANIFEST}


def test_several_views_of_a_pair(tmp_path):
    made = scene_sets.load(generate(tmp_path / "set", 10, 0, views=12, predicates=["far from"]) / generation.SCENES)
    assert made.observers.shape == (10, 12, 9)
    assert (np.sort(made.view, axis=1) == np.arange(12)).all()
    assert len(published.load(tmp_path / "set").train) == 8 * 12 * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": 0}, "pairs"),
        ({"views": 13, "predicates": ["on"]}, "views"),
        ({"views": 4, "predicates": PREDICATES}, "frontal"),
        ({"predicates": ["upon"]}, "predicate is 'upon'"),
        ({"predicates": {"on": -1.0}}, "weight"),
        ({"predicates": []}, "weight"),
        ({"margin": 2.0}, "margin"),
        ({"jobs": 0}, "jobs"),
    ],
)
def test_bad_settings_are_refused(tmp_path, change, message):
    settings = {"pairs": 3, "seed": 0, "predicates": ["on"], **change}
    with pytest.raises(ValueError, match=message):
        generate(tmp_path / "set", settings.pop("pairs"), settings.pop("seed"), **settings)
    assert not (tmp_path / "set").exists()


def test_demands_beyond_reach_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("spatialsim_env.relations.pairs.filling.ROUNDS", 3)
    with pytest.raises(RoomError, match="no pair was found for"):
        generate(tmp_path / "set", 5, 0, predicates=["in"], margin=0.999)


def test_files_that_are_no_sets_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="generate"):
        scene_sets.load(tmp_path / "none.npz")
    np.savez(tmp_path / "other.npz", predicate=np.zeros(3))
    with pytest.raises(RelationDataError, match="no set of scenes"):
        scene_sets.load(tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text("nothing")
    with pytest.raises(RelationDataError, match="no set of scenes"):
        scene_sets.load(tmp_path / "text.npz")


def test_pictures_of_a_set(tmp_path):
    pytest.importorskip("mujoco")
    image = pytest.importorskip("PIL.Image")
    try:
        where = generate(tmp_path / "set", 2, 0, predicates=["near"], pictures=(64, 36), halves=False)
    except picture_files.rendering.RenderingError as error:
        pytest.skip(str(error))
    split = published.load(where, pictures_folder=where / generation.PICTURES)
    assert split.problems == ()
    made = scene_sets.load(where / generation.SCENES)
    names = scene_sets.picture_names(made, np.arange(2))
    assert len(list((where / generation.PICTURES).iterdir())) == 3 * len(names) == 12
    for name in names:
        pixels = []
        for kind in ("rgb", "depth", "mask"):
            with image.open(where / generation.PICTURES / name.replace("rgb", kind)) as file:
                pixels.append(np.array(file))
        rgb, depth, mask = pixels
        assert (rgb.shape, depth.shape, mask.shape) == ((36, 64, 3), (36, 64), (36, 64))
        assert {1, 2} <= set(np.unique(mask)) <= {0, 1, 2}
        assert 300 < depth[mask > 0].min() < 12000  # millimetres


def test_a_pair_side_by_side(pairs, tmp_path):
    pytest.importorskip("mujoco")
    image = pytest.importorskip("PIL.Image")
    try:
        picture_files.draw_pairs(pairs, [0], tmp_path / "pair.png", size=(160, 90))
    except picture_files.rendering.RenderingError as error:
        pytest.skip(str(error))
    with image.open(tmp_path / "pair.png") as picture:
        assert picture.size == (322, 90 + picture_files.CAPTION)
    assert picture_files.caption(pairs, 0, 0).endswith(": holds")
    assert ": fails (" in picture_files.caption(pairs, 0, 1)


def test_damaged_and_lost_files_of_a_set(tmp_path):
    made = generate(tmp_path / "set", 6, 0, predicates=FEW, halves=False)
    whole = _files(made)
    (made / generation.SCENES).unlink()
    generate(made, 6, 0, predicates=FEW, halves=False)
    assert _files(made) == whole
    for text in ("{", "[]"):
        (made / generation.MANIFEST).write_text(text)
        with pytest.raises(RelationDataError, match=r"manifest\.json"):
            generate(made, 6, 0, predicates=FEW, halves=False)
