"""Similarities of the plane, batched: sample, apply, compose, invert (paper, section 2.2).

A similarity here turns and scales about the barycentre of the scene it is applied to, then translates. Acting about
the barycentre makes the three parts commute, so composing adds angles and translations and multiplies scales. It
acts on a scene, not only on points: sizes are scaled and orientations turned along. Nothing is wrapped or clamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.scene import ORIENTATION, POSITION, SIZE, TURN, barycenter, present

SCALES = (0.5, 2.0)
ANGLES = (0.0, TURN)  # radians
TRANSLATION = 20.0  # each coordinate in U[-20, 20], units
N_UNIFORM = 4  # uniform numbers per similarity

Range = tuple[float, float]


@dataclass(frozen=True)
class Similarity:
    """A batch of orientation-preserving similarities; reflections are not among them.

    ``apply(compose(a, b)) == apply(a, apply(b))`` and ``apply(invert(a), apply(a, scenes)) == scenes``, up to
    floating-point error.
    """

    scale: NDArray[Any]  # (B,), positive
    angle: NDArray[Any]  # (B,), radians, counter-clockwise
    translation: NDArray[Any]  # (B, 2), units

    def apply(self, scenes: NDArray[Any]) -> NDArray[Any]:
        """Transform scenes (B, n, 10); padding stays zero and the type of the scenes is kept."""
        mask = present(scenes)
        center = barycenter(scenes)
        offset = scenes[..., POSITION] - center
        scale = self.scale.astype(scenes.dtype)[:, None]
        angle = self.angle.astype(scenes.dtype)[:, None]
        cosine, sine = scale * np.cos(angle), scale * np.sin(angle)
        moved = center + self.translation.astype(scenes.dtype)[:, None]
        out = scenes.copy()
        out[..., POSITION.start] = moved[..., 0] + cosine * offset[..., 0] - sine * offset[..., 1]
        out[..., POSITION.start + 1] = moved[..., 1] + sine * offset[..., 0] + cosine * offset[..., 1]
        out[..., SIZE] *= scale
        out[..., ORIENTATION] += angle
        if not mask.all():
            out *= mask[..., None]
        return out

    def compose(self, first: Similarity) -> Similarity:
        """The similarity that applies ``first``, then this one."""
        return Similarity(self.scale * first.scale, self.angle + first.angle, self.translation + first.translation)

    def invert(self) -> Similarity:
        """The similarity that undoes this one."""
        return Similarity(1 / self.scale, -self.angle, -self.translation)


def from_uniform(numbers: NDArray[np.float32], scales: Range = SCALES, angles: Range = ANGLES) -> Similarity:
    """The benchmark's similarities as a function of uniform numbers.

    Translation U[-20, 20] per coordinate, scale and rotation uniform in their ranges.

    Args:
        numbers: (B, 4) in [0, 1).
        scales: lowest and highest.
        angles: likewise, radians; the curriculum's stages end at 0.1, 0.6, 1.1, 1.6 and 2 times pi.
    """
    return Similarity(
        scale=scales[0] + (scales[1] - scales[0]) * numbers[:, 0],
        angle=angles[0] + (angles[1] - angles[0]) * numbers[:, 1],
        translation=TRANSLATION * (2 * numbers[:, 2:4] - 1),
    )


def sample(size: int, rng: np.random.Generator, scales: Range = SCALES, angles: Range = ANGLES) -> Similarity:
    """Draw ``size`` similarities."""
    return from_uniform(rng.random((size, N_UNIFORM), np.float32), scales, angles)
