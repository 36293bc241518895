"""The relational model: whose frame each predicate is in, and its features against geometry computed elsewhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from reward_models import models
from reward_models.models.relations import pair_features
from reward_models.models.relations.inputs import from_scenes
from reward_models.models.relations.pair_features import Pair
from spatialsim_env.relations import scene, vocabulary
from spatialsim_env.relations.geometry import boxes

N = len(vocabulary.PREDICATES)
SEEN = torch.tensor([vocabulary.frame(name) == vocabulary.OBSERVER for name in vocabulary.PREDICATES])


def scenes_of(size: int, seed: int = 0, kinds: bool = True) -> np.ndarray:
    """Scenes of boxes that are turned at will and near each other."""
    rng = np.random.default_rng(seed)
    turn = Rotation.random(2 * size, random_state=rng).as_matrix().reshape(size, 2, 3, 3)
    shapes = rng.integers(0, len(scene.KINDS), (size, 2)) if kinds else np.zeros((size, 2), int)
    return scene.objects(rng.uniform(-0.7, 0.7, (size, 2, 3)), turn, rng.uniform(0.05, 0.5, (size, 2, 3)), shapes)


def upright(center: list, half) -> np.ndarray:
    """Blocks along the world's axes at (B, 2, 3)."""
    center = np.asarray(center, np.float64)
    turn = np.broadcast_to(np.eye(3), (*center.shape, 3))
    return scene.objects(center, turn, np.broadcast_to(half, center.shape), np.zeros(center.shape[:2], int))


def observers_of(size: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, size)
    eye = np.stack([3 * np.cos(angle), 3 * np.sin(angle), rng.uniform(0.5, 3, size)], axis=-1)
    return scene.observers(eye, rng.uniform(-0.3, 0.3, (size, 3)))


def inputs_of(scenes: np.ndarray, observers: np.ndarray, predicate=0) -> dict[str, torch.Tensor]:
    return from_scenes(scenes, observers, predicate, ("boxes3d",), dtype=torch.float64)


def pair_of(scenes: np.ndarray, observers: np.ndarray) -> Pair:
    inputs = inputs_of(scenes, observers)
    return Pair.of(inputs["boxes3d"], inputs["up"], inputs["kinds"])


def logits(model, scenes: np.ndarray, observers: np.ndarray) -> torch.Tensor:
    """Of all predicates, (B, 30)."""
    with torch.no_grad():
        return torch.stack([model(inputs_of(scenes, observers, which)) for which in range(N)], dim=1)


def moved(scenes: np.ndarray, degrees: float, shift: tuple[float, float, float]) -> np.ndarray:
    """Turned about z, then moved."""
    turn = scene.yaw_rotation(degrees)
    center = scenes[..., scene.CENTER] @ turn.T + shift
    return scene.objects(center, turn @ scene.rotation(scenes), scenes[..., scene.HALF], scene.kind(scenes))


@pytest.fixture(scope="module")
def model():
    """A model whose scale is fitted to scenes, so that all features matter."""
    made = models.create("relational", seed=5).double().eval()
    made.fit_scale(inputs_of(scenes_of(500, 7), observers_of(500, 8)))
    return made


def test_only_the_observers_predicates_depend_on_who_looks(model):
    scenes = scenes_of(20)
    first, second = (logits(model, scenes, observers_of(20, seed)) for seed in (1, 2))
    assert torch.allclose(first[:, ~SEEN], second[:, ~SEEN], rtol=0, atol=1e-9)
    assert (first[:, SEEN] - second[:, SEEN]).abs().amax(0).min() > 1e-2


def test_moving_and_turning_the_whole_scene(model):
    """Seen from the same place: only what is said with respect to the observer changes. With the observer: nothing."""
    scenes, observers = scenes_of(20), observers_of(20)
    there = moved(scenes, 71.0, (0.3, -0.8, 0.4))
    before, after = logits(model, scenes, observers), logits(model, there, observers)
    assert torch.allclose(before[:, ~SEEN], after[:, ~SEEN], rtol=0, atol=1e-9)
    assert (before[:, SEEN] - after[:, SEEN]).abs().amax(0).min() > 1e-2
    eye = observers[:, scene.EYE] @ scene.yaw_rotation(71.0).T + (0.3, -0.8, 0.4)
    axes = [observers[:, part] @ scene.yaw_rotation(71.0).T for part in (scene.EYE_RIGHT, scene.EYE_UP)]
    with_it = logits(model, there, np.concatenate([eye, *axes], axis=-1))
    assert torch.allclose(before, with_it, rtol=0, atol=1e-9)


def test_gradients_do_not_pass_the_gate(model):
    """The features of the observer have no influence at all on other predicates, not even to first order."""
    own = torch.randn(N, model.own.mean.numel(), dtype=torch.float64)
    seen = torch.randn(N, model.seen.mean.numel(), dtype=torch.float64, requires_grad=True)
    gated = model.seen(seen) * model.gate[torch.arange(N)]
    (own.sum() + gated.sum()).backward()
    assert torch.equal(seen.grad.abs().sum(1) > 0, SEEN)


def test_frames_follow_a_files_own_order():
    words = ("behind (wrt you)", "behind", "near")
    made = models.create("relational", models.RELATIONS["relational"].settings_for(words, ("Ball",)))
    assert made.gate[:, 0].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("case", ["one point", "parallel", "straight above", "touching", "far", "flat"])
def test_gradients_are_finite_everywhere(model, case):
    half = (0.2, 0.2, 1e-4 if case == "flat" else 0.2)
    shift = {"straight above": (0, 0, 1.0), "touching": (0, 0, 0.4), "far": (40.0, 0, 0), "parallel": (0.5, 0.1, 0)}
    scenes = upright([[shift.get(case, (0, 0, 0)), (0, 0, 0)]], half)
    for looks in (scene.observers([[3.0, 0, 1]], [[0.0, 0, 0]]), scene.observers([[0.1, 0, 3]], [[0.0, 0, 0]])):
        inputs = {name: x.expand(N, *x.shape[1:]).clone() for name, x in inputs_of(scenes, looks).items()}
        inputs["predicate"] = torch.arange(N)
        inputs["boxes3d"].requires_grad_()
        score = model(inputs)
        (gradient,) = torch.autograd.grad(score.sum(), inputs["boxes3d"])
        assert torch.isfinite(score).all()
        assert torch.isfinite(gradient).all()
        assert gradient.abs().sum() > 0


def test_gradients_are_those_of_the_logit(model):
    inputs = {name: x.expand(N, *x.shape[1:]).clone() for name, x in inputs_of(scenes_of(1), observers_of(1)).items()}
    inputs["predicate"] = torch.arange(N)
    place = inputs["boxes3d"].requires_grad_()
    (gradient,) = torch.autograd.grad(model(inputs).sum(), place)
    step = torch.zeros_like(place)
    step[:, 0, :3] = 1e-6 * torch.tensor([0.6, -0.7, 0.4])
    with torch.no_grad():
        rise = model(inputs | {"boxes3d": place + step}) - model(inputs | {"boxes3d": place - step})
    assert torch.allclose((gradient * 2 * step).sum((1, 2)), rise, rtol=1e-4, atol=1e-10)


def test_distances_enclose_the_true_one():
    """The greatest gap of the 15 axes is at most the distance of solid boxes, the nearest corner's at least."""
    scenes = scenes_of(400, 3, kinds=False)
    scenes[:, 0, scene.CENTER] *= 1.5
    pair = pair_of(scenes, observers_of(400))
    found = (pair_features.separations(pair)[:, :6].sinh() * pair.unit).numpy()  # undo asinh(x / L)
    below, above, true = found[:, 2], found[:, 5], boxes.gap(scenes)
    apart = true > 0
    assert 50 < apart.sum() < 350
    assert (below[apart] <= true[apart] + 1e-6).all()
    assert (above[apart] >= true[apart] - 1e-6).all()
    assert np.array_equal(below > 1e-9, apart)
    assert np.allclose(-below[~apart], boxes.penetration(scenes)[~apart], atol=1e-6)


def test_a_face_and_a_corner_are_exact():
    centers = [[[0.9, 0.1, 0.0], [0, 0, 0]], [[0.7, 0.8, 0.9], [0, 0, 0]]]
    pair = pair_of(upright(centers, 0.3), observers_of(2))
    found = pair_features.separations(pair)[:, :6].sinh() * pair.unit
    assert torch.allclose(found[0, [2, 5]], torch.tensor(0.3).double(), atol=1e-5)
    assert math.isclose(found[1, 5].item(), math.sqrt(0.1**2 + 0.2**2 + 0.3**2), rel_tol=1e-5)


def test_outline_is_that_of_the_projected_box():
    rng = np.random.default_rng(4)
    scenes = scenes_of(20, 5)
    points = rng.uniform(-0.6, 0.6, (20, 50, 3))  # in the box's own frame
    turn, half = scene.rotation(scenes[:, 1]), scenes[:, 1, scene.HALF]
    sharp = torch.full((20, 1), 1e-5, dtype=torch.float64)
    up = torch.from_numpy(turn[:, 2].copy())
    found = pair_features.outline(torch.from_numpy(points), torch.from_numpy(half)[:, None], up, sharp)
    for row in range(20):
        corners = scene.corners(scenes[row, 1])[:, :2] - scenes[row, 1, scene.CENTER][:2]
        hull = ConvexHull(corners).equations
        flat = (points[row] @ turn[row].T)[:, :2]
        margin = (flat @ hull[:, :2].T + hull[:, 2]).max(axis=1)
        clear = np.abs(margin) > 1e-3
        assert np.array_equal(found[row].numpy()[clear] > 0.5, margin[clear] < 0)


def test_shares_of_upright_boxes():
    """Half of a box over another, by symmetry: half its points; far above it and within its outline: all."""
    centers = [[[0.5, 0, 0.0], [0, 0, 0]], [[0, 0, 2.0], [0, 0, 0]], [[3.0, 0, -2.0], [0, 0, 0]]]
    pair = pair_of(upright(centers, [[0.2, 0.2, 0.2], [0.5, 0.8, 0.3]]), observers_of(3))
    within, over, above, below, over_above, *_ = pair_features.shares(pair, pair_features.SUBJECT).unbind(1)
    assert torch.allclose(over, torch.tensor([0.5, 1.0, 0.0]).double(), atol=0.03)
    assert torch.allclose(within, torch.tensor([0.5, 0.0, 0.0]).double(), atol=0.03)
    assert torch.allclose(above, torch.tensor([0.0, 1.0, 0.0]).double(), atol=0.03)
    assert torch.allclose(below, torch.tensor([0.0, 0.0, 1.0]).double(), atol=0.03)
    assert torch.allclose(over_above, torch.tensor([0.0, 1.0, 0.0]).double(), atol=0.03)


def test_the_observers_axes():
    """One that looks along y from below: x is to the right, y is away, however the head is inclined."""
    scenes = upright([[[0.4, 0.3, 0.2], [0.1, 0.1, 0.0]]], 0.1)
    for height in (0.0, 2.0, 5.0):
        pair = pair_of(scenes, scene.observers([[0.0, -3.0, height]], [[0.0, 0.0, 0.0]]))
        right, away = pair_features.seen(pair)[0, :2].sinh() * pair.unit[0]
        assert math.isclose(right.item(), 0.3, abs_tol=1e-9)
        assert math.isclose(away.item(), 0.2, abs_tol=1e-9)


def test_it_learns_a_direction_in_either_frame():
    """A few hundred steps tell left from right, in the object's own frame and in the observer's."""
    names = ("to the left of", "to the left of (wrt you)")
    scenes, observers = scenes_of(2000, 11), observers_of(2000, 12)
    scenes = scene.objects(
        scenes[..., scene.CENTER],
        scene.yaw_rotation(np.random.default_rng(13).uniform(0, 360, (2000, 2))),
        scenes[..., scene.HALF],
        scene.kind(scenes),
    )
    offset = scenes[:, 0, scene.CENTER] - scenes[:, 1, scene.CENTER]
    own = np.einsum("bx,bx->b", offset, scene.rotation(scenes[:, 1])[..., 1])
    relative = -np.einsum("bx,bx->b", offset, observers[:, scene.EYE_RIGHT])
    which = np.arange(2000) % 2
    label = torch.from_numpy(np.where(which == 0, own, relative) > 0)
    made = models.create("relational", models.RELATIONS["relational"].settings_for(names, ("Ball",)))
    inputs = from_scenes(scenes, observers, which, ("boxes3d",))
    made.fit_scale(inputs)
    optimiser = torch.optim.Adam(made.parameters(), 3e-3)
    rows = torch.Generator().manual_seed(0)
    for _ in range(150):
        batch = torch.randint(0, 1000, (128,), generator=rows)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            made({name: x[batch] for name, x in inputs.items()}), label[batch].float()
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        right = (made(inputs) > 0) == label
    assert right[1000:].float().mean() > 0.9
