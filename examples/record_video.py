"""Evaluate a policy and record every episode as a video: gymnasium's RecordVideo, one .mp4 an episode.

Without an agent the scripted expert acts. Needs: pip install "spatialsim-env[agents,video]"
"""

import argparse

import gymnasium as gym

from reward_models.agents.configs import AgentConfig
from reward_models.agents.policies import ExpertPolicy
from reward_models.agents.training import load_agent

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--agent", help="folder that spatialsim agent train wrote")
parser.add_argument("--episodes", type=int, default=3)
parser.add_argument("--steps", type=int, default=30, help="per episode; an agent has its own number")
parser.add_argument("--out", default="runs/videos", help="folder")
options = parser.parse_args()

agent = load_agent(options.agent) if options.agent else None
config = agent.config if agent else AgentConfig("expert", env_kwargs={"n_objects": 5}, horizon=options.steps)
env = config.make_env(render_mode="rgb_array")
policy = agent or ExpertPolicy(env)
env = gym.wrappers.RecordVideo(env, options.out, episode_trigger=lambda _: True, disable_logger=True)

achieved = 0
for episode in range(options.episodes):
    observation, info = env.reset(seed=10_000 + episode)
    over = False
    while not over:
        batch = {name: array[None] for name, array in observation.items()}
        observation, _, terminated, truncated, info = env.step(policy.predict(batch)[0][0])
        over = terminated or truncated
    achieved += info["is_success"]
    print(f"episode {episode}: distance {info['distance']:.2f}, achieved {info['is_success']}")
env.close()
print(f"{achieved} of {options.episodes} truly achieved; videos in {options.out}")
