"""Networks made of one or two branches: a branch turns a scene into a vector round by round, a head judges.

The paper's models are all of this form (section 3): a single branch for Identification, two with weights of their own
for Discrimination, whose vectors are concatenated. Weights are shared between rounds, and every round is judged.
Shapes are those of one network; all of it also runs with the weights and scenes of several, a dimension in front.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from reward_models.models.base import ModelConfig, RewardModel
from reward_models.models.layers import mlp, present


@dataclass
class Objects:
    """A batch of sets between two rounds; objects first, so that each step runs over the batch."""

    nodes: Tensor  # (n, B, 10), zero where padding
    total: Tensor  # (B, 10), the global feature u
    held: Tensor  # (n, B, 1) of bool, where an object is


def objects_of(scenes: Tensor) -> Objects:
    """The set of a scene before the first round, its u the mean of the objects: (B, n, 10)."""
    nodes = scenes.transpose(-3, -2)
    held = present(nodes)[..., None]
    nodes = nodes * held
    return Objects(nodes, nodes.sum(-3) / held.sum(-3), held)


class Branch(nn.Module):
    """One round on one scene; the state between two rounds is the branch's own affair."""

    width: int  # of the vector that the head sees

    def begin(self, scenes: Tensor) -> Any:
        """The state before the first round: (B, n, 10)."""
        raise NotImplementedError

    def forward(self, state: Any) -> Any:
        """The state after one more round."""
        raise NotImplementedError

    def summary(self, state: Any) -> Tensor:
        """Return the head's input from a state, (B, width)."""
        raise NotImplementedError


@dataclass(frozen=True)
class RoundsConfig(ModelConfig):
    """Settings of a network of two branches."""

    rounds: int = 2  # rounds with the same weights; the authors' code 2, the paper's text 1

    def __post_init__(self) -> None:
        if not isinstance(self.rounds, int) or self.rounds < 1:
            raise ValueError(f"rounds is {self.rounds!r}; accepted is an int from 1")


class OneBranch(RewardModel):
    """One scene, one round; the reference scene is what it was trained on (Identification)."""

    two_inputs = False
    stacks = True
    hidden: ClassVar[tuple[int, ...]]  # widths of the head's hidden layers

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.branch = self.make_branch()
        self.head = mlp(self.branch.width, *self.hidden, 2)

    def make_branch(self) -> Branch:
        """The branch, with new weights."""
        raise NotImplementedError

    def forward(self, target: Tensor, reference: Tensor | None = None) -> Tensor:
        return self.head(self.branch.summary(self.branch(self.branch.begin(target)))).unsqueeze(-3)


class TwoBranches(RewardModel):
    """Two scenes, a branch with weights of its own for each, a prediction after every round (Discrimination)."""

    two_inputs = True
    stacks = True
    hidden: ClassVar[tuple[int, ...]]  # widths of the head's hidden layers
    Config: ClassVar[type[ModelConfig]] = RoundsConfig

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.rounds = getattr(config, "rounds", 1)
        self.branches = nn.ModuleList([self.make_branch(), self.make_branch()])  # of the target, of the reference
        self.head = mlp(sum(branch.width for branch in self.both), *self.hidden, 2)

    def make_branch(self) -> Branch:
        """A branch, with new weights."""
        raise NotImplementedError

    @property
    def both(self) -> tuple[Branch, Branch]:
        """The branches of the target and of the reference."""
        target, reference = self.branches
        assert isinstance(target, Branch)
        assert isinstance(reference, Branch)
        return target, reference

    def forward(self, target: Tensor, reference: Tensor | None = None) -> Tensor:
        assert reference is not None
        states = self.begin(target, reference)
        logits = []
        for _ in range(self.rounds):
            states = [branch(state) for branch, state in zip(self.both, states, strict=True)]
            seen = [branch.summary(state) for branch, state in zip(self.both, states, strict=True)]
            logits.append(self.head(torch.cat(seen, dim=-1)))
        return torch.stack(logits, dim=-3)

    def begin(self, target: Tensor, reference: Tensor) -> list[Any]:
        """The state of each branch before the first round."""
        return [branch.begin(scenes) for branch, scenes in zip(self.both, (target, reference), strict=True)]
