"""Cameras in files: which way is up, frames, what is not known."""

from __future__ import annotations

import numpy as np
import pytest

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import cameras

LEVEL = {"origin": [0, 0, 0], "target": [0, 0, -1], "up": [0, 1, 0]}
DOWN_45 = {"origin": [0, 2, 2], "target": [0, 0, 0], "up": [0, 3, 0]}


def test_up_by_hand():
    half = np.sqrt(0.5)
    assert np.allclose(cameras.up([LEVEL, DOWN_45]), [[0, 1, 0], [0, half, half]])


def test_a_frame_by_hand():
    origin, turn = cameras.frames([DOWN_45])
    half = np.sqrt(0.5)
    assert np.allclose(origin, [[0, 2, 2]])
    assert np.allclose(turn[0].T, [[1, 0, 0], [0, half, -half], [0, half, half]])


def test_observers_come_back():
    rng = np.random.default_rng(0)
    observers = scene.observers(rng.uniform(1, 3, (20, 3)), rng.uniform(-1, 1, (20, 3)))
    infos = cameras.camera_infos(observers, fov=1.2)
    assert all(info["fov"] == 1.2 for info in infos)
    origin, turn = cameras.frames(infos)
    assert np.allclose(origin, observers[:, scene.EYE])
    assert np.allclose(turn, scene.eye_rotation(observers))
    assert np.allclose(cameras.up(infos), turn[:, 2])


@pytest.mark.parametrize(
    "unknown",
    [
        None,
        7,
        "camera",
        {},
        [1, 2, 3],
        {**LEVEL, "up": [0, 0, 1]},  # looks straight up
        {**LEVEL, "target": [0, 0, 0]},
        {**LEVEL, "origin": [0, 0, float("nan")]},
        {**LEVEL, "origin": [0, 0]},
        {**LEVEL, "origin": "far"},
    ],
)
def test_what_is_not_known_has_the_default(unknown):
    assert cameras.known([unknown, LEVEL]).tolist() == [False, True]
    assert np.allclose(cameras.up([unknown, DOWN_45])[0], [0, 1, 0])
    origin, turn = cameras.frames([unknown, LEVEL])
    assert np.isnan(origin[0]).all()
    assert np.isnan(turn[0]).all()
    assert np.isfinite(turn[1]).all()


def test_no_cameras():
    assert cameras.up([]).shape == (0, 3)
    assert cameras.frames([])[1].shape == (0, 3, 3)
