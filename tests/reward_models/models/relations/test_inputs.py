"""Samples and scenes as tensors: the same numbers either way, in the published order and units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from reward_models import models
from reward_models.models.relations.base import BOTTOM, BOX_CENTER, BOX_HALF, BOX_ROTATION, LEFT, NEEDS, RIGHT, TOP
from reward_models.models.relations.inputs import KINDS, LEAST_HALF, from_samples, from_scenes
from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import cameras
from spatialsim_env.relations.rel3d import vectors
from spatialsim_env.relations.rel3d.published import RelationSamples
from spatialsim_env.relations.scene import RoomError

SIZE = 5
RNG = np.random.default_rng(3)
SCENES = scene.objects(
    RNG.uniform(-1, 1, (SIZE, 2, 3)),
    scene.yaw_rotation(RNG.uniform(0, 360, (SIZE, 2))),
    RNG.uniform(0.1, 0.5, (SIZE, 2, 3)),
    RNG.integers(0, len(scene.KINDS), (SIZE, 2)),
)
OBSERVERS = scene.observers(RNG.uniform(2, 3, (SIZE, 3)), RNG.uniform(-0.2, 0.2, (SIZE, 3)))
BOXES = np.array([[[320, 180, 640, 90], [0, 0, 1280, 720]]] * SIZE, np.float32)  # left, top, width, height


@pytest.fixture
def samples():
    return RelationSamples(
        predicate=np.arange(SIZE),
        subject=np.arange(SIZE) + 10,
        object=np.arange(SIZE) + 20,
        label=np.ones(SIZE, bool),
        boxes=BOXES,
        picture_size=np.full((SIZE, 2), (1280, 720), np.int32),
        vectors=vectors.all_of(SCENES, OBSERVERS),
        pair=np.full(SIZE, -1),
        rgb=("a",) * SIZE,
        depth=("b",) * SIZE,
        cameras=cameras.camera_infos(OBSERVERS),
        extra={KINDS: scene.kind(SCENES)},
    )


def test_samples_and_scenes_give_the_same(samples):
    needs = ("names", "boxes2d", "raw", "aligned", "boxes3d")
    shares = BOXES / np.array([1280, 720, 1280, 720])
    names = np.stack([samples.subject, samples.object], axis=1)
    first = from_samples(samples, needs)
    second = from_scenes(SCENES, OBSERVERS, samples.predicate, needs, names=names, boxes=shares)
    assert first.keys() == second.keys()
    for name, x in first.items():
        whole = name in ("predicate", *NEEDS["names"])
        assert x.dtype == second[name].dtype == (torch.int64 if whole else torch.float32)
        assert torch.allclose(x, second[name], atol=1e-5), name


def test_every_model_is_fed(samples):
    pictures = np.zeros((SIZE, 32, 32, 3), np.uint8)
    small = {"vip_cnn": {"pool": 1}, "mlp_aligned": {"width": 8}}
    for kind, model in models.RELATIONS.items():
        pixels = {"pixels": 32} if "picture" in model.needs else {}
        made = models.create(kind, small.get(kind, {}) | pixels).eval()
        inputs = from_samples(samples, model.needs, pictures=pictures)
        made.fit_scale(inputs)
        assert made(inputs).shape == (SIZE,), kind


def test_boxes_in_the_picture(samples):
    boxes = from_samples(samples, ("boxes2d",))["boxes2d"]
    first = dict(zip((TOP, BOTTOM, LEFT, RIGHT), boxes[0, 0][[TOP, BOTTOM, LEFT, RIGHT]].tolist(), strict=True))
    assert first == {TOP: 0.25, BOTTOM: 0.375, LEFT: 0.25, RIGHT: 0.75}
    assert boxes[0, 1][[TOP, BOTTOM, LEFT, RIGHT]].tolist() == [0, 1, 0, 1]


def test_boxes_in_space(samples):
    """Back in the world by the observer's own axes; the third component of up is how much the camera looks down."""
    found = from_samples(samples, ("boxes3d",))
    eye = scene.eye_rotation(OBSERVERS)
    boxes = found["boxes3d"].double().numpy()
    center = np.einsum("bij,bkj->bki", eye, boxes[..., BOX_CENTER]) + OBSERVERS[:, None, scene.EYE]
    turn = eye[:, None] @ boxes[..., BOX_ROTATION].reshape(SIZE, 2, 3, 3)
    assert np.allclose(center, SCENES[..., scene.CENTER], atol=1e-5)
    assert np.allclose(turn, scene.rotation(SCENES), atol=1e-5)
    assert np.allclose(boxes[..., BOX_HALF], SCENES[..., scene.HALF], atol=1e-6)
    assert np.allclose(np.einsum("bij,bj->bi", eye, found["up"].double().numpy()), [0, 0, 1], atol=1e-6)
    assert np.array_equal(found["kinds"].argmax(-1).numpy(), scene.kind(SCENES))


def test_what_published_files_do_not_tell(samples):
    found = from_samples(replace(samples, extra={}, cameras=(None,) * SIZE), ("boxes3d",))
    assert not found["kinds"].any()
    assert torch.equal(found["up"], torch.tensor([[0.0, 1.0, 0.0]]).expand(SIZE, 3))


def test_pictures_are_shares(samples):
    pictures = np.zeros((SIZE, 4, 4, 3), np.uint8)
    pictures[2, 1, 3] = (255, 51, 0)
    found = from_samples(samples, ("picture",), pictures=pictures)["picture"]
    assert found.shape == (SIZE, 3, 4, 4)
    assert torch.allclose(found[2, :, 1, 3], torch.tensor([1.0, 0.2, 0.0]))
    assert torch.isclose(found.sum(), torch.tensor(1.2))


def test_one_predicate_for_all_and_float64():
    found = from_scenes(SCENES, OBSERVERS, 7, ("boxes3d",), dtype=torch.float64)
    assert found["predicate"].tolist() == [7] * SIZE
    assert found["boxes3d"].dtype == found["up"].dtype == torch.float64


def test_tensors_have_memory_of_their_own(samples):
    found = from_samples(samples, ("aligned",))
    found["predicate"][0] = 9
    assert samples.predicate[0] == 0


def test_refusals(samples):
    with pytest.raises(ValueError, match=r"needs has 'depth'; accepted are names, boxes2d"):
        from_samples(samples, ("names", "depth"))
    with pytest.raises(ValueError, match="pictures are needed"):
        from_samples(samples, ("picture",))
    for wrong in (np.zeros((SIZE, 4, 4, 3)), np.zeros((SIZE, 3, 4, 4), np.uint8), np.zeros((2, 4, 4, 3), np.uint8)):
        with pytest.raises(ValueError, match=rf"accepted is \({SIZE}, S, S, 3\) of uint8"):
            from_samples(samples, ("picture",), pictures=wrong)
    with pytest.raises(ValueError, match="kinds have 0 to 9; accepted are 0 to 6"):
        from_samples(replace(samples, extra={KINDS: np.tile([0, 9], (SIZE, 1))}), ("boxes3d",))
    for name, need in (("names", "names"), ("boxes", "boxes2d")):
        with pytest.raises(ValueError, match=f"{name} are needed; give them as an array of shape"):
            from_scenes(SCENES, OBSERVERS, 0, (need,))
        with pytest.raises(ValueError, match=rf"{name} have shape \(3,\); accepted is"):
            from_scenes(SCENES, OBSERVERS, 0, (need,), **{name: np.zeros(3)})
    with pytest.raises(RoomError, match="axes that are not perpendicular unit vectors"):
        from_scenes(SCENES * 0, OBSERVERS, 0, ("aligned",))


def test_flat_boxes_have_a_least_size(samples):
    flat = {**samples.vectors, "aligned_absolute": samples.vectors["aligned_absolute"].copy()}
    flat["aligned_absolute"][:, 6:9] = 0
    found = from_samples(replace(samples, vectors=flat), ("boxes3d",))
    assert (found["boxes3d"][:, 0, 12:] == LEAST_HALF).all()
