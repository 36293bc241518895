"""Hard-negative mining: a model is trained on what its own optimisers find, with true labels, until they find nothing.

It starts from a model trained by ``TrainingConfig``. A *round* is: draw a replay of labelled pairs, train on it, let
gradient and search at the model, and keep where they came to, with what the truth says of it, for the replays of the
rounds to come. It ends with the first round in which no claim is false, or with the last round.

A replay is drawn anew in each round, the parts (``PARTS``) by their shares, as many of one label as of the other:

    benchmark    the benchmark's pairs
    mixture      its pairs with negatives of every kind
    displaced    one object displaced by a few deviations of the noise; the label is that of the hard suite, by making
    lookalikes   up to seven objects that share shape, colour and size
    rollouts     scenes of random and expert episodes, beside their goals
    ends         what the optimisers found in all rounds so far: ends, and points along their ways

Without "ends" no optimiser is asked, and all rounds are gone through. Scenes hold 3 to 8 objects.

``harden`` fills a folder: ``hardening.json``, ``start/`` (a training), ``round1/`` and so on (``model.*``, ``ends.*``
and, at the end, ``round.json``), and, when all is done, ``log.csv``, ``model.safetensors`` and ``model.json``. Run
again, it goes on after the last whole round; a round is a function of the settings, its number and the rounds before.
"""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from reward_models.auditing import optimisers
from reward_models.auditing.judge import Judge
from reward_models.auditing.optimisers import Ends
from reward_models.auditing.problems import MOVES, Problems, problems
from reward_models.auditing.report import require_packages
from reward_models.judges.learned import LearnedModel
from reward_models.measuring.evaluation import accuracy_on, loss_of
from reward_models.models import RewardModel, checkpoint
from reward_models.models.batch import Batch, for_model
from reward_models.threads import one_thread
from reward_models.training.protocol import LOG, EpochLog, TrainingConfig, read_log, train
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.arrangements.datasets.rollouts import Rollouts, World, pairs
from spatialsim_env.arrangements.goals import Criterion
from spatialsim_env.arrangements.negatives import Displaced
from spatialsim_env.arrangements.scene import NOISE, pad
from spatialsim_env.arrangements.tasks import Discrimination, Samples
from spatialsim_env.checks import is_finite, read_object, require, require_seed, require_whole
from spatialsim_env.files import replaced
from spatialsim_env.streams import stream

SETTINGS, ROUND, ENDS = "hardening.json", "round.json", "ends"
OBJECTS = (3, 8)  # per scene
LOOKALIKES = 7
WORLD = {"n_objects": OBJECTS, "action_mode": "pick_place", "max_turn": np.pi}
LAST_RATE = 0.01  # of the learning rate, where a round ends
VALIDATION_SAMPLES = 2_000
PARTS = ("benchmark", "mixture", "displaced", "lookalikes", "rollouts", ENDS)

Draw = Callable[["HardeningConfig", int, np.random.Generator], Samples]


@dataclass(frozen=True)
class HardeningConfig:
    """One hardening.

    Raises:
        ValueError: a value that is not accepted, or a training that is not of Discrimination with 3 to 8 objects.
    """

    training: TrainingConfig = field(default_factory=lambda: TrainingConfig.plain(negative="mixture"))  # of the start
    shares: dict[str, float] = field(default_factory=lambda: {"mixture": 0.7, ENDS: 0.3})  # of the parts of a replay
    rounds: int = 4  # at most
    samples: int = 50_000  # of a replay
    epochs: int = 1  # over it
    learning_rate: float = 1e-3  # at the beginning of a round; it falls in a straight line
    batch_size: int = 128
    displacements: tuple[float, float] = (2.0, 8.0)  # deviations of the position noise
    episodes: int = 200  # of rollouts in a round
    sizes: int = 2  # numbers of objects that a round's optimisers are asked about
    starts: int = 64  # of each optimiser, for each number of objects
    gradient_evaluations: int = 300  # scores from each start, at most
    search_evaluations: int = 1_000  # scores from each start, at most
    points: int = 4  # kept along the way from each start
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rounds", "samples", "epochs", "batch_size", "episodes", "starts"):
            require_whole(name, getattr(self, name))
        for name in ("gradient_evaluations", "search_evaluations"):
            require_whole(name, getattr(self, name), 2)
        require_whole("points", self.points, 0)
        most = OBJECTS[1] - OBJECTS[0] + 1
        require_whole("sizes", self.sizes)
        require(self.sizes <= most, "sizes", self.sizes, f"an int from 1 to {most}")
        require_seed("seed", self.seed)
        rate = self.learning_rate
        require(is_finite(rate) and rate > 0, "learning_rate", rate, "a positive number")
        Displaced(*self.displacements)
        known = isinstance(self.shares, dict) and set(self.shares) <= set(PARTS) and set(self.shares) - {ENDS}
        require(bool(known), "shares", self.shares, f"a dict of {', '.join(PARTS)}, at least one beside {ENDS}")
        fits = all(is_finite(share) and share > 0 for share in self.shares.values())
        require(fits, "shares", self.shares, "a dict of positive numbers")
        training = self.training
        fits = training.task == "discrimination" and training.n_objects == OBJECTS and training.data is None
        require(fits, "training", training, f"discrimination with {OBJECTS} objects, without stored sets")

    def to_json(self) -> dict[str, Any]:
        """The settings as a JSON object."""
        return json.loads(json.dumps(asdict(self)))


@dataclass(frozen=True)
class RoundLog:
    """What a round came to."""

    number: int  # from 1
    loss: float  # mean over the replay
    validation_accuracy: float  # on the benchmark, of the model after the round
    claims: int  # by the optimisers of that model
    false_claims: int
    starts: int  # of the optimisers
    seconds: float  # of replay, training and optimisers

    @property
    def precision(self) -> float | None:
        """Share of the claims that are true; None without one."""
        return 1 - self.false_claims / self.claims if self.claims else None

    def to_json(self) -> dict[str, Any]:
        """The log as a JSON object."""
        return {**asdict(self), "precision": self.precision}


def harden(
    config: HardeningConfig, folder: str | os.PathLike[str], *, say: Callable[[str], None] | None = None
) -> RewardModel:
    """Harden a model into a folder, or go on where an earlier call of the same settings stopped.

    Args:
        say: is told a line about each round.

    Returns:
        The model, in evaluation mode.

    Raises:
        ValueError: the folder holds another hardening.
        ImportError: the package of the search is not installed.
    """
    folder = Path(folder)
    _claim(config, folder)
    if ENDS in config.shares:
        require_packages(drawn=False)
    model = train(config.training, folder / "start", progress=False)
    log = read_rounds(folder)
    if log:
        model = checkpoint.load(_home(folder, len(log)) / checkpoint.INFO).model
    with one_thread():
        while not _is_done(config, log):
            log.append(_round(config, folder, model, len(log) + 1))
            if say is not None:
                say(_said(log[-1]))
    _write_log(folder, log)
    checkpoint.save(model, folder, _trained_for(config))
    return model.eval()


def read_rounds(folder: str | os.PathLike[str]) -> list[RoundLog]:
    """The logs of the rounds that are done."""
    found: list[RoundLog] = []
    while (file := _home(Path(folder), len(found) + 1) / ROUND).exists():
        said = read_object(file)
        found.append(RoundLog(**{column.name: said[column.name] for column in fields(RoundLog)}))
    return found


def _is_done(config: HardeningConfig, log: list[RoundLog]) -> bool:
    clean = bool(log) and ENDS in config.shares and log[-1].false_claims == 0
    return clean or len(log) >= config.rounds


def _round(config: HardeningConfig, folder: Path, model: RewardModel, number: int) -> RoundLog:
    home, begun = _home(folder, number), time.perf_counter()
    found = [named.load(_home(folder, before) / ENDS) for before in range(1, number) if ENDS in config.shares]
    replay = for_model(model, replay_of(config, number, found))
    loss = _trained(config, model, replay, number)
    claims, wrong, starts = 0, 0, 0
    if ENDS in config.shares:
        ends = list(_optimised(config, model, number))
        named.save(labelled(ends, config.points), home / ENDS)
        claims, starts = (int(sum(f(part) for part in ends)) for f in (_claims, lambda part: len(part.score)))
        wrong = int(sum((part.claimed & ~_achieved(part.achieved, part.desired)).sum() for part in ends))
    checkpoint.save(model, home, _trained_for(config))
    right = accuracy_on(model, Discrimination(OBJECTS), VALIDATION_SAMPLES, config.seed).value
    seconds = round(time.perf_counter() - begun, 2)
    done = RoundLog(number, loss, right, claims, wrong, starts, seconds)
    with replaced(home / ROUND) as temporary:
        temporary.write_text(json.dumps(done.to_json(), indent=2) + "\n")
    return done


def _claims(ends: Ends) -> int:
    return int(ends.claimed.sum())


def _optimised(config: HardeningConfig, model: RewardModel, number: int) -> Iterable[Ends]:
    """The ends of both optimisers with each of the round's numbers of objects, and each way to change a scene."""
    judge = Judge(LearnedModel(model), model.kind)
    rng = stream(config.seed, f"hardening/{number}/optimisers")
    sizes = rng.permutation(np.arange(OBJECTS[0], OBJECTS[1] + 1))[: config.sizes].tolist()
    for n in sizes:
        for moves in MOVES:
            begun: Problems = problems(judge, n, config.starts, rng, moves, Criterion())
            yield optimisers.gradient(judge, begun, config.gradient_evaluations, config.starts)
            yield optimisers.search(judge, begun, config.search_evaluations, rng, config.starts)


def labelled(ends: Iterable[Ends], points: int) -> Samples:
    """Where optimisers came to, and points evenly spaced along their ways, as pairs with the truth's labels."""
    desired, achieved = [], []
    for part in ends:
        for row, path in enumerate(part.paths):
            places = np.unique(np.linspace(0, len(path.scenes) - 1, points + 1).round().astype(int))[1:-1]
            scenes = [*(path.scenes[place] for place in places), part.achieved[row]]
            achieved += scenes
            desired += [part.desired[row]] * len(scenes)
    labels = _by_size(achieved, desired)
    target, reference = (np.stack([pad(scene, OBJECTS[1]) for scene in scenes]) for scenes in (desired, achieved))
    return Samples(target, reference, labels)


def _by_size(achieved: list[NDArray[np.float32]], desired: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The truth's labels of scenes of several sizes, a batch a size."""
    sizes, labels = np.array([len(scene) for scene in achieved]), np.zeros(len(achieved), np.float32)
    for n in np.unique(sizes):
        rows = np.flatnonzero(sizes == n)
        labels[rows] = _achieved(np.stack([achieved[k] for k in rows]), np.stack([desired[k] for k in rows]))
    return labels


def _achieved(achieved: NDArray[np.float32], desired: NDArray[np.float32]) -> NDArray[np.bool_]:
    return Criterion().align(achieved, desired).distance <= 1


def _trained(config: HardeningConfig, model: RewardModel, replay: Batch, number: int) -> float:
    """Train on a replay, in place; returns the mean loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
    rng = stream(config.seed, f"hardening/{number}/order")
    steps = config.epochs * -(-len(replay) // config.batch_size)
    total, step = 0.0, 0
    model.train()
    for _ in range(config.epochs):
        order = torch.from_numpy(rng.permutation(len(replay)))
        for rows in order.split(config.batch_size):
            optimizer.param_groups[0]["lr"] = config.learning_rate * (1 - (1 - LAST_RATE) * step / steps)
            batch = replay.at(rows)
            loss = loss_of(model(batch.target, batch.reference), batch.label)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total, step = total + loss.item() * len(batch), step + 1
    model.eval()
    return total / (config.epochs * len(replay))


def replay_of(config: HardeningConfig, number: int, found: list[Samples]) -> Samples:
    """The replay of a round: every part by its share, each balanced by itself.

    Args:
        number: of the round, from 1.
        found: the pairs that the optimisers came to in the rounds before; without any, the other parts take their
            share.
    """
    shares = {name: share for name, share in config.shares.items() if name != ENDS or found}
    parts = []
    for name, share in shares.items():
        size = round(config.samples * share / sum(shares.values()))
        rng = stream(config.seed, f"hardening/{number}/{name}")
        parts.append(_balanced(_joined(found), size, rng) if name == ENDS else _DRAWN[name](config, size, rng))
    return _joined(parts)


def _task(**options: Any) -> Draw:
    return lambda config, size, rng: Discrimination(OBJECTS, balanced=True, **options).sample(size, rng)


def _displaced(config: HardeningConfig, size: int, rng: np.random.Generator) -> Samples:
    low, high = (deviations * NOISE.position for deviations in config.displacements)
    return _task(negative=Displaced(low, high))(config, size, rng)


def _rollouts(config: HardeningConfig, size: int, rng: np.random.Generator) -> Samples:
    world = World(WORLD)
    policies = tuple(world.policy(name) for name in ("random", "expert"))
    rollouts = Rollouts(world, policies, int(rng.integers(2**31)), per_shard=config.episodes)
    return _balanced(pairs(rollouts.shard("train", 0)[0])[0], size, rng)


_DRAWN: Mapping[str, Draw] = {
    "benchmark": _task(),
    "mixture": _task(negative="mixture"),
    "displaced": _displaced,
    "lookalikes": _task(lookalikes=LOOKALIKES),
    "rollouts": _rollouts,
}


def _balanced(samples: Samples, size: int, rng: np.random.Generator) -> Samples:
    """Pairs drawn with replacement, half of them of each label; a label that is missing comes from the benchmark."""
    halves = []
    for label, half in ((0, size // 2), (1, size - size // 2)):
        rows = np.flatnonzero(samples.label == label)
        if len(rows):
            halves.append(samples[rng.choice(rows, half)])
        else:
            drawn = Discrimination(OBJECTS, balanced=True).sample(2 * half, rng)
            halves.append(drawn[np.flatnonzero(drawn.label == label)[:half]])
    return _joined(halves)


def _joined(parts: list[Samples]) -> Samples:
    """Pairs one after the other, padded to the same number of rows."""
    scenes = [[pad(x, OBJECTS[1]) for x in (part.target, part.reference)] for part in parts]
    target, reference = (np.concatenate(of) for of in zip(*scenes, strict=True))
    return Samples(target, reference, np.concatenate([part.label for part in parts]))


def _home(folder: Path, number: int) -> Path:
    return folder / f"round{number}"


def _claim(config: HardeningConfig, folder: Path) -> None:
    """Make the folder this hardening's own, or find that it is."""
    file, said = folder / SETTINGS, config.to_json()
    if not file.exists():
        with replaced(file) as temporary:
            temporary.write_text(json.dumps(said, indent=2) + "\n")
        return
    theirs = read_object(file)
    keys = sorted(key for key in said | theirs if said.get(key) != theirs.get(key))
    if keys:
        changes = ", ".join(f"{key}: {theirs.get(key)!r} there, {said.get(key)!r} now" for key in keys)
        raise ValueError(f"{folder} holds another hardening ({changes}); give another folder or remove it")


def _trained_for(config: HardeningConfig) -> dict[str, Any]:
    return config.training.trained_for() | {"hardening": config.to_json()}


def _write_log(folder: Path, log: list[RoundLog]) -> None:
    """The epochs of the start, then a stage of one epoch a round."""
    rows = read_log(folder / "start")
    stages = max(row.stage for row in rows)
    rows += [EpochLog(stages + at.number, 1, at.loss, at.validation_accuracy, at.seconds) for at in log]
    with replaced(folder / LOG) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, [column.name for column in fields(EpochLog)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def _said(at: RoundLog) -> str:
    precision = "no claims" if at.precision is None else f"{at.false_claims} of {at.claims} claims false"
    return f"round {at.number}: loss {at.loss:.4f}, benchmark {at.validation_accuracy:.4f}, {precision}"
