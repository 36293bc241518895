"""Samples as tensors: all of them in memory, batches by index; pictures from files, cropped and coloured in training.

A relation model says what it ``needs``; ``inputs.from_samples`` makes it. Pictures are kept as bytes, each file once.
For learning they are read somewhat larger than the model sees them (256 for 224 pixels); each time a sample is used
a random part of it is cropped and its colours vary, and the boxes follow the crop. Otherwise they are read at the
model's size. Crops and colours are functions of (seed, epoch, batch).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reward_models.models.relations import inputs as model_inputs
from reward_models.models.relations.base import BOTTOM, LEFT, RIGHT, TOP
from reward_models.threads import one_thread
from spatialsim_env.relations.rel3d.published import RelationSamples
from spatialsim_env.streams import stream

PICTURE, BOXES = "picture", "boxes2d"
MARGIN = 256 / 224  # size of a picture for learning, of the size of its crop
JITTER = {"brightness": 0.1, "contrast": 0.1, "saturation": 0.1, "hue": 0.05}
PICTURES_AT_ONCE = 64
PICTURES_FOR_SCALE = 512
AT_ONCE = 4096


@dataclass(frozen=True)
class Columns:
    """Inputs of a model for N samples."""

    inputs: dict[str, Tensor]  # (N, ...) each on the model's device, without pictures
    pictures: Pictures | None
    device: torch.device

    @classmethod
    def of(
        cls,
        model: Any,
        samples: RelationSamples,
        device: torch.device | str,
        pictures: str | os.PathLike[str] | None = None,
        pixels: int = 224,
        *,
        learning: bool = False,
    ) -> Columns:
        """The columns that ``model.needs``.

        Args:
            pictures: folder of the pictures, by the path in the file or by their name alone.
            pixels: height and width of the pictures that the model sees.
            learning: pictures are cropped at random, and differ in colour each time.

        Raises:
            ValueError: the model sees pictures, and there is no folder of them.
            FileNotFoundError: a picture is missing.
        """
        device = torch.device(device)
        needs = tuple(name for name in model.needs if name != PICTURE)
        seen = None
        if PICTURE in model.needs:
            if pictures is None:
                raise ValueError(f"{model.kind} sees pictures; give the folder that they are in")
            seen = Pictures.read(Path(pictures), samples, pixels, learning)
        inputs = model_inputs.from_samples(samples, needs, device)
        return cls(model.prepare(inputs) if seen is None else inputs, seen, device)

    def __len__(self) -> int:
        return len(self.inputs["predicate"])

    def to_fit_scale(self, seed: int) -> dict[str, Tensor]:
        """Inputs of the model's ``fit_scale``: all samples; of those with pictures some, cropped as in training."""
        if self.pictures is None:
            return self.inputs
        return self.batch(stream(seed, "relations/scale").permutation(len(self))[:PICTURES_FOR_SCALE], seed, 0)

    def batch(self, rows: NDArray[np.int64], seed: int, epoch: int) -> dict[str, Tensor]:
        """The inputs of these samples, for learning."""
        index = torch.from_numpy(rows).to(self.device)
        inputs = {name: column[index] for name, column in self.inputs.items()}
        if self.pictures is None:
            return inputs
        rng = stream(seed, f"relations/crops/{epoch}/{rows[0]}")
        return inputs | self.pictures.crop(rows, int(rng.integers(2**31)), self.device)

    def parts(self) -> Iterator[dict[str, Tensor]]:
        """The inputs of all samples in their order, some at a time, for judging."""
        at_once = AT_ONCE if self.pictures is None else PICTURES_AT_ONCE
        for start in range(0, len(self), at_once):
            inputs = {name: column[start : start + at_once] for name, column in self.inputs.items()}
            if self.pictures is not None:
                rows = np.arange(start, min(start + at_once, len(self)))
                inputs[PICTURE] = self.pictures.whole(rows, self.device)
            yield inputs


@dataclass(frozen=True)
class Pictures:
    """The pictures of N samples."""

    stored: Tensor  # (U, 3, L, L) bytes, each file once
    place: Tensor  # (N,) of each sample's picture in ``stored``
    boxes: Tensor  # (N, 2, 4) float, of subject and object: left, top, right, bottom, as shares of the picture
    pixels: int  # height and width as the model sees them; L, or less for learning

    @classmethod
    def read(cls, folder: Path, samples: RelationSamples, pixels: int, learning: bool) -> Pictures:
        """Read the pictures of samples, squeezed to squares."""
        names = list(dict.fromkeys(samples.rgb))
        at = {name: place for place, name in enumerate(names)}
        size = round(pixels * MARGIN) if learning else pixels
        stored = torch.empty((len(names), 3, size, size), dtype=torch.uint8)
        for place, name in enumerate(names):
            stored[place] = _read(folder, name, size)
        near, extent = np.split(samples.boxes / np.tile(samples.picture_size, 2)[:, None], 2, axis=-1)
        boxes = torch.from_numpy(np.concatenate([near, near + extent], axis=-1)).float()
        return cls(stored, torch.tensor([at[name] for name in samples.rgb]), boxes, pixels)

    def whole(self, rows: NDArray[np.int64], device: torch.device) -> Tensor:
        """Pictures (B, 3, pixels, pixels) of samples in 0..1."""
        return self.stored[self.place[torch.from_numpy(rows)]].to(device).float() / 255

    def crop(self, rows: NDArray[np.int64], seed: int, device: torch.device) -> dict[str, Tensor]:
        """Random crops of the pictures of samples with their colours varied, and the boxes in them."""
        from torchvision import tv_tensors
        from torchvision.transforms import v2

        vary = v2.Compose([v2.RandomCrop(self.pixels), v2.ColorJitter(**JITTER), v2.ToDtype(torch.float32, scale=True)])
        index = torch.from_numpy(rows)
        size = self.stored.shape[-1]
        pictures, boxes = [], []
        with torch.random.fork_rng(devices=[]), one_thread():
            torch.manual_seed(seed)
            for picture, box in zip(self.stored[self.place[index]], self.boxes[index] * size, strict=True):
                boxed = tv_tensors.BoundingBoxes(box, format="XYXY", canvas_size=(size, size))
                cut, inside = vary(tv_tensors.Image(picture), boxed)
                pictures.append(cut.as_subclass(Tensor))
                boxes.append(inside.as_subclass(Tensor))
        left, top, right, bottom = (torch.stack(boxes) / self.pixels).unbind(-1)
        edges = {TOP: top, BOTTOM: bottom, LEFT: left, RIGHT: right}
        ordered = torch.stack([edges[edge] for edge in sorted(edges)], dim=-1)
        return {PICTURE: torch.stack(pictures).to(device), BOXES: ordered.to(device)}


def _read(folder: Path, name: str, size: int) -> Tensor:
    """A picture (3, size, size) in bytes, by its path within the folder or by its name alone."""
    from PIL import Image

    places: Sequence[Path] = (folder / name, folder / Path(name).name)
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise FileNotFoundError(f"no picture {places[0]}, nor {places[1]}; accepted is the folder that pictures are in")
    with Image.open(file) as picture:
        squeezed = picture.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(squeezed)).permute(2, 0, 1)
