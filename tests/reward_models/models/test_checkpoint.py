from __future__ import annotations

import json
import pickle
import zipfile

import pytest
import safetensors.torch
import torch

from reward_models import models
from reward_models.models import checkpoint
from reward_models.models.checkpoint import INFO, WEIGHTS, CheckpointError
from spatialsim_env.files import sha256


@pytest.fixture
def folder(tmp_path):
    checkpoint.save(models.create("mpgnn", {"rounds": 1}, seed=4), tmp_path / "m", {"name": "discrimination"})
    return tmp_path / "m"


def rewrite(folder, **changes):
    file = folder / INFO
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize("kind", models.REGISTRY)
def test_round_trip(tmp_path, kind):
    model = models.create(kind, seed=4)
    checkpoint.save(model, tmp_path, {"name": "x", "reference": [[0.1]]})
    for path in (tmp_path, tmp_path / INFO, tmp_path / WEIGHTS, str(tmp_path)):
        stored = checkpoint.load(path)
        assert type(stored.model) is type(model)
        assert stored.model.config == model.config
        assert stored.task == {"name": "x", "reference": [[0.1]]}
        expected = model.state_dict()
        assert stored.model.state_dict().keys() == expected.keys()
        assert all(torch.equal(value, expected[name]) for name, value in stored.model.state_dict().items())


def test_counts_stay_whole(tmp_path):
    """2 ** 24 + 1 is no float32; a normalisation counts its batches."""
    model = models.create("resnet18_single")
    name = "network.bn1.num_batches_tracked"
    model.state_dict()[name].fill_(2**24 + 1)
    checkpoint.save(model.double(), tmp_path)
    count = checkpoint.load(tmp_path).model.state_dict()[name]
    assert count.dtype == torch.int64
    assert count == 2**24 + 1


def test_what_the_json_says(folder):
    info = json.loads((folder / INFO).read_text())
    assert info["kind"] == "mpgnn"
    assert info["settings"] == {"rounds": 1, "width": 10}
    assert info["n_weights"] == 4366
    assert info["sha256"] == sha256(folder / WEIGHTS)
    assert {"format", "version", "task"} <= info.keys()
    assert checkpoint.read_info(folder) == info
    assert sorted(x.name for x in folder.iterdir()) == [INFO, WEIGHTS]


def test_float64_is_stored_as_float32(tmp_path):
    model = models.create("matching", seed=1)
    checkpoint.save(model.double(), tmp_path)
    assert all(p.dtype == torch.float32 for p in checkpoint.load(tmp_path).model.parameters())


def test_missing(tmp_path, folder):
    with pytest.raises(CheckpointError, match=r"nothing/model.json does not exist; train a model"):
        checkpoint.load(tmp_path / "nothing")
    (folder / WEIGHTS).unlink()
    with pytest.raises(CheckpointError, match=r"model.safetensors is missing"):
        checkpoint.load(folder)


def test_unfinished_training(tmp_path):
    (tmp_path / "state.safetensors").touch()
    with pytest.raises(CheckpointError, match="its training is not finished"):
        checkpoint.load(tmp_path)


def test_truncated(folder):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:-7])
    with pytest.raises(CheckpointError, match=r"model.safetensors is cut or changed"):
        checkpoint.load(folder)


@pytest.mark.parametrize("position", [0, 9, 2000, -1])
def test_one_byte_changed(folder, position):
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[position] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model.safetensors is cut or changed"):
        checkpoint.load(folder)


def test_not_safetensors_though_the_checksum_fits(folder):
    (folder / WEIGHTS).write_bytes(b"hello")
    rewrite(folder, sha256=sha256(folder / WEIGHTS))
    with pytest.raises(CheckpointError, match=r"model.safetensors is not a safetensors file"):
        checkpoint.load(folder)


def test_pickles_are_never_opened(folder, tmp_path):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("a pickle was opened",)

    plain = tmp_path / "old.pkl"
    plain.write_bytes(pickle.dumps(Trap()))
    archive = tmp_path / "model.pt"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("data.pkl", pickle.dumps(Trap()))
    for path in (plain, archive):
        with pytest.raises(CheckpointError, match=rf"{path.name} is a pickle"):
            checkpoint.load(path)
        (folder / WEIGHTS).write_bytes(path.read_bytes())
        with pytest.raises(CheckpointError, match=r"model.safetensors is a pickle"):
            checkpoint.load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "gpt"}, "model 'gpt' is unknown; accepted are mpgnn_single, rds_single"),
        ({"format": 99}, "format 99; accepted is 1"),
        ({"settings": {"rounds": -1}}, "rounds is -1"),
        ({"settings": {"depth": 3}}, "no settings"),
        ({"settings": 7}, "model.json: settings is 7; accepted is a dict"),
        ({"kind": []}, r"model.json: kind is \[\]; accepted is a str"),
        ({"task": [1]}, r"model.json: task is \[1\]; accepted is a dict"),
        ({"sha256": None}, "model.json: sha256 is None; accepted is a str"),
        ({"kind": "matching", "settings": {}}, "weights of another model"),
    ],
)
def test_a_json_that_does_not_fit(folder, changes, message):
    rewrite(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        checkpoint.load(folder)


def test_wrong_shapes(folder):
    tensors = safetensors.torch.load_file(folder / WEIGHTS)
    tensors["head.0.bias"] = torch.zeros(17)
    safetensors.torch.save_file(tensors, folder / WEIGHTS)
    rewrite(folder, sha256=sha256(folder / WEIGHTS))
    with pytest.raises(CheckpointError, match=r"head.0.bias has shape \(17,\); accepted is \(16,\)"):
        checkpoint.load(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite(folder, value):
    tensors = safetensors.torch.load_file(folder / WEIGHTS)
    tensors["head.0.bias"][3] = value
    safetensors.torch.save_file(tensors, folder / WEIGHTS)
    rewrite(folder, sha256=sha256(folder / WEIGHTS))
    with pytest.raises(CheckpointError, match=r"model.safetensors: head.0.bias holds nan or inf"):
        checkpoint.load(folder)


def test_broken_json(folder):
    for text, message in (
        ("{", "not JSON"),
        ("[]", "holds a list; accepted is a JSON object"),
        ('{"format": 1}', "lacks kind"),
    ):
        (folder / INFO).write_text(text)
        with pytest.raises(CheckpointError, match=message):
            checkpoint.load(folder)


def test_another_file(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("x")
    with pytest.raises(CheckpointError, match=r"notes.txt is not a model; accepted is a folder"):
        checkpoint.load(file)
