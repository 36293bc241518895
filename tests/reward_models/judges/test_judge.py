from __future__ import annotations

import numpy as np
import pytest
import torch

from reward_models.auditing.moves.arrangements import MOVES, slopes_of
from reward_models.auditing.relations import RelationAudit
from reward_models.judges.judge import JudgeError, checked, failures, of
from reward_models.judges.learned import LearnedReward, load
from spatialsim_env import testing
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.tasks import Discrimination
from spatialsim_env.arrangements.truth import SceneTruth
from spatialsim_env.core.judges import Pairs
from spatialsim_env.core.rewards import Dense, Sparse
from tests.reward_models.auditing.judges import SCENES, Constant, NoGradient, Slope, judge_of, truth

SAMPLES = Discrimination(5).sample(64, np.random.default_rng(0))
PAIRS = Pairs(SAMPLES.reference, SAMPLES.target)
OBJECTS = np.random.default_rng(0).permutation(5)
SHUFFLED = {
    "object order": [
        Pairs(PAIRS.achieved, PAIRS.desired[:, OBJECTS]),
        Pairs(PAIRS.achieved[:, OBJECTS], PAIRS.desired),
    ]
}


def failed(model):
    return failures(judge_of(model), PAIRS, SHUFFLED)


class Changed:
    """The truth with its answers, or its questions, changed."""

    def __init__(self, change):
        self.change = change

    def score(self, achieved, desired):
        return self.change(achieved, desired)


def centered(achieved, desired):
    scores = truth(achieved, desired)
    return scores - scores.mean()


def cumulated(achieved, desired):
    return np.cumsum(truth(achieved, desired))


class Restless:
    """Never says the same twice."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def score(self, achieved, desired):
        return self.rng.random(len(achieved))


WRONG = {
    "finite": Changed(lambda achieved, desired: np.where(desired[:, 0, 3] > 1.5, np.nan, 0.0)),
    "shape": Changed(lambda achieved, desired: truth(achieved, desired)[:, None]),
    "error": Changed(lambda achieved, desired: 1 / 0),
    "batch size": Changed(centered),
    "batch order": Changed(cumulated),
    "object order": Changed(lambda achieved, desired: achieved[:, 0, 3]),
    "repeat": Restless(),
}


@pytest.mark.parametrize("check", WRONG)
def test_answers_that_are_no_verdicts_are_named(check):
    found = failed(WRONG[check])
    assert check in found
    if check in ("finite", "shape", "error"):
        assert len(found) == 1
        with pytest.raises(JudgeError, match=check):
            judge_of(WRONG[check]).score(PAIRS)


def test_a_batch_that_is_judged_as_a_whole_fails_for_its_size_alone():
    assert set(failed(Changed(centered))) == {"batch size"}


@pytest.mark.parametrize("wrong", [None, "yes", 1.0, [0.0] * 63, [True] * 64, [1j] * 64])
def test_what_is_not_an_array_of_numbers_is_the_wrong_shape(wrong):
    assert set(failed(Changed(lambda achieved, desired: wrong))) == {"shape"}


@pytest.mark.parametrize(
    "model", ["truth", Constant(1.0), NoGradient(), Slope()], ids=lambda model: type(model).__name__
)
def test_verdicts_pass(model):
    assert failed(model) == {}
    assert checked(judge_of(model), PAIRS, SHUFFLED).name


@pytest.mark.parametrize("kind", ["matching", "mpgnn", "conditioned_mpgnn", "rds", "deep_set", "graph_matching"])
def test_networks_pass(kind, untrained):
    assert failed(untrained(kind)) == {}


def test_rounding_in_float32_is_forgiven(untrained):
    module = load(untrained("mpgnn")).module.float()

    def score(achieved, desired):
        with torch.inference_mode():
            return module.score(torch.from_numpy(desired), torch.from_numpy(achieved)).numpy()

    assert failed(Changed(score)) == {}


def test_a_model_may_write_into_what_it_is_given():
    def score(achieved, desired):
        found = truth(achieved, desired)
        achieved[:], desired[:] = 0, 0
        return found

    assert np.array_equal(judge_of(Changed(score)).score(PAIRS), SCENES.truth.score(PAIRS))


def test_the_truth_says_achieved_where_it_is():
    assert np.array_equal(judge_of("truth").achieved(PAIRS), goals.achieved(PAIRS.achieved, PAIRS.desired))


def test_every_form_of_a_model(untrained):
    folder = untrained("mpgnn")
    expected = load(folder).score(PAIRS.achieved, PAIRS.desired)
    for model in (folder, str(folder), load(folder), LearnedReward(folder), load(folder).module):
        judge = judge_of(model)
        assert np.array_equal(judge.score(PAIRS), expected.astype(np.float64))
        assert judge.name in (str(folder.resolve()), str(folder), "mpgnn")


@pytest.mark.parametrize("model", [None, 3, NoGradient, lambda achieved, desired: 0])
def test_other_things_are_refused(model):
    with pytest.raises(TypeError, match=r"accepted are a path, 'truth', a reward, or an object with score"):
        judge_of(model)


def test_a_model_of_one_input_judges_the_arena(untrained):
    model = load(untrained("mpgnn_single"))
    assert np.array_equal(judge_of(model).score(PAIRS), model.score(PAIRS.achieved).astype(np.float64))


@pytest.mark.parametrize("kind", ["matching", "mpgnn", "mpgnn_single"])
def test_the_gradient_is_that_of_the_score(kind, untrained):
    """Against differences, for the scenes in the arena."""
    model = load(untrained(kind))
    few = PAIRS.rows(slice(4))
    desired, achieved = few.desired.astype(np.float64), few.achieved.astype(np.float64)
    found = slopes_of(judge_of(model), few)

    def score(scenes):
        scenes = [torch.from_numpy(x) for x in ((desired, scenes) if model.two_inputs else (scenes,))]
        return model.module.score(*scenes).detach().numpy()

    step = 1e-6
    for column in (7, 8, 9):
        for row in range(5):
            change = np.zeros_like(achieved)
            change[:, row, column] = step
            slope = (score(achieved + change) - score(achieved - change)) / (2 * step)
            assert found[:, row, column] == pytest.approx(slope, rel=1e-4, abs=1e-5 * np.abs(found).max())


def test_what_cannot_be_climbed_says_so():
    moves = MOVES["poses"]
    assert moves.no_gradient(judge_of(NoGradient())) == "it has no gradient"
    assert moves.no_gradient(judge_of(Slope())) is None


@pytest.mark.parametrize(
    ("gradient", "check"),
    [
        (lambda achieved, desired: np.full(achieved.shape, np.inf), "finite"),
        (lambda achieved, desired: np.zeros(3), "shape"),
        (lambda achieved, desired: 1 / 0, "error"),
    ],
)
def test_gradients_that_are_none(gradient, check):
    model = Constant(-1.0)
    model.gradient = gradient
    with pytest.raises(JudgeError, match=check):
        slopes_of(judge_of(model), PAIRS)


def test_a_judge_is_a_reward(untrained):
    reward = judge_of(NoGradient()).reward()
    assert isinstance(reward, Sparse)
    testing.assert_reward(reward, SAMPLES)
    scenes = PAIRS.achieved, PAIRS.desired
    assert np.array_equal(reward(*scenes) == 0, goals.achieved(*scenes))
    assert isinstance(judge_of(untrained("mpgnn")).reward(), LearnedReward)


# --- what users bring -----------------------------------------------------------------------------------------------


def test_the_old_order_is_refused_by_name():
    class Old:
        def score(self, target, reference):
            return np.zeros(len(target))

    class OldGradient(Constant):
        def gradient(self, target, reference):
            return np.zeros(reference.shape)

    class OldRelation:
        def score(self, scenes, observers, predicate):
            return np.zeros(len(scenes))

    for model in (Old(), OldGradient(1.0), OldRelation()):
        with pytest.raises(TypeError, match=r"give \w+\(achieved, desired\): first what is achieved"):
            judge_of(model)


def test_a_reward_is_a_judge():
    judge = judge_of(Sparse(SceneTruth()))
    assert judge.name == "sparse"
    assert np.array_equal(judge.achieved(PAIRS), goals.achieved(PAIRS.achieved, PAIRS.desired))
    dense = judge_of(Dense(SceneTruth()))
    assert np.array_equal(dense.achieved(PAIRS), judge.achieved(PAIRS))


def test_a_distance_of_exactly_a_tolerance_is_achieved():
    assert judge_of("truth").threshold == 0
    assert 0 < judge_of(Constant(1.0)).threshold < 1e-300
    assert not judge_of(Constant(0.0)).achieved(PAIRS).any()


def test_a_judge_of_another_world_is_refused():
    with pytest.raises(ValueError, match="judges 2D scenes; accepted here is what judges relations in 3D"):
        of("hub:matching", RelationAudit())


def test_what_is_no_verdict_is_not_checked_off():
    with pytest.raises(JudgeError, match="batch size"):
        checked(judge_of(WRONG["batch order"]), PAIRS)
