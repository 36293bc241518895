"""A model of this project: relations of oriented boxes that keep to each predicate's frame of reference.

The numbers of ``pair_features.own`` do not change when the whole scene is moved or turned, nor with the camera. Those
of ``pair_features.seen`` belong to the observer and are multiplied by 1 for predicates in the observer's frame, "(wrt
you)", and by 0 for all others, which so cannot depend on who looks. Each predicate weighs the numbers for itself, and a
residual network with a state for each predicate makes the logit. Its gradient with respect to the boxes' places is
finite, so it can be climbed towards a goal. Batch normalisation there is none: a logit never depends on its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from reward_models.models.relations import pair_features
from reward_models.models.relations.base import Inputs, RelationModel, RelationModelConfig
from reward_models.models.relations.layers import Scale
from spatialsim_env.checks import require, require_whole
from spatialsim_env.relations import vocabulary

_FEATURES = ("own_features", "seen_features")  # names among prepared inputs
_AT_ONCE = 4096  # samples, to bound the memory
_MOST = 8.0  # deviations; what lies further from the mean than in training is cut smoothly


@dataclass(frozen=True)
class RelationalConfig(RelationModelConfig):
    """Settings of the relational model."""

    predicates: tuple[str, ...] = vocabulary.PREDICATES  # names by class index; they say which frame each has
    width: int = 96  # of the hidden layers
    blocks: int = 2  # residual ones

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("width", self.width)
        require_whole("blocks", self.blocks, 0)
        require(not isinstance(self.predicates, str), "predicates", self.predicates, "a sequence of names")
        object.__setattr__(self, "predicates", tuple(self.predicates))
        for name in self.predicates:
            vocabulary.frame(name)
        if len(self.predicates) != self.n_predicates:
            raise ValueError(f"predicates has {len(self.predicates)} names; n_predicates is {self.n_predicates}")


class Relational(RelationModel):
    """Features of two boxes, gated by the predicate's frame, and a network conditioned on the predicate."""

    kind = "relational"
    needs = ("boxes3d",)
    Config = RelationalConfig
    config: RelationalConfig
    gate: Tensor

    def __init__(self, config: RelationalConfig) -> None:
        super().__init__(config)
        n_own, n_seen = pair_features.count()
        self.own, self.seen = Scale([n_own]), Scale([n_seen])
        relative = [vocabulary.frame(name) == vocabulary.OBSERVER for name in config.predicates]
        self.register_buffer("gate", torch.tensor(relative, dtype=torch.float32)[:, None])
        features, n, width = n_own + n_seen, config.n_predicates, config.width
        self.choice = nn.Embedding(n, features)
        self.first = nn.Linear(features, width)
        self.shift = nn.Embedding(n, width)
        self.gain = nn.Embedding(n, width)
        self.blocks = nn.ModuleList(_Block(width, n) for _ in range(config.blocks))
        self.normal = nn.LayerNorm(width)
        self.head = nn.Embedding(n, width)
        self.bias = nn.Embedding(n, 1)
        nn.init.ones_(self.choice.weight)
        for table in (self.head, self.bias):
            nn.init.normal_(table.weight, std=0.02)
        for table in (self.shift, self.gain):
            nn.init.normal_(table.weight, std=0.1)

    @classmethod
    def settings_for(cls, predicates: Sequence[str], objects: Sequence[str]) -> dict[str, Any]:
        return super().settings_for(predicates, objects) | {"predicates": list(predicates)}

    def fit_scale(self, inputs: Inputs) -> None:
        super().fit_scale(inputs)
        own, seen = _in_parts(inputs)
        with torch.no_grad():
            self.own.fit(own)
            self.seen.fit(seen)

    def prepare(self, inputs: Inputs) -> dict[str, Tensor]:
        return super().prepare(inputs) | dict(zip(_FEATURES, _in_parts(inputs), strict=True))

    def judge(self, inputs: Inputs) -> Tensor:
        which = inputs["predicate"]
        own, seen = _features(inputs)
        own, seen = self.own(own), self.seen(seen) * self.gate[which]
        x = _MOST * (torch.cat([own, seen], dim=1) / _MOST).tanh()
        state = self.first(x * self.choice(which)) * (1 + self.gain(which)) + self.shift(which)
        for block in self.blocks:
            state = block(state, which)
        state = self.normal(state)
        return (self.head(which) * state).sum(1) + self.bias(which).squeeze(1)


def _features(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """Those that no observer alters, and the observer's; prepared or computed."""
    if all(name in inputs for name in _FEATURES):
        return inputs[_FEATURES[0]], inputs[_FEATURES[1]]
    pair = pair_features.Pair.of(inputs["boxes3d"], inputs["up"], inputs["kinds"])
    return pair_features.own(pair), pair_features.seen(pair)


def _in_parts(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """The same of many samples, some at a time, without gradients."""
    size = len(inputs["predicate"])
    with torch.no_grad():
        starts = range(0, max(size, 1), _AT_ONCE)
        parts = [_features({name: x[i : i + _AT_ONCE] for name, x in inputs.items()}) for i in starts]
    own, seen = (torch.cat(x) for x in zip(*parts, strict=True))
    return own, seen


class _Block(nn.Module):
    """A residual layer with a shift for each predicate."""

    def __init__(self, width: int, n_predicates: int) -> None:
        super().__init__()
        self.normal = nn.LayerNorm(width)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.shift = nn.Embedding(n_predicates, width)
        nn.init.normal_(self.shift.weight, std=0.1)

    def forward(self, x: Tensor, which: Tensor) -> Tensor:
        hidden = nn.functional.silu(self.first(self.normal(x)) + self.shift(which))
        return x + self.second(hidden)
