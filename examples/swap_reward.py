"""One world, one trajectory, four judges: the truth sparse and dense, and a network as either.

The reward is a keyword of the environment. The network is trained first, in some seconds, unless --out holds one.
"""

import argparse
from pathlib import Path

import gymnasium as gym

from reward_models.agents.policies import ExpertPolicy
from reward_models.training.config import TrainingConfig
from reward_models.training.protocol import train

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("runs/swap_reward"), help="folder of a network")
parser.add_argument("--samples", type=int, default=50_000, help="pairs that the network is trained on")
parser.add_argument("--seed", type=int, default=0, help="of the episode")
options = parser.parse_args()

if not (options.out / "model.json").exists():
    config = TrainingConfig.plain("matching", negative="mixture", samples_per_stage=options.samples)
    train(config, options.out)


def episode(reward: str, steps: int = 12) -> tuple[list[float], list[float]]:
    """Return rewards along the scripted expert's way to the goal, and the truth's distances."""
    env = gym.make("spatialsim_env:SpatialSim-Discrim-v0", n_objects=5, reward=reward)
    observation, info = env.reset(seed=options.seed)
    expert = ExpertPolicy(env)
    rewards, distances = [info["reward_model"]], [info["distance"]]
    for _ in range(steps):
        batch = {name: array[None] for name, array in observation.items()}
        observation, value, *_, info = env.step(expert.predict(batch)[0][0])
        rewards.append(value)
        distances.append(info["distance"])
    env.close()
    return rewards, distances


judges = {"sparse": "sparse", "dense": "dense", "network": str(options.out), "probability": f"{options.out}:dense"}
columns = {title: episode(reward)[0] for title, reward in judges.items()}
distances = episode("sparse")[1]

print("step  distance" + "".join(f"{title:>13}" for title in columns))
for step, (distance, *said) in enumerate(zip(distances, *columns.values(), strict=True)):
    print(f"{step:4}  {distance:8.2f}" + "".join(f"{value:13.2f}" for value in said))
print("achieved is a distance of at most 1; sparse rewards are 0 where achieved and -1 elsewhere")
