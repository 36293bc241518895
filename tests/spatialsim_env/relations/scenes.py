"""Random scenes of two objects for tests, any pair of shapes in any pose, and their observers."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from spatialsim_env.relations import scene


def random_scenes(size: int, seed: int, spread: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    """Half of the objects are upright, half turned anyhow; near enough to meet often."""
    rng = np.random.default_rng(seed)
    anyhow = Rotation.random(2 * size, random_state=rng).as_matrix().reshape(size, 2, 3, 3)
    upright = scene.yaw_rotation(rng.uniform(-180, 180, (size, 2)))
    turn = np.where(rng.random((size, 2, 1, 1)) < 0.5, upright, anyhow)
    center = rng.uniform(-spread, spread, (size, 2, 3)) + np.array([0, 0, 1])
    kinds = rng.integers(0, len(scene.KINDS), (size, 2))
    scenes = scene.objects(center, turn, np.exp(rng.uniform(np.log(0.02), np.log(0.5), (size, 2, 3))), kinds)
    eye = np.stack([*(3 * np.array([np.cos(a := rng.uniform(0, 7, size)), np.sin(a)])), np.full(size, 1.5)], axis=-1)
    return scenes, scene.observers(eye, np.zeros((size, 3)))
