"""Pictures: that they show the scene where the projection says."""

import sys

import numpy as np
import pytest

from spatialsim_env.relations import rendering, scene
from spatialsim_env.relations.geometry import views
from spatialsim_env.relations.pairs import categories, proposals
from spatialsim_env.relations.rendering import Renderer, RenderingError
from spatialsim_env.relations.scene import RoomError

pytest.importorskip("mujoco")
SIZE = (640, 360)


@pytest.fixture(scope="module")
def renderer():
    try:
        with Renderer(SIZE, samples=0, shadows=0) as one:
            yield one
    except RenderingError as error:
        pytest.skip(str(error))


def _pair(center, half, kind="block", degrees=0.0):
    """An object and a small block far to its left."""
    thing = scene.objects(center, scene.yaw_rotation(degrees), half, scene.KIND_NAMES.index(kind))
    other = scene.objects((-1.0, 0.0, 0.1), scene.yaw_rotation(0), (0.1, 0.1, 0.1), 0)
    return np.stack([thing, other])


def _plain(one):
    return rendering.draw_appearance(one[None], np.random.default_rng(0), most_context=0)


def _extent(mask, value):
    rows, columns = np.nonzero(mask == value)
    return np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1], float)


@pytest.mark.parametrize("shape", scene.KIND_NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_masks_lie_in_the_projected_boxes(renderer, shape, seed):
    rng = np.random.default_rng(seed)
    turn = scene.yaw_rotation(rng.uniform(0, 360)) @ scene.yaw_rotation(rng.uniform(-20, 20))[[2, 0, 1]][:, [2, 0, 1]]
    half = rng.uniform(0.2, 0.5, 3)
    thing = scene.objects((1.0, 0.3, 0.8), turn, half, scene.KIND_NAMES.index(shape))
    one = np.stack([thing, _pair((0, 0, 1), half)[1]])
    directions = np.array([[[rng.uniform(-2.2, -0.9), rng.uniform(0.2, 0.8)]]])
    observer = views.place_observers(scene.corners(one).reshape(1, 16, 3), directions, np.full((1, 1), 0.8))[0, 0]
    picture = renderer.picture(one, observer, _plain(one))
    scale = SIZE[0] / views.WIDTH
    for which in range(2):
        left, top, width, height = views.boxes(one, observer)[which] * scale
        expected = np.array([left, top, left + width, top + height])
        np.testing.assert_allclose(_extent(picture.mask, which + 1), expected, atol=2)


def test_depth_is_the_distance_along_the_view(renderer):
    one = _pair((0.0, 0.0, 0.5), (0.5, 0.5, 0.5))
    observer = scene.observers((0.0, -2.5, 0.5), (0.0, 0.0, 0.5))
    picture = renderer.picture(one, observer, _plain(one))
    here = picture.mask == rendering.SUBJECT_MASK
    np.testing.assert_allclose(picture.depth[here], 2.0, rtol=2e-3)
    np.testing.assert_allclose(picture.depth[5, SIZE[0] // 2], 2.5 + scene.ROOM[1], rtol=5e-3)  # the wall


def test_equal_input_gives_equal_bits_and_appearances_differ(renderer):
    one = _pair((0.3, 0.0, 0.3), (0.3, 0.3, 0.3), "table")
    observer = scene.observers((0.5, -3.0, 1.5), (0.0, 0.0, 0.3))
    looks = [rendering.draw_appearance(one[None], np.random.default_rng(seed)) for seed in (1, 1, 2)]
    first, same, other = (renderer.picture(one, observer, look) for look in looks)
    np.testing.assert_array_equal(first.rgb, same.rgb)
    np.testing.assert_array_equal(first.depth, same.depth)
    assert np.abs(first.rgb.astype(int) - other.rgb).mean() > 5
    assert np.ptp(first.rgb.astype(int), axis=(0, 1)).min() > 20


def test_what_is_before_hides_what_is_behind(renderer):
    near = scene.objects((0.0, -0.5, 0.5), scene.yaw_rotation(0), (0.5, 0.1, 0.5), 0)
    far = scene.objects((0.0, 0.5, 0.2), scene.yaw_rotation(0), (0.1, 0.1, 0.2), 0)
    one = np.stack([near, far])
    observer = scene.observers((0.0, -3.0, 0.5), (0.0, 0.0, 0.5))
    assert set(np.unique(renderer.picture(one, observer, _plain(one)).mask)) == {0, 1}


def test_the_front_looks_different_from_the_back(renderer):
    observer = scene.observers((0.0, -3.0, 0.5), (0.0, 0.0, 0.5))
    pictures = []
    for degrees in (-90.0, 90.0):  # front towards the observer, then away
        one = _pair((0.0, 0.0, 0.5), (0.4, 0.4, 0.4), degrees=degrees)
        pictures.append(renderer.picture(one, observer, _plain(one)))
    np.testing.assert_array_equal(pictures[0].mask, pictures[1].mask)
    middle = np.s_[SIZE[1] // 2 - 4 : SIZE[1] // 2 + 4, SIZE[0] // 2 - 4 : SIZE[0] // 2 + 4]
    assert np.abs(pictures[0].rgb[middle].astype(int) - pictures[1].rgb[middle]).mean() > 20


def test_context_stands_clear_and_hides_nothing(renderer):
    rng = np.random.default_rng(5)
    triples = categories.triples("near")[rng.integers(0, 500, 6)]
    scenes = proposals.propose("near", triples[:, 0], triples[:, 1], np.zeros(6), rng)
    shown = 0
    for one in scenes:
        directions = views.angles(1, False, rng)
        corners = scene.corners(one).reshape(1, 16, 3)
        observer = views.place_observers(corners, directions, np.full(directions.shape[:2], 0.6))[0, 5]
        look = rendering.clear_context(rendering.draw_appearance(one[None], rng), one[None], observer)
        shown += len(look.context)
        with_context, without = (renderer.picture(one, observer, x) for x in (look, _plain(one)))
        np.testing.assert_array_equal(with_context.mask, without.mask)
    assert shown > 0


@pytest.mark.parametrize("size", [(224, 224), (0, 0), (320, 200)])
def test_other_shapes_are_refused(size):
    with pytest.raises(RoomError, match="16 to 9"):
        Renderer(size)


def test_a_closed_renderer_says_so(renderer):
    one = _pair((0, 0, 0.5), (0.5, 0.5, 0.5))
    other = Renderer((64, 36), samples=0, shadows=0)
    other.close()
    with pytest.raises(RenderingError, match="closed"):
        other.picture(one, scene.observers((0.0, -3, 1), (0.0, 0, 0)), _plain(one))


def test_missing_opengl_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco.egl", None)
    monkeypatch.setitem(sys.modules, "mujoco.osmesa", None)
    with pytest.raises(RenderingError, match=r"libegl1.*libosmesa6.*egl: .*osmesa: "):
        Renderer((64, 36))
