"""A reward of your own in the environment: any object with a name, a threshold and a batched call.

This one forgets orientations and sizes: it calls a goal achieved when every object is within two units of its place.
The truth stays beside it in ``info``.
"""

from typing import Any

import gymnasium as gym
import numpy as np

from spatialsim_env import testing
from spatialsim_env.arrangements import alignment


class LooseReward:
    """0 where every object is within ``radius`` units of its place under the best similarity, else -1."""

    name = "loose"
    success_threshold = -0.5

    def __init__(self, radius: float = 2.0) -> None:
        self.radius = radius

    def __call__(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        fit = alignment.align(achieved, desired, (self.radius, 1.0, 1.0), criterion="positions")
        return np.where(fit.distance <= 1, 0.0, -1.0)


reward = LooseReward()
testing.assert_reward(reward)  # raises with what is wrong, if something is

env: Any = gym.make("spatialsim_env:SpatialSim-Discrim-v0", n_objects=3)
env.unwrapped.set_reward(reward)
env.reset(seed=0)
claimed = true = 0
for _ in range(1000):
    *_, truncated, info = env.step(env.action_space.sample())
    claimed += info["is_success_model"]
    true += info["is_success"]
    if truncated:
        env.reset()
print(f"of 1000 random steps, {reward.name} calls {claimed} achieved; {true} are")
