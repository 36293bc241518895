"""Goals that are arrangements of objects: a 2D world, relations in 3D, the truth about both, Gymnasium environments.

Importing this package registers the environments, once; its modules are there as attributes:

>>> import gymnasium as gym, spatialsim_env
>>> env = gym.make("SpatialSim-Discrim-v0", n_objects=5)
>>> samples = spatialsim_env.tasks.Discrimination((3, 8)).sample(100, rng)
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

from spatialsim_env.registry import ENV_IDS, HORIZON, RELATION_IDS, register_all

__version__ = version("spatialsim-env")
register_all()

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
