"""``SpatialSim-Relation3D-v0``: bring one object into a relation with another; ``world.py`` documents the options."""

from __future__ import annotations

from typing import Any

from spatialsim_env.core.many import ManyWorlds
from spatialsim_env.core.one import OneWorld
from spatialsim_env.core.world import split
from spatialsim_env.relations.world.truth import RelationMoment
from spatialsim_env.relations.world.world import world


class RelationEnv(OneWorld[RelationMoment]):
    """A room with two objects and an observer, and a relation that is to be brought about."""

    def __init__(self, *args: Any, **options: Any) -> None:
        made, own = split(world, args, options)
        super().__init__(made, **own)

    @property
    def goal(self) -> tuple[str, ...]:
        """Names of the predicates that are required.

        Raises:
            ResetNeeded: before the first reset.
        """
        return self.now.goal_names(0)


class RelationVectorEnv(ManyWorlds[RelationMoment]):
    """Copies of ``RelationEnv``."""

    def __init__(self, *args: Any, **options: Any) -> None:
        made, own = split(world, args, options)
        super().__init__(made, **own)

    @property
    def goals(self) -> tuple[tuple[str, ...], ...]:
        """Names of the predicates that are required of each copy.

        Raises:
            ResetNeeded: before the first reset.
        """
        return tuple(self.now.goal_names(row) for row in range(self.num_envs))
