"""What an action does to two objects: closed forms for moves, turns and contacts, and properties of all motions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from spatialsim_env.core.world import ActionError
from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import boxes
from spatialsim_env.relations.scene import (
    CENTER,
    FRONT,
    HALF,
    KIND,
    KIND_NAMES,
    OBJECT,
    ROOM,
    SUBJECT,
    UP,
    WALL,
)
from spatialsim_env.relations.world import dynamics
from spatialsim_env.relations.world.dynamics import MAX_MOVE, MAX_TURN, TOUCHING, RelationDynamics, clear, fitted

DYNAMICS = RelationDynamics()
FAR = ((2.0, 2.0, 0.2), (0.1, 0.1, 0.2), "block")  # an object that is nowhere near


def thing(center, half, kind="block", turn=None):
    turn = np.eye(3) if turn is None else turn
    return scene.objects(center, turn, half, KIND_NAMES.index(kind))


def pair(subject, still=FAR):
    return np.stack([thing(*subject), thing(*still)])[None].astype(np.float32)


def act(scenes, *action, times=1):
    for _ in range(times):
        scenes = DYNAMICS.step(scenes, np.array([action], np.float64))
    return scenes


def place(scenes):
    return scenes[0, SUBJECT, CENTER].astype(np.float64)


def test_a_free_move_is_a_tenth_of_a_metre_an_axis():
    scenes = pair(((0, 0, 1), (0.1, 0.2, 0.3)))
    assert place(act(scenes, 1, -0.5, 0.25, 0, 0, 0)) == pytest.approx([0.1, -0.05, 1.025], abs=1e-6)
    assert place(act(scenes, 9, -9, 1, 0, 0, 0)) == pytest.approx([0.1, -0.1, 1.1], abs=1e-6)  # clipped


@pytest.mark.parametrize("about", [(1, 0, 0), (0, -1, 0), (0, 0, 1), (0.3, -0.7, 0.5)])
def test_a_free_turn_is_a_rotation_vector_in_the_world(about):
    begin = Rotation.from_rotvec([0.4, -0.2, 1.0])
    scenes = pair(((0, 0, 1), (0.1, 0.2, 0.3), "block", begin.as_matrix()))
    after = act(scenes, 0, 0, 0, *about)
    expected = (Rotation.from_rotvec(MAX_TURN * np.array(about)) * begin).as_matrix()
    assert after[0, SUBJECT, FRONT] == pytest.approx(expected[:, 0], abs=1e-6)
    assert after[0, SUBJECT, UP] == pytest.approx(expected[:, 2], abs=1e-6)
    assert place(after) == pytest.approx([0, 0, 1])


def test_axes_stay_unit_vectors_after_many_turns():
    scenes = act(pair(((0, 0, 1), (0.1, 0.2, 0.3))), 0, 0, 0, 1, 0.7, -0.4, times=2000)
    scene.validate(scenes)
    lengths = (scenes[0, SUBJECT, FRONT].astype(float) ** 2).sum(), (scenes[0, SUBJECT, UP].astype(float) ** 2).sum()
    assert lengths == pytest.approx((1, 1), abs=1e-6)


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("sign", [-1, 1])
def test_walls_floor_and_ceiling_stop_the_box(axis, sign):
    half = (0.1, 0.2, 0.3)
    action = np.zeros(6)
    action[axis] = sign
    after = place(act(pair(((0, 0, 1), half)), *action, times=60))
    expected = [0.0, 0.0, 1.0]
    expected[axis] = (ROOM[axis] - half[axis]) if sign > 0 else (half[axis] if axis == 2 else half[axis] - ROOM[axis])
    assert after == pytest.approx(expected, abs=1e-5)


def test_a_box_that_is_turned_on_the_floor_is_lifted():
    """A cube on the floor turned by 0.2 about a horizontal axis reaches h (cos 0.2 + sin 0.2) down."""
    after = act(pair(((0, 0, 0.2), (0.2, 0.2, 0.2))), 0, 0, 0, 1, 0, 0)
    assert place(after)[2] == pytest.approx(0.2 * (np.cos(0.2) + np.sin(0.2)), abs=1e-6)


def test_a_subject_that_is_lowered_comes_to_lie_on_the_object():
    scenes = act(pair(((0.1, 0, 1.5), (0.1, 0.1, 0.15)), ((0, 0, 0.25), (0.3, 0.3, 0.25))), 0, 0, -1, 0, 0, 0, times=30)
    assert place(scenes)[2] == pytest.approx(0.5 + 0.15, abs=2 * TOUCHING)
    assert boxes.gap(scenes) == pytest.approx(0, abs=TOUCHING)


def test_a_subject_slides_along_what_it_is_pushed_onto():
    on = pair(((0, 0, 0.6), (0.1, 0.1, 0.1)), ((0, 0, 0.25), (0.8, 0.8, 0.25)))
    after = act(on, 0.5, 0.25, -1, 0, 0, 0, times=4)
    assert place(after)[:2] == pytest.approx([0.2, 0.1], abs=1e-5)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_push_onto_a_slanted_face_goes_on_along_it(sign):
    """Faces at 45 degrees: of a push of d along x, its part along the face is left, d / 2 along x and along y."""
    turn = scene.yaw_rotation(sign * 45.0)
    middle = -(0.1 + 0.3) * turn[:, 0] + (0, 0, 1)  # face to face
    scenes = pair((middle, (0.1, 0.1, 0.1), "block", turn), ((0, 0, 1), (0.3, 0.3, 0.3), "block", turn))
    moved = place(act(scenes, 1, 0, 0, 0, 0, 0)) - middle
    assert moved == pytest.approx([0.05, -sign * 0.05, 0], abs=2 * TOUCHING)


def test_a_subject_goes_into_a_container_and_not_through_its_walls():
    """Half 0.3: the floor of the cavity is 2 WALL above the lower side, its walls are 1 - 2 WALL from the middle."""
    scenes = pair(((0, 0, 0.9), (0.1, 0.1, 0.1)), ((0, 0, 0.3), (0.3, 0.3, 0.3), "container"))
    scenes = act(scenes, 0, 0, -1, 0, 0, 0, times=12)
    assert place(scenes)[2] == pytest.approx(2 * WALL * 0.3 + 0.1, abs=2 * TOUCHING)
    scenes = act(scenes, 1, 0, 0, 0, 0, 0, times=12)
    assert place(scenes)[0] == pytest.approx((1 - 2 * WALL) * 0.3 - 0.1, abs=2 * TOUCHING)


def test_the_hole_of_a_frame_lets_through_and_its_posts_do_not():
    frame = ((0, 0, 0.5), (0.05, 0.5, 0.5), "frame")
    through = act(pair(((-0.6, 0, 0.5), (0.3, 0.04, 0.04), "stick"), frame), 1, 0, 0, 0, 0, 0, times=12)
    assert place(through)[0] == pytest.approx(0.6, abs=1e-5)
    beside = act(pair(((-0.6, 0.45, 0.5), (0.3, 0.04, 0.04), "stick"), frame), 1, 0, 0, 0, 0, 0, times=12)
    assert place(beside)[0] == pytest.approx(-0.35, abs=2 * TOUCHING)


@pytest.mark.parametrize("lead", [0.001, 0.03, 0.0999])
def test_nothing_tunnels_through_a_sheet(lead):
    """Both are 2 mm thick, fifty times less than a step."""
    scenes = pair(((-0.002 - lead, 0, 1), (0.001, 0.2, 0.2)), ((0, 0, 1), (0.001, 0.5, 0.5)))
    after = act(scenes, 1, 0, 0, 0, 0, 0, times=3)
    assert place(after)[0] == pytest.approx(-0.002, abs=2 * TOUCHING)


def test_a_turn_stops_where_the_solids_touch():
    """A stick beside a wall, its tip sweeping towards it: it touches where half sine plus half width cosine is way."""
    half, width, way = 0.4, 0.02, 0.1
    scenes = pair(((0, 0, 1), (half, width, width), "stick"), ((0, way + 0.1, 1), (1, 0.1, 0.5)))
    after = act(scenes, 0, 0, 0, 0, 0, 1, times=8)
    assert clear(after).all()
    angle = np.arctan2(after[0, SUBJECT, FRONT][1], after[0, SUBJECT, FRONT][0])
    assert half * np.sin(angle) + width * np.cos(angle) == pytest.approx(way, abs=1e-3)


def test_an_overlap_is_no_trap():
    """Where a scene begins with one, motions that do not deepen it are carried out."""
    scenes = pair(((0.15, 0, 0.2), (0.1, 0.1, 0.1)), ((0, 0, 0.2), (0.1, 0.1, 0.2)))
    assert not clear(scenes).any()
    assert place(act(scenes, -1, 0, 0, 0, 0, 0))[0] == pytest.approx(0.15, abs=1e-5)
    assert place(act(scenes, 1, 0, 0, 0, 0, 0))[0] == pytest.approx(0.25, abs=1e-5)


def random_scenes(rng, size):
    """Scenes of all shapes near each other that do not overlap."""
    found = []
    while len(found) < size:
        turns = Rotation.random(2, rng=rng).as_matrix()
        objects = [
            thing(
                rng.uniform(-0.4, 0.4, 3) + np.array([0, 0, 0.5]),
                rng.uniform(0.03, 0.3, 3),
                rng.choice(KIND_NAMES),
                turn,
            )
            for turn in turns
        ]
        one = fitted(np.stack(objects))[None].astype(np.float32)
        if clear(one).all():
            found.append(one)
    return np.concatenate(found)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_motion_brings_solids_into_each_other_or_out_of_the_room(seed):
    rng = np.random.default_rng(seed)
    scenes = random_scenes(rng, 4)
    for _ in range(10):
        action = np.where(rng.random((4, 6)) < 0.3, np.sign(rng.uniform(-1, 1, (4, 6))), rng.uniform(-1, 1, (4, 6)))
        after = DYNAMICS.step(scenes, action)
        assert (boxes.penetration(after) <= TOUCHING).all()
        corners = scene.corners(after[:, SUBJECT].astype(np.float64))
        assert (np.abs(corners[..., :2]) <= np.array(ROOM[:2]) + 1e-5).all()
        assert (corners[..., 2] >= -1e-5).all()
        assert (corners[..., 2] <= ROOM[2] + 1e-5).all()
        moved = after[:, SUBJECT, CENTER].astype(np.float64) - scenes[:, SUBJECT, CENTER]
        assert (np.hypot(*moved[:, :2].T) <= np.sqrt(3) * MAX_MOVE + 1e-5).all()
        scenes = after


def test_only_the_subjects_pose_changes_and_inputs_do_not():
    scenes = random_scenes(np.random.default_rng(0), 20)
    kept, actions = scenes.copy(), np.random.default_rng(1).uniform(-1, 1, (20, 6))
    after = DYNAMICS.step(scenes, actions)
    assert np.array_equal(scenes, kept)
    assert np.array_equal(after[:, OBJECT], kept[:, OBJECT])
    assert np.array_equal(after[:, SUBJECT, HALF], kept[:, SUBJECT, HALF])
    assert np.array_equal(after[:, SUBJECT, KIND], kept[:, SUBJECT, KIND])
    assert (after[:, SUBJECT, CENTER] != kept[:, SUBJECT, CENTER]).any()


def test_rows_do_not_depend_on_the_batch():
    scenes = random_scenes(np.random.default_rng(2), 12)
    actions = np.random.default_rng(3).uniform(-1, 1, (12, 6))
    together = DYNAMICS.step(scenes, actions)
    alone = [DYNAMICS.step(scenes[row : row + 1], actions[row : row + 1]) for row in range(12)]
    assert np.array_equal(together, np.concatenate(alone))


def test_clear_is_what_the_depth_of_the_rules_says():
    """``boxes.penetration`` tells the depth of the deepest pair of parts."""
    rng = np.random.default_rng(4)
    objects = [
        thing(rng.uniform(-0.3, 0.3, 3), rng.uniform(0.05, 0.3, 3), rng.choice(KIND_NAMES), turn)
        for turn in Rotation.random(400, rng=rng).as_matrix()
    ]
    scenes = np.array(objects).reshape(200, 2, -1)
    depth = boxes.penetration(scenes)
    assert 20 < (depth > 0).sum() < 180
    assert np.array_equal(clear(scenes), depth <= TOUCHING)


@pytest.mark.parametrize(
    "action", [np.zeros((1, 5)), np.zeros(6), np.zeros((2, 6)), np.full((1, 6), np.nan), np.full((1, 6), np.inf)]
)
def test_bad_actions_are_refused(action):
    with pytest.raises(ActionError, match="action"):
        DYNAMICS.step(pair(((0, 0, 1), (0.1, 0.1, 0.1))), action)


def test_the_action_space_is_six_numbers():
    space = dynamics.RelationDynamics().action_space
    assert space.shape == (6,)
    assert (space.low == -1).all()
    assert (space.high == 1).all()
