"""The view of a relation that an environment shows: what the observer sees, and beside it the room from above.

Boxes are drawn with shaded faces, far ones first. pygame-ce is imported when something is drawn, not before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from spatialsim_env.relations import scene
from spatialsim_env.relations.scene import CENTER, EYE, HALF, N_PARTS, OBJECT, PARTS, ROOM, SUBJECT
from spatialsim_env.relations.world.truth import RelationMoment

FIELD = 70.0  # degrees that the observer's picture is wide
NEAREST = 0.05  # metres before the observer, where the picture begins
_FLOOR, _GRID = (255, 255, 255), (226, 229, 235)
_SUBJECT, _OBJECT, _EYE = (230, 126, 48), (74, 122, 190), (120, 128, 140)
_SHADOW = (214, 218, 226)
_ABOVE = np.array([0.0, 0.0, 1e6])  # metres: from there shadows fall straight down
_LIGHT = np.array([0.3, -0.45, 0.84])  # where it comes from
_DIMMEST = 0.55  # share of its colour that a face turned away from the light keeps
_FACES = tuple((axis, sign) for axis in range(3) for sign in (1.0, -1.0))
_TOUCHING = 1e-4  # metres that boxes may be in each other and still count as parted
_DEEPEST = 1.0  # margin that fills the bar on one side, and a distance that fills it on the other

Points = NDArray[np.float64]


class Camera:
    """An observer's perspective picture on a square of pixels.

    Args:
        observer: (9,).
        side: pixels.
    """

    def __init__(self, observer: NDArray[Any], side: int) -> None:
        self.eye = observer[EYE].astype(np.float64)
        self.turn = scene.eye_rotation(observer.astype(np.float64))
        self.side, self.scale = side, side / 2 / np.tan(np.radians(FIELD / 2))

    def polygon(self, corners: Points) -> list[list[float]]:
        """Pixels of a polygon (n, 3), without what is behind the observer; empty where all of it is."""
        seen = _before((corners - self.eye) @ self.turn)
        flat = seen[:, :2] / -seen[:, 2:] * (self.scale, -self.scale) + self.side / 2
        return flat.tolist()

    def order(self, boxes: list[Box]) -> list[Box]:
        """Boxes with far ones first: of two, the one on the observer's side of a face that parts them is nearer."""
        left = sorted(boxes, key=lambda box: -float(((box.center - self.eye) ** 2).sum()))
        out = []
        while left:
            free = (box for box in left if not any(box.hides(other, self.eye) for other in left if other is not box))
            farthest = next(free, left[0])
            left.remove(farthest)
            out.append(farthest)
        return out


class Plan:
    """The room from above on a square of pixels, its walls at the edges."""

    def __init__(self, side: int) -> None:
        self.side, self.eye = side, _ABOVE

    def polygon(self, corners: Points) -> list[list[float]]:
        """Pixels of a polygon (n, 3)."""
        flat = (corners[:, :2] / (2 * np.array(ROOM[:2])) + 0.5) * self.side
        return np.stack([flat[:, 0], self.side - flat[:, 1]], axis=-1).tolist()

    def order(self, boxes: list[Box]) -> list[Box]:
        """Boxes with low ones first."""
        return sorted(boxes, key=lambda box: float(box.corners[:, 2].max()))


class Box:
    """A part of an object as it is drawn."""

    def __init__(self, center: Points, turn: Points, half: Points, color: tuple[int, int, int]) -> None:
        self.center, self.turn, self.half, self.color = center, turn, half, color
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        self.corners = center + (signs * half) @ turn.T

    def hides(self, other: Box, eye: Points) -> bool:
        """Whether a plane of a face of either parts the boxes, this one on the eye's side."""
        for box, beyond in ((self, other), (other, self)):
            reach = (beyond.corners - box.center) @ box.turn
            at = (eye - box.center) @ box.turn
            for axis, sign in _FACES:
                wall = box.half[axis]
                if (sign * reach[:, axis]).min() >= wall - _TOUCHING and (sign * at[axis] < wall) == (box is self):
                    return True
        return False

    def faces(self, eye: Points) -> list[tuple[Points, tuple[int, ...]]]:
        """Corners (4, 3) and colour of the faces that are turned to an eye."""
        out = []
        for axis, sign in _FACES:
            normal, across = sign * self.turn[:, axis], [k for k in range(3) if k != axis]
            middle = self.center + normal * self.half[axis]
            if (eye - middle) @ normal <= 0:
                continue
            first, second = (self.turn[:, k] * self.half[k] for k in across)
            corners = middle + np.array([first + second, first - second, -first - second, second - first])
            share = _DIMMEST + (1 - _DIMMEST) * max(float(normal @ _LIGHT), 0.0)
            out.append((corners, tuple(int(channel * share) for channel in self.color)))
        return out


def boxes_of(objects: NDArray[Any], color: tuple[int, int, int]) -> list[Box]:
    """The parts of an object (19,)."""
    row = objects.astype(np.float64)
    turn, kind = np.asarray(scene.rotation(row), np.float64), int(scene.kind(row))
    parts = PARTS[kind, : N_PARTS[kind]] * row[HALF]
    return [Box(row[CENTER] + turn @ middle, turn, half, color) for middle, half in parts]


class RelationViewer(Screen):
    """The observer's view and the room from above, the goal in words over them, the margin under them.

    The subject is orange, the object blue; an arrow on the floor plan and in the view shows where the front of each
    is. In the plan the observer is a wedge that opens to what is seen. The bar is filled from its middle: to the right
    by a margin above 0, where the goal is reached, to the left by one below.

    The window, the arguments and their errors are those of ``Screen``.
    """

    def show(self, now: RelationMoment, achieved: bool, step: int) -> NDArray[np.uint8] | None:
        """Draw a moment of one episode, and what the verdict says of it; see ``draw``."""
        return self.draw(now.scenes[0], now.observers[0], now.goal_names(0), float(now.distance[0]), step)

    def draw(
        self, now: NDArray[Any], observer: NDArray[Any], goal: tuple[str, ...], distance: float, step: int
    ) -> NDArray[np.uint8] | None:
        """Draw one frame, and in ``human`` mode show it, take in all events and wait.

        Args:
            now: a scene (2, 19).
            observer: (9,).
            goal: names of what is required.
            distance: minus the least margin of what is required; below 0 it is reached.
            step: of the episode.

        Returns:
            The frame, uint8 (height, width, 3), for ``rgb_array``; None for ``human``.

        Raises:
            RoomError: what is not a scene; ImportError: pygame-ce is not installed; RuntimeError: there is no display.
        """
        return self._shown(lambda: self._frame(now, observer, goal, distance, step))

    def _frame(
        self, now: NDArray[Any], observer: NDArray[Any], goal: tuple[str, ...], distance: float, step: int
    ) -> Any:
        pygame = import_pygame()
        scene.validate(now[None], observer[None])
        frame = pygame.Surface(FRAME, depth=32)
        frame.fill(PAPER)
        camera, plan = Camera(observer, SIDE * SMOOTH), Plan(SIDE * SMOOTH)
        for left, view, title in ((GAP, camera, ""), (2 * GAP + SIDE, plan, "from above, grid 1 m")):
            frame.blit(_panel(view, now, observer), (left, HEADER))
            pygame.draw.rect(frame, EDGE, (left, HEADER, SIDE, SIDE), 1)
            self._write(frame, "small", title, QUIET, (left + SIDE, HEADER - 12), right=True)
        x = self._write(frame, "title", _kind(now[SUBJECT]), _SUBJECT, (GAP, HEADER - 12))
        x = self._write(frame, "title", " and ".join(goal), INK, (x + 8, HEADER - 12))
        self._write(frame, "title", _kind(now[OBJECT]), _OBJECT, (x + 8, HEADER - 12))
        self._draw_footer(frame, -distance, step)
        return frame

    def _draw_footer(self, frame: Any, margin: float, step: int) -> None:
        pygame = import_pygame()
        color = self._write_verdict(frame, f"margin {margin:+.2f}", margin > 0, step)
        left, right, track = GAP, FRAME[0] - GAP, HEADER + SIDE + 36
        middle = (left + right) // 2
        share = float(np.clip(margin / (_DEEPEST + abs(margin)), -1, 1)) if np.isfinite(margin) else float(margin > 0)
        length = round((right - left) / 2 * abs(share))
        pygame.draw.rect(frame, TRACK, (left, track, right - left, 8), border_radius=4)
        pygame.draw.rect(frame, color, (middle - (share < 0) * length, track, max(length, 2), 8), border_radius=4)
        pygame.draw.line(frame, EDGE, (middle, track - 3), (middle, track + 11))
        self._write(frame, "small", "0: achieved above", QUIET, (middle + 4, track + 22))


def _kind(objects: NDArray[Any]) -> str:
    return scene.KIND_NAMES[int(scene.kind(objects))]


def _panel(view: Camera | Plan, now: NDArray[Any], observer: NDArray[Any]) -> Any:
    """One square: floor, grid, the objects with arrows along their fronts, and the observer in a plan."""
    pygame = import_pygame()
    large = pygame.Surface((view.side, view.side), depth=32)
    large.fill(PAPER)
    x, y, _ = ROOM
    _fill(large, view, np.array([[x, y, 0], [x, -y, 0], [-x, -y, 0], [-x, y, 0]]), _FLOOR)
    for at in range(-int(x) + 1, int(x)):
        for ends in ([[at, -y, 0], [at, y, 0]], [[-x, at, 0], [x, at, 0]]):
            _line(large, view, np.array(ends, np.float64), _GRID, SMOOTH)
    if isinstance(view, Plan):
        _draw_observer(large, view, observer.astype(np.float64))
    rows = ((now[OBJECT].astype(np.float64), _OBJECT), (now[SUBJECT].astype(np.float64), _SUBJECT))
    boxes = [box for row, color in rows for box in boxes_of(row, color)]
    for box in boxes:
        for corners, _ in box.faces(_ABOVE):
            _fill(large, view, corners * (1.0, 1.0, 0.0), _SHADOW)
    for box in view.order(boxes):
        for corners, color in box.faces(view.eye):
            points = _fill(large, view, corners, color)
            if len(points) > 2:
                pygame.draw.polygon(large, [channel * 3 // 4 for channel in color], points, SMOOTH // 2)
    for row, color in rows:
        _draw_front(large, view, row, tuple(channel * 3 // 5 for channel in color))
    return pygame.transform.smoothscale(large, (SIDE, SIDE))


def _draw_front(surface: Any, view: Camera | Plan, row: Points, color: tuple[int, ...]) -> None:
    """An arrow from the middle of an object's front face along its front."""
    turn = scene.rotation(row)
    begin = row[CENTER] + turn[:, 0] * row[HALF][0]
    end = begin + turn[:, 0] * 0.22
    _line(surface, view, np.stack([begin, end]), color, 2 * SMOOTH)
    for side in (turn[:, 1], -turn[:, 1]):
        _line(surface, view, np.stack([end, end - 0.08 * turn[:, 0] + 0.05 * side]), color, 2 * SMOOTH)


def _draw_observer(surface: Any, view: Plan, observer: Points) -> None:
    away, right = scene.away(observer), observer[scene.EYE_RIGHT][:2]
    right = right / np.hypot(*right)
    eye = np.array([*observer[EYE][:2], 0.0])
    for side in (-1, 1):
        ray = away * np.cos(np.radians(FIELD / 2)) + side * right * np.sin(np.radians(FIELD / 2))
        _line(surface, view, np.stack([eye, eye + 0.45 * np.array([*ray, 0.0])]), _EYE, 2 * SMOOTH)
    import_pygame().draw.circle(surface, _EYE, view.polygon(eye[None])[0], 5 * SMOOTH)


def _fill(surface: Any, view: Camera | Plan, corners: Points, color: tuple[int, ...]) -> list[list[float]]:
    points = view.polygon(corners.astype(np.float64))
    if len(points) > 2:
        import_pygame().draw.polygon(surface, color, points)
    return points


def _line(surface: Any, view: Camera | Plan, ends: Points, color: tuple[int, ...], width: int) -> None:
    points = view.polygon(ends)
    if len(points) > 1:
        import_pygame().draw.line(surface, color, points[0], points[1], width)


def _before(points: Points) -> Points:
    """The part of a polygon or line (n, 3), z backward, that lies before the observer."""
    kept = []
    for here, there in zip(points, np.roll(points, -1, axis=0), strict=True):
        if here[2] <= -NEAREST:
            kept.append(here)
        if (here[2] + NEAREST) * (there[2] + NEAREST) < 0:
            share = (here[2] + NEAREST) / (here[2] - there[2])
            kept.append(here + share * (there - here))
    return np.array(kept).reshape(-1, 3)
