"""The models, by name. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from reward_models.models.base import ModelConfig, RewardModel
from reward_models.models.deep_set import RDS, DeepSet, SingleDeepSet, SingleRDS
from reward_models.models.flat import MLP, SingleMLP
from reward_models.models.gcn import GCN, SingleGCN
from reward_models.models.graph_matching import GraphMatching
from reward_models.models.matching import Matching
from reward_models.models.mpgnn import MPGNN, ConditionedMPGNN, SingleMPGNN
from reward_models.models.resnet import ResNet, SingleResNet

__all__ = ["REGISTRY", "ModelConfig", "RewardModel", "configure", "create"]

_ONE_INPUT = (SingleMPGNN, SingleRDS, SingleDeepSet, SingleGCN, SingleMLP, SingleResNet)
_TWO_INPUTS = (MPGNN, ConditionedMPGNN, RDS, DeepSet, GCN, MLP, GraphMatching, Matching, ResNet)

REGISTRY: dict[str, type[RewardModel]] = {model.kind: model for model in (*_ONE_INPUT, *_TWO_INPUTS)}


def configure(kind: str, settings: Mapping[str, Any] | None = None) -> ModelConfig:
    """The checked settings of a model.

    Raises:
        ValueError: an unknown kind or setting, or a value that is not accepted.
    """
    if kind not in REGISTRY:
        raise ValueError(f"model {kind!r} is unknown; accepted are {', '.join(REGISTRY)}")
    try:
        return REGISTRY[kind].Config(**(settings or {}))
    except TypeError:
        accepted = ", ".join(REGISTRY[kind].Config.__dataclass_fields__) or "none"
        raise ValueError(f"model {kind!r} has no settings {sorted(settings or {})}; accepted are {accepted}") from None


def create(kind: str, settings: Mapping[str, Any] | None = None, seed: int = 0) -> RewardModel:
    """A new model with weights drawn from ``seed``; torch's own random state stays as it was.

    Raises:
        ValueError: as ``configure``.
    """
    config = configure(kind, settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return REGISTRY[kind](config)
