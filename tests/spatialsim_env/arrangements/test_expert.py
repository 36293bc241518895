"""The scripted expert: it gets there under every set of rules, with no more actions than it says, and depends on
nothing but the two scenes."""

from __future__ import annotations

import numpy as np
import pytest

from spatialsim_env.arrangements import scene, similarities
from spatialsim_env.arrangements.dynamics import MAX_MOVE, MODES, SceneDynamics
from spatialsim_env.arrangements.env import DiscriminationEnv
from spatialsim_env.arrangements.expert import SLACK, Expert
from spatialsim_env.arrangements.goals import Criterion
from spatialsim_env.arrangements.scene import ARENA, COLOR, ORIENTATION, POSITION, SIZE, SceneError
from spatialsim_env.arrangements.tasks import shuffle

HORIZONS = {"move_all": 50, "pick_place": 50, "discrete": 100}
LONG = 150  # steps: eight objects in unit steps can need more than 100


def begin(n_objects, size, seed=0, **options):
    """An expert, and starts and goals of episodes."""
    env = DiscriminationEnv(n_objects, **options)
    blocks = np.random.default_rng(seed).random((size, env.world.episodes.n_uniform), np.float32)
    batch = env.world.episodes.begin(blocks)
    return Expert(env.world.dynamics, env.world.truth.criterion), batch.achieved, batch.desired


def distances(expert, achieved, desired, horizon):
    """The truth's distance after each step, (horizon, B)."""
    out = []
    for _ in range(horizon):
        achieved = expert.dynamics.step(achieved, expert(achieved, desired))
        out.append(expert.criterion.align(achieved, desired).distance)
    return np.array(out)


def one_pair(*moved, n=3, seed=5):
    """A reference of ``n`` objects as goal, and the same with objects displaced: (object, x, y)."""
    goal = scene.sample([n], n, np.random.default_rng(seed))
    goal[..., POSITION] = [[6.0, 6.0], [9.0, 12.0], [12.0, 7.0]][:n]
    start = goal.copy()
    for k, x, y in moved:
        start[0, k, POSITION] += [x, y]
    return start, goal


# --- it gets there --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_objects", [3, 5, 8, (3, 8)])
@pytest.mark.parametrize("mode", ["move_all", "pick_place"])
@pytest.mark.parametrize(
    "options",
    [{}, {"max_turn": 0}, {"start": "poses"}, {"start": "mirrored"}, {"criterion": "positions"}],
    ids=lambda options: "-".join(map(str, options.values())) or "plain",
)
def test_every_episode_ends_achieved(mode, n_objects, options):
    expert, achieved, desired = begin(n_objects, 60, action_mode=mode, **options)
    last = distances(expert, achieved, desired, HORIZONS[mode])[-1]
    assert last.max() <= 0.01  # exactly there, but for the slack


@pytest.mark.parametrize("n_objects", [3, 5])
@pytest.mark.parametrize(
    "options", [{}, {"max_turn": 0}, {"start": "poses"}, {"criterion": "positions"}], ids=lambda x: str(x)
)
def test_every_episode_ends_achieved_in_steps(n_objects, options):
    expert, achieved, desired = begin(n_objects, 30, action_mode="discrete", **options)
    reached = distances(expert, achieved, desired, HORIZONS["discrete"]) <= 1
    assert reached[-1].all()
    assert (np.diff(reached.astype(int), axis=0) >= 0).all()  # once there, it stays


def test_eight_objects_in_steps_need_more_than_a_hundred():
    """Only the horizon keeps the expert from the goal: it is missed where the plan at the start exceeds it."""
    expert, achieved, desired = begin(8, 60, action_mode="discrete", max_turn=0)
    _, left = expert.plan(achieved, desired)
    reached = distances(expert, achieved, desired, LONG) <= 1
    assert reached[-1].all()
    assert (left[~reached[99]] > 98).all()
    assert (left > 100).any()


@pytest.mark.parametrize("orientation", ["number", "visual"])
def test_a_visual_goal_is_reached(orientation):
    expert, achieved, desired = begin((3, 5), 40, start="poses", orientation=orientation)
    assert distances(expert, achieved, desired, 50)[-1].max() <= 1


# --- what it plans --------------------------------------------------------------------------------------------------


def test_actions_of_a_hand_made_pair():
    """One object 6 units off: together both ends go 3; picked, 4 and 2; in steps, 0.7 is left on either side."""
    start, goal = one_pair((1, 6.0, 0.0))
    for mode, actions in (("move_all", 3), ("pick_place", 2), ("discrete", 5)):
        _, left = Expert(SceneDynamics.of(mode, 3, 0)).plan(start, goal)
        assert left[0] == actions
    assert Expert(SceneDynamics.of("move_all", 3, 0))(start, goal)[0] == pytest.approx([1, 0, -1, 0, 1, 0])
    x, y = start[0, 1, POSITION] / 10 - 1
    assert Expert(SceneDynamics.of("pick_place", 3, 0))(start, goal)[0] == pytest.approx([x, y, -1, 0])
    assert Expert(SceneDynamics.of("discrete", 3, 0))(start, goal)[0].tolist() == [1, 1]


def test_one_turned_object_is_turned_back():
    start, goal = one_pair()
    start[0, 2, ORIENTATION] = (start[0, 2, ORIENTATION] + 1.0) % (2 * np.pi)
    expert = Expert(SceneDynamics.of("pick_place", 3))
    ways, left = expert.plan(start, goal)
    assert ways[0] == pytest.approx(np.array([[0, 0, 0], [0, 0, 0], [0, 0, -1.0]]), abs=SLACK)
    assert left[0] == 1
    assert expert.plan(*one_pair())[1][0] == 0


@pytest.mark.parametrize("mode", MODES)
def test_every_action_leaves_one_less(mode):
    expert, achieved, desired = begin((3, 5), 25, action_mode=mode, start="poses")
    _, left = expert.plan(achieved, desired)
    for _ in range(HORIZONS[mode]):
        going = (left > 0) & (expert.criterion.align(achieved, desired).distance > 1)
        achieved = expert.dynamics.step(achieved, expert(achieved, desired))
        _, after = expert.plan(achieved, desired)
        assert (after[going] <= left[going] - 1).all()
        left = after
    assert (expert.criterion.align(achieved, desired).distance <= 1).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("start", ["redrawn", "poses"])
def test_places_lie_in_the_arena_and_form_the_goal(mode, start):
    expert, achieved, desired = begin((3, 8), 100, action_mode=mode, start=start)
    ways, _ = expert.plan(achieved, desired)
    there = achieved.astype(np.float64)
    there[..., POSITION] += ways[..., :2]
    there[..., ORIENTATION] += ways[..., 2]
    assert -1e-5 <= there[..., POSITION].min() <= there[..., POSITION].max() <= ARENA + 1e-5
    if mode != "discrete":  # whose steps leave something to the truth's fit
        assert expert.criterion.align(there, desired).distance.max() <= 1e-3


def test_objects_that_look_the_same_go_where_their_sizes_fit():
    start, goal = one_pair()
    for part in (start, goal):
        part[0, 1, scene.SHAPE] = part[0, 0, scene.SHAPE]
        part[0, 1, COLOR] = part[0, 0, COLOR]
        part[0, :2, SIZE] = [0.5, 1.5]
    start[0, :2, POSITION] = goal[0, 1::-1, POSITION]  # each in the other's place
    ways, _ = Expert(SceneDynamics.of("pick_place", 3, 0)).plan(start, goal)
    there = start[..., POSITION] + ways[..., :2]
    apart = there[0, :2] - there[0, 2]
    assert apart == pytest.approx(goal[0, :2, POSITION] - goal[0, 2, POSITION], abs=1e-4)


def test_other_objects_are_not_walked_to():
    start, goal = one_pair((1, 6.0, 0.0))
    goal[0, 2, scene.SHAPE] = goal[0, 2, scene.SHAPE][[1, 2, 0]]
    ways, left = Expert(SceneDynamics.of("move_all", 3)).plan(start, goal)
    assert not ways.any()
    assert left[0] == 0
    assert not Expert(SceneDynamics.of("move_all", 3))(start, goal).any()


# --- what it depends on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_actions_are_in_the_space_and_repeat(mode):
    expert, achieved, desired = begin((3, 6), 40, action_mode=mode, start="poses")
    before = achieved.copy(), desired.copy()
    for _ in range(10):
        actions = expert(achieved, desired)
        assert all(expert.dynamics.action_space.contains(action) for action in actions)
        assert np.array_equal(actions, expert(achieved, desired))
        achieved = expert.dynamics.step(achieved, actions)
    assert np.array_equal(before[1], desired)


@pytest.mark.parametrize("mode", MODES)
def test_a_pair_does_not_depend_on_its_batch(mode):
    expert, achieved, desired = begin((3, 6), 20, action_mode=mode, start="poses")
    together = expert(achieved, desired)
    alone = [expert(achieved[i : i + 1], desired[i : i + 1])[0] for i in range(len(achieved))]
    assert np.array_equal(together, np.stack(alone))


@pytest.mark.parametrize("mode", MODES)
def test_padding_changes_nothing(mode):
    expert, achieved, desired = begin(4, 20, action_mode=mode, start="poses")
    ways, left = expert.plan(achieved, desired)
    wider = Expert(SceneDynamics.of(mode, 7))
    padded_ways, padded_left = wider.plan(scene.pad(achieved, 7), scene.pad(desired, 7))
    assert np.array_equal(padded_ways[:, :4], ways)
    assert not padded_ways[:, 4:].any()
    assert np.array_equal(padded_left, left)


@pytest.mark.parametrize("mode", ["move_all", "pick_place"])
def test_the_goals_similarity_and_order_do_not_matter(mode):
    """Where orientations fix the angle; where objects are turned, other angles are tried."""
    expert, achieved, desired = begin((3, 6), 40, action_mode=mode, max_turn=0)
    rng = np.random.default_rng(1)
    other = similarities.sample(40, rng).apply(shuffle(desired, rng.random(desired.shape[:2], np.float32)))
    assert np.abs(expert.plan(achieved, desired)[0] - expert.plan(achieved, other)[0]).max() < 1e-3


def test_actions_stay_within_a_step():
    expert, achieved, desired = begin(5, 40)
    after = expert.dynamics.step(achieved, expert(achieved, desired))
    assert np.abs(after - achieved)[..., POSITION].max() <= MAX_MOVE["move_all"] + 1e-5


@pytest.mark.parametrize(("rows", "other"), [(4, 3), (3, 4)])
def test_scenes_of_another_shape_are_refused(rows, other):
    expert = Expert(SceneDynamics.of("move_all", 3), Criterion())
    with pytest.raises(SceneError, match=r"has shape \(1, 4, 10\); accepted is \(1, 3, 10\)"):
        expert(np.zeros((1, rows, 10), np.float32), np.zeros((1, other, 10), np.float32))
