"""The variants of the authors' generator against their literal version, their distributions, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spatialsim_env.arrangements import goals, scene, tasks, variants
from spatialsim_env.arrangements.negatives import (
    Displaced,
    DisplacedFew,
    Mirrored,
    MisScaled,
    Mixture,
    Poses,
    Redrawn,
    Twisted,
)
from spatialsim_env.arrangements.scene import COLOR, ORIENTATION, POSITION, SHAPE, SIZE
from spatialsim_env.arrangements.tasks import Discrimination, Identification
from spatialsim_env.arrangements.variants import Fixed
from tests.spatialsim_env import chance, literal

TWO_PI = 2 * np.pi
OPTIONS = {
    "displaced": {"negative": Displaced()},
    "displaced_few": {"negative": DisplacedFew()},
    "abstract": {"abstract": True},
    "distractors": {"distractors": 3},
    "both": {"abstract": True, "distractors": 3},
    "scale": {"fixed": Fixed(scale=1.25)},
    "rotation": {"fixed": Fixed(rotation=2.0)},
    "translation": {"fixed": Fixed(translation=(-10, 20))},
    "everything": {
        "negative": Displaced(),
        "abstract": True,
        "distractors": 2,
        "fixed": Fixed(scale=1.0, rotation=0.0, translation=(0.0, 0.0)),
    },
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def drawn(task, size: int = 4000, seed: int = 0):
    """References, draws and targets of one block, the targets in the order of their making and untransformed."""
    source = rng(seed)
    references, draws = task.references(size, source), task.draw(size, source)
    order = np.tile(np.linspace(0, 0.9, draws.order.shape[1], dtype=np.float32), (size, 1))
    still = replace(task, fixed=Fixed(scale=1.0, rotation=0.0, translation=(0.0, 0.0)))
    return references, draws, still.compose(references, replace(draws, order=order))


# --- the definition -------------------------------------------------------------------------------------------------


@every_option
@pytest.mark.parametrize("task", [Discrimination((2, 6)), Identification(5, reference_seed=3)], ids=["pairs", "one"])
def test_the_fast_generator_is_the_literal_one(task, options):
    task = replace(task, max_rotation=tasks.STAGES[2], **options)
    source = rng(1)
    references, draws = task.references(60, source), task.draw(60, source)
    fast = task.compose(references, draws)
    assert fast.shape == (60, task.n_max + task.distractors, scene.N_FEATURES)
    assert fast.dtype == np.float32
    for k, reference in enumerate(references):
        slow = literal.target(
            reference, draws, k, task.negative, task.max_rotation, task.abstract, task.distractors, task.fixed
        )
        assert np.allclose(fast[k], slow, atol=2e-4)


@every_option
@pytest.mark.parametrize("size", [0, 1, tasks.BLOCK + 1])
def test_shapes_and_seeds(options, size):
    task = Discrimination((3, 8), **options)
    one, other = task.sample(size, rng(2)), task.sample(size, rng(2))
    assert one.target.shape == (size, 8 + task.distractors, 10)
    assert one.reference.shape == (size, 8, 10)
    for part in ("target", "reference", "label"):
        assert getattr(one, part).tobytes() == getattr(other, part).tobytes()
    scene.validate(one.target)
    scene.validate(one.reference)
    here = scene.present(one.target)
    assert (here[:, :-1] >= here[:, 1:]).all()
    assert not one.target[~here].any()


def test_variants_do_not_touch_what_is_drawn_without_them():
    """The same references, labels, noise and similarities as in the plain task."""
    plain = Discrimination((3, 8))
    for options in ({"abstract": True}, {"fixed": Fixed(scale=2.0)}):
        task = replace(plain, **options)
        ours, theirs = task.sample(500, rng(3)), plain.sample(500, rng(3))
        assert np.array_equal(ours.reference, theirs.reference)
        assert np.array_equal(ours.label, theirs.label)
    assert plain.draw(5, rng()).features.size == plain.draw(5, rng()).extra.size == 0


# --- moved objects --------------------------------------------------------------------------------------------------


def test_a_few_displaced_objects():
    """One, two or three objects, each by U[5, 20] in a direction of its own; every object with the same chance."""
    scenes = scene.sample(np.full(6000, 5), 5, rng(4))
    negative = DisplacedFew()
    out = negative(scenes, rng(5).random((6000, negative.n_uniform(5)), np.float32))
    step = (out - scenes)[..., POSITION].astype(np.float64)
    length = np.linalg.norm(step, axis=-1)
    moved = length > 0
    numbers = np.bincount(moved.sum(axis=1), minlength=6) / 6000
    assert numbers[0] == numbers[4] == numbers[5] == 0
    assert np.abs(numbers[1:4] - 1 / 3).max() < chance.of_rate(1 / 3, 6000)
    assert np.abs(moved.mean(axis=0) - 2 / 5).max() < chance.of_rate(2 / 5, 6000)
    assert chance.uniform_fits(length[moved], 5, 20)
    assert chance.uniform_fits(np.arctan2(step[moved][:, 1], step[moved][:, 0]), -np.pi, np.pi)
    two = moved.sum(axis=1) == 2
    pairs = length[two][moved[two]].reshape(-1, 2)
    assert abs(np.corrcoef(pairs.T)[0, 1]) < chance.of_mean(1, len(pairs))


def test_a_few_of_fewer_are_all():
    scenes = scene.sample(np.full(300, 2), 4, rng(6))
    negative = DisplacedFew(most=9)
    out = negative(scenes, rng(7).random((300, negative.n_uniform(4)), np.float32))
    moved = (out != scenes).any(axis=-1)
    assert set(moved.sum(axis=1)) == {1, 2}
    assert not moved[:, 2:].any()
    assert not out[:, 2:].any()


@pytest.mark.parametrize("most", [0, -1, 1.5, True, None, "3"])
def test_bad_numbers_of_moved_objects(most):
    with pytest.raises(ValueError, match=r"most is .* accepted is an int from 1"):
        DisplacedFew(most=most)


# --- only positions matter ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [0, 1])
def test_abstract_targets_keep_nothing_but_positions(label):
    """Shapes, sizes, colours and angles as in a reference scene, and independent of the reference."""
    task = Discrimination(4, abstract=True)
    references, draws, out = drawn(task)
    plain = drawn(Discrimination(4))[2]
    rows = draws.label == label
    assert np.allclose(out[..., POSITION], plain[..., POSITION], atol=1e-4)
    references, out = references[rows].astype(np.float64), out[rows].astype(np.float64)
    objects = out.reshape(-1, 10)
    rates = objects[:, SHAPE].mean(axis=0)
    assert np.abs(rates - 1 / 3).max() < chance.of_rate(1 / 3, len(objects))
    assert chance.uniform_fits(objects[:, SIZE], 0.5, 2)
    assert chance.uniform_fits(objects[:, COLOR], 0, 1)
    assert chance.uniform_fits(objects[:, ORIENTATION], 0, TWO_PI)
    for column in (0, SIZE, COLOR.start, ORIENTATION):
        correlation = np.corrcoef(objects[:, column], references.reshape(-1, 10)[:, column])[0, 1]
        assert abs(correlation) < chance.of_mean(1, len(objects))


def test_positions_of_abstract_positives_are_right_under_the_criterion_positions():
    """With the features of the reference put back, object by object."""
    task = Discrimination((3, 8), abstract=True)
    references, draws, out = drawn(task)
    back = references.copy()
    back[..., POSITION] = out[..., POSITION]
    achieved = goals.achieved(back, references, "positions")
    assert achieved[draws.label == 1].mean() > 0.99
    assert achieved[draws.label == 0].mean() < 0.05


@pytest.mark.parametrize("negative", [Twisted(), MisScaled(), Mixture(), "redrawn+twisted"])
def test_negatives_that_leave_positions_right_are_refused(negative):
    with pytest.raises(ValueError, match="accepted are negatives that are wrong under the criterion positions"):
        Discrimination(negative=negative, abstract=True)


@pytest.mark.parametrize("negative", [Redrawn(), Poses(), Displaced(), DisplacedFew(), Mirrored()])
def test_other_negatives_may_be_abstract(negative):
    assert len(Discrimination(negative=negative, abstract=True).sample(20, rng())) == 20


# --- distractors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("abstract", [False, True])
def test_numbers_of_distractors(abstract):
    """Uniform in 0..3, whatever the label."""
    samples = Discrimination((3, 8), distractors=3, abstract=abstract).sample(8000, rng(8))
    extra = scene.count(samples.target) - scene.count(samples.reference)
    for label in (0, 1):
        of_label = extra[samples.label == label]
        rates = np.bincount(of_label, minlength=4) / len(of_label)
        assert len(rates) == 4
        assert np.abs(rates - 1 / 4).max() < chance.of_rate(1 / 4, len(of_label))


@pytest.mark.parametrize("label", [0, 1])
def test_distractors_are_objects_like_those_of_a_reference(label):
    task = Discrimination((3, 8), distractors=2)
    draws = drawn(task)[1]
    rows = draws.label == label
    objects = variants.make_distractors(draws.extra[rows], 2)
    objects = objects[scene.present(objects)].astype(np.float64)
    assert np.abs(objects[:, SHAPE].mean(axis=0) - 1 / 3).max() < chance.of_rate(1 / 3, len(objects))
    assert chance.uniform_fits(objects[:, SIZE], 0.5, 2)
    size = objects[:, SIZE, None]
    assert chance.uniform_fits((objects[:, POSITION] - size) / (20 - 2 * size), 0, 1)


def test_distractors_are_shuffled_and_moved_with_the_rest():
    """Three objects and one distractor: it is equally often in each row, and scale and rotation act on it too."""
    task = Discrimination(3, distractors=1, fixed=Fixed(scale=2.0))
    source = rng(9)
    references, draws = task.references(8000, source), task.draw(8000, source)
    draws = replace(draws, extra=np.maximum(draws.extra, np.float32([0.5] + [0] * 8)))  # always one
    out = task.compose(references, draws)
    extra = variants.make_distractors(draws.extra, 1)[:, 0]
    gap = np.abs(out[..., COLOR] - extra[:, None, COLOR]).max(axis=-1)
    row = gap.argmin(axis=1)
    assert gap.min(axis=1).max() < 1e-6
    rates = np.bincount(row, minlength=4) / 8000
    assert np.abs(rates - 1 / 4).max() < chance.of_rate(1 / 4, 8000)
    found = out[np.arange(8000), row]
    assert np.allclose(found[:, SIZE], 2 * extra[:, SIZE], atol=1e-4)
    turn = found[:, ORIENTATION] - extra[:, ORIENTATION]
    assert np.allclose(turn, TWO_PI * draws.similarity[:, 1], atol=1e-4)


@pytest.mark.parametrize("bad", [-1, 1.5, True, None, "3"])
def test_bad_numbers_of_distractors(bad):
    with pytest.raises(ValueError, match=r"distractors is .* accepted is an int from 0"):
        Discrimination(distractors=bad)


@pytest.mark.parametrize("options", [{"abstract": True}, {"distractors": 1}])
def test_certificates_need_the_same_objects(options):
    with pytest.raises(ValueError, match="the truth takes the objects of both scenes one to one"):
        Identification(certified=True, **options)


# --- parts of the similarity that are given -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fixed", [Fixed(scale=0.75), Fixed(rotation=2.5), Fixed(translation=(10, -5)), Fixed(scale=3.0, rotation=-1.0)]
)
@pytest.mark.parametrize("label", [0, 1])
def test_given_parts_are_the_same_in_every_sample_and_the_others_are_drawn(fixed, label):
    """Scale from the sizes, rotation from the orientations, translation from the barycentres."""
    task = Discrimination(20, fixed=fixed)
    source = rng(10)
    references, draws = task.references(1000, source), task.draw(1000, source)
    rows = draws.label == label
    plain, moved = drawn(task, 1000, 10)[2][rows].astype(np.float64), task.compose(references, draws)[rows]
    scale = moved[..., SIZE].sum(axis=1) / plain[..., SIZE].sum(axis=1)
    turn = moved[..., ORIENTATION].mean(axis=1) - plain[..., ORIENTATION].mean(axis=1)
    shift = (scene.barycenter(moved) - scene.barycenter(plain))[:, 0]
    for values, given, ends in ((scale, fixed.scale, (0.5, 2)), (turn, fixed.rotation, (0, TWO_PI))):
        if given is None:
            assert chance.uniform_fits(values, *ends)
        else:
            assert np.allclose(values, given, atol=1e-4)
    for axis in range(2):
        if fixed.translation is None:
            assert chance.uniform_fits(shift[:, axis], -20, 20)
        else:
            assert np.allclose(shift[:, axis], fixed.translation[axis], atol=1e-4)


def test_names_of_the_given_parts():
    assert Fixed().names == ()
    assert Fixed(translation=[1, 2]).translation == (1, 2)
    assert Fixed(1.0, 0.0, (0.0, 0.0)).names == ("scale", "rotation", "translation")
    assert hash(Fixed(translation=[1, 2])) == hash(Fixed(translation=(1, 2)))


@pytest.mark.parametrize(
    ("part", "bad"),
    [
        *[("scale", bad) for bad in (0, -1.0, np.nan, np.inf, "1", True)],
        *[("rotation", bad) for bad in (np.nan, np.inf, "1", True)],
        *[("translation", bad) for bad in (1.0, (1.0,), (1.0, 2.0, 3.0), (1.0, np.nan), "12", (1.0, None))],
    ],
)
def test_bad_parts(part, bad):
    with pytest.raises(ValueError, match=f"{part} is .*; accepted"):
        Fixed(**{part: bad})


def test_a_part_that_is_no_part():
    with pytest.raises(TypeError, match="accepted is Fixed"):
        Discrimination(fixed={"scale": 1})
