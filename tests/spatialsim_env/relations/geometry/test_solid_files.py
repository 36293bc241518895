"""Scenes as boxes and meshes, by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import solid_files

SCENE = scene.objects(
    [[0, 0, 1], [2, 0, 0.5]],
    scene.yaw_rotation([90, 0]),
    [[1, 2, 0.5], [0.5, 0.5, 0.5]],
    [0, scene.KIND_NAMES.index("table")],
)


def test_boxes_by_hand():
    """The first is one block whose front is y; the second a table: a slab of thickness 0.12 and four legs under it."""
    found = solid_files.boxes(SCENE)
    assert found.of.tolist() == [0, 1, 1, 1, 1, 1]
    assert np.allclose(found.center[0], [0, 0, 1])
    assert np.allclose(found.rotation[0].T, [[0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    assert np.allclose(found.half[0], [1, 2, 0.5])
    assert np.allclose(found.center[1], [2, 0, 0.94])
    assert np.allclose(found.half[1], [0.5, 0.5, 0.06])
    legs = found.center[2:] - [2, 0, 0.44]
    assert np.allclose(np.abs(legs), [0.44, 0.44, 0])
    assert np.allclose(found.half[2:], [0.06, 0.06, 0.44])


def test_every_kind_fills_its_box():
    for kind in range(len(scene.KINDS)):
        objects = scene.objects([[0, 0, 1], [4, 0, 1]], [np.eye(3)] * 2, [[1, 0.5, 0.75]] * 2, [kind, kind])
        found = solid_files.boxes(objects)
        first = found.of == scene.SUBJECT
        assert np.allclose((found.center + found.half)[first].max(axis=0), [1, 0.5, 1.75])
        assert np.allclose((found.center - found.half)[first].min(axis=0), [-1, -0.5, 0.25])


def test_an_obj_has_both_objects(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    solid_files.write_obj(SCENE, tmp_path / "scene.obj")
    text = (tmp_path / "scene.obj").read_text()
    assert [line for line in text.splitlines() if line.startswith("o ")] == ["o subject", "o object"]
    parts = [
        [line.split()[1:] for line in part.splitlines() if line.startswith("v ")] for part in text.split("\no ")[1:]
    ]
    bounds = [[np.array(part, float).min(axis=0), np.array(part, float).max(axis=0)] for part in parts]
    assert np.allclose(bounds[0], [[-2, -1, 0.5], [2, 1, 1.5]])
    assert np.allclose(bounds[1], [[1.5, -0.5, 0], [2.5, 0.5, 1]])
    assert np.allclose(trimesh.load_mesh(tmp_path / "scene.obj").bounds, [[-2, -1, 0], [2.5, 1, 1.5]])
    volume = sum(mesh.volume for mesh in solid_files.mesh(SCENE).geometry.values())
    assert volume == pytest.approx(2 * 4 * 1 + 0.12 + 4 * 0.12 * 0.12 * 0.88)


def test_boxes_as_json(tmp_path):
    solid_files.write_boxes(SCENE, tmp_path / "boxes.json")
    rows = json.loads((tmp_path / "boxes.json").read_text())
    assert [row["of"] for row in rows] == ["subject"] + ["object"] * 5
    assert np.allclose(rows[0]["front"], [0, 1, 0])
    assert np.allclose(rows[0]["left"], [-1, 0, 0])
    assert np.allclose(rows[0]["half"], [1, 2, 0.5])


def test_refusals(tmp_path):
    broken = SCENE.copy()
    broken[0, scene.HALF] = 0
    with pytest.raises(scene.RoomError, match="half sizes that are not positive"):
        solid_files.write_boxes(broken, tmp_path / "boxes.json")
    assert not (tmp_path / "boxes.json").exists()
