"""The 30 rules: hand-made scenes, invariances, facts that follow from one another, continuity, errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialsim_env.relations import scene, testing
from spatialsim_env.relations.geometry import boxes
from spatialsim_env.relations.predicates import predicates, rules
from spatialsim_env.relations.predicates.predicates import REGISTRY
from spatialsim_env.relations.vocabulary import DIRECTIONAL, INDEX, NONE, OBSERVER, OWN, PREDICATES
from tests.spatialsim_env.relations.predicates.cases import CASES, Y_OBSERVER, thing
from tests.spatialsim_env.relations.scenes import random_scenes

checked = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 2**32 - 1)

SCALE_FREE = [
    "over", "under", "near", "far from", "aligned to", "faces towards", "faces away", "points towards", "points away",
    *DIRECTIONAL,
]  # fmt: skip
MIRROR = {  # what a predicate is called in a mirror, where its name changes
    f"to the {a} of{frame}": f"to the {b} of{frame}"
    for a, b in (("left", "right"), ("right", "left"))
    for frame in ("", " (wrt you)")
}
DISJOINT = [
    ("near", "far from"), ("under", "over"), ("under", "on"), ("below", "on"), ("in", "outside"), ("inside", "outside"),
    ("in front of", "behind"), ("to the left of", "to the right of"), ("to the left of", "in front of"),
    ("in front of (wrt you)", "behind (wrt you)"), ("to the left of (wrt you)", "to the right of (wrt you)"),
    ("to the right of (wrt you)", "behind (wrt you)"), ("faces towards", "faces away"),
    ("points towards", "points away"), ("touching", "far from"),
]  # fmt: skip
IMPLIED = [
    ("on top of", "on"), ("covering", "over"), ("in", "touching"), ("leaning against", "touching"),
    ("touching", "near"), ("to the left of", "to the side of"), ("to the right of", "to the side of"),
    ("to the left of (wrt you)", "to the side of (wrt you)"), ("to the right of (wrt you)", "to the side of (wrt you)"),
]  # fmt: skip


def clear_of_boundaries(scenes: np.ndarray) -> np.ndarray:
    """Scenes without the singular places of a rule: coinciding centres."""
    offset = scenes[:, 0, scene.CENTER] - scenes[:, 1, scene.CENTER]
    return np.linalg.norm(offset, axis=-1) > 0.1


# --- the contract of the registry -----------------------------------------------------------------------------------


def test_every_predicate_is_registered_in_the_order_of_the_vocabulary():
    assert tuple(REGISTRY) == PREDICATES == tuple(predicate.name for predicate in REGISTRY.values())
    assert sorted(CASES) == sorted(PREDICATES)


@pytest.mark.parametrize("name", PREDICATES)
def test_hand_made_scenes(name):
    """At least six of each predicate, clear ones and close ones, on both sides."""
    cases = CASES[name]
    assert len(cases) >= 6
    signs = {float(case.margin) > 0 for case in cases}
    close = {case.margin > 0 for case in cases if not isinstance(case.margin, bool) and 0 < abs(case.margin) <= 0.25}
    assert signs == {True, False} == close
    for number, case in enumerate(cases):
        margin = REGISTRY[name].margin(case.scenes, case.observer[None])
        assert margin.shape == (1,)
        if isinstance(case.margin, bool):
            assert (margin[0] > 0) == case.margin, f"case {number}: {margin[0]}"
        else:
            assert margin[0] == pytest.approx(case.margin, abs=1e-9), f"case {number}"


@pytest.mark.parametrize("name", DIRECTIONAL)
def test_a_direction_has_both_frames(name):
    assert REGISTRY[name].frame == OWN
    assert REGISTRY[name + " (wrt you)"].frame == OBSERVER
    assert sum(predicate.frame == NONE for predicate in REGISTRY.values()) == 20


def test_every_pair_of_shapes_has_finite_margins():
    kinds = np.arange(len(scene.KINDS))
    first, second = (x.ravel() for x in np.meshgrid(kinds, kinds))
    for offset in ([0, 0, 0], [0.1, 0.05, 0], [0, 0, 0.2], [0, 0, 0.5], [1, 1, 1]):
        for yaw in (0, 30):
            subjects = scene.objects(
                np.broadcast_to(offset, (len(first), 3)), np.broadcast_to(scene.yaw_rotation(yaw), (len(first), 3, 3)),
                np.full((len(first), 3), 0.1), first,
            )  # fmt: skip
            things = scene.objects(
                np.zeros((len(first), 3)), np.broadcast_to(np.eye(3), (len(first), 3, 3)),
                np.full((len(first), 3), 0.1), second,
            )  # fmt: skip
            scenes = np.stack([subjects, things], axis=1)
            margins = predicates.margins(scenes, np.tile(Y_OBSERVER, (len(scenes), 1)))
            assert np.isfinite(margins).all()


def test_the_page_of_rules_names_every_predicate_and_every_threshold():
    page = (Path(__file__).parents[4] / "docs" / "rel3d_rules.md").read_text()
    rule_table = page.split("## The rule table")[1].split("## Frames")[0]
    thresholds = [name for name in vars(rules) if name.isupper() and isinstance(getattr(rules, name), float)]
    assert len(thresholds) >= 22
    for name in set(thresholds) - {"UNCLEAR_YAW", "NO_OPENING"}:  # no thresholds
        assert f"`{name}`" in rule_table, name
    for name in PREDICATES:
        word = name.removesuffix(" (wrt you)").replace("faces away", "faces towards").replace("points away", "points")
        assert word in rule_table, name


# --- invariances ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PREDICATES)
@checked
@given(seed=seeds)
def test_turning_and_moving_a_scene_on_the_floor_changes_nothing(name, seed):
    scenes, observers = random_scenes(50, seed)
    testing.assert_floor_invariant(REGISTRY[name].margin, scenes, observers, np.random.default_rng(seed))


@pytest.mark.parametrize("name", [name for name in PREDICATES if REGISTRY[name].frame != OBSERVER])
def test_predicates_that_do_not_name_the_observer_do_not_see_it(name):
    scenes, observers = random_scenes(50, 3)
    margin = REGISTRY[name].margin
    testing.assert_floor_invariant(margin, scenes, observers, np.random.default_rng(0), observed=False)
    assert np.array_equal(margin(scenes), margin(scenes, observers))


@pytest.mark.parametrize("name", [name for name in PREDICATES if REGISTRY[name].frame == OBSERVER])
def test_predicates_wrt_you_turn_with_the_observer(name):
    """Left is left of who looks: from the other side, right."""
    scenes, observers = random_scenes(200, 4)
    opposite = observers.copy()
    opposite[:, scene.EYE] *= (-1, -1, 1)
    opposite[:, scene.EYE_RIGHT] *= -1
    opposite[:, scene.EYE_UP] *= (-1, -1, 1)
    other = {"left": "right", "right": "left", "front": "behind", "behind": "front", "side": "side"}
    word = next(word for word in other if word in name)
    expected = next(n for n in PREDICATES if other[word] in n and REGISTRY[n].frame == OBSERVER)
    assert np.allclose(REGISTRY[name].margin(scenes, observers), REGISTRY[expected].margin(scenes, opposite))


@pytest.mark.parametrize("name", SCALE_FREE)
@checked
@given(seed=seeds)
def test_predicates_without_a_tolerance_in_metres_do_not_see_the_scale(name, seed):
    scenes, observers = random_scenes(50, seed)
    clear = clear_of_boundaries(scenes)
    rng = np.random.default_rng(seed)
    testing.assert_floor_invariant(REGISTRY[name].margin, scenes[clear], observers[clear], rng, scaled=True)


@pytest.mark.parametrize("name", PREDICATES)
@checked
@given(seed=seeds)
def test_left_is_right_in_a_mirror_and_the_rest_stays(name, seed):
    scenes, observers = random_scenes(50, seed)
    image = REGISTRY[MIRROR.get(name, name)].margin
    testing.assert_mirrored(REGISTRY[name].margin, image, scenes, observers)


def test_the_assertions_refuse_what_is_not_invariant():
    scenes, observers = random_scenes(50, 0)
    rng = np.random.default_rng(0)
    with pytest.raises(AssertionError, match="a move on the floor"):
        testing.assert_floor_invariant(lambda s, o: s[:, 0, scene.CENTER][:, 0], scenes, observers, rng)
    left = REGISTRY["to the left of (wrt you)"].margin
    with pytest.raises(AssertionError, match="a move on the floor"):
        testing.assert_floor_invariant(left, scenes, observers, rng, observed=False)
    for name in set(PREDICATES) - set(SCALE_FREE):
        with pytest.raises(AssertionError, match="a move on the floor"):
            testing.assert_floor_invariant(REGISTRY[name].margin, scenes, observers, rng, scaled=True)
    with pytest.raises(AssertionError, match="a mirror"):
        testing.assert_mirrored(left, left, scenes, observers)


# --- what follows from what -----------------------------------------------------------------------------------------


def tried(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random scenes and all the hand-made ones, moved a little, and which predicates hold in them."""
    scenes, observers = random_scenes(300, seed)
    made = [case for cases in CASES.values() for case in cases]
    rng = np.random.default_rng(seed)
    hand = np.concatenate([case.scenes for case in made])
    hand[:, 0, scene.CENTER] += rng.normal(0, 0.01, (len(made), 3))
    scenes = np.concatenate([scenes, hand])
    observers = np.concatenate([observers, np.stack([case.observer for case in made])])
    return scenes, predicates.holds(scenes, observers)


@checked
@given(seed=seeds)
def test_no_scene_has_both_of_two_predicates_that_exclude_each_other(seed):
    _, truth = tried(seed)
    for first, second in DISJOINT:
        assert not (truth[:, INDEX[first]] & truth[:, INDEX[second]]).any(), (first, second)


@checked
@given(seed=seeds)
def test_what_a_predicate_implies(seed):
    scenes, truth = tried(seed)
    for first, second in IMPLIED:
        assert truth[truth[:, INDEX[first]], INDEX[second]].all(), (first, second)
    inside = truth[:, INDEX["inside"]]
    assert (boxes.share_within(scenes[inside]) >= rules.IN_SHARE).all()
    assert truth[inside & truth[:, INDEX["touching"]], INDEX["in"]].all()


# --- the margin as a function ---------------------------------------------------------------------------------------


@checked
@given(seed=seeds)
def test_margins_are_continuous(seed):
    """Along a short way between two poses, 1e-7 steps change no margin by more than a slope of 1e5 would."""
    scenes, observers = random_scenes(100, seed)
    step = np.random.default_rng(seed).normal(size=(len(scenes), 3)) * 1e-8
    moved = scenes.copy()
    moved[:, 0, scene.CENTER] += step
    change = np.abs(predicates.margins(moved, observers) - predicates.margins(scenes, observers))
    assert change.max() < 1e-3


def path(kind: str, other: str, turning: bool, steps: int) -> np.ndarray:
    """A subject on a straight way through the object's middle, or turning next to it through the horizontal."""
    way = np.linspace(0, 1, steps)
    start, fixed = thing([0, 0, 0], (0.05, 0.1, 0.2), kind), thing([0, 0, 0.3], (0.3, 0.2, 0.3), other)
    scenes = np.tile(np.stack([start, fixed]), (steps, 1, 1))
    if not turning:
        scenes[:, 0, scene.CENTER] = np.outer(way - 0.5, [1.4, 0.7, 0.6]) + np.array([0, 0, 0.3])
        return scenes
    turn = turns(np.array([0.6, 0.7, 0.4]) / np.linalg.norm([0.6, 0.7, 0.4]), np.radians(3 + 174 * way))
    half, kinds = np.tile(start[scene.HALF], (steps, 1)), np.full(steps, scene.KIND_NAMES.index(kind))
    scenes[:, 0] = scene.objects(np.tile([0.33, 0.1, 0.2], (steps, 1)), turn, half, kinds)
    return scenes


@pytest.mark.parametrize("turning", [False, True])
def test_margins_have_no_jumps_on_a_path(turning):
    """A tenth of the step makes the largest change of each margin smaller in proportion, or nearly."""
    for kind in ("block", "stick", "table", "container"):
        for other in ("block", "container", "table", "ring"):
            changes = []
            for steps in (501, 5001):
                scenes = path(kind, other, turning, steps)
                margins = predicates.margins(scenes, np.tile(Y_OBSERVER, (steps, 1)))
                changes.append(np.abs(np.diff(margins, axis=0)).max(axis=0))
            assert (changes[1] < 0.35 * changes[0] + 1e-6).all(), (kind, other)


def turns(axis: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Rotations (B, 3, 3) about a unit axis (Rodrigues' formula)."""
    x, y, z = axis
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    sine, cosine = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    return np.eye(3) + sine * k + (1 - cosine) * (k @ k)


def test_a_row_does_not_depend_on_the_batch_around_it():
    scenes, observers = random_scenes(257, 9)
    together = predicates.margins(scenes, observers)
    alone = np.concatenate([predicates.margins(scenes[i : i + 1], observers[i : i + 1]) for i in range(257)])
    assert np.array_equal(together, alone)


def test_float32_scenes_have_nearly_the_margins_of_float64_scenes():
    scenes, observers = random_scenes(300, 11)
    single = predicates.margins(scenes.astype(np.float32), observers.astype(np.float32))
    double = predicates.margins(scenes, observers)
    assert single.dtype == np.float64
    assert np.abs(single - double).max() < 1e-3


# --- the calls ------------------------------------------------------------------------------------------------------


def test_margins_of_names_and_of_each_scene_are_those_of_the_predicates():
    scenes, observers = random_scenes(90, 5)
    every = predicates.margins(scenes, observers)
    assert every.shape == (90, 30)
    assert np.array_equal(predicates.holds(scenes, observers), every > 0)
    some = ["near", "on", "behind (wrt you)"]
    columns = [INDEX[name] for name in some]
    assert np.array_equal(predicates.margins(scenes, observers, some), every[:, columns])
    which = np.arange(90) % 30
    assert np.array_equal(predicates.margin_of(which, scenes, observers), every[np.arange(90), which])


def test_no_scenes_have_no_margins():
    none, nobody = np.zeros((0, 2, scene.N_FEATURES)), np.zeros((0, scene.N_OBSERVER))
    assert predicates.margins(none, nobody).shape == (0, 30)
    assert predicates.margin_of(np.zeros(0, int), none, nobody).shape == (0,)


def test_bad_input_is_refused():
    scenes, observers = random_scenes(4, 0)
    with pytest.raises(scene.RoomError, match=r"accepted is \(B, 2, 19\)"):
        predicates.margins(scenes[0], observers)
    with pytest.raises(scene.RoomError, match="observers have shape"):
        predicates.margins(scenes, observers[:2])
    with pytest.raises(scene.RoomError, match="without observers"):
        REGISTRY["behind (wrt you)"].margin(scenes)
    with pytest.raises(ValueError, match="beside"):
        predicates.margins(scenes, observers, ["beside"])
    with pytest.raises(ValueError, match="accepted are 0 to 29"):
        predicates.margin_of(np.array([0, 1, 2, 30]), scenes, observers)
    with pytest.raises(ValueError, match="accepted are 4 whole numbers"):
        predicates.margin_of(np.array([0.0, 1, 2, 3]), scenes, observers)


def test_the_scenes_are_not_written_to():
    scenes, observers = random_scenes(20, 1)
    before = scenes.copy()
    scenes.flags.writeable = observers.flags.writeable = False
    predicates.margins(scenes, observers)
    assert np.array_equal(scenes, before)
