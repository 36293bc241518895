"""Stable-baselines3 itself on these worlds: SAC with hindsight goals, on any reward, judged by the truth.

``spatialsim agent train`` does this with checkpoints and records; here are the parts it is made of.
"""

import argparse
from typing import Any

import numpy as np
import torch
from stable_baselines3 import SAC

from reward_models.agents.buffer import WorldHerReplayBuffer
from reward_models.agents.extractor import PlacedGoalExtractor
from reward_models.agents.vec_env import SpatialSimVecEnv

HORIZON = 50

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--reward", default="sparse", help="sparse, dense, or the folder of a network")
parser.add_argument("--steps", type=int, default=3_000)
parser.add_argument("--episodes", type=int, default=100, help="of the evaluation")
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()


def worlds(copies: int, seed: int) -> SpatialSimVecEnv:
    """Copies of one world in one process; the agent moves three objects and does not turn them."""
    world = {"n_objects": 3, "max_turn": 0, "max_episode_steps": HORIZON, "reward": options.reward}
    return SpatialSimVecEnv.make("spatialsim_env:SpatialSim-Discrim-v0", copies, seed=seed, **world)


torch.set_num_threads(1)  # fastest for networks this small
model = SAC(
    "MultiInputPolicy",
    worlds(4, options.seed),
    replay_buffer_class=WorldHerReplayBuffer,  # relabelled goals look like the environment's
    policy_kwargs={"features_extractor_class": PlacedGoalExtractor, "net_arch": [64, 64]},
    learning_starts=5 * HORIZON,  # hindsight needs a finished episode of each of the four copies
    gradient_steps=4,  # per step of all four
    gamma=0.95,
    tau=0.02,
    ent_coef=0.02,
    learning_rate=1e-3,
    seed=options.seed,
    device="cpu",
)
model.learn(options.steps)

envs = worlds(options.episodes, 10_000)
observations: Any = envs.reset()
for _step in range(HORIZON):
    observations, _, _, infos = envs.step(model.predict(observations, deterministic=True)[0])
for key, title in (("is_success_model", "its reward says achieved"), ("is_success", "truly achieved")):
    share = np.mean([info[key] for info in infos])
    print(f"{title:26} {share:.2f}, of {options.episodes} episodes")
