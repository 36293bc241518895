"""The published model that sees two boxes in the picture, which beat the published models of pictures."""

from __future__ import annotations

from torch import Tensor

from reward_models.models.relations.base import OBJECT, SUBJECT, Inputs, RelationModel, RelationModelConfig
from reward_models.models.relations.layers import ThreeBranches, one_hot


class Boxes2D(RelationModel):
    """Two boxes and the predicate; 45,313 weights for 30 predicates."""

    kind = "boxes2d"
    needs = ("boxes2d",)
    published_weights = 45_313

    def __init__(self, config: RelationModelConfig) -> None:
        super().__init__(config)
        self.network = ThreeBranches(4, config.n_predicates)

    def judge(self, inputs: Inputs) -> Tensor:
        boxes = inputs["boxes2d"]
        predicate = one_hot(inputs["predicate"], self.config.n_predicates, boxes)
        return self.network(boxes[:, SUBJECT], boxes[:, OBJECT], predicate)
