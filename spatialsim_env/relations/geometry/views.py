"""Views of scenes: twelve around them, three frontal ones, and where objects come to lie in the picture.

The camera is a pinhole without distortion. Pictures are 1280 x 720 pixels as published; the focal length is
``FOCAL`` pixels, that of a 35 mm lens on a 36 mm wide sensor, and the principal point is the middle. A point (x, y, z)
in the camera's frame (x right, y up, z backward) is seen at ``(WIDTH / 2 - FOCAL x / z, HEIGHT / 2 + FOCAL y / z)``, in
pixels from the top left corner; one pixel is the square between whole numbers. Other picture sizes scale all four.

Rel3D (section 3) shows each scene from 12 views, and from 3 along the front plane where the predicate depends on the
observer; both members of a pair share them. Its angles are not published: those here are ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.relations import scene
from spatialsim_env.relations.scene import Floats, RoomError

WIDTH, HEIGHT = 1280, 720  # pixels
FOCAL = WIDTH * 35 / 36  # pixels: 54.4 degrees across, 32.3 degrees down
FIELD_OF_VIEW = float(np.degrees(2 * np.arctan(HEIGHT / 2 / FOCAL)))  # degrees, top to bottom

AZIMUTHS = (0.0, 90.0, 180.0, 270.0)  # degrees about z, from a direction that is drawn once a pair
ELEVATIONS = (15.0, 30.0, 45.0)  # degrees above the floor
FRONTAL_AZIMUTHS = (-20.0, 0.0, 20.0)
FRONTAL_ELEVATION = 15.0
N_VIEWS = len(AZIMUTHS) * len(ELEVATIONS)
N_FRONTAL = len(FRONTAL_AZIMUTHS)
JITTER = (12.0, 4.0)  # degrees, largest change of an azimuth and an elevation
SEEN = 0.25  # share of an object's points not hidden by the other that makes it visible
_GRID = np.stack(np.meshgrid(*[(-0.9, 0.0, 0.9)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
FILLED = (0.55, 0.85)  # share of the half picture that the objects reach from its middle
NEAREST = 0.5  # metres from the eye to any corner, along the view


def angles(n: int, frontal: bool, rng: np.random.Generator) -> NDArray[np.float64]:
    """Azimuth and elevation of the eyes of n pairs, (n, views, 2) in radians: 12 views, or 3 frontal ones."""
    if frontal:
        grid = [(azimuth, FRONTAL_ELEVATION) for azimuth in FRONTAL_AZIMUTHS]
    else:
        grid = [(azimuth, elevation) for elevation in ELEVATIONS for azimuth in AZIMUTHS]
    degrees = np.array(grid) + rng.uniform(-1, 1, (n, len(grid), 2)) * JITTER
    degrees[..., 0] += rng.uniform(0, 360, (n, 1))
    return np.radians(degrees)


def place_observers(points: Floats, directions: Floats, filled: ArrayLike) -> NDArray[np.float64]:
    """Observers (n, views, 9) who see all of points (n, k, 3) from directions (n, views, 2), azimuth and elevation.

    They look at the middle of the box around the points and stand as near as they can so that no point is further
    from the picture's middle than the share ``filled`` (n, views) of its half width and height.

    Raises:
        RoomError: directions straight down or up, shares outside 0 to 1.
    """
    filled = np.asarray(filled, np.float64)
    if not ((filled > 0) & (filled <= 1)).all():
        raise RoomError("filled has shares of the picture outside 0 to 1; accepted is above 0 and at most 1")
    azimuth, elevation = directions[..., 0], directions[..., 1]
    flat = np.cos(elevation)
    back = np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], axis=-1)
    target = (points.min(axis=1) + points.max(axis=1))[:, None] / 2
    axes = scene.eye_rotation(scene.observers(target + back, np.broadcast_to(target, back.shape)))
    x, y, z = np.moveaxis(np.einsum("nvji,nvkj->nvki", axes, points[:, None] - target[:, :, None]), -1, 0)
    wanted = np.maximum(np.abs(x) / (WIDTH / 2), np.abs(y) / (HEIGHT / 2)) * FOCAL / filled[..., None] + z
    distance = np.maximum(wanted, z + NEAREST).max(axis=-1)
    return scene.observers(target + back * distance[..., None], np.broadcast_to(target, back.shape))


def pixels(points: Floats, observers: Floats) -> NDArray[np.float64]:
    """Project points (..., k, 3) of the world into the pictures of observers (..., 9): (..., k, 2), right and down.

    Raises:
        RoomError: a point is not before the observer.
    """
    offsets = points - observers[..., None, scene.EYE]
    x, y, z = np.moveaxis(np.einsum("...ji,...kj->...ki", scene.eye_rotation(observers), offsets), -1, 0)
    if (z >= 0).any():
        raise RoomError(f"{int((z >= 0).sum())} points are beside or behind their observer; those before it are seen")
    return np.stack([WIDTH / 2 - FOCAL * x / z, HEIGHT / 2 + FOCAL * y / z], axis=-1)


def boxes(scenes: Floats, observers: Floats) -> NDArray[np.float64]:
    """Boxes (..., 2, 4) of subject and object in the picture: left, top, width, height in pixels.

    Of the eight corners of each object's box; every kind's solid has the same convex hull, so the outline of the
    solid has the same box. Boxes are not cut at the picture's edge.

    Raises:
        RoomError: an object is not wholly before its observer.
    """
    corners = scene.corners(scenes)
    seen = pixels(corners.reshape(*corners.shape[:-3], 16, 3), observers).reshape(*corners.shape[:-1], 2)
    low, high = seen.min(axis=-2), seen.max(axis=-2)
    return np.concatenate([low, high - low], axis=-1)


def in_picture(boxes: Floats) -> NDArray[np.bool_]:
    """Mask of the boxes (..., 4) that lie wholly in the picture."""
    left, top, width, height = np.moveaxis(boxes, -1, 0)
    return np.asarray((left >= 0) & (top >= 0) & (left + width <= WIDTH) & (top + height <= HEIGHT))


def visible(scenes: Floats, observers: Floats) -> NDArray[np.float64]:
    """Share (n, views, 2) of each object's 27 points that the other object does not hide from observers (n, views, 9).

    The points are a grid in its box. Of scenes (n, 2, 19).
    """
    out = np.empty((*observers.shape[:2], 2))
    for which in (scene.SUBJECT, scene.OBJECT):
        thing, other = scenes[:, which], scenes[:, 1 - which]
        offsets = np.einsum("nij,nkj->nki", scene.rotation(thing), _GRID * thing[:, None, scene.HALF])
        points = thing[:, None, scene.CENTER] + offsets
        turn, center = scene.rotation(other), other[:, scene.CENTER]
        ends = np.einsum("nji,nkj->nki", turn, points - center[:, None])
        eyes = np.einsum("nji,nvj->nvi", turn, observers[..., scene.EYE] - center[:, None])
        parts = scene.PARTS[scene.kind(other)] * other[:, None, None, scene.HALF]
        out[..., which] = 1 - _hidden(eyes, ends, parts).mean(axis=-1)
    return out


def _hidden(eyes: Floats, ends: Floats, parts: Floats) -> NDArray[np.bool_]:
    """Mask (n, v, k) of the points (n, k, 3) that parts (n, P, 2, 3) hide from eyes (n, v, 3): the slab test."""
    start, step = eyes[:, :, None], ends[:, None] - eyes[:, :, None]
    step = np.where(np.abs(step) < 1e-12, 1e-12, step)
    hidden = np.zeros(step.shape[:3], bool)
    for part in range(parts.shape[1]):
        middle, half = parts[:, None, None, part, 0], parts[:, None, None, part, 1]
        low, high = (middle - half - start) / step, (middle + half - start) / step
        enters, leaves = np.minimum(low, high).max(axis=-1), np.maximum(low, high).min(axis=-1)
        there = (half > 0).all(axis=-1)
        hidden |= there & (enters < leaves) & (leaves > 0) & (enters < 1)
    return hidden
