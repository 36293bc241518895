"""The audit of models of relations: what the rules say of the rules, of a careless judge, of a broken one."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from reward_models import models
from reward_models.auditing import audit as audits
from reward_models.auditing import optimisers
from reward_models.auditing.moves.relations import UNITS, PoseMoves, posed, posed_inputs
from reward_models.auditing.relations import RelationAudit, begin
from reward_models.auditing.report import markdown
from reward_models.judges.judge import of
from reward_models.judges.learned import LearnedModel
from reward_models.models.relations import inputs
from spatialsim_env.relations import scene
from spatialsim_env.relations.geometry import boxes
from spatialsim_env.relations.predicates import predicates
from spatialsim_env.relations.scene import CENTER, OBJECT, SUBJECT
from spatialsim_env.relations.vocabulary import INDEX
from spatialsim_env.relations.world import goals
from spatialsim_env.relations.world.dynamics import TOUCHING

QUICK = {"starts": 6, "gradient_evaluations": 20, "search_evaluations": 400, "predicates": ("near", "in front of")}


MOVES = PoseMoves()


def audit(model, **settings):
    return audits.audit(model, RelationAudit.name, **settings)


def judge_of(model):
    return of(model, RelationAudit())


class Loose:
    """The rules with a margin that is one unit too generous."""

    def score(self, achieved, desired):
        return goals.least(predicates.margins(*goals.state(achieved)), goals.required(desired)) + 1


class Yes:
    def score(self, achieved, desired):
        return np.ones(len(achieved))


def network():
    model = models.create("relational", seed=1)
    begun = begin("near", 64, np.random.default_rng(0))
    rows, eyes = begun.scenes.astype(np.float64), begun.observers.astype(np.float64)
    model.fit_scale(inputs.from_scenes(rows, eyes, begun.required.argmax(axis=1), model.needs))
    return model


def rows_of(found, optimiser="search"):
    return {row["predicate"]: row for row in found["rows"] if row["optimiser"] == optimiser}


def test_the_rules_are_precise_by_definition():
    found = audit("truth", **QUICK)
    assert found["failures"] == {}
    assert found["not_run"] == {"gradient": "not run: it is no network of this package"}
    for row in rows_of(found).values():
        assert row["claimed"] == row["achieved"] == row["reach"]
        assert row["precision"]["hits"] == row["precision"]["total"] > 0
        assert row["median_margin_of_claims"] > 0
    assert found["gallery"] == []
    assert rows_of(found)["all"]["starts"] == 12


def test_search_finds_what_a_careless_judge_accepts():
    """Every claim at the edge of the loose rule is false by the strict one, apart from jumps over the edge."""
    found = audit(Loose(), **QUICK)
    row = rows_of(found)["all"]
    assert row["precision"]["hits"] < row["precision"]["total"]
    assert found["gallery"]
    for claim in found["gallery"]:
        now, observer = np.array([claim["scene"]]), np.array([claim["observer"]])
        which = np.array([INDEX[claim["predicate"]]])
        assert predicates.margin_of(which, now, observer)[0] == pytest.approx(claim["margin"], abs=1e-3)
        assert -1 < claim["margin"] <= 0 < claim["score"]


def test_who_says_yes_to_everything_is_believed_at_once_and_never_right():
    row = rows_of(audit(Yes(), **QUICK))["all"]
    assert row["claimed"]["hits"] == row["evaluations"] == 12
    assert row["precision"]["hits"] == row["reach"]["hits"] == 0
    assert row["median_evaluations_to_claim"] == 1


def test_equal_audits_are_equal():
    assert audit(Loose(), **QUICK) == audit(Loose(), **QUICK)
    assert audit(Loose(), **QUICK, seed=1) != audit(Loose(), **QUICK)


class Broken:
    def __init__(self, answer):
        self.answer, self.calls = answer, 0

    def score(self, achieved, desired):
        self.calls += 1
        return self.answer(self.calls, achieved)


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        (lambda calls, scenes: np.full(len(scenes), np.nan), "finite"),
        (lambda calls, scenes: np.zeros((len(scenes), 2)), "shape"),
        (lambda calls, scenes: np.full(len(scenes), float(calls)), "repeat"),
        (lambda calls, scenes: np.full(len(scenes), float(len(scenes))), "batch size"),
        (lambda calls, scenes: np.arange(len(scenes)) * 1.0, "batch order"),
        (lambda calls, scenes: 1 / 0, "error"),
    ],
)
def test_answers_that_are_no_verdicts_get_no_number(answer, check, tmp_path):
    found = audit(Broken(answer), out=tmp_path, **QUICK)
    assert check in found["failures"]
    assert found["rows"] == []
    assert "Not audited" in (tmp_path / "report.md").read_text()


# --- the gradient --------------------------------------------------------------------------------------------------


def test_posed_scenes_are_turned_in_the_worlds_axes():
    begun = begin("on", 5, np.random.default_rng(0))
    poses = np.random.default_rng(1).normal(size=(5, 6))
    moved = posed(begun.scenes, poses)
    assert np.allclose(moved[:, SUBJECT, CENTER], poses[:, :3])
    expected = Rotation.from_rotvec(poses[:, 3:]).as_matrix() @ scene.rotation(begun.scenes[:, SUBJECT].astype(float))
    assert np.allclose(scene.rotation(moved[:, SUBJECT]), expected, atol=1e-6)
    assert np.array_equal(moved[:, OBJECT], begun.scenes[:, OBJECT])


def test_the_differentiable_inputs_are_those_of_scenes():
    begun = begin("on", 8, np.random.default_rng(0))
    poses = np.random.default_rng(1).normal(size=(8, 6))
    eyes = begun.observers.astype(np.float64)
    expected = inputs.from_scenes(
        posed(begun.scenes, poses), eyes, begun.required.argmax(axis=1), ("boxes3d",), dtype=torch.float64
    )
    found = posed_inputs(begun.scenes, begun.observers, torch.from_numpy(poses))
    for name in ("boxes3d", "up", "kinds"):
        assert torch.allclose(found[name], expected[name], atol=1e-6), name


def test_the_gradient_is_the_slope_of_the_score():
    """Central differences in float64 through the network itself."""
    judge = judge_of(network())
    begun = begin("near", 6, np.random.default_rng(2))
    poses = MOVES.vectors(begun) + np.random.default_rng(3).normal(scale=0.2, size=(6, 6))
    slopes = MOVES.slopes(judge, begun, poses * UNITS) * UNITS

    def score(at):
        given = posed_inputs(begun.scenes, begun.observers, torch.from_numpy(at))
        given["predicate"] = torch.from_numpy(begun.required.argmax(axis=1))
        return judge.model.module(given).detach().numpy()

    for k in range(6):
        step = np.zeros(6)
        step[k] = 1e-5
        expected = (score(poses + step) - score(poses - step)) / 2e-5
        assert slopes[:, k] == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_the_ascent_climbs():
    judge = judge_of(network())
    begun = begin("near", 12, np.random.default_rng(4))
    begins = judge.score(begun)
    few, more = (optimisers.gradient(judge, MOVES, begun, budget) for budget in (2, 60))
    assert (more.score >= few.score).all()
    climbed = begins <= 0
    assert (more.score[climbed] > begins[climbed]).mean() > 0.8
    assert (more.evaluations <= 60).all()


@pytest.mark.parametrize("optimiser", ["gradient", "search"])
def test_claims_are_scenes_that_the_environment_can_hold(optimiser):
    judge = judge_of(network())
    begun = begin("in", 8, np.random.default_rng(5))
    run = {
        "gradient": lambda: optimisers.gradient(judge, MOVES, begun, 40),
        "search": lambda: optimisers.search(judge, MOVES, begun, 200, np.random.default_rng(0)),
    }
    ends = run[optimiser]()
    scenes = ends.question.scenes
    assert scenes.dtype == np.float32
    scene.validate(scenes, begun.observers)
    assert (boxes.penetration(scenes.astype(np.float64))[ends.claimed] <= TOUCHING).all()
    corners = scene.corners(scenes[:, SUBJECT].astype(np.float64))
    assert (corners[..., 2] > -1e-5).all()
    assert np.array_equal(scenes[:, OBJECT], begun.scenes[:, OBJECT])
    assert judge.achieved(ends.question)[ends.claimed].all()


def test_search_on_the_rules_reaches_a_contact():
    """From across the room onto the object: the rule's slope leads there."""
    begun = begin("on", 4, np.random.default_rng(6))
    ends = optimisers.search(judge_of("truth"), MOVES, begun, 4_000, np.random.default_rng(1))
    assert (ends.question.distance < 0).sum() >= 3


# --- settings, files, command --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"predicates": ()}, "predicates is"),
        ({"predicates": ("on", "on")}, "different names"),
        ({"predicates": ("beside",)}, "beside"),
        ({"starts": 0}, "starts is 0"),
        ({"search_evaluations": 1}, "search_evaluations is 1"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        RelationAudit(**settings)


def test_what_cannot_be_audited_is_refused(tmp_path):
    for model in (3, Yes, object()):
        with pytest.raises(TypeError, match="score"):
            judge_of(model)
    with pytest.raises(ValueError, match="does not exist"):
        judge_of(tmp_path / "nothing")


def test_the_report_is_written_and_read_by_people(tmp_path):
    model = LearnedModel(network())
    found = audit(model, out=tmp_path, **QUICK)
    assert json.loads((tmp_path / "audit.json").read_text()) == found
    assert found["model"]["kind"] == "relational"
    assert found["model"]["n_weights"] == model.module.n_weights
    text = markdown(found)
    assert (tmp_path / "report.md").read_text() == text
    assert text.count("\n| ") == 1 + 1 + len(found["rows"])
    assert {row["optimiser"] for row in found["rows"]} == {"gradient", "search"}


def test_the_command_writes_a_report(tmp_path):
    import typer

    from reward_models.cli.relation_audit import audit as command

    app = typer.Typer()
    app.command()(command)
    arguments = ["truth", "--predicate", "near", "--starts", "3", "--search", "200", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "search, near: claimed" in result.output
    assert (tmp_path / "out" / "audit.json").exists()
