from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import reward_models
from reward_models.agents.configs import AgentConfig
from reward_models.auditing import report
from reward_models.auditing.setup import GRADIENT, SEARCH
from reward_models.cli.main import app
from spatialsim_env.arrangements import goals
from tests.reward_models.auditing.judges import CORNER, HOLE, Constant, Hole, NoGradient, Slope, largest

SMALL = {
    "n_objects": (3,),
    "moves": ("positions",),
    "starts": 12,
    "gradient_evaluations": 150,
    "search_evaluations": 1500,
    "fixed_samples": 200,
    "agent": False,
}
PARTS = ("rows", "fixed", "gallery", "heat_maps")


def audited(model, **changes):
    found = reward_models.audit(model, **{**SMALL, **changes})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    return found


def row_of(found, optimiser):
    (row,) = (row for row in found["rows"] if row["optimiser"] == optimiser)
    return row


def counts(share):
    return share["hits"], share["total"]


# --- the tests of the audit itself ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 5])
def test_the_truth_has_precision_1(n):
    found = audited("truth", n_objects=(n,), moves=("positions", "poses"), search_evaluations=3000)
    assert found["failures"] == {}
    assert found["not_run"] == {GRADIENT: "not run: it has no gradient"}
    assert found["gallery"] == []
    for row in found["rows"]:
        hits, total = counts(row["precision"])
        assert hits == total > 0
        assert row["reach"] == row["claimed"] == row["achieved"]
        assert row["median_distance_of_claims"] <= 1
    (fixed,) = found["fixed"]
    assert counts(fixed["accuracy"]) == (200, 200)


def test_a_constant_yes_has_precision_0():
    found = audited(Constant(1.0))
    for row in found["rows"]:
        assert counts(row["claimed"]) == (12, 12)
        assert counts(row["precision"]) == (0, 12)
        assert counts(row["reach"]) == (0, 12)
        assert row["median_evaluations_to_claim"] == 1
        assert row["median_distance"] > 1
    assert {row["optimiser"] for row in found["rows"]} == {GRADIENT, SEARCH}


def test_no_claim_at_all_is_undefined():
    for row in audited(Constant(-1.0), search_evaluations=60)["rows"]:
        assert counts(row["precision"]) == (0, 0)
        assert row["precision"]["interval"] == [0.0, 1.0]
        assert counts(row["reach"]) == counts(row["claimed"]) == (0, 12)
        assert row["median_evaluations_to_claim"] is None
        assert row["median_distance_of_claims"] is None
        assert row["calibration"]["ece"] == pytest.approx(1 / (1 + np.e), abs=1e-6)


def test_a_planted_false_maximum_is_caught():
    """By the search, and shown: the worst false claims are in the gallery, beside their goals."""
    found = audited(Hole())
    hits, total = counts(row_of(found, SEARCH)["precision"])
    assert hits / total < 0.5
    assert found["gallery"]
    distances = [claim["distance"] for claim in found["gallery"]]
    assert distances == sorted(distances, reverse=True)
    for claim in found["gallery"]:
        scene, goal = np.array(claim["achieved"]), np.array(claim["desired"])
        assert np.linalg.norm(largest(scene[None])[0] - CORNER) < HOLE + 1e-5
        assert goals.distance(scene, goal) == pytest.approx(claim["distance"], rel=1e-3)
        assert claim["distance"] > 1
        assert claim["score"] > 0


def test_a_slope_to_nowhere_is_caught_by_the_gradient():
    hits, total = counts(row_of(audited(Slope()), GRADIENT)["precision"])
    assert hits == 0
    assert total == 12


# --- what is reported -----------------------------------------------------------------------------------------------


def test_what_a_report_holds(untrained):
    budgets = {"gradient_evaluations": 30, "search_evaluations": 200}
    found = audited(untrained("mpgnn"), n_objects=(3, 4), moves=("positions", "poses"), **budgets)
    assert found["model"]["kind"] == "mpgnn"
    assert len(found["model"]["sha256"]) == 64
    assert len(found["rows"]) == 2 * 2 * 2
    assert [fixed["n_objects"] for fixed in found["fixed"]] == [3, 4]
    for row in found["rows"]:
        assert counts(row["claimed"])[1] == row["starts"] == 12
        assert counts(row["precision"])[1] == counts(row["claimed"])[0]
        assert counts(row["precision"])[0] == counts(row["reach"])[0]
        assert len(row["paths"]) == 12
        for path in row["paths"]:
            assert len(path["points"]) <= 40
            assert path["points"][0][0] == 1
            assert (path["points"][-1][1] > 0) == path["claimed"]
    for heat in found["heat_maps"]:
        assert np.array(heat["logits"]).shape == (40, 40)


def test_equal_seeds_give_equal_reports(mixed_folder):
    first, second, other = (audited(mixed_folder, seed=seed, starts=6) for seed in (5, 5, 6))
    assert first == second
    assert first["rows"] != other["rows"]


def test_no_global_state_is_changed(mixed_folder, two_threads):
    before = np.random.get_state()[1].copy(), random.getstate(), torch.random.get_rng_state()  # noqa: NPY002
    audited(mixed_folder, starts=3)
    assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert random.getstate() == before[1]
    assert torch.equal(torch.random.get_rng_state(), before[2])
    assert torch.get_num_threads() == two_threads
    assert torch.is_grad_enabled()


def test_a_model_of_one_input_is_audited_on_its_own_scene(untrained):
    folder = untrained("mpgnn_single")
    found = audited(folder, n_objects=(5,))
    assert found["failures"] == {}
    assert len(found["rows"]) == 2
    assert len({json.dumps(claim["desired"]) for claim in found["gallery"]}) <= 1
    with pytest.raises(ValueError, match=r"n_objects is 3; .* knows one scene of 5"):
        audited(folder)
    assert "one input" in audited(folder, n_objects=(5,), agent=True, starts=2)["not_run"]["agent"]


# --- answers that are no verdicts -----------------------------------------------------------------------------------


class LaterNaN(NoGradient):
    """Fit to be asked about the benchmark; not about an arrangement with two objects at one place."""

    def score(self, achieved, desired):
        scores = super().score(achieved, desired)
        at_the_wall = (achieved[..., 7] == 0).any(axis=1)
        return np.where(at_the_wall, np.nan, np.minimum(scores, -1))


@pytest.mark.parametrize("model", [Constant(np.nan), LaterNaN()], ids=["at once", "under way"])
def test_no_number_is_given_where_one_would_mean_nothing(model, tmp_path):
    found = audited(model, out=tmp_path / "audit")
    assert list(found["failures"]) == ["finite"]
    assert all(found[part] == [] for part in PARTS)
    text = (tmp_path / "audit" / report.MARKDOWN).read_text()
    assert "**Not audited" in text
    assert "finite: accepted are finite numbers" in text
    assert "precision" not in text.lower()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_objects": (1,)}, "n_objects is 1; accepted is an int from 2"),
        ({"n_objects": ()}, "a tuple of different numbers"),
        ({"n_objects": (3, 3)}, "a tuple of different numbers"),
        ({"moves": ("sizes",)}, "accepted is a tuple of positions, poses"),
        ({"starts": 0}, "starts is 0"),
        ({"search_evaluations": 1}, "search_evaluations is 1; accepted is an int from 2"),
        ({"seed": -1}, "seed is -1"),
        ({"criterion": "shape"}, "criterion is 'shape'"),
        ({"agent": 1}, "agent is 1; accepted is a bool"),
    ],
)
def test_settings_that_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        audited("truth", **settings)


def test_unknown_settings_are_refused():
    with pytest.raises(TypeError, match="tries"):
        audited("truth", tries=3)


# --- files and the command ------------------------------------------------------------------------------------------


def test_files(tmp_path):
    found = audited(Hole(), out=tmp_path)
    assert report.read(tmp_path) == report.read(tmp_path / report.JSON) == found
    text = (tmp_path / report.MARKDOWN).read_text()
    for name in ("gallery", "paths", "reliability", "heat_maps"):
        assert f"{report.PICTURES}/{name}.png" in text
        with Image.open(tmp_path / report.PICTURES / f"{name}.png") as picture:
            assert min(picture.size) > 300
    audited(Constant(-1.0), out=tmp_path, search_evaluations=40)
    assert not (tmp_path / report.PICTURES / "gallery.png").exists()
    assert "gallery" not in (tmp_path / report.MARKDOWN).read_text()


@pytest.mark.parametrize(("package", "out"), [("cmaes", None), ("cmaes", "there"), ("matplotlib", "there")])
def test_a_missing_package_is_named_before_the_work(package, out, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "find_spec", lambda name: None if name == package else name)
    with pytest.raises(ImportError, match=rf'needs {package}: pip install "spatialsim-env\[audit\]"'):
        audited("truth", out=out and tmp_path / out)
    assert not list(tmp_path.iterdir())


def test_what_is_no_report(tmp_path):
    (tmp_path / report.JSON).write_text("{}")
    with pytest.raises(ValueError, match="lacks format"):
        report.read(tmp_path)


ASKED = [
    "--n-objects",
    "3",
    "--moves",
    "positions",
    "--starts",
    "8",
    "--gradient",
    "50",
    "--search",
    "300",
    "--no-agent",
]


def test_the_command(untrained, tmp_path):
    folder = untrained("mpgnn")
    result = CliRunner().invoke(app, ["audit", str(folder), *ASKED, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    found = report.read(tmp_path / "out")
    assert found["settings"]["n_objects"] == [3]
    assert found["settings"]["search_evaluations"] == 300
    assert result.output.count("precision:") == 2
    assert "target at least 0.98" in result.output


def test_a_check_needs_a_card(untrained, tmp_path):
    result = CliRunner().invoke(app, ["audit", str(untrained("mpgnn")), *ASKED, "--check"])
    assert result.exit_code == 1
    assert "accepted is hub:NAME" in str(result.exception)


# --- the agent ------------------------------------------------------------------------------------------------------

TINY = AgentConfig(
    "tiny", env_kwargs={"n_objects": 3}, native=True, horizon=5, total_steps=60, learning_starts=40, n_envs=2,
    gradient_steps=1, batch_size=8, net=(8,), episodes=4,
)  # fmt: skip


def with_agent(model, **changes):
    settings = {"agent": True, "episodes": 6, "starts": 2, "search_evaluations": 4, "gradient_evaluations": 2}
    found = audited(model, agent_config=lambda n, seed: TINY if n == 3 else None, **{**settings, **changes})
    return found, row_of(found, "agent")


def test_an_agent_on_a_constant_yes_has_precision_0():
    _, row = with_agent(Constant(1.0))
    assert counts(row["claimed"]) == (6, 6)
    assert counts(row["precision"]) == (0, 6)
    assert row["median_evaluations_to_claim"] == 1
    assert row["training"]["steps"] == 60
    assert row["training"]["success"]["total"] == TINY.episodes


def test_an_agent_that_gets_no_yes():
    _, row = with_agent(Constant(-1.0))
    assert counts(row["claimed"]) == (0, 6)
    assert row["evaluations"] == 6 * (TINY.horizon + 1)
    assert row["budget"] == TINY.horizon + 1


def test_an_agent_claims_what_the_truth_does(tmp_path):
    found, row = with_agent("truth", out=tmp_path)
    assert counts(row["precision"])[0] == counts(row["precision"])[1]
    again, same = with_agent("truth", out=tmp_path)
    assert same == row
    assert (tmp_path / "agent" / "tiny" / "truth" / "agent.json").exists()
    assert found == again


def test_sizes_without_an_agent_are_named():
    found, _ = with_agent("truth", n_objects=(3, 6))
    assert found["not_run"]["agent, 6 objects"] == "not run: no configuration of an agent has so many objects"
