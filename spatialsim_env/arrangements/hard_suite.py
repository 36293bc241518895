"""The hard suite: named tasks whose negatives differ from positives in the least that makes them wrong.

Section 3 of the goal-achievement specification. Everything but the negative is the benchmark's: perturbation, shuffle
and similarity; both labels are equally frequent. A negative is *certified* where the truth has found it not achieved.
It is one *by construction* only where a displacement is within the tolerance, and where the truth would be too long a
search: abstract scenes of more than twenty objects, and abstract ones with distractors.

``redrawn`` is the benchmark itself, here for up to 100 objects. The detection curve is that of the ``displaced`` tasks
drawn without certificates, which would pick the plain cases at every point beyond the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.alignment import assign
from spatialsim_env.arrangements.negatives import (
    Displaced,
    Mirrored,
    MisScaled,
    Negative,
    RadiusMatched,
    Redrawn,
    SpreadMatched,
    Swapped,
    Twisted,
)
from spatialsim_env.arrangements.scene import (
    COLOR,
    NOISE,
    ORIENTATION,
    POSITION,
    SHAPE,
    SHAPES,
    SIZE,
    barycenter,
    count,
    present,
)
from spatialsim_env.arrangements.tasks import MAX_TRIES, Discrimination, Samples, object_range
from spatialsim_env.arrangements.tasks import RANGES as BENCHMARK_RANGES
from spatialsim_env.streams import stream

DISPLACEMENTS = (2, 3, 4, 6, 8, 12, 24, 48)  # deviations of the position noise
MOST_OBJECTS = 100
MOST_SEARCHED = 20  # objects without appearance of which the truth is searched
RANGES = (*BENCHMARK_RANGES, (MOST_OBJECTS, MOST_OBJECTS))  # objects per scene


@dataclass(frozen=True)
class HardTask:
    """One way to make the benchmark hard, for any number of objects in its range."""

    name: str
    negative: Negative = field(default_factory=Redrawn)
    least: int = 3  # objects
    most: int = MOST_OBJECTS  # objects
    abstract: bool = False  # see tasks.Task, likewise the next two
    distractors: int = 0
    lookalikes: int = 0

    @property
    def displacement(self) -> float | None:
        """Of the ``displaced`` tasks: by how many deviations of the noise one object is moved."""
        moves = isinstance(self.negative, Displaced)
        return round(self.negative.low / NOISE.position, 6) if moves else None  # type: ignore[attr-defined]

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The ranges of the suite, as far as they are this task's."""
        return tuple(part for part in map(self.within, RANGES) if part is not None)

    def within(self, n_objects: int | tuple[int, int]) -> tuple[int, int] | None:
        """The part of a range of objects that is this task's, if there is one."""
        low, high = object_range(n_objects)
        low, high = max(low, self.least), min(high, self.most)
        return (low, high) if low <= high else None

    def certifies(self, n_objects: int | tuple[int, int]) -> bool:
        """Check that the truth certifies the negatives of scenes of so many objects."""
        return not self.within_tolerance(n_objects) and has_truth(self.task(n_objects, certify=False))

    def within_tolerance(self, n_objects: int | tuple[int, int]) -> bool:
        """Check that the displacement of one object stays within the tolerance in the smallest of the scenes.

        Of a displacement d of one among n objects the fit's translation takes d / n, which leaves d (1 - 1 / n).
        """
        if self.displacement is None:
            return False
        left = 1 - 1 / object_range(n_objects)[0]
        return self.displacement * NOISE.position * left <= goals.TOLERANCES.position

    def task(self, n_objects: int | tuple[int, int], certify: bool = True) -> Discrimination:
        """The benchmark's task with this one's options, and with certificates where the task itself can give them.

        Raises:
            ValueError: numbers of objects that are not this task's.
        """
        if self.within(n_objects) != object_range(n_objects):
            raise ValueError(
                f"n_objects is {n_objects!r}; accepted for {self.name} are numbers from {self.least} to {self.most}"
            )
        return Discrimination(
            n_objects,
            negative=self.negative,
            certified=certify and not (self.within_tolerance(n_objects) or self.abstract or self.distractors),
            balanced=True,
            abstract=self.abstract,
            distractors=self.distractors,
            lookalikes=self.lookalikes,
        )

    def sample(
        self, n_objects: int | tuple[int, int], size: int, rng: np.random.Generator, certify: bool = True
    ) -> Samples:
        """Draw ``size`` labelled pairs, certified where ``certifies`` says so, unless ``certify`` is False.

        Raises:
            ValueError: numbers of objects that are not this task's, or a negative ``size``.
            RuntimeError: a negative stays achieved in every try.
        """
        task = self.task(n_objects, certify)
        samples = task.sample(size, rng)
        if certify and not task.certified and self.certifies(n_objects):
            _certify(self.name, task, samples, rng)
        return samples


REGISTRY: dict[str, HardTask] = {
    task.name: task
    for task in (
        HardTask("redrawn"),
        *(HardTask(f"displaced/{d}sigma", Displaced(d * NOISE.position, d * NOISE.position)) for d in DISPLACEMENTS),
        HardTask("mirrored/turned", Mirrored()),
        HardTask("mirrored/kept", Mirrored(reflect_orientation=False)),
        HardTask("swapped", Swapped()),
        HardTask("spread_matched", SpreadMatched()),
        HardTask("radius_matched", RadiusMatched(), least=4),
        HardTask("twisted", Twisted()),
        HardTask("mis_scaled", MisScaled()),
        HardTask("lookalikes/five", lookalikes=5),
        HardTask("lookalikes/all", lookalikes=7, most=7),
        HardTask("abstract", abstract=True),
        HardTask("distractors", distractors=3),
        HardTask("abstract_distractors", abstract=True, distractors=3),
    )
}
NAMES = tuple(REGISTRY)


def find(name: str) -> HardTask:
    """The task of a name.

    Raises:
        ValueError: an unknown name.
    """
    if name not in REGISTRY:
        raise ValueError(f"hard task {name!r} is unknown; accepted are {', '.join(NAMES)}")
    return REGISTRY[name]


def sample(name: str, n_objects: int | tuple[int, int], size: int, rng: np.random.Generator) -> Samples:
    """Samples of a named task; see ``HardTask.sample``."""
    return find(name).sample(n_objects, size, rng)


def label_of(n_objects: int | tuple[int, int]) -> str:
    """Numbers of objects in words: "3-8", "n100"."""
    low, high = object_range(n_objects)
    return f"n{low}" if low == high else f"{low}-{high}"


def rng_of(name: str, n_objects: int | tuple[int, int], seed: int) -> np.random.Generator:
    """The stream of random numbers of a task and a range under a seed."""
    return stream(seed, f"hard/{name}/{label_of(n_objects)}")


def has_truth(task: Discrimination) -> bool:
    """Check that ``distance`` is defined for the pairs of a task."""
    return not task.abstract or (task.distractors == 0 and task.n_max <= MOST_SEARCHED)


def distance(task: Discrimination, target: NDArray[Any], reference: NDArray[Any]) -> NDArray[np.float64]:
    """The truth's distance of pairs of a task, (B,); at most 1 means the same configuration.

    Distractors: of the objects of the target that look most like the reference's. Abstract: criterion ``positions``
    over all matchings (``alignment.align``: exact up to seven objects, an upper bound beyond), with the spread of a
    scene in the place of the size of its objects.

    Raises:
        ValueError: abstract scenes of more than twenty objects, or with distractors.
    """
    if not has_truth(task):
        raise ValueError(
            f"there is no truth for abstract scenes with distractors, or of more than {MOST_SEARCHED} objects: "
            "the search over all matchings would take too long"
        )
    if task.abstract:
        return goals.distance(_without_appearance(reference), _without_appearance(target), "positions")
    if task.distractors:
        target = np.stack([_counterparts(a, g) for a, g in zip(reference, target, strict=True)])
    return goals.distance(reference, target)


def _without_appearance(scenes: NDArray[Any]) -> NDArray[Any]:
    """Scenes of squares of one colour and orientation, their size the RMS spread of the positions."""
    mask, out = present(scenes), scenes.copy()
    out[..., SHAPE] = np.eye(len(SHAPES))[0]
    out[..., COLOR] = out[..., ORIENTATION] = 0
    squares = ((scenes[..., POSITION] - barycenter(scenes)) ** 2).sum(axis=-1)
    out[..., SIZE] = np.sqrt((squares * mask).sum(axis=1) / count(scenes))[:, None]
    return out * mask[..., None]


def _counterparts(a: NDArray[Any], g: NDArray[Any]) -> NDArray[Any]:
    """The objects of ``g`` that look most like those of ``a``, in their order, (n, 10)."""
    matching, _ = assign(a, g)
    return np.where(matching[:, None] >= 0, g[matching], 0)


def _certify(name: str, task: Discrimination, samples: Samples, rng: np.random.Generator) -> None:
    """Draw negatives that the truth calls achieved again, references included, in place."""
    doubtful = np.flatnonzero(samples.label == 0)
    for _ in range(MAX_TRIES):
        if len(doubtful):
            doubtful = doubtful[distance(task, samples.target[doubtful], samples.reference[doubtful]) <= 1]
        if not len(doubtful):
            return
        again = task.sample(2 * len(doubtful), rng)
        again = again[again.label == 0]
        samples.target[doubtful], samples.reference[doubtful] = again.target, again.reference
    raise RuntimeError(f"{name}: {len(doubtful)} negatives are achieved in each of {MAX_TRIES} tries")
