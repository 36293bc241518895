"""Changes of the target that the authors' generator offers beside the two tasks of the paper, and lookalikes.

Each is a pure batched function of scenes and random numbers, as the negatives are, but it is applied whatever the
label. ``tasks`` has a field for each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements import scene
from spatialsim_env.arrangements.scene import ARENA, COLOR, POSITION, SHAPE, SIZE, place, present
from spatialsim_env.arrangements.similarities import Similarity

N_RECAST = 6  # uniform numbers per object: shape, size, three colours, orientation


def recast(scenes: NDArray[np.float32], numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Everything but the positions drawn anew, as in a reference scene: (B, n, 10), (B, n, 6) in [0, 1).

    The authors' code adds the new sizes, colours and angles to the old ones and doubles the positions; here they
    replace the old ones, which is what its comments say.
    """
    size, n = scenes.shape[:2]
    places = np.zeros((size, n, scene.N_UNIFORM - N_RECAST), np.float32)
    out = scene.from_uniform(np.concatenate([numbers, places], axis=-1), np.full(size, n))
    out[..., POSITION] = scenes[..., POSITION]
    out *= present(scenes)[..., None]
    return out


def make_lookalikes(scenes: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """The first ``most`` objects of each reference scene take the shape, size and colour of its first, (B, n, 10).

    A position U[size, 20 - size] becomes one for the new size, so that everything else stays as it was drawn.
    """
    out = scenes.copy()
    part, own = out[:, :most], scenes[:, :most, SIZE, None]
    for column in (SHAPE, SIZE, COLOR):
        part[..., column] = scenes[:, :1, column]
    drawn = (scenes[:, :most, POSITION] - own) / (np.float32(ARENA) - 2 * own)
    part[..., POSITION] = place(drawn, part[..., SIZE])
    part *= present(scenes[:, :most])[..., None]
    return out


def n_distractor_uniform(most: int) -> int:
    """Count the uniform numbers that the distractors of one scene take."""
    return 1 + most * scene.N_UNIFORM if most else 0


def make_distractors(numbers: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """Extra objects, drawn as those of a reference scene: (B, n_distractor_uniform(most)) -> (B, most, 10).

    Their number is uniform in 0..most; the rows beyond are padding.
    """
    count = (numbers[:, 0] * (most + 1)).astype(np.int64)
    return scene.from_uniform(numbers[:, 1:].reshape(len(numbers), most, scene.N_UNIFORM), count)


@dataclass(frozen=True)
class Fixed:
    """Parts of the similarity that are given in place of drawn, for grids over a single one; None: drawn."""

    scale: float | None = None
    rotation: float | None = None  # radians, counter-clockwise
    translation: tuple[float, float] | None = None  # x, y, units

    def __post_init__(self) -> None:
        if self.scale is not None and not (_is_number(self.scale) and self.scale > 0):
            raise ValueError(f"scale is {self.scale!r}; accepted is a positive number, or None")
        if self.rotation is not None and not _is_number(self.rotation):
            raise ValueError(f"rotation is {self.rotation!r}; accepted are radians, or None")
        if self.translation is not None:
            pair = self.translation
            if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(map(_is_number, pair)):
                raise ValueError(f"translation is {pair!r}; accepted is a pair of numbers (x, y) in units, or None")
            object.__setattr__(self, "translation", tuple(pair))

    @property
    def names(self) -> tuple[str, ...]:
        """The parts that are given."""
        return tuple(name for name in ("scale", "rotation", "translation") if getattr(self, name) is not None)

    def __call__(self, drawn: Similarity) -> Similarity:
        """The similarities with the given parts in place of the drawn ones."""
        out = drawn
        if self.scale is not None:
            out = replace(out, scale=np.full_like(drawn.scale, self.scale))
        if self.rotation is not None:
            out = replace(out, angle=np.full_like(drawn.angle, self.rotation))
        if self.translation is not None:
            out = replace(out, translation=np.full_like(drawn.translation, self.translation))
        return out


def _is_number(value: Any) -> bool:
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return real and bool(np.isfinite(value))
