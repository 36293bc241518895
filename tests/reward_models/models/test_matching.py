from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import reward_models
from reward_models import models
from reward_models.models import matching
from spatialsim_env import testing
from spatialsim_env.arrangements import goals, scene, similarities
from spatialsim_env.arrangements.negatives import Poses, Redrawn
from spatialsim_env.arrangements.scene import COLOR, NOISE, ORIENTATION, POSITION, SHAPE, SIZE
from spatialsim_env.arrangements.tasks import Discrimination

SIGMAS = np.array([NOISE.position, NOISE.orientation, NOISE.size])


def scenes_apart(size: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Scenes (size, n, 10) in float64 whose objects all have colours of their own."""
    scenes = scene.sample(np.full(size, n), n, rng).astype(np.float64)
    scenes[..., COLOR.start] = np.arange(n) / n
    return scenes


def residuals_of(target: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Residuals (B, n, 3) and disagreement (B, 2) of scenes whose objects are listed in the same order."""
    parts = [matching.take_apart(torch.from_numpy(x)) for x in (target, reference)]
    same = torch.eye(target.shape[1], dtype=torch.float64)[..., None].expand(-1, -1, len(target))
    fit = matching.fit(*parts, same)
    diagonal = fit.residuals.diagonal(dim1=1, dim2=2)
    return diagonal.permute(1, 2, 0).sqrt().numpy() * SIGMAS, fit.disagreement.T.sqrt().numpy()


def test_weight_count_stays_small():
    assert models.create("matching").n_weights <= 430


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_residuals_are_the_truths(n):
    """The truth iterates to the likeliest similarity; one linear step gets as far when little is wrong."""
    rng = np.random.default_rng(0)
    reference = scenes_apart(200, n, rng)
    wrong = reference.copy()
    wrong[..., POSITION] += NOISE.position / 2 * rng.standard_normal((200, n, 2))
    wrong[..., ORIENTATION] += NOISE.orientation / 2 * rng.standard_normal((200, n))
    target = similarities.sample(200, rng).apply(wrong)
    truth = goals.Criterion().align(reference, target).residuals
    ours, _ = residuals_of(target, reference)
    assert (np.abs(ours - truth) / SIGMAS).max() < 0.1


def test_a_copy_leaves_nothing():
    rng = np.random.default_rng(1)
    reference = scenes_apart(50, 5, rng)
    target = similarities.sample(50, rng).apply(reference)
    ours, disagreement = residuals_of(target, reference)
    assert ours.max() < 1e-6
    assert disagreement.max() < 1e-5


def test_disagreement_is_that_of_positions_with_sizes_and_orientations():
    """Positions turned by 0.01 rad, or scaled by 1 %, alone; in the noise of one orientation, of one size."""
    rng = np.random.default_rng(2)
    reference = scenes_apart(50, 30, rng)
    for twist, factor in ((0.01, 1.0), (0.0, 1.01)):
        target = reference.copy()
        center = scene.barycenter(reference)
        x, y = np.moveaxis(reference[..., POSITION] - center, -1, 0)
        turned = np.stack([np.cos(twist) * x - np.sin(twist) * y, np.sin(twist) * x + np.cos(twist) * y], -1)
        target[..., POSITION] = center + factor * turned
        _, disagreement = residuals_of(similarities.sample(50, rng).apply(target), reference)
        size = np.sqrt((reference[..., SIZE] ** 2).mean(axis=1))
        assert disagreement[:, 0] == pytest.approx((factor - 1) * size / NOISE.size, rel=0.02, abs=0.02)
        assert disagreement[:, 1] == pytest.approx(twist / NOISE.orientation, rel=0.02, abs=0.02)


def test_a_similarity_of_the_target_is_nothing():
    samples = testing.example_pairs(64, n_objects=(1, 8))
    model = models.create("matching").double()

    def score(target, reference):
        return model.score(torch.from_numpy(target), torch.from_numpy(reference)).detach().numpy()

    pair = samples.target.astype(np.float64), samples.reference.astype(np.float64)
    testing.assert_similarity_invariant(score, *pair, np.random.default_rng(0), sides="first", atol=1e-8)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.floats(0, 1e4), st.booleans())
def test_the_score_never_rises_with_what_is_wrong(seed, more, of_all):
    rng = np.random.default_rng(seed)
    model = models.create("matching", seed=seed).double()
    residuals, disagreement = rng.exponential(10, (3, 4, 1)), rng.exponential(10, (2, 1))
    held = torch.ones(4, 1, dtype=torch.bool)

    def score(r, d):
        logits = model.judge(torch.from_numpy(r), torch.from_numpy(d), held)[0]
        return (logits[1] - logits[0]).item()

    before = score(residuals, disagreement)
    worse = residuals.copy(), disagreement.copy()
    if of_all:
        worse[1][rng.integers(2)] += more
    else:
        worse[0][rng.integers(3), rng.integers(4)] += more
    assert score(*worse) <= before + 1e-9


def test_sharp_from_the_start():
    """Without training, the attention finds partners through the benchmark's colour noise."""
    reference = scenes_apart(200, 6, np.random.default_rng(3))
    noisy = reference.copy()
    noisy[..., COLOR] += NOISE.color * np.random.default_rng(4).standard_normal((200, 6, 3))
    parts = [matching.take_apart(torch.from_numpy(x)) for x in (noisy, reference)]
    attention = (-matching.appearance(*parts)).softmax(1)
    assert attention.diagonal().min() > 0.99


def test_other_shapes_are_no_partners():
    reference = scenes_apart(1, 3, np.random.default_rng(5))
    reference[..., SHAPE] = np.eye(3)
    target = reference.copy()
    target[0, :, COLOR] = reference[0, [1, 2, 0], COLOR]
    parts = [matching.take_apart(torch.from_numpy(x)) for x in (target, reference)]
    assert torch.equal((-matching.appearance(*parts)).softmax(1)[..., 0], torch.eye(3, dtype=torch.float64))


@pytest.fixture(scope="module")
def mixed(mixed_folder):
    return reward_models.load(mixed_folder)


def posed(n: int, rng: np.random.Generator, size: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Scenes and their copies under a similarity, in another order."""
    reference = scene.sample(np.full(size, n), n, rng)
    return reference, similarities.sample(size, rng).apply(reference[:, ::-1])


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 20, 30])
def test_exact_copies_are_recognised(mixed, n):
    """No noise is needed to be called the same."""
    reference, target = posed(n, np.random.default_rng(n))
    assert (mixed.score(reference, target) > 0).mean() >= 0.995


@pytest.mark.parametrize("n", [3, 8, 20])
def test_well_within_the_tolerance_is_recognised(mixed, n):
    rng = np.random.default_rng(n)
    reference, target = posed(n, rng)
    achieved = reference.copy()
    achieved[..., POSITION] += rng.uniform(-0.35, 0.35, (200, n, 2)).astype(np.float32)
    achieved[..., ORIENTATION] += rng.uniform(-0.12, 0.12, (200, n)).astype(np.float32)
    assert goals.achieved(achieved, target).all()
    assert (mixed.score(achieved, target) > 0).mean() >= 0.99


@pytest.mark.parametrize("part", [POSITION.start, ORIENTATION])
@pytest.mark.parametrize("n", [3, 8, 20])
def test_one_object_out_of_place_is_not_achieved(mixed, n, part):
    """Also an orientation alone, which no negative of the mixture shows."""
    rng = np.random.default_rng(n)
    reference, target = posed(n, rng)
    achieved = reference.copy()
    achieved[:, 0, part] += 20 * SIGMAS[0 if part != ORIENTATION else 1]
    wrong = ~goals.achieved(achieved, target)
    assert wrong.mean() > 0.9
    assert (mixed.score(achieved, target)[wrong] < 0).mean() >= 0.99


def test_lookalikes_are_told_apart_by_where_they_are(mixed):
    """Two objects of each scene differ by nothing but the noise of their colours."""
    rng = np.random.default_rng(6)
    reference = scene.sample(np.full(200, 6), 6, rng)
    reference[:, 1, SHAPE], reference[:, 1, COLOR] = reference[:, 0, SHAPE], reference[:, 0, COLOR]
    perturbed = reference.copy()
    perturbed[..., COLOR] += NOISE.color * rng.standard_normal((200, 6, 3)).astype(np.float32)
    target = similarities.sample(200, rng).apply(perturbed)
    assert (mixed.score(reference, target) > 0).mean() >= 0.9
    halfway = reference.copy()
    halfway[:, :2, POSITION] = reference[:, :2, POSITION].mean(axis=1, keepdims=True)
    wrong = ~goals.achieved(halfway, target)
    assert wrong.mean() > 0.8
    assert (mixed.score(halfway, target)[wrong] < 0).mean() >= 0.99


def test_accuracy_from_3_to_30_objects(mixed):
    for n_objects in ((3, 8), (9, 20), (21, 30)):
        samples = Discrimination(n_objects).sample(2000, np.random.default_rng(7))
        right = (mixed.score(samples.reference, samples.target) > 0) == (samples.label == 1)
        assert right.mean() >= 0.99


@pytest.mark.parametrize("n", [3, 5])
def test_what_a_search_finds_is_truly_achieved(mixed, n):
    """Hill climbing over positions and angles that stops at the first claim; section 4 of the audit in small."""
    rng = np.random.default_rng(n)
    episodes, children = 16, 24
    reference, goal = posed(n, rng, episodes)
    numbers = rng.random((episodes, Poses().n_uniform(n)), np.float32)
    best = Poses()(reference, numbers)
    value, step = mixed.score(best, goal), np.ones(episodes)
    for _ in range(400):
        open_rows = np.flatnonzero(value <= 0)
        if not len(open_rows):
            break
        trial = np.repeat(best[open_rows, None], children, axis=1)
        size = step[open_rows, None] * 10 ** rng.uniform(-1, 0.7, (len(open_rows), children))
        moved = rng.random(trial.shape[:3]) < rng.choice([1 / n, 1.0], (len(open_rows), children, 1))
        change = rng.standard_normal((*trial.shape[:3], 3)) * (moved * size[..., None])[..., None]
        trial[..., POSITION] = np.clip(trial[..., POSITION] + change[..., :2], 0, scene.ARENA)
        trial[..., ORIENTATION] += 0.3 * change[..., 2]
        values = mixed.score(trial.reshape(-1, n, 10), np.repeat(goal[open_rows], children, axis=0))
        values = values.reshape(len(open_rows), children)
        child = values.argmax(axis=1)
        rows = np.arange(len(open_rows))
        better = values[rows, child] > value[open_rows]
        best[open_rows[better]] = trial[rows, child][better]
        value[open_rows[better]] = values[rows, child][better]
        step[open_rows] = np.clip(step[open_rows] * np.where(better, 1.1, 0.93), 0.02, 2)
    claimed = value > 0
    assert claimed.mean() >= 0.5
    assert goals.achieved(best[claimed], goal[claimed]).mean() >= 0.9


def test_redrawn_scenes_are_not_achieved(mixed):
    rng = np.random.default_rng(8)
    reference, target = posed(5, rng)
    wrong = Redrawn()(reference, rng.random((200, Redrawn().n_uniform(5)), np.float32))
    assert (mixed.score(wrong, target) < 0).all()
