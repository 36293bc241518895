"""Gravity on scenes."""

import builtins

import numpy as np
import pytest

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import settling
from spatialsim_env.relations.scene import RoomError

pytest.importorskip("mujoco")

KIND = {name: index for index, name in enumerate(scene.KIND_NAMES)}


def _scene(first, second):
    return np.stack([scene.objects(c, scene.yaw_rotation(d), h, KIND[k]) for c, d, h, k in (first, second)])[None]


TABLE = ((0.0, 0.0, 0.4), 0, (0.5, 0.7, 0.4), "table")


def test_what_hangs_falls_to_the_floor():
    one = _scene(((0.0, 0.0, 0.5), 30, (0.1, 0.2, 0.15), "block"), ((1.5, 0.0, 0.4), 0, (0.5, 0.7, 0.4), "table"))
    (settled,), (still,) = settling.settle(one, [[False, False]])
    assert still
    np.testing.assert_allclose(settled[0, scene.CENTER], (0.0, 0.0, 0.15), atol=2e-3)
    np.testing.assert_allclose(settled[0, scene.UP], (0, 0, 1), atol=1e-2)


def test_what_flies_stays_and_carries():
    one = _scene(((0.2, 0.1, 1.6), 0, (0.1, 0.1, 0.1), "block"), ((0.0, 0.0, 1.0), 0, (0.6, 0.6, 0.2), "block"))
    (settled,), (still,) = settling.settle(one, [[False, True]])
    assert still
    np.testing.assert_array_equal(settled[1], one[0, 1])
    np.testing.assert_allclose(settled[0, scene.CENTER], (0.2, 0.1, 1.3), atol=2e-3)


def test_two_that_fly_are_left_alone():
    one = _scene(((0.2, 0.1, 1.6), 0, (0.1, 0.1, 0.1), "block"), TABLE)
    (settled,), (still,) = settling.settle(one, [[True, True]])
    assert still
    np.testing.assert_array_equal(settled, one[0])


def test_what_rests_stays_where_it_is():
    one = _scene(((0.1, -0.2, 0.9), 40, (0.1, 0.1, 0.1), "spire"), TABLE)
    (settled,), (still,) = settling.settle(one, [[False, False]])
    assert still
    np.testing.assert_allclose(settled, one[0], atol=5e-3)


def test_what_is_let_go_above_a_bowl_comes_to_lie_in_it():
    bowl = ((0.0, 0.0, 0.2), 0, (0.3, 0.3, 0.2), "container")
    one = _scene(((0.0, 0.0, 0.7), 0, (0.08, 0.08, 0.08), "block"), bowl)
    (settled,), (still,) = settling.settle(one, [[False, False]])
    assert still
    ground = 2 * scene.WALL * 0.2  # of the cavity
    np.testing.assert_allclose(settled[0, scene.CENTER], (0, 0, ground + 0.08), atol=3e-3)


def test_penetration_is_refused_by_row():
    good = _scene(((0.0, 0.0, 0.9), 0, (0.1, 0.1, 0.1), "block"), TABLE)
    bad = _scene(((0.0, 0.0, 0.82), 0, (0.1, 0.1, 0.1), "block"), TABLE)
    sunk = _scene(((2.0, 0.0, 0.05), 0, (0.1, 0.1, 0.1), "block"), TABLE)
    scenes = np.concatenate([good, bad, sunk])
    assert settling.penetrating(scenes).tolist() == [False, True, True]
    with pytest.raises(RoomError, match=r"scene 1 of 3 .* penetrate .*\(2 such scenes\)"):
        settling.settle(scenes, np.zeros((3, 2), bool))


def test_shape_of_flies_is_checked():
    with pytest.raises(RoomError, match="flies has shape"):
        settling.settle(_scene(TABLE, ((2.0, 0.0, 0.1), 0, (0.1, 0.1, 0.1), "block")), [False])


def test_lifted_scenes_have_nothing_below_the_floor():
    one = _scene(((0.0, 0.0, 0.05), 0, (0.1, 0.1, 0.1), "block"), ((1.0, 0.0, 0.2), 0, (0.1, 0.1, 0.1), "block"))
    up = settling.lift(one)
    np.testing.assert_allclose(up[0, :, scene.CENTER][:, 2], [0.1, 0.25])
    np.testing.assert_array_equal(settling.lift(up), up)


def test_missing_mujoco_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "mujoco":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"spatialsim-env\[relations\]"):
        settling.import_mujoco()
