"""Worlds by the thousand in one process: all arrays are batched, and copy i has the episodes of seed + i.

The policy is random; what comes out is how fast it is and how often chance succeeds.
"""

import argparse
import time

import gymnasium as gym
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--copies", type=int, default=4096)
parser.add_argument("--steps", type=int, default=200)
arguments = parser.parse_args()

envs = gym.make_vec(
    "spatialsim_env:SpatialSim-Discrim-v0", num_envs=arguments.copies, n_objects=3, autoreset_mode="SameStep"
)
envs.action_space.seed(0)
observations, infos = envs.reset(seed=0)
actions = [envs.action_space.sample() for _ in range(8)]
envs.step(actions[0])  # the first step compiles

episodes = successes = 0
start = time.perf_counter()
for step in range(arguments.steps):
    observations, rewards, terminated, truncated, infos = envs.step(actions[step % len(actions)])
    if "final_info" in infos:  # of the copies that ended; their observations are already of the next episode
        ended = infos["_final_info"]
        episodes += int(ended.sum())
        successes += int(infos["final_info"]["ever_success"][ended].sum())
seconds = time.perf_counter() - start
envs.close()

print(f"{arguments.copies} copies, {arguments.copies * arguments.steps / seconds:,.0f} steps per second")
print(f"{episodes} episodes, achieved by chance at some step: {successes}")
print(f"mean distance now: {np.mean(infos['distance']):.1f}")
