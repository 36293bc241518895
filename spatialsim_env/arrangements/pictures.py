"""Plain pictures of scenes, for image models and for the pixels of an environment; how an object is drawn.

Shapes follow the feature table (paper, section 2.1): size is the circumradius, y points up, orientation turns
counter-clockwise. At orientation 0 a square's sides are parallel to the axes and a triangle's first corner points
along x; a circle shows no orientation. Objects overlap in row order, the last row on top; colours are clipped into
0..1. Everything is drawn several times too large and scaled down, which smooths the edges.

pygame-ce is imported when something is drawn, not before; no display is needed and none is opened.
"""

from __future__ import annotations

import math
import warnings
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.arrangements.scene import (
    ARENA,
    COLOR,
    ORIENTATION,
    POSITION,
    SHAPE,
    SHAPES,
    SIZE,
    as_batch,
    count,
    present,
    validate,
)
from spatialsim_env.core.screen import SMOOTH, import_pygame, pixels_of

Window = tuple[tuple[float, float], tuple[float, float]]  # ((x_lo, x_hi), (y_lo, y_hi)), world units
OnOutside = Literal["raise", "warn", "ignore"]

WINDOW: Window = ((-45.0, 65.0), (-45.0, 65.0))
"""The default window: in 400,000 benchmark scenes of each range (3-8, 9-20, 21-30 objects) no object left it."""

WIDEST_WINDOW: Window = ((-80.0, 100.0), (-80.0, 100.0))
"""The window that no similarity of the benchmark can carry an object out of.

A reference object lies within the arena, edge included; the smallest, 0.5, get nearest to its corners. A similarity
about the barycentre c brings the edge of an object at p to at most c_x + 20 + 2 (|p - c| + size). That is convex in c
and p, hence largest at corners: c = (19.5, 19.5) and p = (0.5, 0.5) give 19.5 + 20 + 2 (19 sqrt 2 + 0.5) = 94.24, and
-74.24 on the other side. The 5.76 units beyond are more than ten standard deviations of what the benchmark's noise
adds.
"""

ARENA_WINDOW: Window = ((-2.5, ARENA + 2.5), (-2.5, ARENA + 2.5))
"""The arena and a margin wider than the largest reference object: no object with its centre in the arena is cut."""

BACKGROUND = (255, 255, 255)
CIRCLE_CORNERS = 48  # a circle is drawn as a polygon; its area is 0.3 % short

_CORNERS = (
    np.pi / 4 + np.arange(4) * np.pi / 2,
    np.arange(CIRCLE_CORNERS) * 2 * np.pi / CIRCLE_CORNERS,
    np.arange(3) * 2 * np.pi / 3,
)  # angles of the corners at orientation 0, in the order of scene.SHAPES
_EDGE = 1 / 3  # pygame fills its boundary pixels: a side moved in by this many pixels keeps the area on average
_CHUNK = 64  # scenes whose polygons are computed together


def _check_window(window: Window) -> None:
    (x_lo, x_hi), (y_lo, y_hi) = window
    if not (x_hi > x_lo and math.isclose(x_hi - x_lo, y_hi - y_lo, rel_tol=1e-6)):
        raise ValueError(f"window is {window}; accepted is a square ((x_lo, x_hi), (y_lo, y_hi)) with x_lo < x_hi")


def _polygons(objects: NDArray[Any], window: Window, pixels: int, inset: float) -> list[list[list[float]]]:
    """Corners (x right, y down) of objects (k, 10) on a square of ``pixels``, their sides moved in by ``inset``."""
    (x_lo, x_hi), (_, y_hi) = window
    scale = pixels / (x_hi - x_lo)
    objects = objects.astype(np.float64)
    centers = (objects[:, POSITION] - (x_lo, y_hi)) * (scale, -scale)
    polygons: list[list[list[float]]] = [[]] * len(objects)
    for shape, angles in enumerate(_CORNERS):
        rows = np.flatnonzero(objects[:, SHAPE][:, shape])
        symmetry = 2 * np.pi / len(angles)  # turns by it give the same corners, hence the same pixels
        turned = objects[rows, ORIENTATION, None] % symmetry * (SHAPES[shape] != "circle") + angles
        radius = np.maximum(objects[rows, SIZE] * scale - inset / math.cos(math.pi / len(angles)), 0)
        corners = np.stack([np.cos(turned), -np.sin(turned)], axis=-1) * radius[:, None, None]
        for row, polygon in zip(rows.tolist(), (corners + centers[rows, None]).tolist(), strict=True):
            polygons[row] = polygon
    return polygons


def _colors(objects: NDArray[Any]) -> list[list[int]]:
    return np.rint(255 * np.clip(objects[:, COLOR], 0, 1)).astype(int).tolist()


def _marks(objects: NDArray[Any], window: Window, pixels: int) -> list[list[list[float]]]:
    """Ends of a line from each object's centre in the direction of its orientation, (k, 2, 2)."""
    (x_lo, x_hi), (_, y_hi) = window
    scale = pixels / (x_hi - x_lo)
    start = (objects[:, POSITION] - (x_lo, y_hi)) * (scale, -scale)
    angle, length = objects[:, ORIENTATION], 0.55 * scale * objects[:, SIZE]
    end = start + length[:, None] * np.stack([np.cos(angle), -np.sin(angle)], axis=-1)
    return np.stack([start, end], axis=1).tolist()


def _shade(color: list[int]) -> tuple[list[int], tuple[int, int, int]]:
    """The border of a colour, darker than it, and a colour of marks that is legible on it."""
    luminance = 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2]
    return [channel * 3 // 5 for channel in color], (40, 44, 52) if luminance > 110 else (255, 255, 255)


def draw_scene(surface: Any, scene: ArrayLike, window: Window, border: float = 0) -> None:
    """Draw the objects of one scene (n, 10), in row order, onto a square pygame surface; edges are not smoothed.

    Args:
        surface: a square ``pygame.Surface``, which shows exactly ``window``.
        window: a square ((x_lo, x_hi), (y_lo, y_hi)), world units.
        border: 0 draws plain shapes; otherwise each has a darker border of this many pixels within its outline, and
            a mark from its centre in the direction of its orientation.

    Raises:
        ValueError: a window or a surface that is not square; SceneError, one of them, for what is not a scene.
        ImportError: pygame-ce is not installed.
    """
    draw = import_pygame().draw
    _check_window(window)
    width, height = surface.get_size()
    if width != height:
        raise ValueError(f"the surface has {width} x {height} pixels; accepted are squares")
    batch, _ = as_batch(scene)
    validate(batch)
    objects = batch[0][present(batch[0])]
    colors, outlines = _colors(objects), _polygons(objects, window, width, _EDGE)
    if not border:
        for color, outline in zip(colors, outlines, strict=True):
            draw.polygon(surface, color, outline)
        return
    inner, marks = _polygons(objects, window, width, _EDGE + border), _marks(objects, window, width)
    for color, outline, points, (start, end) in zip(colors, outlines, inner, marks, strict=True):
        dark, contrast = _shade(color)
        draw.polygon(surface, dark, outline)
        draw.polygon(surface, color, points)
        draw.line(surface, contrast, start, end, round(border))


def outside(scenes: ArrayLike, window: Window = WINDOW) -> NDArray[np.bool_]:
    """Mask of the objects whose circumscribed circle reaches beyond a window: (B, n, 10) -> (B, n)."""
    batch, was_batch = as_batch(scenes)
    size = batch[..., SIZE, None]
    low, high = np.array(window).T
    beyond = ((batch[..., POSITION] - size < low) | (batch[..., POSITION] + size > high)).any(axis=-1)
    beyond &= present(batch)
    return beyond if was_batch else beyond[0]


def _report_outside(batch: NDArray[Any], window: Window, on_outside: OnOutside) -> None:
    if on_outside not in ("raise", "warn", "ignore"):
        raise ValueError(f'on_outside is {on_outside!r}; accepted are "raise", "warn" and "ignore"')
    if on_outside == "ignore":
        return
    beyond = outside(batch, window)
    if beyond.any():
        (x_lo, x_hi), (y_lo, y_hi) = window
        message = (
            f"{int(beyond.sum())} of {int(present(batch).sum())} objects, in {int(beyond.any(axis=1).sum())} of "
            f"{len(batch)} scenes, reach beyond the window x {x_lo:g}..{x_hi:g}, y {y_lo:g}..{y_hi:g}; choose a larger "
            'window, or on_outside="warn" or "ignore"'
        )
        if on_outside == "raise":
            raise ValueError(message)
        warnings.warn(message, stacklevel=3)


def pictures(
    scenes: ArrayLike,
    size: int = 224,
    window: Window = WINDOW,
    on_outside: OnOutside = "raise",
) -> NDArray[np.uint8]:
    """Plain pictures of scenes for image models: (B, n, 10) -> (B, size, size, 3).

    Every scene is shown in the same window, so position and scale can be read off a picture; shapes carry no outline
    and no mark, the background is white.

    Args:
        size: side in pixels.
        window: a square ((x_lo, x_hi), (y_lo, y_hi)), world units; ``WIDEST_WINDOW`` holds all that the benchmark
            can produce.
        on_outside: what happens when an object's circumscribed circle reaches beyond the window.

    Raises:
        ValueError: an object reaches beyond the window (unless ``on_outside`` says otherwise), a window that is not
            square, a size below 1; SceneError, one of them, for what is not a scene.
        ImportError: pygame-ce is not installed.
    """
    pygame = import_pygame()
    _check_window(window)
    if size < 1:
        raise ValueError(f"size is {size}; accepted are 1 and more pixels")
    batch, _ = as_batch(scenes)
    validate(batch)
    _report_outside(batch, window, on_outside)
    side = size * SMOOTH
    large, small = pygame.Surface((side, side), depth=32), pygame.Surface((size, size), depth=32)
    out = np.empty((len(batch), size, size, 3), np.uint8)
    for start in range(0, len(batch), _CHUNK):
        chunk = batch[start : start + _CHUNK]
        objects = chunk[present(chunk)]
        shapes = zip(_colors(objects), _polygons(objects, window, side, _EDGE), strict=True)
        for index, n_objects in enumerate(count(chunk).tolist(), start):
            large.fill(BACKGROUND)
            for color, points in islice(shapes, n_objects):
                pygame.draw.polygon(large, color, points)
            pygame.transform.smoothscale(large, (size, size), small)
            out[index] = pixels_of(small)
    return out


def picture(
    scene: ArrayLike, size: int = 224, window: Window = WINDOW, on_outside: OnOutside = "raise"
) -> NDArray[np.uint8]:
    """One plain picture of one scene: (n, 10) -> (size, size, 3); see ``pictures``."""
    return pictures(np.asarray(scene)[None], size, window, on_outside)[0]
