"""Where the optimisers begin and what they may change: goals, and scenes in the arena that are truly not achieved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_models.auditing.judge import Judge, Scenes
from reward_models.judges.learned import LearnedModel
from spatialsim_env.arrangements import negatives
from spatialsim_env.arrangements.episodes import Episodes
from spatialsim_env.arrangements.goals import TOLERANCES, Criterion
from spatialsim_env.arrangements.scene import ARENA, ORIENTATION, POSITION
from spatialsim_env.arrangements.tasks import Discrimination, Identification, Task

UNITS_PER_RADIAN = TOLERANCES.position / TOLERANCES.orientation  # a tolerance is as far in every direction


@dataclass(frozen=True)
class Moves:
    """What an optimiser changes, as a vector: all x and y in units, then all angles in units too."""

    name: str
    start: str  # how the arena looks at first, a name from ``negatives``
    turns: bool  # whether orientations are among it

    def vectors(self, scenes: NDArray[Any]) -> NDArray[np.float64]:
        """(..., n, 10) -> (..., d); also of gradients, which come by the vector's units then."""
        parts = [scenes[..., POSITION].reshape(*scenes.shape[:-2], -1)]
        if self.turns:
            parts.append(scenes[..., ORIENTATION] * UNITS_PER_RADIAN)
        return np.concatenate(parts, axis=-1, dtype=np.float64)

    def gradients(self, scenes: NDArray[Any]) -> NDArray[np.float64]:
        """Derivatives by the features (..., n, 10) -> by the vector (..., d)."""
        parts = [scenes[..., POSITION].reshape(*scenes.shape[:-2], -1)]
        if self.turns:
            parts.append(scenes[..., ORIENTATION] / UNITS_PER_RADIAN)
        return np.concatenate(parts, axis=-1, dtype=np.float64)

    def placed(self, scenes: Scenes, vectors: NDArray[np.float64]) -> Scenes:
        """Scenes (..., n, 10) with what vectors (..., d) say, within the arena, as an environment would hold them."""
        n = scenes.shape[-2]
        out = np.array(np.broadcast_to(scenes, (*vectors.shape[:-1], *scenes.shape[-2:])))
        out[..., POSITION] = np.clip(vectors[..., : 2 * n], 0, ARENA).reshape(*vectors.shape[:-1], n, 2)
        if self.turns:
            out[..., ORIENTATION] = vectors[..., 2 * n :] / UNITS_PER_RADIAN
        return out

    def bounds(self, n: int) -> NDArray[np.float64]:
        """Lowest and highest value of each number of a vector, (d, 2)."""
        positions = np.tile([0.0, ARENA], (2 * n, 1))
        angles = np.tile([-np.inf, np.inf], (n * self.turns, 1))
        return np.concatenate([positions, angles])


MOVES = {moves.name: moves for moves in (Moves("positions", "redrawn", False), Moves("poses", "poses", True))}


@dataclass(frozen=True)
class Problems:
    """Goals and starts; S of them."""

    moves: Moves
    achieved: Scenes  # (S, n, 10) in the arena, truly not achieved
    desired: Scenes  # (S, n, 10)

    def __len__(self) -> int:
        return len(self.achieved)

    def again(self, row: int, rng: np.random.Generator) -> Scenes:
        """Another arrangement of the objects of one start, (n, 10)."""
        negative = negatives.by_name(self.moves.start)
        scene = self.achieved[row : row + 1]
        return negative(scene, rng.random((1, negative.n_uniform(scene.shape[1])), np.float32))[0]


def problems(
    judge: Judge, n_objects: int, size: int, rng: np.random.Generator, moves: str, criterion: Criterion
) -> Problems:
    """Starts of the environment's episodes with a number of objects; a model of one input has its own goal.

    Raises:
        ValueError: a number of objects that is not that of the model's one reference scene.
    """
    seed = None if judge.two_inputs else reference_seed(judge, n_objects)
    episodes = Episodes((n_objects, n_objects), negatives.by_name(MOVES[moves].start), criterion, seed)
    begun = episodes.begin(rng.random((size, episodes.n_uniform), np.float32))
    return Problems(MOVES[moves], begun.achieved, begun.desired)


def task(judge: Judge, n_objects: int) -> Task:
    """The benchmark's task with a number of objects, both labels equally often."""
    if judge.two_inputs:
        return Discrimination(n_objects, balanced=True)
    return Identification(n_objects, reference_seed=reference_seed(judge, n_objects), balanced=True)


def known_objects(judge: Judge) -> int | None:
    """How many objects the one reference scene of a model holds; None for a model of two inputs."""
    training = _training(judge)
    return None if judge.two_inputs else training.get("n_objects")


def reference_seed(judge: Judge, n_objects: int) -> int:
    """Of the one reference scene that a model of one input knows.

    Raises:
        ValueError: its file does not say, or the scene holds another number of objects.
    """
    training = _training(judge)
    if "reference_seed" not in training:
        raise ValueError(f"{judge.name} has one input and does not say which reference it knows; it cannot be audited")
    if training["n_objects"] != n_objects:
        raise ValueError(f"n_objects is {n_objects}; {judge.name} knows one scene of {training['n_objects']}")
    return int(training["reference_seed"])


def _training(judge: Judge) -> dict[str, Any]:
    return judge.model.task.get("training", {}) if isinstance(judge.model, LearnedModel) else {}
