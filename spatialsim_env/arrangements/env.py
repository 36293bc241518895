"""The environments of arrangements, single and by the thousand; ``world.py`` documents their options."""

from __future__ import annotations

from typing import Any

from spatialsim_env.arrangements.truth import SceneMoment
from spatialsim_env.arrangements.world import discrimination, identification
from spatialsim_env.core.many import ManyWorlds
from spatialsim_env.core.one import OneWorld
from spatialsim_env.core.world import split


class DiscriminationEnv(OneWorld[SceneMoment]):
    """``SpatialSim-Discrim-v0``: a new goal every episode, the number of objects drawn from a range."""

    def __init__(self, *args: Any, **options: Any) -> None:
        world, own = split(discrimination, args, options)
        super().__init__(world, **own)


class IdentificationEnv(OneWorld[SceneMoment]):
    """``SpatialSim-Ident-v0``: one goal, a function of ``reference_seed`` and ``n_objects``."""

    def __init__(self, *args: Any, **options: Any) -> None:
        world, own = split(identification, args, options)
        super().__init__(world, **own)


class DiscriminationVectorEnv(ManyWorlds[SceneMoment]):
    """Copies of ``SpatialSim-Discrim-v0``: new goals every episode, the number of objects drawn from a range."""

    def __init__(self, *args: Any, **options: Any) -> None:
        world, own = split(discrimination, args, options)
        super().__init__(world, **own)


class IdentificationVectorEnv(ManyWorlds[SceneMoment]):
    """Copies of ``SpatialSim-Ident-v0``: one goal, a function of ``reference_seed`` and ``n_objects``."""

    def __init__(self, *args: Any, **options: Any) -> None:
        world, own = split(identification, args, options)
        super().__init__(world, **own)
