"""Rewards that cannot judge an environment's goals are refused, or warned of, before anything is trained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reward_models import models
from reward_models.agents.configs import DISCRIMINATION, IDENTIFICATION, AgentConfig
from reward_models.agents.fit import RewardRangeWarning, check_fit
from reward_models.agents.training import train
from reward_models.judges.learned import LearnedModel, LearnedReward

PPO = {"algorithm": "ppo", "rollout": 64, "n_envs": 4}


def world(env_id=DISCRIMINATION, algorithm="ppo", **env_kwargs):
    more = PPO if algorithm == "ppo" else {}
    return AgentConfig("world", env_id, env_kwargs, **more)


@pytest.mark.parametrize("n_objects", [3, 8, (3, 8), (4, 6)])
@pytest.mark.parametrize("suffix", ["", ":dense"])
def test_a_model_of_two_inputs_fits_within_its_range(untrained, n_objects, suffix):
    check_fit(world(n_objects=n_objects), f"{untrained('matching')}{suffix}")


@pytest.mark.parametrize(("n_objects", "said"), [(2, "2 to 2"), (9, "9 to 9"), ((2, 4), "2 to 4"), ([5, 9], "5 to 9")])
def test_beyond_its_range_there_is_a_warning(untrained, n_objects, said):
    with pytest.warns(RewardRangeWarning, match=rf"matching was trained on 3 to 8 objects .* has {said}; .* train it"):
        check_fit(world(n_objects=n_objects), LearnedReward(untrained("matching")))


def test_a_model_that_does_not_say_its_range_passes():
    check_fit(world(n_objects=20), LearnedReward(LearnedModel(models.create("matching"))))


@pytest.mark.parametrize("reward", ["sparse", "dense", len])
def test_other_rewards_pass(reward):
    check_fit(world(n_objects=20), reward)


def test_a_model_of_one_input_fits_its_own_reference(untrained):
    check_fit(world(IDENTIFICATION, n_objects=5), str(untrained("mpgnn_single")))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (world(n_objects=5), "environment draws new goals; take SpatialSim-Ident-v0, or use a two-input model"),
        (world(IDENTIFICATION, n_objects=4), "the goal is another: .*use a two-input model"),
        (world(IDENTIFICATION, n_objects=5, reference_seed=1), "another.*use a two-input model"),
        (world(IDENTIFICATION, "sac", n_objects=5), 'hindsight asks about other goals; take algorithm "ppo", or use'),
    ],
)
def test_a_model_of_one_input_refuses_others(untrained, config, message):
    with pytest.raises(ValueError, match=f"mpgnn_single .*knows one reference scene.*{message}"):
        check_fit(config, LearnedReward(untrained("mpgnn_single")))


def test_training_asks_first(untrained, tmp_path):
    config = world(n_objects=5)
    with pytest.raises(ValueError, match="the environment draws new goals"):
        train(config, str(untrained("mpgnn_single")), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()
    small = replace(
        config, env_kwargs={"n_objects": 2}, total_steps=1, horizon=5, batch_size=64, rollout=16, episodes=1
    )
    with pytest.warns(RewardRangeWarning, match="2 to 2"):
        train(small, str(untrained("mpgnn")), tmp_path / "run", progress=False).close()
