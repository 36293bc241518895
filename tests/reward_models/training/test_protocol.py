from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from reward_models.models import checkpoint
from reward_models.training import folder, protocol
from reward_models.training.config import TrainingConfig
from reward_models.training.folder import CONFIG, LOG, STATE
from reward_models.training.protocol import read_log, train
from spatialsim_env.arrangements import tasks
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.arrangements.scene import TURN

SHORT = TrainingConfig(
    model="matching", samples_per_stage=300, epochs_per_stage=2, validation_samples=50, stages=(0.1 * math.pi, TURN)
)


def bits(model) -> bytes:
    return b"".join(p.detach().numpy().tobytes() for p in model.parameters())


def stop_after(n_epochs: int):
    seen = []

    def hook(row):
        seen.append(row)
        if len(seen) == n_epochs:
            raise KeyboardInterrupt

    return hook


def test_defaults_are_the_protocol():
    config = TrainingConfig()
    assert config.stages == tasks.STAGES
    assert (config.samples_per_stage, config.epochs_per_stage, config.n_epochs) == (100_000, 5, 25)
    assert (config.learning_rate, config.batch_size) == (1e-3, 128)
    identification = TrainingConfig.identification(20)
    assert (identification.samples_per_stage, identification.n_epochs) == (10_000, 20)
    assert identification.task_at(TURN).n_objects == 20


def test_a_training_folder(tmp_path):
    rows = []
    model = train(SHORT, tmp_path, on_epoch=rows.append)
    assert sorted(x.name for x in tmp_path.iterdir()) == sorted(
        [CONFIG, LOG, STATE, checkpoint.INFO, checkpoint.WEIGHTS]
    )
    assert [(row.stage, row.epoch) for row in rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert read_log(tmp_path) == rows
    assert TrainingConfig.from_json(json.loads((tmp_path / CONFIG).read_text())) == SHORT
    stored = checkpoint.load(tmp_path)
    assert bits(stored.model) == bits(model)
    assert stored.task["name"] == "discrimination"
    assert TrainingConfig.from_json(stored.task["training"]) == SHORT
    assert not model.training


@pytest.mark.parametrize("kind", ["matching", "mpgnn"])
@pytest.mark.parametrize("epochs", [1, 2, 3, 4])
def test_an_interrupted_run_ends_with_the_same_bits(tmp_path, epochs, kind):
    config = replace(SHORT, model=kind)
    whole = train(config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "parts", on_epoch=stop_after(epochs))
    assert len(read_log(tmp_path / "parts")) == epochs
    assert not (tmp_path / "parts" / checkpoint.INFO).exists()
    resumed = train(config, tmp_path / "parts")
    assert bits(resumed) == bits(whole)
    same = [replace(row, seconds=0) for row in read_log(tmp_path / "parts")]
    assert same == [replace(row, seconds=0) for row in read_log(tmp_path / "whole")]
    assert (tmp_path / "parts" / checkpoint.WEIGHTS).read_bytes() == (
        tmp_path / "whole" / checkpoint.WEIGHTS
    ).read_bytes()


def test_killed_while_writing_the_state(tmp_path, monkeypatch):
    """A half-written state never takes the place of a whole one."""
    whole = train(SHORT, tmp_path / "whole")
    calls = []
    save = folder.safetensors.torch.save

    def failing(*args):
        calls.append(0)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return save(*args)

    monkeypatch.setattr(folder.safetensors.torch, "save", failing)
    with pytest.raises(KeyboardInterrupt):
        train(SHORT, tmp_path / "parts")
    monkeypatch.undo()
    assert len(read_log(tmp_path / "parts")) == 2
    assert bits(train(SHORT, tmp_path / "parts")) == bits(whole)


def test_a_log_that_lost_its_end_is_mended(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(SHORT, tmp_path, on_epoch=stop_after(2))
    rows = read_log(tmp_path)
    (tmp_path / LOG).write_text("stage,epo")
    train(SHORT, tmp_path)
    assert read_log(tmp_path)[:2] == rows


def test_a_finished_run_is_not_run_again(tmp_path):
    model = train(SHORT, tmp_path)
    again = train(SHORT, tmp_path, on_epoch=lambda row: pytest.fail("trained again"))
    assert bits(again) == bits(model)


def test_the_seed_gives_the_bits(tmp_path, two_threads):
    one, other = (train(replace(SHORT, seed=seed), tmp_path / str(seed)) for seed in (0, 1))
    torch.set_num_threads(1)
    assert bits(train(SHORT, tmp_path / "again")) == bits(one)
    assert bits(other) != bits(one)


def test_global_random_states_are_left_alone(tmp_path, two_threads):
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    expected = np.random.random(), torch.rand(1)  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    train(SHORT, tmp_path)
    assert (np.random.random(), torch.rand(1)) == expected  # noqa: NPY002
    assert torch.get_num_threads() == two_threads


def test_another_configuration_is_refused(tmp_path):
    train(SHORT, tmp_path)
    with pytest.raises(ValueError, match=r"another training run \(seed: 0 there, 1 now\)"):
        train(replace(SHORT, seed=1), tmp_path)
    (tmp_path / CONFIG).write_text("{")
    with pytest.raises(ValueError, match=r"config.json is not JSON"):
        train(SHORT, tmp_path)
    (tmp_path / CONFIG).write_text("[]")
    with pytest.raises(ValueError, match=r"config.json holds a list; accepted is a JSON object"):
        train(SHORT, tmp_path)


def test_a_damaged_state_is_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(SHORT, tmp_path, on_epoch=stop_after(1))
    (tmp_path / STATE).write_bytes((tmp_path / STATE).read_bytes()[:100])
    with pytest.raises(ValueError, match=r"state.safetensors is damaged"):
        train(SHORT, tmp_path)


def test_the_loss_falls_over_the_stages(tmp_path):
    """The curriculum goes on with one optimiser: the second stage starts where the first ended."""
    config = replace(SHORT, samples_per_stage=2000, learning_rate=1e-2)
    train(config, tmp_path)
    losses = [row.loss for row in read_log(tmp_path)]
    assert losses == sorted(losses, reverse=True)


def test_identification_stores_its_reference(tmp_path):
    config = TrainingConfig.identification(
        4, reference_seed=7, samples_per_stage=200, epochs_per_stage=1, validation_samples=20
    )
    train(config, tmp_path)
    reference = np.float32(checkpoint.load(tmp_path).task["reference"])
    assert np.array_equal(reference, tasks.reference_scene(4, 7))


def test_stored_sets_give_what_generated_ones_give(tmp_path, monkeypatch):
    """The same samples, by way of files, end in the same weights."""
    config = replace(SHORT, data=str(tmp_path / "sets"))
    for stage, limit in enumerate(SHORT.stages):
        samples = SHORT.task_at(limit).sample(300, protocol.stream(0, SHORT.set_name(stage)))
        named.save(samples, tmp_path / "sets" / f"stage{stage + 1}")
    named.save(SHORT.task_at(TURN).sample(50, protocol.stream(0, SHORT.set_name("valid"))), tmp_path / "sets" / "valid")
    assert bits(train(config, tmp_path / "a")) == bits(train(SHORT, tmp_path / "b"))


def test_named_sets_of_identification(tmp_path):
    for split in ("train", "valid"):
        named.generate(f"identification/n3/{split}", tmp_path, size=150)
    data = str(tmp_path / "identification" / "n3")
    config = TrainingConfig.identification(3, epochs_per_stage=1, data=data)
    train(config, tmp_path / "run")
    with pytest.raises(ValueError, match="another reference scene than n_objects=3, reference_seed=1"):
        train(replace(config, reference_seed=1), tmp_path / "other")


def test_missing_sets_say_so(tmp_path):
    with pytest.raises(named.DataSetError, match=r"stage1.json does not exist"):
        train(replace(SHORT, data=str(tmp_path / "none")), tmp_path / "run")


def stored(folder, config=SHORT, size=300, settings=None):
    """Sets that fit a configuration, in a folder."""
    for part, limit in (*enumerate(config.stages), ("valid", TURN)):
        name = part if isinstance(part, str) else f"stage{part + 1}"
        samples = config.task_at(limit).sample(size, protocol.stream(0, name))
        named.save(samples, folder / name, settings)
    return replace(config, data=str(folder))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("discrimination/9-20", {}, r"stage1 was made for .* n_objects is \[9, 20\] there and \[3, 8\] in the conf"),
        ("discrimination/3-8", {"stages": (TURN,)}, r"stage1 was made for .*: max_rotation is 0.31\d* there and 6.28"),
        ("discrimination/3-8", {"stages": (*tasks.STAGES[:2], TURN)}, r"stage3 was made for .*: max_rotation is 3.45"),
        ("identification/n3", {}, "stage1.json does not exist"),
    ],
)
def test_named_sets_of_something_else_are_refused(tmp_path, name, changes, message):
    for known in named.NAMES:
        if known.startswith(name + "/"):
            named.generate(known, tmp_path, size=5)
    config = replace(SHORT, stages=tasks.STAGES, data=str(tmp_path / name))
    with pytest.raises(ValueError, match=message):
        train(replace(config, **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_named_sets_of_discrimination(tmp_path):
    for known in named.NAMES:
        if known.startswith("discrimination/3-8/"):
            named.generate(known, tmp_path, size=5)
    config = replace(SHORT, stages=tasks.STAGES, data=str(tmp_path / "discrimination" / "3-8"))
    train(config, tmp_path / "run")
    assert len(read_log(tmp_path / "run")) == 10


@pytest.mark.parametrize(
    ("changes", "settings", "size", "message"),
    [
        ({"n_objects": (3, 9)}, None, 5, "n_max is 8 there and 9 in the configuration"),
        ({}, {"task": "Identification"}, 5, "task is 'Identification' there and 'Discrimination' in the configuration"),
        ({}, {"n_objects": 8}, 5, r"n_objects is 8 there and \[3, 8\] in the configuration"),
        ({}, None, 0, "stage1 holds no samples"),
    ],
)
def test_sets_of_ones_own_must_fit_too(tmp_path, changes, settings, size, message):
    config = stored(tmp_path / "sets", size=size, settings=settings)
    with pytest.raises(ValueError, match=message):
        train(replace(config, **changes), tmp_path / "run")


def test_what_was_trained_on_is_written_down(tmp_path):
    config = stored(tmp_path / "sets")
    train(config, tmp_path / "run")
    digests = {name: named.read_manifest(tmp_path / "sets" / name)["sha256"] for name in ("stage1", "stage2", "valid")}
    assert checkpoint.load(tmp_path / "run").task["data"] == {"path": config.data, "sha256": digests}
    assert json.loads((tmp_path / "run" / CONFIG).read_text()) == config.to_json() | {"sets": digests}
    assert "data" not in SHORT.describe_task()


@pytest.mark.parametrize("changed", ["stage1", "stage2", "valid"])
def test_sets_that_changed_in_between_are_refused(tmp_path, changed):
    config = stored(tmp_path / "sets")
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", on_epoch=stop_after(1))
    named.save(SHORT.task_at(TURN).sample(300, np.random.default_rng(9)), tmp_path / "sets" / changed)
    with pytest.raises(ValueError, match=f"{changed} has changed since this training run began with it"):
        train(config, tmp_path / "run")
    whole = train(stored(tmp_path / "sets"), tmp_path / "whole")
    assert bits(train(config, tmp_path / "run")) == bits(whole)


def test_a_set_that_changes_during_the_training_is_refused(tmp_path):
    config = stored(tmp_path / "sets")

    def change(row):
        named.save(SHORT.task_at(TURN).sample(300, np.random.default_rng(9)), tmp_path / "sets" / "stage2")

    with pytest.raises(ValueError, match="stage2 has changed"):
        train(config, tmp_path / "run", on_epoch=change)


def test_a_finished_run_needs_its_sets_no_more(tmp_path):
    config = stored(tmp_path / "sets")
    model = train(config, tmp_path / "run")
    info = checkpoint.read_info(tmp_path / "run")
    shutil.rmtree(tmp_path / "sets")
    assert bits(train(config, tmp_path / "run")) == bits(model)
    assert checkpoint.read_info(tmp_path / "run") == info


def test_samples_per_stage_is_the_most_that_is_taken_of_a_set(tmp_path):
    """The first 100 of 300 stored samples are what a set of those 100 gives; the sets are smaller than 10,000."""
    config = stored(tmp_path / "sets")
    for name in ("stage1", "stage2", "valid"):
        named.save(named.load(tmp_path / "sets" / name)[:100], tmp_path / "fewer" / name)
    part = train(replace(config, samples_per_stage=100), tmp_path / "part")
    fewer = train(replace(config, samples_per_stage=10_000, data=str(tmp_path / "fewer")), tmp_path / "fewer_run")
    assert bits(part) == bits(fewer) != bits(train(config, tmp_path / "all"))


# --- runs that fail before they begin -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failing",
    [
        lambda run: train(SHORT, run, device="tpu"),
        lambda run: train(replace(SHORT, data=str(run / "none")), run),
        lambda run: train(replace(SHORT, seed=-1), run),
    ],
    ids=["device", "data", "seed"],
)
def test_a_run_that_fails_at_once_leaves_the_folder_free(tmp_path, failing):
    with pytest.raises((RuntimeError, ValueError)):
        failing(tmp_path)
    assert not (tmp_path / CONFIG).exists()
    train(replace(SHORT, seed=1), tmp_path)
    assert (tmp_path / checkpoint.INFO).exists()


def test_an_interrupt_in_the_first_epoch_leaves_a_run_to_go_on_with(tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(protocol, "loss_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(SHORT, tmp_path / "parts")
    monkeypatch.undo()
    assert bits(train(SHORT, tmp_path / "parts")) == bits(train(SHORT, tmp_path / "whole"))


def test_progress_bar(tmp_path, capsys):
    train(SHORT, tmp_path / "quiet")
    assert capsys.readouterr().err == ""
    train(SHORT, tmp_path / "shown", progress=True)
    assert "4/4" in capsys.readouterr().err


def test_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(SHORT, tmp_path, tensorboard=True)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    rows = read_log(tmp_path)
    assert [e.step for e in events.Scalars("loss/train")] == [1, 2, 3, 4]
    assert [e.value for e in events.Scalars("accuracy/validation")] == pytest.approx(
        [row.validation_accuracy for row in rows]
    )


def test_tensorboard_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        train(SHORT, tmp_path, tensorboard=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "sorting"}, "accepted is discrimination or identification"),
        ({"model": "gpt"}, "model 'gpt' is unknown"),
        ({"model": ["mpgnn"]}, r"model is \['mpgnn'\]; accepted is a name"),
        ({"settings": None}, "settings is None; accepted is a dict"),
        ({"model": "mpgnn_single"}, "mpgnn_single sees one scene"),
        ({"settings": {"depth": 1}}, "no settings"),
        ({"negative": "upside_down"}, "upside_down"),
        ({"task": "identification"}, "give an int"),
        ({"n_objects": (8, 3)}, r"n_objects is \(8, 3\)"),
        ({"batch_size": 0}, "batch_size is 0; accepted is an int from 1"),
        ({"epochs_per_stage": 1.5}, "epochs_per_stage is 1.5"),
        ({"samples_per_stage": True}, "samples_per_stage is True"),
        ({"validation_samples": "9"}, "validation_samples is '9'"),
        ({"negative": None}, "negative is None; accepted is a name"),
        ({"n_objects": [3, 8]}, r"n_objects is \[3, 8\]; accepted is an int from 1, or a tuple"),
        ({"n_objects": True}, "n_objects is True"),
        ({"seed": -1}, "seed is -1; accepted is an int from 0"),
        ({"seed": 1.0}, "seed is 1.0"),
        ({"reference_seed": -1}, "reference_seed is -1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"learning_rate": math.inf}, "learning_rate is inf"),
        ({"learning_rate": math.nan}, "learning_rate is nan"),
        ({"learning_rate": "1"}, "learning_rate is '1'"),
        ({"data": 3}, "data is 3; accepted is a path as a str, or None"),
        ({"data": "sets", "negative": "mixture"}, "negative is 'mixture' and data 'sets'"),
        ({"stages": ()}, "stages"),
        ({"stages": [1.0]}, r"stages is \[1.0\]; accepted is a tuple"),
        ({"stages": (math.nan,)}, "stages is"),
        ({"stages": (7.0,)}, "max_rotation is 7.0"),
    ],
)
def test_contradictions_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SHORT, **changes)


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (TrainingConfig(n_objects=(9, 20)), [f"discrimination/9-20/stage{k}" for k in range(1, 6)]),
        (TrainingConfig.identification(7), ["identification/n7/train"]),
    ],
)
def test_a_run_of_the_protocol_has_the_samples_of_the_named_sets(config, names):
    """Its streams have the names of the sets, and its tasks are theirs."""
    parts = [*range(len(config.stages)), "valid"]
    for part, name in zip(parts, [*names, f"{names[0].rpartition('/')[0]}/valid"], strict=True):
        assert config.set_name(part) == name
        limit = TURN if part == "valid" else config.stages[part]
        assert named.find(name).task == config.task_at(limit)
        size = config.validation_samples if part == "valid" else config.samples_per_stage
        assert named.find(name).size == size
