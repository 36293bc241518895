"""The hard suite: which tasks there are, what their negatives are, and that the truth says so."""

from __future__ import annotations

import numpy as np
import pytest

from spatialsim_env.arrangements import goals, hard_suite, scene
from spatialsim_env.arrangements.alignment import OK, align
from spatialsim_env.arrangements.hard_suite import HardTask, distance, find, label_of, rng_of, sample
from spatialsim_env.arrangements.negatives import Displaced, Redrawn
from spatialsim_env.arrangements.scene import COLOR, ORIENTATION, POSITION, SHAPE, SIZE
from spatialsim_env.arrangements.tasks import Discrimination
from tests.spatialsim_env import literal

every = pytest.mark.parametrize("hard", hard_suite.REGISTRY.values(), ids=hard_suite.NAMES)


def test_the_tasks_of_section_3():
    kinds = list(dict.fromkeys(name.split("/")[0] for name in hard_suite.NAMES))
    assert kinds == [
        *("redrawn", "displaced", "mirrored", "swapped", "spread_matched", "radius_matched", "twisted", "mis_scaled"),
        *("lookalikes", "abstract", "distractors", "abstract_distractors"),
    ]
    assert all(name == hard.name for name, hard in hard_suite.REGISTRY.items())
    curve = {hard.displacement for hard in hard_suite.REGISTRY.values()} - {None}
    assert {2, 4, 6, 8, 12} < curve == set(hard_suite.DISPLACEMENTS)  # the curve of section 2, and more points
    for sigmas in curve:
        assert find(f"displaced/{sigmas:g}sigma").negative == Displaced(0.2 * sigmas, 0.2 * sigmas)
    assert [find(f"mirrored/{way}").negative.reflect_orientation for way in ("turned", "kept")] == [True, False]


@every
def test_ranges(hard):
    """Those of the benchmark and 100, as far as they are the task's."""
    assert hard_suite.RANGES == ((3, 8), (9, 20), (21, 30), (100, 100))
    first = {"radius_matched": (4, 8), "lookalikes/all": (3, 7)}.get(hard.name, (3, 8))
    assert hard.ranges == ((first,) if hard.name == "lookalikes/all" else (first, *hard_suite.RANGES[1:]))
    assert hard.within(5) == (5, 5)
    assert hard.within(2) is hard.within((101, 200)) is None
    for bad in (2, (2, 5), 101):
        with pytest.raises(ValueError, match=f"accepted for {hard.name} are numbers from {hard.least} to {hard.most}"):
            hard.sample(bad, 10, np.random.default_rng(0))


@every
def test_what_is_certified(hard):
    """All but displacements within the tolerance of five sigmas, and those that would need too long a search.

    Of one displacement among n objects the barycentre, and with it the fit, takes a share of 1 / n.
    """
    for n_objects in hard.ranges:
        searched = hard.abstract and (hard.distractors > 0 or n_objects[1] > 20)
        within = hard.displacement is not None and hard.displacement * (1 - 1 / n_objects[0]) <= 5
        assert not hard.negative.by_construction or within
        assert hard.certifies(n_objects) == (not searched and not within)


@pytest.mark.parametrize("n", [3, 8, 30])
@every
def test_certified_negatives_are_wrong_and_positives_right(hard, n):
    """Those by construction: within the tolerance most are achieved, and of the others there is no truth."""
    n_objects = max(n, hard.least)
    if n_objects > hard.most:
        pytest.skip(f"{hard.name} ends at {hard.most} objects")
    size = 200 if hard.abstract or hard.lookalikes else 2000  # those are searched
    samples = hard.sample(n_objects, size, rng_of(hard.name, n, 0))
    task = hard.task(n_objects)
    assert (samples.label == 0).sum() == size / 2
    if not hard_suite.has_truth(task):
        with pytest.raises(ValueError, match="no truth for abstract scenes"):
            distance(task, samples.target[:1], samples.reference[:1])
        return
    achieved = distance(task, samples.target, samples.reference) <= 1
    if hard.certifies(n_objects):
        assert not achieved[samples.label == 0].any()
    else:
        assert achieved[samples.label == 0].mean() > 0.8
    assert achieved[samples.label == 1].mean() > 0.995


@every
def test_a_function_of_the_stream_with_whole_scenes(hard):
    n_objects = hard.ranges[0]
    one, other = (sample(hard.name, n_objects, 60, rng_of(hard.name, n_objects, 3)) for _ in range(2))
    for part in ("target", "reference", "label"):
        assert np.array_equal(getattr(one, part), getattr(other, part))
        assert getattr(one, part).dtype == np.float32
    scene.validate(one.target)
    scene.validate(one.reference)
    counts = scene.count(one.reference)
    assert set(counts) == set(range(n_objects[0], n_objects[1] + 1))
    more = scene.count(one.target) - counts
    assert set(more) == set(range(hard.distractors + 1))
    assert not one.target[~scene.present(one.target)].any()
    other = hard.sample(n_objects, 60, rng_of(hard.name, n_objects, 4))
    assert not np.array_equal(one.reference, other.reference)


@every
def test_a_hundred_objects(hard):
    if hard.most < 100:
        pytest.skip(f"{hard.name} ends at {hard.most} objects")
    samples = hard.sample(100, 20, rng_of(hard.name, 100, 0))
    assert (scene.count(samples.reference) == 100).all()
    assert label_of(100) == "n100"


# --- what a task is made of -----------------------------------------------------------------------------------------


def matched(hard: HardTask, n_objects, size: int = 400):
    """References, and their targets in the order of the references and turned back onto them; labels."""
    samples = hard.sample(n_objects, size, rng_of(hard.name, n_objects, 1))
    found = align(samples.reference, samples.target, goals.TOLERANCES)
    assert (found.status == OK).all()
    target = np.take_along_axis(samples.target, np.maximum(found.matching, 0)[..., None], axis=1).astype(np.float64)
    target *= scene.present(samples.reference)[..., None]
    return samples.reference.astype(np.float64), target, samples.label


@pytest.mark.parametrize("name", ["spread_matched", "radius_matched"])
def test_closed_shortcuts_tell_nothing(name):
    """Per object, relative to the size ratio: the labels have the same spread, or the same distances."""
    hard = find(name)
    reference, target, label = matched(hard, (4, 8))
    ratio = target[..., SIZE].sum(axis=1) / reference[..., SIZE].sum(axis=1)

    def radii(scenes):
        offset = np.linalg.norm(scenes[..., POSITION] - scene.barycenter(scenes), axis=-1)
        return np.where(scene.present(scenes), offset, 0)

    before, after = radii(reference), radii(target) / ratio[:, None]
    spread = np.sqrt((after**2).sum(axis=1) / (before**2).sum(axis=1))
    assert np.abs(spread - 1).max() < 0.5  # noise of 0.2 and 0.02; redrawn scenes reach 3
    for value in (0, 1):
        assert abs(np.median(spread[label == value]) - 1) < 0.02
    if name == "radius_matched":
        assert np.abs(after - before).max() < 2.0  # position noise and the error of the size ratio


@pytest.mark.parametrize(("name", "most"), [("lookalikes/five", 5), ("lookalikes/all", 7)])
def test_lookalikes_share_shape_size_and_colour(name, most):
    samples = find(name).sample((3, 7), 300, np.random.default_rng(0))
    scenes = samples.reference
    plain = Discrimination((3, 7)).references(300, np.random.default_rng(0))
    assert find(name).lookalikes == most
    for k in range(1, 7):
        rows = scene.present(scenes)[:, k]
        same = (scenes[rows, k] == scenes[rows, 0])[:, [*range(*SHAPE.indices(10)), SIZE, *range(*COLOR.indices(10))]]
        assert same.all() if k < most else not same.all(axis=1).any()
    size, own = scenes[..., SIZE, None], plain[..., SIZE, None]
    first = samples.label == 1  # redrawn negatives may have been drawn again, positives are those of the stream
    drawn = [(x[..., POSITION] - s) / (20 - 2 * s) for x, s in ((scenes, size), (plain, own))]
    here = scene.present(scenes) & first[:, None]
    assert np.allclose(drawn[0][here], drawn[1][here], atol=1e-5)
    assert np.array_equal(scenes[here][:, ORIENTATION], plain[here][:, ORIENTATION])


@pytest.mark.parametrize("size", [0, 1, 7])
def test_any_number_of_samples(size):
    for name in ("swapped", "abstract", "distractors"):
        assert len(sample(name, 4, size, np.random.default_rng(0))) == size


# --- the truth of the suite -----------------------------------------------------------------------------------------


def test_the_truth_of_abstract_scenes_tries_every_matching():
    """Against all n! matchings by the literal truth, with the spreads as the sizes."""
    samples = Discrimination((3, 5), abstract=True, balanced=True).sample(40, np.random.default_rng(5))
    found = distance(Discrimination((3, 5), abstract=True), samples.target, samples.reference)
    for a, g, value in zip(samples.reference, samples.target, found, strict=True):
        bare = []
        for one in (literal.drop_padding(a), literal.drop_padding(g)):
            one[:, SHAPE], one[:, COLOR], one[:, ORIENTATION] = (1, 0, 0), 0, 0
            one[:, SIZE] = literal.rms_spread(one)
            bare.append(one)
        assert value == pytest.approx(literal.distance(*bare, "positions"), rel=1e-4)


def test_the_truth_with_distractors_is_that_of_the_same_objects():
    samples = Discrimination((3, 8), distractors=3, balanced=True).sample(300, np.random.default_rng(6))
    task = Discrimination((3, 8), distractors=3)
    found = distance(task, samples.target, samples.reference)
    assert ((found <= 1) == (samples.label == 1)).mean() > 0.99
    plain = Discrimination((3, 8)).sample(300, np.random.default_rng(6))
    extra = scene.sample(np.full(300, 3), 3, np.random.default_rng(7))
    extra[..., COLOR] += 1.2  # like no other
    crowded = np.concatenate([extra, plain.target], axis=1)
    assert np.allclose(distance(task, crowded, plain.reference), goals.distance(plain.reference, plain.target))


def test_unknown_names():
    with pytest.raises(ValueError, match="hard task 'upside_down' is unknown; accepted are redrawn, displaced/2sigma"):
        sample("upside_down", 3, 1, np.random.default_rng(0))


def test_a_task_that_cannot_be_certified_says_so():
    stuck = HardTask("stuck", Redrawn(), abstract=True, least=1)
    with pytest.raises(RuntimeError, match=r"stuck: .* negatives are achieved in each of 50 tries"):
        stuck.sample(2, 20, np.random.default_rng(0))
    with pytest.raises(ValueError, match="'displaced' that is a negative by construction only, contradict"):
        Discrimination(negative=Displaced(0.4, 0.4), certified=True)
