from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from reward_models.auditing import optimisers
from reward_models.auditing.arrangements import begin
from reward_models.auditing.moves.arrangements import MOVES
from reward_models.auditing.optimisers import Progress
from reward_models.judges.learned import LearnedReward, load
from spatialsim_env.arrangements import goals
from spatialsim_env.arrangements.goals import Criterion
from spatialsim_env.arrangements.scene import ARENA, ORIENTATION, POSITION
from spatialsim_env.core.judges import Pairs
from tests.reward_models.auditing.judges import CORNER, HOLE, Constant, Hole, NoGradient, Slope, judge_of, largest

STARTS = 12


def starts(model, n=3, moves="positions", size=STARTS, seed=0):
    return begin(judge_of(model), n, size, np.random.default_rng(seed), moves, Criterion())


def searched(model, n=3, moves="positions", budget=1500, size=STARTS, paths=0):
    begun = starts(model, n, moves, size)
    return optimisers.search(judge_of(model), MOVES[moves], begun, budget, np.random.default_rng(1), paths)


def climbed(model, n=3, moves="positions", budget=200, size=STARTS, paths=0):
    return optimisers.gradient(judge_of(model), MOVES[moves], starts(model, n, moves, size), budget, paths)


def truly(ends):
    return goals.achieved(ends.question.achieved, ends.question.desired)


# --- where they begin -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize("criterion", ["similarity", "positions"])
def test_no_start_is_achieved(moves, criterion):
    begun = begin(judge_of("truth"), 3, 200, np.random.default_rng(0), moves, Criterion(criterion))
    assert not goals.achieved(begun.achieved, begun.desired, criterion).any()


@pytest.mark.parametrize("moves", MOVES)
def test_a_vector_is_what_may_change(moves):
    begun, rng = starts("truth", 4, moves), np.random.default_rng(0)
    of = MOVES[moves]
    there = of.vectors(begun)
    assert there.shape == (STARTS, 12 if moves == "poses" else 8)
    assert of.placed(begun, there).achieved == pytest.approx(begun.achieved, abs=1e-5)
    other = of.placed(begun, there + rng.normal(0, 30, there.shape)).achieved
    same = np.delete(np.arange(10), [7, 8, 9] if moves == "poses" else [7, 8])
    assert np.array_equal(other[..., same], begun.achieved[..., same])
    assert (other[..., POSITION] >= 0).all()
    assert (other[..., POSITION] <= ARENA).all()
    assert np.array_equal((other != begun.achieved)[..., ORIENTATION].any(), moves == "poses")
    assert other.dtype == np.float32


# --- judges of known worth ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moves", MOVES)
def test_claims_of_the_truth_are_true(moves):
    ends = searched("truth", moves=moves)
    assert ends.claimed.mean() >= 0.75
    assert np.array_equal(truly(ends), ends.claimed)


@pytest.mark.parametrize("optimise", [searched, climbed])
def test_who_always_says_yes_is_taken_at_the_first_word(optimise):
    ends = optimise(Constant(1.0))
    assert ends.claimed.all()
    assert not truly(ends).any()
    assert (ends.evaluations == 1).all()
    assert np.array_equal(ends.question.achieved, starts(Constant(1.0)).achieved)


@pytest.mark.parametrize(("optimise", "budget"), [(searched, 101), (climbed, 40)])
def test_who_never_says_yes_takes_the_whole_budget(optimise, budget):
    ends = optimise(Constant(-1.0), budget=budget)
    assert not ends.claimed.any()
    assert (ends.evaluations == budget).all()


def test_the_search_finds_a_planted_hole():
    ends = searched(Hole())
    false = ends.claimed & ~truly(ends)
    assert ends.claimed.all()
    assert false.mean() >= 0.5
    assert (np.linalg.norm(largest(ends.question.achieved[false])[0] - CORNER, axis=1) < HOLE).all()


def test_the_ascent_walks_into_a_hole():
    ends = climbed(Slope())
    assert ends.claimed.all()
    assert (np.linalg.norm(largest(ends.question.achieved)[0] - CORNER, axis=1) < HOLE).all()
    assert not truly(ends).any()


def test_the_ascent_keeps_everything_else_in_place():
    """The gradient of one object's position moves that object alone."""
    begun, ends = starts(Slope(), 5), climbed(Slope(), 5)
    moved = (begun.achieved != ends.question.achieved).any(axis=-1)
    row = largest(begun.achieved)[1]
    others = moved.copy()
    others[np.arange(STARTS), row] = False
    assert not others.any()


@pytest.mark.parametrize("n", [3, 5])
@pytest.mark.parametrize("moves", MOVES)
def test_a_network_that_matches_is_rarely_wrong(n, moves, mixed_folder):
    for optimise in (searched, climbed):
        ends = optimise(mixed_folder, n, moves, size=32)
        assert ends.claimed.mean() >= 0.5
        assert truly(ends)[ends.claimed].mean() >= 0.9


# --- how they stop --------------------------------------------------------------------------------------------------


def test_the_first_claim_among_candidates_is_the_end():
    begun = starts(NoGradient(), 4, size=2)
    progress = Progress(judge_of(NoGradient()), MOVES["positions"], begun, 2)
    assert progress.evaluations.tolist() == [1, 1]
    candidates = np.repeat(begun.achieved[:, None], 5, axis=1)
    candidates[0, 3], candidates[0, 4] = begun.desired[0], begun.desired[0]
    desired = np.repeat(begun.desired, 5, axis=0)
    progress.judge_candidates(np.arange(2), Pairs(candidates.reshape(10, 4, 10), desired))
    assert progress.open.tolist() == [1]
    assert progress.evaluations.tolist() == [5, 6]
    ends = progress.ends()
    assert np.array_equal(ends.question.achieved[0], begun.desired[0])
    assert ends.claimed.tolist() == [True, False]


@pytest.mark.parametrize("optimise", [searched, climbed])
def test_a_path_claims_at_its_end_alone(optimise):
    ends = optimise(Slope(), paths=5)
    assert len(ends.paths) == 5
    for row, path in enumerate(ends.paths):
        assert all(score <= 0 for score in path.scores[:-1])
        assert path.scores[-1] == ends.score[row] > 0
        assert np.array_equal(path.achieved[-1], ends.question.achieved[row])
        assert path.evaluations[-1] == ends.evaluations[row]
        assert path.evaluations == sorted(path.evaluations)


def test_a_budget_is_what_the_model_is_asked():
    class Counting(Constant):
        asked = 0

        def score(self, achieved, desired):
            self.asked += len(achieved)
            return super().score(achieved, desired)

    model = Counting(-1.0)
    ends = searched(model, budget=77)
    assert model.asked == ends.evaluations.sum() == 77 * STARTS


def test_a_search_begins_again_elsewhere():
    class Watched(Constant):
        seen: list = []  # noqa: RUF012

        def score(self, achieved, desired):
            self.seen.append(achieved[0, :, POSITION].copy())
            return super().score(achieved, desired)

    model = Watched(-1.0)
    searched(model, budget=400, size=1)
    jumps = [np.abs(second - first).max() for first, second in zip(model.seen[:-1], model.seen[1:], strict=True)]
    assert max(jumps) > 2


@pytest.mark.parametrize("optimise", [searched, climbed])
def test_a_claim_is_a_reward_of_the_environment(optimise, mixed_folder):
    ends = optimise(mixed_folder, 3, "poses")
    env = gym.make("spatialsim_env:SpatialSim-Discrim-v0", n_objects=3).unwrapped
    env.set_reward(LearnedReward(load(mixed_folder)))
    assert np.array_equal(env.compute_reward(ends.question.achieved, ends.question.desired) == 0, ends.claimed)


def test_equal_seeds_give_equal_ends(mixed_folder):
    first, second = (searched(mixed_folder, 3, "poses", 300) for _ in range(2))
    assert np.array_equal(first.question.achieved, second.question.achieved)
    assert np.array_equal(first.evaluations, second.evaluations)
