"""Facts of the test samples of a split file for the report: ``results/rel3d/test_sets/SHA.npz``.

Written by the first run on the file, so that reports need rows and this alone. Positions are metres:

    predicate, pair     (N,) as in the file
    unit                (N,) the same number for all views of a pair of scenes (``evaluation.scenes_of``)
    label               (N,)
    margin              (N,) of the rule, positive where it holds; nan where labels are human judgements
    own                 (N, 3) the subject's centre from the object's, along the object's front, left, up
    seen                (N, 3) the same along the observer's right, away direction and the world's up
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reward_models.measuring.relation_accuracy import scenes_of
from spatialsim_env.files import replace_file
from spatialsim_env.relations.rel3d.published import RelationSamples
from spatialsim_env.relations.rel3d.vectors import from_aligned_absolute
from spatialsim_env.relations.scene import OBJECT, SUBJECT

FOLDER = "test_sets"
MARGIN = "margin"  # key of ``Samples.extra``
_NAMED = 16  # digits of the SHA-256 in a file's name


@dataclass(frozen=True)
class TestSet:
    """Columns over N test samples."""

    __test__ = False  # no case of pytest's

    predicate: NDArray[np.int64]
    pair: NDArray[np.int64]
    unit: NDArray[np.int64]
    label: NDArray[np.bool_]
    margin: NDArray[np.float32]
    own: NDArray[np.float32]
    seen: NDArray[np.float32]

    @classmethod
    def of(cls, samples: RelationSamples) -> TestSet:
        """Collect the facts of these samples."""
        center, turn, _ = from_aligned_absolute(samples.vectors["aligned_absolute"])
        offset = center[:, SUBJECT] - center[:, OBJECT]
        own = np.einsum("nji,nj->ni", turn[:, OBJECT], offset)
        up = samples.up
        right = np.array([1.0, 0.0, 0.0]) - up * up[:, :1]
        right /= np.linalg.norm(right, axis=1, keepdims=True)
        axes = np.stack([right, np.cross(up, right), up], axis=1)
        seen = np.einsum("nij,nj->ni", axes, offset)
        margin = samples.extra.get(MARGIN, np.full(len(samples), np.nan))
        return cls(
            samples.predicate,
            samples.pair,
            scenes_of(samples),
            samples.label,
            *(np.asarray(column, np.float32) for column in (margin, own, seen)),
        )


def path_of(results: Path, sha256: str) -> Path:
    """The file for a split file with this checksum."""
    return results / FOLDER / f"{sha256[:_NAMED]}.npz"


def keep(results: Path, sha256: str, samples: RelationSamples) -> None:
    """Write the file, unless it is there."""
    path = path_of(results, sha256)
    if path.exists():
        return
    with replace_file(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **asdict(TestSet.of(samples)))


def read(results: Path, sha256: str) -> TestSet:
    """Read a file of ``keep``.

    Raises:
        FileNotFoundError: it is not there.
        ValueError: it is damaged.
    """
    path = path_of(results, sha256)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; spatialsim study run rel3d writes it beside the rows")
    try:
        with np.load(path, allow_pickle=False) as file:
            return TestSet(**file)
    except Exception as error:
        raise ValueError(f"{path} is damaged: {error}; remove it, and the next run writes it again") from error
