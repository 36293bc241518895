"""The view of goal and arena that an environment shows, as arrays or in a window.

pygame-ce is imported when something is drawn, not before. ``rgb_array`` frames need no display and open none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.pictures import ARENA_WINDOW, Window, draw_scene
from spatialsim_env.arrangements.scene import ARENA, POSITION, SIZE, present, validate
from spatialsim_env.arrangements.truth import SceneMoment
from spatialsim_env.core.screen import (
    EDGE,
    FRAME,
    GAP,
    HEADER,
    INK,
    PAPER,
    QUIET,
    SIDE,
    SMOOTH,
    TRACK,
    Screen,
    import_pygame,
)


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


_GOAL_MARGIN = 1.05  # the goal's panel is this many times as wide as the goal, and never narrower than the arena's
_GRID_STEP = 5  # units
_ARENA_PANEL = Panel(2 * GAP + SIDE, HEADER, SIDE, ARENA_WINDOW)
_TICKS = {0: "0", 1: "1: achieved up to here", 3: "3", 10: "10"}  # distances that the bar labels

_BEYOND, _FLOOR, _GRID = (235, 238, 242), (255, 255, 255), (229, 232, 237)


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


class SceneViewer(Screen):
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

    def show(self, now: SceneMoment, achieved: bool, step: int) -> NDArray[np.uint8] | None:
        """Draw a moment of one episode, and what the verdict says of it; see ``draw``."""
        return self.draw(now.desired[0], now.achieved[0], float(now.distance[0]), achieved, step)

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
            pygame.draw.rect(frame, EDGE, (panel.left, panel.top, panel.side, panel.side), 1)
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
            pygame.draw.line(frame, EDGE, (x, track + 9), (x, track + 12))
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
        pygame.draw.rect(large, EDGE, floor.inflate(SMOOTH, SMOOTH), SMOOTH)
    draw_scene(large, scene, panel.window, border=1.5 * SMOOTH)
    return pygame.transform.smoothscale(large, (panel.side, panel.side))
