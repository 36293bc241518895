"""The published model that knows the three words and nothing else: at chance where pairs are minimally contrastive."""

from __future__ import annotations

from torch import Tensor

from reward_models.models.relations.base import Inputs, RelationModel, RelationModelConfig
from reward_models.models.relations.layers import ThreeBranches, one_hot


class LanguageOnly(RelationModel):
    """Categories of subject and object, and the predicate; 77,569 weights for 30 predicates and 67 categories."""

    kind = "language_only"
    needs = ("names",)
    published_weights = 77_569

    def __init__(self, config: RelationModelConfig) -> None:
        super().__init__(config)
        self.network = ThreeBranches(config.n_objects, config.n_predicates)

    def judge(self, inputs: Inputs) -> Tensor:
        like = next(self.parameters())
        subject, object = (one_hot(inputs[name], self.config.n_objects, like) for name in ("subject", "object"))
        return self.network(subject, object, one_hot(inputs["predicate"], self.config.n_predicates, like))
