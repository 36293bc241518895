"""Run an agent that acts at random, and print the truth's verdict on each episode."""

import argparse

import gymnasium as gym

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--episodes", type=int, default=5)
options = parser.parse_args()

env = gym.make("spatialsim_env:SpatialSim-Discrim-v0", n_objects=(3, 5), reward="dense")
for episode in range(options.episodes):
    observation, info = env.reset(seed=episode)
    env.action_space.seed(episode)
    over = False
    while not over:
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        over = terminated or truncated
    print(f"episode {episode}: distance {info['distance']:.1f}, achieved {info['is_success']}")
env.close()
