"""Agents that learn from a reward, learned or true: stable-baselines3 with hindsight goals."""
