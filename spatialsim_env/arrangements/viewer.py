"""The view of goal and arena that an environment shows, as arrays or in a window.

pygame-ce is imported when something is drawn, not before. ``rgb_array`` frames need no display and open none.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.pictures import ARENA_WINDOW, SMOOTH, Window, draw_scene, import_pygame, pixels_of
from spatialsim_env.arrangements.scene import ARENA, POSITION, SIZE, present, validate
from spatialsim_env.files import replaced


@dataclass(frozen=True)
class Panel:
    """A square of the frame that shows a square of the world."""

    left: int  # pixels
    top: int  # pixels
    side: int  # pixels
    window: Window  # world units

    @property
    def scale(self) -> float:
        """Pixels per unit."""
        return self.side / (self.window[0][1] - self.window[0][0])

    def to_pixel(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of the world lies in the frame."""
        return self.left + (x - self.window[0][0]) * self.scale, self.top + (self.window[1][1] - y) * self.scale

    def to_world(self, pixel: tuple[float, float]) -> tuple[float, float] | None:
        """Which point of the world a pixel of the frame shows; None outside the panel."""
        across, down = pixel[0] - self.left, pixel[1] - self.top
        if not (0 <= across < self.side and 0 <= down < self.side):
            return None
        return self.window[0][0] + across / self.scale, self.window[1][1] - down / self.scale


FRAME_TIME = 80  # milliseconds that a frame of an animated picture is shown
_GOAL_MARGIN = 1.05  # the goal's panel is this many times as wide as the goal, and never narrower than the arena's
_GRID_STEP = 5  # units
SIDE, GAP, HEADER, FOOTER = 368, 16, 44, 68  # pixels
FRAME = (2 * SIDE + 3 * GAP, HEADER + SIDE + FOOTER)  # width and height of a frame, multiples of 16 as codecs like
_ARENA_PANEL = Panel(2 * GAP + SIDE, HEADER, SIDE, ARENA_WINDOW)
_TICKS = {0: "0", 1: "1: achieved up to here", 3: "3", 10: "10"}  # distances that the bar labels

_FONTS = {"title": 25, "text": 23, "small": 19}  # height in pixels
PAPER, _BEYOND, _FLOOR = (245, 246, 248), (235, 238, 242), (255, 255, 255)
_GRID, _WALL, INK, QUIET = (229, 232, 237), (160, 169, 182), (38, 44, 56), (108, 117, 132)
ACHIEVED, MISSED, TRACK = (34, 139, 94), (208, 120, 40), (222, 226, 232)


def _goal_panel(goal: NDArray[Any]) -> Panel:
    """A panel centred on the goal (n, 10) that shows all of it."""
    size = goal[:, SIZE, None]
    low, high = (goal[:, POSITION] - size).min(axis=0), (goal[:, POSITION] + size).max(axis=0)
    half = max((ARENA_WINDOW[0][1] - ARENA_WINDOW[0][0]) / 2, _GOAL_MARGIN * float((high - low).max()) / 2)
    x, y = ((low + high) / 2).tolist()
    return Panel(GAP, HEADER, SIDE, ((x - half, x + half), (y - half, y + half)))


def _bar(distance: float) -> float:
    """Share of the bar that a distance fills: 0 for 0, half for the tolerance 1, all for infinity."""
    return 1.0 if math.isinf(distance) else distance / (1 + distance)


class _Loan:
    """Counts who uses a module of pygame: initialises it for the first, quits it after the last.

    A module that somebody else had initialised before is left running.
    """

    def __init__(self, name: str) -> None:
        self._name, self._users, self._ours = name, 0, False

    def take(self) -> None:
        module = getattr(import_pygame(), self._name)
        if not self._users:
            self._ours = not module.get_init()
        module.init()
        self._users += 1

    def give_back(self) -> None:
        self._users -= 1
        if self._ours and not self._users:
            getattr(import_pygame(), self._name).quit()


_DISPLAY, _FONT = _Loan("display"), _Loan("font")
_OPEN: dict[int, Screen] = {}  # those with a window, by its id


class Screen:
    """Frames as arrays, or in a window: what is shared by everything that shows an episode.

    The window of ``human`` opens at the first frame. When its user closes it, it stays closed: ``is_open`` turns
    False and further frames are dropped, until ``open``, or ``close`` and a new frame. Windows, surfaces and
    ``on_event`` are not copied or pickled: a copy opens its own when it draws.

    Args:
        render_mode: "rgb_array" or "human".
        fps: frames per second that ``human`` keeps to by waiting; 0 never waits.
        hint: a line of text for the footer.

    Raises:
        ValueError: another render mode.
    """

    SIZE = FRAME  # width and height of a frame, pixels

    MODES = ("human", "rgb_array")

    def __init__(self, render_mode: str = "rgb_array", fps: int = 30, hint: str = "") -> None:
        if render_mode not in self.MODES:
            raise ValueError(f"render_mode is {render_mode!r}; accepted are {', '.join(self.MODES)}")
        self.render_mode, self.fps, self.hint = render_mode, fps, hint
        self._forget()

    def _forget(self) -> None:
        self.on_event: Callable[[Any], None] | None = None  # called with every pygame event that a draw takes in
        self._fonts: dict[str, Any] = {}
        self._window: Any = None
        self._clock: Any = None
        self._dismissed = False  # by the user

    def __getstate__(self) -> dict[str, Any]:
        return {"render_mode": self.render_mode, "fps": self.fps, "hint": self.hint}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    @property
    def is_open(self) -> bool:
        """Whether a window is on the screen."""
        return self._window is not None

    def open(self) -> None:
        """Open the window of ``human`` now, rather than at the first frame; opening twice is fine.

        Raises:
            RuntimeError: there is no display; ImportError: pygame-ce is not installed.
        """
        if self.render_mode != "human" or self.is_open:
            return
        pygame = import_pygame()
        _DISPLAY.take()
        try:
            if pygame.display.get_driver() == "offscreen" and "SDL_VIDEODRIVER" not in os.environ:
                raise RuntimeError('there is no display to open a window on; render_mode="rgb_array" needs none')
            self._window = pygame.Window("SpatialSim", self.SIZE)
        except RuntimeError:
            _DISPLAY.give_back()
            raise
        self._clock, self._dismissed = pygame.time.Clock(), False
        _OPEN[self._window.id] = self

    def _shown(self, make_frame: Callable[[], Any]) -> NDArray[np.uint8] | None:
        """A frame as an array, or in ``human`` mode in the window, where all events are taken in."""
        if self.render_mode == "rgb_array":
            return pixels_of(make_frame())
        if self._dismissed:
            return None
        frame = make_frame()
        self.open()
        self._window.get_surface().blit(frame, (0, 0))
        self._window.flip()
        _take_in_events()
        if self._clock is not None and self.fps:
            self._clock.tick(self.fps)
        return None

    def close(self) -> None:
        """Close the window and let go of everything; drawing again starts anew. Closing twice is fine."""
        self._close_window()
        if self._fonts:
            self._fonts = {}
            _FONT.give_back()
        self._dismissed = False

    def _close_window(self) -> None:
        if self._window is not None:
            del _OPEN[self._window.id]
            self._window.destroy()
            self._window = self._clock = None
            _DISPLAY.give_back()

    def _receive(self, event: Any) -> None:
        pygame = import_pygame()
        if event.type in (pygame.QUIT, pygame.WINDOWCLOSE):
            self._close_window()
            self._dismissed = True
        if self.on_event is not None:
            self.on_event(event)

    def _write(
        self, frame: Any, font: str, text: str, color: Any, baseline: tuple[int, int], right: bool = False
    ) -> int:
        """Write text that starts (or, with ``right``, ends) at a point of its baseline; returns where it ends."""
        pygame = import_pygame()
        if not self._fonts:
            _FONT.take()
            self._fonts = {name: pygame.font.Font(None, SMOOTH * size) for name, size in _FONTS.items()}
        rendered = self._fonts[font].render(text, True, color)
        width, height = rendered.get_width() // SMOOTH, rendered.get_height() // SMOOTH
        x = baseline[0] - right * width
        ascent = self._fonts[font].get_ascent() // SMOOTH
        frame.blit(pygame.transform.smoothscale(rendered, (width, height)), (x, baseline[1] - ascent))
        return x + width

    def _write_verdict(self, frame: Any, value: str, achieved: bool, step: int) -> tuple[int, int, int]:
        """Write the line under the panels: a value, what the truth says, the step, the hint; returns its colour."""
        color, baseline = ACHIEVED if achieved else MISSED, HEADER + SIDE + 25
        x = self._write(frame, "text", value, INK, (GAP, baseline))
        x = self._write(frame, "text", "achieved" if achieved else "not achieved", color, (x + 14, baseline))
        self._write(frame, "small", f"step {step}", QUIET, (x + 14, baseline))
        if self.hint:
            self._write(frame, "small", self.hint, QUIET, (FRAME[0] - GAP, baseline), right=True)
        return color


class Viewer(Screen):
    """Goal and arena side by side, the truth's distance below: as arrays, or in a window.

    The goal's panel is centred on the goal and as wide as it needs, at least as wide as the arena's, so that a goal is
    never shown larger than it is; both say their width, and grid lines are 5 units apart. Objects carry a mark in the
    direction of their orientation. Half of the bar is the distance up to which a goal is achieved.

    The window, the arguments and their errors are those of ``Screen``.
    """

    def draw(
        self, goal: NDArray[Any], arena: NDArray[Any], distance: float, achieved: bool, step: int
    ) -> NDArray[np.uint8] | None:
        """Draw one frame, and in ``human`` mode show it, take in all events and wait.

        Args:
            goal, arena: scenes (n, 10), padding allowed.
            distance: the truth's, infinity allowed.
            achieved: whether the truth calls the goal achieved.
            step: of the episode.

        Returns:
            The frame, uint8 (height, width, 3), for ``rgb_array``; None for ``human``.

        Raises:
            SceneError: what is not a scene; ImportError: pygame-ce is not installed; RuntimeError: there is no display.
        """
        return self._shown(lambda: self._frame(goal, arena, distance, achieved, step))

    def to_arena(self, pixel: tuple[float, float]) -> tuple[float, float] | None:
        """Which point of the world a pixel of the frame shows in the arena's panel; None outside the panel."""
        return _ARENA_PANEL.to_world(pixel)

    def _frame(self, goal: NDArray[Any], arena: NDArray[Any], distance: float, achieved: bool, step: int) -> Any:
        pygame = import_pygame()
        validate(goal[None], "goal")
        validate(arena[None], "arena")
        frame = pygame.Surface(FRAME, depth=32)
        frame.fill(PAPER)
        goal_panel = _goal_panel(goal[present(goal)])
        for panel, scene, title in ((goal_panel, goal, "goal"), (_ARENA_PANEL, arena, "arena")):
            frame.blit(_draw_panel(panel, scene), (panel.left, panel.top))
            pygame.draw.rect(frame, _WALL, (panel.left, panel.top, panel.side, panel.side), 1)
            baseline = panel.top - 12
            self._write(frame, "title", title, INK, (panel.left, baseline))
            width = f"{panel.side / panel.scale:.0f} units wide, grid {_GRID_STEP}"
            self._write(frame, "small", width, QUIET, (panel.left + panel.side, baseline), right=True)
        self._draw_footer(frame, distance, achieved, step)
        return frame

    def _draw_footer(self, frame: Any, distance: float, achieved: bool, step: int) -> None:
        pygame = import_pygame()
        number = "infinite" if math.isinf(distance) else f"{distance:.2f}"
        color = self._write_verdict(frame, f"distance {number}", achieved, step)
        left, length, track = GAP, FRAME[0] - 2 * GAP, HEADER + SIDE + 36
        pygame.draw.rect(frame, TRACK, (left, track, length, 8), border_radius=4)
        pygame.draw.rect(frame, color, (left, track, max(8, round(length * _bar(distance))), 8), border_radius=4)
        for tick, label in _TICKS.items():
            x = left + round(length * _bar(tick))
            pygame.draw.line(frame, _WALL, (x, track + 9), (x, track + 12))
            self._write(frame, "small", label, QUIET, (x + 4, track + 22))


def _draw_panel(panel: Panel, scene: NDArray[Any]) -> Any:
    """One panel: floor, grid, the arena's outline where the panel is the arena's, and the objects."""
    pygame = import_pygame()
    side = panel.side * SMOOTH
    large = pygame.Surface((side, side), depth=32)
    view = Panel(0, 0, side, panel.window)
    is_arena = panel is _ARENA_PANEL
    (x_lo, x_hi), (y_lo, y_hi) = ((0.0, ARENA), (0.0, ARENA)) if is_arena else panel.window
    left, top = view.to_pixel(x_lo, y_hi)
    floor = pygame.Rect(left, top, (x_hi - x_lo) * view.scale, (y_hi - y_lo) * view.scale)
    large.fill(_BEYOND)
    large.fill(_FLOOR, floor)
    for x in range(_GRID_STEP * math.ceil(x_lo / _GRID_STEP), math.floor(x_hi) + 1, _GRID_STEP):
        pygame.draw.line(large, _GRID, view.to_pixel(x, y_lo), view.to_pixel(x, y_hi), SMOOTH)
    for y in range(_GRID_STEP * math.ceil(y_lo / _GRID_STEP), math.floor(y_hi) + 1, _GRID_STEP):
        pygame.draw.line(large, _GRID, view.to_pixel(x_lo, y), view.to_pixel(x_hi, y), SMOOTH)
    if is_arena:
        pygame.draw.rect(large, _WALL, floor.inflate(SMOOTH, SMOOTH), SMOOTH)
    draw_scene(large, scene, panel.window, border=1.5 * SMOOTH)
    return pygame.transform.smoothscale(large, (panel.side, panel.side))


def _take_in_events() -> None:
    """Empty pygame's queue: events of a window go to its viewer, all others to every viewer with a window."""
    for event in import_pygame().event.get():
        window = getattr(event, "window", None)
        owner = None if window is None else _OPEN.get(window.id)
        for viewer in list(_OPEN.values()) if owner is None else [owner]:
            viewer._receive(event)


def tile(frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Frames (height, width, 3) of one size, at least one, as one picture about as wide as high, row by row."""
    height, width, channels = frames[0].shape
    columns = max(1, round(math.sqrt(len(frames) * height / width)))
    rows = math.ceil(len(frames) / columns)
    grid = np.full((rows * columns, height, width, channels), PAPER, np.uint8)
    grid[: len(frames)] = frames
    return grid.reshape(rows, columns, height, width, channels).swapaxes(1, 2).reshape(rows * height, -1, channels)


def save_frames(frames: Sequence[NDArray[np.uint8]], path: Path) -> None:
    """Write frames (height, width, 3) as an animated .gif or a .mp4, or the one frame of a .png.

    The file is whole or not there.

    Raises:
        ValueError: another ending, or not one frame for a .png.
        ImportError: pillow, or moviepy for a .mp4, is not installed.
    """
    writers = {".png": _write_picture, ".gif": _write_animation, ".mp4": _write_film}
    ending = path.suffix.lower()
    if ending not in writers:
        raise ValueError(f"{path} ends in {path.suffix!r}; accepted are .png, .gif and .mp4")
    if ending == ".png" and len(frames) != 1:
        raise ValueError(f"{path} is to hold {len(frames)} frames; a .png holds one")
    with replaced(path) as temporary:
        writers[ending](frames, temporary)


def _write_picture(frames: Sequence[NDArray[np.uint8]], path: Path) -> None:
    _images(frames)[0].save(path, "PNG")


def _write_animation(frames: Sequence[NDArray[np.uint8]], path: Path) -> None:
    first, *rest = [image.quantize() for image in _images(frames)]
    first.save(path, "GIF", save_all=True, append_images=rest, duration=FRAME_TIME, loop=0)


def _images(frames: Sequence[NDArray[np.uint8]]) -> list[Any]:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('saving pictures needs pillow: pip install "spatialsim-env[render]"') from error
    return [Image.fromarray(frame) for frame in frames]


def _write_film(frames: Sequence[NDArray[np.uint8]], path: Path) -> None:
    try:
        from moviepy import ImageSequenceClip
    except ImportError as error:
        raise ImportError('saving an .mp4 needs moviepy: pip install "spatialsim-env[video]"') from error
    clip = ImageSequenceClip(list(frames), fps=1000 / FRAME_TIME)
    clip.write_videofile(str(path), codec="libx264", audio=False, ffmpeg_params=["-f", "mp4"], logger=None)
