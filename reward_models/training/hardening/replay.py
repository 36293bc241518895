"""The replay of a round, drawn anew each time: the parts by their shares, as many of one label as of the other.

    benchmark    the benchmark's pairs
    mixture      its pairs with negatives of every kind
    displaced    one object displaced by a few deviations of the noise; the label is that of the hard suite, by making
    lookalikes   up to seven objects that share shape, colour and size
    rollouts     scenes of random and expert episodes, beside their goals
    ends         ends of the optimisers in all rounds so far, and points along their ways

Scenes hold 3 to 8 objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from reward_models.auditing.optimisers import Ends
from reward_models.training.hardening.config import ENDS, OBJECTS, HardeningConfig
from spatialsim_env.arrangements.datasets.rollouts import Rollouts, RolloutWorld, pairs
from spatialsim_env.arrangements.goals import Criterion
from spatialsim_env.arrangements.negatives import Displaced
from spatialsim_env.arrangements.scene import NOISE, pad
from spatialsim_env.arrangements.tasks import Discrimination, Samples
from spatialsim_env.streams import stream

LOOKALIKES = 7
WORLD = {"n_objects": OBJECTS, "action_mode": "pick_place", "max_turn": np.pi}


def draw_replay(config: HardeningConfig, number: int, ends: Sequence[Samples]) -> Samples:
    """Draw the replay of a round: every part by its share, each balanced by itself.

    Args:
        number: of the round, from 1.
        ends: of the optimisers in the rounds before; without any, the other parts take their share.
    """
    shares = {name: share for name, share in config.shares.items() if name != ENDS or ends}
    parts = []
    for name, share in shares.items():
        size = round(config.samples * share / sum(shares.values()))
        rng = stream(config.seed, f"hardening/{number}/{name}")
        if name == ENDS:
            parts.append(_balance(_join(ends), size, rng))
        elif name == "rollouts":
            parts.append(_balance(_roll_out(config.episodes, rng), size, rng))
        else:
            parts.append(_task(config, name).sample(size, rng))
    return _join(parts)


def _task(config: HardeningConfig, name: str) -> Discrimination:
    low, high = (deviations * NOISE.position for deviations in config.displacements)
    options = {
        "mixture": {"negative": "mixture"},
        "displaced": {"negative": Displaced(low, high)},
        "lookalikes": {"lookalikes": LOOKALIKES},
    }
    return Discrimination(OBJECTS, balanced=True, **options.get(name, {}))  # type: ignore[arg-type]


def _roll_out(episodes: int, rng: np.random.Generator) -> Samples:
    world = RolloutWorld(WORLD)
    policies = tuple(world.policy(name) for name in ("random", "expert"))
    rollouts = Rollouts(world, policies, int(rng.integers(2**31)), per_shard=episodes)
    return pairs(rollouts.shard("train", 0)[0])[0]


def _balance(samples: Samples, size: int, rng: np.random.Generator) -> Samples:
    """Draw pairs with replacement, half of them of each label; a label that is missing comes from the benchmark."""
    halves = []
    for label, half in ((0, size // 2), (1, size - size // 2)):
        rows = np.flatnonzero(samples.label == label)
        if len(rows):
            halves.append(samples[rng.choice(rows, half)])
        else:
            drawn = Discrimination(OBJECTS, balanced=True).sample(2 * half, rng)
            halves.append(drawn[np.flatnonzero(drawn.label == label)[:half]])
    return _join(halves)


def _join(parts: Sequence[Samples]) -> Samples:
    """Put pairs one after the other, padded to the same number of rows."""
    scenes = [[pad(x, OBJECTS[1]) for x in (part.target, part.reference)] for part in parts]
    target, reference = (np.concatenate(of) for of in zip(*scenes, strict=True))
    return Samples(target, reference, np.concatenate([part.label for part in parts]))


def label_ends(ends: Iterable[Ends], points: int) -> Samples:
    """Label the ends of optimisers, and points evenly spaced along their ways, by the truth."""
    desired, achieved = [], []
    for part in ends:
        for row, path in enumerate(part.paths):
            places = np.unique(np.linspace(0, len(path.scores) - 1, points + 1).round().astype(int))[1:-1]
            scenes = [*(path.achieved[place] for place in places), part.question.achieved[row]]
            achieved += scenes
            desired += [part.question.desired[row]] * len(scenes)
    labels = _label(achieved, desired)
    target, reference = (np.stack([pad(scene, OBJECTS[1]) for scene in scenes]) for scenes in (desired, achieved))
    return Samples(target, reference, labels)


def _label(achieved: list[NDArray[np.float32]], desired: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Judge scenes of several sizes by the truth, a batch a size."""
    sizes, labels = np.array([len(scene) for scene in achieved]), np.zeros(len(achieved), np.float32)
    for n in np.unique(sizes):
        rows = np.flatnonzero(sizes == n)
        labels[rows] = is_achieved(np.stack([achieved[k] for k in rows]), np.stack([desired[k] for k in rows]))
    return labels


def is_achieved(achieved: NDArray[np.float32], desired: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Judge scenes (B, n, 10) by the truth."""
    return Criterion().align(achieved, desired).distance <= 1
