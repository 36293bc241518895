from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import reward_models
from reward_models import models
from reward_models.judges.learned import LearnedModel, LearnedReward, load, resolve
from reward_models.models import checkpoint
from spatialsim_env import testing
from spatialsim_env.arrangements import scene, similarities
from spatialsim_env.arrangements.scene import SceneError
from spatialsim_env.arrangements.tasks import Discrimination, Identification
from spatialsim_env.core import rewards

KINDS = tuple(kind for kind, model in models.REGISTRY.items() if not model.sees_pictures)  # those: test_resnet.py


def pairs(size: int, seed: int = 0):
    """Scenes in the arena and their goals."""
    samples = Discrimination((3, 8)).sample(size, np.random.default_rng(seed))
    return samples.reference, samples.target


def identification_pairs(size: int):
    """Scenes to judge and goals that are the reference of ``untrained``, transformed and in another order."""
    samples = Identification(5).sample(size, np.random.default_rng(1))
    goal = similarities.sample(size, np.random.default_rng(2)).apply(np.array(samples.reference)[:, ::-1])
    return samples.target, goal


@pytest.fixture(params=KINDS)
def model(request, untrained):
    return load(untrained(request.param))


# --- the model as a function ----------------------------------------------------------------------------------------


def test_scores_are_those_of_the_network(model, untrained):
    achieved, desired = pairs(20)
    module = checkpoint.load(untrained(model.kind)).model.double()
    taken = (desired, achieved) if model.two_inputs else (achieved,)
    with torch.no_grad():
        expected = module.score(*(torch.from_numpy(x).double() for x in taken))
    score, probability = model.score(achieved, desired), model.probability(achieved, desired)
    assert score.dtype == probability.dtype == np.float32
    assert score == pytest.approx(expected.numpy(), rel=1e-5, abs=1e-6)
    assert probability == pytest.approx(1 / (1 + np.exp(-expected.numpy())), rel=1e-5, abs=1e-6)
    assert ((probability > 0.5) == (score > 0)).all()


@pytest.mark.parametrize("kind", [*KINDS, "trained"])
def test_a_row_has_the_same_bits_in_every_batch(kind, untrained, mixed_folder):
    model = load(mixed_folder if kind == "trained" else untrained(kind))
    achieved, desired = pairs(512)
    for judge in (model.score, model.probability):
        whole = judge(achieved, desired)
        assert np.array_equal(judge(achieved[:204], desired[:204]), whole[:204])
        for start in range(0, 512, 2):
            two = judge(achieved[start : start + 2], desired[start : start + 2])
            assert np.array_equal(two, whole[start : start + 2])
            assert np.array_equal(judge(achieved[start], desired[start]), whole[start : start + 1])
        order = np.random.default_rng(3).permutation(512)
        assert np.array_equal(judge(achieved[order], desired[order]), whole[order])


def test_parts_of_a_large_set_are_the_set(model, monkeypatch):
    achieved, desired = pairs(100)
    whole = model.score(achieved, desired)
    monkeypatch.setattr("reward_models.models.batch.PAIRS_AT_ONCE", 64 * 7)
    assert np.array_equal(model.score(achieved, desired), whole)


def test_every_form_of_a_scene(model):
    achieved, desired = pairs(3)
    score = model.score(achieved, desired)
    assert np.array_equal(model.score(achieved.reshape(3, -1), desired.reshape(3, -1)), score)
    assert np.array_equal(model.score(achieved[0], desired[0]), score[:1])
    assert np.array_equal(model.score(achieved[0].ravel(), desired[0].tolist()), score[:1])
    assert np.array_equal(model.score(achieved.astype(np.float64), desired), score)
    assert np.array_equal(model.score(scene.pad(achieved, 12), scene.pad(desired, 9)), score)
    assert model.score(achieved[:0], desired[:0]).shape == (0,)
    achieved.flags.writeable = False
    assert np.array_equal(model.score(achieved, desired), score)


def test_one_scene_serves_a_batch(untrained):
    model = load(untrained("matching"))
    achieved, desired = pairs(4)
    assert np.array_equal(model.score(achieved[0], desired), model.score(achieved[[0] * 4], desired))
    assert np.array_equal(model.score(achieved, desired[:1]), model.score(achieved, desired[[0] * 4]))
    with pytest.raises(SceneError, match="3 achieved and 4 desired"):
        model.score(achieved[:3], desired)


def test_bad_scenes(model):
    achieved, desired = pairs(2)
    for value, message in ((np.nan, "not a finite number"), (0.0, "sizes are positive")):
        wrong = achieved.copy()
        wrong[0, 0, scene.SIZE] = value
        with pytest.raises(SceneError, match=message):
            model.score(wrong, desired)
    with pytest.raises(SceneError, match="holds no object"):
        model.score(np.zeros((1, 3, 10)), desired[:1])
    with pytest.raises(SceneError, match="accepted are"):
        model.score(np.zeros((2, 3, 9)), desired)


def test_one_input_needs_no_reference(untrained):
    achieved, desired = pairs(5)
    single = load(untrained("mpgnn_single"))
    assert np.array_equal(single.score(achieved), single.score(achieved, desired))
    assert np.array_equal(single.fixed_goal, Identification(5).reference)
    with pytest.raises(ValueError, match="give the desired one"):
        load(untrained("mpgnn")).score(achieved)
    assert load(untrained("mpgnn")).fixed_goal is None


def test_nothing_is_left_behind(untrained, two_threads):
    """Flags, threads and gradients are as before; the network that was handed in stays as it was."""
    module = models.create("mpgnn")
    module.train()
    model = LearnedModel(module)
    model.score(*pairs(4))
    assert module.training
    assert next(module.parameters()).dtype == torch.float32
    assert all(p.requires_grad and p.grad is None for p in module.parameters())
    assert not any(p.requires_grad for p in model.module.parameters())
    assert torch.is_grad_enabled()
    assert torch.get_num_threads() == two_threads


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory of the process from /proc")
def test_memory_stays_flat(model):
    def pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    achieved, desired = pairs(64)
    for _ in range(50):
        model.score(achieved, desired)
    before = pages()
    for _ in range(1000):
        model.score(achieved, desired)
    assert (pages() - before) * 4096 < 4e6


# --- the model as a reward ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_the_contract_of_rewards(model, kind):
    reward = LearnedReward(model, kind)
    achieved, desired = pairs(64) if model.two_inputs else identification_pairs(64)
    samples = testing.Samples(desired, achieved, np.zeros(64, np.float32))
    testing.assert_reward(reward, samples)


def test_values(model):
    if model.two_inputs:
        achieved, desired = pairs(40)
        scores = model.score(achieved, desired)
    else:
        achieved, desired = identification_pairs(40)
        scores = model.score(achieved)
    sparse, dense = LearnedReward(model)(achieved, desired), LearnedReward(model, "dense")(achieved, desired)
    assert np.array_equal(sparse, np.where(scores > 0, 0.0, -1.0))
    assert dense == pytest.approx(1 / (1 + np.exp(-scores.astype(np.float64))) - 1, abs=1e-6)
    assert np.array_equal(sparse >= LearnedReward.success_threshold, dense >= LearnedReward.success_threshold)


def test_other_objects_are_not_achieved(mixed_folder):
    rng = np.random.default_rng(0)
    achieved = scene.sample([3, 3], 4, rng)
    desired = achieved.copy()
    desired[1] = scene.sample([4], 4, rng)[0]
    for kind in ("sparse", "dense"):
        values = LearnedReward(mixed_folder, kind)(achieved, desired)
        assert values[0] >= LearnedReward.success_threshold
        assert values[1] == -1


def test_one_input_refuses_other_goals(untrained):
    """Also a goal that HER relabelled: another arrangement of the same objects."""
    reward = LearnedReward(untrained("mpgnn_single"))
    achieved, desired = identification_pairs(4)
    assert reward(achieved, desired).shape == (4,)
    moved = desired.copy()
    moved[2, 0, scene.POSITION] += 8
    with pytest.raises(ValueError, match=r"goal 2 is another; use a two-input model"):
        reward(achieved, moved)
    others = scene.sample([5] * 4, 5, np.random.default_rng(5))
    with pytest.raises(ValueError, match="use a two-input model"):
        reward(achieved, others)
    with pytest.raises(ValueError, match="use a two-input model"):
        reward(achieved, others[:, :3])


def test_one_input_without_a_reference(tmp_path):
    checkpoint.save(models.create("mpgnn_single"), tmp_path)
    achieved, desired = identification_pairs(2)
    with pytest.raises(ValueError, match="does not say which reference it knows"):
        LearnedReward(tmp_path)(achieved, desired)


def test_copies_are_small_and_lazy(untrained):
    folder = untrained("mpgnn")
    achieved, desired = pairs(8)
    reward = LearnedReward(folder, "dense")
    values = reward(achieved, desired)
    assert len(pickle.dumps(reward)) < 500
    for other in (pickle.loads(pickle.dumps(reward)), copy.deepcopy(reward), copy.copy(reward)):
        assert other.name == reward.name
        assert other.kind == "dense"
        assert np.array_equal(other(achieved, desired), values)


def test_a_model_in_no_file_travels_with_its_weights():
    reward = LearnedReward(LearnedModel(models.create("mpgnn", seed=5), {"name": "none"}))
    achieved, desired = pairs(8)
    values = reward.model.score(achieved, desired)
    for other in (pickle.loads(pickle.dumps(reward)), copy.deepcopy(reward)):
        assert np.array_equal(other.model.score(achieved, desired), values)
        assert other.model.task == {"name": "none"}
        assert other.name == "mpgnn"
    assert len(pickle.dumps(reward)) < 60_000


def test_a_reward_moves_to_another_folder_by_itself(untrained, monkeypatch, tmp_path):
    """A relative path still holds where a worker process stands elsewhere."""
    folder = untrained("mpgnn")
    monkeypatch.chdir(folder.parent)
    reward = pickle.dumps(LearnedReward("mpgnn"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(reward).model.kind == "mpgnn"


# --- names ----------------------------------------------------------------------------------------------------------


def test_resolve(untrained, monkeypatch):
    folder = untrained("matching")
    for spec, kind in ((f"{folder}", "sparse"), (f"{folder}:dense", "dense"), (f"{folder}:sparse", "sparse")):
        reward = resolve(spec)
        assert reward.kind == kind
        assert rewards.installed(reward.name).kind == kind
        assert isinstance(rewards.installed(spec), LearnedReward)
    monkeypatch.chdir(folder.parent)
    assert resolve("matching:dense").model.source == str(folder.resolve())
    assert resolve(f"matching/{checkpoint.INFO}").kind == "sparse"


def test_resolve_does_not_load_weights(untrained):
    folder = untrained("matching")
    reward = resolve(str(folder))
    (folder / checkpoint.WEIGHTS).unlink()
    with pytest.raises(checkpoint.CheckpointError, match="is missing"):
        reward.model.score(*pairs(1))


def test_names_that_are_not_ours():
    assert resolve("sparsest") is None
    with pytest.raises(ValueError, match="reward 'sparsest' is unknown"):
        rewards.installed("sparsest")


def test_names_that_lead_nowhere(untrained):
    with pytest.raises(checkpoint.CheckpointError, match=r"runs/none/model.json does not exist"):
        resolve("runs/none")
    with pytest.raises(ValueError, match="'densest'; accepted are sparse, dense"):
        resolve(f"{untrained('mpgnn')}:densest")


def test_the_package_offers_load_without_torch():
    assert reward_models.load is load
    code = "import sys, reward_models; assert 'torch' not in sys.modules; print(reward_models.__all__)"
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        reward_models.nothing  # noqa: B018
