"""The graph convolution of Kipf and Welling (2016) as the paper uses it (section 3.2; widths from the authors' code).

On a complete graph with self loops, symmetric normalisation weighs every pair by 1 / n: each object receives the
same mean over the scene, and nothing in front of the head is nonlinear. The network sees the mean of the objects'
features and their number. It cannot see an arrangement.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from reward_models.models.branches import Branch, OneBranch, RoundsConfig, TwoBranches
from reward_models.models.layers import Linear, present
from spatialsim_env.arrangements.scene import N_FEATURES

HIDDEN = 32


@dataclass(frozen=True)
class GCNConfig(RoundsConfig):
    """Settings of the network of two branches."""

    authors_projection: bool = False  # both branches use the first one's projection, the second's 352 weights none


@dataclass
class Mean:
    """A batch of complete graphs between two rounds. After a round all objects of a scene have the same features."""

    features: Tensor  # (B, 32), mean over the objects
    count: Tensor  # (B, 1), objects per scene


class GraphConvolution(Branch):
    """Every object becomes Linear(mean over the scene)."""

    width = HIDDEN

    def __init__(self) -> None:
        super().__init__()
        self.projection = Linear(N_FEATURES, HIDDEN)
        self.convolution = Linear(HIDDEN, HIDDEN)

    def begin(self, scenes: Tensor) -> Mean:
        held = present(scenes)[..., None]
        count = held.sum(-2).to(scenes.dtype)
        return Mean(self.projection((scenes * held).sum(-2) / count), count)

    def forward(self, state: Mean) -> Mean:
        return Mean(self.convolution(state.features), state.count)

    def summary(self, state: Mean) -> Tensor:
        return state.features * state.count


class SingleGCN(OneBranch):
    """Graph convolution for Identification; 2,530 weights."""

    kind = "gcn_single"
    hidden = (HIDDEN,)

    def make_branch(self) -> Branch:
        return GraphConvolution()


class GCN(TwoBranches):
    """Graph convolution for Discrimination; 4,962 weights."""

    kind = "gcn"
    hidden = (HIDDEN,)
    Config = GCNConfig

    def make_branch(self) -> Branch:
        return GraphConvolution()

    def begin(self, target: Tensor, reference: Tensor) -> list[Mean]:
        if getattr(self.config, "authors_projection", False):
            first = self.both[0]
            return [first.begin(target), first.begin(reference)]
        return super().begin(target, reference)
