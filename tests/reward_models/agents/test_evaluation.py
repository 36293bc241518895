import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from reward_models.agents import evaluation as module
from reward_models.agents.configs import DISCRIMINATION, IDENTIFICATION, AgentConfig
from reward_models.agents.evaluation import Evaluation, evaluate, film, steps
from reward_models.agents.extractor import FAR, place_goal
from reward_models.shares import wilson
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.alignment import align
from spatialsim_env.arrangements.scene import as_batch
from spatialsim_env.arrangements.truth import SceneTruth
from spatialsim_env.core.rewards import Dense

CONFIG = AgentConfig("evaluation", env_kwargs={"n_objects": 3, "max_turn": 0})


class Walker:
    """Moves every object straight to its place."""

    def predict(self, observation, *, deterministic=True):
        scenes = (torch.from_numpy(as_batch(observation[key])[0]) for key in ("achieved_goal", "desired_goal"))
        way = FAR * place_goal(*scenes)[..., 2:4]
        return way.flatten(1).clamp(-1, 1).numpy(), None


class Yes:
    """Says achieved whatever it sees."""

    name, success_threshold = "yes", 0.0

    def __call__(self, achieved, desired):
        return np.zeros(len(achieved))


class Near:
    """Says achieved what is within six units of it."""

    name, success_threshold = "near", -0.5

    def __call__(self, achieved, desired):
        return -(align(achieved, desired, (6.0, 1.0, 1.0), criterion="positions").distance > 1).astype(float)


@given(st.integers(1, 300), st.data())
def test_wilson_is_scipys(trials, data):
    hits = data.draw(st.integers(0, trials))
    expected = binomtest(hits, trials).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose(wilson(hits, trials), (expected.low, expected.high), atol=1e-6)


def test_wilson_without_trials_and_of_nonsense():
    assert wilson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 hits of 2 trials"):
        wilson(3, 2)


def test_walking_to_the_places_is_success():
    result = evaluate(Walker(), CONFIG, episodes=20, seed=5)
    assert result.success.all()
    assert result.claimed.all()
    assert result.precision == result.success_rate == result.claimed_rate == 1
    np.testing.assert_allclose(goals.distance(result.achieved, result.desired), result.distance)
    summary = result.summary()
    assert summary["success"] == 1
    assert summary["success_interval"] == list(wilson(20, 20))
    assert summary["median_distance"] == np.median(result.distance)


@pytest.mark.parametrize("env_id", [DISCRIMINATION, IDENTIFICATION])
def test_the_expert_is_an_upper_bound(env_id):
    assert evaluate("expert", replace(CONFIG, env_id=env_id), episodes=100).success_rate >= 0.99


def test_claims_are_counted_apart_from_the_truth():
    result = evaluate("random", CONFIG, Yes(), episodes=12)
    assert result.claimed.all()
    assert result.ever_claimed.all()
    assert result.precision == result.success_rate < 0.5


def test_what_was_once_achieved_and_lost_counts_as_ever_only():
    class Overshooter(Walker):
        def __init__(self):
            self.round = 0

        def predict(self, observation, *, deterministic=True):
            self.round += 1
            actions, _ = super().predict(observation)
            leave = np.tile([1, 1, -1, 0, 0, -1], (len(actions), 1))
            return (actions if self.round <= 40 else leave), None

    result = evaluate(Overshooter(), CONFIG, episodes=10)
    assert result.ever_success.all()
    assert result.ever_claimed.all()
    assert not result.success.any()
    assert not result.claimed.any()


def test_equal_seeds_give_equal_episodes_however_many_are_played_together(monkeypatch):
    whole = evaluate("random", CONFIG, episodes=7, seed=3)
    monkeypatch.setattr(module, "COPIES", 3)
    parts = evaluate("random", CONFIG, episodes=7, seed=3)
    for name in ("success", "claimed", "distance", "achieved", "desired"):
        assert (getattr(whole, name) == getattr(parts, name)).all()
    assert (evaluate(Walker(), CONFIG, episodes=7, seed=3).desired == whole.desired).all()
    assert (evaluate("random", CONFIG, episodes=7, seed=4).desired[:6] == whole.desired[1:]).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"env_kwargs": {"n_objects": (3, 5)}},
        {"env_kwargs": {"n_objects": 3, "observation": "pixels"}},
        {"env_kwargs": {"n_objects": (3, 5), "terminate_on_success": True}, "algorithm": "ppo"},
        {"env_kwargs": {"n_objects": 5}, "env_id": IDENTIFICATION},
    ],
    ids=str,
)
def test_an_evaluation_is_what_single_environments_say_step_by_step(changes):
    config = replace(CONFIG, **{"horizon": 12, "batch_size": 64, **changes})
    found = evaluate("expert", config, Near(), episodes=5, seed=3)
    for episode in range(found.episodes):
        env = config.make_env(Near())
        _, *infos = steps("expert", env, 3 + episode)
        for name, key in (("success", "is_success"), ("claimed", "is_success_model")):
            assert getattr(found, name)[episode] == infos[-1][key]
            assert getattr(found, f"ever_{name}")[episode] == any(info[key] for info in infos)
        assert found.distance[episode] == infos[-1]["distance"]
        for name, scene in zip(("achieved", "desired"), env.unwrapped.scenes, strict=True):
            assert (getattr(found, name)[episode] == scene).all()
    assert found.ever_claimed.any()


def test_episodes_that_end_early_are_not_played_on():
    config = replace(CONFIG, algorithm="ppo", env_kwargs={**CONFIG.env_kwargs, "terminate_on_success": True})
    result = evaluate(Walker(), config, episodes=10)
    assert result.success.all()
    assert np.median(result.distance) > 0.5


def test_a_reward_by_name_is_the_environments_own():
    dense = evaluate(Walker(), CONFIG, "dense", episodes=5)
    live = evaluate(Walker(), CONFIG, Dense(SceneTruth()), episodes=5)
    assert (dense.claimed == live.claimed).all()


def test_a_summary_without_claims_or_finite_distance_holds_no_nan():
    no, scenes = np.zeros(4, bool), np.zeros((4, 3, 10), np.float32)
    result = Evaluation(0, no, no, no, no, np.full(4, np.inf), scenes, scenes)
    assert math.isnan(result.precision)
    summary = result.summary()
    assert summary["precision"] is None
    assert summary["precision_interval"] == [0.0, 1.0]
    assert summary["median_distance"] is None


@pytest.mark.parametrize(
    ("policy", "episodes", "seed", "message"),
    [
        ("greedy", 5, 0, "policy is 'greedy'; accepted are \"random\""),
        ("random", 0, 0, "episodes is 0; accepted is an int from 1"),
        ("random", 5, -1, "seed is -1; accepted is an int from 0"),
    ],
)
def test_bad_arguments_are_named(policy, episodes, seed, message):
    with pytest.raises(ValueError, match=message):
        evaluate(policy, CONFIG, episodes=episodes, seed=seed)


def test_a_film_has_a_frame_per_step_and_one_of_the_start():
    pytest.importorskip("pygame")
    frames = film(Walker(), replace(CONFIG, horizon=5), seed=2)
    assert len(frames) == 6
    assert len({frame.shape for frame in frames}) == 1
    assert frames[0].dtype == np.uint8
    assert (frames[0] != frames[-1]).any()
