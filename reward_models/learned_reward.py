"""The entry point of learned rewards, ``reward_models.learned_reward:resolve``."""

from reward_models.judges.learned import resolve

__all__ = ["resolve"]
