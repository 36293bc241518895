"""Wrong configurations that differ from right ones in little (section 3 of the goal-achievement specification).

What a rule of thumb looks at stays as it is: in ``Swapped`` the set of places, in ``SpreadMatched`` the spread, in
``RadiusMatched`` every distance to the barycentre. The protocol and the registry are those of ``negatives``, where the
other hard ones are: displaced, mirrored, twisted and mis-scaled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements.alignment import CRITERIA, INTERCHANGEABLE
from spatialsim_env.arrangements.scene import COLOR, POSITION, SHAPE, barycenter, count, present, redraw

Scenes = NDArray[np.float32]


@dataclass(frozen=True)
class Swapped:
    """Two objects of different identity exchange places; the pair is uniform among those of a scene.

    Identities differ where the shapes do, or a channel of the colour by more than the truth's limit, 0.05. A scene
    without such a pair stays as it is.
    """

    name: str = field(default="swapped", init=False)
    criteria = CRITERIA
    turns = False
    by_construction = False

    def n_uniform(self, n_max: int) -> int:
        return 1

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        first, second = np.triu_indices(scenes.shape[1], k=1)
        mask, out = present(scenes), scenes.copy()
        color, shape = scenes[..., COLOR], scenes[..., SHAPE]
        differ = (shape[:, first] != shape[:, second]).any(axis=-1)
        differ |= (np.abs(color[:, first] - color[:, second]) > INTERCHANGEABLE).any(axis=-1)
        differ &= mask[:, first] & mask[:, second]
        chosen = (numbers[:, 0].astype(np.float64) * differ.sum(axis=1)).astype(np.int64)
        rows, pair = np.nonzero(differ & (np.cumsum(differ, axis=1) - 1 == chosen[:, None]))
        out[rows, first[pair], POSITION] = scenes[rows, second[pair], POSITION]
        out[rows, second[pair], POSITION] = scenes[rows, first[pair], POSITION]
        return out


@dataclass(frozen=True)
class SpreadMatched:
    """Positions drawn anew as in the benchmark, then scaled about their barycentre to the RMS spread they had.

    Closes the shortcut of one number, the spread. Objects may leave the arena.
    """

    name: str = field(default="spread_matched", init=False)
    criteria = CRITERIA
    turns = False
    by_construction = False

    def n_uniform(self, n_max: int) -> int:
        return 2 * n_max

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        mask, out = present(scenes)[..., None], redraw(scenes, numbers)
        center = barycenter(out)
        offset = np.where(mask, out[..., POSITION] - center, 0)
        wanted = np.where(mask, scenes[..., POSITION] - barycenter(scenes), 0)
        squares, drawn = ((x.astype(np.float64) ** 2).sum(axis=(1, 2)) for x in (wanted, offset))
        factor = np.sqrt(np.divide(squares, drawn, out=np.ones_like(drawn), where=drawn > 0)).astype(np.float32)
        out[..., POSITION] = np.where(mask, center + factor[:, None, None] * offset, 0)
        return out


@dataclass(frozen=True)
class RadiusMatched:
    """Every object keeps its distance r_k to the barycentre, at a new angle phi_k: sum of r_k exp(i phi_k) = 0.

    The chain of the distances is laid link by link from the shortest on, each at an angle uniform among those that
    the rest can still close; the last two close it, on either side. Closes the shortcut of the sorted distances, and
    with it that of the spread. Up to a turn, three objects have one other arrangement, the mirror image, which is
    taken, and two have none.
    """

    name: str = field(default="radius_matched", init=False)
    criteria = CRITERIA
    turns = False
    by_construction = False

    def n_uniform(self, n_max: int) -> int:
        return n_max - 1 if n_max > 3 else 1

    def __call__(self, scenes: Scenes, numbers: NDArray[np.float32]) -> Scenes:
        mask, center = present(scenes), barycenter(scenes)
        points = np.where(mask, (scenes[..., POSITION] - center).astype(np.float64) @ np.array([1, 1j]), 0)
        lengths = np.where(mask, np.round(np.abs(points), 3), -1)  # rounded: two objects tie
        order = np.argsort(lengths, axis=1, kind="stable")  # padding first: links of length 0
        chain = np.take_along_axis(points, order, axis=1)
        padding = scenes.shape[1] - count(scenes)
        steps = np.arange(scenes.shape[1])[None, :] - padding[:, None]  # 0 at the first object
        given = np.take_along_axis(numbers, np.clip(steps, 0, numbers.shape[1] - 1), axis=1).astype(np.float64)
        mirror = np.where(_cross(chain[:, -2:]) > 0, 0.5, 0.0) if scenes.shape[1] > 2 else given[:, -1]
        three = (count(scenes) == 3)[:, None] & (steps == 1)
        links = _close_chain(np.abs(chain), np.where(three, mirror[:, None], given))
        placed = np.empty_like(links)
        np.put_along_axis(placed, order, links, axis=1)
        out = scenes.copy()
        moved = center + np.stack([placed.real, placed.imag], axis=-1).astype(np.float32)
        out[..., POSITION] = np.where(mask[..., None], moved, 0)
        return out


def _cross(pairs: NDArray[Any]) -> NDArray[np.float64]:
    """Cross product of two complex numbers, (B, 2) -> (B,)."""
    return (pairs[:, 0].conj() * pairs[:, 1]).imag


def _close_chain(lengths: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.complex128]:
    """Links of the lengths (B, n) that add up to 0, from uniform numbers (B, n).

    The rest of the links reaches every distance from max(0, 2 longest - sum) to sum, so the sum so far is kept there:
    |S + r exp(i (arg S + delta))|^2 = |S|^2 + r^2 + 2 |S| r cos delta bounds delta.
    """
    size, n = lengths.shape
    links, total = np.zeros((size, n), np.complex128), np.zeros(size, np.complex128)
    backwards = np.pad(lengths, ((0, 0), (0, 1)))[:, ::-1]
    rest, longest = (f(backwards, axis=1)[:, ::-1] for f in (np.cumsum, np.maximum.accumulate))
    for k in range(n):
        link, reached, after = lengths[:, k], np.abs(total), rest[:, k + 1]
        least = np.maximum(0, 2 * longest[:, k + 1] - after)
        scale = 2 * reached * link
        bounds = [
            np.divide(x**2 - reached**2 - link**2, scale, out=np.full_like(scale, free), where=scale > 0)
            for x, free in ((after, 1.0), (least, -1.0))
        ]
        narrow, wide = (np.arccos(np.clip(bound, -1, 1)) for bound in bounds)
        twice = 2 * numbers[:, k]
        delta = np.where(twice < 1, 1, -1) * (narrow + np.mod(twice, 1) * (wide - narrow))
        links[:, k] = link * np.exp(1j * (np.angle(total) + delta))
        total = total + links[:, k]
    return links
