"""A multilayer perceptron on the padded objects in the order in which they come (section 3.2, the paper's baseline)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from reward_models.models.base import ModelConfig, RewardModel
from reward_models.models.layers import mlp, present
from spatialsim_env.arrangements.scene import N_FEATURES


@dataclass(frozen=True)
class FlatConfig(ModelConfig):
    """The range of objects that the network is built for; it sets every width."""

    n_min: int = 3  # objects
    n_max: int = 8  # objects; scenes are padded to it

    def __post_init__(self) -> None:
        if not all(isinstance(n, int) for n in (self.n_min, self.n_max)) or not 1 <= self.n_min <= self.n_max:
            raise ValueError(f"n_min, n_max are {self.n_min!r}, {self.n_max!r}; accepted is 1 <= n_min <= n_max, ints")


class _Flat(RewardModel):
    set_invariant = False
    Config = FlatConfig
    scenes: int  # that it sees

    def __init__(self, config: FlatConfig) -> None:
        super().__init__(config)
        self.n_max = config.n_max
        width = self.scenes * N_FEATURES * ((config.n_min + config.n_max) // 2)
        self.layers = mlp(self.scenes * N_FEATURES * config.n_max, width, width, 2)

    def forward(self, target: Tensor, reference: Tensor | None = None) -> Tensor:
        scenes = [target] if reference is None or not self.two_inputs else [target, reference]
        return self.layers(torch.cat([self._flat(x) for x in scenes], dim=-1))[None]

    def _flat(self, scenes: Tensor) -> Tensor:
        """(B, n, 10) -> (B, 10 n_max)."""
        beyond = scenes[:, self.n_max :]
        if beyond.shape[1] and bool(present(beyond).any()):
            raise ValueError(f"a scene has more than {self.n_max} objects, for which this {self.kind} was built")
        missing = self.n_max - scenes.shape[1]
        return F.pad(scenes[:, : self.n_max], (0, 0, 0, max(0, missing))).flatten(1)


class SingleMLP(_Flat):
    """Perceptron for Identification; 6,702, 48,162 and 138,502 weights for 3-8, 9-20 and 21-30 objects."""

    kind = "mlp_single"
    two_inputs = False
    scenes = 1


class MLP(_Flat):
    """Perceptron for Discrimination; 26,402, 191,522 and 552,002 weights for 3-8, 9-20 and 21-30 objects."""

    kind = "mlp"
    two_inputs = True
    scenes = 2
