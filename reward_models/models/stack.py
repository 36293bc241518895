"""Several networks of one kind as one: their weights lie side by side, so that one pass serves them all.

Networks this small cost more to call than to compute. A stack calls once for all, with the weights and the batches, of
which each network has its own, side by side: one network that holds all weights, where its kind is written for that
(``stacks``), else ``torch.vmap``. Each network gives what it gives alone, to rounding. Networks that keep statistics
beside their weights (batch normalisation) are called one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state

from reward_models.models import RewardModel


class Stack:
    """Networks of equal kind and settings, S of them; the weights in training are the stack's.

    ``networks`` brings them back into the networks that the stack was made from.
    """

    def __init__(self, networks: Sequence[RewardModel]) -> None:
        self._networks = list(networks)
        self._alone = len(networks) == 1 or any(True for _ in networks[0].buffers())
        weights = stack_module_state(self._networks)[0]
        self._together = deepcopy(self._networks[0])
        for name, parameter in self._together.named_parameters():
            parameter.data = weights[name].detach()
        self.weights = dict(self._together.named_parameters())  # (S, ...) each

    def __len__(self) -> int:
        return len(self._networks)

    def __call__(self, target: Tensor, reference: Tensor | None) -> Tensor:
        """Logits (S, rounds, B, 2) of scenes of each network's own, (S, B, n, 10)."""
        if self._alone:
            references = [None] * len(self) if reference is None else reference
            each = [
                functional_call(network, {name: value[place] for name, value in self.weights.items()}, tuple(scenes))
                for place, (network, *scenes) in enumerate(zip(self._networks, target, references, strict=True))
            ]
            return torch.stack(each)
        if self._together.stacks:
            return self._together(target, reference)

        def one(weights: Mapping[str, Tensor], target: Tensor, reference: Tensor | None) -> Tensor:
            return functional_call(self._together, dict(weights), (target, reference))

        return torch.vmap(one, in_dims=(0, 0, None if reference is None else 0))(self.weights, target, reference)

    def train(self) -> None:
        """Bring all networks into training mode."""
        for network in (*self._networks, self._together):
            network.train()

    @property
    def networks(self) -> list[RewardModel]:
        """The networks, with their present weights."""
        with torch.no_grad():
            for place, network in enumerate(self._networks):
                for name, value in network.named_parameters():
                    value.copy_(self.weights[name][place])
        return self._networks

    def state(self) -> dict[str, Tensor]:
        """Give the live weights by name, (S, ...) each, and the statistics of each network beside them."""
        kept = {
            f"{place}.{name}": x for place, network in enumerate(self._networks) for name, x in network.named_buffers()
        }
        return self.weights | kept
