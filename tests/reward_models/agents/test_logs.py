"""What is logged while an agent learns: the truth and the plugged-in reward, apart, in both kinds of files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reward_models.agents.configs import AgentConfig
from reward_models.agents.run import learning_curve
from reward_models.agents.training import STEPS_COLUMN, train

SAC = AgentConfig(
    "sac",
    env_kwargs={"n_objects": 5},
    horizon=10,
    total_steps=100,
    learning_starts=50,
    batch_size=32,
    net=(8,),
    gradient_steps=1,
    episodes=1,
)
PPO = replace(SAC, name="ppo", algorithm="ppo", rollout=20, batch_size=40)
LOGGED = ("rollout/success_rate", "rollout/success_rate_model", "reward/true", "reward/model")


class Yes:
    """Says achieved whatever it sees; on five objects that turn, next to nothing is so by chance."""

    name, success_threshold = "yes", 0.0

    def __call__(self, achieved, desired):
        return np.zeros(len(achieved))


@pytest.mark.parametrize("native", [False, True], ids=["DummyVecEnv", "SpatialSimVecEnv"])
@pytest.mark.parametrize("config", [SAC, PPO], ids=["sac", "ppo"])
def test_truth_and_reward_are_logged_apart(config, native, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    agent = train(replace(config, native=native), Yes(), tmp_path, progress=False, tensorboard=True)
    agent.close()
    row = learning_curve(tmp_path)[-1]
    success, claimed, true, model = (row[name] for name in LOGGED)
    assert (claimed, model) == (1, 0)
    assert success == 0
    assert true == -1
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    for name in LOGGED:
        last = events.Scalars(name)[-1]
        assert (last.step, last.value) == (row[STEPS_COLUMN], pytest.approx(row[name]))
