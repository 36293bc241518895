"""Display of episodes: frames as arrays or in a window, text and the verdict under them, files of frames.

A world draws its own panels in a frame (``arrangements/viewer.py``, ``relations/world/viewer.py``). pygame-ce is
imported when something is drawn, not before. ``rgb_array`` frames need no display and open none.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.files import replace_file

SMOOTH = 4  # everything is drawn this many times too large; smoothscale keeps plain areas exact for powers of two
FRAME_TIME = 80  # milliseconds that a frame of an animated picture is shown
SIDE, GAP, HEADER, FOOTER = 368, 16, 44, 68  # pixels
FRAME = (2 * SIDE + 3 * GAP, HEADER + SIDE + FOOTER)  # width and height of a frame, multiples of 16 as codecs like
_FONTS = {"title": 25, "text": 23, "small": 19}  # height in pixels
PAPER, INK, QUIET = (245, 246, 248), (38, 44, 56), (108, 117, 132)
ACHIEVED, MISSED, TRACK = (34, 139, 94), (208, 120, 40), (222, 226, 232)
EDGE = (160, 169, 182)  # around panels


def import_pygame() -> Any:
    """pygame, or an ImportError that says what to install."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # the line that pygame prints when it is imported
    try:
        import pygame
    except ImportError as error:
        raise ImportError('drawing needs pygame-ce: pip install "spatialsim-env[render]"') from error
    return pygame


def pixels_of(surface: Any) -> NDArray[np.uint8]:
    """A copy of a surface as (height, width, 3)."""
    width, height = surface.get_size()
    return np.frombuffer(bytearray(import_pygame().image.tobytes(surface, "RGB")), np.uint8).reshape(height, width, 3)


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
        """True where a window is on the screen."""
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
    with replace_file(path) as temporary:
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
