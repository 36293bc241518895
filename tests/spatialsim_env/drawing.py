"""What the tests of pictures and of the viewer share: objects by hand, and readings of pixels."""

from __future__ import annotations

import numpy as np

from spatialsim_env.arrangements import scene
from spatialsim_env.arrangements.scene import COLOR, ORIENTATION, POSITION, SHAPE, SHAPES, SIZE

ARENA = ((0.0, 20.0), (0.0, 20.0))
RED, GREEN, BLUE, BLACK = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)


def thing(shape="circle", size=2.0, color=BLACK, position=(10.0, 10.0), orientation=0.0):
    row = np.zeros(scene.N_FEATURES)
    row[SHAPE] = np.array(SHAPES) == shape
    row[SIZE], row[COLOR], row[POSITION], row[ORIENTATION] = size, color, position, orientation
    return row


def coverage(image):
    """How much of each pixel something black covers, 0..1."""
    return 1 - image[..., 0] / 255


def extents(covered, window=ARENA):
    """(x_lo, x_hi), (y_lo, y_hi) of what is covered at least half, world units, y up."""
    rows, columns = np.nonzero(covered >= 0.5)
    unit = len(covered) / (window[0][1] - window[0][0])
    return (
        (window[0][0] + columns.min() / unit, window[0][0] + (columns.max() + 1) / unit),
        (window[1][1] - (rows.max() + 1) / unit, window[1][1] - rows.min() / unit),
    )


def centroid(weights):
    """(column, row) of the weighted centre, in pixels."""
    rows, columns = np.indices(weights.shape) + 0.5
    return (columns * weights).sum() / weights.sum(), (rows * weights).sum() / weights.sum()


def close_to(color, image):
    return np.abs(image.astype(int) - np.array(color)).max(axis=-1) < 12
