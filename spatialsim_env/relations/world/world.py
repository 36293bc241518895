"""Relations in 3D as a world: its options, its goals as arrays, and the factory that makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.checks import check_choice
from spatialsim_env.core.judges import Array, Pairs
from spatialsim_env.core.world import Observation, World
from spatialsim_env.registry import RELATIONS
from spatialsim_env.relations import scene
from spatialsim_env.relations.scene import RoomError
from spatialsim_env.relations.vocabulary import PREDICATES
from spatialsim_env.relations.world import goals
from spatialsim_env.relations.world.dynamics import RelationDynamics
from spatialsim_env.relations.world.episodes import RelationEpisodes
from spatialsim_env.relations.world.truth import RelationMoment, RelationTruth
from spatialsim_env.relations.world.viewer import RelationViewer

LATER = 0.5  # share of the relabelled goals that held later, where one of the world's did


@dataclass(frozen=True)
class RelationGoals:
    """Goals as ``goals`` packs them, (77,)."""

    episodes: RelationEpisodes  # whose predicates hindsight requires

    @property
    def space(self) -> spaces.Dict:
        """The observation space of one environment."""
        low, high = goals.bounds()
        goal = spaces.Box(low, high, dtype=np.float32)
        seen = spaces.Box(low[goals.STATE], high[goals.STATE], dtype=np.float32)
        return spaces.Dict({"observation": seen, "achieved_goal": goal, "desired_goal": goal})

    def observe(self, now: RelationMoment) -> Observation:
        """Observe episodes, (B, ...), as arrays of their own."""
        achieved = now.achieved
        return {"observation": achieved[:, goals.STATE].copy(), "achieved_goal": achieved, "desired_goal": now.desired}

    def batch(self, goals_: ArrayLike, name: str = "goals") -> tuple[Array, bool]:
        """Goals (B, 77) of one goal (77,) or a batch of them, and whether they were a batch.

        Raises:
            RoomError: another shape.
        """
        return goals.as_batch(goals_, name)

    def check(self, achieved: Array, desired: Array) -> None:
        """Refuse unequal numbers of goals, numbers that are not finite, and what is achieved by no scene.

        Raises:
            RoomError: they are.
        """
        if achieved.shape != desired.shape:
            raise RoomError(f"achieved_goal holds {len(achieved)} goals and desired_goal {len(desired)}")
        if not (np.isfinite(achieved).all() and np.isfinite(desired).all()):
            raise RoomError("achieved_goal or desired_goal holds numbers that are not finite")
        scene.validate(*goals.state(achieved))

    def question(self, achieved: Array, desired: Array) -> Pairs:
        """Ask whether goals (B, 77) are reached."""
        return Pairs(achieved, desired)

    def relabel(self, later: Array, rng: np.random.Generator) -> NDArray[np.float32]:
        """Make goals of goals (B, 77) that were achieved later: each requires one predicate of the world's.

        All that held later is about ten predicates at once, which no episode requires. Half of the goals require one
        of the world's predicates that held later, where one did; the others any: these show what each predicate makes
        of a motion that was made for another.
        """
        indices = self.episodes.indices
        held = goals.required(later)[:, indices]
        chosen = rng.random(held.shape)
        shows = (rng.random(len(held)) < LATER) & held.any(axis=1)
        chosen[shows[:, None] & ~held] = -1
        flags = np.zeros((len(held), goals.N_FLAGS), np.bool_)
        flags[np.arange(len(held)), indices[chosen.argmax(axis=1)]] = True
        return goals.desired(flags)


def world(predicates: str | Sequence[str] = PREDICATES) -> World[RelationMoment]:
    """A room with two objects and an observer; a goal is a predicate, and the subject is moved until it holds.

    Observation: ``Dict(observation, achieved_goal, desired_goal)``, flat float32 vectors. ``observation`` (47,) holds
    the subject, the object and the observer as ``scene`` has them; ``achieved_goal`` (77,) 30 flags, the predicates
    that hold, and then the same; ``desired_goal`` (77,) the flags that are required, the rest zeros (``goals``). The
    frame of reference of a goal is in its name: "(wrt you)" is the observer's. Actions: ``dynamics``. What holds is a
    rule's verdict (``predicates``), not a human judgement; the truth's distance is minus the least margin of what is
    required, below 0 it holds.

    Args:
        predicates: a name of ``vocabulary.PREDICATES``, or several, of which each episode draws one.

    Raises:
        ValueError: unknown names.
    """
    episodes = RelationEpisodes(_checked_predicates(predicates))
    return World(RELATIONS, episodes, RelationDynamics(), RelationTruth(), RelationGoals(episodes), RelationViewer)


def _checked_predicates(predicates: Any) -> tuple[str, ...]:
    names = (predicates,) if isinstance(predicates, str) else tuple(predicates)
    if not names:
        raise ValueError(f"predicates is {predicates!r}; accepted are one name or several of {', '.join(PREDICATES)}")
    for name in names:
        check_choice("predicates", name, PREDICATES)
    return names
