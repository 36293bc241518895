"""ResNet-18 (He et al. 2016) on pictures of scenes, the paper's image baseline (section 3.2); torchvision's network.

It is not pretrained, and its 1000 outputs of ImageNet stay, in front of a linear head. All pictures show the same
window, ``arrangements.pictures.WINDOW``: what lies beyond it the network does not see, and of objects that overlap
it sees the later one, so the order of the objects counts.

The network is fed 1 minus the share of each colour, so that the white background is 0, as its own padding is. Fed
the shares, the first means are many deviations from 0; in a run of a few hundred steps the running statistics of
batch normalisation then lag too far behind the weights for evaluation.

Batch normalisation makes the logits of a row depend on its batch while the network is in training mode. In evaluation
mode they do not.

torchvision is imported when a network is made, not before.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reward_models.models.base import ModelConfig, RewardModel
from spatialsim_env.checks import require_whole

OUTPUTS = 1000  # of the standard ResNet-18


@dataclass(frozen=True)
class PictureConfig(ModelConfig):
    """Settings of the networks that see pictures."""

    pixels: int = 224  # side of a picture

    def __post_init__(self) -> None:
        require_whole("pixels", self.pixels, 32)  # below it the last stage, a 32nd of the side, is less than a pixel


class _PictureModel(RewardModel):
    """Takes pictures (B, 3, pixels, pixels) of levels 0..255 where other models take scenes."""

    set_invariant = False
    sees_pictures = True
    Config = PictureConfig

    def __init__(self, config: PictureConfig) -> None:
        super().__init__(config)
        self.pixels = config.pixels
        self.network = _resnet18()
        self.head = nn.Linear(OUTPUTS * (2 if self.two_inputs else 1), 2)

    def forward(self, target: Tensor, reference: Tensor | None = None) -> Tensor:
        """Logits (1, B, 2) of pictures of the scenes, of any dtype.

        Both pictures of a pair go through the network in one batch, and so share its statistics in training.

        Raises:
            ValueError: pictures of another size, or scenes.
        """
        if not self.two_inputs:
            return self.head(self._features(target))[None]
        assert reference is not None
        first, second = self._features(torch.cat([target, reference])).chunk(2)
        return self.head(torch.cat([first, second], dim=-1))[None]

    def _features(self, pictures: Tensor) -> Tensor:
        """(B, 3, pixels, pixels) -> (B, 1000)."""
        side = self.pixels
        if pictures.shape[1:] != (3, side, side):
            shape = " x ".join(map(str, pictures.shape))
            raise ValueError(f"{self.kind} is given {shape}; accepted are pictures B x 3 x {side} x {side}")
        ink = 1 - pictures.to(self.head.weight.dtype) / 255
        return self.network(ink.contiguous(memory_format=torch.channels_last))  # the faster layout on CPUs


class SingleResNet(_PictureModel):
    """ResNet-18 for Identification; 11,691,514 weights."""

    kind = "resnet18_single"
    two_inputs = False


class ResNet(_PictureModel):
    """ResNet-18 for Discrimination, the same network for both pictures; 11,693,514 weights."""

    kind = "resnet18"
    two_inputs = True


def _resnet18() -> nn.Module:
    try:
        from torchvision.models import resnet18
    except ImportError as error:
        raise ImportError('a ResNet needs torchvision: pip install "spatialsim-env[learn,render]"') from error
    return resnet18()
