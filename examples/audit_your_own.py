"""An audit of a reward of your own: any object with score(achieved, desired), positive where it says achieved.

This one compares the distances between objects, divided by their mean, one by one. It is blind to orientations, sizes
and mirror images, which no sample of redrawn arrangements shows and every optimiser finds.
"""

import argparse

import numpy as np

import reward_models
from spatialsim_env.arrangements.scene import POSITION


class Distances:
    """Says achieved where no relative distance between two objects differs by more than ``limit``."""

    def __init__(self, limit: float = 0.2) -> None:
        self.limit = limit

    def score(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        """Scenes in the arena (B, n, 10) and goals (B, n, 10) -> (B,)."""
        return self.limit - np.abs(self.shape(achieved) - self.shape(desired)).max(axis=(1, 2))

    def shape(self, scenes: np.ndarray) -> np.ndarray:
        """Distances between the objects, in the order of their looks, divided by their mean, (B, n, n)."""
        order = np.lexsort(np.moveaxis(scenes[..., :7].astype(np.float64), -1, 0).round(1))
        places = np.take_along_axis(scenes[..., POSITION], order[..., None], axis=1).astype(np.float64)
        apart = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)
        return apart / np.maximum(apart.mean(axis=(1, 2), keepdims=True), 1e-9)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--starts", type=int, default=64, help="of the search")
parser.add_argument("--search", type=int, default=5_000, help="scores from each start, at most")
arguments = parser.parse_args()

found = reward_models.audit(
    Distances(), n_objects=(3,), starts=arguments.starts, search_evaluations=arguments.search, agent=False,
    out="runs/audit_your_own",
)  # fmt: skip
for row in found["rows"]:
    said, true = row["precision"]["total"], row["precision"]["hits"]
    print(f"{row['optimiser']} of {row['moves']}: from {row['starts']} starts, {said} called achieved; {true} are")
print(
    f"of {found['fixed'][0]['accuracy']['total']} pairs of the benchmark, {found['fixed'][0]['accuracy']['hits']} right"
)
print("runs/audit_your_own/report.md shows where it was wrong")
