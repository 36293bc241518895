"""Runs of the study of agents, and filters that name them."""

from __future__ import annotations

import json
import math

import pytest

from reward_models.agents.configs import AgentConfig
from reward_models.studies.agents import runs
from reward_models.studies.agents.runs import AgentRun, ClonedRun, NetworkRun, PlayedRun, PolicyRun, TransferRun
from reward_models.studies.agents.tables import STUDY
from reward_models.studies.engine.select import select
from reward_models.training.config import TrainingConfig

RUNS = runs.units()


def of(kind):
    return {name: run for name, run in RUNS.items() if type(run) is kind}


def test_agents_of_every_reward_and_seed():
    expected = {
        f"agents/{config}/{reward}/seed{seed}"
        for configs, rewards, seeds in (
            (("discrim_n3", "discrim_n5"), ("sparse", "dense", "mpgnn", "matching"), (0, 1, 2)),
            (("pick_place_n3",), ("sparse",), (0, 1, 2)),
            (("discrete_n3",), ("dense", "sparse"), (0, 1, 2)),
            (("discrim_n8", "discrim", "ident_n5", "positions_n5"), ("sparse",), (0,)),
            (("discrim_3_5", "discrim_n5_narrow"), ("sparse",), (0,)),
        )
        for config in configs
        for reward in rewards
        for seed in seeds
    }
    assert of(AgentRun).keys() == expected
    for name, run in of(AgentRun).items():
        _, config, reward, seed = name.split("/")
        assert (run.config.name, run.reward, f"seed{run.config.seed}") == (config, reward, seed)
        assert run.needs == ((f"rewards/{reward}",) if reward in ("mpgnn", "matching") else ())


def test_the_rest_of_the_study():
    configs = {name.split("/")[1] for name in of(AgentRun)}
    assert of(PolicyRun).keys() == {
        f"agents/{config}/{policy}" for config in configs for policy in ("random", "expert")
    }
    assert of(ClonedRun).keys() == {"agents/discrim_n3/cloned/seed0", "agents/pick_place_n3/cloned/seed0"}
    assert of(NetworkRun).keys() == {
        f"{kind}/{name}" for kind in ("rewards", "rollouts") for name in ("mpgnn", "matching")
    }
    assert [run.config.env_kwargs["n_objects"] for run in list(of(TransferRun).values())[:6]] == [3, 4, 5, 6, 7, 8]
    assert set(runs.TARGETS) <= configs


def test_networks_are_trained_as_the_study_says():
    assert RUNS["rewards/mpgnn"].training == TrainingConfig("mpgnn")
    assert RUNS["rewards/matching"].training == TrainingConfig.plain("matching", negative="mixture")
    for name in ("mpgnn", "matching"):
        assert (RUNS[f"rewards/{name}"].rollouts, RUNS[f"rollouts/{name}"].rollouts) == (None, runs.RolloutPairs())


@pytest.mark.parametrize(
    ("where", "scale", "angle"),
    [
        ("seen", (0.5, 1.0), (0, math.pi)),
        ("scale", (1.0, 2.0), (0, math.pi)),
        ("angle", (0.5, 1.0), (math.pi, 2 * math.pi)),
        ("both", (1.0, 2.0), (math.pi, 2 * math.pi)),
    ],
)
def test_goals_that_were_not_in_training(where, scale, angle):
    run = RUNS[f"generalisation/discrim_n5_narrow/{where}"]
    assert (run.config.env_kwargs["goal_scale"], run.config.env_kwargs["goal_angle"]) == (scale, angle)
    assert run.config.env_kwargs["n_objects"] == 5
    trained = RUNS[run.agent].config.env_kwargs
    assert (trained["goal_scale"], trained["goal_angle"]) == ((0.5, 1.0), (0, math.pi))


@pytest.mark.parametrize("quick", [False, True])
def test_what_a_run_builds_on_comes_before_it(quick):
    seen: list[str] = []
    for name, run in runs.units(quick).items():
        assert run.id == name
        assert set(run.needs) <= set(seen)
        seen.append(name)
    assert len(set(seen)) == len(seen) == len(RUNS)


@pytest.mark.parametrize("quick", [False, True])
def test_settings_are_json_and_tell_runs_apart(quick):
    texts = [json.dumps(run.settings(run.id), sort_keys=True) for run in runs.units(quick).values()]
    assert len(set(texts)) == len(texts)
    for run in runs.units(quick).values():
        assert json.loads(json.dumps(run.settings(run.id))) == run.settings(run.id)
        if isinstance(run, PlayedRun):
            assert AgentConfig.from_json(run.settings(run.id)["config"]).as_json() == run.config.as_json()
            assert run.settings(run.id)["first_episode"] == 10_000
            assert run.episodes == (4 if quick else 500)


def test_filters():
    assert select(STUDY) == list(RUNS.values())
    assert [run.id for run in select(STUDY, ["agents/discrim_n3/sparse"])] == [
        f"agents/discrim_n3/sparse/seed{seed}" for seed in range(3)
    ]
    assert [run.id for run in select(STUDY, ["agents/discrim/"])] == [
        "agents/discrim/sparse/seed0",
        "agents/discrim/random",
        "agents/discrim/expert",
    ]
    assert len(select(STUDY, ["agents/*/random", "rewards/mpgnn"], quick=True)) == 11


def test_unknown_filters_say_what_there_is():
    with pytest.raises(ValueError, match=r"no run matches 'agents/discrim_n4'; 'discrim_n4' is unknown.*discrim_n3, "):
        select(STUDY, ["rewards", "agents/discrim_n4"])
