"""Goals that are arrangements of objects: a 2D world, the exact truth about it, and Gymnasium environments.

Importing this package registers the environments, once:

>>> import gymnasium as gym, spatialsim_env
>>> env = gym.make("SpatialSim-Discrim-v0", n_objects=5)
"""

from importlib.metadata import version

from gymnasium.envs.registration import register, registry

__version__ = version("spatialsim-env")

HORIZON = 50  # steps
ENV_IDS = ("SpatialSim-Discrim-v0", "SpatialSim-Ident-v0")
_CLASSES = ("DiscriminationEnv", "IdentificationEnv")

for _id, _class in zip(ENV_IDS, _CLASSES, strict=True):
    if _id not in registry:
        register(_id, entry_point=f"spatialsim_env.env:{_class}", max_episode_steps=HORIZON)
