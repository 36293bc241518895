"""Minimally contrastive pairs: every promise of the module, for every predicate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import boxes, views
from spatialsim_env.relations.pairs import categories, pairs
from spatialsim_env.relations.pairs.filling import Order, ProposalCounts, fill
from spatialsim_env.relations.pairs.pairs import Demands
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.scene import OBJECT, SUBJECT, RoomError
from spatialsim_env.relations.vocabulary import INDEX, OBSERVER, PREDICATES, frame

DEMANDS = Demands()
MADE = {}


def _made(predicate):
    """Pairs of a dozen triples, the same for all tests."""
    if predicate not in MADE:
        rng = np.random.default_rng(INDEX[predicate])
        triples = rng.permutation(categories.triples(predicate))[:10]
        slots = np.column_stack([triples, np.zeros(len(triples), int)])
        n_views = 2 if frame(predicate) == OBSERVER else 3
        counts = ProposalCounts()
        MADE[predicate] = slots, fill(Order(predicate, n_views, DEMANDS), slots, rng, counts), counts
    return MADE[predicate]


def _margins(made, predicate, member):
    rule = predicates.REGISTRY[predicate]
    return np.stack(
        [rule.margin(made.scenes[:, member], made.observers[:, v]) for v in range(made.observers.shape[1])], -1
    )


@pytest.mark.parametrize("predicate", PREDICATES)
def test_margins_of_both_members(predicate):
    slots, made, _ = _made(predicate)
    np.testing.assert_array_equal(np.column_stack([made.subject, made.object, made.split]), slots)
    holds, fails = _margins(made, predicate, 0), _margins(made, predicate, 1)
    assert (holds >= DEMANDS.margin).all()
    assert (fails <= -DEMANDS.margin).all()
    np.testing.assert_allclose(made.margins, np.stack([holds.min(1), fails.max(1)], -1), atol=1e-12)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_one_object_has_moved_along_one_axis(predicate):
    _, made, _ = _made(predicate)
    rows, (before, after) = np.arange(len(made)), np.moveaxis(made.scenes, 1, 0)
    np.testing.assert_array_equal(after[rows, 1 - made.mover], before[rows, 1 - made.mover])
    np.testing.assert_allclose(pairs.move(before, made.mover, made.axis, made.amount), after, atol=1e-12)
    for columns in (scene.HALF, scene.KIND):
        np.testing.assert_array_equal(after[..., columns], before[..., columns])
    shifts = made.axis < 3
    step = (after - before)[rows, made.mover]
    np.testing.assert_array_equal(step[~shifts, scene.CENTER], 0)
    np.testing.assert_array_equal(step[shifts, scene.FRONT], 0)
    assert ((step[shifts, scene.CENTER] != 0).sum(axis=1) == 1).all()


@pytest.mark.parametrize("predicate", PREDICATES)
def test_the_margin_flips_where_it_says(predicate):
    """Just before the flip the predicate holds from some view, just after from none; the amount lies beyond."""
    _, made, _ = _made(predicate)
    sign = np.sign(made.amount)
    assert (np.abs(made.flip) < np.abs(made.amount)).all()
    assert (np.sign(made.flip) == sign).all()
    for away, expected in ((-1e-5, True), (1e-5, False)):
        at = pairs.move(made.scenes[:, 0], made.mover, made.axis, made.flip + sign * away)
        holds = pairs.margin(predicate, at, made.observers, "most") >= 0
        assert (holds == expected).all()


@pytest.mark.parametrize("predicate", PREDICATES)
def test_everything_is_in_the_room_and_nothing_penetrates(predicate):
    _, made, _ = _made(predicate)
    for member in range(2):
        one = made.scenes[:, member]
        scene.validate(one)
        assert (boxes.penetration(one) <= pairs.DEEPEST).all()
        corners = scene.corners(one)
        assert (corners[..., 2] >= -1e-9).all()
        assert (np.abs(corners) <= scene.ROOM).all()


@pytest.mark.parametrize("predicate", PREDICATES)
def test_what_does_not_fly_is_supported(predicate):
    _, made, _ = _made(predicate)
    flies = categories.FLIES[np.stack([made.subject, made.object], -1)]
    before, after = (pairs.is_supported(made.scenes[:, member], flies).all(axis=1) for member in range(2))
    np.testing.assert_array_equal(made.held, ~after)
    assert before.all()
    low = boxes.bottom(made.scenes[:, 0].reshape(-1, 19)).reshape(-1, 2)
    if predicate == "leaning against":
        assert (low <= pairs.RESTING).all()


@pytest.mark.parametrize("predicate", PREDICATES)
def test_unrelated_predicates_keep_their_truth(predicate):
    _, made, _ = _made(predicate)
    related = pairs.relatives(predicate)
    changed = np.zeros((len(made), len(PREDICATES)), bool)
    for view in range(made.observers.shape[1]):
        first, second = (predicates.holds(made.scenes[:, m], made.observers[:, view]) for m in range(2))
        np.testing.assert_array_equal(first[:, ~related], second[:, ~related])
        changed |= first != second
    changed[:, INDEX[predicate]] = False
    np.testing.assert_array_equal(made.changed, changed)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_everything_is_in_every_picture(predicate):
    _, made, _ = _made(predicate)
    for member in range(2):
        for view in range(made.observers.shape[1]):
            assert views.in_picture(views.boxes(made.scenes[:, member], made.observers[:, view])).all()


def test_related_contains_the_predicate_and_frames_do_not_mix():
    for name in PREDICATES:
        related = {PREDICATES[i] for i in np.flatnonzero(pairs.relatives(name))}
        assert name in related
        if frame(name) != "none":
            assert {frame(other) for other in related} == {frame(name)}


def _scene():
    first = scene.objects((0.5, 0.0, 0.2), scene.yaw_rotation(30), (0.3, 0.1, 0.2), 0)
    return np.stack([first, scene.objects((-0.5, 0.0, 0.2), scene.yaw_rotation(0), (0.2, 0.2, 0.2), 0)])[None]


@pytest.mark.parametrize(("axis", "step"), [(0, (0.1, 0, 0)), (1, (0, 0.1, 0)), (2, (0, 0, 0.1))])
def test_shifts(axis, step):
    after = pairs.move(_scene(), np.array([SUBJECT]), np.array([axis]), np.array([0.1]))
    np.testing.assert_allclose(after[0, SUBJECT, scene.CENTER], np.add((0.5, 0.0, 0.2), step))
    np.testing.assert_array_equal(after[0, OBJECT], _scene()[0, OBJECT])


def test_turn_about_up_adds_to_the_yaw():
    after = pairs.move(_scene(), np.array([SUBJECT]), np.array([5]), np.radians([40]))
    np.testing.assert_allclose(scene.rotation(after[0, SUBJECT]), scene.yaw_rotation(70), atol=1e-12)


def test_turns_are_right_handed():
    """A quarter turn about front takes left to up; about left, up to front."""
    about_front = pairs.move(_scene(), np.array([0]), np.array([3]), np.array([np.pi / 2]))[0, 0]
    about_left = pairs.move(_scene(), np.array([0]), np.array([4]), np.array([np.pi / 2]))[0, 0]
    old = scene.rotation(_scene()[0, 0])
    np.testing.assert_allclose(scene.rotation(about_front)[:, 1], old[:, 2], atol=1e-12)
    np.testing.assert_allclose(scene.rotation(about_left)[:, 2], old[:, 0], atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(axis=st.integers(0, 5), amount=st.floats(-3, 3), mover=st.integers(0, 1))
def test_going_back_undoes_a_movement(axis, amount, mover):
    there = pairs.move(_scene(), np.array([mover]), np.array([axis]), np.array([amount]))
    scene.validate(there)
    back = pairs.move(there, np.array([mover]), np.array([axis]), np.array([-amount]))
    np.testing.assert_allclose(back, _scene(), atol=1e-12)


def test_support():
    table = scene.objects((0, 0, 0.4), scene.yaw_rotation(0), (0.5, 0.5, 0.4), scene.KIND_NAMES.index("table"))

    def block(center):
        return scene.objects(center, scene.yaw_rotation(0), (0.1, 0.1, 0.1), 0)

    rows = [block((0, 0, 0.9)), block((0, 0, 1.0)), block((0.58, 0, 0.9)), block((2, 0, 0.1)), block((0.61, 0, 0.5))]
    scenes = np.stack([np.stack([row, table]) for row in rows])
    expected = [True, False, False, True, False]  # on it, above it, mostly beyond its edge, on the floor, at its side
    found = pairs.is_supported(scenes, np.zeros((5, 2), bool))
    assert found[:, SUBJECT].tolist() == expected
    assert found[:, OBJECT].all()
    assert pairs.is_supported(scenes, np.ones((5, 2), bool)).all()


def test_what_is_tilted_needs_something_to_lean_on():
    """A plank 20 degrees from upright with an edge on the floor, before a wall that it touches or not."""
    wall = scene.objects((0.55, 0, 1.0), scene.yaw_rotation(0), (0.05, 1.0, 1.0), 0)
    tilt = np.radians(20)
    half = np.array([0.02, 0.2, 0.6])
    axes = np.array([[np.cos(tilt), 0, np.sin(tilt)], [0, 1, 0], [-np.sin(tilt), 0, np.cos(tilt)]])
    reach, height = (np.abs(axes[i] * half).sum() for i in (0, 2))
    scenes = np.stack(
        [np.stack([scene.objects((0.5 - reach - gap, 0, height), axes, half, 0), wall]) for gap in (0, 0.3)]
    )
    assert pairs.is_supported(scenes, np.zeros((2, 2), bool)).tolist() == [[True, True], [False, True]]


def test_a_scene_that_nothing_can_falsify_gives_no_pair():
    """Two fixed things that fill the room leave no way to be anything but near."""
    big = (scene.ROOM[0] / 2 - 0.01, scene.ROOM[1] - 0.01, scene.ROOM[2] / 2 - 0.01)
    one = np.stack([scene.objects((x, 0, scene.ROOM[2] / 2), scene.yaw_rotation(0), big, 0) for x in (-1.5, 1.5)])[None]
    rows, made = pairs.contrast(
        "near", one, np.ones((1, 2), bool), np.zeros((1, 1, 9)), DEMANDS, np.random.default_rng(0)
    )
    assert len(rows) == len(made) == 0


@pytest.mark.parametrize("margin", [0.0, 1.0, -0.1, float("nan")])
def test_margins_are_checked(margin):
    with pytest.raises(RoomError, match="margin"):
        Demands(margin=margin)


def test_an_impossible_slot_is_named():
    """A table does not go into an apple."""
    slots = np.array([[categories.INDEX["table"], categories.INDEX["apple"], 0]])
    with pytest.raises(RoomError, match="'table' 'in' 'apple'"):
        fill(Order("in", 1, DEMANDS), slots, np.random.default_rng(0), ProposalCounts())


def test_settled_pairs_are_pairs():
    pytest.importorskip("mujoco")
    counts = ProposalCounts()
    slots = np.column_stack([categories.triples("on")[::60], np.zeros(len(categories.triples("on")[::60]), int)])
    made = fill(Order("on", 1, DEMANDS, settle=True), slots, np.random.default_rng(0), counts)
    assert (_margins(made, "on", 0) >= DEMANDS.margin).all()
    assert (_margins(made, "on", 1) <= -DEMANDS.margin).all()
    assert counts.positive >= len(slots)
