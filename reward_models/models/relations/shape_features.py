"""Features of two boxes' shapes, beside ``pair_features``: parts, tips, cavities and openings, as ``scene.KINDS``.

A box of an unknown shape counts as solid, without a tip. Everything is a function of scalar products, as there.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reward_models.models.relations.base import OBJECT, SUBJECT
from spatialsim_env.relations import scene

_WHOLE = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
_ABSENT = 1e6  # gap to a part that a shape does not have, in mean half sizes
_STEPS = 9  # points along an axis


def _tables() -> dict[str, NDArray[np.float64]]:
    """By shape: parts and cavity (or the whole) as centre and half size, half size of the opening, way to the tip."""
    kinds = scene.KINDS
    return {
        "parts": scene.PARTS,
        "cavity": np.array([kind.cavity or _WHOLE for kind in kinds]),
        "opening": np.array([kind.opening[1] if kind.opening else _WHOLE[1] for kind in kinds]),
        "tip": np.array([np.eye(3)[kind.tip] if kind.tip is not None else np.zeros(3) for kind in kinds]),
    }


_TABLES = _tables()


def of_kinds(name: str, kinds: Tensor) -> Tensor:
    """Rows of a table for one-hot shapes (..., 7); those of a block where unknown."""
    table = torch.from_numpy(_TABLES[name]).to(kinds)
    known = (kinds @ table.flatten(1)).unflatten(-1, table.shape[1:])
    rest = (1 - kinds.sum(-1)).view(*kinds.shape[:-1], *[1] * (table.dim() - 1))
    return known + rest * table[0]


def parts_apart(offset: Tensor, turns: Tensor, half: Tensor, kinds: Tensor, axes: Tensor, never: Tensor) -> Tensor:
    """The least, over pairs of parts, of the greatest gap along axes: (B, 1), minus the depth where parts meet.

    Args:
        offset: (B, 3), from the object's centre to the subject's.
        turns: (B, 2, 3, 3), columns front, left, up.
        half: (B, 2, 3).
        kinds: (B, 2, 7).
        axes: (B, k, 3), unit vectors among which those are that can part two boxes.
        never: (B, k), taken off the gap along axes that are none.
    """
    parts = of_kinds("parts", kinds) * half[:, :, None, None]
    there = parts[..., 1, :].sum(-1) > 0
    along = torch.einsum("bkx,boxa->boka", axes, turns)
    places = torch.einsum("boka,bopa->bokp", along, parts[..., 0, :])
    reaches = torch.einsum("boka,bopa->bokp", along.abs(), parts[..., 1, :])
    shift = (axes @ offset[..., None] + places[:, SUBJECT])[..., None] - places[:, OBJECT, :, None]
    reach = reaches[:, SUBJECT, :, :, None] + reaches[:, OBJECT, :, None]
    gaps = (shift.abs() - reach - never[..., None, None]).amax(1)
    real = there[:, SUBJECT, :, None] & there[:, OBJECT, None]
    far = _ABSENT * half.mean((1, 2))[:, None, None]
    return torch.where(real, gaps, far).flatten(1).amin(1, keepdim=True)


def in_cavity(points: Tensor, half: Tensor, kinds: Tensor, soft: Tensor) -> Tensor:
    """Share of points (B, n, 3), in the frame of a box, in its cavity, (B, 1); in the whole where it has none."""
    middle, reach = (of_kinds("cavity", kinds) * half[:, None])[:, None].unbind(2)
    return ((reach - (points - middle).abs()) / soft).sigmoid().prod(-1).mean(1, keepdim=True)


def through_opening(place: Tensor, arms: Tensor, half: Tensor, kinds: Tensor) -> Tensor:
    """Distance of each axis of one box to the middle of the other's opening, in its half sizes, (B, 3).

    Args:
        place: (B, 3), the one's centre in the frame of the other.
        arms: (B, 3, 3), columns from its centre to the ends of its axes, likewise.
        half: (B, 3) of the other.
        kinds: (B, 7) of the other.
    """
    hole = of_kinds("opening", kinds) * half
    steps = torch.linspace(-1, 1, _STEPS, dtype=place.dtype, device=place.device)
    points = place[:, None, None] + steps[:, None] * arms.mT[:, :, None]
    return (points.abs() / hole[:, None, None]).amax(-1).amin(-1)


def tip(turns: Tensor, kinds: Tensor) -> Tensor:
    """Unit vectors to the tips of boxes, (B, 3); 0 where there is none."""
    return (turns @ of_kinds("tip", kinds)[..., None]).squeeze(-1)
