"""The truth as a reward, the protocol, and how a name becomes a reward."""

from __future__ import annotations

import numpy as np
import pytest

from spatialsim_env import testing
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.goals import Criterion, criterion_of
from spatialsim_env.arrangements.scene import SHAPE
from spatialsim_env.arrangements.tasks import Discrimination
from spatialsim_env.arrangements.truth import SceneMoment, SceneTruth
from spatialsim_env.arrangements.world import world
from spatialsim_env.core import rewards
from spatialsim_env.core.rewards import TRUTHS, Dense, Sparse, resolve

PAIRS = Discrimination((1, 8), negative="mixture").sample(300, np.random.default_rng(0))
WORLD = world()
CRITERIA = [Criterion(), criterion_of("positions"), criterion_of(tolerances=(2, 1, 0.5), orientation="visual")]


def at(distance) -> SceneMoment:
    """A moment that holds distances (B,)."""
    nothing = np.zeros((len(distance), 3, 10), np.float32)
    alike = np.zeros(len(distance), bool)
    return SceneMoment(nothing, nothing, np.zeros((len(distance), 3), np.int64), alike, distance, Criterion())


def test_values_by_distance():
    now = at(np.array([0, 0.5, 1, np.nextafter(1, 2), 7, 20, 20.1, np.inf]))
    assert Sparse(SceneTruth()).of(now).tolist() == [0, 0, 0, -1, -1, -1, -1, -1]
    assert np.allclose(Dense(SceneTruth()).of(now), [0, -0.5, -1, -1, -7, -20, -20, -20])


@pytest.mark.parametrize("name", TRUTHS)
def test_the_threshold_says_what_the_truth_says(name):
    reward = TRUTHS[name](SceneTruth())
    distance = np.array([0, 1, np.nextafter(1, 2), 1.1, np.inf])
    assert (reward.of(at(distance)) >= reward.success_threshold).tolist() == [True, True, False, False, False]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_rewards_are_functions_of_the_distance(criterion):
    distance = goals.distance(
        PAIRS.reference,
        PAIRS.target,
        criterion.name,
        tolerances=criterion.tolerances,
        orientation=criterion.orientation,
    )
    assert 0 < (distance <= 1).mean() < 1
    sparse, dense = (TRUTHS[name](SceneTruth(criterion))(PAIRS.reference, PAIRS.target) for name in ("sparse", "dense"))
    assert np.array_equal(sparse, np.where(distance <= 1, 0, -1))
    assert np.array_equal(dense, -np.minimum(distance, 20))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", TRUTHS)
def test_contract(name, criterion):
    testing.assert_reward(TRUTHS[name](SceneTruth(criterion)))


def test_different_objects_are_not_achieved():
    """compute_reward has no right to raise on them."""
    achieved, desired = PAIRS.reference[:4].copy(), PAIRS.reference[:4].copy()
    desired[1, 0, SHAPE] = np.roll(desired[1, 0, SHAPE], 1)
    desired[2, 0] = 0
    achieved[3] = desired[3] = 0  # no objects at all
    assert Sparse(SceneTruth())(achieved, desired).tolist() == [0, -1, -1, -1]
    assert Dense(SceneTruth())(achieved, desired).tolist() == [pytest.approx(0, abs=1e-6), -20, -20, -20]


def test_truths_by_name():
    assert set(TRUTHS) == {"sparse", "dense"}
    for name in TRUTHS:
        assert resolve(name, WORLD) == TRUTHS[name](SceneTruth()) == TRUTHS[name](SceneTruth(Criterion()))
        assert resolve(name, world(criterion="positions")) == TRUTHS[name](SceneTruth(CRITERIA[1]))
        assert resolve(name, WORLD).name == name
    with pytest.raises(ValueError, match="'tight' is unknown; accepted are sparse, dense"):
        resolve("tight", WORLD)


def test_live_objects_have_another_way_in():
    for other in (Sparse(SceneTruth()), None, 3):
        with pytest.raises(TypeError, match=f"reward is a {type(other).__name__}; accepted are names"):
            resolve(other, WORLD)


class Entry:
    """An installed resolver."""

    def __init__(self, resolver):
        self.resolver = resolver

    def load(self):
        if isinstance(self.resolver, Exception):
            raise self.resolver
        return self.resolver


def install(monkeypatch, *resolvers) -> None:
    def entry_points(group: str):
        assert group == "spatialsim_env.rewards"
        return [Entry(resolver) for resolver in resolvers]

    monkeypatch.setattr(rewards, "entry_points", entry_points)


def test_other_names_go_to_the_installed_resolvers(monkeypatch):
    mine = Dense(SceneTruth())
    install(monkeypatch, lambda name: None, lambda name: mine if name == "hub:mine" else None)
    assert resolve("hub:mine", WORLD) is mine
    with pytest.raises(ValueError, match="reward 'hub:other' is unknown; accepted are sparse, dense, or a path"):
        resolve("hub:other", WORLD)


def test_resolvers_are_loaded_only_when_needed(monkeypatch):
    install(monkeypatch, ImportError("no module named torch"))
    assert resolve("sparse", WORLD) == Sparse(SceneTruth())
    with pytest.raises(ImportError, match=r"reward 'hub:mine' needs the networks: pip install .*torch"):
        resolve("hub:mine", WORLD)


def test_nothing_installed(monkeypatch):
    install(monkeypatch)
    with pytest.raises(ValueError, match="reward 'runs/mine' is unknown"):
        resolve("runs/mine", WORLD)
