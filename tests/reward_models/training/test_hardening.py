from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import reward_models
from reward_models import models
from reward_models.auditing.optimisers import Ends, Path
from reward_models.hub.recipes import HARDENED, SHIPPED
from reward_models.judges.learned import LearnedModel
from reward_models.training.config import TrainingConfig
from reward_models.training.hardening import rounds
from reward_models.training.hardening.config import HardeningConfig
from reward_models.training.hardening.replay import draw_replay, label_ends
from reward_models.training.hardening.rounds import harden, read_rounds
from reward_models.training.protocol import read_log
from spatialsim_env.arrangements import goals, scene, similarities, variants
from spatialsim_env.arrangements.negatives import Displaced, Redrawn
from spatialsim_env.arrangements.scene import NOISE, POSITION
from spatialsim_env.arrangements.tasks import Discrimination
from spatialsim_env.core.judges import Pairs

THOROUGH = HARDENED["matching"].training.settings
START = TrainingConfig.plain(
    settings=THOROUGH, samples_per_stage=256, epochs_per_stage=1, validation_samples=64, negative="mixture"
)
SMALL = HardeningConfig(
    START,
    {"mixture": 0.5, "displaced": 0.1, "lookalikes": 0.1, "rollouts": 0.1, "ends": 0.2},
    rounds=2, samples=256, episodes=4, sizes=1, starts=3, gradient_evaluations=8, search_evaluations=20, points=2,
)  # fmt: skip


class Killed(Exception):
    """Stands for a kill."""


def weights(folder) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def all_false(config, model, number):
    """In place of the optimisers: one claim that is false."""
    begun = Discrimination(5, negative=Displaced(5, 5), balanced=True, certified=True).sample(
        2, np.random.default_rng(number)
    )
    wrong = begun[begun.label == 0]
    path = Path([1], [1.0], [wrong.reference[0]])
    yield Ends(Pairs(wrong.reference, wrong.target), np.ones(1), np.ones(1, bool), np.ones(1, np.int64), [path])


@pytest.fixture
def never_clean(monkeypatch):
    monkeypatch.setattr(rounds, "_optimise", all_false)


def test_a_killed_hardening_goes_on_to_the_same_weights(tmp_path, never_clean):
    def stop(line):
        raise Killed

    harden(SMALL, tmp_path / "whole")
    with pytest.raises(Killed):
        harden(SMALL, tmp_path / "killed", say=stop)
    assert len(read_rounds(tmp_path / "killed")) == 1
    harden(SMALL, tmp_path / "killed")
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    logs = [replace(at, seconds=0) for at in read_rounds(tmp_path / "killed")]
    assert logs == [replace(at, seconds=0) for at in read_rounds(tmp_path / "whole")]
    assert [at.precision for at in logs] == [0.0, 0.0]
    assert len(read_log(tmp_path / "whole")) == START.n_epochs + SMALL.rounds


def test_its_own_optimisers_are_asked(tmp_path):
    found = [harden(replace(SMALL, rounds=1), tmp_path / name) for name in "ab"]
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    (log,) = read_rounds(tmp_path / "a")
    assert log.starts == 2 * 2 * SMALL.sizes * SMALL.starts  # two optimisers, two ways to change a scene
    pairs = Discrimination(5).sample(20, np.random.default_rng(0))
    stored = reward_models.load(tmp_path / "a")
    assert stored.task["hardening"] == replace(SMALL, rounds=1).to_json()
    assert np.array_equal(stored.score(pairs.reference, pairs.target) > 0, _says(found[0], pairs))


def _says(model, pairs) -> np.ndarray:
    with torch.inference_mode():
        return (model.score(torch.from_numpy(pairs.target), torch.from_numpy(pairs.reference)) > 0).numpy()


def test_the_first_round_without_a_false_claim_is_the_last(tmp_path, monkeypatch):
    def all_true(config, model, number):
        reference = scene.sample(np.full(3, 5), 5, np.random.default_rng(number))
        paths = [Path([1], [1.0], [one]) for one in reference]
        yield Ends(Pairs(reference, reference), np.ones(3), np.ones(3, bool), np.ones(3, np.int64), paths)

    monkeypatch.setattr(rounds, "_optimise", all_true)
    harden(SMALL, tmp_path)
    (log,) = read_rounds(tmp_path)
    assert (log.claims, log.false_claims, log.precision) == (3, 0, 1.0)


def test_without_ends_nothing_is_optimised_and_every_round_is_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "_optimise", None)
    harden(replace(SMALL, shares={"benchmark": 1.0}), tmp_path)
    assert [(at.claims, at.precision) for at in read_rounds(tmp_path)] == [(0, None)] * SMALL.rounds


def test_labels_of_ends_are_the_truths():
    rng = np.random.default_rng(0)
    ends, expected = [], []
    for n in (3, 8):
        goal = scene.sample([n], n, rng)
        wrong = Redrawn()(goal, rng.random((1, 2 * n), np.float32))
        near = goal.copy()
        near[0, 0, POSITION] += 2 * NOISE.position
        between = [wrong[0], near[0], goal[0], wrong[0]]
        path = Path([1] * 4, [0.0] * 4, between)
        ends.append(Ends(Pairs(wrong, goal), np.ones(1), np.ones(1, bool), np.ones(1, np.int64), [path]))
        expected += [bool(goals.achieved(one[None], goal)[0]) for one in (near[0], goal[0], wrong[0])]
    found = label_ends(ends, points=3)
    assert found.label.tolist() == expected == [1, 1, 0] * 2
    assert found.target.shape == found.reference.shape == (6, 8, 10)


def test_a_replay_holds_both_labels_equally_often():
    rng = np.random.default_rng(0)
    false = Discrimination(5).sample(40, rng)
    false = false[false.label == 0]
    config = replace(SMALL, samples=400)
    for found in ([], [false]):
        replay = draw_replay(config, 1, found)
        assert len(replay) == pytest.approx(400, abs=3)
        assert replay.label.mean() == pytest.approx(0.5, abs=0.01)
    kept = {pair.tobytes() for pair in false.reference}
    hits = [row for row, pair in enumerate(replay.reference[:, :5]) if pair.tobytes() in kept]
    assert len(hits) == 0.2 * 400 / 2
    assert not replay.label[hits].any()


def test_another_hardening_is_refused(tmp_path, never_clean):
    harden(replace(SMALL, rounds=1), tmp_path)
    with pytest.raises(ValueError, match=r"holds another hardening \(rounds: 1 there, 2 now\); give another folder"):
        harden(SMALL, tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shares": {}}, "shares is .*at least one beside ends"),
        ({"shares": {"ends": 1.0}}, "at least one beside ends"),
        ({"shares": {"other": 1.0}}, "accepted is a dict of benchmark, mixture"),
        ({"shares": {"mixture": 0.0}}, "positive numbers"),
        ({"rounds": 0}, "rounds is 0; accepted is an int from 1"),
        ({"sizes": 7}, "sizes is 7; accepted is an int from 1 to 6"),
        ({"search_evaluations": 1}, "search_evaluations is 1"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"displacements": (3.0, 2.0)}, "displaced has the range"),
        ({"training": TrainingConfig(n_objects=5)}, "training is .*discrimination with .3, 8. objects"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_values_that_are_not_accepted(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **changes)


def test_recipes_harden():
    for name, config in HARDENED.items():
        assert SHIPPED[f"{name}_hardened"].settings is config
        assert SHIPPED[f"{name}_hardened"].make is harden
        assert config.to_json()["training"]["model"] == name


def test_thorough_matching_is_invariant():
    model = models.create("matching", THOROUGH, seed=1).double()
    rng = np.random.default_rng(0)
    pairs = Discrimination((3, 8), negative="mixture", lookalikes=5).sample(64, rng)
    target, reference = pairs.target.astype(np.float64), pairs.reference.astype(np.float64)

    def score(a, b):
        with torch.inference_mode():
            return model.score(torch.from_numpy(a), torch.from_numpy(b)).numpy()

    moved = similarities.sample(64, rng).apply(target)
    order = rng.permutation(8)
    padded = scene.pad(target, 11)
    for other in (score(moved, reference), score(target[:, order], reference), score(padded, reference)):
        assert other == pytest.approx(score(target, reference), abs=1e-6)


@pytest.mark.parametrize(
    "settings", [THOROUGH, {"hypotheses": 2}, {"rematches": 2, "persistence": 0.5}, {"counts": True}]
)
@pytest.mark.parametrize("options", [{}, {"lookalikes": 7}, {"distractors": 3}, {"abstract": True}])
def test_thorough_matching_is_compiled_as_defined(settings, options):
    model = models.create("matching", settings, seed=2)
    pairs = Discrimination((1, 8), negative="redrawn", **options).sample(200, np.random.default_rng(0))
    with torch.inference_mode():
        defined = model.double().score(*(torch.from_numpy(x).double() for x in (pairs.target, pairs.reference)))
    assert LearnedModel(model).score(pairs.reference, pairs.target) == pytest.approx(
        defined.numpy(), rel=1e-6, abs=1e-6
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hypotheses": -1}, "hypotheses is -1; accepted is an int from 0"),
        ({"rematches": 0}, "rematches is 0; accepted is an int from 1"),
        ({"persistence": 0.0}, "persistence is 0.0; accepted is 0 < persistence <= 4"),
        ({"counts": 1}, "counts is 1; accepted is a bool"),
    ],
)
def test_settings_of_matching_that_are_not_accepted(settings, message):
    with pytest.raises(ValueError, match=message):
        models.configure("matching", settings)


def test_lookalikes_are_told_apart():
    """Copies of scenes in which all objects look alike leave nothing; the mean direction alone does not find them."""
    rng = np.random.default_rng(0)
    reference = variants.make_lookalikes(scene.sample(np.full(200, 6), 6, rng), 7).astype(np.float64)
    target = similarities.sample(200, rng).apply(reference)[:, rng.permutation(6)]
    left = []
    for settings in (THOROUGH, {}):
        model = models.create("matching", settings)
        model.judge = lambda residuals, disagreement, held: left.append(residuals) or torch.zeros(200, 2)
        model(torch.from_numpy(target), torch.from_numpy(reference))
    alone = [(residuals.amax((0, 1)) < 1).double().mean().item() for residuals in left]
    assert alone[0] > 0.95
    assert alone[1] < 0.5
