"""Goals and starts of episodes, as a batched function of uniform numbers.

An episode is a reference scene, its image under a similarity (the goal, its objects in another order, exact
features) and a wrong configuration of the same objects in the arena (the start), certified by the truth. A reset
draws one block of numbers; because everything follows from the block, one world and thousands agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements import scene, similarities
from spatialsim_env.arrangements.goals import Criterion, distance
from spatialsim_env.arrangements.negatives import Negative
from spatialsim_env.arrangements.scene import ARENA, POSITION, SceneError
from spatialsim_env.arrangements.similarities import Range
from spatialsim_env.arrangements.tasks import reference_scene, shuffle
from spatialsim_env.arrangements.truth import SceneMoment, SceneTruth
from spatialsim_env.core.judges import Pairs
from spatialsim_env.core.world import NOTHING, Given

TRIES = 8  # episodes that one block of numbers offers; the first that does not begin achieved is taken


@dataclass(frozen=True)
class SceneEpisodes:
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

    def begin(self, blocks: NDArray[np.float32], given: Given = NOTHING) -> SceneMoment:
        """Begin episodes from blocks (B, n_uniform) of uniform numbers.

        Where the goal alone is given, the start is made of its objects; where the start alone is given, the goal is an
        image of its objects in a wrong configuration. Where both are given, nothing else is drawn.

        Args:
            given: scenes (B, n_max, 10).

        Raises:
            SceneError: what is given is no scene of this world, or start and goal are of different objects.
            RuntimeError: every episode that a block offers begins achieved.
        """
        if given is not NOTHING:
            given = Given(*(None if part is None else self._checked(part) for part in (given.achieved, given.desired)))
        tries = np.split(blocks, TRIES, axis=1)
        batch = self._offer(tries[0], given)
        if given is not NOTHING:
            rule = self.criterion  # which refuses a start and a goal of different objects
            distance(batch.achieved, batch.desired, rule.name, tolerances=rule.tolerances, orientation=rule.orientation)
        for numbers in tries[1:]:
            rows = np.flatnonzero(batch.distance <= 1)
            if not len(rows) or not (given.achieved is None or given.desired is None):
                return batch
            parts = (None if part is None else part[rows] for part in (given.achieved, given.desired))
            batch = batch.replaced(rows, self._offer(numbers[rows], Given(*parts)))
        if (batch.distance <= 1).any():
            raise RuntimeError(
                f"each of {TRIES} starts made by {self.start.name!r} is achieved already; "
                f"choose another start, or a criterion narrower than {self.criterion}"
            )
        return batch

    def _offer(self, numbers: NDArray[np.float32], given: Given) -> SceneMoment:
        """Goals and starts, not certified, from uniform numbers (B, n_uniform / TRIES)."""
        *goal, start = np.split(numbers, np.cumsum(self._parts)[:-1], axis=1)
        achieved, desired = given.achieved, given.desired
        if desired is not None:
            reference = desired
        elif self.fixed is not None:
            reference, desired = (np.repeat(x, len(numbers), axis=0) for x in self.fixed)
        else:
            reference = self._references(*goal[:2]) if achieved is None else self._wrong(achieved, start)
            desired = self._images(reference, *goal[2:])
        achieved = self._wrong(reference, start) if achieved is None else achieved
        return SceneTruth(self.criterion).asked(Pairs(achieved, desired))

    def _checked(self, scenes: NDArray[Any]) -> NDArray[np.float32]:
        if scenes.shape[1:] != (self.n_max, scene.N_FEATURES):
            accepted = (self.n_max, scene.N_FEATURES)
            raise SceneError(f"given are scenes of shape {scenes.shape[1:]}; accepted are scenes of shape {accepted}")
        scene.validate(scenes, "given")
        return np.ascontiguousarray(scenes, np.float32)

    def _wrong(self, reference: NDArray[np.float32], numbers: NDArray[np.float32]) -> NDArray[np.float32]:
        """The objects of scenes (B, n_max, 10) in the arena, in a wrong configuration."""
        out = self.start(reference, numbers)
        out[..., POSITION] = np.clip(out[..., POSITION], 0, ARENA)
        return out

    def _references(self, number: NDArray[np.float32], objects: NDArray[np.float32]) -> NDArray[np.float32]:
        """New references (B, n_max, 10)."""
        low, high = self.object_range
        n_objects = low + (number[:, 0] * (high - low + 1)).astype(np.int64)
        return scene.from_uniform(objects.reshape(len(objects), self.n_max, -1), n_objects)

    def _images(
        self, reference: NDArray[np.float32], order: NDArray[np.float32], similarity: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """References (B, n_max, 10) in another order under similarities."""
        change = similarities.from_uniform(similarity, self.goal_scale, self.goal_angle)
        return change.apply(shuffle(reference, order))
