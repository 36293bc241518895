"""Definition of "achieved", the only one in the package: criteria, tolerances, graded distance.

A goal is reached when the achieved scene is the desired one up to a proper similarity and every object is in its
place: the *distance*, the largest residual over the objects in units of its tolerance after the best similarity, is
at most 1. The class of scenes is the paper's (section 2.1); matching, fit and residuals are in ``alignment``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.arrangements.alignment import COUNTS_DIFFER, CRITERIA, OK, ORIENTATIONS, Alignment, align, distances
from spatialsim_env.arrangements.scene import COLOR, NOISE, SHAPE, SceneError, as_batch, count, validate


class Tolerances(NamedTuple):
    """Largest residuals that still count as in place: five deviations of the benchmark's noise."""

    position: float = 5 * NOISE.position  # 1.0 unit
    orientation: float = 5 * NOISE.orientation  # 0.314 rad
    size: float = 5 * NOISE.size  # 0.1 unit


TOLERANCES = Tolerances()
FARTHEST = 20.0  # distances beyond this are all the same to the dense reward


class Criterion(NamedTuple):
    """When a goal counts as reached.

    ``similarity`` asks for positions, orientations and sizes under one similarity; ``positions`` for the positions
    alone. ``orientation`` compares angles as a ``number`` modulo 2 pi, or as ``visual``: modulo the symmetry of the
    shape (square pi/2, triangle 2 pi/3, circle any).
    """

    name: str = "similarity"
    tolerances: Tolerances = TOLERANCES
    orientation: str = "number"

    def align(self, achieved: NDArray[Any], desired: NDArray[Any], matching: NDArray[Any] | None = None) -> Alignment:
        """Match and fit (B, n, 10) pairs without checking them; pairs of different objects have distance inf."""
        return align(achieved, desired, self.tolerances, self.name, self.orientation, matching)

    def distances(
        self, achieved: NDArray[np.float32], desired: NDArray[np.float32], matching: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """``align(achieved, desired, matching).distance``, (B,), for contiguous pairs, in less time."""
        return distances(achieved, desired, matching, self.tolerances, self.name, self.orientation)


def criterion_of(
    criterion: str = "similarity",
    tolerances: Tolerances | tuple[float, float, float] = TOLERANCES,
    orientation: str = "number",
) -> Criterion:
    """A checked criterion.

    Raises:
        ValueError: an unknown name, or tolerances that are not three positive finite numbers.
    """
    if criterion not in CRITERIA:
        raise ValueError(f"criterion is {criterion!r}; accepted are {', '.join(CRITERIA)}")
    if orientation not in ORIENTATIONS:
        raise ValueError(f"orientation is {orientation!r}; accepted are {', '.join(ORIENTATIONS)}")
    try:
        values = np.asarray(tolerances, np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (3,) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"tolerances are {tolerances!r}; accepted are three positive numbers: {Tolerances._fields}")
    return Criterion(criterion, Tolerances(*values.tolist()), orientation)


def distance(
    achieved: ArrayLike,
    desired: ArrayLike,
    criterion: str = "similarity",
    *,
    tolerances: Tolerances | tuple[float, float, float] = TOLERANCES,
    orientation: str = "number",
) -> Any:
    """Largest residual / tolerance over the objects after the best similarity; at most 1 means achieved.

    Args:
        achieved: the scene in the arena, (n, 10), (B, n, 10) or flat (10 n,), (B, 10 n); padding allowed.
        desired: the goal, in any of these forms; one goal serves a whole batch and the other way round.
        criterion: "similarity" or "positions".
        tolerances: position (units), orientation (rad), size (units).
        orientation: "number" or "visual".

    Returns:
        A float, or (B,) float64 if one of the inputs is a batch. Under ``positions`` a scene of two or more objects
        on one point is at distance inf.

    Raises:
        SceneError: not scenes, or scenes of different objects.
        ValueError: an unknown option.
    """
    rule = criterion_of(criterion, tolerances, orientation)
    a, a_batched = as_batch(achieved, "achieved")
    g, g_batched = as_batch(desired, "desired")
    validate(a, "achieved")
    validate(g, "desired")
    if len(a) != len(g):
        if 1 not in (len(a), len(g)):
            raise SceneError(f"achieved holds {len(a)} scenes and desired {len(g)}; accepted are equal numbers, or one")
        size = len(g) if len(a) == 1 else len(a)
        a, g = (np.broadcast_to(x, (size, *x.shape[1:])) if len(x) != size else x for x in (a, g))
    result = rule.align(a, g)
    if (result.status != OK).any():
        raise SceneError(_mismatch(a, g, result.status))
    return result.distance if a_batched or g_batched else float(result.distance[0])


def achieved(
    achieved: ArrayLike,
    desired: ArrayLike,
    criterion: str = "similarity",
    *,
    tolerances: Tolerances | tuple[float, float, float] = TOLERANCES,
    orientation: str = "number",
) -> Any:
    """Decide whether the goal is achieved: ``distance(...) <= 1``; the same arguments and errors.

    Returns:
        A bool, or (B,) of bool if one of the inputs is a batch.
    """
    reached = distance(achieved, desired, criterion, tolerances=tolerances, orientation=orientation) <= 1
    return reached if isinstance(reached, np.ndarray) else bool(reached)


def _mismatch(a: NDArray[Any], g: NDArray[Any], status: NDArray[np.int8]) -> str:
    row = int((status != OK).argmax())
    if status[row] == COUNTS_DIFFER:
        return f"pair {row}: achieved holds {count(a[row])} objects and desired {count(g[row])}; they must be the same"
    shapes = [x[row][:, SHAPE].sum(axis=0).astype(int).tolist() for x in (a, g)]
    colors = f"colours such as {np.round(a[row, 0, COLOR], 2).tolist()} decide only among equal shapes"
    return (
        f"pair {row}: achieved holds (squares, circles, triangles) = {shapes[0]} and desired {shapes[1]}; "
        f"they must hold the same objects ({colors})"
    )
