"""Similarities: group laws, round trips, what they do to a scene, and the benchmark's ranges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialsim_env.arrangements import scene
from spatialsim_env.arrangements import similarities as transforms
from spatialsim_env.arrangements.scene import COLOR, ORIENTATION, POSITION, SHAPE, SIZE
from spatialsim_env.arrangements.similarities import Similarity
from tests.spatialsim_env import chance, literal

checked = settings(deadline=None, max_examples=100, derandomize=True)
similarities = st.builds(
    lambda scale, angle, x, y: Similarity(np.array([scale]), np.array([angle]), np.array([[x, y]])),
    st.floats(0.1, 10),
    st.floats(-10, 10),
    st.floats(-50, 50),
    st.floats(-50, 50),
)
seeds = st.integers(0, 2**32 - 1)


def draw_scene(seed: int, dtype=np.float64) -> np.ndarray:
    """One scene of 1 to 6 objects, with padding up to 6 rows."""
    rng = np.random.default_rng(seed)
    return scene.sample(rng.integers(1, 7, 1), 6, rng).astype(dtype)


def points(scenes: np.ndarray) -> np.ndarray:
    """Positions of the objects of one scene as complex numbers."""
    return scenes[scene.present(scenes)][:, POSITION] @ np.array([1, 1j])


# --- laws -----------------------------------------------------------------------------------------------------------


@checked
@given(seeds, similarities)
def test_inverse_undoes(seed, similarity):
    scenes = draw_scene(seed)
    assert np.allclose(similarity.invert().apply(similarity.apply(scenes)), scenes, atol=1e-9)
    assert np.allclose(similarity.apply(similarity.invert().apply(scenes)), scenes, atol=1e-9)


@checked
@given(seeds, similarities, similarities)
def test_composition_is_one_after_the_other(seed, second, first):
    scenes = draw_scene(seed)
    assert np.allclose(second.compose(first).apply(scenes), second.apply(first.apply(scenes)), atol=1e-9)


@checked
@given(seeds, similarities, similarities, similarities)
def test_composition_is_associative_and_has_a_neutral_element(seed, a, b, c):
    scenes = draw_scene(seed)
    left, right = a.compose(b).compose(c), a.compose(b.compose(c))
    assert np.allclose(left.apply(scenes), right.apply(scenes), atol=1e-8)
    assert np.allclose(a.compose(a.invert()).apply(scenes), scenes, atol=1e-9)
    nothing = Similarity(np.ones(1), np.zeros(1), np.zeros((1, 2)))
    assert np.allclose(nothing.apply(scenes), scenes, atol=1e-12)


# --- action ---------------------------------------------------------------------------------------------------------


@checked
@given(seeds, similarities)
def test_action_on_a_scene(seed, similarity):
    """Every vector between two objects is multiplied by s e^(i theta); the barycentre only translates."""
    scenes = draw_scene(seed)
    out = similarity.apply(scenes)
    scale, angle = similarity.scale[0], similarity.angle[0]
    before, after = points(scenes), points(out)
    factor = scale * np.exp(1j * angle)
    assert np.allclose(after[:, None] - after[None], factor * (before[:, None] - before[None]), atol=1e-9)
    assert np.allclose(scene.barycenter(out) - scene.barycenter(scenes), similarity.translation[:, None], atol=1e-9)
    here = scene.present(scenes)
    assert np.allclose(out[..., SIZE], scale * scenes[..., SIZE])
    assert np.allclose(out[here][:, ORIENTATION], scenes[here][:, ORIENTATION] + angle)  # never wrapped
    assert np.array_equal(out[..., SHAPE], scenes[..., SHAPE])
    assert np.array_equal(out[..., COLOR], scenes[..., COLOR])
    assert not out[~here].any()


@checked
@given(seeds, similarities)
def test_action_is_the_literal_one(seed, similarity):
    scenes = draw_scene(seed, np.float32)
    out = similarity.apply(scenes)
    assert out.dtype == np.float32
    slow = literal.moved(
        literal.drop_padding(scenes[0]), similarity.scale[0], similarity.angle[0], similarity.translation[0]
    )
    n = len(slow)
    assert np.allclose(out[0, :n], slow, rtol=1e-4, atol=1e-3)  # float32 on scenes up to 280 units wide
    assert not out[0, n:].any()


def test_a_quarter_turn_is_counter_clockwise():
    row = np.zeros((1, 2, 10))
    row[..., SHAPE.start], row[..., SIZE] = 1, 1
    row[0, :, POSITION] = [[9, 5], [11, 5]]
    out = Similarity(np.array([2.0]), np.array([np.pi / 2]), np.array([[1.0, -1.0]])).apply(row)
    assert np.allclose(out[0, :, POSITION], [[11, 2], [11, 6]])
    assert np.allclose(out[0, :, SIZE], 2)
    assert np.allclose(out[0, :, ORIENTATION], np.pi / 2)


def test_the_argument_is_kept_and_rows_are_independent():
    rng = np.random.default_rng(0)
    scenes = scene.sample(rng.integers(1, 7, 40), 6, rng)
    before = scenes.copy()
    similarity = transforms.sample(40, rng)
    out = similarity.apply(scenes)
    assert np.array_equal(scenes, before)
    assert not np.shares_memory(out, scenes)
    for k in range(40):
        part = slice(k, k + 1)
        alone = Similarity(similarity.scale[part], similarity.angle[part], similarity.translation[part])
        assert np.array_equal(alone.apply(scenes[part]), out[part])


# --- the benchmark's similarities -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranges", "scales", "angles"),
    [
        ({}, (0.5, 2), (0, 2 * np.pi)),
        ({"angles": (0, 0.1 * np.pi)}, (0.5, 2), (0, 0.1 * np.pi)),
        ({"scales": (2, 2.5), "angles": (1, 3)}, (2, 2.5), (1, 3)),
    ],
)
def test_ranges(ranges, scales, angles):
    similarity = transforms.sample(20_000, np.random.default_rng(1), **ranges)
    assert chance.uniform_fits(similarity.scale, *scales)
    assert chance.uniform_fits(similarity.angle, *angles)
    for axis in range(2):
        assert chance.uniform_fits(similarity.translation[:, axis], -20, 20)
    parts = np.column_stack([similarity.scale, similarity.angle, similarity.translation])
    assert np.abs(np.corrcoef(parts.T) - np.eye(4)).max() < chance.of_mean(1.0, 20_000)


def test_no_rotation():
    assert not transforms.sample(100, np.random.default_rng(2), angles=(0.0, 0.0)).angle.any()


def test_the_same_state_gives_the_same_bits():
    first, second = (transforms.sample(10, np.random.default_rng(3)) for _ in range(2))
    for name in ("scale", "angle", "translation"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()
