"""Scenes of hand-made annotation CSVs, of full.json and of samples; expected places by hand."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from spatialsim_env.relations import scene
from spatialsim_env.relations.rel3d import published, scene_files, vectors
from spatialsim_env.relations.rel3d.records import RelationDataError, parse_name

FOLDER = Path(__file__).parents[3] / "data" / "rel3d"
SHAPES = FOLDER / "shapes"


@pytest.fixture(scope="module")
def annotations() -> dict[str, scene_files.Annotation]:
    return {annotation.name: annotation for annotation in scene_files.read_annotations(FOLDER)[0]}


def bounds(annotation: scene_files.Annotation) -> np.ndarray:
    return np.array([scene_files.mesh_bounds(thing, SHAPES) for thing in annotation.things])


def test_what_is_read_and_what_is_reported():
    annotations, problems = scene_files.read_annotations(FOLDER)
    assert [annotation.name for annotation in annotations] == [
        "on - Box_b1 - Table_t1",
        "near - Cup_c1 - Table_t1",
        "to the left of (wrt you) - Cup_c1 - Box_b1",
        "over - Box_b1 - Table_t1",
    ]
    assert [str(problem) for problem in problems] == [
        "assignments-contrastive.csv row 1: the relation 'across'",
        "assignments-contrastive.csv row 2: result is not JSON",
        "assignments-contrastive.csv row 3: no fig_2_correct",
        "assignments-contrastive.csv row 4: the same as a row before",
        "assignments-contrastive.csv row 5: front [0, 0, 1] and up [0, 0, 1] are not perpendicular unit vectors",
        "assignments-contrastive.csv row 6: 1 columns; accepted are at least 4",
        "assignments-contrastive.csv row 7: transforms shear in finalState",
    ]
    assert [problem.is_kept for problem in problems] == [False] * 6 + [True]
    assert len(scene_files.read_annotations(FOLDER / scene_files.CSV_NAMES[0])[0]) == 2


def test_states_that_are_drawn(annotations):
    """finalState2 counts where it was found correct, and takes finalState's place where both are the same (0.05)."""
    rendered = [annotation.rendered for annotation in annotations.values()]
    assert rendered[0] == ("initialState", "finalState")
    assert rendered[1] == ("initialState", "finalState2")
    assert rendered[2] == ("initialState", "finalState", "finalState2")
    assert [annotation.frontal for annotation in annotations.values()] == [False, False, True, False]


def test_transforms_by_hand(annotations):
    """(0, 0.75, 2) with y up and the floor at -0.5 is (0, -2, 1.25) with z up and the floor at 0."""
    transforms = annotations["on - Box_b1 - Table_t1"].transforms["initialState"]
    assert np.allclose(transforms[0], [[1, 0, 0, 0], [0, 0, -1, -2], [0, 1, 0, 1.25], [0, 0, 0, 1]])
    # at x = 1, twice as large; x is mirrored
    transforms = annotations["near - Cup_c1 - Table_t1"].transforms["initialState"]
    assert np.allclose(transforms[0], [[2, 0, 0, -1], [0, 0, -2, -2], [0, 2, 0, 1], [0, 0, 0, 1]])
    # a quarter turn about the vertical, seen in the mirror: the mesh's x goes to -y, its z to -x
    transforms = annotations["to the left of (wrt you) - Cup_c1 - Box_b1"].transforms["initialState"]
    assert np.allclose(transforms[0, :3, 0], [0, -1, 0])
    assert np.allclose(transforms[0, :3, 2], [-1, 0, 0])
    assert np.allclose(transforms[0, :3, 3], [1, 0, 0.5])


def test_scenes_by_hand(annotations):
    """A table of 2 x 1 x 1 with the box of 0.5 on it; the table stands on the floor and faces -y."""
    annotation = annotations["on - Box_b1 - Table_t1"]
    found = annotation.scene("initialState", bounds(annotation))
    scene.validate(found[None])
    assert np.allclose(found[:, scene.CENTER], [[0, -2, 1.25], [0, -2, 0.5]])
    assert np.allclose(found[:, scene.HALF], [[0.25] * 3, [0.5, 1, 0.5]])
    assert np.allclose(found[:, scene.FRONT], [0, -1, 0])
    assert np.allclose(found[:, scene.UP], [0, 0, 1])
    bottom = scene.corners(found)[..., 2].min(axis=-1)
    assert np.allclose(bottom, [1, 0])


def test_a_mesh_off_its_origin_and_turned(annotations):
    """The cup's mesh spans 0 to 0.5, 0.5, 0.25 and faces along its x, which the transform turns to -y."""
    annotation = annotations["to the left of (wrt you) - Cup_c1 - Box_b1"]
    cup = annotation.scene("initialState", bounds(annotation))[scene.SUBJECT]
    assert np.allclose(cup[scene.CENTER], [1 - 0.125, -0.25, 0.75])
    assert np.allclose(cup[scene.FRONT], [0, -1, 0])
    assert np.allclose(cup[scene.HALF], [0.25, 0.125, 0.25])


def test_meshes_lie_where_the_scenes_do(annotations, tmp_path):
    pytest.importorskip("trimesh")
    for annotation in list(annotations.values())[:3]:
        for state in annotation.rendered:
            meshes = annotation.meshes(state, SHAPES)
            corners = scene.corners(annotation.scene(state, bounds(annotation))).reshape(-1, 3)
            assert np.allclose(meshes.bounds, [corners.min(axis=0), corners.max(axis=0)])
            meshes.export(tmp_path / "scene.obj")
            assert (tmp_path / "scene.obj").stat().st_size > 0


def test_pictures_of_full_json_name_their_scenes(annotations):
    pictures, problems = scene_files.read_full(FOLDER / "full.json")
    assert [(picture.split, picture.state, picture.camera) for picture in pictures] == [
        ("train", "initialState", 0),
        ("train", "finalState", 0),
        ("test", "finalState2", 2),
    ]
    assert all(picture.state in annotations[picture.scene].rendered for picture in pictures)
    assert pictures[0].record == {"rgb": "data/20200223/on - Box_b1 - Table_t1 - initialState cam0 rgb.png"}
    assert [str(problem) for problem in problems] == [
        "full.json train row 2: no picture's name in rgb: 'box.png'",
        "full.json test row 1: no picture's name in rgb: None",
    ]


def test_names_of_samples_name_their_scenes(annotations):
    name = "data/20200223/on - Box_b1 - Table_t1 - finalState cam3 rgb.png"
    assert parse_name(name)[0] in annotations


def test_scenes_of_published_samples_by_hand():
    """The camera at the origin looks along -z with y up; with z up it is 0.5 over the floor and looks along y."""
    samples = published.load(FOLDER / "c_0.7_c_0.3.json").train
    scenes, observers, rows = scene_files.scenes_of(samples)
    scene.validate(scenes, observers)
    assert rows.tolist() == list(range(16))
    assert np.allclose(observers, [0, 0, 0.5, 1, 0, 0, 0, 0, 1])
    assert np.allclose(scenes[0, :, scene.CENTER], [[0, 4, 1.25], [0, 4, 0.5]])
    assert np.allclose(scenes[0, :, scene.FRONT], [0, -1, 0])
    assert np.allclose(scenes[0, :, scene.HALF], [[0.25] * 3, [0.5, 1, 0.5]])
    assert np.allclose(vectors.aligned_absolute(scenes, observers)[:, :3], samples.vectors["aligned_absolute"][:, :3])


def test_samples_without_a_camera_have_no_scene():
    samples = published.load(FOLDER / "odd.json").train
    without = [row for row, camera in enumerate(samples.cameras) if camera is None]
    assert len(without) == 1
    assert scene_files.scenes_of(samples)[2].tolist() == [row for row in range(len(samples)) if row not in without]


def test_missing_files_say_where_they_come_from(tmp_path, annotations):
    with pytest.raises(FileNotFoundError, match="Rel3D_Render"):
        scene_files.read_annotations(tmp_path)
    with pytest.raises(FileNotFoundError, match="Rel3D_Render"):
        scene_files.read_full(tmp_path / "full.json")
    with pytest.raises(FileNotFoundError, match="no mesh"):
        scene_files.mesh_bounds(annotations["on - Box_b1 - Table_t1"].things[0], tmp_path)


def test_other_files_are_refused(tmp_path, annotations):
    path = tmp_path / "full.json"
    path.write_text('{"train": 3}')
    with pytest.raises(RelationDataError, match="'train' is a int; accepted are lists"):
        scene_files.read_full(path)
    path.write_text("[]")
    with pytest.raises(RelationDataError, match="accepted is an object"):
        scene_files.read_full(path)
    table = tmp_path / "some.csv"
    table.write_bytes(b"\xff\xfe1,2")
    with pytest.raises(RelationDataError, match="is not a CSV"):
        scene_files.read_annotations(table)
    annotation = annotations["on - Box_b1 - Table_t1"]
    with pytest.raises(RelationDataError, match="has no 'finalState2'; it has initialState, finalState"):
        annotation.scene("finalState2", bounds(annotation))
    with pytest.raises(RelationDataError, match="half sizes that are not positive"):
        annotation.scene("initialState", np.zeros((2, 2, 3)))


def _row(folder: Path, change) -> Path:
    with open(FOLDER / scene_files.CSV_NAMES[0], newline="") as file:
        columns = [*csv.reader(file)][1]
    description, result = json.loads(columns[1]), json.loads(columns[3])
    change(description, result)
    path = folder / "one.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file).writerow([columns[0], json.dumps(description), columns[2], json.dumps(result)])
    return path


def _matrix(value):
    def change(_, result):
        result["initialState"]["objectInfos"][0]["meshTransformMatrix"] = value

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_matrix("1,2,3"), "reshape|shape"),
        (_matrix(",".join(["nan"] * 16)), "not finite"),
        (_matrix(",".join(["x"] * 16)), "could not convert"),
        (_matrix([1] * 16), "split"),
        (lambda description, _: description["objectInfos"].pop(), "unpack"),
        (lambda description, _: description["objectInfos"][0].pop("front"), "no front"),
        (lambda description, _: description["objectInfos"][0].update(up=[0, 1]), "perpendicular unit vectors"),
        (lambda _, result: result.pop("initialState"), "no initialState"),
        (lambda _, result: result.update(fig_2_correct="Maybe"), "fig_2_correct is 'Maybe'"),
        (lambda _, result: result.update(fig_2_correct="Yes"), "no finalState2"),
        (lambda _, result: result.update(initialState=3), "subscriptable"),
    ],
)
def test_broken_rows_are_reported(tmp_path, change, text):
    annotations, problems = scene_files.read_annotations(_row(tmp_path, change))
    assert annotations == []
    assert len(problems) == 1
    assert re.search(text, problems[0].text)
