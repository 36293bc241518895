from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialsim_env.arrangements import scene, similarities
from spatialsim_env.arrangements.pictures import BACKGROUND, WIDEST_WINDOW, draw_scene, outside, picture, pictures
from spatialsim_env.arrangements.scene import POSITION, SHAPES, SIZE
from tests.spatialsim_env.drawing import ARENA, BLACK, BLUE, GREEN, RED, centroid, coverage, extents, thing

AREA = {"square": 2.0, "circle": np.pi, "triangle": 3 * np.sqrt(3) / 4}  # at circumradius 1
EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)

# Shapes


@EVERY_SHAPE
@settings(max_examples=25, deadline=None)
@given(size=st.floats(1, 4), angle=st.floats(0, 13), x=st.floats(5, 15), y=st.floats(5, 15))
def test_area_and_centre_are_those_of_the_shape(shape, size, angle, x, y):
    covered = coverage(picture([thing(shape, size, BLACK, (x, y), angle)], 200, ARENA))
    pixels_per_unit = 10
    edge_error = 0.06 / size
    assert covered.sum() / pixels_per_unit**2 == pytest.approx(AREA[shape] * size**2, rel=edge_error)
    column, row = centroid(covered)
    assert column / pixels_per_unit == pytest.approx(x, abs=0.03)
    assert 20 - row / pixels_per_unit == pytest.approx(y, abs=0.03)


def test_a_square_at_rest_is_parallel_to_the_axes():
    half = 3 / np.sqrt(2)
    covered = coverage(picture([thing("square", 3.0)], 200, ARENA))
    assert np.allclose(extents(covered), 2 * [[10 - half, 10 + half]], atol=0.1)
    column = row = int(10 * (10 + half)) - 1
    assert covered[row, column] == 1


def test_a_triangle_at_rest_points_along_x():
    covered = coverage(picture([thing("triangle", 4.0)], 200, ARENA))
    width = 4 * np.sqrt(3) / 2
    assert np.allclose(extents(covered), [[8, 14], [10 - width, 10 + width]], atol=0.15)
    assert covered[:, 85].sum() > 3 * covered[:, 125].sum()


def test_orientation_turns_counter_clockwise():
    covered = coverage(picture([thing("triangle", 4.0, orientation=np.pi / 2)], 200, ARENA))
    width = 4 * np.sqrt(3) / 2
    assert np.allclose(extents(covered), [[10 - width, 10 + width], [8, 14]], atol=0.15)


@pytest.mark.parametrize(("shape", "turn"), [("square", np.pi / 2), ("triangle", 2 * np.pi / 3), ("circle", 1.0)])
@pytest.mark.parametrize("angle", [0.1, 0.7, 2.0])
def test_a_turn_that_is_a_symmetry_of_the_shape_changes_nothing(shape, turn, angle):
    before, after = pictures([[thing(shape, orientation=a)] for a in (angle, angle + turn)], 128, ARENA)
    assert np.array_equal(before, after)
    other = picture([thing(shape, orientation=angle + turn / 2)], 128, ARENA)
    assert np.array_equal(before, other) == (shape == "circle")


def test_y_points_up():
    image = picture([thing(color=RED, position=(10, 17)), thing(color=BLUE, position=(10, 3))], 100, ARENA)
    assert image[15, 50].tolist() == [255, 0, 0]
    assert image[85, 50].tolist() == [0, 0, 255]


@given(st.tuples(*[st.floats(-0.1, 1.1)] * 3))
@settings(max_examples=25, deadline=None)
def test_colour_of_the_centre_is_that_of_the_object_clipped(color):
    image = picture([thing(color=color)], 64, ARENA)
    assert np.abs(image[32, 32] - 255 * np.clip(color, 0, 1)).max() <= 0.51
    assert tuple(image[0, 0]) == BACKGROUND


def test_a_later_row_lies_on_top():
    image = picture([thing("square", color=RED), thing("circle", 1.0, GREEN)], 100, ARENA)
    assert image[50, 50].tolist() == [0, 255, 0]
    assert picture([thing("circle", 1.0, GREEN), thing("square", color=RED)], 100, ARENA)[50, 50].tolist() == [
        255,
        0,
        0,
    ]


def test_objects_that_do_not_overlap_may_come_in_any_order():
    rows = [
        thing("square", 1.0, RED, (3, 3)),
        thing("circle", 1.0, GREEN, (9, 9)),
        thing("triangle", 1.0, BLUE, (15, 4)),
    ]
    assert np.array_equal(picture(rows, 64), picture(rows[::-1], 64))


@pytest.mark.parametrize("size", [48, 64, 224])
def test_edges_are_smooth(size):
    values = np.unique(picture([thing("circle", 6.0)], size, ARENA))
    assert len(values) > 8


def test_the_smallest_object_of_the_benchmark_is_seen():
    for shape in SHAPES:
        for x in np.linspace(9, 11, 23):
            assert picture([thing(shape, 0.25, BLACK, (x, x))], 64).min() < 255


# Pictures


def scenes_of(n_scenes, seed=0, n_max=8):
    rng = np.random.default_rng(seed)
    return similarities.sample(n_scenes, rng).apply(scene.sample(rng.integers(3, n_max + 1, n_scenes), n_max, rng))


def test_a_batch_is_its_scenes():
    batch = scenes_of(150)
    images = pictures(batch, 32)
    assert images.shape == (150, 32, 32, 3)
    assert images.dtype == np.uint8
    assert np.array_equal(images, np.stack([picture(one, 32) for one in batch]))
    assert np.array_equal(images, pictures(batch.reshape(150, -1).astype(np.float64), 32))


def test_padding_is_not_drawn():
    alone = picture([thing(), thing("square", position=(3, 3))])
    assert np.array_equal(alone, picture([np.zeros(10), thing(), np.zeros(10), thing("square", position=(3, 3))]))


def test_the_window_is_the_same_for_every_scene():
    near, far = pictures([[thing(position=(0, 0))], [thing(position=(45, -18))]], 180, WIDEST_WINDOW)
    assert np.array_equal(np.roll(near, (18, 45), axis=(0, 1)), far)


def worst_case(n_objects, angle, translation):
    """Many small objects in one corner of the arena and one in the opposite: the farthest that scaling carries."""
    rows = [thing(size=0.5, position=(19.5, 19.5))] * (n_objects - 1) + [thing(size=0.5, position=(0.5, 0.5))]
    return similarities.Similarity(np.array([2.0]), np.array([angle]), np.array([translation])).apply(np.array([rows]))


@pytest.mark.parametrize("quarter", range(4))
def test_the_widest_window_holds_the_farthest_object_that_the_definition_allows(quarter):
    direction = quarter * np.pi / 2
    translation = 20 * np.sign(np.round([np.cos(direction) or 1, np.sin(direction) or 1]))
    translation[translation == 0] = 20
    scenes = worst_case(10**4, direction - 5 * np.pi / 4, translation)
    assert not outside(scenes, WIDEST_WINDOW).any()
    reach = (np.abs(scenes[..., POSITION] - 10).max(axis=-1) + scenes[..., SIZE]).max()
    assert reach <= 84.25
    if quarter == 0:
        assert reach == pytest.approx(94.24 - 10, abs=0.02)


def test_no_object_of_the_benchmark_leaves_the_default_window():
    assert not outside(scenes_of(20_000, n_max=30)).any()


LEAVING = [[thing(position=(19, 10)), thing(), thing(position=(0, 40))], [thing(), thing(), thing()]]


def test_an_object_outside_raises():
    with pytest.raises(ValueError, match=r"2 of 6 objects, in 1 of 2 scenes.* x 0\.\.20, y 0\.\.20"):
        pictures(LEAVING, 32, ARENA)


def test_an_object_outside_warns():
    with pytest.warns(UserWarning, match=r"2 of 6 objects"):
        warned = pictures(LEAVING, 32, ARENA, on_outside="warn")
    assert np.array_equal(warned, pictures(LEAVING, 32, ARENA, on_outside="ignore"))
    assert np.array_equal(warned[1], picture([thing()], 32, ARENA))


@pytest.mark.parametrize(
    ("position", "beyond"),
    [((2, 2), False), ((18, 18), False), ((1.9, 10), True), ((10, 18.1), True), ((-50, 5), True)],
)
def test_outside_is_judged_by_the_circumscribed_circle(position, beyond):
    assert outside([thing(position=position)], ARENA).tolist() == [beyond]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_outside": "hide"}, '\'hide\'.*"raise", "warn" and "ignore"'),
        ({"window": ((0, 20), (0, 30))}, "square"),
        ({"window": ((20, 0), (20, 0))}, "x_lo < x_hi"),
        ({"size": 0}, "size is 0"),
    ],
)
def test_bad_options_say_what_is_accepted(options, message):
    with pytest.raises(ValueError, match=message):
        picture([thing()], **options)


@pytest.mark.parametrize("bad", [np.zeros((1, 10)), np.full((1, 10), np.nan), np.ones((1, 10)), np.ones((2, 7))])
def test_what_is_not_a_scene_is_refused(bad):
    with pytest.raises(scene.SceneError):
        picture(bad)


def test_draw_scene_fills_a_surface_of_the_caller():
    pygame = pytest.importorskip("pygame")
    surface = pygame.Surface((200, 200), depth=32)
    draw_scene(surface, [thing(color=RED, position=(5, 15))], ARENA)
    assert surface.get_at((50, 50))[:3] == (255, 0, 0)
    assert surface.get_at((150, 150))[:3] == (0, 0, 0)
    with pytest.raises(ValueError, match="200 x 100"):
        draw_scene(pygame.Surface((200, 100), depth=32), [thing()], ARENA)
