"""Geometry of boxes against independent methods of scipy, closed forms and round trips."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, lsq_linear
from scipy.spatial import ConvexHull, HalfspaceIntersection

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import boxes
from spatialsim_env.relations.scene import CENTER, HALF, OBJECT, SUBJECT
from tests.spatialsim_env.relations.predicates.cases import CONTAINER, CUBE, LEG_SPAN, RING, TABLE, rotation, thing
from tests.spatialsim_env.relations.scenes import random_scenes

checked = settings(deadline=None, max_examples=12)
seeds = st.integers(0, 2**32 - 1)


def both(subject, object_) -> np.ndarray:
    return np.stack([subject, object_])[None]


def parts_in_world(thing_: np.ndarray):
    """(centre, axes times half sizes) of each part of an object."""
    turn = scene.rotation(thing_)
    for middle, half in scene.KINDS[scene.kind(thing_)].parts:
        yield thing_[CENTER] + turn @ (middle * thing_[HALF]), turn * (half * thing_[HALF])


def part_corners(part) -> np.ndarray:
    center, axes = part
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8)
    return center + (axes @ signs).T


def half_spaces(part) -> np.ndarray:
    """Rows (n, b) with n.x + b <= 0 inside."""
    center, axes = part
    half = np.linalg.norm(axes, axis=0)
    normals = np.concatenate([(axes / half).T, -(axes / half).T])
    return np.column_stack([normals, -normals @ center - np.tile(half, 2)])


def hull_volume(planes: np.ndarray) -> float:
    """Volume (area) of the intersection of half spaces; 0 where the largest ball in it has no size."""
    lengths = np.linalg.norm(planes[:, :-1], axis=1, keepdims=True)
    size = planes.shape[1] - 1
    found = linprog([*[0] * size, -1], np.column_stack([planes[:, :-1], lengths]), -planes[:, -1], bounds=(None, None))
    if found.status != 0 or found.x[-1] < 1e-9:
        return 0.0
    return ConvexHull(HalfspaceIntersection(planes, found.x[:-1]).intersections).volume


def distance_by_least_squares(first, second) -> float:
    """|c1 + A1 u - c2 - A2 v| over |u|, |v| <= 1."""
    found = lsq_linear(
        np.column_stack([first[1], -second[1]]), second[0] - first[0], (-1, 1), "bvls", 1e-15, max_iter=1000
    )
    return float(np.sqrt(2 * found.cost))


def depth_by_difference(first, second) -> float:
    """How deep the origin is in the Minkowski difference of two boxes; 0 outside."""
    points = (part_corners(first)[:, None] - part_corners(second)[None]).reshape(-1, 3)
    return max(-ConvexHull(points, qhull_options="QJ").equations[:, -1].max(), 0.0)


# --- gap and depth --------------------------------------------------------------------------------------------------


@checked
@given(seed=seeds)
def test_the_gap_is_the_least_distance_of_two_parts(seed):
    scenes, _ = random_scenes(4, seed, spread=1.0)
    gaps = boxes.gap(scenes)
    for pair, gap in zip(scenes, gaps, strict=True):
        expected = min(
            distance_by_least_squares(a, b) for a in parts_in_world(pair[SUBJECT]) for b in parts_in_world(pair[OBJECT])
        )
        assert gap == pytest.approx(expected, abs=1e-7)


@checked
@given(seed=seeds)
def test_the_depth_is_that_of_the_origin_in_the_difference(seed):
    scenes, _ = random_scenes(4, seed, spread=0.2)
    depths = boxes.penetration(scenes)
    for pair, depth in zip(scenes, depths, strict=True):
        expected = max(
            depth_by_difference(a, b) for a in parts_in_world(pair[SUBJECT]) for b in parts_in_world(pair[OBJECT])
        )
        assert depth == pytest.approx(expected, abs=1e-7)


DIAGONAL = 0.1 * np.sqrt(2)


@pytest.mark.parametrize(
    ("subject", "object_", "gap", "depth"),
    [
        (thing([0.5, 0, 0.1]), CUBE, 0.3, 0),  # face to face
        (thing([0.2, 0, 0.1]), CUBE, 0, 0),
        (thing([0.17, 0.05, 0.1]), CUBE, 0, 0.03),
        (thing([0.5, 0.6, 0.1]), CUBE, 0.5, 0),  # parallel edges, 0.3 and 0.4
        (thing([0.4, 0.4, 0.3]), CUBE, np.sqrt(0.2**2 + 0.2**2), 0),
        (thing([0.4, 0.4, 0.5]), CUBE, 0.2 * np.sqrt(3), 0),  # corner to corner
        (thing([0.1 + DIAGONAL + 0.05, 0, 0.1], yaw=45), CUBE, 0.05, 0),  # edge to face
        (thing([0, 0, 0.1 + 2 * DIAGONAL + 0.07], roll=45), thing([0, 0, 0.1], pitch=45), 0.07, 0),  # crossing edges
        (thing([0, 0, 0.1 + 2 * DIAGONAL - 0.01], roll=45), thing([0, 0, 0.1], pitch=45), 0, 0.01),
        (thing([0, 0, 0.1]), RING, 0.128, 0),  # in its hole
        (thing([0, 0, 0.35]), TABLE, 0.704 - 0.45, 0),
        (thing([0, 0, 0.148]), CONTAINER, 0, 0),
        (CUBE, CUBE, 0, 0.2),
    ],
)
def test_gap_and_depth_in_closed_form(subject, object_, gap, depth):
    for scenes in (both(subject, object_), both(object_, subject)):
        assert boxes.gap(scenes)[0] == pytest.approx(gap, abs=1e-12)
        assert boxes.penetration(scenes)[0] == pytest.approx(depth, abs=1e-12)


def test_a_whole_box_has_its_hollow_filled():
    scenes = both(thing([0, 0, 0.1]), RING)
    gap, depth = boxes.apart(scenes, object_=boxes.whole(scenes[:, OBJECT]))
    assert (gap[0], depth[0]) == pytest.approx((0, 0.2))


@checked
@given(seed=seeds)
def test_nearly_parallel_boxes_are_as_far_apart_as_parallel_ones(seed):
    """The cross product of nearly parallel edges has no reliable direction; no answer may hang on it."""
    rng = np.random.default_rng(seed)
    scenes = np.tile(both(thing([0.5, 0.3, 0.2], yaw=0), CUBE), (40, 1, 1))
    angles = 10.0 ** rng.uniform(-17, -4, 40)
    turns = np.stack([rotation(*(rng.uniform(-1, 1, 3) * angle)) for angle in angles])
    scenes[:, 0, scene.FRONT], scenes[:, 0, scene.UP] = turns[:, :, 0], turns[:, :, 2]
    assert boxes.gap(scenes) == pytest.approx(np.hypot(0.3, 0.1), abs=1e-6)
    scenes[:, 0, CENTER] = [0.15, 0.1, 0.1]
    assert boxes.penetration(scenes) == pytest.approx(0.05, abs=1e-6)


# --- volumes --------------------------------------------------------------------------------------------------------


@checked
@given(seed=seeds)
def test_the_share_in_a_cavity_is_that_of_the_clipped_polyhedra(seed):
    scenes, _ = random_scenes(3, seed, spread=0.2)
    scenes[:, OBJECT, scene.KIND] = CONTAINER[scene.KIND]
    for pair, share in zip(scenes, boxes.share_within(scenes), strict=True):
        turn, (middle, half) = scene.rotation(pair[OBJECT]), scene.KINDS[3].cavity
        cavity = pair[OBJECT, CENTER] + turn @ (middle * pair[OBJECT, HALF]), turn * (half * pair[OBJECT, HALF])
        parts = list(parts_in_world(pair[SUBJECT]))
        shared = sum(hull_volume(np.concatenate([half_spaces(part), half_spaces(cavity)])) for part in parts)
        total = sum(8 * abs(np.linalg.det(axes)) for _, axes in parts)
        assert share == pytest.approx(shared / total, abs=1e-7)


@checked
@given(seed=seeds)
def test_the_share_in_a_cavity_of_boxes_with_the_same_axes_is_a_product(seed):
    """Also where faces lie in one plane, as those of things that rest do."""
    rng = np.random.default_rng(seed)
    yaw, center = rng.uniform(-180, 180), rng.integers(-3, 4, 3) * 0.114
    half = rng.integers(1, 4, 3) * 0.114  # the cavity's half sizes are 0.228, 0.228, 0.176
    turn = scene.yaw_rotation(yaw)
    subject = thing(turn @ center + [0, 0, 0.224], half, yaw=yaw)
    container = thing([0, 0, 0.2], (0.3, 0.3, 0.2), "container", yaw=yaw)
    cavity = np.array([0.228, 0.228, 0.176])
    sides = np.minimum(center + half, cavity) - np.maximum(center - half, -cavity)
    expected = np.maximum(sides, 0).prod() / (2 * half).prod()
    assert boxes.share_within(both(subject, container))[0] == pytest.approx(expected, abs=1e-12)


def test_the_share_in_a_cavity_is_that_of_random_points():
    scenes, _ = random_scenes(30, 2, spread=0.15)
    scenes[:, :, scene.KIND] = CUBE[scene.KIND], CONTAINER[scene.KIND]
    scenes[:, OBJECT, HALF] += 0.2
    n = 40_000
    points = np.random.default_rng(0).uniform(-1, 1, (1, n, 3)) * scenes[:, SUBJECT, None, HALF]
    world = scenes[:, SUBJECT, None, CENTER] + np.einsum("bij,bnj->bni", scene.rotation(scenes[:, SUBJECT]), points)
    places = boxes.in_frame(world, scenes[:, OBJECT]) / scenes[:, OBJECT, None, HALF]
    middle, half = (np.array(x) for x in scene.KINDS[3].cavity)
    counted = (np.abs(places - middle) <= half).all(axis=-1).mean(axis=-1)
    assert 0.05 < counted.mean() < 0.95
    assert np.abs(boxes.share_within(scenes) - counted).max() < 5 * 0.5 / np.sqrt(n)


@checked
@given(seed=seeds)
def test_the_share_below_a_height_is_that_of_the_clipped_polyhedra(seed):
    scenes, _ = random_scenes(4, seed)
    objects = scenes[:, SUBJECT]
    heights = objects[:, CENTER][:, 2] + np.random.default_rng(seed).uniform(-0.3, 0.3, 4)
    for thing_, height, share in zip(objects, heights, boxes.share_below(objects, heights), strict=True):
        parts = list(parts_in_world(thing_))
        plane = np.array([[0, 0, 1, -height]])
        below = sum(hull_volume(np.concatenate([half_spaces(part), plane])) for part in parts)
        assert share == pytest.approx(below / sum(8 * abs(np.linalg.det(axes)) for _, axes in parts), abs=1e-7)
    above = boxes.share_above(objects, heights)
    assert np.allclose(above + boxes.share_below(objects, heights), 1, atol=1e-12)


@pytest.mark.parametrize("angle", [0, 1e-13, 1e-9, 1e-6, 1e-4])
@pytest.mark.parametrize("height", [-0.1, 0.0, 0.03, 0.1, 0.17, 0.2, 0.5])
def test_the_share_below_a_height_of_an_upright_box_is_linear(angle, height):
    upright = thing([0, 0, 0.1], (0.3, 0.2, 0.1), pitch=angle, roll=angle)
    assert boxes.share_below(upright[None], height)[0] == pytest.approx(np.clip(height / 0.2, 0, 1), abs=2e-5)


@pytest.mark.parametrize(
    ("pitch", "roll", "height", "share"),
    [
        (45, 0, DIAGONAL / 2, 1 / 8),  # a cube on its edge: a triangle, half as high as half the diagonal
        (45, 0, DIAGONAL, 1 / 2),
        (45, 0, 1.5 * DIAGONAL, 7 / 8),
        (np.degrees(np.arcsin(1 / np.sqrt(3))), 45, 0.2 / np.sqrt(3), 1 / 6),  # on its corner, to the first corners
        (np.degrees(np.arcsin(1 / np.sqrt(3))), 45, 0.3 / np.sqrt(3), 1 / 2),
        (np.degrees(np.arcsin(1 / np.sqrt(3))), 45, 0.4 / np.sqrt(3), 5 / 6),
    ],
)
def test_the_share_below_a_height_of_a_cube_on_its_edge_or_corner(pitch, roll, height, share):
    cube = thing([0, 0, 0], 0.1, pitch=pitch, roll=roll)
    low = boxes.bottom(cube[None])
    assert boxes.share_below(cube[None], low + height)[0] == pytest.approx(share, abs=1e-12)


def test_volumes_are_those_of_the_parts():
    inner = 0.76
    expected = {
        "block": 1,
        "ring": 1 - inner**2,
        "frame": 1 - inner**2,
        "container": 1 - inner**2 * 0.88,
        "table": 0.12 + 4 * 0.12**2 * 0.88,
    }
    for kind, share in expected.items():
        half = (0.3, 0.2, 0.4)
        assert boxes.volume(thing([0, 0, 0.5], half, kind)[None])[0] == pytest.approx(8 * np.prod(half) * share)


@checked
@given(seed=seeds)
def test_the_two_halves_of_a_solid_make_the_whole(seed):
    rng = np.random.default_rng(seed)
    objects = random_scenes(20, seed)[0][:, SUBJECT]
    axis, sign = rng.integers(0, 3, 20), rng.choice([-1.0, 1.0], 20)
    one, other = (boxes.half_of(objects, axis, way) for way in (sign, -sign))
    for row in range(20):
        volumes = 0.0
        for parts, n in (one, other):
            distinct = np.unique(parts[row, : n[row]].round(12), axis=0)  # stand-ins are copies
            volumes += 8 * distinct[:, 1].prod(axis=-1).sum()
        assert volumes == pytest.approx(boxes.volume(objects)[row])
        parts, n = one
        low = sign[row] * parts[row, : n[row], 0, axis[row]] - parts[row, : n[row], 1, axis[row]]
        assert (low > -1e-12).all()


# --- footprints and heights -----------------------------------------------------------------------------------------


def hull_planes(thing_: np.ndarray) -> np.ndarray:
    return ConvexHull(scene.corners(thing_)[:, :2]).equations


@checked
@given(seed=seeds)
def test_the_overlap_is_that_of_the_hulls_of_the_corners(seed):
    scenes, _ = random_scenes(5, seed, spread=0.3)
    shares = boxes.overlap(scenes, SUBJECT, OBJECT), boxes.overlap(scenes, OBJECT, SUBJECT)
    for row, pair in enumerate(scenes):
        shared = hull_volume(np.concatenate([hull_planes(pair[0]), hull_planes(pair[1])]))
        for share, thing_ in zip(shares, pair, strict=True):
            assert share[row] == pytest.approx(shared / ConvexHull(scene.corners(thing_)[:, :2]).volume, abs=1e-7)


@pytest.mark.parametrize(
    ("subject", "share"),
    [
        (thing([0, 0, 1]), 1),
        (thing([0.05, 0, 1]), 0.75),
        (thing([0.05, 0.1, 1]), 0.375),
        (thing([0, 0, 1], yaw=45), 2 * (np.sqrt(2) - 1)),  # two squares make an octagon
        (thing([0, 0, 1], pitch=45), 1 / np.sqrt(2)),
        (thing([0.3, 0, 1]), 0),
        (thing([0, 0, 1], (0.2, 0.4, 0.1)), 0.125),
    ],
)
def test_the_overlap_in_closed_form(subject, share):
    assert boxes.overlap(both(subject, CUBE), SUBJECT, OBJECT)[0] == pytest.approx(share, abs=1e-12)


def test_a_footprint_does_not_see_rounding_errors_of_an_upright_axis():
    scenes = np.tile(both(thing([0.05, 0.1, 1]), CUBE), (200, 1, 1))
    scenes[..., scene.UP] += np.random.default_rng(0).normal(0, 1e-17, (200, 2, 3))
    scenes[..., scene.UP][..., 1] += 1e-16
    assert boxes.overlap(scenes, SUBJECT, OBJECT) == pytest.approx(0.375, abs=1e-9)


@checked
@given(seed=seeds)
def test_centrality_is_one_at_the_centre_and_falls_to_zero_on_the_border(seed):
    objects = random_scenes(10, seed)[0][:, OBJECT]
    center = objects[:, CENTER][:, :2]
    assert boxes.centrality(center, objects) == pytest.approx(1)
    for row, thing_ in enumerate(objects):
        hull = ConvexHull(scene.corners(thing_)[:, :2])
        for share in (0.0, 0.4, 1.0):
            border = hull.points[hull.simplices].mean(axis=1)
            points = center[row] + (1 - share) * (border - center[row])
            found = boxes.centrality(points, np.tile(thing_, (len(points), 1)))
            assert found == pytest.approx(share, abs=1e-7)


@checked
@given(seed=seeds)
def test_the_nearest_point_of_a_footprint(seed):
    scenes, _ = random_scenes(10, seed)
    points, objects = scenes[:, SUBJECT, CENTER], scenes[:, OBJECT]
    found = boxes.nearest_of_footprint(points, objects)
    assert (boxes.centrality(found, objects) > -1e-9).all()
    for point, thing_, place in zip(points, objects, found, strict=True):
        axes = (scene.rotation(thing_) * thing_[HALF])[:2]
        expected = lsq_linear(axes, point[:2] - thing_[CENTER][:2], (-1, 1), "bvls", 1e-15, max_iter=1000)
        assert np.hypot(*(place - point[:2])) == pytest.approx(np.sqrt(2 * expected.cost), abs=1e-7)


@checked
@given(seed=seeds)
def test_top_and_bottom_are_those_of_the_corners(seed):
    scenes, _ = random_scenes(20, seed)
    heights = scene.corners(scenes)[..., 2]
    assert np.allclose(boxes.top(scenes), heights.max(axis=-1))
    assert np.allclose(boxes.bottom(scenes), heights.min(axis=-1))


def test_the_underside_is_that_of_a_tables_slab_and_of_everything_elses_box():
    table = thing([0, 0, 0.4], (0.5, 0.5, 0.4), "table", pitch=10)
    slab = next(parts_in_world(table))
    assert boxes.underside(TABLE[None])[0] == pytest.approx(0.704)
    assert boxes.underside(table[None])[0] == pytest.approx(part_corners(slab)[:, 2].min())
    for kind in set(scene.KIND_NAMES) - {"table"}:
        objects = thing([0.1, 0.2, 0.4], (0.5, 0.3, 0.4), kind, yaw=20, pitch=33, roll=12)[None]
        assert boxes.underside(objects) == pytest.approx(boxes.bottom(objects))


def test_the_span_of_walls():
    def span(kind, half=0.3):
        return boxes.span(thing([0, 0, 0], half, kind, yaw=20, pitch=33)[None])[0]

    for kind, expected in {"ring": 360, "frame": 360, "container": 360, "block": 0, "stick": 0, "spire": 0}.items():
        assert span(kind) == pytest.approx(expected)
        assert span(kind, (0.1, 0.5, 0.3)) == pytest.approx(expected)
    assert span("table") == pytest.approx(LEG_SPAN)


@checked
@given(seed=seeds)
def test_coordinates_in_an_objects_frame_go_back_to_the_world(seed):
    scenes, _ = random_scenes(6, seed)
    points = np.random.default_rng(seed).normal(size=(6, 4, 3))
    objects = scenes[:, OBJECT]
    inner = boxes.in_frame(points, objects)
    back = objects[:, None, CENTER] + np.einsum("bij,bnj->bni", scene.rotation(objects), inner)
    assert np.allclose(back, points)
    assert np.allclose(boxes.in_frame(points[:, 0], objects), inner[:, 0])


@checked
@given(seed=seeds)
def test_the_distance_of_a_point_to_a_box(seed):
    rng = np.random.default_rng(seed)
    points, half = rng.uniform(-1, 1, (200, 3)), rng.uniform(0.1, 0.9, (200, 3))
    outside = np.linalg.norm(points - np.clip(points, -half, half), axis=-1)
    inside = -(half - np.abs(points)).min(axis=-1)
    expected = np.where((np.abs(points) < half).all(axis=-1), inside, outside)
    assert boxes.beyond_box(points, half) == pytest.approx(expected)


@checked
@given(seed=seeds)
def test_how_near_a_segment_comes_to_the_middle_of_a_box(seed):
    rng = np.random.default_rng(seed)
    middle, reach, half = rng.uniform(-1, 1, (3, 50, 3))
    reach[:10, :2], half = 0, np.abs(half) + 0.1
    way = np.linspace(-1, 1, 4001)
    places = middle[:, None] + way[:, None] * reach[:, None]
    expected = np.abs(places / half[:, None]).max(axis=-1).min(axis=-1)
    found = boxes.nearness(middle, reach, half)
    assert (found <= expected + 1e-12).all()
    assert found == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("yaw", [-100, 0, 17, 44])
def test_the_yaw_of_the_axes(yaw):
    for pitch, roll in ((0, 0), (90, 0), (0, 90), (30, 0), (0, -70), (180, 0)):
        turn = boxes.fourfold(thing([0, 0, 0], yaw=yaw, pitch=pitch, roll=roll)[None])[0]
        assert np.angle(turn * np.exp(-4j * np.radians(yaw))) == pytest.approx(0, abs=1e-9)
    on_its_corner = rotation(yaw, np.degrees(np.arcsin(1 / np.sqrt(3))), 45)
    assert abs(boxes.fourfold(scene.objects([0, 0, 0], on_its_corner, [1, 1, 1], 0)[None])[0]) < 1e-12


def test_float32_scenes_are_measured_in_float64():
    scenes, _ = random_scenes(200, 3)
    single = scenes.astype(np.float32)
    for measure in (boxes.gap, boxes.penetration, boxes.share_within, lambda s: boxes.overlap(s, SUBJECT, OBJECT)):
        assert measure(single).dtype == np.float64
        assert np.abs(measure(single) - measure(scenes)).max() < 1e-4
