from __future__ import annotations

import numpy as np
import pytest
import torch

from reward_models.auditing.judge import Judge, JudgeError, ScoredReward, Truth, failures, judge_of
from reward_models.judges.learned import LearnedReward, load
from spatialsim_env import testing
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.tasks import Discrimination
from tests.reward_models.auditing.judges import Constant, NoGradient, Slope

SAMPLES = Discrimination(5).sample(64, np.random.default_rng(0))
PAIRS = SAMPLES.target, SAMPLES.reference


def truth(target, reference):
    return Truth().score(target, reference)


class Changed:
    """The truth with its answers, or its questions, changed."""

    def __init__(self, change):
        self.change = change

    def score(self, target, reference):
        return self.change(target, reference)


def centered(target, reference):
    scores = truth(target, reference)
    return scores - scores.mean()


def cumulated(target, reference):
    return np.cumsum(truth(target, reference))


class Restless:
    """Never says the same twice."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def score(self, target, reference):
        return self.rng.random(len(target))


WRONG = {
    "finite": Changed(lambda target, reference: np.where(target[:, 0, 3] > 1.5, np.nan, 0.0)),
    "shape": Changed(lambda target, reference: truth(target, reference)[:, None]),
    "error": Changed(lambda target, reference: 1 / 0),
    "batch size": Changed(centered),
    "batch order": Changed(cumulated),
    "object order": Changed(lambda target, reference: reference[:, 0, 3]),
    "repeat": Restless(),
}


@pytest.mark.parametrize("check", WRONG)
def test_answers_that_are_no_verdicts_are_named(check):
    found = failures(Judge(WRONG[check], "wrong"), *PAIRS)
    assert check in found
    if check in ("finite", "shape", "error"):
        assert len(found) == 1
        with pytest.raises(JudgeError, match=check):
            Judge(WRONG[check], "wrong")(*PAIRS)


def test_a_batch_that_is_judged_as_a_whole_fails_for_its_size_alone():
    assert set(failures(Judge(Changed(centered), "wrong"), *PAIRS)) == {"batch size"}


@pytest.mark.parametrize("wrong", [None, "yes", 1.0, [0.0] * 63, [True] * 64, [1j] * 64])
def test_what_is_not_an_array_of_numbers_is_the_wrong_shape(wrong):
    assert set(failures(Judge(Changed(lambda target, reference: wrong), "wrong"), *PAIRS)) == {"shape"}


@pytest.mark.parametrize(
    "model", [Truth(), Constant(1.0), NoGradient(), Slope()], ids=lambda model: type(model).__name__
)
def test_verdicts_pass(model):
    assert failures(judge_of(model), *PAIRS) == {}


@pytest.mark.parametrize("kind", ["matching", "mpgnn", "conditioned_mpgnn", "rds", "deep_set", "graph_matching"])
def test_networks_pass(kind, untrained):
    assert failures(judge_of(untrained(kind)), *PAIRS) == {}


def test_rounding_in_float32_is_forgiven(untrained):
    module = load(untrained("mpgnn")).module.float()

    def score(target, reference):
        with torch.inference_mode():
            return module.score(torch.from_numpy(target), torch.from_numpy(reference)).numpy()

    assert failures(judge_of(Changed(score)), *PAIRS) == {}


def test_a_model_may_write_into_what_it_is_given():
    def score(target, reference):
        found = truth(target, reference)
        target[:], reference[:] = 0, 0
        return found

    assert np.array_equal(judge_of(Changed(score))(*PAIRS), truth(*PAIRS))


def test_the_truth_says_achieved_where_it_is():
    assert np.array_equal(judge_of("truth")(*PAIRS) > 0, goals.achieved(PAIRS[1], PAIRS[0]))


def test_every_form_of_a_model(untrained):
    folder = untrained("mpgnn")
    expected = load(folder).score(*PAIRS)
    for model in (folder, str(folder), load(folder), LearnedReward(folder), load(folder).module):
        judge = judge_of(model)
        assert np.array_equal(judge(*PAIRS), expected.astype(np.float64))
        assert judge.name in (str(folder.resolve()), str(folder), "mpgnn")


@pytest.mark.parametrize("model", [None, 3, Truth, lambda target, reference: 0])
def test_other_things_are_refused(model):
    with pytest.raises(TypeError, match=r"accepted are a path, 'truth', or an object with score"):
        judge_of(model)


def test_a_model_of_one_input_judges_the_arena(untrained):
    model = load(untrained("mpgnn_single"))
    assert np.array_equal(judge_of(model)(*PAIRS), model.score(PAIRS[1]).astype(np.float64))


@pytest.mark.parametrize("kind", ["matching", "mpgnn", "mpgnn_single"])
def test_the_gradient_is_that_of_the_score(kind, untrained):
    """Against differences, for the scenes in the arena."""
    model = load(untrained(kind))
    desired, achieved = (x[:4].astype(np.float64) for x in PAIRS)
    found = judge_of(model).gradient(PAIRS[0][:4], PAIRS[1][:4])

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
    assert judge_of(NoGradient()).no_gradient == "it has no gradient"
    assert judge_of(Slope()).no_gradient is None


@pytest.mark.parametrize(
    ("gradient", "check"),
    [
        (lambda target, reference: np.full(reference.shape, np.inf), "finite"),
        (lambda target, reference: np.zeros(3), "shape"),
        (lambda target, reference: 1 / 0, "error"),
    ],
)
def test_gradients_that_are_none(gradient, check):
    model = Constant(-1.0)
    model.gradient = gradient
    with pytest.raises(JudgeError, match=check):
        judge_of(model).gradient(*PAIRS)


def test_a_judge_is_a_reward(untrained):
    reward = judge_of(NoGradient()).reward()
    assert isinstance(reward, ScoredReward)
    testing.assert_reward(reward, SAMPLES)
    assert np.array_equal(reward(PAIRS[1], PAIRS[0]) == 0, goals.achieved(PAIRS[1], PAIRS[0]))
    assert isinstance(judge_of(untrained("mpgnn")).reward(), LearnedReward)
