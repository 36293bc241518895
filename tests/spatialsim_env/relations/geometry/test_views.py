"""Views: where observers stand and what they see."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import views
from spatialsim_env.relations.pairs import categories
from spatialsim_env.relations.scene import RoomError


def _block(center, half=(0.5, 0.5, 0.5), degrees=0.0, kind=0):
    return scene.objects(center, scene.yaw_rotation(degrees), half, kind)


def _scenes(n, seed):
    rng = np.random.default_rng(seed)
    which = rng.integers(0, len(categories.NAMES), (n, 2))
    half = categories.draw_sizes(which, rng) / 2
    center = rng.uniform((-1.5, -1.5, 0), (1.5, 1.5, 1.5), (n, 2, 3)) + half * [0, 0, 1]
    return scene.objects(center, scene.yaw_rotation(rng.uniform(0, 360, (n, 2))), half, categories.KIND[which])


def _placed(scenes, seed, frontal=False):
    rng = np.random.default_rng(seed)
    directions = views.angles(len(scenes), frontal, rng)
    points = scene.corners(scenes).reshape(len(scenes), 16, 3)
    return views.place_observers(points, directions, rng.uniform(*views.FILLED, directions.shape[:2])), directions


def test_boxes_of_a_cube_on_the_axis():
    """A cube of side 1 whose centre is 4 before the eye: its near face, 3.5 away, spans FOCAL / 3.5 pixels."""
    one = np.stack([_block((0, 0, 0.5)), _block((0, 4, 0.5))])
    observer = scene.observers((0.0, -4.0, 0.5), (0.0, 0.0, 0.5))
    side = views.FOCAL / 3.5
    left, top, width, height = views.boxes(one, observer)[0]
    np.testing.assert_allclose([width, height], side)
    np.testing.assert_allclose([left, top], [views.WIDTH / 2 - side / 2, views.HEIGHT / 2 - side / 2])


def test_right_is_right_and_up_is_up_in_the_picture():
    observer = scene.observers((0.0, -4.0, 1.0), (0.0, 0.0, 1.0))
    center, right, up = views.pixels(np.array([[0.0, 0, 1], [1.0, 0, 1], [0.0, 0, 2]]), observer)
    np.testing.assert_allclose(center, [views.WIDTH / 2, views.HEIGHT / 2])
    np.testing.assert_allclose(right - center, [views.FOCAL / 4, 0], atol=1e-9)
    np.testing.assert_allclose(up - center, [0, -views.FOCAL / 4], atol=1e-9)


def test_field_of_view_of_the_lens():
    """A 35 mm lens before a sensor 36 mm wide and 9/16 as high."""
    np.testing.assert_allclose(np.tan(np.radians(views.FIELD_OF_VIEW) / 2), 36 * 9 / 16 / 2 / 35)


def test_what_is_behind_the_observer_is_refused():
    observer = scene.observers((0.0, 0.0, 1.0), (1.0, 0.0, 1.0))
    with pytest.raises(RoomError, match="behind"):
        views.pixels(np.array([[-1.0, 0.0, 1.0]]), observer)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), frontal=st.booleans())
def test_everything_is_in_the_picture_and_large(seed, frontal):
    scenes = _scenes(8, seed)
    observers, _ = _placed(scenes, seed, frontal)
    boxes = views.boxes(scenes[:, None].repeat(observers.shape[1], 1), observers)
    assert views.in_picture(boxes).all()
    edge = np.concatenate([boxes[..., :2], boxes[..., :2] + boxes[..., 2:]], axis=-1)
    half = np.array([views.WIDTH, views.HEIGHT] * 2) / 2
    reach = np.abs(edge / half - 1).max(axis=(2, 3))
    assert (reach <= views.FILLED[1] + 1e-9).all()
    assert (reach >= views.FILLED[0] - 1e-9).all()


def test_twelve_views_from_four_sides_and_three_heights():
    directions = np.degrees(views.angles(50, False, np.random.default_rng(0)))
    assert directions.shape == (50, 12, 2)
    turn, rise = views.JITTER
    elevations = np.repeat(views.ELEVATIONS, 4)
    assert (np.abs(directions[..., 1] - elevations) <= rise).all()
    relative = (directions[..., 0] - directions[:, :1, 0] - np.tile(views.AZIMUTHS, 3) + 180) % 360 - 180
    assert (np.abs(relative) <= 2 * turn).all()


def test_frontal_views_come_from_one_side():
    directions = np.degrees(views.angles(50, True, np.random.default_rng(0)))
    assert directions.shape == (50, 3, 2)
    assert (np.ptp(directions[..., 0], axis=1) <= 40 + 2 * views.JITTER[0]).all()


def test_observers_stand_above_the_floor_and_look_from_their_direction():
    scenes = _scenes(30, 3)
    observers, directions = _placed(scenes, 4)
    assert (observers[..., 2] > 0).all()
    away = scene.away(observers.reshape(-1, 9)).reshape(30, 12, 2)
    expected = -np.stack([np.cos(directions[..., 0]), np.sin(directions[..., 0])], axis=-1)
    np.testing.assert_allclose(away, expected, atol=1e-9)


def test_shares_of_the_picture_are_checked():
    with pytest.raises(RoomError, match="filled"):
        views.place_observers(np.zeros((1, 16, 3)), np.zeros((1, 1, 2)), [[0.0]])


def test_visible_shares():
    """A wall hides a small block behind it from one side and not from the other."""
    one = np.stack([_block((0, 1.0, 0.1), (0.1, 0.1, 0.1)), _block((0, 0, 0.5), (1.0, 0.05, 0.5))])[None]
    front = scene.observers((0.0, -4.0, 0.4), (0.0, 0.0, 0.4))
    back = scene.observers((0.0, 4.0, 3.0), (0.0, 0.0, 0.4))
    seen = views.visible(one, np.stack([front, back])[None])[0]
    assert seen[0].tolist() == [0.0, 1.0]
    assert seen[1, 0] == 1.0
    assert seen[1, 1] > 0.8


def test_what_is_in_a_deep_container_is_seen_from_above_alone():
    bin_ = _block((0, 0, 0.5), (0.3, 0.3, 0.5), kind=scene.KIND_NAMES.index("container"))
    one = np.stack([_block((0, 0, 0.2), (0.05, 0.05, 0.05)), bin_])[None]
    level = scene.observers((0.0, -4.0, 0.5), (0.0, 0.0, 0.5))
    above = scene.observers((0.0, -0.01, 4.0), (0.0, 0.0, 0.5))
    seen = views.visible(one, np.stack([level, above])[None])[0, :, 0]
    assert seen.tolist() == [0.0, 1.0]
