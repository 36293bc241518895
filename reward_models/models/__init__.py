"""The models, by name: of scenes in ``REGISTRY``, of relations in ``RELATIONS``. A new one is a file and a line."""

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
from reward_models.models.relations.base import RelationModel
from reward_models.models.relations.boxes2d import Boxes2D
from reward_models.models.relations.drnet import DRNet
from reward_models.models.relations.language_only import LanguageOnly
from reward_models.models.relations.mlp import AlignedMLP, RawMLP
from reward_models.models.relations.ppr_fcn import PPRFCN
from reward_models.models.relations.relational import Relational
from reward_models.models.relations.vip_cnn import VipCNN
from reward_models.models.relations.vtranse import VTransE
from reward_models.models.resnet import ResNet, SingleResNet

__all__ = ["REGISTRY", "RELATIONS", "ModelConfig", "RelationModel", "RewardModel", "configure", "create", "find"]

_ONE_INPUT = (SingleMPGNN, SingleRDS, SingleDeepSet, SingleGCN, SingleMLP, SingleResNet)
_TWO_INPUTS = (MPGNN, ConditionedMPGNN, RDS, DeepSet, GCN, MLP, GraphMatching, Matching, ResNet)

REGISTRY: dict[str, type[RewardModel]] = {model.kind: model for model in (*_ONE_INPUT, *_TWO_INPUTS)}

_ON_WORDS_AND_BOXES = (LanguageOnly, Boxes2D, RawMLP, AlignedMLP, Relational)
_ON_PICTURES = (DRNet, VTransE, VipCNN, PPRFCN)

RELATIONS: dict[str, type[RelationModel]] = {model.kind: model for model in (*_ON_WORDS_AND_BOXES, *_ON_PICTURES)}


def find(kind: str) -> type[RewardModel] | type[RelationModel] | None:
    """The class of a model of either registry; None where there is none of this name."""
    return REGISTRY.get(kind) or RELATIONS.get(kind)


def configure(kind: str, settings: Mapping[str, Any] | None = None) -> ModelConfig:
    """The checked settings of a model.

    Raises:
        ValueError: an unknown kind or setting, or a value that is not accepted.
    """
    model = find(kind)
    if model is None:
        raise ValueError(f"model {kind!r} is unknown; accepted are {', '.join([*REGISTRY, *RELATIONS])}")
    try:
        return model.Config(**(settings or {}))
    except TypeError:
        accepted = ", ".join(model.Config.__dataclass_fields__) or "none"
        raise ValueError(f"model {kind!r} has no settings {sorted(settings or {})}; accepted are {accepted}") from None


def create(kind: str, settings: Mapping[str, Any] | None = None, seed: int = 0) -> Any:
    """A new model with weights drawn from ``seed``; torch's own random state stays as it was.

    Returns:
        A RewardModel or a RelationModel, as the kind is in ``REGISTRY`` or in ``RELATIONS``.

    Raises:
        ValueError: as ``configure``.
    """
    config = configure(kind, settings)
    model: Any = find(kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return model(config)
