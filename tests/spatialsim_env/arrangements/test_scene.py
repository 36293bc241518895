"""The feature table, batches, validation, and the distribution of reference scenes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialsim_env.arrangements import scene
from spatialsim_env.arrangements.scene import (
    COLOR,
    N_FEATURES,
    N_UNIFORM,
    ORIENTATION,
    POSITION,
    SHAPE,
    SIZE,
    SceneError,
)
from tests.spatialsim_env import chance, literal

ABOVE = 1 - 2.0**-24  # the greatest float32 that a generator gives
TRIALS = 20_000


def square(**columns) -> list[float]:
    """A row: a square of size 1 in the middle of the arena unless said otherwise."""
    values = dict.fromkeys(scene.FEATURES, 0.0) | {"square": 1.0, "size": 1.0, "x": 10.0, "y": 10.0}
    assert set(columns) <= set(values)
    return list((values | columns).values())


PADDING = [0.0] * N_FEATURES


@pytest.fixture(scope="module")
def many() -> np.ndarray:
    """20,000 scenes of 4 objects."""
    return scene.sample(np.full(TRIALS, 4), 4, np.random.default_rng(0))


# --- the table ------------------------------------------------------------------------------------------------------


def test_table_lists_the_ten_columns_of_the_benchmark():
    names = ["square", "circle", "triangle", "size", "red", "green", "blue", "x", "y", "orientation"]
    assert list(scene.FEATURES) == names
    assert [names[k] for k in (SIZE, ORIENTATION)] == ["size", "orientation"]
    assert [names[part] for part in (SHAPE, COLOR, POSITION)] == [names[:3], names[4:7], names[7:9]]
    assert tuple(names[SHAPE]) == scene.SHAPES
    assert len(names) == N_FEATURES


def test_ranges_and_noise():
    """eps = 0.01 of the feature ranges 2, 1, 20, 2 pi."""
    assert (scene.ARENA, scene.SIZES) == (20, (0.5, 2))
    noise = scene.NOISE
    ratios = (noise.size / 2, noise.color / 1, noise.position / 20, noise.orientation / (2 * np.pi))
    assert np.allclose(ratios, 0.01, rtol=1e-12)


# --- batches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "batch", "batched"),
    [
        ((3, 10), (1, 3, 10), False),
        ((1, 10), (1, 1, 10), False),
        ((5, 3, 10), (5, 3, 10), True),
        ((0, 3, 10), (0, 3, 10), True),
        ((30,), (1, 3, 10), False),
        ((10,), (1, 1, 10), False),
        ((5, 30), (5, 3, 10), True),
        ((1, 20), (1, 2, 10), True),
    ],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_form_of_a_scene(shape, batch, batched, dtype):
    numbers = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    out, was_batch = scene.as_batch(numbers)
    assert (out.shape, was_batch, out.dtype) == (batch, batched, dtype)
    assert np.array_equal(out.ravel(), numbers.ravel())


@pytest.mark.parametrize("shape", [(), (0,), (9,), (3, 9), (2, 25), (2, 3, 9), (2, 3, 20), (1, 2, 3, 10)])
def test_other_shapes_are_refused_by_name(shape):
    with pytest.raises(SceneError, match="goal has shape") as error:
        scene.as_batch(np.zeros(shape), "goal")
    assert str(shape) in str(error.value)


def test_integers_and_lists_become_float64():
    assert scene.as_batch([[1, 0, 0, 1, 0, 0, 0, 5, 5, 0]])[0].dtype == np.float64
    assert scene.as_batch(np.ones((2, 10), int))[0].dtype == np.float64


def test_presence_counts_and_padding():
    scenes = np.array([[square(), PADDING, square()], [PADDING, PADDING, square(square=0.0, triangle=1.0)]])
    assert scene.present(scenes).tolist() == [[True, False, True], [False, False, True]]
    assert scene.count(scenes).tolist() == [2, 1]
    padded = scene.pad(scenes, 5)
    assert padded.shape == (2, 5, N_FEATURES)
    assert np.array_equal(padded[:, :3], scenes)
    assert not padded[:, 3:].any()
    assert np.array_equal(scene.pad(scenes, 3), scenes)
    with pytest.raises(SceneError, match="3 objects do not fit into n_max = 2"):
        scene.pad(scenes, 2)


def test_barycenter_is_the_mean_of_present_objects():
    scenes = np.array([[square(x=1.0, y=2.0), PADDING, square(x=4.0, y=8.0)], [square(x=3.0, y=7.0), PADDING, PADDING]])
    assert np.array_equal(scene.barycenter(scenes), [[[2.5, 5.0]], [[3.0, 7.0]]])
    assert np.array_equal(scene.barycenter(np.zeros((1, 2, 10))), [[[0.0, 0.0]]])  # nothing there, no warning


# --- validation -----------------------------------------------------------------------------------------------------


def test_valid_scenes_pass():
    scene.validate(np.array([[square(), PADDING, square(square=0.0, circle=1.0)], [square(), square(), square()]]))
    scene.validate(np.zeros((0, 3, N_FEATURES)))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (square(x=np.nan), "x is nan"),
        (square(orientation=np.inf), "orientation is inf"),
        (square(size=-np.inf), "size is -inf"),
        (square(circle=1.0), "one of the one-hots"),
        (square(square=0.5), "one of the one-hots"),
        (square(square=2.0), "one of the one-hots"),
        (square(square=-1.0, circle=1.0, triangle=1.0), "one of the one-hots"),
        (square(square=0.0), "padding"),
        (square(size=0.0), "sizes are positive"),
        (square(size=-1.0), "sizes are positive"),
    ],
)
def test_a_bad_row_is_named(row, message):
    with pytest.raises(SceneError, match=message) as error:
        scene.validate(np.array([[square(), square()], [square(), row]]), "goal")
    assert "goal[1], object 1" in str(error.value)


def test_a_scene_without_objects_is_named():
    with pytest.raises(SceneError, match=r"goal\[1\] holds no object"):
        scene.validate(np.array([[square()], [PADDING]]), "goal")
    with pytest.raises(SceneError, match="holds no object"):
        scene.validate(np.zeros((1, 0, N_FEATURES)))


def test_scene_errors_are_value_errors():
    assert issubclass(SceneError, ValueError)


# --- reference scenes -----------------------------------------------------------------------------------------------


def test_reference_scenes_are_the_literal_ones():
    rng = np.random.default_rng(1)
    numbers = rng.random((50, 6, N_UNIFORM), np.float32)
    n_objects = rng.integers(1, 7, 50)
    scenes = scene.from_uniform(numbers, n_objects)
    assert scenes.dtype == np.float32
    for fast, u, n in zip(scenes, numbers, n_objects, strict=True):
        assert np.allclose(fast[:n], literal.reference_scene(u, n), atol=1e-5)
        assert not fast[n:].any()


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.lists(st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1 - 2.0**-20, ABOVE]), min_size=8, max_size=8))
def test_extreme_numbers_give_scenes_inside_the_arena(numbers):
    scenes = scene.from_uniform(np.array([[numbers]], np.float32), np.array([1]))
    scene.validate(scenes)
    row = scenes[0, 0]
    assert 0.5 <= row[SIZE] <= 2
    assert (row[COLOR] >= 0).all()
    assert (row[COLOR] < 1).all()
    assert (row[POSITION] >= row[SIZE] - 1e-5).all()
    assert (row[POSITION] <= 20 - row[SIZE] + 1e-5).all()
    assert 0 <= row[ORIENTATION] <= np.float32(2 * np.pi)


def test_shapes_are_uniform(many):
    rates = many[..., SHAPE].mean(axis=(0, 1))
    assert np.abs(rates - 1 / 3).max() < chance.of_rate(1 / 3, 4 * TRIALS)


def test_features_are_uniform_over_their_ranges(many):
    assert chance.uniform_fits(many[..., SIZE], 0.5, 2)
    assert chance.uniform_fits(many[..., ORIENTATION], 0, 2 * np.pi)
    for channel in range(3):
        assert chance.uniform_fits(many[..., COLOR][..., channel], 0, 1)
    size = many[..., SIZE, None].astype(np.float64)
    place = (many[..., POSITION] - size) / (20 - 2 * size)
    for axis in range(2):
        assert chance.uniform_fits(place[..., axis], 0, 1)


def test_features_are_independent(many):
    """Every correlation of two numbers of a scene vanishes: its standard error is 1 / sqrt(n)."""
    size = many[..., SIZE, None].astype(np.float64)
    place = (many[..., POSITION] - size) / (20 - 2 * size)
    kind = many[..., SHAPE] @ np.array([0.0, 1.0, 2.0])
    parts = [kind[..., None], size, many[..., COLOR], place, many[..., ORIENTATION, None]]
    numbers = np.concatenate(parts, axis=-1).reshape(TRIALS, -1)
    correlation = np.corrcoef(numbers.T) - np.eye(numbers.shape[1])
    assert np.abs(correlation).max() < chance.of_mean(1.0, TRIALS)


@pytest.mark.parametrize(("low", "high", "published"), [(3, 8, 0.52), (9, 20, 0.98)])
def test_published_rate_of_overlap(low, high, published):
    """Overlap: the circumcircles of two objects meet. The rates are published to two digits."""
    rng = np.random.default_rng(2)
    trials = 10_000
    scenes = scene.sample(rng.integers(low, high + 1, trials), high, rng)
    here = scene.present(scenes)
    gap = np.linalg.norm(scenes[:, :, None, POSITION] - scenes[:, None, :, POSITION], axis=-1)
    meet = (gap < scenes[:, :, None, SIZE] + scenes[:, None, :, SIZE]) & here[:, :, None] & here[:, None, :]
    rate = (meet.sum(axis=(1, 2)) > here.sum(axis=1)).mean()  # every object meets itself
    assert abs(rate - published) < 0.005 + chance.of_rate(published, trials)


def test_the_same_state_gives_the_same_bits():
    first, second = (scene.sample([2, 5, 3], 5, np.random.default_rng(3)) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert scene.count(first).tolist() == [2, 5, 3]


@pytest.mark.parametrize("value", [-1.5, 255.0])
def test_colours_far_from_their_range_are_refused(value):
    one = scene.sample([3], 3, np.random.default_rng(0))
    one[0, 1, COLOR] = value
    with pytest.raises(SceneError, match=r"object 1 .* colours are 0\.\.1"):
        scene.validate(one)


@pytest.mark.parametrize("nonsense", ["abc", [[1.0, 2.0], [3.0]], np.ones((3, 10), complex), [["x"] * 10], None])
def test_what_is_no_array_of_numbers(nonsense):
    with pytest.raises(SceneError, match="achieved"):
        scene.as_batch(nonsense, "achieved")
