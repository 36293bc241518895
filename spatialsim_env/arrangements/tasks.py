"""The benchmark's two tasks as generators of labelled pairs of scenes (paper, sections 2.2 and 2.3).

One sample: a fair coin decides the label; every object of a copy of the reference scene is perturbed; in a negative
the positions are then made wrong; the objects are shuffled; a random similarity is applied. ``Draws`` holds the
random numbers of a block of samples and ``compose`` turns them into scenes, so that the generator is a pure batched
function of its numbers. The same generator state gives the same bits.

The variants of the authors' generator are fields of a task: its ``negative``, and ``abstract``, ``distractors`` and
``fixed``, which change the targets of both labels alike. ``lookalikes`` of Discrimination changes the references.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.arrangements import scene, similarities, variants
from spatialsim_env.arrangements.goals import Criterion
from spatialsim_env.arrangements.negatives import Negative, Redrawn, by_name
from spatialsim_env.arrangements.scene import COLOR, NOISE, ORIENTATION, POSITION, SIZE, TURN
from spatialsim_env.arrangements.variants import Fixed
from spatialsim_env.checks import check_seed

STAGES = tuple(part * np.pi for part in (0.1, 0.6, 1.1, 1.6, 2.0))  # rotation limits of the curriculum, radians
RANGES = ((3, 8), (9, 20), (21, 30))  # objects per scene in the three Discrimination sets
BLOCK = 1024  # samples drawn at a time; part of the definition of what a seed gives
MAX_TRIES = 50  # redraws of a negative that the truth takes for a positive

_N_NOISE = 7  # per object: size, three colours, x, y, orientation


@dataclass(frozen=True)
class Samples:
    """Labelled pairs; ``label`` is 1 where target and reference show the same configuration, else 0."""

    target: NDArray[np.float32]  # (B, n_max, 10) the transformed scenes; with distractors (B, n_max + distractors, 10)
    reference: NDArray[np.float32]  # (B, n_max, 10) untransformed; one scene repeated (read-only) in Identification
    label: NDArray[np.float32]  # (B,) 0 or 1

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, rows: Any) -> Samples:
        return Samples(self.target[rows], self.reference[rows], self.label[rows])


@dataclass(frozen=True)
class Draws:
    """The random numbers of a block of samples; uniform in [0, 1) unless said otherwise."""

    label: NDArray[np.float32]  # (B,) 0 or 1
    noise: NDArray[np.float32]  # (B, n_max, 7) standard normal: size, three colours, x, y, orientation
    negative: NDArray[np.float32]  # (B, negative.n_uniform(n_max))
    order: NDArray[np.float32]  # (B, n_max + distractors) the target lists its objects by increasing key
    similarity: NDArray[np.float32]  # (B, 4)
    features: NDArray[np.float32]  # (B, n_max, 6) if abstract, else (B, 0, 6)
    extra: NDArray[np.float32]  # (B, variants.n_distractor_uniform(distractors))


@dataclass(frozen=True)
class Task:
    """Base class of the two tasks. ``sample`` is the public call."""

    n_objects: int | tuple[int, int]
    max_rotation: float = TURN  # radians, rotation U[0, max_rotation)
    negative: str | Negative = field(default_factory=Redrawn)
    certified: bool = False  # draw negatives again that the truth (criterion similarity) calls achieved
    balanced: bool = False  # equal numbers of both labels in every block instead of a fair coin
    abstract: bool = False  # only positions matter: every other feature of the target is drawn anew
    distractors: int = 0  # up to so many extra objects in the target, 0 included
    fixed: Fixed = field(default_factory=Fixed)  # parts of the similarity that are not drawn

    def __post_init__(self) -> None:
        low, high = self.object_range
        if not 1 <= low <= high:
            raise ValueError(f"n_objects is {self.n_objects!r}; accepted are an int from 1, or (low, high)")
        if not 0 <= self.max_rotation <= TURN:
            raise ValueError(f"max_rotation is {self.max_rotation}; accepted are radians in [0, 2 pi]")
        object.__setattr__(self, "negative", by_name(self.negative))
        self._check_variants()

    def _check_variants(self) -> None:
        check_seed("distractors", self.distractors)
        if not isinstance(self.fixed, Fixed):
            raise TypeError(f"fixed is {self.fixed!r}; accepted is Fixed(scale, rotation, translation)")
        negative = by_name(self.negative)
        if self.abstract and "positions" not in negative.criteria:
            raise ValueError(
                f"negative is {negative.name!r} and the task abstract, where only positions matter and it leaves them "
                "right; accepted are negatives that are wrong under the criterion positions"
            )
        if self.certified and getattr(negative, "by_construction", False):
            raise ValueError(
                f"certified, and {negative.name!r} that is a negative by construction only, contradict each other: "
                "the truth calls what it makes achieved; accepted is certified=False"
            )
        if self.certified and (self.abstract or self.distractors):
            raise ValueError(
                "certified, and abstract or with distractors, contradict each other: the truth takes the objects of "
                "both scenes one to one, by shape and colour; accepted is certified=False"
            )

    @property
    def object_range(self) -> tuple[int, int]:
        """Least and greatest number of objects."""
        return object_range(self.n_objects)

    @property
    def n_max(self) -> int:
        """Rows of every reference scene of this task; targets have ``distractors`` more."""
        return self.object_range[1]

    def references(self, size: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """Reference scenes of ``size`` samples, (size, n_max, 10)."""
        raise NotImplementedError

    def sample(self, size: int, rng: np.random.Generator) -> Samples:
        """Draw ``size`` labelled pairs.

        Raises:
            ValueError: ``size`` is negative.
            RuntimeError: ``certified`` and a negative stays achieved in every try.
        """
        if size < 0:
            raise ValueError(f"size is {size}; accepted are 0 and more")
        target = np.empty((size, self.n_max + self.distractors, scene.N_FEATURES), np.float32)
        label = np.empty(size, np.float32)
        reference = self._output(size)
        for rows in _blocks(size):
            block = self._block(rows.stop - rows.start, rng)
            target[rows], label[rows] = block.target, block.label
            if reference.flags.writeable:
                reference[rows] = block.reference
        return Samples(target, reference, label)

    def _block(self, size: int, rng: np.random.Generator, label: float | None = None) -> Samples:
        """Samples of one block, all of one label if it is given."""
        references, draws = self.references(size, rng), self.draw(size, rng)
        if label is not None:
            draws = replace(draws, label=np.full(size, label, np.float32))
        block = Samples(self.compose(references, draws), references, draws.label)
        if self.certified and label is None:
            self._certify(block, rng)
        return block

    def _certify(self, block: Samples, rng: np.random.Generator) -> None:
        """Draw negatives that the truth calls achieved again, references included, in place."""
        doubtful = np.flatnonzero(block.label == 0)
        for _ in range(MAX_TRIES):
            achieved = Criterion().align(block.reference[doubtful], block.target[doubtful]).distance <= 1
            doubtful = doubtful[achieved]
            if not len(doubtful):
                return
            again = self._block(len(doubtful), rng, label=0)
            block.target[doubtful] = again.target
            if block.reference.flags.writeable:
                block.reference[doubtful] = again.reference
        name = by_name(self.negative).name
        raise RuntimeError(f"{name}: {len(doubtful)} negatives are achieved in each of {MAX_TRIES} tries")

    def _output(self, size: int) -> NDArray[np.float32]:
        return np.empty((size, self.n_max, scene.N_FEATURES), np.float32)

    def draw(self, size: int, rng: np.random.Generator) -> Draws:
        """The random numbers of a block of samples, apart from their references."""
        if self.balanced:
            label = rng.permutation(np.arange(size) % 2).astype(np.float32)
        else:
            label = rng.integers(0, 2, size).astype(np.float32)
        return Draws(
            label=label,
            noise=rng.standard_normal((size, self.n_max, _N_NOISE), np.float32),
            negative=rng.random((size, by_name(self.negative).n_uniform(self.n_max)), np.float32),
            order=rng.random((size, self.n_max + self.distractors), np.float32),
            similarity=rng.random((size, similarities.N_UNIFORM), np.float32),
            features=rng.random((size, self.n_max if self.abstract else 0, variants.N_RECAST), np.float32),
            extra=rng.random((size, variants.n_distractor_uniform(self.distractors)), np.float32),
        )

    def compose(self, references: NDArray[np.float32], draws: Draws) -> NDArray[np.float32]:
        """Target scenes from references and draws, (B, n_max + distractors, 10)."""
        out = _perturb(references, draws.noise)
        wrong = np.flatnonzero(draws.label == 0)
        out[wrong] = by_name(self.negative)(out[wrong], draws.negative[wrong])
        if self.abstract:
            out = variants.recast(out, draws.features)
        if self.distractors:
            out = np.concatenate([out, variants.make_distractors(draws.extra, self.distractors)], axis=1)
        similarity = self.fixed(similarities.from_uniform(draws.similarity, angles=(0.0, self.max_rotation)))
        return similarity.apply(shuffle(out, draws.order))


@dataclass(frozen=True)
class Discrimination(Task):
    """Are two scenes the same configuration? Every sample has a new reference scene (section 2.3).

    The curriculum trains on ``max_rotation`` = each of ``STAGES`` in turn; validation and test use 2 pi.
    """

    n_objects: int | tuple[int, int] = (3, 8)
    lookalikes: int = 0  # up to so many objects of a scene share shape, size and colour; 0: none does on purpose

    def _check_variants(self) -> None:
        check_seed("lookalikes", self.lookalikes)
        super()._check_variants()

    def references(self, size: int, rng: np.random.Generator) -> NDArray[np.float32]:
        low, high = self.object_range
        drawn = scene.sample(rng.integers(low, high + 1, size), self.n_max, rng)
        return variants.make_lookalikes(drawn, self.lookalikes) if self.lookalikes else drawn


@dataclass(frozen=True)
class Identification(Task):
    """Is a scene the configuration of the one reference scene of this task? (section 2.2)"""

    n_objects: int = 5
    reference_seed: int = 0  # the reference scene is a function of this and n_objects

    def __post_init__(self) -> None:
        check_seed("reference_seed", self.reference_seed)
        if isinstance(self.n_objects, bool) or not isinstance(self.n_objects, (int, np.integer)):
            raise ValueError(f"n_objects is {self.n_objects!r}; Identification has one reference scene: give an int")
        super().__post_init__()

    @cached_property
    def reference(self) -> NDArray[np.float32]:
        """The reference scene, (n, 10), read-only."""
        return reference_scene(self.n_objects, self.reference_seed)

    def references(self, size: int, rng: np.random.Generator) -> NDArray[np.float32]:
        return self._output(size)

    def _output(self, size: int) -> NDArray[np.float32]:
        return np.broadcast_to(self.reference, (size, *self.reference.shape))


def reference_scene(n_objects: int, reference_seed: int) -> NDArray[np.float32]:
    """The reference scene of an Identification task, (n, 10), read-only."""
    rng = np.random.default_rng([reference_seed, n_objects])
    reference = scene.sample([n_objects], n_objects, rng)[0]
    reference.flags.writeable = False
    return reference


def object_range(n_objects: int | tuple[int, int]) -> tuple[int, int]:
    """(least, greatest) number of objects from an int or a pair.

    Raises:
        ValueError: something else.
    """
    pair = (n_objects, n_objects) if not isinstance(n_objects, (tuple, list)) else tuple(n_objects)
    if len(pair) != 2 or not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in pair):
        raise ValueError(f"n_objects is {n_objects!r}; accepted are an int or a pair of ints (low, high)")
    return int(pair[0]), int(pair[1])


def _blocks(size: int) -> Iterator[slice]:
    for start in range(0, size, BLOCK):
        yield slice(start, min(start + BLOCK, size))


def _perturb(references: NDArray[np.float32], noise: NDArray[np.float32]) -> NDArray[np.float32]:
    """Gaussian noise on every feature of every object except its shape (eps = 0.01 of the feature's range)."""
    out = references.copy()
    scaled = noise * scene.present(references)[..., None]
    out[..., SIZE] += NOISE.size * scaled[..., 0]
    out[..., COLOR] += NOISE.color * scaled[..., 1:4]
    out[..., POSITION] += NOISE.position * scaled[..., 4:6]
    out[..., ORIENTATION] += NOISE.orientation * scaled[..., 6]
    return out


def shuffle(scenes: NDArray[np.float32], keys: NDArray[np.float32]) -> NDArray[np.float32]:
    """Reorder the objects of each scene by increasing key, padding last: (B, n, 10), (B, n) -> (B, n, 10)."""
    size, n, width = scenes.shape
    mask = scene.present(scenes)
    order = np.argsort(np.where(mask, keys, np.inf) if not mask.all() else keys, axis=1)
    rows = (order + n * np.arange(size)[:, None]).ravel()
    return scenes.reshape(-1, width).take(rows, axis=0).reshape(size, n, width)
