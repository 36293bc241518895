"""ViP-CNN (Li et al. 2017) as Rel3D's authors adapted it: objects and phrase send each other messages.

Published weights: 65,778,914; the numbers of this network agree layer by layer at 7 x 7 RoI pooling.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from reward_models.models.relations.base import Inputs
from reward_models.models.relations.layers import select_queried
from reward_models.models.relations.pictures import (
    CHANNELS,
    STAGES,
    PictureModel,
    RelationPictureConfig,
    crop,
    each,
    parts_of,
    resnet18,
    trunk,
    union,
)
from spatialsim_env.checks import require_whole

_SENT = 128  # channels of the messages between maps


@dataclass(frozen=True)
class VipConfig(RelationPictureConfig):
    """Settings of ViP-CNN."""

    pool: int = 7  # side of what a box is pooled to

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("pool", self.pool)


class VipCNN(PictureModel):
    """A ResNet-18 to its third stage, two copies of the fourth, messages before and after RoI pooling."""

    kind = "vip_cnn"
    needs = ("boxes2d", "picture")
    published_weights = 65_778_914
    Config = VipConfig
    config: VipConfig

    def __init__(self, config: VipConfig) -> None:
        super().__init__(config)
        network = resnet18()
        self.trunk = trunk(network, STAGES[-2])
        self.objects = getattr(network, STAGES[-1])
        self.phrase = copy.deepcopy(self.objects)
        self.maps = _MapMessages()
        self.vectors = _VectorMessages(config.pool)
        self.head = nn.Linear(self.vectors.width, config.n_predicates)

    def stages(self) -> list[tuple[nn.Module, str]]:
        return [*parts_of(self.trunk), (self.objects, STAGES[-1]), (self.phrase, STAGES[-1])]

    def judge(self, inputs: Inputs) -> Tensor:
        shared = self.trunk(self.scale(inputs["picture"]))
        boxes = inputs["boxes2d"]
        maps = self.maps(self.objects(shared), self.phrase(shared))
        places = (*each(boxes), union(boxes))
        pooled = [crop(x, box, self.config.pool).flatten(1) for x, box in zip(maps, places, strict=True)]
        return select_queried(self.head(self.vectors(*pooled)), inputs["predicate"])


def _conv(channels: int) -> nn.Conv2d:
    return nn.Conv2d(channels, _SENT, 3, padding=1)


class _MapMessages(nn.Module):
    """Objects tell the phrase, then the phrase tells subject and object; each keeps both states."""

    def __init__(self) -> None:
        super().__init__()
        self.objects, self.phrase = _conv(CHANNELS), _conv(CHANNELS)
        self.to_phrase, self.to_subject, self.to_object = _conv(_SENT), _conv(_SENT), _conv(_SENT)
        names = ("objects", "phrase", "phrase_alone", "subject", "object")
        self.normal = nn.ModuleDict({name: nn.BatchNorm2d(_SENT) for name in names})

    def _done(self, name: str, x: Tensor) -> Tensor:
        return F.relu(self.normal[name](x))

    def forward(self, objects: Tensor, phrase: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        objects, phrase = self.objects(objects), self.phrase(phrase)
        both = self._done("objects", objects)
        updated = self._done("phrase", phrase + self.to_phrase(both))
        alone = self._done("phrase_alone", phrase)
        subject = self._done("subject", objects + self.to_subject(alone))
        object = self._done("object", objects + self.to_object(alone))
        return torch.cat([both, subject], 1), torch.cat([both, object], 1), torch.cat([updated, alone], 1)


class _VectorMessages(nn.Module):
    """Pooled subject and object tell the pooled phrase, which is the answer."""

    def __init__(self, pool: int) -> None:
        super().__init__()
        cells = pool**2
        read, hidden, self.width = 2 * _SENT * cells, 32 * cells, 4 * cells
        self.objects, self.phrase = nn.Linear(read, hidden), nn.Linear(read, hidden)
        self.from_subject, self.from_object = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.normal = nn.ModuleDict({name: nn.BatchNorm1d(hidden) for name in ("subject", "object", "phrase")})
        self.out = nn.Sequential(nn.Linear(hidden, self.width), nn.BatchNorm1d(self.width), nn.ReLU())

    def forward(self, subject: Tensor, object: Tensor, phrase: Tensor) -> Tensor:
        subject = F.relu(self.normal["subject"](self.objects(subject)))
        object = F.relu(self.normal["object"](self.objects(object)))
        updated = self.phrase(phrase) + self.from_subject(subject) + self.from_object(object)
        return self.out(F.relu(self.normal["phrase"](updated)))
