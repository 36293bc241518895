"""The contract of every features extractor: what the order of the objects and padding may change."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO, SAC

from reward_models.agents.buffer import WorldHerReplayBuffer
from reward_models.agents.configs import DISCRIMINATION
from reward_models.agents.extractor import FEATURES_PER_OBJECT
from reward_models.agents.set_extractors import EXTRACTORS, scale
from reward_models.agents.vec_env import SpatialSimVecEnv
from reward_models.threads import one_thread
from spatialsim_env.arrangements import scene
from spatialsim_env.arrangements.tasks import shuffle
from spatialsim_env.testing import example_pairs

LOW, N_MAX = 3, 5
by_row = {"placed"}  # a row of features per achieved object; the others are invariant


def space(n_max=N_MAX):
    return gym.make(DISCRIMINATION, n_objects=(LOW, n_max)).observation_space


def made(name, n_max=N_MAX):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return EXTRACTORS[name](space(n_max))


def scenes():
    """Achieved scenes and goals (32, 5, 10), the same objects in the same order."""
    samples = example_pairs(32, seed=1, n_objects=(LOW, N_MAX))
    return samples.reference, samples.target


def features(extractor, achieved, desired):
    flat = [torch.from_numpy(part.reshape(len(part), -1)) for part in (achieved, desired)]
    with torch.no_grad():
        return extractor(dict(zip(("observation", "achieved_goal", "desired_goal"), (flat[0], *flat), strict=True)))


def close(one, other):
    torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", EXTRACTORS)
def test_features_are_as_wide_as_promised_and_tell_scenes_apart(name):
    extractor, (achieved, desired) = made(name), scenes()
    out = features(extractor, achieved, desired)
    assert out.shape == (32, extractor.features_dim)
    assert out.dtype == torch.float32
    for parts in ((achieved, desired[::-1].copy()), (achieved[::-1].copy(), desired)):
        assert (features(extractor, *parts) - out).abs().amax(1).median() > 1e-4


@pytest.mark.parametrize("name", EXTRACTORS)
def test_the_order_of_the_goal_does_not_matter(name):
    extractor, (achieved, desired) = made(name), scenes()
    keys = np.random.default_rng(2).random(desired.shape[:2], np.float32)
    close(features(extractor, achieved, shuffle(desired, keys)), features(extractor, achieved, desired))


@pytest.mark.parametrize("name", EXTRACTORS)
def test_the_order_of_the_achieved_objects_permutes_rows_or_nothing(name):
    extractor, (achieved, desired) = made(name), scenes()
    order = np.random.default_rng(3).permutation(N_MAX)
    expected = features(extractor, achieved, desired)
    if name in by_row:
        expected = expected.unflatten(-1, (N_MAX, FEATURES_PER_OBJECT))[:, order].flatten(1)
    close(features(extractor, achieved[:, order], desired), expected)


@pytest.mark.parametrize("name", EXTRACTORS)
def test_the_same_weights_see_the_same_under_more_padding(name):
    narrow, wide, (achieved, desired) = made(name), made(name, 8), scenes()
    wide.load_state_dict(narrow.state_dict())
    out = features(wide, scene.pad(achieved, 8), scene.pad(desired, 8))
    expected = features(narrow, achieved, desired)
    if name in by_row:
        assert not out[:, expected.shape[1] :].any()
        out = out[:, : expected.shape[1]]
    close(out, expected)


@pytest.mark.parametrize("name", EXTRACTORS)
def test_a_gradient_reaches_every_weight(name):
    extractor, (achieved, desired) = made(name), scenes()
    flat = [torch.from_numpy(part.reshape(len(part), -1)).requires_grad_() for part in (achieved, desired)]
    out = extractor({"achieved_goal": flat[0], "desired_goal": flat[1]})  # observation is not read
    out.square().sum().backward()
    assert all(part.grad.abs().sum() > 0 for part in flat)
    assert all(weight.grad is not None and weight.grad.any() for weight in extractor.parameters())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("deep_set", {"width": 0}, "width is 0; accepted is an int from 1"),
        ("message_passing", {"width": 9}, "width is 9; accepted is an int from 10"),
        ("message_passing", {"rounds": 0}, "rounds is 0; accepted is an int from 1"),
    ],
)
def test_bad_settings_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        EXTRACTORS[name](space(), **options)


def test_scaling_keeps_padding_and_brings_the_arena_to_one():
    rows = torch.zeros(1, 3, 10)
    rows[0, :2, 1] = 1
    rows[0, 1, scene.POSITION], rows[0, 1, scene.ORIENTATION] = 20, 2 * torch.pi
    rows[0, :2, scene.SIZE] = 2
    out = scale(rows)[0]
    assert not out[2].any()
    for row, value in ((0, -1.0), (1, 1.0)):
        assert out[row, scene.POSITION].tolist() == [value, value]
        assert out[row, scene.ORIENTATION].item() == pytest.approx(value)
        assert out[row, scene.SIZE] == 2


@pytest.mark.parametrize("algorithm", [SAC, PPO])
@pytest.mark.parametrize("name", EXTRACTORS)
def test_agents_learn_on_it(name, algorithm):
    envs = SpatialSimVecEnv.make(DISCRIMINATION, 2, seed=0, n_objects=(2, 4), action_mode="pick_place",
                                 max_episode_steps=7)  # fmt: skip
    options = (
        {"learning_starts": 20, "buffer_size": 100, "replay_buffer_class": WorldHerReplayBuffer}
        if algorithm is SAC
        else {"n_steps": 16}
    )
    kwargs = {"net_arch": [16], "features_extractor_class": EXTRACTORS[name]}
    with one_thread():
        model = algorithm(
            "MultiInputPolicy", envs, batch_size=16, policy_kwargs=kwargs, seed=0, device="cpu", **options
        )
        before = torch.nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()
        model.learn(32)
    after = torch.nn.utils.parameters_to_vector(model.policy.parameters()).detach()
    assert torch.isfinite(after).all()
    assert (after != before).any()
    envs.close()
