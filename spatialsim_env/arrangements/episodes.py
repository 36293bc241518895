"""Goals and starts of episodes, as a batched function of uniform numbers.

An episode is a reference scene, its image under a similarity (the goal, its objects in another order, exact
features) and a wrong configuration of the same objects in the arena (the start), certified by the truth. A reset
draws one block of numbers; because everything follows from the block, one world and thousands agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements import scene, similarities
from spatialsim_env.arrangements.goals import Criterion
from spatialsim_env.arrangements.negatives import Negative
from spatialsim_env.arrangements.scene import ARENA, POSITION
from spatialsim_env.arrangements.similarities import Range
from spatialsim_env.arrangements.tasks import reference_scene, shuffle
from spatialsim_env.core.episodic import Moment

TRIES = 8  # episodes that one block of numbers offers; the first that does not begin achieved is taken


@dataclass(frozen=True)
class Batch(Moment):
    """B episodes at one moment."""

    achieved: NDArray[np.float32]  # (B, n_max, 10) in the arena, present objects first
    desired: NDArray[np.float32]  # (B, n_max, 10) the transformed scene
    matching: NDArray[np.int64]  # (B, n_max) row of desired for each row of achieved
    interchangeable: NDArray[np.bool_]  # (B,) whether appearance leaves more than one matching
    distance: NDArray[np.float64]  # (B,) the truth's distance


@dataclass(frozen=True)
class Episodes:
    """Where episodes come from. Without ``reference_seed`` every episode has a new goal (Discrimination)."""

    object_range: tuple[int, int]  # least and greatest number of objects
    start: Negative
    criterion: Criterion
    reference_seed: int | None = None  # one fixed goal (Identification); the object range is then one number
    goal_scale: Range = similarities.SCALES  # of the similarity between reference and goal, lowest and highest
    goal_angle: Range = similarities.ANGLES  # likewise, radians

    @property
    def n_max(self) -> int:
        """Rows of every scene."""
        return self.object_range[1]

    @cached_property
    def fixed(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """The one reference scene and the one goal, (1, n, 10) each, if there is a ``reference_seed``."""
        if self.reference_seed is None:
            return None
        reference = reference_scene(self.n_max, self.reference_seed)[None]
        rng = np.random.default_rng([self.reference_seed, self.n_max, 1])
        keys = rng.random((1, self.n_max), np.float32)
        similarity = similarities.sample(1, rng, self.goal_scale, self.goal_angle)
        return reference, similarity.apply(shuffle(reference, keys))

    @property
    def _parts(self) -> tuple[int, ...]:
        n = self.n_max
        goal = () if self.reference_seed is not None else (1, n * scene.N_UNIFORM, n, similarities.N_UNIFORM)
        return (*goal, self.start.n_uniform(n))

    @property
    def n_uniform(self) -> int:
        """Uniform numbers in the block of one reset."""
        return TRIES * sum(self._parts)

    def begin(self, blocks: NDArray[np.float32]) -> Batch:
        """Episodes from blocks (B, n_uniform) of uniform numbers.

        Raises:
            RuntimeError: every episode that a block offers begins achieved.
        """
        tries = np.split(blocks, TRIES, axis=1)
        batch = self._offer(tries[0])
        for numbers in tries[1:]:
            rows = np.flatnonzero(batch.distance <= 1)
            if not len(rows):
                return batch
            batch = batch.replaced(rows, self._offer(numbers[rows]))
        if (batch.distance <= 1).any():
            raise RuntimeError(
                f"each of {TRIES} starts made by {self.start.name!r} is achieved already; "
                f"choose another start, or a criterion narrower than {self.criterion}"
            )
        return batch

    def _offer(self, numbers: NDArray[np.float32]) -> Batch:
        """Goals and starts, not certified, from uniform numbers (B, n_uniform / TRIES)."""
        *goal, start = np.split(numbers, np.cumsum(self._parts)[:-1], axis=1)
        if self.fixed is not None:
            reference, desired = (np.repeat(x, len(numbers), axis=0) for x in self.fixed)
        else:
            reference, desired = self._goals(*goal)
        achieved = self.start(reference, start)
        achieved[..., POSITION] = np.clip(achieved[..., POSITION], 0, ARENA)
        truth = self.criterion.align(achieved, desired)
        return Batch(achieved, desired, truth.matching, truth.interchangeable, truth.distance)

    def _goals(
        self,
        number: NDArray[np.float32],
        objects: NDArray[np.float32],
        order: NDArray[np.float32],
        similarity: NDArray[np.float32],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """New references and their images under similarities, (B, n_max, 10) each."""
        low, high = self.object_range
        n_objects = low + (number[:, 0] * (high - low + 1)).astype(np.int64)
        reference = scene.from_uniform(objects.reshape(len(objects), self.n_max, -1), n_objects)
        change = similarities.from_uniform(similarity, self.goal_scale, self.goal_angle)
        return reference, change.apply(shuffle(reference, order))
