from __future__ import annotations

import copy
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialsim_env.arrangements import scene
from spatialsim_env.arrangements.pictures import ARENA_WINDOW
from spatialsim_env.arrangements.viewer import Panel, SceneViewer
from spatialsim_env.core.screen import FRAME, save_frames
from tests.spatialsim_env.drawing import BLUE, GREEN, RED, centroid, close_to, thing

# The viewer


@settings(deadline=None)
@given(st.floats(0, 20), st.floats(0, 20))
def test_a_panel_maps_there_and_back(x, y):
    panel = Panel(30, 40, 200, ARENA_WINDOW)
    assert panel.to_world(panel.to_pixel(x, y)) == pytest.approx((x, y))


def test_a_panel_knows_its_corners():
    panel = Panel(30, 40, 200, ((-5.0, 15.0), (0.0, 20.0)))
    assert panel.to_world((30, 40)) == (-5, 20)
    assert panel.to_world((130, 140)) == (5, 10)
    assert [panel.to_world(pixel) for pixel in ((29, 100), (230, 100), (100, 39), (100, 240))] == [None] * 4


def frame(goal, arena, distance=2.0, achieved=False, step=0):
    viewer = SceneViewer()
    image = viewer.draw(np.array(goal), np.array(arena), distance, achieved, step)
    viewer.close()
    return image


def test_a_frame_is_a_fresh_array():
    viewer = SceneViewer("rgb_array")
    first = viewer.draw(np.array([thing()]), np.array([thing()]), 2.0, False, 0)
    second = viewer.draw(np.array([thing()]), np.array([thing()]), 2.0, False, 0)
    viewer.close()
    assert first.shape == (FRAME[1], FRAME[0], 3)
    assert first.dtype == np.uint8
    assert np.array_equal(first, second)
    assert not np.shares_memory(first, second)
    first[0] = 0


@pytest.mark.parametrize("position", [(0.0, 0.0), (20.0, 0.0), (3.0, 17.0), (20.0, 20.0)])
def test_objects_of_the_arena_are_whole_and_where_to_arena_says(position):
    image = frame([thing()], [thing(color=RED, position=position)])
    red = close_to((255, 0, 0), image)
    assert SceneViewer().to_arena(centroid(red)) == pytest.approx(position, abs=0.3)
    inside = 368 / 25
    assert red.sum() == pytest.approx(np.pi * (2 * inside - 1.5) ** 2, rel=0.08)


def test_to_arena_is_none_off_the_panel():
    assert SceneViewer().to_arena((100, 200)) is None
    assert SceneViewer().to_arena((500, 470)) is None


def test_the_goal_is_centred_wherever_it_is():
    panels = [frame([thing(color=RED, position=p)], [thing()])[:, :392] for p in ((10, 10), (-40, 55))]
    (column, row), other = (centroid(close_to((255, 0, 0), panel)) for panel in panels)
    assert (column, row) == pytest.approx(other, abs=0.1)
    arena = frame([thing()], [thing(color=RED)])[:, 392:]
    assert close_to((255, 0, 0), arena).sum() == pytest.approx(close_to((255, 0, 0), panels[0]).sum(), rel=0.02)


def test_a_wide_goal_is_shown_whole():
    goal = [
        thing(color=RED, position=(-20, 10)),
        thing(color=GREEN, position=(40, 10)),
        thing(color=BLUE, position=(10, 55)),
    ]
    image = frame(goal, [thing()])
    areas = [close_to(np.multiply(255, color), image).sum() for color in (RED, GREEN, BLUE)]
    assert max(areas) == pytest.approx(min(areas), rel=0.1)
    inside = 368 / (64 * 1.05)
    assert areas[0] == pytest.approx(np.pi * (2 * inside - 1.5) ** 2, rel=0.15)


def test_the_bar_grows_with_the_distance_and_its_colour_says_achieved():
    def filled(distance, achieved):
        image = frame([thing()], [thing()], distance, achieved)
        row = image[FRAME[1] - 28].astype(int)
        return (np.ptp(row, axis=-1) > 60).sum(), row[20]

    lengths = [filled(d, False)[0] for d in (0.5, 1.0, 1.5, 8.0, 1e3, np.inf)]
    assert lengths == sorted(set(lengths[:4])) + lengths[4:]
    assert lengths[-1] == FRAME[0] - 32
    assert lengths[1] == pytest.approx(lengths[-1] / 2, abs=2)
    green, orange = filled(0.5, True)[1], filled(0.5, False)[1]
    assert green[1] > green[0]
    assert orange[0] > orange[1]


@pytest.mark.parametrize("facts", [(2.5, False, 0), (2.0, True, 0), (2.0, False, 1)])
def test_distance_success_and_step_are_shown(facts):
    assert not np.array_equal(frame([thing()], [thing()], 2.0, False, 0), frame([thing()], [thing()], *facts))


def test_the_hint_is_shown():
    viewer, hinted = SceneViewer(), SceneViewer(hint="drag: move")
    scenes = np.array([thing()]), np.array([thing()])
    assert not np.array_equal(viewer.draw(*scenes, 2.0, False, 0), hinted.draw(*scenes, 2.0, False, 0))
    viewer.close()
    hinted.close()


def test_an_unknown_render_mode_is_refused():
    with pytest.raises(ValueError, match="'ansi'; accepted are human, rgb_array"):
        SceneViewer("ansi")


def test_a_viewer_refuses_what_is_not_a_scene():
    with pytest.raises(scene.SceneError, match="goal"):
        SceneViewer().draw(np.zeros((1, 10)), np.array([thing()]), 1.0, True, 0)


def test_one_viewer_closing_leaves_the_fonts_to_the_other():
    scenes = np.array([thing()]), np.array([thing()])
    first, second = SceneViewer(), SceneViewer()
    first.draw(*scenes, 2.0, False, 0)
    before = second.draw(*scenes, 2.0, False, 0)
    first.close()
    first.close()
    assert np.array_equal(before, second.draw(*scenes, 2.0, False, 0))
    second.close()
    assert np.array_equal(before, second.draw(*scenes, 2.0, False, 0))
    second.close()


# Processes: no display, no pygame


def run(code, **variables):
    keep = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment = {key: value for key, value in keep.items() if not key.startswith("SDL_")} | variables
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


SCENE = """
import numpy as np
from spatialsim_env.arrangements import scene
one = scene.sample([5], 5, np.random.default_rng(0))[0]
"""


def test_arrays_need_no_display_and_open_none():
    """gym#3037, #2936."""
    code = """
import gymnasium as gym
from spatialsim_env.arrangements.pictures import picture
from spatialsim_env.arrangements.viewer import SceneViewer
viewer = SceneViewer("rgb_array")
image = viewer.draw(one, one, 1.0, True, 0)
plain = picture(one)
import pygame
print(image.std() > 0, plain.std() > 0, pygame.display.get_init())
viewer.close()
env = gym.make("spatialsim_env:SpatialSim-Discrim-v0", render_mode="rgb_array")
env.reset(seed=0)
print(env.render().std() > 0, pygame.display.get_init())
env.close()
"""
    assert run(SCENE + code)[-2:] == ["True True False", "True False"]


def test_a_window_without_a_display_is_a_clear_error():
    code = """
from spatialsim_env.arrangements.viewer import SceneViewer
import pygame
viewer = SceneViewer("human")
try:
    viewer.draw(one, one, 1.0, True, 0)
except RuntimeError as error:
    print(error)
viewer.close()
print(pygame.display.get_init())
"""
    *_, message, initialised = run(SCENE + code)
    assert "display" in message or "video" in message
    assert initialised == "False"


def test_importing_needs_no_pygame_and_drawing_says_what_to_install():
    code = """
import sys
sys.modules["pygame"] = None
import spatialsim_env
from spatialsim_env.arrangements.pictures import picture
from spatialsim_env.arrangements.viewer import SceneViewer
for draw in (
    lambda: picture(one),
    lambda: SceneViewer().draw(one, one, 1.0, True, 0),
    lambda: SceneViewer("human").draw(one, one, 1.0, True, 0),
    lambda: spatialsim_env.play.play(),
):
    try:
        draw()
    except ImportError as error:
        print(error)
SceneViewer("human").close()
"""
    assert run(SCENE + code) == ['drawing needs pygame-ce: pip install "spatialsim-env[render]"'] * 4


def test_importing_imports_no_pygame():
    code = "import sys; from spatialsim_env.arrangements import play, viewer; print('pygame' in sys.modules)"
    assert run(code) == ["False"]


# Windows


@pytest.fixture
def pygame_(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    assert not pygame.display.get_init()
    yield pygame
    pygame.display.quit()


def show(viewer):
    return viewer.draw(np.array([thing(color=RED)]), np.array([thing(color=BLUE)]), 2.0, False, 0)


def test_a_window_opens_at_the_first_draw_and_closing_quits_the_display(pygame_):
    viewer = SceneViewer("human", fps=0)
    assert not viewer.is_open
    assert not pygame_.display.get_init()
    assert show(viewer) is None
    assert viewer.is_open
    assert pygame_.display.get_init()
    viewer.close()
    viewer.close()
    assert not viewer.is_open
    assert not pygame_.display.get_init()


def test_a_display_of_somebody_else_is_left_running(pygame_):
    pygame_.display.init()
    viewer = SceneViewer("human", fps=0)
    show(viewer)
    viewer.close()
    assert pygame_.display.get_init()


def test_two_windows_share_the_display(pygame_):
    first, second = SceneViewer("human", fps=0), SceneViewer("human", fps=0)
    show(first)
    show(second)
    first.close()
    assert pygame_.display.get_init()
    show(second)
    second.close()
    assert not pygame_.display.get_init()


def test_every_draw_empties_the_queue_of_events(pygame_):
    viewer, seen = SceneViewer("human", fps=0), []
    viewer.on_event = seen.append
    show(viewer)
    seen.clear()
    for _ in range(50):
        for _ in range(100):
            pygame_.event.post(pygame_.event.Event(pygame_.USEREVENT))
        show(viewer)
    assert pygame_.event.get() == []
    assert [event.type for event in seen].count(pygame_.USEREVENT) == 5000
    viewer.close()


def test_a_window_that_its_user_closes_stays_closed(pygame_):
    viewer = SceneViewer("human", fps=0)
    show(viewer)
    pygame_.event.post(pygame_.event.Event(pygame_.QUIT))
    show(viewer)
    assert not viewer.is_open
    assert show(viewer) is None
    assert not viewer.is_open
    assert not pygame_.display.get_init()
    viewer.close()
    show(viewer)
    assert viewer.is_open
    viewer.close()


def test_closing_one_of_two_windows_leaves_the_other(pygame_):
    first, second = SceneViewer("human", fps=0), SceneViewer("human", fps=0)
    show(first)
    show(second)
    pygame_.event.post(pygame_.event.Event(pygame_.WINDOWCLOSE, window=first._window))
    show(second)
    assert (first.is_open, second.is_open) == (False, True)
    second.close()
    first.close()


def test_frames_keep_to_the_rate(pygame_):
    viewer = SceneViewer("human", fps=25)
    show(viewer)
    start = time.perf_counter()
    for _ in range(5):
        show(viewer)
    assert time.perf_counter() - start >= 0.15
    viewer.close()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda viewer: pickle.loads(pickle.dumps(viewer))])
def test_copies_hold_no_surfaces_and_draw_by_themselves(pygame_, duplicate):
    viewer = SceneViewer("human", fps=7, hint="drag")
    viewer.on_event = lambda event: None
    show(viewer)
    other = duplicate(viewer)
    assert not other.is_open
    assert (other.render_mode, other.fps, other.hint) == ("human", 7, "drag")
    assert not any(value.__class__.__module__.startswith("pygame") for value in vars(other).values())
    other.close()
    assert viewer.is_open
    viewer.close()
    show(other)
    assert other.is_open
    other.close()
    assert not pygame_.display.get_init()


@pytest.fixture
def screen() -> Iterator[str]:
    """A virtual X screen; gives its name."""
    binary = shutil.which("Xvfb")
    if binary is None:
        pytest.skip("Xvfb is not installed")
    command = [binary, "-displayfd", "1", "-screen", "0", "1024x768x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        yield f":{server.stdout.readline().strip()}"
        server.terminate()


def test_fifty_environments_on_a_real_screen_leave_nothing_behind(screen):
    """MAgent2#79, gym#2684: windows, threads, files, events."""
    code = """
import gc, os, threading
import gymnasium as gym
import pygame
from spatialsim_env.arrangements.viewer import SceneViewer
def held():
    gc.collect()
    left = sum(isinstance(thing, (SceneViewer, pygame.Surface, pygame.Window)) for thing in gc.get_objects())
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), threading.active_count(), left
seen = []
for seed in range(50):
    env = gym.make("spatialsim_env:SpatialSim-Discrim-v0", render_mode="human", n_objects=3)
    env.reset(seed=seed)
    assert pygame.display.get_init() and pygame.display.get_driver() == "x11" and env.unwrapped._viewer.is_open
    pygame.event.post(pygame.event.Event(pygame.USEREVENT))
    env.step(env.action_space.sample())
    assert not pygame.event.get(pygame.USEREVENT)
    env.close()
    env.close()
    assert not pygame.display.get_init() and not pygame.font.get_init()
    del env
    if seed in (0, 49):
        seen.append(held())
print(*seen)
"""
    first, last = run(code, DISPLAY=screen)[-1].split(") (")
    assert first.strip("()") == last.strip("()")


def test_frames_are_saved_as_they_are_and_in_order(tmp_path):
    image = pytest.importorskip("PIL.Image")
    red, blue = (np.broadcast_to(np.uint8(color), (8, 8, 3)) for color in ((255, 0, 0), (0, 0, 255)))
    save_frames([red], tmp_path / "one.png")
    with image.open(tmp_path / "one.png") as png:
        assert np.array_equal(np.asarray(png), red)
    save_frames([red, blue], tmp_path / "two.gif")
    with image.open(tmp_path / "two.gif") as gif:
        assert gif.n_frames == 2
        for index, frame in enumerate((red, blue)):
            gif.seek(index)
            assert np.array_equal(np.asarray(gif.convert("RGB")), frame)
    for frames, name in (([red], "a.bmp"), ([red, blue], "a.png")):
        with pytest.raises(ValueError, match=name):
            save_frames(frames, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "two.gif"]
