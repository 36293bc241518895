"""``SpatialSim-Relation3D-v0``: bring one object into a relation with another, and the same by the thousand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.core.env import OneWorld
from spatialsim_env.core.vector_env import ManyWorlds
from spatialsim_env.relations.world.episodes import Batch
from spatialsim_env.relations.world.worlds import RelationWorlds


class RelationEnv(RelationWorlds, OneWorld):
    """A room with two objects and an observer; a goal is a predicate, and the subject is moved until it holds.

    Observation: ``Dict(observation, achieved_goal, desired_goal)``, flat float32 vectors. ``observation`` (47,) holds
    the subject, the object and the observer as ``scene`` has them; ``achieved_goal`` (77,) 30 flags, the predicates
    that hold, and then the same; ``desired_goal`` (77,) the flags that are required, the rest zeros (``goals``). The
    frame of reference of a goal is in its name: "(wrt you)" is the observer's. Actions: ``dynamics``. What holds is a
    rule's verdict (``predicates``), not a human judgement.

    ``info`` carries, at every reset and step: ``is_success`` (the truth, now), ``ever_success`` (the truth, at any
    step so far), ``distance`` (minus the least margin of what is required; below 0 it holds), ``reward_true`` (the
    truth's sparse reward), ``reward_model`` (the reward that is plugged in, as returned) and ``is_success_model``
    (whether that reward says achieved). The horizon truncates through ``max_episode_steps`` of ``gym.make``.

    Args:
        predicates: a name of ``vocabulary.PREDICATES``, or several, of which each episode draws one.
        reward: "sparse", "dense", "hub:NAME" or a path of a model of relations; a live object goes in through
            ``set_reward``.
        terminate_on_success: end the episode when the truth says achieved.
        render_mode: None, "rgb_array" or "human".

    Raises:
        ValueError: unknown names.
    """

    @property
    def scenes(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Copies of the scene (2, 19) and of its observer (9,).

        Raises:
            ResetNeeded: before the first reset.
        """
        now: Batch = self._under_way()
        return now.scenes[0].copy(), now.observers[0].copy()

    @property
    def goal(self) -> tuple[str, ...]:
        """Names of the predicates that are required.

        Raises:
            ResetNeeded: before the first reset.
        """
        now: Batch = self._under_way()
        return now.goal_names(0)


class RelationVectorEnv(ManyWorlds, RelationWorlds):
    """Copies of ``RelationEnv``, which documents the options; those of ``ManyWorlds`` come with them."""

    @property
    def scenes(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Copies of the scenes (B, 2, 19) and of their observers (B, 9).

        Raises:
            ResetNeeded: before the first reset.
        """
        now: Batch = self._under_way()
        return now.scenes.copy(), now.observers.copy()

    @property
    def goals(self) -> tuple[tuple[str, ...], ...]:
        """Names of the predicates that are required of each copy.

        Raises:
            ResetNeeded: before the first reset.
        """
        now: Batch = self._under_way()
        return tuple(now.goal_names(row) for row in range(self.num_envs))
