"""The rounds of a hardening, each a function of the settings, its number and the rounds before.

``harden`` fills a folder: ``hardening.json``, ``start/`` (a training), ``round1/`` and so on (``model.*``, ``ends.*``
and, at the end, ``round.json``), and, when all is done, ``log.csv``, ``model.safetensors`` and ``model.json``. Run
again, it resumes after the last whole round.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reward_models.auditing import optimisers
from reward_models.auditing.arrangements import ArrangementAudit, begin
from reward_models.auditing.moves.arrangements import MOVES
from reward_models.auditing.optimisers import Ends
from reward_models.auditing.report import require_packages
from reward_models.judges import judge as judges
from reward_models.measuring.evaluation import accuracy_on, loss_of
from reward_models.models import RewardModel, checkpoint
from reward_models.models.batch import Batch, for_model
from reward_models.threads import one_thread
from reward_models.training.folder import claim, write_log, write_object
from reward_models.training.hardening.config import ENDS, OBJECTS, HardeningConfig
from reward_models.training.hardening.replay import draw_replay, is_achieved, label_ends
from reward_models.training.protocol import EpochLog, read_log, train
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.arrangements.goals import Criterion
from spatialsim_env.arrangements.tasks import Discrimination
from spatialsim_env.checks import read_object
from spatialsim_env.streams import stream

SETTINGS, ROUND = "hardening.json", "round.json"
LAST_RATE = 0.01  # of the learning rate, where a round ends
VALIDATION_SAMPLES = 2_000


@dataclass(frozen=True)
class RoundLog:
    """One round and its figures."""

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
        """Give the log as a JSON object."""
        return {**asdict(self), "precision": self.precision}

    def __str__(self) -> str:
        claims = f"{self.false_claims} of {self.claims} claims false" if self.claims else "no claims"
        return f"round {self.number}: loss {self.loss:.4f}, benchmark {self.validation_accuracy:.4f}, {claims}"


def harden(
    config: HardeningConfig, folder: str | os.PathLike[str], *, say: Callable[[str], None] | None = None
) -> RewardModel:
    """Harden a model into a folder, or go on where an earlier call of the same settings stopped.

    Args:
        say: gets a line about each round.

    Returns:
        The model, in evaluation mode.

    Raises:
        ValueError: the folder holds another hardening.
        ImportError: the package of the search is not installed.
    """
    folder = Path(folder)
    claim(folder / SETTINGS, config.to_json(), "hardening")
    if config.optimises:
        require_packages(drawn=False)
    model = train(config.training, folder / "start", progress=False)
    log = read_rounds(folder)
    if log:
        model = checkpoint.load(_home(folder, len(log))).model
    with one_thread():
        while not _is_over(config, log):
            log.append(_run_round(config, folder, model, len(log) + 1))
            if say is not None:
                say(str(log[-1]))
    _write_epochs(folder, log)
    checkpoint.save(model, folder, config.describe_task())
    return model.eval()


def read_rounds(folder: str | os.PathLike[str]) -> list[RoundLog]:
    """Read the logs of the rounds that are done."""
    log: list[RoundLog] = []
    while (file := _home(Path(folder), len(log) + 1) / ROUND).exists():
        entries = read_object(file)
        log.append(RoundLog(**{column.name: entries[column.name] for column in fields(RoundLog)}))
    return log


def _home(folder: Path, number: int) -> Path:
    return folder / f"round{number}"


def _is_over(config: HardeningConfig, log: list[RoundLog]) -> bool:
    clean = bool(log) and config.optimises and log[-1].false_claims == 0
    return clean or len(log) >= config.rounds


def _run_round(config: HardeningConfig, folder: Path, model: RewardModel, number: int) -> RoundLog:
    """Train on a replay, in place, and let the optimisers at the model."""
    home, start = _home(folder, number), time.perf_counter()
    earlier = [named.load(_home(folder, before) / ENDS) for before in range(1, number) if config.optimises]
    loss = _train_on(for_model(model, draw_replay(config, number, earlier)), config, model, number)
    ends = list(_optimise(config, model, number)) if config.optimises else []
    if config.optimises:
        named.save(label_ends(ends, config.points), home / ENDS)
    checkpoint.save(model, home, config.describe_task())
    log = RoundLog(
        number,
        loss,
        accuracy_on(model, Discrimination(OBJECTS), VALIDATION_SAMPLES, config.seed).value,
        sum(int(part.claimed.sum()) for part in ends),
        sum(int((part.claimed & ~is_achieved(part.question.achieved, part.question.desired)).sum()) for part in ends),
        sum(len(part.score) for part in ends),
        round(time.perf_counter() - start, 2),
    )
    write_object(home / ROUND, log.to_json())
    return log


def _train_on(replay: Batch, config: HardeningConfig, model: RewardModel, number: int) -> float:
    """Train the model, in place, with a learning rate that falls; returns the mean loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
    rng = stream(config.seed, f"hardening/{number}/order")
    steps = config.epochs * -(-len(replay) // config.batch_size)
    total, step = 0.0, 0
    model.train()
    for _ in range(config.epochs):
        for rows in torch.from_numpy(rng.permutation(len(replay))).split(config.batch_size):
            optimizer.param_groups[0]["lr"] = config.learning_rate * (1 - (1 - LAST_RATE) * step / steps)
            batch = replay.at(rows)
            loss = loss_of(model(batch.target, batch.reference), batch.label)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total, step = total + loss.item() * len(batch), step + 1
    model.eval()
    return total / (config.epochs * len(replay))


def _optimise(config: HardeningConfig, model: RewardModel, number: int) -> Iterable[Ends]:
    """Run both optimisers with each of the round's numbers of objects and each way to change a scene."""
    judge = judges.of(model, ArrangementAudit())
    rng = stream(config.seed, f"hardening/{number}/optimisers")
    for n in rng.permutation(np.arange(OBJECTS[0], OBJECTS[1] + 1))[: config.sizes].tolist():
        for moves in MOVES:
            starts = begin(judge, n, config.starts, rng, moves, Criterion())
            yield optimisers.gradient(judge, MOVES[moves], starts, config.gradient_evaluations, config.starts)
            yield optimisers.search(judge, MOVES[moves], starts, config.search_evaluations, rng, config.starts)


def _write_epochs(folder: Path, log: list[RoundLog]) -> None:
    """Write the epochs of the start, then a stage of one epoch a round."""
    epochs = read_log(folder / "start")
    last = max(epoch.stage for epoch in epochs)
    epochs += [EpochLog(last + at.number, 1, at.loss, at.validation_accuracy, at.seconds) for at in log]
    write_log(folder, epochs)
