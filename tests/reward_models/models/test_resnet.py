"""The networks that see pictures, as networks and as rewards."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from torchvision.models import resnet18

import spatialsim_env
from reward_models import models
from reward_models.judges.learned import LearnedModel, LearnedReward, load
from reward_models.measuring.evaluation import accuracy, logits
from reward_models.models import checkpoint
from reward_models.models.batch import for_model
from reward_models.threads import one_thread
from reward_models.training.config import TrainingConfig
from reward_models.training.protocol import train
from spatialsim_env import testing
from spatialsim_env.arrangements import similarities
from spatialsim_env.arrangements.pictures import pictures
from spatialsim_env.arrangements.scene import POSITION
from spatialsim_env.arrangements.tasks import Discrimination, Identification

PIXELS = 32
KINDS = ("resnet18_single", "resnet18")
DISCRIM, IDENT = (f"spatialsim_env:{env_id}" for env_id in spatialsim_env.ENV_IDS)


@pytest.fixture(scope="module", autouse=True)
def on_one_thread():
    """Convolutions on more threads than there are idle processors wait for each other."""
    with one_thread():
        yield


def levels(scenes) -> torch.Tensor:
    """Pictures (B, 3, 32, 32) of levels 0..255, in float64."""
    return torch.from_numpy(pictures(scenes, PIXELS).astype(np.float64)).permute(0, 3, 1, 2)


def pairs(size: int):
    samples = Discrimination((3, 8)).sample(size, np.random.default_rng(0))
    return samples.target, samples.reference


def identification_pairs(size: int):
    """Scenes to judge and goals that are the reference of 5 objects, transformed and in another order."""
    samples = Identification(5).sample(size, np.random.default_rng(1))
    return samples.target, similarities.sample(size, np.random.default_rng(2)).apply(
        np.array(samples.reference)[:, ::-1]
    )


@pytest.fixture(scope="module", params=KINDS)
def folder(request, tmp_path_factory):
    """An untrained network, but for the statistics that training would have left; one of one input knows 5 objects."""
    model = models.create(request.param, {"pixels": PIXELS}, seed=3)
    model(*(torch.randint(0, 256, (8, 3, PIXELS, PIXELS), dtype=torch.uint8) for _ in range(2)))
    task = {"task": "discrimination"} if model.two_inputs else {"task": "identification", "n_objects": 5}
    config = TrainingConfig(model=request.param, settings={"pixels": PIXELS}, **task)
    return checkpoint.save(model, tmp_path_factory.mktemp(request.param), config.describe_task()).parent


@pytest.fixture(scope="module")
def model(folder):
    return load(folder)


def test_it_is_torchvisions_network_and_a_linear_head():
    target, reference = pairs(5)
    for kind in KINDS:
        model = models.create(kind, {"pixels": PIXELS}, seed=1).double().eval()
        theirs = resnet18().double().eval()
        theirs.load_state_dict(model.network.state_dict())
        seen = [levels(target), levels(reference)] if model.two_inputs else [levels(target)]
        expected = torch.cat([theirs((255 - x) / 255) for x in seen], dim=1) @ model.head.weight.T + model.head.bias
        batch = for_model(model, Discrimination((3, 8)).sample(5, np.random.default_rng(0)))
        assert torch.allclose(model(batch.target, batch.reference)[0], expected, rtol=1e-9, atol=1e-12)


def test_levels_may_come_in_any_dtype():
    model = models.create("resnet18_single", {"pixels": PIXELS}).eval()
    whole = torch.randint(0, 256, (2, 3, PIXELS, PIXELS), dtype=torch.uint8)
    assert torch.equal(model(whole), model(whole.float()))


def test_an_empty_picture_is_nothing_to_the_first_layer():
    """The background is what the network pads with."""
    model = models.create("resnet18_single", {"pixels": PIXELS})
    seen = []
    model.network.conv1.register_forward_hook(lambda _, inputs, output: seen.append((*inputs, output)))
    model(torch.full((2, 3, PIXELS, PIXELS), 255, dtype=torch.uint8))
    assert not seen[0][0].any()
    assert not seen[0][1].any()


def test_one_size_of_weights_for_all_pictures():
    model = models.create("resnet18_single")
    assert model.config.pixels == 224
    assert model(torch.zeros(2, 3, 224, 224)).shape == (1, 2, 2)


def test_scenes_and_pictures_of_another_size_are_refused():
    model = models.create("resnet18_single", {"pixels": PIXELS})
    for wrong in (torch.zeros(2, 5, 10), torch.zeros(2, 3, 64, 64)):
        with pytest.raises(ValueError, match="accepted are pictures B x 3 x 32 x 32"):
            model(wrong)


@pytest.mark.parametrize("pixels", [0, 31, 64.0, True, "64"])
def test_sides_that_are_none(pixels):
    with pytest.raises(ValueError, match="accepted is an int from 32"):
        models.create("resnet18", {"pixels": pixels})


def test_without_torchvision_the_other_models_work():
    code = (
        "import sys; sys.modules['torchvision'] = sys.modules['torchvision.models'] = None\n"
        "from reward_models import models\n"
        "models.create('mpgnn'), models.REGISTRY['resnet18'].Config(pixels=64)\n"
        "try: models.create('resnet18')\n"
        "except ImportError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert 'pip install "spatialsim-env[learn,render]"' in result.stdout


def test_torchvision_is_imported_when_a_network_is_made():
    code = "import sys, reward_models.models, reward_models.learned_reward; print('torchvision' in sys.modules)"
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "False", result.stderr


# --- training -------------------------------------------------------------------------------------------------------


def test_a_run_that_was_interrupted_ends_with_the_same_bits(tmp_path):
    """The statistics of batch normalisation are part of the state."""

    class Stop(Exception):
        pass

    def stop(_: object) -> None:
        raise Stop

    config = TrainingConfig.identification(
        3, model="resnet18_single", settings={"pixels": PIXELS}, samples_per_stage=24, epochs_per_stage=2,
        validation_samples=8, batch_size=8,
    )  # fmt: skip
    whole = train(config, tmp_path / "whole")
    with pytest.raises(Stop):
        train(config, tmp_path / "parts", on_epoch=stop)
    parts = train(config, tmp_path / "parts")
    for name, value in whole.state_dict().items():
        assert torch.equal(value, parts.state_dict()[name]), name
    assert whole.state_dict()["network.bn1.num_batches_tracked"] == 6
    stored = checkpoint.load(tmp_path / "parts").model.eval()
    samples = config.task_at(1.0).sample(9, np.random.default_rng(0))
    batch = for_model(whole, samples)
    assert torch.equal(logits(stored, batch), logits(whole, batch))
    assert accuracy(stored, samples) == accuracy(whole, batch)


def scenes(size: int):
    """Scenes in the arena and their goals."""
    return pairs(size)[::-1]


# --- a network as a function and as a reward ------------------------------------------------------------------------


def test_scores_are_those_of_the_pictures(model):
    achieved, desired = scenes(6)
    with torch.no_grad():
        expected = model.module.score(*map(levels, (desired, achieved) if model.two_inputs else (achieved,)))
    assert model.score(achieved, desired) == pytest.approx(expected.numpy(), rel=1e-5, abs=1e-6)
    assert len(np.unique(model.score(achieved, desired))) == 6


def test_a_row_has_the_same_bits_in_every_batch(model, monkeypatch):
    achieved, desired = scenes(24)
    whole = model.score(achieved, desired)
    for start in range(0, 24, 3):
        part = slice(start, start + 3)
        assert np.array_equal(model.score(achieved[part], desired[part]), whole[part])
    order = np.random.default_rng(3).permutation(24)
    assert np.array_equal(model.score(achieved[order], desired[order]), whole[order])
    monkeypatch.setattr("reward_models.models.batch.PIXELS_AT_ONCE", 7 * PIXELS**2)
    assert np.array_equal(model.score(achieved, desired), whole)


def test_every_form_of_a_scene(model):
    achieved, desired = scenes(3)
    score = model.score(achieved, desired)
    assert np.array_equal(model.score(achieved.reshape(3, -1), desired.astype(np.float64)), score)
    assert np.array_equal(model.score(achieved[0], desired[0]), score[:1])
    assert np.array_equal(model.score(achieved, desired[0]), model.score(achieved, desired[[0] * 3]))
    assert model.score(achieved[:0], desired[:0]).shape == (0,)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_the_contract_of_rewards(model, kind):
    achieved, desired = scenes(16) if model.two_inputs else identification_pairs(16)
    testing.assert_reward(LearnedReward(model, kind), testing.Samples(desired, achieved, np.zeros(16, np.float32)))


def test_a_scene_outside_the_window_has_a_reward(model):
    achieved, desired = scenes(2) if model.two_inputs else identification_pairs(2)
    achieved = achieved.copy()
    achieved[0, 0, POSITION] = 500.0
    assert np.isin(LearnedReward(model)(achieved, desired), (-1.0, 0.0)).all()


def test_a_model_in_no_file_travels_with_its_weights(model):
    achieved, desired = scenes(4)
    other = pickle.loads(pickle.dumps(LearnedModel(copy.deepcopy(model.module), model.task)))
    assert np.array_equal(other.score(achieved, desired), model.score(achieved, desired))


def test_inside_an_environment(folder, model):
    env_id = DISCRIM if model.two_inputs else IDENT
    env = gym.make(env_id, reward=f"{folder}:dense", n_objects=5)
    testing.assert_environment(env)
    sb3_check_env(env.unwrapped)
    observation, _ = env.reset(seed=0)
    achieved, desired = observation["achieved_goal"][None], observation["desired_goal"][None]
    pair = (achieved, desired) if model.two_inputs else (achieved,)
    value = env.unwrapped.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
    assert value == pytest.approx(model.probability(*pair)[0] - 1, abs=1e-6)
