"""Decision boundaries: a model's logits over the subject's places, beside the rule's margins. ``boundaries/MODEL.npz``.

Two scenes: a block on the floor and a small one that stands anywhere around it, seen from above (``PLANE``); and a slab
above the floor with a block anywhere over and under it, seen from its side (``HEIGHT``). In the first the object is
turned against the observer, so that its own directions and the observer's differ. The file of a model holds

    names                     (K,) predicates, those of PLANE, then those of HEIGHT
    heights                   (K,) whether it is of HEIGHT
    logits, margins           (K, N, N) of the model and of the rule; first the second coordinate, then the first
    first, second             (K, N) coordinates of the subject's centre, metres: along x and y, or along x and z

Only models that see poses or boxes have one: where pictures or words are needed, none is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_models.measuring import relation_accuracy
from reward_models.models.relations import inputs as model_inputs
from spatialsim_env.files import replace_file
from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import views
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.rel3d.published import Split

FOLDER = "boundaries"
N = 41  # places along each side
SEEN = ("raw", "aligned", "boxes3d", "boxes2d")  # what a model may need to have boundaries

BLOCK = scene.KIND_NAMES.index("block")
TURN = 35.0  # degrees, the object's front from the world's x
EYE = (-2.6, -2.2, 1.6)  # metres
REACH = 1.5  # metres, of the subject around the object
PLANE = (
    "in front of", "behind", "to the left of", "to the right of", "in front of (wrt you)", "behind (wrt you)",
    "to the left of (wrt you)", "to the right of (wrt you)", "near", "far from",
)  # fmt: skip
HEIGHT = ("on", "on top of", "over", "under", "below")
_OBJECT = (0.3, 0.2, 0.25)  # half sizes, metres
_SUBJECT = (0.12, 0.12, 0.12)
_PICTURE = (views.WIDTH, views.HEIGHT) * 2
_SLAB, _SLAB_AT = (0.4, 0.4, 0.06), 0.9


@dataclass(frozen=True)
class Boundaries:
    """A file of boundaries."""

    names: NDArray[np.str_]
    heights: NDArray[np.bool_]
    logits: NDArray[np.float32]
    margins: NDArray[np.float32]
    first: NDArray[np.float32]
    second: NDArray[np.float32]


def scenes(height: bool) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Scenes (N * N, 2, 19), observers (N * N, 9), and both coordinates (N,) of the subject."""
    first = np.linspace(-REACH, REACH, N)
    low = _SUBJECT[2]
    second = np.linspace(low, low + 2 * REACH, N) if height else first
    across, along = np.meshgrid(first, second)
    center = np.zeros((N * N, 2, 3))
    center[:, scene.SUBJECT, 0] = across.ravel()
    center[:, scene.SUBJECT, 2 if height else 1] = along.ravel()
    if not height:
        center[:, scene.SUBJECT, 2] = low
    center[:, scene.OBJECT, 2] = _SLAB_AT if height else _OBJECT[2]
    half = np.broadcast_to([_SUBJECT, _SLAB if height else _OBJECT], center.shape)
    turn = np.broadcast_to(scene.yaw_rotation([0.0, 0.0 if height else TURN]), (N * N, 2, 3, 3))
    shown = scene.objects(center, turn, half, np.full((N * N, 2), BLOCK))
    eye = scene.observers(EYE, (0.0, 0.0, _SLAB_AT if height else 0.0))
    return shown, np.broadcast_to(eye, (N * N, scene.N_OBSERVER)), first, second


def of_model(model: Any, split: Split) -> Boundaries | None:
    """Evaluate a model trained on a split along the boundaries; None if the model needs words or pictures."""
    if not set(model.needs) <= set(SEEN):
        return None
    index = {name: place for place, name in enumerate(split.predicates)}
    device = next(model.parameters()).device
    lists: dict[str, list[Any]] = {name: [] for name in Boundaries.__dataclass_fields__}
    for height, wanted in ((False, PLANE), (True, HEIGHT)):
        shown, observers, first, second = scenes(height)
        in_picture = views.boxes(shown, observers) / _PICTURE
        for name in (name for name in wanted if name in index):
            inputs = model_inputs.from_scenes(
                shown,
                observers,
                index[name],
                model.needs,
                boxes=in_picture,
                device=device,
            )
            lists["logits"].append(relation_accuracy.logits(model, [inputs]).reshape(N, N))
            lists["margins"].append(predicates.margins(shown, observers, [name])[:, 0].reshape(N, N))
            for key, value in (("names", name), ("heights", height), ("first", first), ("second", second)):
                lists[key].append(value)
    numbers = {key: np.array(lists[key], np.float32) for key in ("logits", "margins", "first", "second")}
    return Boundaries(names=np.array(lists["names"], np.str_), heights=np.array(lists["heights"], bool), **numbers)


def path_of(results: Path, variant: str) -> Path:
    """Return the path of a model's boundaries within the study."""
    return results / FOLDER / f"{variant}.npz"


def keep(results: Path, variant: str, model: Any, split: Split) -> None:
    """Write the boundaries of a model, unless the model needs words or pictures."""
    boundaries = of_model(model, split)
    if boundaries is None:
        return
    with replace_file(path_of(results, variant)) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **vars(boundaries))


def read(results: Path, variants: Sequence[str]) -> dict[str, Boundaries]:
    """Read the boundaries of these models, as far as their files exist.

    Raises:
        ValueError: one is damaged.
    """
    boundaries = {}
    for variant in variants:
        path = path_of(results, variant)
        if not path.exists():
            continue
        try:
            with np.load(path, allow_pickle=False) as file:
                boundaries[variant] = Boundaries(**file)
        except Exception as error:
            raise ValueError(f"{path} is damaged: {error}; remove it and the row of {variant}, seed 0") from error
    return boundaries
