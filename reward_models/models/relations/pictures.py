"""Parts of the four published models of pictures: the picture's normalisation, ResNet-18, and cuts of boxes from it.

The network is torchvision's, from random weights unless ``start_from`` is called; torchvision is imported when a
network is made, not before. Boxes are cut by torchvision's RoI align in place of the authors' loops over samples, which
round to whole pixels: the weights are as many, and places between pixels count.

Means and deviations of the three colours are those of ImageNet until ``fit_scale`` takes them from training pictures.
Batch normalisation makes a logit depend on its batch in training mode, and not in evaluation mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from reward_models.models.relations.base import (
    BOTTOM,
    LEFT,
    OBJECT,
    RIGHT,
    SUBJECT,
    TOP,
    Inputs,
    RelationModel,
    RelationModelConfig,
)
from reward_models.models.relations.layers import Scale
from spatialsim_env.checks import require_whole

IMAGENET = "imagenet"  # name of torchvision's weights; they are downloaded
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's colours
_LEAST_PIXELS = 32  # the last stage has a 32nd of the side
_STEM = ("conv1", "bn1", "relu", "maxpool")
STAGES = ("layer1", "layer2", "layer3", "layer4")
CHANNELS = 512  # of the last stage


@dataclass(frozen=True)
class RelationPictureConfig(RelationModelConfig):
    """Settings of the models that see pictures."""

    pixels: int = 224  # side of a picture

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("pixels", self.pixels, _LEAST_PIXELS)


class PictureModel(RelationModel):
    """A model that sees square pictures, with boxes relative to them."""

    Config = RelationPictureConfig
    config: RelationPictureConfig

    def __init__(self, config: RelationPictureConfig) -> None:
        super().__init__(config)
        self.scale = Scale([3, 1, 1])
        self.scale.mean.copy_(torch.tensor(_MEAN)[:, None, None])
        self.scale.deviation.copy_(torch.tensor(_DEVIATION)[:, None, None])

    def check(self, inputs: Inputs) -> None:
        super().check(inputs)
        shape, side = tuple(inputs["picture"].shape), self.config.pixels
        if shape[2:] != (side, side):
            raise ValueError(f"{self.kind}: picture has shape {shape}; accepted is (any, 3, {side}, {side})")

    def fit_scale(self, inputs: Inputs) -> None:
        super().fit_scale(inputs)
        with torch.no_grad():
            self.scale.fit(inputs["picture"], over=(0, 2, 3))

    def start_from(self, weights: str | Path) -> None:
        """Take the weights of a ResNet-18 trained elsewhere for every stage of it that is in this model.

        Args:
            weights: "imagenet" for torchvision's (downloaded at the first use), or a file of a state dictionary,
                safetensors or written by ``torch.save``, with the names of torchvision's ResNet-18.

        Raises:
            OSError: the file cannot be read.
            ValueError: it does not hold the weights of a ResNet-18.
        """
        source = _state(weights)
        for own, stage in self.stages():
            part = {name.removeprefix(f"{stage}."): x for name, x in source.items() if name.startswith(f"{stage}.")}
            try:
                own.load_state_dict(part)
            except RuntimeError as error:
                raise ValueError(f"{weights} does not hold {stage} of a ResNet-18: {error}") from None

    def stages(self) -> list[tuple[nn.Module, str]]:
        """The parts of a ResNet-18 in this model and their names in torchvision's; one may be there twice."""
        raise NotImplementedError


def _state(weights: str | Path) -> dict[str, Tensor]:
    if weights == IMAGENET:
        from torchvision.models import ResNet18_Weights

        return dict(ResNet18_Weights.IMAGENET1K_V1.get_state_dict(progress=False))
    path = Path(weights)
    if path.suffix == ".safetensors":
        import safetensors.torch

        return safetensors.torch.load_file(path)
    state: Any = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict):
        raise ValueError(f"{path} holds a {type(state).__name__}; accepted is a state dictionary")
    return state


def resnet18() -> Any:
    """torchvision's ResNet-18 with random weights.

    Raises:
        ImportError: torchvision is not installed.
    """
    try:
        from torchvision.models import resnet18 as build
    except ImportError as error:
        raise ImportError('a ResNet needs torchvision: pip install "spatialsim-env[learn]"') from error
    return build(weights=None)


def trunk(network: Any, last: str = STAGES[-1]) -> nn.Sequential:
    """The convolutions of a ResNet-18 up to a stage, as (B, 3, S, S) -> (B, channels, S / 32, S / 32) at the last."""
    names = (*_STEM, *STAGES[: STAGES.index(last) + 1])
    parts = nn.Sequential()
    for name in names:
        parts.add_module(name, getattr(network, name))
    return parts


def parts_of(sequence: nn.Module) -> list[tuple[nn.Module, str]]:
    """The named parts with weights of what ``trunk`` returned."""
    return [(part, name) for name, part in sequence.named_children() if len(part.state_dict())]


def union(boxes: Tensor) -> Tensor:
    """The least boxes (B, 4) around both of (B, 2, 4)."""
    least, most = boxes.amin(1), boxes.amax(1)
    return torch.stack([least[:, TOP], most[:, BOTTOM], least[:, LEFT], most[:, RIGHT]], dim=1)


def crop(maps: Tensor, boxes: Tensor, side: int) -> Tensor:
    """Cut (B, 4) out of maps (B, C, H, W), one box each: (B, C, side, side), means of RoI align.

    A box that is outside, or without an extent, gives what is nearest to it.
    """
    from torchvision.ops import roi_align

    height, width = maps.shape[2:]
    factors = maps.new_tensor([width, height, width, height])
    first, last = (boxes[:, ends].to(maps.dtype).clamp(0, 1) for ends in ([LEFT, TOP], [RIGHT, BOTTOM]))
    places = torch.cat([first, torch.maximum(first, last)], dim=1) * factors
    rows = torch.arange(len(boxes), device=maps.device, dtype=maps.dtype)[:, None]
    return roi_align(maps, torch.cat([rows, places], dim=1), side, sampling_ratio=2, aligned=True)


def each(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """The subject's and the object's box, (B, 4) each, of (B, 2, 4)."""
    return boxes[:, SUBJECT], boxes[:, OBJECT]
