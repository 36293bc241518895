"""Goals and starts: certified, of the same objects, exact, uniform, the same alone and in a batch."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
import pytest

from spatialsim_env.arrangements import goals, negatives, scene
from spatialsim_env.arrangements.alignment import CRITERIA
from spatialsim_env.arrangements.episodes import SceneEpisodes, SceneMoment
from spatialsim_env.arrangements.goals import Criterion, criterion_of
from spatialsim_env.arrangements.negatives import Redrawn, by_name
from spatialsim_env.arrangements.scene import ARENA, COLOR, ORIENTATION, POSITION, SHAPE, SIZE
from spatialsim_env.arrangements.tasks import reference_scene
from spatialsim_env.arrangements.world import feature_bounds
from tests.spatialsim_env import chance

DISCRIMINATION = SceneEpisodes((3, 8), Redrawn(), Criterion())
IDENTIFICATION = SceneEpisodes((5, 5), Redrawn(), Criterion(), reference_seed=2)
both = pytest.mark.parametrize("episodes", [DISCRIMINATION, IDENTIFICATION], ids=["discrimination", "identification"])
STARTS = [
    (criterion, name)
    for criterion in CRITERIA
    for name, start in negatives.REGISTRY.items()
    if criterion in start.criteria
]


@dataclass
class Watched:
    """A start that remembers the references it was given; in a share of the cases it does nothing at all."""

    idle: float = 0.0
    references: list[np.ndarray] = field(default_factory=list)
    name = "watched"
    criteria = CRITERIA
    turns = False

    def n_uniform(self, n_max: int) -> int:
        return 1 + 2 * n_max

    def __call__(self, scenes, numbers):
        self.references.append(scenes.copy())
        redrawn = Redrawn()(scenes, numbers[:, 1:])
        return np.where((numbers[:, 0] < self.idle)[:, None, None], scenes, redrawn)


def blocks(episodes: SceneEpisodes, size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((size, episodes.n_uniform), np.float32)


def distances(batch: SceneMoment, criterion: Criterion = Criterion()) -> np.ndarray:  # noqa: B008
    return goals.distance(
        batch.achieved,
        batch.desired,
        criterion.name,
        tolerances=criterion.tolerances,
        orientation=criterion.orientation,
    )


# --- starts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("criterion", "start"), STARTS)
@pytest.mark.parametrize("reference_seed", [None, 0])
def test_no_start_is_achieved(criterion, start, reference_seed):
    rule = criterion_of(criterion)
    episodes = SceneEpisodes((4, 4), by_name(start), rule, reference_seed)
    batch = episodes.begin(blocks(episodes, 300))
    assert batch.distance.min() > 1
    assert np.array_equal(batch.distance, distances(batch, rule))  # which also raises unless the objects are the same


def test_three_mirrored_objects_whose_positions_alone_count():
    """A sixth of all triangles lie near their mirror image: those goals are drawn again, not refused."""
    rule = criterion_of("positions")
    episodes = SceneEpisodes((3, 3), by_name("mirrored"), rule)
    batch = episodes.begin(blocks(episodes, 1000))
    assert batch.distance.min() > 1


def test_achieved_starts_are_replaced():
    """A start that does nothing in a tenth of the cases is replaced by a later one of the block."""
    start = Watched(idle=0.1)
    episodes = SceneEpisodes((3, 5), start, Criterion())
    batch = episodes.begin(blocks(episodes, 500))
    assert batch.distance.min() > 1
    again = [len(references) for references in start.references]
    assert again[0] == 500
    assert abs(again[1] / 500 - 0.1) < chance.of_rate(0.1, 500)
    assert again == sorted(again, reverse=True)


def test_blocks_without_a_start_that_will_do():
    for episodes in (
        SceneEpisodes((3, 3), Watched(idle=1.0), Criterion()),
        SceneEpisodes((1, 1), Redrawn(), Criterion()),
    ):
        with pytest.raises(RuntimeError, match="is achieved already; choose another start"):
            episodes.begin(blocks(episodes, 3))


@both
def test_the_arena(episodes):
    """Objects first, then padding; in the arena; a redrawn start keeps sizes, colours and angles of the reference."""
    start = Watched()
    episodes = SceneEpisodes(episodes.object_range, start, episodes.criterion, episodes.reference_seed)
    batch = episodes.begin(blocks(episodes, 2000))
    here = scene.present(batch.achieved)
    assert (here[:, :-1] >= here[:, 1:]).all()
    assert (batch.achieved.dtype, batch.desired.dtype) == (np.float32, np.float32)
    scene.validate(batch.achieved)
    scene.validate(batch.desired)
    assert batch.achieved[..., POSITION].min() >= 0
    assert batch.achieved[..., POSITION].max() <= ARENA
    assert batch.achieved[..., ORIENTATION].min() >= 0
    assert batch.achieved[..., ORIENTATION].max() <= np.float32(2 * np.pi)
    size = batch.achieved[here][:, [SIZE]].astype(np.float64)
    assert chance.uniform_fits((batch.achieved[here][:, POSITION] - size) / (20 - 2 * size), 0, 1)
    assert len(start.references) == 1  # no start of this seed was replaced
    for column in (SHAPE, SIZE, COLOR, ORIENTATION):
        assert np.array_equal(batch.achieved[..., column], start.references[0][..., column])


@pytest.mark.parametrize("start", ["displaced", "twisted", "mis_scaled"])
def test_starts_that_would_leave_the_arena_are_held(start):
    episodes = SceneEpisodes((3, 8), by_name(start), Criterion())
    positions = episodes.begin(blocks(episodes, 500)).achieved[..., POSITION]
    assert positions.min() >= 0
    assert positions.max() == ARENA


# --- goals ----------------------------------------------------------------------------------------------------------


def test_goals_are_exact_similarities_of_the_reference():
    """No noise: vectors between objects are multiplied by one number s e^(i theta), sizes by s; angles follow."""
    start = Watched()
    episodes = SceneEpisodes((5, 5), start, Criterion())
    batch = episodes.begin(blocks(episodes, 2000))
    reference = start.references[0].astype(np.float64)
    matched = np.take_along_axis(batch.desired, batch.matching[..., None], axis=1).astype(np.float64)
    assert len(start.references) == 1  # no start of this seed was replaced
    fine = ~batch.interchangeable
    assert fine.mean() > 0.95
    reference, matched = reference[fine], matched[fine]
    before, after = (x[..., POSITION] @ np.array([1, 1j]) for x in (reference, matched))
    before -= before.mean(axis=1, keepdims=True)
    shift = after.mean(axis=1) - (reference[..., POSITION] @ np.array([1, 1j])).mean(axis=1)
    after -= after.mean(axis=1, keepdims=True)
    z = (before.conj() * after).sum(axis=1) / (np.abs(before) ** 2).sum(axis=1)
    assert np.allclose(after, z[:, None] * before, atol=1e-4)
    assert np.allclose(matched[..., SIZE], np.abs(z)[:, None] * reference[..., SIZE], atol=1e-4)
    turn = matched[..., ORIENTATION] - reference[..., ORIENTATION]
    assert np.allclose(turn, turn[:, :1], atol=1e-5)
    assert np.allclose(np.exp(1j * turn), (z / np.abs(z))[:, None], atol=1e-4)
    for column in (SHAPE, COLOR):
        assert np.array_equal(matched[..., column], reference[..., column])
    assert chance.uniform_fits(np.abs(z), 0.5, 2)
    assert chance.uniform_fits(turn[:, 0], 0, 2 * np.pi)
    for part in (shift.real, shift.imag):
        assert chance.uniform_fits(part, -20, 20)


def test_goals_lie_within_the_bounds_of_the_observation():
    low, high = feature_bounds()
    assert (low[SIZE], high[SIZE]) == (0, 5)
    assert (low[ORIENTATION], high[ORIENTATION]) == (-1, 14)
    assert low[POSITION].tolist() == [-100, -100]
    assert high[POSITION].tolist() == [120, 120]
    batch = DISCRIMINATION.begin(blocks(DISCRIMINATION, 3000))
    for scenes in (batch.achieved, batch.desired):
        assert (scenes >= low).all()
        assert (scenes <= high).all()
    assert batch.desired[..., ORIENTATION].max() > 2 * np.pi  # goals are not wrapped


@pytest.mark.parametrize("value", [0.0, 1 - 2.0**-24])
@pytest.mark.parametrize("episodes", [DISCRIMINATION, SceneEpisodes((30, 30), Redrawn(), Criterion())])
def test_extreme_numbers_stay_within_the_bounds(episodes, value):
    """Every third number at an end of its range."""
    low, high = feature_bounds()
    block = blocks(episodes, 1)
    for k in range(0, episodes.n_uniform, 3):
        block[0, k] = value
    batch = episodes.begin(block)
    for scenes in (batch.achieved, batch.desired):
        assert (scenes >= low).all()
        assert (scenes <= high).all()


def test_numbers_of_objects_are_uniform():
    batch = DISCRIMINATION.begin(blocks(DISCRIMINATION, 6000))
    assert np.array_equal(scene.count(batch.achieved), scene.count(batch.desired))
    rates = np.bincount(scene.count(batch.achieved), minlength=9)[3:] / 6000
    assert np.abs(rates - 1 / 6).max() < chance.of_rate(1 / 6, 6000)


def test_orders_of_the_goal_are_uniform():
    episodes = SceneEpisodes((3, 3), Redrawn(), Criterion())
    batch = episodes.begin(blocks(episodes, 6000))
    rates = np.unique(batch.matching, axis=0, return_counts=True)[1] / 6000
    assert len(rates) == 6
    assert np.abs(rates - 1 / 6).max() < chance.of_rate(1 / 6, 6000)


def test_identification_has_one_goal_per_seed():
    batch = IDENTIFICATION.begin(blocks(IDENTIFICATION, 20))
    assert (batch.desired == batch.desired[0]).all()
    assert goals.distance(reference_scene(5, 2), batch.desired[0]) < 1e-4
    twin = SceneEpisodes((5, 5), by_name("poses"), Criterion(), reference_seed=2)
    assert np.array_equal(twin.begin(blocks(twin, 1)).desired[0], batch.desired[0])
    other = SceneEpisodes((5, 5), Redrawn(), Criterion(), reference_seed=3)
    assert not np.array_equal(other.begin(blocks(other, 1)).desired[0], batch.desired[0])
    batch.desired[0] = 0  # what an episode does to its goal is its own affair
    assert scene.count(IDENTIFICATION.begin(blocks(IDENTIFICATION, 1)).desired[0]) == 5


# --- batches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", negatives.NAMES)
@both
def test_one_and_many_agree_bit_for_bit(episodes, start):
    episodes = SceneEpisodes(episodes.object_range, by_name(start), Criterion(), episodes.reference_seed)
    numbers = blocks(episodes, 60)
    whole = episodes.begin(numbers)
    for k in range(60):
        alone = episodes.begin(numbers[k : k + 1])
        for part in fields(SceneMoment)[:-1]:  # the last is the criterion
            assert np.array_equal(getattr(alone, part.name)[0], getattr(whole, part.name)[k]), part.name


@both
def test_what_is_known_about_the_pair_is_the_truths(episodes):
    batch = episodes.begin(blocks(episodes, 200))
    truth = episodes.criterion.align(batch.achieved, batch.desired)
    for name in ("matching", "interchangeable", "distance"):
        assert np.array_equal(getattr(batch, name), getattr(truth, name))
    kept = episodes.criterion.align(batch.achieved, batch.desired, batch.matching)
    assert np.array_equal(kept.distance, batch.distance)


def test_every_number_of_a_first_try_matters():
    """A block begins with the goal's and the start's numbers; the rest waits for starts that are achieved."""
    episodes = SceneEpisodes((8, 8), Redrawn(), Criterion())
    numbers = blocks(episodes, 1)
    first = episodes.begin(numbers)
    used = 0
    for k in range(episodes.n_uniform):
        other = numbers.copy()
        other[0, k] = (other[0, k] + 0.5) % 1
        changed = episodes.begin(other)
        used += any(
            not np.array_equal(getattr(changed, part), getattr(first, part)) for part in ("achieved", "desired")
        )
    objects, order, similarity, start = 8 * scene.N_UNIFORM, 8, 4, 16
    # moved by a half, a key may keep its rank; every other number shows (that of n has one choice only)
    assert objects + similarity + start < used <= objects + order + similarity + start
