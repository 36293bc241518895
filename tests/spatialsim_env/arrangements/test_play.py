from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spatialsim_env.arrangements import play, scene
from spatialsim_env.arrangements.dynamics import SceneDynamics
from spatialsim_env.arrangements.play import KEYS, TURN_STEP, Command, Controller, Game, action, handle, under
from spatialsim_env.arrangements.scene import ORIENTATION, POSITION, SIZE
from spatialsim_env.arrangements.viewer import SceneViewer

ENV_ID = "spatialsim_env:SpatialSim-Discrim-v0"
RULES = SceneDynamics.of("pick_place", 4)
coordinates = st.floats(0, 20, width=32)


def arena(*positions, size=1.0):
    rows = scene.sample([len(positions)], 4, np.random.default_rng(0))[0]
    rows[: len(positions), POSITION] = positions
    rows[: len(positions), SIZE] = size
    rows[:, ORIENTATION] *= 0
    return rows


def carried_out(controller, rows):
    """What the dynamics make of all that the controller asks for, and how many steps it takes."""
    for steps in range(1000):
        step = controller.next_action(rows)
        if step is None:
            return rows, steps
        assert RULES.action_space.contains(step)
        rows = RULES.step(rows[None], step[None])[0]
    raise AssertionError("the controller never comes to rest")


FOUR = arena((4, 4), (16, 4), (4, 16), (16, 16))
UNEVEN = arena((4.1, 3.7), (15.2, 4.9), (5.3, 16.1), (16.7, 15.4))  # no drag halts on another object's centre


@settings(deadline=None)
@given(
    st.integers(0, 3),
    st.tuples(st.floats(-4, 4), st.floats(-4, 4)),
    st.floats(-np.pi / 2, np.pi / 2),
)
def test_an_action_moves_the_object_by_what_was_asked(row, displacement, turn):
    after = RULES.step(FOUR[None], action(FOUR[row, POSITION], displacement, turn)[None])[0]
    expected = FOUR.copy()
    expected[row, POSITION] += displacement
    expected[row, ORIENTATION] = turn
    assert np.allclose(after[:, POSITION], expected[:, POSITION], atol=1e-5)
    assert np.allclose(np.exp(1j * after[:, ORIENTATION]), np.exp(1j * expected[:, ORIENTATION]), atol=1e-5)


@settings(deadline=None)
@given(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), st.floats(-10, 10), st.tuples(coordinates, coordinates))
def test_actions_lie_in_the_action_space_and_keep_their_direction(displacement, turn, point):
    step = action(point, displacement, turn)
    assert RULES.action_space.contains(step)
    x, y = displacement
    assert step[2] * y == pytest.approx(step[3] * x, abs=1e-4)


def test_under_is_the_topmost_object_that_holds_the_cursor():
    rows = arena((5, 5), (6, 5), (15, 15))
    assert under(rows, (4.2, 5)) == 0
    assert under(rows, (5.5, 5)) == 1
    assert under(rows, (10, 10)) is None
    assert under(rows, (0.0, 0.0)) is None
    assert under(rows, None) is None


@settings(deadline=None)
@given(st.integers(0, 3), st.tuples(st.floats(-0.6, 0.6), st.floats(-0.6, 0.6)), st.tuples(coordinates, coordinates))
def test_a_drag_takes_the_object_where_the_mouse_goes(row, grip, goal):
    controller = Controller()
    start = UNEVEN[row, POSITION]
    target = np.clip(np.array(goal) - grip, 0, 20)
    others = np.arange(4) != row
    assume(np.hypot(*(UNEVEN[others][:, POSITION] - target).T).min() > 0.01)
    controller.point(tuple(start + grip))
    controller.press(UNEVEN)
    controller.point(goal)
    controller.release()
    after, steps = carried_out(controller, UNEVEN)
    assert np.allclose(after[row, POSITION], target, atol=1e-3)
    assert np.array_equal(after[others], UNEVEN[others])
    strides = np.abs(target - start).max() / 4  # a whole number may fall on either side, positions being float32
    assert max(1, np.ceil(strides - 1e-4)) <= steps <= max(1, np.ceil(strides + 1e-4))


def test_a_long_drag_takes_several_steps():
    controller = Controller()
    controller.point((4, 4))
    controller.press(FOUR)
    controller.point((14, 4))
    assert controller.next_action(FOUR) == pytest.approx([-0.6, -0.6, 1, 0, 0])
    assert carried_out(controller, FOUR)[1] == 3


def test_nothing_is_dragged_without_an_object_under_the_mouse():
    controller = Controller()
    controller.point((10, 10))
    controller.press(FOUR)
    controller.point((12, 12))
    assert controller.next_action(FOUR) is None


def test_moving_after_letting_go_moves_nothing():
    controller = Controller()
    controller.point((4, 4))
    controller.press(FOUR)
    controller.release()
    controller.point((9, 9))
    assert controller.next_action(FOUR) is None


def test_a_second_drag_does_not_cut_the_first_short():
    controller = Controller()
    for start, goal in (((4, 4), (4, 13)), ((16, 16), (16, 7))):
        controller.point(start)
        controller.press(FOUR)
        controller.point(goal)
        controller.release()
    after, _ = carried_out(controller, FOUR)
    assert np.allclose(after[[0, 3]][:, POSITION], [(4, 13), (16, 7)], atol=1e-4)


@settings(deadline=None)
@given(st.floats(-12, 12))
def test_turns_of_any_size_are_split_and_carried_out(angle):
    controller = Controller()
    controller.point((16, 4))
    controller.turn(FOUR, angle)
    after, steps = carried_out(controller, FOUR)
    assert np.exp(1j * after[1, ORIENTATION]) == pytest.approx(np.exp(1j * angle), abs=1e-4)
    assert np.array_equal(np.delete(after, 1, axis=0), np.delete(FOUR, 1, axis=0))
    assert steps == max(1, np.ceil(abs(angle) / (np.pi / 2) - 1e-9))


def test_a_turn_without_an_object_under_the_mouse_is_of_the_last_one():
    controller = Controller()
    controller.turn(FOUR, 1.0)
    assert controller.next_action(FOUR) is None
    controller.point((4, 16))
    controller.press(FOUR)
    controller.release()
    controller.point((10, 10))
    controller.turn(FOUR, 1.0)
    after, _ = carried_out(controller, FOUR)
    assert after[:, ORIENTATION] == pytest.approx([0, 0, 1, 0], abs=1e-6)


def test_a_new_episode_begins_with_nothing_asked_for():
    controller = Controller()
    controller.point((4, 4))
    controller.press(FOUR)
    controller.turn(FOUR, 3.0)
    controller.point((15, 15))
    controller.clear()
    controller.point((10, 10))
    controller.turn(FOUR, 3.0)
    assert controller.next_action(FOUR) is None


# Events


@pytest.fixture
def pygame_(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.init()
    yield pygame
    pygame.display.quit()


def pixel(x, y):
    """Where the frame shows a point of the arena, found through the viewer's own inverse."""
    viewer = SceneViewer()
    column = next(c for c in range(392, 784) if (p := viewer.to_arena((c, 200))) and p[0] >= x)
    row = next(r for r in range(44, 480) if (p := viewer.to_arena((500, r))) and p[1] <= y)
    return column, row


def events_of_a_drag(pygame, start, goal):
    button = {"button": pygame.BUTTON_LEFT}
    return [
        pygame.event.Event(pygame.MOUSEBUTTONDOWN, pos=pixel(*start), **button),
        pygame.event.Event(pygame.MOUSEMOTION, pos=pixel(*goal), rel=(0, 0), buttons=(1, 0, 0)),
        pygame.event.Event(pygame.MOUSEBUTTONUP, pos=pixel(*goal), **button),
    ]


def key(pygame, name):
    return pygame.event.Event(pygame.KEYDOWN, key=pygame.key.key_code(name))


def test_every_key_is_one_that_pygame_knows_and_does_something(pygame_):
    assert set(KEYS.values()) == set(Command)
    for name, command in KEYS.items():
        controller = Controller()
        controller.point((4, 4))
        answer = handle(key(pygame_, name), controller, SceneViewer(), FOUR)
        step = controller.next_action(FOUR)
        assert (answer is None) == (step is not None)
        assert answer in (None, command)
        assert step is None or RULES.action_space.contains(step)


@pytest.mark.parametrize(("name", "angle"), [("q", TURN_STEP), ("e", 2 * np.pi - TURN_STEP)])
def test_q_turns_left_and_e_turns_right(pygame_, name, angle):
    controller = Controller()
    controller.point((4, 4))
    handle(key(pygame_, name), controller, SceneViewer(), FOUR)
    assert carried_out(controller, FOUR)[0][0, ORIENTATION] == pytest.approx(angle, abs=1e-5)


def test_the_wheel_turns_the_object_under_the_mouse(pygame_):
    controller = Controller()
    for event in (
        pygame_.event.Event(pygame_.MOUSEMOTION, pos=pixel(16, 16), rel=(0, 0), buttons=(0, 0, 0)),
        pygame_.event.Event(pygame_.MOUSEWHEEL, x=0, y=2, flipped=False),
    ):
        assert handle(event, controller, SceneViewer(), FOUR) is None
    assert carried_out(controller, FOUR)[0][3, ORIENTATION] == pytest.approx(2 * TURN_STEP, abs=1e-5)


def test_a_drag_by_mouse_events(pygame_):
    controller = Controller()
    for event in events_of_a_drag(pygame_, (4, 4), (9, 12)):
        assert handle(event, controller, SceneViewer(), FOUR) is None
    after, _ = carried_out(controller, FOUR)
    assert after[0, POSITION] == pytest.approx((9, 12), abs=0.15)


@pytest.mark.parametrize("name", ["x", "space", "left shift"])
def test_other_keys_and_buttons_do_nothing(pygame_, name):
    controller = Controller()
    controller.point((4, 4))
    assert handle(key(pygame_, name), controller, SceneViewer(), FOUR) is None
    right = pygame_.event.Event(pygame_.MOUSEBUTTONDOWN, pos=pixel(4, 4), button=pygame_.BUTTON_RIGHT)
    assert handle(right, controller, SceneViewer(), FOUR) is None
    controller.point((9, 9))
    assert controller.next_action(FOUR) is None


# Games


@pytest.fixture
def game(pygame_) -> Iterator[Game]:
    env = gym.make(ENV_ID, action_mode="pick_place", n_objects=3, max_episode_steps=10**9)
    viewer = SceneViewer("human", fps=0)
    game = Game(env, viewer, seed=4)
    assert game.frame()
    yield game
    viewer.close()
    env.close()


def post(pygame, *events):
    for event in events:
        pygame.event.post(event)


def test_dragging_moves_the_object_in_the_environment(pygame_, game):
    before = game.arena.copy()
    start = before[2, POSITION]
    goal = np.where(start < 10, start + 6, start - 6)
    post(pygame_, *events_of_a_drag(pygame_, tuple(start), tuple(goal)))
    assert game.frame()
    assert game.frame()
    assert game.arena[2, POSITION] == pytest.approx(goal, abs=0.15)
    assert np.array_equal(game.arena[:2], before[:2])
    truth = game.env.unwrapped
    assert np.array_equal(game.arena, truth.scenes[0])
    assert np.array_equal(game.goal, truth.scenes[1])


def test_the_goal_can_be_reached_by_hand(pygame_, game):
    """Objects of one identity go where the goal, brought back into the arena, has them."""
    goal = game.goal.astype(np.float64)
    partner = [int(np.abs(goal[:, scene.COLOR] - row[scene.COLOR]).sum(axis=1).argmin()) for row in game.arena]
    scale = float(np.mean(game.arena[:, SIZE] / goal[partner, SIZE]))
    angle = float(np.angle(np.exp(1j * (game.arena[:, ORIENTATION] - goal[partner, ORIENTATION])).mean()))
    offset = goal[partner][:, POSITION] - goal[:, POSITION].mean(axis=0)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shape = scale * offset @ turn.T
    targets = shape + 10 - (shape.max(axis=0) + shape.min(axis=0)) / 2
    for row, target in enumerate(targets):
        game.controller._targets[row] = target
    while game.controller._targets:
        assert game.frame()
    assert game.achieved
    assert game.distance <= 1


def test_r_restarts_and_n_draws_a_new_goal(pygame_, game):
    first = game.arena.copy(), game.goal.copy()
    post(pygame_, *events_of_a_drag(pygame_, tuple(first[0][2, POSITION]), (10, 10)))
    game.frame()
    assert not np.array_equal(game.arena, first[0])
    post(pygame_, key(pygame_, "r"))
    assert game.frame()
    assert np.array_equal(game.arena, first[0])
    assert np.array_equal(game.goal, first[1])
    post(pygame_, key(pygame_, "n"))
    assert game.frame()
    assert not np.array_equal(game.goal, first[1])


def test_a_seed_gives_the_same_goals(pygame_, game):
    other = Game(game.env, SceneViewer("human"), seed=4)
    assert np.array_equal(other.goal, game.goal)
    other._new_goal()
    game._new_goal()
    assert np.array_equal(other.goal, game.goal)


def test_escape_ends_the_game(pygame_, game):
    post(pygame_, key(pygame_, "escape"))
    assert not game.frame()


def test_closing_the_window_ends_the_game(pygame_, game):
    post(pygame_, pygame_.event.Event(pygame_.QUIT), key(pygame_, "n"))
    assert not game.frame()


def test_nothing_happens_while_the_player_does_nothing(pygame_, game):
    before = game.arena.copy()
    for _ in range(5):
        assert game.frame()
    assert np.array_equal(game.arena, before)
    assert game._steps == 0


@pytest.mark.parametrize("options", [{}, {"n_objects": 4, "criterion": "positions", "seed": 1}])
def test_play_runs_until_escape_and_tidies_up(pygame_, monkeypatch, options):
    made, real = [], gym.make
    monkeypatch.setattr(play.gym, "make", lambda *args, **keywords: made.append(real(*args, **keywords)) or made[-1])
    post(pygame_, key(pygame_, "q"), key(pygame_, "escape"))
    play.play(fps=0, **options)
    env = made[0].unwrapped
    assert env.world.dynamics.mode == "pick_place"
    assert env.world.truth.criterion.name == options.get("criterion", "similarity")
    assert pygame_.display.get_init()


def test_play_serves_identification_too(pygame_):
    post(pygame_, key(pygame_, "escape"))
    play.play("spatialsim_env:SpatialSim-Ident-v0", fps=0)


def test_an_event_of_another_kind_is_ignored(pygame_):
    assert handle(SimpleNamespace(type=pygame_.USEREVENT), Controller(), SceneViewer(), FOUR) is None
