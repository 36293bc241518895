"""Questions added to scenes: the rules' labels, as many of each; pairs untouched; files that read back."""

from __future__ import annotations

import numpy as np
import pytest

from reward_models.training import questions
from spatialsim_env.relations.pairs import generation, scene_sets
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.rel3d import published
from spatialsim_env.relations.vocabulary import INDEX


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated")
    names = ("near", "to the left of", "behind (wrt you)", "faces away")
    generation.generate(folder, 60, 0, predicates=names, jobs=1, halves=False)
    return folder


def test_answers_are_the_rules_and_balanced(generated):
    pairs = scene_sets.load(generated / questions.SCENES)
    own = scene_sets.samples(pairs)
    found = questions.ask(own, pairs, np.random.default_rng(0), times=2)
    assert len(found) > len(own)
    assert (found.pair == -1).all()
    rows, member = found.extra["scene"], found.extra["member"]
    scenes, observers = pairs.scenes[rows, member].astype(float), pairs.observers[rows, 0].astype(float)
    assert np.array_equal(predicates.margin_of(found.predicate, scenes, observers) > 0, found.label)
    assert (found.predicate != pairs.predicate[rows]).all()
    for name in ("near", "to the side of", "behind"):
        labels = found.label[found.predicate == INDEX[name]]
        assert 0 < labels.sum() <= len(labels)
        assert abs(2 * labels.sum() - len(labels)) <= len(own)


def test_pairs_and_the_test_samples_stay_as_they_are(generated):
    pairs = scene_sets.load(generated / questions.SCENES)
    plain = scene_sets.to_split(pairs, "plain")
    found = questions.split(pairs, "asked", np.random.default_rng(0))
    for part in ("train", "valid"):
        before, after = getattr(plain, part), getattr(found, part)
        assert len(after) > len(before)
        first = after[: len(before)]
        for column in ("predicate", "label", "pair", "subject", "object"):
            assert np.array_equal(getattr(first, column), getattr(before, column))
        assert first.rgb == before.rgb
    assert found.test.rgb == plain.test.rgb
    assert np.array_equal(found.test.label, plain.test.label)
    assert found.predicates == plain.predicates
    assert found.objects == plain.objects


def test_the_file_reads_back(generated, tmp_path):
    path = questions.write(generated, tmp_path / "asked.json", seed=3)
    read = published.load(path)
    again = questions.split(scene_sets.load(generated / questions.SCENES), "asked", np.random.default_rng(3))
    for part in ("train", "valid", "test"):
        one, other = getattr(read, part), getattr(again, part)
        assert np.array_equal(one.predicate, other.predicate)
        assert np.array_equal(one.label, other.label)
        assert np.array_equal(one.pair >= 0, other.pair >= 0)
        assert one.vectors["aligned_absolute"] == pytest.approx(other.vectors["aligned_absolute"])
    with pytest.raises(ValueError, match="times is 0"):
        questions.write(generated, tmp_path / "none.json", times=0)
