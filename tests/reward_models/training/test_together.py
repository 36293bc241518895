"""Several seeds in one pass: each as it is alone, resumed as it was, and refused where they cannot share samples."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from reward_models.models import checkpoint
from reward_models.training.config import TrainingConfig
from reward_models.training.folder import State
from reward_models.training.protocol import read_log, read_logs, train, train_together
from spatialsim_env.arrangements.scene import TURN
from spatialsim_env.arrangements.tasks import STAGES

SHORT = TrainingConfig(
    model="matching", samples_per_stage=300, epochs_per_stage=2, validation_samples=50, stages=(STAGES[0], TURN)
)
TOGETHER = replace(SHORT, model="mpgnn", data_seed=5)
SHORT_TOGETHER = replace(SHORT, data_seed=0)


def bits(model) -> bytes:
    return b"".join(p.detach().numpy().tobytes() for p in model.parameters())


def test_seeds_that_train_together_are_each_alone(tmp_path):
    """To rounding, which Adam's division magnifies where a gradient is near zero; hence the loose comparison."""
    models = train_together(TOGETHER, [4, 1, 2], tmp_path / "together")
    for seed, model in zip([4, 1, 2], models, strict=True):
        alone = train(replace(TOGETHER, seed=seed), tmp_path / f"alone{seed}")
        for ours, theirs in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
        log = read_log(tmp_path / "together" / f"seed{seed}")
        for row, other in zip(log, read_log(tmp_path / f"alone{seed}"), strict=True):
            assert (row.stage, row.epoch) == (other.stage, other.epoch)
            assert row.loss == pytest.approx(other.loss, rel=1e-4)


def test_each_seed_of_a_pass_has_its_model_and_log(tmp_path):
    models = train_together(SHORT_TOGETHER, [0, 7], tmp_path)
    logs = read_logs(tmp_path)
    assert [len(log) for log in logs] == [4, 4]
    for seed, model, log in zip([0, 7], models, logs, strict=True):
        stored = checkpoint.load(tmp_path / f"seed{seed}")
        assert bits(stored.model) == bits(model)
        assert TrainingConfig.from_json(stored.task["training"]) == replace(SHORT_TOGETHER, seed=seed)
        assert read_log(tmp_path / f"seed{seed}") == log


def test_an_interrupted_pass_ends_with_the_same_bits(tmp_path, monkeypatch):
    whole = train_together(SHORT_TOGETHER, [0, 1], tmp_path / "whole")
    save = State.save

    def save_and_stop(state, logs):
        save(state, logs)
        if len(logs[0]) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(State, "save", save_and_stop)
    with pytest.raises(KeyboardInterrupt):
        train_together(SHORT_TOGETHER, [0, 1], tmp_path / "stopped")
    monkeypatch.undo()
    resumed = train_together(SHORT_TOGETHER, [0, 1], tmp_path / "stopped")
    assert [bits(model) for model in resumed] == [bits(model) for model in whole]


def test_a_pass_of_other_seeds_is_refused(tmp_path):
    train_together(SHORT_TOGETHER, [0, 1], tmp_path)
    with pytest.raises(ValueError, match=r"another training run \(seeds: \[0, 1\] there, \[0, 2\] now\)"):
        train_together(SHORT_TOGETHER, [0, 2], tmp_path)


@pytest.mark.parametrize(
    ("config", "seeds", "message"),
    [
        (SHORT, [0, 1], "data_seed is None"),
        (SHORT_TOGETHER, [], "at least one"),
        (SHORT_TOGETHER, [1, 1], "each once"),
        (SHORT_TOGETHER, [-1], "seed is -1"),
    ],
)
def test_passes_that_cannot_be(tmp_path, config, seeds, message):
    with pytest.raises(ValueError, match=message):
        train_together(config, seeds, tmp_path / "run")
    assert not (tmp_path / "run").exists()
