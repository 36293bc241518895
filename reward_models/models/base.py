"""Base class of the models: a torch module that maps scenes to logits, with its configuration."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from torch import Tensor, nn


@dataclass(frozen=True)
class ModelConfig:
    """Settings of a model: plain numbers and names, which JSON can hold."""

    def to_json(self) -> dict[str, Any]:
        """The settings as a JSON object."""
        return asdict(self)


class RewardModel(nn.Module):
    """Judges whether scenes show the same configuration.

    Scenes are padded batches (B, n, 10) of raw features; which rows are objects is read off the one-hot.
    """

    kind: ClassVar[str]  # name in the registry
    two_inputs: ClassVar[bool]  # compares target and reference; else the reference scene is in the weights
    set_invariant: ClassVar[bool] = True  # neither the order of the objects nor padding changes the result
    similarity_invariant: ClassVar[bool] = False  # neither does a similarity of the target
    curriculum: ClassVar[bool] = True  # learns with growing rotations, as in the paper; else from all of them at once
    sees_pictures: ClassVar[bool] = False  # forward takes pictures (B, 3, pixels, pixels) in place of scenes
    stacks: ClassVar[bool] = False  # forward also takes weights and scenes of S networks, each (S, ...), at once
    Config: ClassVar[type[ModelConfig]] = ModelConfig

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config

    def forward(self, target: Tensor, reference: Tensor | None = None) -> Tensor:
        """Logits of "different" and "same" after each round.

        Args:
            target: (B, n, 10), the transformed scene.
            reference: (B, m, 10), the scene in the arena; None for models of one input.

        Returns:
            (rounds, B, 2). Training sums the losses of all rounds, the last one decides.
        """
        raise NotImplementedError

    def score(self, target: Tensor, reference: Tensor | None = None) -> Tensor:
        """Logit of "same" minus logit of "different" of the last round, (B,); positive says the same."""
        logits = self(target, reference)[-1]
        return logits[:, 1] - logits[:, 0]

    @property
    def n_weights(self) -> int:
        """Number of trained weights."""
        return sum(parameter.numel() for parameter in self.parameters())
