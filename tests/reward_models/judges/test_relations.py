"""A model of relations as a reward: its protocol, its files, its place beside the rules."""

from __future__ import annotations

import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch

import spatialsim_env
from reward_models import models
from reward_models.auditing.arrangements import ArrangementAudit
from reward_models.auditing.relations import RelationAudit
from reward_models.judges.judge import of
from reward_models.judges.learned import LearnedModel, LearnedReward, resolve
from reward_models.models import checkpoint
from reward_models.models.relations import inputs
from spatialsim_env.core.rewards import resolve as resolve_relations
from spatialsim_env.relations.scene import RoomError
from spatialsim_env.relations.vocabulary import INDEX, PREDICATES
from spatialsim_env.relations.world import goals
from spatialsim_env.relations.world.world import world as relation_world
from spatialsim_env.testing import assert_batch_independent, assert_pure

ID = f"spatialsim_env:{spatialsim_env.RELATION_IDS[0]}"
KINDS = ("relational", "mlp_aligned", "mlp_raw")


def network(kind="relational", seed=0):
    """A network with weights that say yes to some scenes and no to others."""
    settings = {} if kind == "relational" else {"width": 32}
    model = models.create(kind, settings, seed=seed)
    scenes, observers = begun(256)
    model.fit_scale(inputs.from_scenes(scenes, observers, np.arange(256) % 30, model.needs))
    return model.eval()


def begun(size, seed=0):
    envs = gym.make_vec(ID, num_envs=size)
    envs.reset(seed=seed)
    return tuple(x.astype(np.float64) for x in envs.scenes)


def packed(scenes, observers, predicate):
    """Goals that are achieved and desired; a predicate for all, or an index for each."""
    flags = np.zeros((len(scenes), 30), bool)
    flags[np.arange(len(scenes)), INDEX[predicate] if isinstance(predicate, str) else predicate] = True
    return goals.pack(np.zeros((len(scenes), 30)), scenes, observers), goals.desired(flags)


def pairs(size=60, seed=0):
    envs = gym.make_vec(ID, num_envs=size)
    observations, _ = envs.reset(seed=seed)
    return observations["achieved_goal"], observations["desired_goal"]


@pytest.fixture(scope="module")
def model():
    return LearnedModel(network())


@pytest.fixture
def stored(tmp_path):
    folder = tmp_path / "model"
    checkpoint.save(network(), folder, {"name": "relations", "predicates": list(PREDICATES), "objects": []})
    return folder


def test_scores_are_the_networks_logits():
    net = network()
    scenes, observers = begun(40)
    which = np.arange(40) % 30
    scores = LearnedModel(net).score(*packed(scenes, observers, which))
    expected = net.double()(inputs.from_scenes(scenes, observers, which, net.needs, dtype=torch.float64))
    assert scores == pytest.approx(expected.detach().numpy(), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", ["sparse", "dense"])
def test_the_contract_of_rewards(kind, of):
    reward = LearnedReward(LearnedModel(network(kind)), of)
    achieved, desired = pairs()
    values = reward(achieved, desired)
    assert values.shape == (60,)
    assert values.dtype == np.float64
    assert values.max() <= 0
    assert values.min() >= -1
    assert len(set(values.tolist())) > 1
    assert_pure(reward, achieved, desired)
    assert_batch_independent(reward, achieved, desired)


def test_the_least_logit_of_what_is_required_decides(model):
    """A goal of two predicates is achieved where both are, and its probability is the lesser one."""
    achieved, _ = pairs(80)
    scenes, observers = goals.state(achieved)
    flags = np.zeros((80, 30), bool)
    flags[:, [INDEX["on"], INDEX["behind (wrt you)"]]] = True
    each = [model.score(*packed(scenes, observers, name)) for name in ("on", "behind (wrt you)")]
    least = np.minimum(*each).astype(np.float64)
    sparse, dense = LearnedReward(model), LearnedReward(model, "dense")
    assert np.array_equal(sparse(achieved, goals.desired(flags)), np.where(least > 0, 0.0, -1.0))
    assert dense(achieved, goals.desired(flags)) == pytest.approx(1 / (1 + np.exp(-least)) - 1, abs=1e-6)
    nothing = goals.desired(np.zeros((80, 30), bool))
    assert (sparse(achieved, nothing) == 0).all()
    assert (dense(achieved, nothing) == 0).all()


def test_dense_and_sparse_agree_on_what_is_achieved(model):
    achieved, desired = pairs(200)
    sparse, dense = LearnedReward(model), LearnedReward(model, "dense")
    claims = sparse(achieved, desired) >= sparse.success_threshold
    assert 0 < claims.sum() < 200
    assert np.array_equal(dense(achieved, desired) > dense.success_threshold, claims)


@pytest.mark.parametrize("ending", ["", ":dense"])
def test_a_stored_model_is_found_by_its_path(stored, ending):
    name = f"{stored}{ending}"
    env = gym.make(ID, reward=name)
    env.reset(seed=0)
    observation, reward, _, _, info = env.step(env.action_space.sample())
    assert reward == info["reward_model"]
    assert reward == env.unwrapped.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
    assert info["is_success_model"] == (reward >= -0.5)
    found = resolve(name)
    assert isinstance(found, LearnedReward)
    assert found.name == name
    assert resolve_relations(name, relation_world()).kind == (ending[1:] or "sparse")


def test_both_checkers_pass_with_a_learned_reward(stored):
    from stable_baselines3.common.env_checker import check_env as check_sb3

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in (str(stored), f"{stored}:dense"):
            env = gym.make(ID, reward=name).unwrapped
            gym.utils.env_checker.check_env(env, skip_render_check=True)
            check_sb3(env)


def test_each_world_refuses_the_others_rewards(stored):
    with pytest.raises(ValueError, match=r"judges relations in 3D; the environment has 2D scenes"):
        gym.make("spatialsim_env:SpatialSim-Discrim-v0", reward=str(stored))
    with pytest.raises(ValueError, match=r"judges 2D scenes; the environment has relations in 3D"):
        gym.make(ID, reward="hub:matching")
    with pytest.raises(ValueError, match=r"judges relations in 3D; accepted here is what judges 2D scenes"):
        of(stored, ArrangementAudit())
    with pytest.raises(ValueError, match=r"judges 2D scenes; accepted here is what judges relations in 3D"):
        of("hub:matching", RelationAudit())


def test_a_path_without_a_model_is_named(tmp_path):
    with pytest.raises(checkpoint.CheckpointError, match="does not exist"):
        resolve_relations(str(tmp_path / "nothing"), relation_world())


def test_pickles_carry_the_path_or_the_weights(stored, model):
    achieved, desired = pairs(20)
    for reward in (LearnedReward(stored), LearnedReward(model)):
        expected = reward(achieved, desired)
        again = pickle.loads(pickle.dumps(reward))
        assert np.array_equal(again(achieved, desired), expected)
        assert np.array_equal(copy.deepcopy(reward)(achieved, desired), expected)
    assert len(pickle.dumps(LearnedReward(stored))) < 1000


def test_it_keeps_a_copy_that_nothing_changes():
    net = network()
    learned, (scenes, observers) = LearnedModel(net), begun(10)
    before = learned.score(*packed(scenes, observers, "on"))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    assert np.array_equal(learned.score(*packed(scenes, observers, "on")), before)
    assert torch.is_grad_enabled()


def test_classes_are_those_of_its_file():
    """A file lists its predicates in an order of its own, which is the order of the network's classes."""
    names = list(reversed(PREDICATES))
    net = models.create("relational", {"predicates": names})
    scenes, observers = begun(12)
    net.fit_scale(inputs.from_scenes(scenes, observers, 0, net.needs))
    learned = LearnedModel(net.eval(), {"predicates": names})
    given = inputs.from_scenes(scenes, observers, names.index("under"), net.needs, dtype=torch.float64)
    expected = net.double()(given).detach().numpy()
    assert learned.score(*packed(scenes, observers, "under")) == pytest.approx(expected, abs=1e-6)


def test_what_it_cannot_judge_is_refused():
    with pytest.raises(ValueError, match="needs names, which a scene of boxes does not have"):
        LearnedModel(models.create("language_only"))
    few = models.create("relational", {"n_predicates": 2, "predicates": ["on", "under"]})
    learned, (scenes, observers) = LearnedModel(few, {"predicates": ["on", "under"]}), begun(3)
    with pytest.raises(ValueError, match="relational does not know 'near'; accepted are on, under"):
        learned.score(*packed(scenes, observers, "near"))
    with pytest.raises(RoomError, match="judges relations"):
        LearnedReward(learned)(np.zeros((2, 5, 10)), np.zeros((2, 5, 10)))
    with pytest.raises(ValueError, match="a learned reward is 'near'"):
        LearnedReward(learned, "near")
