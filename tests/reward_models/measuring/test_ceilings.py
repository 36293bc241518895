"""No judge is better than the ideal observer, on any task of the hard suite where that is exact."""

from __future__ import annotations

import numpy as np
import pytest

from reward_models.measuring.hard_cases import CEILING, Ideal, reference_judges, ways
from spatialsim_env.arrangements import hard_suite
from spatialsim_env.arrangements.hard_suite import rng_of
from tests.spatialsim_env import chance

SIZE = 400


@pytest.fixture(scope="module")
def others():
    """The truth and the rules, made for each task."""
    return {name: make for name, make in reference_judges().items() if name != CEILING}


@pytest.mark.parametrize("hard", hard_suite.REGISTRY.values(), ids=hard_suite.NAMES)
def test_no_judge_is_better(hard, others):
    """Pairs on which one of two alone is right: beyond chance, they are not more often the other judge's."""
    part = hard.within((3, 4))
    for certify in ways(hard, part):
        samples, task = hard.sample(part, SIZE, rng_of(hard.name, part, 0), certify), hard.task(part, certify)
        pair, label = (samples.reference, samples.target), samples.label == 1
        if hard.name == "abstract_distractors":
            with pytest.raises(ValueError, match="accepted are abstract tasks"):
                Ideal(task).score(*pair)
            return
        ratio = Ideal(task).ratio(*pair)
        assert ratio.exact.all() == (hard.name != "radius_matched")
        ours = (ratio.value > 0) == label
        assert ours.mean() >= 0.5 - chance.of_rate(0.5, SIZE)
        for name, make in others.items():
            theirs = (make(task).score(*pair) > 0) == label
            only_ours, only_theirs = (ours & ~theirs).sum(), (theirs & ~ours).sum()
            assert only_theirs - only_ours <= chance.DEVIATIONS * np.sqrt(only_ours + only_theirs), name
