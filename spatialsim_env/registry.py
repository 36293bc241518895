"""What there is, by name, as strings: worlds and the factories that make them, environments and their entry points."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from gymnasium.envs.registration import register, registry

HORIZON = 50  # steps
SCENES, RELATIONS = "2D scenes", "relations in 3D"  # names of worlds: what rewards say that they judge
WORLDS = {
    SCENES: "spatialsim_env.arrangements.world:world",
    RELATIONS: "spatialsim_env.relations.world.world:world",
}  # name -> factory: keywords of gym.make -> core.world.World


class Environment(NamedTuple):
    """A registered environment."""

    world: str  # one of WORLDS
    single: str  # entry point
    vector: str  # entry point


ENVIRONMENTS = {
    f"SpatialSim-{name}-v0": Environment(world, f"{module}:{kind}Env", f"{module}:{kind}VectorEnv")
    for name, world, module, kind in (
        ("Discrim", SCENES, "spatialsim_env.arrangements.env", "Discrimination"),
        ("Ident", SCENES, "spatialsim_env.arrangements.env", "Identification"),
        ("Relation3D", RELATIONS, "spatialsim_env.relations.world.env", "Relation"),
    )
}
ENV_IDS, RELATION_IDS = (
    tuple(env_id for env_id, environment in ENVIRONMENTS.items() if environment.world == world)
    for world in (SCENES, RELATIONS)
)


def factory(world: str) -> Callable[..., Any]:
    """Import the factory of a world.

    Raises:
        KeyError: an unknown name.
    """
    module, name = WORLDS[world].split(":")
    made: Callable[..., Any] = getattr(import_module(module), name)
    return made


def register_all() -> None:
    """Register the environments with gymnasium, once."""
    for env_id, environment in ENVIRONMENTS.items():
        if env_id not in registry:
            register(
                env_id,
                entry_point=environment.single,
                vector_entry_point=environment.vector,
                max_episode_steps=HORIZON,
            )
