"""Questions about the other predicates of every scene, which a model needs in order to be a goal.

Minimally contrastive pairs lie close to the border of the predicate that they were made for, on either side of it. A
model that has seen nothing else is right about them and may be wrong far from every border, as about what is to the
right when "to the left of" is asked. The scenes of the other predicates are such places, and the rules label them for
nothing. Pairs and their labels stay as they are; questions are added, of each predicate as many that hold as do not.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from spatialsim_env.checks import require_whole
from spatialsim_env.relations.pairs import scene_sets
from spatialsim_env.relations.pairs.generation import SCENES
from spatialsim_env.relations.pairs.scene_sets import SceneSet
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.rel3d import published
from spatialsim_env.relations.rel3d.published import RelationSamples, Split
from spatialsim_env.relations.vocabulary import PREDICATES

TIMES = 3  # questions added for each sample, on average
ASKED = "asked"  # how the name of a picture begins, after which it is that of the scene's own and of no pair


def split(pairs: SceneSet, name: str, rng: np.random.Generator, times: int = TIMES) -> Split:
    """Give the whole set in the published form, with questions added to its training and validation samples.

    Args:
        pairs: scenes of our own.
        name: of the split.
        rng: chooses the questions.
        times: questions added for each sample, on average; fewer where too few scenes hold or do not hold.

    Raises:
        ValueError: times below 1.
    """
    require_whole("times", times)
    numbers = np.arange(len(pairs))
    parts = []
    for index, part in enumerate(scene_sets.SPLITS):
        rows = pairs.split == index
        own = scene_sets.samples(pairs[rows], numbers[rows])
        parts.append(own if part == "test" else published.concatenate([own, ask(own, pairs[rows], rng, times)]))
    whole = scene_sets.to_split(pairs[:1], name)
    train, valid, test = parts
    return replace(whole, train=train, valid=valid, test=test)


def ask(samples: RelationSamples, pairs: SceneSet, rng: np.random.Generator, times: int = TIMES) -> RelationSamples:
    """Ask other questions about the same scenes and views: samples of no pair, labelled by the rules.

    Their ``extra`` is still that of the question which the pair was made for.

    Args:
        samples: of ``pairs``, as ``scene_sets.samples`` gives them.
        pairs: their scenes.
        rng: chooses the questions.
        times: questions for each sample, on average.
    """
    pair, view, member = scene_sets.sample_rows(pairs)
    scenes, observers = (x.astype(np.float64) for x in (pairs.scenes[pair, member], pairs.observers[pair, view]))
    holds = predicates.margins(scenes, observers) > 0
    most = max(1, times * len(samples) // (2 * len(PREDICATES)))
    rows, asked = [], []
    for index in range(len(PREDICATES)):
        for label in (True, False):
            fitting = np.flatnonzero((holds[:, index] == label) & (samples.predicate != index))
            rows.append(rng.permutation(fitting)[:most])
            asked.append(np.full(len(rows[-1]), index))
    at, predicate = np.concatenate(rows), np.concatenate(asked)
    chosen = samples[at]
    return replace(
        chosen,
        predicate=predicate,
        label=holds[at, predicate],
        pair=np.full(len(at), -1),
        rgb=tuple(f"{ASKED} {number:06d} {name}" for number, name in enumerate(chosen.rgb)),
        problems={},
    )


def write(folder: str | os.PathLike[str], out: str | os.PathLike[str], seed: int = 0, times: int = TIMES) -> Path:
    """Write the split file of a generated set with questions added; returns its path.

    Args:
        folder: of ``generation.generate``.
        out: the file, as questions.json.
        seed: of the choice.
        times: questions for each sample, on average.

    Raises:
        OSError: the scenes cannot be read, or the file not written.
    """
    pairs = scene_sets.load(Path(folder) / SCENES)
    published.write(split(pairs, Path(out).stem, np.random.default_rng(seed), times), out)
    return Path(out)
