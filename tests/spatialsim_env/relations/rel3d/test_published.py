"""The loader on a hand-made file of the published schema, on broken ones, and on what the writer wrote."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialsim_env.relations import scene, vocabulary
from spatialsim_env.relations.geometry import cameras
from spatialsim_env.relations.rel3d import published, records, vectors

FOLDER = Path(__file__).parents[3] / "data" / "rel3d"
SMALL, ODD = FOLDER / "c_0.7_c_0.3.json", FOLDER / "odd.json"


@pytest.fixture(scope="module")
def small() -> published.Split:
    return published.load(SMALL)


@pytest.fixture
def data() -> dict:
    return json.loads(SMALL.read_text())


def written(folder: Path, data: object, name: str = "file.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(data))
    return path


def test_names_are_verbatim_and_their_order_is_the_class_index(small, data):
    assert small.predicates == tuple(data["predicates"])
    assert small.objects == ("Ball", "Box", "Chair", "Cup", "Desk ", "Ladder", "Lamp", "Table")
    assert {*small.predicates} == {*vocabulary.PREDICATES}
    assert [small.predicates[i] for i in small.train.predicate[[0, 6]]] == ["on", "to the left of (wrt you)"]
    assert [small.objects[i] for i in small.train.object[[0, 4]]] == ["Table", "Desk "]
    assert small.name == "c_0.7_c_0.3"
    assert small.problems == ()


def test_columns_of_a_record_by_hand(small):
    """A box of 0.5 with its centre at (0, 0.75, -4) and its front at 3.75; focal length 1000, middle (640, 360)."""
    train = small.train
    assert len(train) == 16
    assert train.label[:2].tolist() == [True, False]
    width = 500 / 3.75
    assert np.allclose(train.boxes[0, 0], [640 - width / 2, 360 - 1000 / 3.75, width, width], atol=0.06)
    assert train.picture_size[0].tolist() == [1280, 720]
    assert train.rgb[0].endswith("/on - Box_b1 - Table_c1 - initialState cam0 rgb.png")
    assert train.cameras[0]["info"] == {"elevation_id": 1, "rotation_id": 0}
    center, turn, sizes = vectors.from_aligned_absolute(train.vectors["aligned_absolute"][:1])
    assert np.allclose(center, [[[0, 0.75, -4], [0, 0, -4]]])
    assert np.allclose(turn, np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]]).T)
    assert np.allclose(sizes, [[[0.5] * 3, [1, 2, 1]]])
    assert np.allclose(train.vectors["aligned_relative"][0], [0, 0, -0.75, 0, 0, 0, 0.5, 0.5, 0.5, 1, 2, 1])
    assert np.allclose(train.up, [0, 1, 0])


def test_dtypes_and_shapes_hold_for_empty_lists_too(tmp_path, data):
    empty = published.load(written(tmp_path, {**data, "valid": []})).valid
    assert len(empty) == 0
    for name, column in published.load(SMALL).valid._columns():
        if isinstance(column, np.ndarray):
            other = dict(empty._columns())[name]
            assert other.dtype == column.dtype
            assert other.shape[1:] == column.shape[1:]
    assert empty.up.shape == (0, 3)


def test_pairs_differ_in_state_and_label_alone(small):
    for samples in (small.train, small.valid, small.test):
        for number in range(len(samples) // 2):
            rows = np.flatnonzero(samples.pair == number)
            assert sorted(samples.label[rows]) == [False, True]
            assert len({records.parse_name(samples.rgb[row])[::2] for row in rows}) == 1
            assert len({records.parse_name(samples.rgb[row])[1] for row in rows}) == 2


def test_groups_are_predicate_subject_object(small):
    """The first four train samples are one group from two cameras; no other group has four."""
    assert Counter(small.train.group.tolist()).most_common(1) == [(small.train.group[0], 4)]
    assert len({*small.train.group.tolist()}) == 7
    assert not {*small.train.group.tolist()} & {*small.valid.group.tolist()}


def test_counts(small):
    assert small.counts()["on"] == (6, 2, 2)
    assert small.counts()["outside"] == (0, 0, 0)
    assert sum(map(sum, small.counts().values())) == 28


KEPT = {
    records.ZERO_BOX: 1,
    records.ONE_LABEL: 2,
    records.ALONE: 2,  # a picture without its partner, and the third of three states
    records.NO_STATE: 1,
    records.TWICE: 1,
    records.NO_CAMERA: 1,
    records.NO_DEPTH: 1,
}
LEFT_OUT = {
    records.MISSING: 1,
    records.PREDICATE: 1,
    records.NAME: 1,
    records.NUMBER: 3,  # in a vector, in a box, for the width
    records.LENGTH: 1,
    records.FINITE: 1,
    records.LABEL: 1,
    records.SIZE: 1,
    records.NOT_RECORD: 1,
    records.TEXT: 1,
}


def test_odd_records_are_named_and_the_others_are_read():
    split = published.load(ODD)
    assert split.train.problems == KEPT | LEFT_OUT
    assert len(split.train) == 26 - sum(LEFT_OUT.values())
    assert split.train.pair.tolist() == [0, 0, -1, -1, -1, 1, 1, -1, -1, 2, 2, -1, 3, 3]
    assert (len(split.valid), len(split.test)) == (6, 6)
    assert all(problem.is_kept == (problem.kind in KEPT) for problem in split.problems)
    assert [problem.index for problem in split.problems if not problem.is_kept] == list(range(14, 26))
    texts = [str(problem) for problem in split.problems]
    assert "train[15]: unknown predicate: 'onto' is not in the file's list (names count to the last space)" in texts
    assert "train[0]: zero-size box: subject's box has width 0 and height 129" in texts


def test_strict_raises_with_the_first_problem():
    with pytest.raises(published.RelationDataError, match=r"train\[0\]: zero-size box.*21 problems"):
        published.load(ODD, strict=True)
    assert len(published.load(SMALL, strict=True).train) == 16


def _broken(record: dict, place: tuple, value: object) -> dict:
    holder = record
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return record


@pytest.mark.parametrize(
    ("place", "value", "kind"),
    [
        (("subject",), "Box", records.MISSING),
        (("subject", "bbox"), [0, 0, 1, 1], records.MISSING),
        (("object", "name"), ["Box"], records.NAME),
        (("object", "bbox", "top"), True, records.NUMBER),
        (("object", "bbox", "top"), "nan", records.FINITE),
        (("object", "bbox", "top"), 10**400, records.NUMBER),
        (("predicate",), None, records.PREDICATE),
        (("label",), 1, records.LABEL),
        (("width",), 0, records.NUMBER),
        (("height",), 720.5, records.NUMBER),
        (("transform_vector",), [1, 2], records.MISSING),
        (("transform_vector", "raw_absolute"), None, records.LENGTH),
        (("transform_vector", "raw_absolute", 3), 10**400, records.FINITE),
        (("transform_vector", "raw_absolute", 3), [1.0], records.NUMBER),
        (("transform_vector", "raw_absolute", 3), True, records.NUMBER),
        (("depth",), 3, records.TEXT),
        (("extra",), 3, records.EXTRA),
        (("extra",), {"axis": [[1], [2, 3]]}, records.EXTRA),
        (("extra",), {"axis": 1}, records.EXTRA),  # which the record before has not
    ],
)
def test_one_broken_record_does_not_lose_the_rest(tmp_path, data, place, value, kind):
    data["train"][3] = _broken(data["train"][3], place, value)
    split = published.load(written(tmp_path, data))
    assert len(split.train) == 15
    assert split.train.problems == {kind: 1, records.ALONE: 1}
    assert split.train.pair.tolist()[:4] == [0, 0, -1, 1]


@pytest.mark.parametrize("value", ["far", [1.0], None, {"a": 1}, [[1], [2, 3]], 10**20, [10**20], True])
def test_extras_have_one_form(tmp_path, data, value):
    """The records have a number; one has something else."""
    for index, record in enumerate(data["train"]):
        record["extra"] = {"amount": value if index == 3 else index / 2}
    split = published.load(written(tmp_path, data))
    assert split.train.problems == {records.EXTRA: 1, records.ALONE: 1}
    assert split.train.extra["amount"].tolist() == [0, 0.5, 1, *(index / 2 for index in range(4, 16))]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_value_anywhere_makes_the_loader_fail(tmp_path_factory, data):
    """Whatever stands in place of one value of one record, the file is read and the record is there or reported."""
    content = json.loads(SMALL.read_text())
    record = content["train"][5]
    place = [data.draw(st.sampled_from(sorted(record)))]
    while isinstance(holder := _at(record, place), dict) and data.draw(st.booleans()):
        place.append(data.draw(st.sampled_from(sorted(holder))))
    content["train"][5] = _broken(record, tuple(place), data.draw(json_values))
    split = published.load(written(tmp_path_factory.mktemp("any"), content))
    left_out = [problem for problem in split.problems if not problem.is_kept]
    assert len(split.train) == 16 - len(left_out)
    assert all(problem.index == 5 for problem in left_out)


def _at(record: dict, place: list[str]) -> object:
    for key in place:
        record = record[key]
    return record


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": None}, "no list 'train'"),
        ({"objects": {"Box": 0}}, "no list of names 'objects'"),
        ({"predicates": ["on", "on"]}, "names some of its predicates twice"),
    ],
)
def test_files_that_are_no_split_files(tmp_path, data, change, message):
    with pytest.raises(published.RelationDataError, match=message):
        published.load(written(tmp_path, {**data, **change}))


@pytest.mark.parametrize("content", ["", "{", "[1]", "\ufffe", "[" * 10**5, "1" * 5000])
def test_files_that_are_not_json_objects(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(published.RelationDataError, match=r"is not JSON|holds a list"):
        published.load(path)


def test_a_missing_file_says_where_it_comes_from(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"c_0\.9_c_0\.1\.json.*princeton-vl/Rel3D"):
        published.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="princeton-vl/Rel3D"):
        published.load(SMALL, pictures_folder=tmp_path / "none")


def test_pictures_are_looked_up_only_if_asked(tmp_path, small):
    inside = tmp_path / "data" / "20200223"
    inside.mkdir(parents=True)
    (tmp_path / Path(small.train.rgb[0]).name).touch()  # by its name
    (tmp_path / small.train.rgb[1]).touch()  # by its path
    split = published.load(SMALL, pictures_folder=tmp_path)
    assert split.train.problems == {records.NO_PICTURE: 14}
    assert [problem.index for problem in split.problems if problem.split == "train"] == list(range(2, 16))
    assert len(split.train) == 16


def test_a_file_of_the_published_name_is_compared_with_the_published_numbers(tmp_path, data):
    path = written(tmp_path, data, "c_0.9_c_0.1.json")
    with pytest.warns(published.RelationDataWarning, match=r"'on' \(6, 2, 2\) for \(1444, 186, 232\)"):
        split = published.load(path)
    assert len(split.train) == 16


def test_published_numbers_give_no_warning(tmp_path, data):
    def many(place: int) -> list:
        return [
            {**data["train"][0], "predicate": name, "rgb": f"{name}{place}{i}"}
            for name, counts in vocabulary.COUNTS.items()
            for i in range(counts[place])
        ]

    full = {**data, "train": many(0), "valid": many(1), "test": many(2)}
    split = published.load(written(tmp_path, full, "c_0.9_c_0.1.json").parent)
    assert split.counts() == vocabulary.COUNTS
    assert sum(map(len, (split.train, split.valid, split.test))) == 27_336


def test_golden_loss_weight():
    """The published weight of "aligned to"; and the mean over the predicates is 1."""
    weights = published.balanced_weights([counts[0] for counts in vocabulary.COUNTS.values()])
    assert weights[vocabulary.INDEX["aligned to"]] == pytest.approx(0.80768040839482, abs=1e-12)
    assert weights.mean() == pytest.approx(1)


def test_loss_weights_of_samples(small):
    """Six on, four to the left (wrt you), two each of near, far from, aligned to; the others do not occur."""
    weights = published.loss_weights(small.train, 30)
    mean = (1 / 6 + 1 / 4 + 3 / 2) / 5
    expected = {"on": 1 / 6, "to the left of (wrt you)": 1 / 4, "near": 1 / 2, "far from": 1 / 2, "aligned to": 1 / 2}
    assert np.allclose(weights, [expected.get(name, 0) / mean for name in small.predicates])
    assert published.loss_weights(small.train[:0], 30).tolist() == [0] * 30


def test_slicing_keeps_meaning(small):
    rows = np.array([3, 0, 1])
    some = small.train[rows]
    assert len(some) == 3
    assert some.pair.tolist() == [1, 0, 0]
    assert some.rgb == tuple(small.train.rgb[row] for row in rows)
    assert np.array_equal(some.vectors["raw_absolute"], small.train.vectors["raw_absolute"][rows])
    assert np.array_equal(some.group, small.train.group[rows])
    assert len(small.train[2:6]) == 4
    assert len(small.train[small.train.label]) == 8
    assert len(small.train[5]) == 1


def test_concatenated(small):
    both = published.concatenate([small.train, small.valid[1:]])
    assert len(both) == 21
    assert both.pair.tolist() == [*np.repeat(range(8), 2), 8, 9, 9, 10, 10]
    assert both.cameras == small.train.cameras + small.valid.cameras[1:]
    with pytest.raises(published.RelationDataError, match="other extras"):
        published.concatenate([small.train, replace(small.train, extra={"axis": np.zeros(16)})])


def test_columns_of_other_lengths_are_refused(small):
    with pytest.raises(published.RelationDataError, match="different lengths"):
        replace(small.train, label=small.train.label[:3])
    with pytest.raises(published.RelationDataError, match="accepted are"):
        replace(small.train, vectors={"raw_absolute": np.zeros((16, 24))})


def equal(one: published.RelationSamples, other: published.RelationSamples) -> bool:
    columns = zip(one._columns(), other._columns(), strict=True)
    return all(
        name == again and (np.array_equal(a, b) and a.dtype == b.dtype if isinstance(a, np.ndarray) else a == b)
        for (name, a), (again, b) in columns
    )


def test_a_published_file_is_written_as_it_was(tmp_path, small, data):
    published.write(small, tmp_path / "again.json")
    again = published.load(tmp_path / "again.json")
    assert all(equal(getattr(small, split), getattr(again, split)) for split in published.SPLITS)
    raw = json.loads((tmp_path / "again.json").read_text())
    assert raw == data


def ours(n: int, seed: int = 0, split: str = "train") -> published.RelationSamples:
    """Pairs of random scenes under names of the published pattern, with every extra."""
    rng = np.random.default_rng(seed)
    scenes = scene.objects(
        rng.uniform(-2, 2, (n, 2, 3)),
        scene.yaw_rotation(rng.uniform(0, 360, (n, 2))),
        rng.uniform(0.1, 1, (n, 2, 3)),
        rng.integers(7, size=(n, 2)),
    )
    observers = scene.observers(rng.uniform(2, 3, (n, 3)), rng.uniform(-1, 1, (n, 3)))
    predicate, subject, other = (np.repeat(rng.integers(most, size=n // 2), 2) for most in (30, 5, 5))
    names = [
        records.picture_name(
            vocabulary.PREDICATES[predicate[i]], f"a_{i // 2}", f"b_{i // 2}", records.STATES[i % 2], 0
        )
        for i in range(n)
    ]
    return published.RelationSamples(
        predicate=predicate,
        subject=subject,
        object=other,
        label=np.arange(n) % 2 == 0,
        boxes=rng.uniform(0, 500, (n, 2, 4)).astype(np.float32),
        picture_size=np.full((n, 2), [640, 480], np.int32),
        vectors=vectors.all_of(scenes, observers),
        pair=np.arange(n) // 2,
        rgb=tuple(names),
        depth=("",) * n,
        cameras=cameras.camera_infos(observers, fov=1.0),
        extra={
            "axis": np.arange(n) % 6,
            "margin": rng.normal(size=n),
            "up": scene.eye_rotation(observers)[:, 2],
            "settled": np.arange(n) % 3 == 0,
            "frame": np.array(["none", "relative"])[np.arange(n) % 2],
        },
    )


def test_a_file_of_ours_comes_back_whole(tmp_path):
    parts = {split: ours(n, n) for split, n in zip(published.SPLITS, (40, 10, 20), strict=True)}
    split = published.Split(**parts, predicates=vocabulary.PREDICATES, objects=("p", "q", "r", "s", "t "), name="ours")
    published.write(split, tmp_path / "ours.json")
    again = published.load(tmp_path / "ours.json")
    published.write(split, tmp_path / published.MAIN)
    assert len(published.load(tmp_path).train) == 40, "no word about the published numbers"
    assert all(equal(getattr(split, part), getattr(again, part)) for part in published.SPLITS)
    assert (again.predicates, again.objects, again.name, again.problems) == (
        split.predicates,
        split.objects,
        "ours",
        (),
    )
    assert np.allclose(again.train.up, replace(again.train, extra={}).up), "cameras tell the same as the extra"
    box = json.loads((tmp_path / "ours.json").read_text())["train"][0]["subject"]["bbox"]
    assert all(type(value) is str for value in box.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pair": np.array([0, 0, 0, 0])}, "pairs of train"),
        ({"pair": np.array([0, 0, -1, -1])}, "pairs of train"),
        ({"pair": np.array([0, 1, 0, 1])}, "pairs of train"),
        ({"predicate": np.array([0, 0, 30, 30])}, "predicate outside 0 to 29"),
        ({"subject": np.array([0, 0, -1, -1])}, "subject outside"),
        ({"cameras": ({}, {}, {}, object())}, "cannot be written as JSON"),
        ({"extra": {"margin": np.array([0, 1, np.nan, 2])}}, "cannot be written as JSON"),
    ],
)
def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path, change, message):
    good = ours(4)
    path = tmp_path / "ours.json"
    path.write_text("before")
    bad = published.Split(replace(good, **change), good, good, vocabulary.PREDICATES, ("p",) * 5, "ours")
    with pytest.raises(published.RelationDataError, match=message):
        published.write(bad, path)
    assert path.read_text() == "before"
    assert [*tmp_path.iterdir()] == [path]


def test_members_of_cut_pairs_are_written_without_one(tmp_path):
    part = ours(8)[[0, 1, 2, 5, 7]]
    split = published.Split(part, part, part, vocabulary.PREDICATES, tuple("pqrst"), "ours")
    published.write(split, tmp_path / "ours.json")
    assert published.load(tmp_path / "ours.json").train.pair.tolist() == [0, 0, -1, -1, -1]


def test_names_of_pictures():
    name = records.picture_name("on - top", "Cup_1", "Desk _2", "finalState2", 11)
    assert name == "on - top - Cup_1 - Desk _2 - finalState2 cam11 rgb.png"
    assert records.parse_name("some/folder/" + name) == ("on - top - Cup_1 - Desk _2", "finalState2", 11)
    assert records.parse_name("on - Cup - Desk cam1 rgb.png") is None
    with pytest.raises(records.RelationDataError, match="state is 'before'"):
        records.picture_name("on", "a", "b", "before", 0)


def test_sizes_in_space(tmp_path, data):
    """A flat mesh stays and is named; a negative size is none."""
    for row, size in ((0, 0.0), (2, -1.0)):
        data["train"][row]["transform_vector"]["aligned_absolute"][6] = size
    split = published.load(written(tmp_path, data))
    assert [(x.index, x.kind) for x in split.problems if x.kind in (records.FLAT, records.SIZE)] == [
        (0, records.FLAT),
        (2, records.SIZE),
    ]
    assert len(split.train) == 15
