"""A wrong configuration of your own: certified by the truth, and tried on networks that did and did not train on it.

``Stretched`` pulls the arrangement apart along x alone, which no similarity undoes. Where all objects stand nearly
above each other it changes next to nothing, so not every result is wrong: ``certified`` draws those again.
"""

import argparse
from pathlib import Path

import numpy as np

from reward_models import load
from reward_models.training.config import TrainingConfig
from reward_models.training.protocol import train
from spatialsim_env.arrangements import goals, negatives, scene
from spatialsim_env.arrangements.tasks import Discrimination

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--samples", type=int, default=50_000, help="pairs that each network is trained on")
parser.add_argument("--out", type=Path, default=Path("runs/own_negatives"), help="folder of the networks")
options = parser.parse_args()


class Stretched:
    """Positions scaled along x about the barycentre, by a factor U[low, high]."""

    name = "stretched"
    turns = False  # orientations stay
    by_construction = False  # the truth certifies it
    criteria = ("similarity", "positions")  # under which it is wrong

    def __init__(self, low: float = 1.1, high: float = 1.5) -> None:
        self.low, self.high = low, high

    def n_uniform(self, n_max: int) -> int:
        return 1  # random numbers per scene

    def __call__(self, scenes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        out, x = scenes.copy(), scene.POSITION.start
        center = scene.barycenter(scenes)[..., 0]
        factor = self.low + (self.high - self.low) * numbers
        out[..., x] = np.where(scene.present(scenes), center + factor * (scenes[..., x] - center), 0)
        return out


negatives.REGISTRY[Stretched.name] = Stretched()  # from now on a name, as the benchmark's are

for certified in (False, True):
    pairs = Discrimination(3, negative="stretched", certified=certified).sample(4_000, np.random.default_rng(0))
    wrong = pairs[pairs.label == 0]
    share = np.mean(~goals.achieved(wrong.reference, wrong.target))
    print(f"stretched, certified {certified!s:5}: {share:.4f} of the negatives are wrong under the truth")

pairs = Discrimination((3, 8), negative="stretched", certified=True).sample(4_000, np.random.default_rng(1))
for negative in ("redrawn", "redrawn+stretched"):
    folder = options.out / negative
    train(TrainingConfig.plain("matching", negative=negative, samples_per_stage=options.samples), folder)
    right = (load(folder).score(pairs.reference, pairs.target) > 0) == pairs.label
    print(f"trained on {negative:17}: {right.mean():.3f} right on pairs with stretched negatives")
