"""The folder of a training: its state comes back into the networks, and those of others are refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from reward_models import models
from reward_models.models.stack import Stack
from reward_models.training import folder
from reward_models.training.folder import DamagedState, State


@dataclass(frozen=True)
class Row:
    number: int
    loss: float


LOGS = [[Row(1, 0.1), Row(2, 1 / 3)], [Row(1, float("inf"))]]


def state(tmp_path, kind="mpgnn", seeds=(0, 1, 2)) -> State:
    """Of networks after a step, so that there is something to store of Adam and of statistics."""
    stack = Stack([models.create(kind, {"pixels": 32} if kind == "resnet18" else {}, seed) for seed in seeds])
    shape = (len(seeds), 4, 3, 32, 32) if kind == "resnet18" else (len(seeds), 4, 3, 10)
    optimizer = torch.optim.Adam(stack.weights.values(), lr=1e-3)
    scenes = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    scenes = (255 * scenes).to(torch.uint8) if kind == "resnet18" else scenes
    stack.train()
    stack(scenes, scenes).square().sum().backward()
    optimizer.step()
    return State(tmp_path / "state.safetensors", stack.state(), optimizer)


@pytest.mark.parametrize("kind", ["mpgnn", "resnet18"])
def test_a_state_comes_back(tmp_path, kind):
    """Statistics beside the weights are part of it."""
    saved, other = state(tmp_path, kind), state(tmp_path, kind, (7, 8, 9))
    assert other.restore(Row) == []
    saved.save(LOGS)
    assert other.restore(Row) == LOGS
    for name, value in saved.tensors.items():
        assert torch.equal(other.tensors[name], value), name
    for index, values in saved.optimizer.state_dict()["state"].items():
        for name, value in values.items():
            assert torch.equal(other.optimizer.state_dict()["state"][index][name], value), (index, name)


@pytest.mark.parametrize("other", [{"kind": "rds"}, {"seeds": (0, 1)}])
def test_a_state_of_other_networks_is_refused(tmp_path, other):
    state(tmp_path, **other).save(LOGS)
    with pytest.raises(DamagedState, match="is damaged: its weights are those of other networks"):
        state(tmp_path).restore(Row)


def test_a_log_comes_back(tmp_path):
    folder.write_log(tmp_path, [])
    assert not (tmp_path / folder.LOG).exists()
    folder.write_log(tmp_path, LOGS[0])
    assert folder.read_log(tmp_path, Row) == LOGS[0]
    assert (tmp_path / folder.LOG).read_text().splitlines()[0] == "number,loss"
