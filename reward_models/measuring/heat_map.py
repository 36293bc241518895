"""Figure 2 of the paper: two equal scenes, one object of one of them displaced, and what a model says of the pair.

The displaced object visits the centres of a 40 x 40 grid over the arena, everything else stays; the value is logit+
minus logit-, or for the truth 1 - distance: positive says that both show the same configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_models.measuring import evaluation
from reward_models.models import RewardModel
from reward_models.models.batch import for_model
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.scene import ARENA, POSITION
from spatialsim_env.arrangements.tasks import Samples, reference_scene

GRID = 40  # points a side
OBJECTS = 5  # in the scene
DISPLACED = 0  # row of the scene
MOST_LOGIT = 100.0  # end of the scale of a picture

Score = Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[Any]]  # displaced and still (B, n, 10) -> (B,)


def heat_map(score: Score, scene: NDArray[np.float32] | None = None, displaced: int = DISPLACED) -> dict[str, Any]:
    """The values over the grid, as they stand in a row.

    Args:
        score: says of displaced and still scenes (B, n, 10) how much they are the same, (B,).
        scene: (n, 10); the reference scene of ``identification/n5`` by default, for both tasks.
        displaced: row of the object that moves.

    Returns:
        ``logits``: 40 lists of 40, y from low to high and in each x from low to high, rounded to four digits after the
        point; ``scene`` and ``displaced``.
    """
    scene = reference_scene(OBJECTS, 0) if scene is None else scene
    targets = displacements(scene, displaced)
    values = score(targets, np.broadcast_to(scene, targets.shape))
    return {
        "logits": np.asarray(values, np.float64).reshape(GRID, GRID).round(4).tolist(),
        "scene": scene.astype(np.float64).round(6).tolist(),
        "displaced": displaced,
    }


def displacements(scene: NDArray[np.float32], displaced: int) -> NDArray[np.float32]:
    """The scene with one object at each point of the grid, (1600, n, 10); x runs fastest."""
    places = ((np.arange(GRID) + 0.5) * ARENA / GRID).astype(np.float32)
    y, x = np.meshgrid(places, places, indexing="ij")
    targets = np.repeat(scene[None], GRID * GRID, axis=0)
    targets[:, displaced, POSITION] = np.stack([x.ravel(), y.ravel()], axis=-1)
    return targets


def draw_heat_map(axes: Any, found: dict[str, Any]) -> Any:
    """A heat map of ``heat_map.py`` with the places of the objects; returns its image, for a colour bar."""
    from matplotlib.colors import SymLogNorm

    logits = np.array(found["logits"], dtype=np.float64)
    norm = SymLogNorm(linthresh=1, vmin=-MOST_LOGIT, vmax=MOST_LOGIT, base=10)
    image = axes.imshow(logits, origin="lower", extent=(0, ARENA, 0, ARENA), cmap="RdBu_r", norm=norm)
    if logits.min() < 0 < logits.max():
        places = (np.arange(logits.shape[0]) + 0.5) * ARENA / logits.shape[0]
        axes.contour(places, places, np.arcsinh(logits), levels=[0], colors="black", linewidths=0.8)
    positions = np.array(found["scene"])[:, POSITION]
    others = np.delete(positions, found["displaced"], axis=0)
    axes.plot(*others.T, "o", color="black", markeredgecolor="white", markersize=6)
    star = positions[found["displaced"]]
    axes.plot(*star, "*", color="gold", markeredgecolor="black", markersize=11, clip_on=False)
    axes.set_xticks([0, ARENA / 2, ARENA])
    axes.set_yticks([0, ARENA / 2, ARENA])
    axes.tick_params(labelsize=7)
    return image


def of_model(model: RewardModel) -> dict[str, Any]:
    """The heat map of a network of one or two inputs."""
    device = next(model.parameters()).device

    def judge(targets: NDArray[np.float32], references: NDArray[np.float32]) -> NDArray[Any]:
        batch = for_model(model, Samples(targets, references, np.zeros(len(targets), np.float32)), device)
        last = evaluation.logits(model, batch)[-1]
        return (last[:, 1] - last[:, 0]).cpu().numpy()

    return heat_map(judge)


def of_truth() -> dict[str, Any]:
    """The heat map of the exact geometry: 1 - distance, which is positive where the goal is achieved."""
    return heat_map(lambda targets, references: 1 - goals.distance(references, targets))
