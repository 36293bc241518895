from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch

from reward_models import models
from reward_models.cli import main
from reward_models.models import checkpoint
from reward_models.training.config import TrainingConfig
from reward_models.training.protocol import train

MIXED = TrainingConfig.plain(samples_per_stage=50_000, negative="mixture", validation_samples=1000)


@pytest.fixture(scope="session")
def mixed_folder(tmp_path_factory):
    """A matching network trained on the mixture of negatives with 3-8 objects, some four seconds on one thread."""
    folder = tmp_path_factory.mktemp("mixed") / "matching"
    train(MIXED, folder)
    return folder


@pytest.fixture
def untrained(tmp_path):
    """Saves untrained models of any kind and returns their folders; one of one input knows 5 objects, seed 0."""

    def save(kind: str):
        model = models.create(kind, seed=3)
        task = "discrimination" if model.two_inputs else "identification"
        n_objects = (3, 8) if model.two_inputs else 5
        config = TrainingConfig(model=kind, task=task, n_objects=n_objects)
        return checkpoint.save(model, tmp_path / kind, config.describe_task()).parent

    return save


@pytest.fixture
def refusal(monkeypatch, capsys):
    """Runs the command line and returns the one line with which it ends, exit code 1."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["spatialsim", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main.main()
        assert stopped.value.code == 1
        error = capsys.readouterr().err.strip()
        assert "\n" not in error
        return error

    return run


@pytest.fixture
def two_threads() -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(before)
