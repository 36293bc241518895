"""Compiled scorers of the models that have one."""

from __future__ import annotations

from reward_models.models.base import RewardModel
from reward_models.models.kernels import matching_compiled, mpgnn_compiled
from reward_models.models.kernels.compiled import Scorer
from reward_models.models.kernels.lanes import LANES
from reward_models.models.matching import Matching, MatchingConfig
from reward_models.models.mpgnn import MPGNN, SingleMPGNN


def scorer_of(model: RewardModel) -> Scorer | None:
    """Make the compiled scorer of a model's present weights; None if its kind has no scorer, or it is too wide."""
    if isinstance(model, MPGNN):
        return mpgnn_compiled.scorer(model) if model.both[0].width <= LANES else None
    if isinstance(model, SingleMPGNN):
        return mpgnn_compiled.scorer(model) if model.branch.width <= LANES else None
    if isinstance(model, Matching):
        config = model.config
        assert isinstance(config, MatchingConfig)
        return matching_compiled.scorer(model) if max(config.hidden, config.features) <= LANES else None
    return None
