"""Vectors of hand-computed scenes, round trips both ways, encodings that do not jump."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from spatialsim_env.relations import scene
from spatialsim_env.relations.rel3d import vectors

PLAIN = np.concatenate([np.zeros(3), [1, 0, 0], [0, 1, 0]])[None]  # an observer whose frame is the world's
seeds = st.integers(0, 2**32 - 1)


def random_scenes(seed: int, n: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    turn = Rotation.random(2 * n, random_state=rng.integers(2**31)).as_matrix().reshape(n, 2, 3, 3)
    turn[0] = vectors.AXIS_SWAPS[rng.integers(24, size=2)]
    scenes = scene.objects(
        rng.uniform(-3, 3, (n, 2, 3)), turn, rng.uniform(0.1, 2, (n, 2, 3)), rng.integers(7, size=(n, 2))
    )
    eye = Rotation.random(n, random_state=rng.integers(2**31)).as_matrix()
    return scenes, np.concatenate([rng.uniform(-5, 5, (n, 3)), eye[..., 0], eye[..., 1]], axis=-1)


def about(axis: str, degrees: float) -> np.ndarray:
    return Rotation.from_euler(axis, degrees, degrees=True).as_matrix()


@pytest.mark.parametrize(
    ("columns", "angles"),  # where x, y and z go
    [
        (((1, 0, 0), (0, 1, 0), (0, 0, 1)), (0, 0, 0)),
        (((0, 1, 0), (-1, 0, 0), (0, 0, 1)), (90, 0, 0)),
        (((1, 0, 0), (0, 0, 1), (0, -1, 0)), (0, 90, 0)),
        (((0, 0, -1), (0, 1, 0), (1, 0, 0)), (0, 0, 90)),
        (((0, 1, 0), (0, 0, 1), (1, 0, 0)), (90, 0, 90)),  # about z first, then about the fixed y
        (((-1, 0, 0), (0, -1, 0), (0, 0, 1)), (180, 0, 0)),
        (((0, 0, 1), (1, 0, 0), (0, 1, 0)), (0, -90, -90)),  # front to the camera, up up: at the lock
    ],
)
def test_angles_of_quarter_turns(columns, angles):
    turn = np.array(columns, float).T
    assert np.allclose(vectors.euler(turn), angles)
    assert np.allclose(vectors.from_euler(np.array(angles)), turn)


def test_a_plain_scene_in_a_plain_frame():
    objects = scene.objects([[1, 2, -3], [-1, 0, -4]], [np.eye(3), about("z", 90)], [[1, 2, 3], [0.5, 1, 2]], [0, 0])
    expected = [1, 2, -3, 0, 0, 0, 2, 4, 6, -1, 0, -4, 90, 0, 0, 1, 2, 4]
    assert np.allclose(vectors.aligned_absolute(objects[None], PLAIN), expected)
    raw = [1, 2, -3, 0, 0, 0, 0, 0, 0, 2, 4, 6, -1, 0, -4, 90, 0, 0, 0, 0, 0, 1, 2, 4]
    assert np.allclose(vectors.raw_absolute(objects[None], PLAIN), raw)


def test_a_mesh_that_is_modelled_along_other_axes():
    """Front along the mesh's y, up along its z, so left along -x: a quarter turn about z from mesh to axes."""
    aligning = about("z", 90)
    objects = scene.objects([[0, 0, -4]] * 2, [np.eye(3)] * 2, [[1, 2, 3]] * 2, [0, 0])
    per_object = [0, 0, -4, -90, 0, 0, 90, 0, 0, 4, 2, 6]
    assert np.allclose(vectors.raw_absolute(objects[None], PLAIN, aligning), per_object * 2)


def test_what_an_observer_in_the_room_sees():
    """From (0, -5, 1) along y: the world's x, y, z are the frame's x, minus z, y."""
    observer = scene.observers([[0, -5, 1]], [[0, 0, 1]])
    faces_back = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]], float).T  # front to the observer
    objects = scene.objects([[1, 0, 2], [0, 3, 1]], [faces_back] * 2, [[0.5, 1, 1.5]] * 2, [0, 0])
    center, turn, sizes = vectors.from_aligned_absolute(vectors.aligned_absolute(objects[None], observer))
    assert np.allclose(center, [[1, 1, -5], [0, 0, -8]])
    assert np.allclose(turn, np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]]).T)
    assert np.allclose(sizes, [1, 2, 3])


def test_relative_vector_by_hand():
    """The subject's front is y and its left -x; the object is turned a quarter further."""
    objects = scene.objects([[0, 0, 1], [3, 4, 1.5]], scene.yaw_rotation([90, 180]), [[1, 2, 3], [4, 5, 6]], [0, 0])
    assert np.allclose(vectors.aligned_relative(objects[None]), [4, -3, 0.5, 90, 0, 0, 2, 4, 6, 8, 10, 12])


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_scenes_come_back(seed):
    scenes, observers = random_scenes(seed)
    found = vectors.to_scenes(vectors.aligned_absolute(scenes, observers), observers, scene.kind(scenes))
    assert np.allclose(found, scenes)
    center, turn, sizes = vectors.from_aligned_relative(vectors.aligned_relative(scenes))
    axes = scene.rotation(scenes)
    assert np.allclose(axes[:, 0] @ turn, axes[:, 1])
    there = np.einsum("bij,bj->bi", axes[:, 0], center) + scenes[:, scene.SUBJECT, scene.CENTER]
    assert np.allclose(there, scenes[:, scene.OBJECT, scene.CENTER])
    assert np.allclose(sizes, 2 * scenes[..., scene.HALF])


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_raw_and_aligned_tell_the_same(seed):
    scenes, observers = random_scenes(seed)
    aligning = vectors.AXIS_SWAPS[np.random.default_rng(seed).integers(24, size=(len(scenes), 2))]
    center, turn, found, sizes = vectors.from_raw_absolute(vectors.raw_absolute(scenes, observers, aligning))
    assert np.allclose(found, aligning)
    expected = vectors.from_aligned_absolute(vectors.aligned_absolute(scenes, observers))
    along = np.abs(np.einsum("bkji,bkj->bki", found, sizes))  # as the published features have it
    for one, other in zip((center, turn @ found, along), expected, strict=True):
        assert np.allclose(one, other)


@given(st.lists(st.floats(-180, 180), min_size=3, max_size=3), st.sampled_from([None, -90, 90]))
@settings(max_examples=100, deadline=None)
def test_angles_give_the_same_rotation_also_at_the_lock(angles, about_x):
    angles = [angles[0], angles[1] if about_x is None else about_x, angles[2]]
    turn = vectors.from_euler(angles)
    again = vectors.euler(turn)
    assert np.allclose(vectors.from_euler(again), turn, atol=1e-6)
    assert np.all(np.abs(again) <= 180 + 1e-9)
    assert abs(again[1]) <= 90 + 1e-9


def test_angles_are_those_of_scipy():
    turn = Rotation.random(500, random_state=0)
    assert np.allclose(vectors.euler(turn.as_matrix()), turn.as_euler("zxy", degrees=True))


def test_numbers_come_back():
    rng = np.random.default_rng(0)
    low, high = np.array([[-5] * 3 + [-180, -89, -180] + [0.1] * 3, [5] * 3 + [180, 89, 180] + [2] * 3])
    rows = rng.uniform(np.tile(low, 2), np.tile(high, 2), (50, 18))
    observers = np.repeat(PLAIN, 50, axis=0)
    assert np.allclose(vectors.aligned_absolute(vectors.to_scenes(rows, observers), observers), rows)


def test_encodings_by_hand():
    row = np.array([[1, 2, 3, 90, 0, 180, 7, 8, 9, 10, 11, 12]], float)
    assert np.allclose(vectors.encode(row, "aligned_relative"), row)
    sines = vectors.encode(row, "aligned_relative", "sincos")
    assert np.allclose(sines, [[1, 2, 3, 1, 0, 0, 0, 1, -1, 7, 8, 9, 10, 11, 12]])
    row[0, 3:6] = 90, 0, 0
    columns = vectors.encode(row, "aligned_relative", "6d")
    assert np.allclose(columns, [[1, 2, 3, 0, 1, 0, -1, 0, 0, 7, 8, 9, 10, 11, 12]])


@pytest.mark.parametrize(
    ("name", "widths"), [("raw_absolute", (24, 36)), ("aligned_absolute", (18, 24)), ("aligned_relative", (12, 15))]
)
def test_widths(name, widths):
    scenes, observers = random_scenes(0)
    rows = vectors.all_of(scenes, observers)[name]
    for encoding, width in zip(("degrees", "sincos", "6d"), (widths[0], widths[1], widths[1]), strict=True):
        assert vectors.encoded_width(name, encoding) == width
        assert vectors.encode(rows, name, encoding).shape == (8, width)


def _relative(turn: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(3), vectors.euler(turn), np.ones(6)])[None]


@pytest.mark.parametrize(("axis", "degrees"), [("z", 180), ("y", 180), ("x", 90)])
def test_continuity_across_the_wrap_and_the_lock(axis, degrees):
    """A turn from 0.05 degrees before to 0.05 degrees past: degrees jump, an encoding that claims not to does not."""
    before, past = (_relative(about(axis, degrees + side)) for side in (-0.05, 0.05))
    assert np.abs(before - past).max() > 170
    step = {
        encoding: np.abs(
            vectors.encode(before, "aligned_relative", encoding) - vectors.encode(past, "aligned_relative", encoding)
        ).max()
        for encoding in ("sincos", "6d")
    }
    assert step["6d"] < 0.002
    assert (step["sincos"] < 0.002) == (axis != "x")  # at the lock sines and cosines jump with the angles


def test_refusals():
    with pytest.raises(ValueError, match=r"have shape \(2, 12\); accepted is \(B, 18\)"):
        vectors.from_aligned_absolute(np.zeros((2, 12)))
    with pytest.raises(ValueError, match="encoding is 'quaternion'; accepted are degrees, sincos, 6d"):
        vectors.encode(np.zeros((1, 18)), "aligned_absolute", "quaternion")
    with pytest.raises(ValueError, match="vector is 'aligned'"):
        vectors.encoded_width("aligned", "6d")
