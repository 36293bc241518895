"""One contract over the registry of models of relations, and what each of them promises."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
import torch

from reward_models import models
from reward_models.judges import learned
from reward_models.models import checkpoint
from reward_models.models.relations.base import NEEDS, SHAPES
from reward_models.models.relations.layers import Scale, select_queried
from reward_models.threads import one_thread
from reward_models.training.config import TrainingConfig
from spatialsim_env.registry import RELATIONS
from spatialsim_env.relations.rel3d import vectors

KINDS = tuple(models.RELATIONS)
PICTURES = tuple(kind for kind in KINDS if "picture" in models.RELATIONS[kind].needs)
SMALL: dict[str, dict[str, Any]] = {
    **{kind: {"pixels": 32} for kind in PICTURES},
    "vip_cnn": {"pixels": 32, "pool": 1},
    "mlp_aligned": {"width": 64},
}
WEIGHTS = {  # of the authors' networks, with 30 predicates and 67 categories
    "language_only": 77_569,
    "boxes2d": 45_313,
    "mlp_raw": 820_254,
    "mlp_aligned": 12_705_822,
    "drnet": 11_892_542,
    "vtranse": 19_204_065,
    "vip_cnn": 65_778_914,
    "ppr_fcn": 11_396_346,
}


@pytest.fixture(scope="module", autouse=True)
def on_one_thread():
    with one_thread():
        yield


def create(kind: str, seed: int = 1, **settings: Any):
    return models.create(kind, SMALL.get(kind, {}) | settings, seed).double().eval()


def example(model, size: int = 4, seed: int = 0) -> dict[str, torch.Tensor]:
    """What a model reads, drawn at random: boxes that are boxes, rotations that are rotations."""
    rng = np.random.default_rng(seed)
    pose = np.concatenate(
        [rng.normal(0, 1, (size, 2, 3)), rng.uniform(-180, 180, (size, 2, 3)), rng.uniform(0.1, 1, (size, 2, 3))], -1
    ).reshape(size, 18)
    corners = np.sort(rng.uniform(0, 1, (size, 2, 2, 2)), axis=-1).reshape(size, 2, 4)
    center, turn, sizes = vectors.from_aligned_absolute(pose)
    up = rng.normal(0, 1, (size, 3))
    drawn = {
        "predicate": rng.integers(0, model.config.n_predicates, size),
        "subject": rng.integers(0, model.config.n_objects, size),
        "object": rng.integers(0, model.config.n_objects, size),
        "boxes2d": corners,
        "raw": np.concatenate([pose, rng.uniform(-90, 90, (size, 6))], axis=-1),
        "aligned": pose,
        "boxes3d": np.concatenate([center, turn.reshape(size, 2, 9), sizes / 2], axis=-1),
        "up": up / np.linalg.norm(up, axis=-1, keepdims=True),
        "kinds": np.eye(7)[rng.integers(0, 7, (size, 2))],
    }
    if "picture" in model.inputs:
        drawn["picture"] = rng.uniform(0, 1, (size, 3, model.config.pixels, model.config.pixels))
    return {name: torch.from_numpy(np.asarray(drawn[name])) for name in model.inputs}


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    """A model that tests read and do not change."""
    return create(request.param)


def test_names_are_their_own():
    assert not models.REGISTRY.keys() & models.RELATIONS.keys()
    assert all(kind == model.kind for kind, model in models.RELATIONS.items())
    assert all(set(model.needs) <= NEEDS.keys() for model in models.RELATIONS.values())


@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights_as_published(kind):
    settings = {"skips": False} if kind.startswith("mlp") else {}
    with torch.device("meta"):
        model = models.create(kind, settings)
    assert model.n_weights == WEIGHTS[kind] == model.published_weights
    if settings:
        with torch.device("meta"):
            assert models.create(kind).n_weights == WEIGHTS[kind]  # a sum has no weights


def test_ours_is_small():
    assert models.create("relational").n_weights < 100_000
    assert models.RELATIONS["relational"].published_weights is None


def test_logits(model):
    inputs = example(model)
    logits = model(inputs)
    assert logits.shape == (4,)
    assert logits.dtype == torch.float64
    assert torch.isfinite(logits).all()
    assert torch.equal(model({name: x[:0] for name, x in inputs.items()}), logits[:0])
    again = copy.deepcopy(model).train()
    assert again(inputs).shape == (4,)


def test_gradients_reach_every_weight(model):
    """In evaluation mode: a constant in front of batch normalisation has no effect in training mode."""
    names, weights = zip(*model.named_parameters(), strict=True)
    gradients = torch.autograd.grad(model(example(model, 6)).square().sum(), weights)
    for name, gradient in zip(names, gradients, strict=True):
        assert torch.isfinite(gradient).all(), name
        assert gradient.abs().max() > 0, name


def test_prepared_inputs_give_the_same(model):
    inputs = example(model)
    prepared = model.prepare(inputs)
    assert inputs.keys() <= prepared.keys()
    assert torch.equal(model(prepared), model(inputs))
    rows = {name: x[1:3] for name, x in prepared.items()}
    assert torch.allclose(model(rows), model(inputs)[1:3], rtol=1e-9, atol=1e-12)


def test_a_row_is_judged_alone(model):
    inputs = example(model)
    whole = model(inputs)
    part = model({name: x[1:3] for name, x in inputs.items()})
    assert torch.allclose(part, whole[1:3], rtol=1e-9, atol=1e-12)
    assert torch.equal(model(inputs), whole)


def test_the_queried_predicate_is_answered(model):
    """Rows that differ in the predicate alone get different logits; those that do not, the same."""
    inputs = {name: x[:1].expand(3, *x.shape[1:]) for name, x in example(model).items()}
    inputs["predicate"] = torch.tensor([3, 3, 4])
    logits = model(inputs)
    assert torch.isclose(logits[0], logits[1], rtol=1e-9)
    assert not torch.isclose(logits[0], logits[2], rtol=1e-6)


def test_float32_agrees(model):
    inputs = example(model)
    high = model(inputs)
    low = copy.deepcopy(model).float()({name: x.float() if x.is_floating_point() else x for name, x in inputs.items()})
    assert torch.allclose(low.double(), high, rtol=1e-3, atol=1e-3 * max(1.0, high.abs().max().item()))


def test_checkpoint_round_trip(model, tmp_path):
    model = copy.deepcopy(model).float()
    inputs = {name: x.float() if x.is_floating_point() else x for name, x in example(model).items()}
    model.fit_scale(inputs)
    checkpoint.save(model, tmp_path, {"split": "c_0.9_c_0.1"})
    stored = checkpoint.load(tmp_path)
    (tmp_path / checkpoint.WEIGHTS).unlink()  # some are large
    assert type(stored.model) is type(model)
    assert stored.model.config == model.config
    assert stored.task == {"split": "c_0.9_c_0.1"}
    expected = model.state_dict()
    assert stored.model.state_dict().keys() == expected.keys()
    assert all(torch.equal(value, expected[name]) for name, value in stored.model.state_dict().items())
    assert torch.equal(stored.model.eval()(inputs), model(inputs))


def test_a_model_of_relations_is_loaded_and_not_trained_on_scenes(tmp_path):
    folder = checkpoint.save(models.create("relational"), tmp_path / "r").parent
    assert learned.load(folder).world == RELATIONS
    with pytest.raises(ValueError, match=r"model is 'relational'; accepted is a model of scenes"):
        TrainingConfig(model="relational")


def test_weights_come_from_the_seed_and_nothing_else(model):
    torch.manual_seed(11)
    state = torch.get_rng_state()
    for seed in (1, 2):
        other = create(model.kind, seed)
        assert torch.equal(torch.get_rng_state(), state)
        equal = [torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True)]
        assert all(equal) == (seed == 1)


def test_settings_go_through_json(model):
    settings = json.loads(json.dumps(model.config.to_json()))
    assert models.configure(model.kind, settings) == model.config


def test_settings_for_a_file(model):
    words = ("near", "behind (wrt you)", "on")
    config = models.configure(model.kind, type(model).settings_for(words, ("Desk ", "Ball")))
    assert (config.n_predicates, config.n_objects) == (3, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_settings(kind):
    with pytest.raises(ValueError, match=r"no settings \['depth'\]; accepted are n_predicates, n_objects"):
        models.create(kind, {"depth": 3})
    with pytest.raises(ValueError, match="n_predicates is 0; accepted is an int from 1"):
        models.create(kind, {"n_predicates": 0})


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("mlp_raw", {"encoding": "radians"}, "encoding is 'radians'; accepted is degrees or sincos or 6d"),
        ("mlp_raw", {"skips": 1}, "skips is 1; accepted is a bool"),
        ("mlp_aligned", {"width": 0}, "width is 0"),
        ("drnet", {"pixels": 16}, "pixels is 16; accepted is an int from 32"),
        ("vip_cnn", {"pool": 0}, "pool is 0"),
        ("relational", {"predicates": "on"}, "predicates is 'on'; accepted is a sequence of names"),
        ("relational", {"predicates": ["on"]}, "predicates has 1 names; n_predicates is 30"),
        ("relational", {"predicates": ["atop"], "n_predicates": 1}, "predicate is 'atop'; accepted are on, under"),
    ],
)
def test_values_of_settings(kind, settings, message):
    with pytest.raises(ValueError, match=message):
        models.create(kind, settings)


def test_missing_inputs_are_named(model):
    inputs = example(model)
    with pytest.raises(ValueError, match=f"{model.kind} is not given predicate, "):
        model({})
    for name in model.inputs:
        with pytest.raises(ValueError, match=f"{model.kind} is not given {name}; it needs predicate, "):
            model({key: x for key, x in inputs.items() if key != name})


def test_shapes_are_checked(model):
    inputs = example(model)
    for name in model.inputs:
        if name == "predicate":
            continue
        with pytest.raises(ValueError, match=rf"{model.kind}: {name} has shape .*; accepted is \(4"):
            model(inputs | {name: inputs[name][:2]})
        with pytest.raises(ValueError, match=rf"{model.kind}: {name} has shape"):
            model(inputs | {name: inputs[name][..., None]})


def test_classes_out_of_range(model):
    inputs = example(model)
    limits = {"predicate": 30, "subject": 67, "object": 67}
    for name in limits.keys() & set(model.inputs):
        for wrong in (-1, limits[name]):
            index = inputs[name].clone()
            index[2] = wrong
            with pytest.raises(ValueError, match=f"{name} has index {wrong}; accepted are 0 to {limits[name] - 1}"):
                model(inputs | {name: index})


@pytest.mark.parametrize("kind", PICTURES)
@pytest.mark.parametrize("pixels", [64, 112, 224])
def test_sizes_of_pictures(kind, pixels):
    model = create(kind, pixels=pixels).float()
    inputs = {name: x.float() if x.is_floating_point() else x for name, x in example(model, 1).items()}
    with torch.inference_mode():
        assert torch.isfinite(model(inputs)).all()
    with pytest.raises(ValueError, match=rf"picture has shape .*accepted is \(any, 3, {pixels}, {pixels}\)"):
        model(inputs | {"picture": inputs["picture"][..., 1:]})


@pytest.mark.parametrize("model", PICTURES, indirect=True)
def test_boxes_without_an_extent_or_outside(model):
    inputs = example(model)
    inputs["boxes2d"] = torch.tensor(
        [[[0.5, 0.5, 0.5, 0.5]] * 2, [[0.0, 0.0, 1.0, 1.0]] * 2, [[-1, 2, -3, 4.0]] * 2, [[3, 4, 3, 4.0]] * 2]
    ).double()
    assert torch.isfinite(model(inputs)).all()


def test_pictures_are_standardised():
    model = create(PICTURES[0])
    inputs = example(model)
    model.fit_scale(inputs)
    seen = model.scale(inputs["picture"])
    assert torch.allclose(seen.mean((0, 2, 3)), torch.zeros(3).double(), atol=1e-6)
    assert torch.allclose(seen.std((0, 2, 3), correction=0), torch.ones(3).double(), atol=1e-6)


@pytest.mark.parametrize("kind", PICTURES)
def test_start_from_other_weights(kind, tmp_path):
    """Every stage of the ResNet that is in a model takes them, and a file that lacks some is refused."""
    from torchvision.models import resnet18

    source = resnet18(weights=None).state_dict()
    torch.save(source, tmp_path / "weights.pth")
    model = create(kind)
    model.start_from(tmp_path / "weights.pth")
    for own, stage in model.stages():
        for name, value in own.state_dict().items():
            assert torch.equal(value.to(source[f"{stage}.{name}"].dtype), source[f"{stage}.{name}"]), (stage, name)
    assert {stage for _, stage in model.stages()} == {"conv1", "bn1", "layer1", "layer2", "layer3", "layer4"}
    torch.save({"conv1.weight": source["conv1.weight"]}, tmp_path / "half.pth")
    with pytest.raises(ValueError, match=r"half.pth does not hold bn1 of a ResNet-18"):
        model.start_from(tmp_path / "half.pth")
    (tmp_path / "weights.pth").unlink()


@pytest.mark.parametrize("encoding", vectors.ENCODINGS)
@pytest.mark.parametrize(("kind", "name"), [("mlp_raw", "raw_absolute"), ("mlp_aligned", "aligned_absolute")])
def test_encodings_are_those_of_the_vectors(kind, name, encoding):
    model = create(kind, encoding=encoding)
    inputs = example(model, 16)
    poses = inputs[model.needs[0]]
    encoded = torch.from_numpy(vectors.encode(poses.numpy(), name, encoding))
    assert torch.allclose(model._encode(poses), encoded, atol=1e-12)
    model.fit_scale(inputs)
    seen = model.scale(encoded)
    assert torch.allclose(seen.mean(0), torch.zeros(seen.shape[1]).double(), atol=1e-5)
    assert torch.allclose(seen.std(0, correction=0), torch.ones(seen.shape[1]).double(), atol=1e-5)


@pytest.mark.parametrize(("encoding", "continuous"), [("degrees", False), ("sincos", True), ("6d", True)])
def test_a_turn_past_180_degrees(encoding, continuous):
    model = create("mlp_aligned", encoding=encoding)
    inputs = example(model, 2)
    poses = inputs["aligned"][:1].repeat(2, 1)
    poses[0, 3], poses[1, 3] = 180.0, -180.0  # the same rotation
    first, second = model({"predicate": torch.tensor([4, 4]), "aligned": poses})
    assert torch.isclose(first, second, rtol=1e-9).item() == continuous


def test_skips_carry_the_input_past_inner_layers():
    """Inner layers whose normalisation gives 0 leave the first layer's output; without skips nothing."""
    for skips in (True, False):
        model = create("mlp_raw", skips=skips)
        for layer in model.layers[1:]:
            torch.nn.init.zeros_(layer[1].weight)
        inputs = example(model)
        state = model.layers[0](model.scale(inputs["raw"]))
        expected = select_queried(model.head(state if skips else torch.zeros_like(state)), inputs["predicate"])
        assert torch.allclose(model(inputs), expected, rtol=1e-12)


def test_what_does_not_vary_keeps_its_deviation():
    scale = Scale([2]).double()
    scale.fit(torch.tensor([[1.0, 5.0], [3.0, 5.0]]).double())
    assert torch.equal(scale(torch.tensor([[3.0, 7.0]]).double()), torch.tensor([[1.0, 2.0]]).double())


def test_all_shapes_are_read():
    needs = {need for kind in KINDS for need in models.RELATIONS[kind].needs}
    assert {name for need in needs for name in NEEDS[need]} | {"predicate"} == SHAPES.keys()
