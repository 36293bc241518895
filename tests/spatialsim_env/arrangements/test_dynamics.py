"""The three action modes against their definition, one object at a time, and what may never happen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialsim_env.arrangements import scene
from spatialsim_env.arrangements.dynamics import DIRECTIONS, MODES, SceneDynamics
from spatialsim_env.arrangements.scene import ARENA, COLOR, N_FEATURES, ORIENTATION, POSITION, SHAPE, SIZE
from spatialsim_env.core.world import ActionError

N_MAX = 4
TURNS = {"move_all": 0.3, "pick_place": math.pi / 2, "discrete": 0.3}
WIDE = np.float32(2 * np.pi)  # float32's 2 pi, the closed end of the range of angles
checked = settings(deadline=None, max_examples=200, derandomize=True)
rules = st.builds(
    SceneDynamics.of, st.sampled_from(MODES), st.just(N_MAX), st.sampled_from([None, 0, 0.3, 1.0, math.pi])
)


def some_scenes(size: int, seed: int = 0) -> np.ndarray:
    """Scenes of 1 to N_MAX objects, padding in between as well as behind."""
    rng = np.random.default_rng(seed)
    scenes = scene.sample(rng.integers(1, N_MAX + 1, size), N_MAX, rng)
    order = np.argsort(rng.random((size, N_MAX)), axis=1)[..., None]
    return np.take_along_axis(scenes, order, axis=1)


def random_actions(dynamics: SceneDynamics, size: int, seed: int = 0) -> np.ndarray:
    space = dynamics.action_space
    space.seed(seed)
    return np.stack([space.sample() for _ in range(size)])


def literal_step(row: np.ndarray, action, mode: str, max_turn: float) -> np.ndarray:
    """One scene and one action, in plain Python."""
    out = row.astype(np.float64)
    here = [k for k in range(len(out)) if out[k, SHAPE].sum() == 1]
    a = [float(x) for x in action] if mode == "discrete" else [max(-1.0, min(1.0, float(x))) for x in action]
    moves = {}  # object -> displacement x, y, turn
    if mode == "move_all":
        width = 3 if max_turn else 2
        for k in here:
            part = a[width * k : width * k + width]
            moves[k] = (part[0], part[1], max_turn * part[2] if max_turn else 0)
    elif mode == "pick_place":
        x, y = 10 + 10 * a[0], 10 + 10 * a[1]
        nearest = min(here, key=lambda k: math.dist(out[k, POSITION], (x, y)))
        moves[nearest] = (4 * a[2], 4 * a[3], max_turn * a[4] if max_turn else 0)
    elif int(a[0]) in here:
        name = DIRECTIONS[int(a[1])]
        ways = {"right": (1, 0, 0), "left": (-1, 0, 0), "up": (0, 1, 0), "down": (0, -1, 0)}
        turns = {"turn left": (0, 0, max_turn), "turn right": (0, 0, -max_turn)}
        moves[int(a[0])] = (ways | turns)[name]
    for k, (dx, dy, turn) in moves.items():
        out[k, POSITION] = [
            max(0, min(20, out[k, POSITION.start] + dx)),
            max(0, min(20, out[k, POSITION.start + 1] + dy)),
        ]
        out[k, ORIENTATION] = (out[k, ORIENTATION] + turn) % (2 * math.pi)
    return out


# --- the rules ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_turn", [None, 0.0, 0.7])
@pytest.mark.parametrize("mode", MODES)
def test_steps_are_the_literal_ones(mode, max_turn):
    dynamics = SceneDynamics.of(mode, N_MAX, max_turn)
    scenes, actions = some_scenes(200), random_actions(dynamics, 200)
    if mode != "discrete":
        actions = 1.5 * actions  # some are clipped
    out = dynamics.step(scenes, actions)
    assert (out.shape, out.dtype) == (scenes.shape, np.float32)
    turn = TURNS[mode] if max_turn is None else max_turn
    slow = np.stack([literal_step(*pair, mode, turn) for pair in zip(scenes, actions, strict=True)])
    assert np.allclose(out, slow, atol=1e-5)
    assert not np.array_equal(out, scenes)


def lone(x: float, y: float, orientation: float = 1.0) -> np.ndarray:
    out = np.zeros((1, 1, N_FEATURES), np.float32)
    out[0, 0, SHAPE.start], out[0, 0, SIZE], out[0, 0, ORIENTATION], out[0, 0, POSITION] = 1, 1, orientation, (x, y)
    return out


@pytest.mark.parametrize(
    ("mode", "action", "place"),
    [
        ("move_all", [1, -1, 1], (6, 9, 1.3)),
        ("move_all", [0.5, 0, -0.5], (5.5, 10, 0.85)),
        ("move_all", [9, -9, -9], (6, 9, 0.7)),
        ("pick_place", [0, 0, 1, -1, 1], (9, 6, 1 + math.pi / 2)),
        ("pick_place", [1, 1, -1, 0.25, 0], (1, 11, 1)),
        ("discrete", [0, 0], (6, 10, 1)),
        ("discrete", [0, 1], (4, 10, 1)),
        ("discrete", [0, 2], (5, 11, 1)),
        ("discrete", [0, 3], (5, 9, 1)),
        ("discrete", [0, 4], (5, 10, 1.3)),
        ("discrete", [0, 5], (5, 10, 0.7)),
    ],
)
def test_one_object(mode, action, place):
    out = SceneDynamics.of(mode, 1).step(lone(5, 10), [action])[0, 0]
    assert np.allclose([*out[POSITION], out[ORIENTATION]], place)


def test_walls_hold():
    dynamics = SceneDynamics.of("move_all", 1)
    for corner in ((0, 0), (0, 20), (20, 0), (20, 20)):
        push = np.sign(np.array(corner) - 10)
        out = dynamics.step(lone(*corner), [[*push, 0]])[0, 0]
        assert out[POSITION].tolist() == list(corner)


def test_the_nearest_object_is_picked():
    scenes = np.concatenate([np.zeros_like(lone(0, 0)), lone(5, 5), lone(15, 5), lone(5, 5)], axis=1)
    dynamics = SceneDynamics.of("pick_place", 4)
    for point, picked in (((-0.5, -0.5), 1), ((0.5, -0.5), 2), ((0.02, 0), 2), ((-1, -1), 1), ((9, -9), 2)):
        out = dynamics.step(scenes, [[*point, 0.25, 0, 0]])
        assert np.flatnonzero((out != scenes).any(axis=(0, 2))).tolist() == [picked]  # the lower row of equals
    nothing = np.zeros((1, 4, N_FEATURES), np.float32)
    assert not dynamics.step(nothing, [[0, 0, 1, 1, 1]]).any()


@pytest.mark.parametrize("mode", MODES)
def test_no_turning_without_turns(mode):
    dynamics = SceneDynamics.of(mode, N_MAX, 0)
    scenes = some_scenes(100)
    for seed in range(5):
        stepped = dynamics.step(scenes, random_actions(dynamics, 100, seed))
        assert np.array_equal(stepped[..., ORIENTATION], scenes[..., ORIENTATION])


def test_action_spaces():
    """Box(3 n_max), Box(5) and MultiDiscrete([n_max, 6]); without turning 2 n_max, 4 and 4 choices."""
    for max_turn, sizes in ((None, (12, 5, 6)), (0, (8, 4, 4))):
        for mode, size in zip(MODES, sizes, strict=True):
            space = SceneDynamics.of(mode, N_MAX, max_turn).action_space
            if mode == "discrete":
                assert space == spaces.MultiDiscrete([N_MAX, size])
            else:
                assert space == spaces.Box(-1, 1, (size,), np.float32)
    for mode in MODES:
        assert SceneDynamics.of(mode, N_MAX).max_turn == pytest.approx(TURNS[mode])


# --- what may never happen ------------------------------------------------------------------------------------------


@checked
@given(st.data(), rules, st.integers(0, 2**32 - 1))
def test_scenes_stay_scenes_in_the_arena(data, dynamics, seed):
    """Corner actions, far too large ones, tiny ones around nought; objects on walls and angles at the ends."""
    rng = np.random.default_rng(seed)
    scenes = some_scenes(3, seed)
    here = scene.present(scenes)
    edges = np.float32([0, 1e-7, 10, 20])
    scenes[..., POSITION] = rng.choice(edges, scenes[..., POSITION].shape) * here[..., None]
    scenes[..., ORIENTATION] = rng.choice(np.float32([0, 1e-12, np.pi, 2 * np.pi]), here.shape) * here
    if dynamics.mode == "discrete":
        actions = random_actions(dynamics, 3, seed)
    else:
        numbers = st.sampled_from([-1e30, -1.0, -1e-9, 0.0, 1e-9, 0.3, 1.0, 1e30])
        actions = np.array([[data.draw(numbers) for _ in range(dynamics.action_space.shape[0])] for _ in range(3)])
    out = dynamics.step(scenes, actions)
    scene.validate(out)
    assert out[..., POSITION].min() >= 0
    assert out[..., POSITION].max() <= ARENA
    assert out[..., ORIENTATION].min() >= 0
    assert out[..., ORIENTATION].max() <= WIDE
    assert not out[~here].any()
    for column in (SHAPE, SIZE, COLOR):
        assert np.array_equal(out[..., column], scenes[..., column])


@checked
@given(rules, st.integers(0, 2**32 - 1))
def test_a_pure_batched_function(dynamics, seed):
    scenes, actions = some_scenes(5, seed), random_actions(dynamics, 5, seed % 1000)
    before = scenes.copy(), actions.copy()
    out = dynamics.step(scenes, actions)
    assert np.array_equal(scenes, before[0])
    assert np.array_equal(actions, before[1])
    assert not np.shares_memory(out, scenes)
    assert np.array_equal(dynamics.step(scenes, actions), out)
    for k in range(5):
        assert np.array_equal(dynamics.step(scenes[k : k + 1], actions[k : k + 1])[0], out[k])
    if dynamics.mode != "discrete":
        assert np.array_equal(dynamics.step(scenes, actions.astype(np.float64).tolist()), out)


def test_a_thousand_steps_keep_angles_in_a_closed_range():
    """Sums that land on a full turn round to float32's 2 pi at most."""
    dynamics = SceneDynamics.of("move_all", 1)
    row = lone(10, 10, 0.0)
    for sign in (-1e-9, 1e-9, 1, -1):
        for _ in range(250):
            row = dynamics.step(row, [[0, 0, sign]])
            assert 0 <= row[0, 0, ORIENTATION] <= WIDE


# --- errors ---------------------------------------------------------------------------------------------------------


def test_unknown_modes_and_turns():
    with pytest.raises(ValueError, match="action_mode is 'fly'; accepted are move_all, pick_place, discrete"):
        SceneDynamics.of("fly", 3)
    for bad in (-0.1, 3.2, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"max_turn is {bad}"):
            SceneDynamics.of("move_all", 3, bad)


@pytest.mark.parametrize(
    ("mode", "action", "message"),
    [
        ("move_all", np.zeros(11), r"shape \(11,\); move_all accepts \(12,\)"),
        ("move_all", np.zeros((4, 3)), r"shape \(4, 3\)"),
        ("move_all", 0.5, "move_all accepts"),
        ("move_all", [np.nan] + 11 * [0], "holds nan"),
        ("move_all", 11 * [0] + [-np.inf], "holds -inf"),
        ("pick_place", np.zeros(4), r"pick_place accepts \(5,\)"),
        ("pick_place", [0, 0, np.inf, 0, 0], "holds inf"),
        ("discrete", [0], r"discrete accepts \(2,\)"),
        ("discrete", [0.0, 1.0], "type float64"),
        ("discrete", [True, False], "type bool"),
        ("discrete", [4, 0], r"\[\[4, 0\]\]"),
        ("discrete", [0, 6], r"\[\[0, 6\]\]"),
        ("discrete", [-1, 0], r"\[\[-1, 0\]\]"),
    ],
)
def test_bad_actions_are_named_and_change_nothing(mode, action, message):
    scenes = some_scenes(1)
    before = scenes.copy()
    with pytest.raises(ActionError, match=message):
        SceneDynamics.of(mode, N_MAX).step(scenes, np.asarray(action)[None])
    assert np.array_equal(scenes, before)
    assert issubclass(ActionError, ValueError)


def test_choices_of_turns_do_not_exist_without_turning():
    with pytest.raises(ActionError, match=r"below \(4, 4\)"):
        SceneDynamics.of("discrete", N_MAX, 0).step(some_scenes(1), [[0, 4]])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [0, 1, 3])
def test_one_action_for_each_scene(mode, size):
    dynamics = SceneDynamics.of(mode, N_MAX)
    with pytest.raises(ActionError, match=f"{size} actions for scenes of shape"):
        dynamics.step(some_scenes(2), random_actions(dynamics, 3)[:size])
    with pytest.raises(ActionError, match=f"2 actions for scenes of shape .*{N_MAX - 1}"):
        dynamics.step(some_scenes(2)[:, 1:], random_actions(dynamics, 2))
