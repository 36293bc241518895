"""Measurements of a batch of scenes for the rules, each made once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.relations.geometry import boxes
from spatialsim_env.relations.scene import (
    CENTER,
    HALF,
    KINDS,
    N_FEATURES,
    N_OBSERVER,
    OBJECT,
    SUBJECT,
    RoomError,
    away,
    kind,
    rotation,
)

Array = NDArray[np.float64]

SAME_PLACE = 0.02  # m, centres nearer than this have less and less of a direction to each other

_TIPS = np.array([shape.tip if shape.tip is not None else 0 for shape in KINDS])  # front where there is no tip
_STANDING = np.array([shape.tip if shape.tip is not None else 2 for shape in KINDS])  # up where there is no tip


class Facts:
    """Measurements of scenes (B, 2, 19), subject S and object O, that observers (B, 9) may look at.

    Raises:
        RoomError: other shapes; a measurement that needs observers, without them.
    """

    def __init__(self, scenes: ArrayLike, observers: ArrayLike | None = None) -> None:
        self.scenes = np.asarray(scenes, np.float64)
        if self.scenes.ndim != 3 or self.scenes.shape[1:] != (2, N_FEATURES):
            raise RoomError(f"scenes have shape {self.scenes.shape}; accepted is (B, 2, {N_FEATURES})")
        self.observers = None if observers is None else np.asarray(observers, np.float64)
        if self.observers is not None and self.observers.shape != (len(self.scenes), N_OBSERVER):
            raise RoomError(f"observers have shape {self.observers.shape}; accepted is {len(self.scenes), N_OBSERVER}")
        self.subject, self.object = self.scenes[:, SUBJECT], self.scenes[:, OBJECT]

    @cached_property
    def apart(self) -> tuple[Array, Array]:
        """Gap and depth, (B,) each."""
        return boxes.apart(self.scenes)

    @property
    def gap(self) -> Array:
        """Least distance of the two solids in metres, (B,)."""
        return self.apart[0]

    @property
    def depth(self) -> Array:
        """pen: how deep one solid is in the other, metres, (B,)."""
        return self.apart[1]

    @cached_property
    def mean_size(self) -> Array:
        """L: mean of the six full sizes."""
        return np.asarray(2 * self.scenes[..., HALF].mean(axis=(1, 2)))

    @cached_property
    def on_object(self) -> Array:
        """ov(S|O): share of S's footprint on O's."""
        return boxes.overlap(self.scenes, of=SUBJECT, on=OBJECT)

    @cached_property
    def covered(self) -> Array:
        """ov(O|S): share of O's footprint under S's."""
        return boxes.overlap(self.scenes, of=OBJECT, on=SUBJECT)

    @cached_property
    def above(self) -> Array:
        """above(S, O): share of S's volume above O's top, (B,)."""
        return boxes.share_above(self.subject, boxes.top(self.object))

    @cached_property
    def underside(self) -> Array:
        """Lowest z of O without its legs, metres, (B,)."""
        return boxes.underside(self.object)

    @cached_property
    def within(self) -> Array:
        """Share of S's volume in O's cavity, (B,)."""
        return boxes.share_within(self.scenes)

    @cached_property
    def subject_turn(self) -> Array:
        """S's rotation, (B, 3, 3)."""
        return np.asarray(rotation(self.subject), np.float64)

    @cached_property
    def offset(self) -> Array:
        """From O's centre to S's, (B, 3)."""
        return self.subject[:, CENTER] - self.object[:, CENTER]

    @cached_property
    def own_offset(self) -> Array:
        """The same along O's front, left and up."""
        return boxes.in_frame(self.subject[:, CENTER], self.object)

    @cached_property
    def seen_offset(self) -> Array:
        """The same along the observer's right and away on the floor, (B, 2)."""
        if self.observers is None:
            raise RoomError("a predicate (wrt you) was asked without observers; accepted are observers (B, 9)")
        x, y = self.offset[:, 0], self.offset[:, 1]
        far = away(self.observers)
        return np.stack([x * far[:, 1] - y * far[:, 0], x * far[:, 0] + y * far[:, 1]], axis=-1)

    def angle(self, axis: Array) -> Array:
        """Degrees between a direction of S (B, 3) and the direction from its centre to O's; 90 where they coincide."""
        length = np.sqrt((self.offset**2).sum(axis=-1))
        cosine = -(axis * self.offset).sum(axis=-1) / np.maximum(length, SAME_PLACE)
        return np.degrees(np.arccos(np.clip(cosine, -1, 1)))

    @property
    def tip(self) -> Array:
        """Direction of S's tip, (B, 3); of its front where the shape has no tip."""
        return self._axis(_TIPS)

    @property
    def standing(self) -> tuple[NDArray[np.int64], Array]:
        """The axis that is upright when S stands: its number (B,) and direction (B, 3). Its tip's, else up."""
        return _STANDING[kind(self.subject)], self._axis(_STANDING)

    def _axis(self, table: NDArray[np.int64]) -> Array:
        return self.subject_turn[np.arange(len(self.scenes)), :, table[kind(self.subject)]]
