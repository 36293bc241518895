"""The study of agents of 3D relations: an agent on the rules, one on a model, and the gap between them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import spatialsim_env
from reward_models import models
from reward_models.agents.relations import ALL
from reward_models.models import checkpoint
from reward_models.models.relations import inputs
from reward_models.studies.engine import rows
from reward_models.studies.engine.run import DONE, run
from reward_models.studies.engine.sweep import Sweep
from reward_models.studies.relation_agents import tables
from reward_models.studies.relation_agents.tables import STUDY
from spatialsim_env.relations.vocabulary import PREDICATES


@pytest.fixture
def stored(tmp_path):
    """A folder of seeds of a relational network that has learned nothing."""
    net = models.create("relational", seed=3)
    envs = gym.make_vec(f"spatialsim_env:{spatialsim_env.RELATION_IDS[0]}", num_envs=64)
    envs.reset(seed=0)
    scenes, observers = (x.astype(np.float64) for x in envs.scenes)
    net.fit_scale(inputs.from_scenes(scenes, observers, 0, net.needs))
    task = {"name": "relations", "predicates": list(PREDICATES), "objects": []}
    checkpoint.save(net, tmp_path / "models" / "seed0", task)
    return tmp_path / "models"


def test_an_agent_on_a_model_and_its_gap(tmp_path, stored):
    sweep = Sweep(STUDY, tmp_path / "results", tmp_path / "work", quick=True, options={"relational": str(stored)})
    on_rule, on_model = sweep.units["rule/seed0"], sweep.units["relational/seed0"]
    assert [run(unit, sweep).state for unit in (on_rule, on_model)] == [DONE, DONE]
    read = rows.read(STUDY, tmp_path / "results", quick=True).rows
    assert list(read) == ["rule/seed0", "relational/seed0"]
    assert read["rule/seed0"].model is None
    assert read["relational/seed0"].model["sha256"] == checkpoint.read_info(stored / "seed0")["sha256"]
    assert read["relational/seed0"].settings["reward"] == "relational/seed0:dense"
    lines = {(line[0], line[1]): line for line in tables.compare(read.values()).lines}
    shares = [row.predicates[ALL]["success"]["hits"] / row.predicates[ALL]["success"]["total"] for row in read.values()]
    assert lines["relational/seed0", ALL][-1] == f"{shares[0] - shares[1]:+.3f}"
    assert lines["rule/seed0", ALL][-1] == "-"
    precision = read["rule/seed0"].predicates[ALL]["precision"]
    assert precision["hits"] == read["rule/seed0"].predicates[ALL]["claimed"]["hits"]


def test_models_must_be_given(tmp_path, stored):
    sweep = Sweep(STUDY, tmp_path / "results", tmp_path / "work", quick=True)
    sweep.check([sweep.units["rule/seed0"]])
    with pytest.raises(ValueError, match="relational/seed0 is trained on a model; give the folder of its seeds"):
        sweep.check([sweep.units["relational/seed0"]])
    given = Sweep(STUDY, tmp_path / "results", tmp_path / "work", quick=True, options={"relational": str(stored)})
    given.check([given.units["relational/seed0"]])
    with pytest.raises(FileNotFoundError, match="seed1 of a trained model"):
        given.check([given.units["relational/seed1"]])


def test_broken_rows_are_named(tmp_path):
    (tmp_path / "rule").mkdir()
    (tmp_path / "rule/seed0.json").write_text("{}")
    with pytest.raises(rows.RowError, match=r"seed0\.json is damaged"):
        rows.read(STUDY, tmp_path)
