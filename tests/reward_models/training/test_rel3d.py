"""The training protocol: weighting, selection, resuming, pictures, and that every model can be trained and tested."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from reward_models import models
from reward_models.measuring import relation_accuracy
from reward_models.models import checkpoint
from reward_models.models.relations.base import BOTTOM, LEFT, RIGHT, TOP
from reward_models.models.relations.columns import Columns, Pictures
from reward_models.training import rel3d
from reward_models.training.folder import DamagedState
from reward_models.training.rel3d import RelationConfig, read_log, train
from spatialsim_env.relations import vocabulary
from spatialsim_env.relations.rel3d import published
from spatialsim_env.relations.rel3d.published import SPLITS, balanced_weights
from tests.reward_models.relation_splits import PREDICATES, split

FIXTURE = Path(__file__).parents[2] / "data/rel3d/c_0.7_c_0.3.json"
SMALL: dict[str, dict] = {"mlp_raw": {"width": 16}, "mlp_aligned": {"width": 16}, "relational": {"width": 16}}
SEEING = [kind for kind, model in models.RELATIONS.items() if "picture" in model.needs]
WITHOUT = [kind for kind in models.RELATIONS if kind not in SEEING]


def config(model="relational", **changes) -> RelationConfig:
    return RelationConfig(model, SMALL.get(model, {}), **({"epochs": 2, "pixels": 32} | changes))


def draw(folder: Path, samples, size=(64, 36)):
    """Pictures of samples: noise, with a white rectangle where the subject's box is."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for name, box, (width, height) in zip(samples.rgb, samples.boxes[:, 0], samples.picture_size, strict=True):
        picture = rng.integers(0, 100, (size[1], size[0], 3), dtype=np.uint8)
        left, top, across, down = box / [width, height, width, height] * [*size, *size]
        picture[int(top) : int(top + down) + 1, int(left) : int(left + across) + 1] = 255
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / name)


@pytest.fixture(scope="module")
def pictured(tmp_path_factory):
    """A split of few samples and the folder of its pictures."""
    folder, data = tmp_path_factory.mktemp("pictures"), split(9, 3, 3)
    for part in SPLITS:
        draw(folder, getattr(data, part))
    return data, folder


def state_of(folder: Path) -> dict[str, torch.Tensor]:
    return checkpoint.load(folder).model.state_dict()


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_the_weight_of_a_predicate_is_the_published_one():
    """0.8076804083948199 for "aligned to" on the published numbers of training samples."""
    weights = balanced_weights([train for train, _, _ in vocabulary.COUNTS.values()])
    assert weights[vocabulary.INDEX["aligned to"]] == pytest.approx(0.8076804083948199, rel=1e-12)
    assert weights.mean() == pytest.approx(1)


def test_the_published_protocol():
    found = RelationConfig.published("mlp_raw", seed=3)
    assert (found.epochs, found.learning_rate, found.batch_size) == (200, 1e-3, 128)
    assert (found.patience, found.early_stop, found.seed) == (10, 20, 3)
    assert RelationConfig.published("boxes2d").epochs == 800
    assert RelationConfig(**found.to_json()) == found


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "mpgnn"}, "model is 'mpgnn'; accepted are language_only, boxes2d"),
        ({"settings": {"depth": 3}}, "has no settings"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 1}, "batch_size is 1; accepted is an int from 2"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0"),
        ({"seed": -1}, "seed is -1"),
        ({"pixels": 8}, "pixels is 8"),
    ],
)
def test_what_a_configuration_refuses(changes, message):
    with pytest.raises(ValueError, match=message):
        RelationConfig(**({"model": "mlp_raw"} | changes))


def test_the_loss_is_weighted_by_predicate(tmp_path):
    """Of the first epoch in one batch, against its definition from the logits of the untouched network."""
    data = split(7)
    weights = published.loss_weights(data.train, len(PREDICATES))
    assert weights.mean() == pytest.approx(1)
    assert weights[0] < weights[1]  # 3 pairs against 2
    run = config(epochs=1, batch_size=1000)
    model = models.create("relational", rel3d.settings_of(run, data), run.seed)
    columns = Columns.of(model, data.train, "cpu")
    model.fit_scale(columns.inputs)
    logits = relation_accuracy.logits(model, columns.parts())
    label = data.train.label
    entropies = np.log1p(np.exp(np.where(label, -logits, logits)))
    train(run, data, tmp_path)
    assert read_log(tmp_path)[0].loss == pytest.approx((weights[data.train.predicate] * entropies).mean(), rel=1e-5)


def test_the_order_is_cut_into_even_batches():
    order = np.arange(257)
    found = rel3d.batches(order, 128)
    assert [len(part) for part in found] == [86, 86, 85]
    assert np.concatenate(found).tolist() == order.tolist()
    assert [len(part) for part in rel3d.batches(order[:256], 128)] == [128, 128]


def test_selection_and_end_follow_from_the_log():
    run = config(epochs=100, early_stop=3)
    assert rel3d.best_epoch([0.5, 0.7, 0.6, 0.7]) == 1
    assert not rel3d.is_over(run, [])
    assert not rel3d.is_over(run, [0.7, 0.6, 0.6])
    assert rel3d.is_over(run, [0.7, 0.6, 0.6, 0.7])
    assert rel3d.is_over(run, list(np.linspace(0, 1, 100)))


def test_the_kept_weights_are_those_of_the_best_epoch(tmp_path):
    data, accuracies = split(12, 12), []
    run = config(epochs=12, learning_rate=0.05)
    model = train(run, data, tmp_path)
    accuracies = [row.validation_accuracy for row in read_log(tmp_path)]
    best = rel3d.best_epoch(accuracies)
    assert best < len(accuracies) - 1  # or this shows nothing
    found = relation_accuracy.measure(
        relation_accuracy.logits(model, Columns.of(model, data.valid, "cpu").parts()), data.valid, len(PREDICATES)
    )
    assert found["mean"] == accuracies[best]
    shorter = train(replace(run, epochs=best + 1), data, tmp_path / "shorter")
    assert same(model.state_dict(), shorter.state_dict())
    assert checkpoint.load(tmp_path).task["best_epoch"] == best + 1


def test_the_learning_rate_is_halved_where_nothing_gets_better(tmp_path):
    """With patience 2, after the third epoch that is no better than the best one; never better than all right."""
    data = split(60, 6)
    run = config(epochs=40, patience=2, early_stop=9)
    train(run, data, tmp_path)
    log = read_log(tmp_path)
    best = rel3d.best_epoch([row.validation_accuracy for row in log])
    rates = [row.learning_rate for row in log]
    assert len(log) == best + 1 + 9
    assert rates[best : best + 4] == [rates[best]] * 4
    assert rates[best + 4 : best + 7] == [rates[best] / 2] * 3
    assert rates[best + 7] == rates[best] / 4


@pytest.mark.parametrize("model", ["relational", "mlp_raw"])
def test_a_killed_run_goes_on_bit_for_bit(tmp_path, model):
    data, run = split(), config(model, epochs=8, patience=1, early_stop=8)
    whole = train(run, data, tmp_path / "whole")

    def stop(row):
        if row.epoch in (3, 5):
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train(run, data, tmp_path / "killed", on_epoch=stop)
        assert not (tmp_path / "killed/model.json").exists()
    resumed = train(run, data, tmp_path / "killed")
    assert same(whole.state_dict(), resumed.state_dict())
    logs = [[replace(row, seconds=0) for row in read_log(tmp_path / name)] for name in ("whole", "killed")]
    assert logs[0] == logs[1]


def test_a_run_goes_on_from_its_last_state(tmp_path):
    """With states far apart an interrupted run repeats epochs, to the same end."""
    data, run = split(), config(epochs=4)
    whole = train(run, data, tmp_path / "whole")

    def stop(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(run, data, tmp_path / "rare", on_epoch=stop, keep_every=1000)
    assert not (tmp_path / "rare/state.safetensors").exists()
    assert same(whole.state_dict(), train(run, data, tmp_path / "rare", keep_every=1000).state_dict())


def test_a_finished_run_is_not_trained_again(tmp_path):
    data, run, epochs = split(), config(), []
    first = train(run, data, tmp_path)
    second = train(run, data, tmp_path, on_epoch=epochs.append)
    assert epochs == []
    assert same(first.state_dict(), second.state_dict())


def test_global_random_states_are_left_alone(tmp_path):
    before, numbers = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    train(config(epochs=1), split(), tmp_path)
    assert torch.equal(before, torch.random.get_rng_state())
    assert (numbers == np.random.get_state()[1]).all()  # noqa: NPY002


def test_another_runs_folder_is_refused(tmp_path):
    data = split()
    train(config(), data, tmp_path)
    with pytest.raises(ValueError, match="holds another training run \\(seed: 0 there, 1 now\\)"):
        train(config(seed=1), data, tmp_path)
    with pytest.raises(ValueError, match="holds another training run \\(samples: "):
        train(config(), replace(data, train=data.train[:-2]), tmp_path)


def test_an_empty_part_is_refused(tmp_path):
    data = split()
    with pytest.raises(ValueError, match="valid has 0 samples"):
        train(config(), replace(data, valid=data.valid[:0]), tmp_path)


def test_a_damaged_state_is_named(tmp_path):
    data, run = split(), config()

    def stop(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(run, data, tmp_path, on_epoch=stop)
    file = tmp_path / "state.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(DamagedState, match=r"state\.safetensors is damaged"):
        train(run, data, tmp_path)


def test_a_loss_that_is_no_number_ends_the_run(tmp_path):
    with pytest.raises(FloatingPointError, match="the loss of epoch 1 is"):
        train(config("mlp_aligned", learning_rate=1e38, batch_size=16), split(), tmp_path)


def test_a_fingerprint_is_of_all_that_a_model_may_see():
    data = split().test
    changes = {
        "label": ~data.label, "pair": data.pair + 1, "boxes": data.boxes + 1, "rgb": ("other", *data.rgb[1:]),
        "vectors": data.vectors | {"raw_absolute": data.vectors["raw_absolute"] + 1},
    }  # fmt: skip
    found = [rel3d.fingerprint(data), *(rel3d.fingerprint(replace(data, **{k: v})) for k, v in changes.items())]
    assert len(set(found)) == len(found)
    assert rel3d.fingerprint(split().test) == found[0]


@pytest.mark.parametrize("model", WITHOUT)
@pytest.mark.parametrize("data", ["fixture", "scenes"])
def test_every_model_without_pictures_is_trained_and_tested(tmp_path, model, data):
    data = published.load(FIXTURE) if data == "fixture" else split()
    train(config(model, epochs=1), data, tmp_path)
    said = checkpoint.load(tmp_path).task
    assert (said["predicates"], said["objects"]) == (list(data.predicates), list(data.objects))
    found = relation_accuracy.of_folder(tmp_path, data)
    assert sum(found["total"]) == len(data.test)
    assert 0 <= found["mean"] <= 1


@pytest.mark.parametrize("model", SEEING)
def test_every_model_of_pictures_is_trained_and_tested(tmp_path, pictured, model):
    data, folder = pictured
    train(config(model, epochs=1), data, tmp_path, pictures=folder)
    found = relation_accuracy.of_folder(tmp_path, data, pictures=folder)
    assert sum(found["total"]) == len(data.test)
    (tmp_path / "model.safetensors").unlink()  # up to 260 MB


def test_crops_are_a_function_of_seed_and_epoch(tmp_path, pictured):
    data, folder = pictured
    one, other = (train(config("ppr_fcn", epochs=1), data, tmp_path / name, pictures=folder) for name in "ab")
    assert same(one.state_dict(), other.state_dict())


def test_words_alone_are_at_chance_on_contrastive_pairs(tmp_path):
    """Both members have the same words, so exactly half of the samples are right, whatever was learnt."""
    data = split(60, 12, 40)
    train(config("language_only", epochs=3), data, tmp_path)
    found = relation_accuracy.of_folder(tmp_path, data)
    assert found["mean"] == 0.5
    assert found["pair_mean"] == 0


def test_what_can_be_learnt_is_learnt(tmp_path):
    """Right and left of the observer and near, of scenes 0.6 m and more from the boundary."""
    data = split(150, 30, 40)
    train(config("relational", epochs=40), data, tmp_path)
    assert relation_accuracy.of_folder(tmp_path, data)["pair_mean"] > 0.9


def test_models_of_pictures_say_what_is_missing(tmp_path, pictured):
    data, folder = pictured
    with pytest.raises(ValueError, match="drnet sees pictures; give the folder"):
        train(config("drnet"), data, tmp_path)
    (folder / data.train.rgb[0]).rename(folder / "elsewhere.png")
    with pytest.raises(FileNotFoundError, match="no picture"):
        train(config("drnet"), data, tmp_path, pictures=folder)
    (folder / "elsewhere.png").rename(folder / data.train.rgb[0])


def test_boxes_follow_the_crop(pictured):
    """The white rectangle of the subject is where its box says, in the crop as in the whole picture."""
    data, folder = pictured
    pixels = 56
    pictures = Pictures.read(folder, data.train, pixels, learning=True)
    assert pictures.stored.shape[-1] == 64
    rows = np.arange(len(data.train))
    found = pictures.crop(rows, 1, torch.device("cpu"))
    picture, boxes = found["picture"], found["boxes2d"]
    assert picture.shape == (len(rows), 3, pixels, pixels)
    assert ((picture >= 0) & (picture <= 1)).all()
    again = pictures.crop(rows, 1, torch.device("cpu"))
    assert torch.equal(picture, again["picture"])
    assert not torch.equal(picture, pictures.crop(rows, 2, torch.device("cpu"))["picture"])
    for seen, box in zip(picture, boxes[:, 0], strict=True):
        white = seen.mean(0) > 0.7
        down, across = white.any(1).nonzero().flatten(), white.any(0).nonzero().flatten()
        edges = torch.stack([down.min(), down.max() + 1, across.min(), across.max() + 1]) / pixels
        assert edges[[TOP, BOTTOM, LEFT, RIGHT]] == pytest.approx(box[[TOP, BOTTOM, LEFT, RIGHT]].numpy(), abs=0.08)


def test_configurations_are_json(tmp_path):
    train(config(epochs=1), split(), tmp_path)
    said = json.loads((tmp_path / "config.json").read_text())
    assert said.pop("samples").keys() == {"train", "valid"}
    assert said == config(epochs=1).to_json()
