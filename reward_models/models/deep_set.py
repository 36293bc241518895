"""Sets without relations: the Recurrent Deep Set, whose objects hear of each other through one vector, and the Deep
Set, whose objects do not (section 3.2 of the paper; widths from the authors' code).
"""

from __future__ import annotations

import torch
from torch import Tensor

from reward_models.models.base import ModelConfig
from reward_models.models.branches import Branch, Objects, OneBranch, TwoBranches, objects_of
from reward_models.models.layers import mlp
from spatialsim_env.arrangements.scene import N_FEATURES

WIDTH = N_FEATURES  # of node and global features
HIDDEN = 16


class RecurrentDeepSetRound(Branch):
    """x' = node(x, u), then u' = global(sum x', u)."""

    width = WIDTH

    def __init__(self) -> None:
        super().__init__()
        self.node = mlp(2 * WIDTH, HIDDEN, HIDDEN, WIDTH)
        self.total = mlp(2 * WIDTH, HIDDEN, HIDDEN, WIDTH)

    def begin(self, scenes: Tensor) -> Objects:
        return objects_of(scenes)

    def forward(self, state: Objects) -> Objects:
        total = state.total.unsqueeze(-3).expand_as(state.nodes)
        nodes = self.node(torch.cat([state.nodes, total], dim=-1)) * state.held
        return Objects(nodes, self.total(torch.cat([nodes.sum(-3), state.total], dim=-1)), state.held)

    def summary(self, state: Objects) -> Tensor:
        return state.total


class SingleRDS(OneBranch):
    """Recurrent Deep Set for Identification; 2,038 weights."""

    kind = "rds_single"
    hidden = (HIDDEN, HIDDEN)

    def make_branch(self) -> Branch:
        return RecurrentDeepSetRound()


class RDS(TwoBranches):
    """Recurrent Deep Set for Discrimination; 3,754 weights (the paper's table says 5,326)."""

    kind = "rds"
    hidden = (HIDDEN, HIDDEN)

    def make_branch(self) -> Branch:
        return RecurrentDeepSetRound()


class SumOfObjects(Branch):
    """rho(sum phi(x)): one round, without any exchange between objects."""

    def __init__(self, phi: tuple[int, ...], rho: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.width = (rho or phi)[-1]
        self.phi = mlp(*phi)
        self.rho = mlp(*rho) if rho else None

    def begin(self, scenes: Tensor) -> Objects:
        return objects_of(scenes)

    def forward(self, state: Objects) -> Objects:
        total = (self.phi(state.nodes) * state.held).sum(-3)
        return Objects(state.nodes, total if self.rho is None else self.rho(total), state.held)

    def summary(self, state: Objects) -> Tensor:
        return state.total


class SingleDeepSet(OneBranch):
    """Deep Set for Identification; 2,386 weights."""

    kind = "deep_set_single"
    hidden = 4 * (HIDDEN,)

    def make_branch(self) -> Branch:
        return SumOfObjects((WIDTH, *5 * (HIDDEN,)))


class DeepSet(TwoBranches):
    """Deep Set for Discrimination, one round; 4,870 weights (the paper's table says 5,274)."""

    kind = "deep_set"
    hidden = 3 * (HIDDEN,)
    Config = ModelConfig

    def make_branch(self) -> Branch:
        return SumOfObjects((WIDTH, *4 * (HIDDEN,)), (*4 * (HIDDEN,), WIDTH))
