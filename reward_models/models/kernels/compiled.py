"""Common parts of the compiled scorers: layers as flat arrays, padded with zeros to 16 numbers in and out.

Networks are trained and defined as torch modules. On a few hundred small scenes, which is what hindsight asks a reward
about, their layers cost more to call than to compute, so some have a scorer besides: a compiled loop over rows that
gives the same scores to the rounding of float64. The value of a row does not depend on the rows around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from reward_models.models.kernels.lanes import LANES, add_matrix, load
from spatialsim_env.arrangements.scene import SHAPE

Scorer = Callable[..., NDArray[np.float64]]  # scores (B,) of batches of scenes, (B, n, 10) of float64, contiguous
Layer = tuple[Tensor, Tensor | None]  # weights (out, in), bias (out,)

BIAS = LANES * LANES  # where it begins in a flat layer; the matrix, transposed, is before it
FLAT = BIAS + LANES  # numbers of a flat layer
_S, _S_END = SHAPE.start, SHAPE.stop


def flat(layers: Sequence[Layer]) -> NDArray[np.float64]:
    """Layers one after the other in one array, ``FLAT`` numbers each."""
    blocks = torch.zeros(len(layers), LANES + 1, LANES, dtype=torch.float64)
    for block, (weight, bias) in zip(blocks, layers, strict=True):
        block[: weight.shape[1], : weight.shape[0]] = weight.detach().T
        if bias is not None:
            block[LANES, : bias.shape[0]] = bias.detach()
    return blocks.numpy().reshape(-1)


@njit(cache=True, error_model="numpy")
def linear(layers, start, vector, at):  # type: ignore[no-untyped-def]
    """The flat layer that begins at ``start``, of sixteen numbers of a vector."""
    return add_matrix(load(layers, start + BIAS), layers, start, vector, at)


@njit(cache=True, error_model="numpy")
def holds(scene, i):  # type: ignore[no-untyped-def]
    """Check that a row of a scene is an object and not padding."""
    total = 0.0
    for k in range(_S, _S_END):
        total += scene[i, k]
    return total > 0.5
