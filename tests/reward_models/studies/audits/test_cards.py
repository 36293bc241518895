"""The audit on a card: made by a build, verified, checked by ``spatialsim audit --check``, held against targets."""

from __future__ import annotations

import json
import shutil

import pytest
from PIL import Image
from typer.testing import CliRunner

from reward_models.agents.configs import AgentConfig
from reward_models.cli.main import app
from reward_models.hub import recipes, verify
from reward_models.hub.targets import card_targets
from reward_models.judges import shipped
from reward_models.studies.audits import cards
from reward_models.training.config import TrainingConfig
from spatialsim_env.arrangements.tasks import RANGES

SMALL = TrainingConfig.plain(samples_per_stage=2048, epochs_per_stage=1, validation_samples=64)
AGENT = AgentConfig(
    "tiny", env_kwargs={"n_objects": 3}, native=True, horizon=5, total_steps=60, learning_starts=40, n_envs=2,
    gradient_steps=1, batch_size=8, net=(8,), episodes=4,
)  # fmt: skip
AUDIT = {
    "n_objects": (3,), "moves": ("positions",), "starts": 12, "gradient_evaluations": 60, "search_evaluations": 60,
    "fixed_samples": 50, "episodes": 4, "agent_config": lambda n, seed: AGENT,
}  # fmt: skip
OPTIONS = ("--samples", 20, "--hard-samples", 0)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with a hub of one model whose card holds an audit, and what it was made of."""
    folder = tmp_path_factory.mktemp("hub")
    with pytest.MonkeyPatch.context() as patch:
        tiny(patch)
        run("hub", "build", "small", "--out", folder / "out", "--work", folder / "work", *OPTIONS,
            "--pictures", folder / "pictures")  # fmt: skip
    return folder


@pytest.fixture
def home(built, tmp_path, monkeypatch):
    """A copy of that hub in place of the package's."""
    tiny(monkeypatch)
    monkeypatch.setattr(shipped, "HOME", shutil.copytree(built / "out", tmp_path / "weights"))
    return tmp_path / "weights" / "small"


def tiny(patch: pytest.MonkeyPatch) -> None:
    recipe = recipes.Recipe("A trial.", SMALL, ("It has learned little.",))
    patch.setitem(recipes.SHIPPED, "small", recipe)
    patch.setattr(cards, "TIMED_BATCHES", (1,))
    patch.setattr(cards, "AUDIT", AUDIT)


def run(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == exit_code, result.output + str(result.exception)
    return result.output


def change(home, edit) -> None:
    card = json.loads((home / shipped.CARD).read_text())
    edit(card)
    (home / shipped.CARD).write_text(json.dumps(card))
    shipped.write_checksums(home)


def turn_round(card) -> None:
    """The first row says the contrary."""
    claimed = card["audit"]["rows"][0]["claimed"]
    claimed["hits"] = 12 if claimed["hits"] < 6 else 0


# --- made -----------------------------------------------------------------------------------------------------------


def test_a_build_audits(built, home):
    found = shipped.card("small")["audit"]
    assert [row["optimiser"] for row in found["rows"]] == ["gradient", "search", "agent"]
    assert found["settings"]["n_objects"] == [3]
    assert found["failures"] == {}
    assert not any("paths" in row for row in found["rows"])
    names = [path.name for path in (built / "pictures" / "small").iterdir()]
    assert set(names) <= {"worst.png", "reliability.png"}
    assert "reliability.png" in names
    for name in names:
        assert (built / "pictures" / "small" / name).stat().st_size < 150_000
        with Image.open(built / "pictures" / "small" / name) as picture:
            assert min(picture.size) > 300


def test_agents_on_the_truth_are_shared(built, home, tmp_path, monkeypatch):
    file = built / "work" / cards.TRUTH_AGENTS / AGENT.name / "agent.json"
    trained = file.stat().st_mtime_ns
    monkeypatch.setitem(recipes.SHIPPED, "other", recipes.SHIPPED["small"])
    run("hub", "build", "other", "--out", tmp_path / "out", "--work", built / "work", *OPTIONS)
    assert file.stat().st_mtime_ns == trained
    monkeypatch.setattr(shipped, "HOME", tmp_path / "out")
    rows = shipped.card("other")["audit"]["rows"]
    assert [row["optimiser"] for row in rows] == ["gradient", "search", "agent"]


def test_a_card_keeps_nothing_from_an_older_one(built, home, monkeypatch):
    again = ("hub", "build", "small", "--out", home.parent, "--work", built / "work", *OPTIONS)
    run(*again, "--no-agent")
    assert [row["optimiser"] for row in shipped.card("small")["audit"]["rows"]] == ["gradient", "search"]
    run(*again, "--no-audit")
    assert shipped.card("small")["audit"] is None


def test_the_truth_has_a_file_like_a_card(built, tmp_path, monkeypatch):
    tiny(monkeypatch)
    out = tmp_path / "there" / "truth.json"
    run("hub", "truth", "--out", out, "--work", built / "work", "--samples", 200)
    found = json.loads(out.read_text())
    assert list(found["accuracy"]) == [f"{low}-{high}" for low, high in RANGES]
    assert all(part["correct"] >= 199 for part in found["accuracy"].values())
    for row in found["audit"]["rows"]:
        assert row["precision"]["hits"] == row["precision"]["total"]
    assert [row["optimiser"] for row in found["audit"]["rows"]] == ["search", "agent"]


# --- found again ----------------------------------------------------------------------------------------------------


def test_verify_repeats_a_part(home):
    (line,) = (line for line in verify.verify("small", samples=20) if line.what.startswith("audit"))
    assert line.fits
    assert line.recorded == line.found
    assert line.found.startswith("gradient of positions, 3 objects: claimed")
    change(home, turn_round)
    wrong = [line.what for line in verify.verify("small", samples=20) if not line.fits]
    assert wrong == ["audit with 12 starts"]
    assert "claimed" in run("hub", "verify", "small", "--samples", 20, exit_code=1)


def test_a_check_reproduces_the_card(home, tmp_path):
    check = ("audit", "hub:small", "--check", "--out", tmp_path / "report")
    text = run(*check)
    assert "the card is reproduced: 2 rows within their intervals" in text
    rows = [line for line in text.splitlines() if ", target at " in line]
    assert all(line.endswith((": met", ": NOT MET", ": met (as recorded)", "NOT MET (as recorded)")) for line in rows)
    named = {line.split(":")[0] for line in rows}
    optimised = {"gradient of positions, 3 objects", "search of positions, 3 objects", "agent, 3 objects"}
    assert optimised | {"weights", "accuracy, 3-8 objects"} <= named
    change(home, turn_round)
    assert "differs from the card: gradient of positions, 3 objects: claimed" in run(*check, exit_code=1)


def test_a_check_of_a_part(home, tmp_path):
    check = ("audit", "hub:small", "--check", "--out", tmp_path / "report")
    assert "the card is reproduced" in run(*check, "--starts", 6)
    assert "budget 40; recorded 60" in run(*check, "--search", 40, exit_code=1)
    assert "criterion positions; recorded similarity" in run(*check, "--criterion", "positions", exit_code=1)
    change(home, lambda card: card.update(audit=None))
    result = CliRunner().invoke(app, [*map(str, check)])
    assert "the card of hub:small holds no audit to compare with" in str(result.exception)


# --- targets --------------------------------------------------------------------------------------------------------


def card(correct=9995, n_weights=427, seconds=21.0, hard_suite=None):
    accuracy = {f"{low}-{high}": {"correct": correct, "total": 10_000} for low, high in RANGES}
    return {"accuracy": accuracy, "n_weights": n_weights, "seconds": seconds, "hard_suite": hard_suite, "audit": None}


def test_targets_of_fixed_data():
    hard = {"accuracy": {"redrawn": {"n100": {"correct": 998, "total": 1000}}}, "thresholds": {"3-8": 3.0}}
    found = {target.name: (target.value, target.met) for target in card_targets(card(hard_suite=hard), ideal=2.5)}
    assert found == {
        "accuracy, 3-8 objects": (0.9995, True),
        "accuracy, 9-20 objects": (0.9995, True),
        "accuracy, 21-30 objects": (0.9995, True),
        "weights": (427, True),
        "seconds of training": (21.0, True),
        "accuracy, 100 objects": (0.998, False),
        "detection threshold by the ideal observer's": (pytest.approx(1.2), False),
    }
    assert [target.met for target in card_targets(card(9990, 1001, None))] == [True, *[False] * 5]
    nearer = card_targets(card(hard_suite=hard), threshold=2.75, ideal=2.5)[-1]
    assert nearer.met
    assert str(nearer) == "detection threshold by the ideal observer's: 1.1, target at most 1.1: met"


def test_what_a_model_never_detects_meets_no_target():
    hard = {"accuracy": {}, "thresholds": {"3-8": None}}
    last = card_targets(card(hard_suite=hard), ideal=2.5)[-1]
    assert (last.value, last.met) == (None, False)


def test_the_command_of_targets(home):
    text = run("hub", "targets", "small")
    assert "hub:small  weights: 383, target at most 1,000: met" in text
    assert "hub:small  gradient of positions, 3 objects: precision: " in text
