"""Goals that are arrangements of objects: a 2D world, relations in 3D, the truth about both, Gymnasium environments.

Importing this package registers the environments, once; its modules are there as attributes:

>>> import gymnasium as gym, spatialsim_env
>>> env = gym.make("SpatialSim-Discrim-v0", n_objects=5)
>>> samples = spatialsim_env.tasks.Discrimination((3, 8)).sample(100, rng)
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

from gymnasium.envs.registration import register, registry

__version__ = version("spatialsim-env")

HORIZON = 50  # steps
ENV_IDS = ("SpatialSim-Discrim-v0", "SpatialSim-Ident-v0")
RELATION_IDS = ("SpatialSim-Relation3D-v0",)
_CLASSES = ("Discrimination", "Identification")

for _id, _class in zip(ENV_IDS, _CLASSES, strict=True):
    if _id not in registry:
        register(
            _id,
            entry_point=f"spatialsim_env.core.env:{_class}Env",
            vector_entry_point=f"spatialsim_env.core.vector_env:{_class}VectorEnv",
            max_episode_steps=HORIZON,
        )
if RELATION_IDS[0] not in registry:
    register(
        RELATION_IDS[0],
        entry_point="spatialsim_env.relations.world.env:RelationEnv",
        vector_entry_point="spatialsim_env.relations.world.env:RelationVectorEnv",
        max_episode_steps=HORIZON,
    )


_MODULES = {
    "core": ("rewards",),
    "arrangements": (
        "dynamics", "expert", "goals", "hard_suite", "negatives", "pictures", "play", "scene", "similarities", "tasks",
    ),
    "arrangements.datasets": ("rollouts", "shards", "text_format"),
}  # fmt: skip
_PUBLIC = {
    "datasets": "arrangements.datasets.named",
    "relations": "relations",
    "testing": "testing",
    **{name: f"{package}.{name}" for package, names in _MODULES.items() for name in names},
}
__all__ = ["ENV_IDS", "HORIZON", "RELATION_IDS", *_PUBLIC]


def __getattr__(name: str) -> Any:
    """Import a public module when it is first asked for."""
    if name in _PUBLIC:
        return import_module(f"{__name__}.{_PUBLIC[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the names for users alone, modules that are not imported yet included."""
    return sorted({"__version__", *__all__})
