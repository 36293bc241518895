"""What shapes add to the relational model's features, against the geometry of ``spatialsim_env`` and by hand."""

from __future__ import annotations

import numpy as np
import torch
from scipy.spatial.transform import Rotation

from reward_models.models.relations import pair_features, shape_features
from reward_models.models.relations.inputs import from_scenes
from reward_models.models.relations.pair_features import Pair
from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import boxes

INDEX = {name: index for index, name in enumerate(scene.KIND_NAMES)}


def pair_of(scenes: np.ndarray) -> Pair:
    looks = scene.observers(np.tile([3.0, 0.0, 1.0], (len(scenes), 1)), np.zeros((len(scenes), 3)))
    inputs = from_scenes(scenes, looks, 0, ("boxes3d",), dtype=torch.float64)
    return Pair.of(inputs["boxes3d"], inputs["up"], inputs["kinds"])


def one_hot(*names: str) -> torch.Tensor:
    return torch.eye(len(scene.KINDS), dtype=torch.float64)[[INDEX[name] for name in names]]


def test_parts_apart():
    """At most the true distance of the shapes, positive where they are apart, and minus the depth where they meet."""
    rng = np.random.default_rng(2)
    size = 400
    turn = Rotation.random(2 * size, random_state=rng).as_matrix().reshape(size, 2, 3, 3)
    kinds = rng.integers(0, len(scene.KINDS), (size, 2))
    scenes = scene.objects(rng.uniform(-0.6, 0.6, (size, 2, 3)), turn, rng.uniform(0.1, 0.5, (size, 2, 3)), kinds)
    pair = pair_of(scenes)
    found = (pair_features.separations(pair)[:, 6].sinh() * pair.unit[:, 0]).numpy()  # undo asinh(x / L)
    apart, true = boxes.gap(scenes) > 0, boxes.gap(scenes)
    assert 50 < apart.sum() < 350
    assert (found[apart] <= true[apart] + 1e-6).all()
    assert np.array_equal(found > 1e-9, apart)
    assert np.allclose(-found[~apart], boxes.penetration(scenes)[~apart], atol=1e-6)


def test_an_unknown_shape_is_a_block():
    unknown = torch.zeros(1, len(scene.KINDS), dtype=torch.float64)
    for name in ("parts", "cavity", "opening", "tip"):
        assert torch.equal(shape_features.of_kinds(name, unknown), shape_features.of_kinds(name, one_hot("block")))
    assert not shape_features.of_kinds("tip", unknown).any()


def test_tips():
    turns = torch.eye(3, dtype=torch.float64).expand(4, 3, 3)
    tips = shape_features.tip(turns, one_hot("stick", "spire", "block", "ring"))
    assert torch.equal(tips, torch.tensor([[1.0, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]).double())


def test_cavity():
    """Points in the cavity, in the wall and outside: a container's wall takes 0.24 of each half size, its floor too."""
    points = torch.tensor([[[0.0, 0, 0]], [[0.9, 0, 0]], [[0, 0, -0.9]], [[0, 0, 1.5]]]).double()
    half = torch.ones(4, 3, dtype=torch.float64)
    sharp = torch.full((4, 1, 1), 1e-3, dtype=torch.float64)
    hollow = shape_features.in_cavity(points, half, one_hot(*["container"] * 4), sharp)
    solid = shape_features.in_cavity(points, half, one_hot(*["block"] * 4), sharp)
    assert torch.allclose(hollow[:, 0], torch.tensor([1.0, 0, 0, 0]).double(), atol=1e-6)
    assert torch.allclose(solid[:, 0], torch.tensor([1.0, 1, 1, 0]).double(), atol=1e-6)


def test_through_an_opening():
    """A rod along the hole of a ring, off its middle by half the hole, never comes nearer than half its half size."""
    hole = 1 - 2 * scene.WALL
    place = torch.tensor([[0.5 * hole, 0, 0]], dtype=torch.float64)
    arms = torch.diag(torch.tensor([0.1, 0.1, 3.0])).double()[None]
    near = shape_features.through_opening(place, arms, torch.ones(1, 3, dtype=torch.float64), one_hot("ring"))
    assert torch.allclose(near[0, 2], torch.tensor(0.5).double())
    assert near[0, 0] < 0.5  # the short axis along x reaches further in, and comes nearer
