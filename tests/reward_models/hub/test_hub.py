"""The models that come with the package: every one of them, its files, its card, and how it is made."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from typer.testing import CliRunner

import reward_models
from reward_models import models
from reward_models.agents import reward_source
from reward_models.cli.main import app
from reward_models.hub import recipes, verify
from reward_models.judges import shipped
from reward_models.judges.learned import LearnedReward, resolve
from reward_models.measuring import hard_cases
from reward_models.models import checkpoint
from reward_models.models.checkpoint import CheckpointError
from reward_models.studies.audits import cards
from reward_models.training.config import TrainingConfig
from spatialsim_env import testing
from spatialsim_env.arrangements import hard_suite
from spatialsim_env.arrangements.tasks import RANGES, Discrimination
from spatialsim_env.core import rewards
from spatialsim_env.files import sha256

NAMES = shipped.names()
DISCRIM = "spatialsim_env:SpatialSim-Discrim-v0"
QUICK = {"samples": 5, "hard_samples": 0, "audited": False, "say": lambda line: None}
SMALL = TrainingConfig.plain(samples_per_stage=256, epochs_per_stage=1, validation_samples=64)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A copy of the hub, to spoil."""
    monkeypatch.setattr(shipped, "HOME", shutil.copytree(shipped.HOME, tmp_path / "weights"))
    return tmp_path / "weights"


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(recipes.SHIPPED, "small", recipes.Recipe("A trial.", SMALL, ("It has learned nothing.",)))


def run(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["hub", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output + str(result.exception)
    return result.output


def spoil(file: Path, position: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)


# --- what is shipped --------------------------------------------------------------------------------------------------


def test_what_is_shipped_has_a_recipe_and_the_other_way_round():
    assert set(NAMES) == set(recipes.SHIPPED)
    assert {path.name for path in shipped.HOME.iterdir()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_files(name):
    home = shipped.HOME / name
    assert {path.name for path in home.iterdir()} == {*shipped.FILES, shipped.SUMS}
    lines = [line.split("  ") for line in (home / shipped.SUMS).read_text().splitlines()]
    assert {file: digest for digest, file in lines} == {file: sha256(home / file) for file in shipped.FILES}
    assert sum(path.stat().st_size for path in home.iterdir()) < 100_000
    assert shipped.check_folder(name) == shipped.check_folder(f"hub:{name}") == home


@pytest.mark.parametrize("name", NAMES)
def test_cards(name):
    card, model, recipe = shipped.card(name), reward_models.load(f"hub:{name}"), recipes.SHIPPED[name]
    assert list(card) == list(shipped.CARD_ENTRIES)
    assert card["name"] == name
    assert card["command"] == f"spatialsim hub build {name}"
    assert card["kind"] == model.kind
    assert card["n_weights"] == sum(weight.numel() for weight in model.module.parameters())
    assert card["training"] == recipe.settings.to_json()
    assert card["seed"] == recipe.settings.seed
    assert (card["about"], card["known_failures"]) == (recipe.about, list(recipe.known_failures))
    assert card["known_failures"]
    assert list(card["accuracy"]) == [f"{low}-{high}" for low, high in RANGES]
    assert all(0 <= part["correct"] <= part["total"] for part in card["accuracy"].values())
    assert list(card["microseconds"]) == ["1", "4096"]
    assert all(value > 0 for value in card["microseconds"].values())
    for made in (card["trained"], card["measured"]):
        assert {"package", "commit", "versions", "machine"} == made.keys()
        assert {"python", "numpy", "torch"} <= made["versions"].keys()
        assert made["commit"]
        assert not made["commit"].endswith("-dirty")
    assert model.task.get("hardening", model.task["training"]) == card["training"]
    if card["hard_suite"] is not None:
        assert card["hard_suite"]["accuracy"].keys() == set(hard_suite.NAMES)
    if card["audit"] is not None:
        assert tuple(card["audit"]["settings"]["n_objects"]) == cards.AUDIT["n_objects"]
        assert {row["n_objects"] for row in card["audit"]["rows"]} <= set(cards.AUDIT["n_objects"])


@pytest.mark.parametrize("name", NAMES)
def test_verify(name):
    lines = verify.verify(name, samples=200)
    assert [line.what for line in lines if not line.fits] == []
    assert [line.what for line in lines][:3] == [f"SHA-256 of {file}" for file in shipped.FILES]
    assert sum(line.what.startswith("accuracy") for line in lines) == len(RANGES)


# --- as a reward ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["", ":dense"])
@pytest.mark.parametrize("name", NAMES)
def test_a_reward_by_name(name, kind):
    spec = f"hub:{name}{kind}"
    reward = rewards.installed(spec)
    assert isinstance(reward, LearnedReward)
    assert reward.name == spec
    assert resolve(f"hub:{name}:sparse").name == f"hub:{name}"
    testing.assert_reward(reward)
    env = gym.make(DISCRIM, reward=spec, n_objects=3)
    testing.assert_environment(env)
    sb3_check_env(env.unwrapped)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.reward.name == spec
    actions = [env.action_space.sample() for _ in range(5)]
    values = []
    for world in (env, again):
        world.reset(seed=3)
        values.append([world.step(action)[1] for action in actions])
    assert values[0] == values[1]


@pytest.mark.parametrize("name", NAMES)
def test_pickles_carry_the_name_alone(name):
    pairs = Discrimination((3, 8)).sample(16, np.random.default_rng(0))
    model = reward_models.load(f"hub:{name}")
    reward = LearnedReward(model, "dense")
    assert reward.name == f"hub:{name}:dense"
    for whole in (model, reward, LearnedReward(f"hub:{name}")):
        content = pickle.dumps(whole)
        assert len(content) < 300
        assert str(shipped.HOME).encode() not in content
    assert np.array_equal(
        pickle.loads(pickle.dumps(model)).score(pairs.reference, pairs.target),
        model.score(pairs.reference, pairs.target),
    )
    assert pickle.loads(pickle.dumps(reward)).folder == shipped.HOME / name


def judged(reward: LearnedReward) -> np.ndarray:
    pairs = Discrimination((3, 8)).sample(16, np.random.default_rng(0))
    return reward(pairs.reference, pairs.target)


def test_another_process_in_another_folder(tmp_path, monkeypatch):
    (tmp_path / "hub").mkdir()  # a folder of that name does not stand in the way
    (tmp_path / f"hub:{NAMES[0]}").mkdir()
    monkeypatch.chdir(tmp_path)
    reward = resolve(f"hub:{NAMES[0]}:dense")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert np.array_equal(pool.apply(judged, (reward,)), judged(reward))


def test_agents_find_it_again_wherever_the_package_lies(tmp_path, home):
    for spec in ("hub:matching", "hub:matching:dense"):
        record = reward_source.describe(reward_source.fix_path(spec), tmp_path / "run")
        assert record["reward"] == spec
        record["model"]["folder"] = "/of/another/machine"
        assert reward_source.find(record, tmp_path / "run") == spec
        record["model"]["sha256"] = "0" * 64
        with pytest.raises(ValueError, match="has other weights by now"):
            reward_source.find(record, tmp_path / "run")


def test_listing_needs_no_torch_until_it_is_asked():
    code = "import sys, reward_models.cli.hub; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nothing", "", "../weights/matching", "matching/"])
def test_unknown_names(name):
    accepted = ", ".join(f"hub:{known}" for known in NAMES)
    for ask in (reward_models.load, resolve, lambda spec: gym.make(DISCRIM, reward=spec)):
        with pytest.raises(ValueError, match=f"is not in the hub; accepted are {accepted}"):
            ask(f"hub:{name}")
    with pytest.raises(ValueError, match="'densest'; accepted are sparse, dense"):
        resolve(f"hub:{NAMES[0]}:densest")


@pytest.mark.parametrize("position", [0, 40, -1])
@pytest.mark.parametrize("file", shipped.FILES)
@pytest.mark.parametrize("name", NAMES)
def test_one_byte_changed(name, file, position, home):
    spoil(home / name / file, position)
    for ask in (reward_models.load, resolve, lambda spec: gym.make(DISCRIM, reward=spec), shipped.card):
        with pytest.raises(CheckpointError, match=rf"hub:{name}: .*{name}.{file} is cut or changed"):
            ask(f"hub:{name}")
    wrong = [line.what for line in verify.verify(name) if not line.fits]
    assert wrong == [f"SHA-256 of {file}"]


@pytest.mark.parametrize("name", NAMES)
def test_one_byte_of_the_list_changed(name, home):
    file = home / name / shipped.SUMS
    whole = file.read_bytes()
    for position in range(len(whole)):
        spoil(file, position)
        with pytest.raises(CheckpointError, match=rf"hub:{name}: .*({shipped.SUMS}|cut or changed)"):
            shipped.check_folder(name)
        file.write_bytes(whole)
    assert shipped.check_folder(name) == home / name


@pytest.mark.parametrize("file", shipped.FILES)
def test_a_file_is_missing(file, home):
    (home / NAMES[0] / file).unlink()
    with pytest.raises(CheckpointError, match=rf"{file} is missing; SHA256SUMS lists it"):
        reward_models.load(f"hub:{NAMES[0]}")
    assert [line.found for line in verify.verify(NAMES[0]) if not line.fits] == ["missing"]


def test_weights_of_another_kind_or_version(home):
    """By checksum; and by what they are where the list was written anew."""
    folder = home / "matching"
    checkpoint.save(models.create("mpgnn"), folder / "other")
    shutil.copyfile(folder / "other" / checkpoint.WEIGHTS, folder / checkpoint.WEIGHTS)
    shutil.rmtree(folder / "other")
    with pytest.raises(CheckpointError, match=r"hub:matching: .*model.safetensors is cut or changed"):
        reward_models.load("hub:matching")
    info = json.loads((folder / checkpoint.INFO).read_text())
    for changes, message in (
        ({"sha256": sha256(folder / checkpoint.WEIGHTS)}, "holds weights of another model"),
        ({"format": 99}, "format 99; accepted is 1"),
    ):
        (folder / checkpoint.INFO).write_text(json.dumps(info | changes))
        shipped.write_checksums(folder)
        with pytest.raises(CheckpointError, match=rf"hub:matching: .*{message}"):
            reward_models.load("hub:matching")


def change_card(home: Path, **changes: object) -> None:
    file = home / shipped.CARD
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    shipped.write_checksums(home)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"n_weights": 384}, ["weights"]),
        ({"kind": "mpgnn"}, ["kind"]),
        ({"name": "other"}, ["name"]),
        ({"training": TrainingConfig.plain(seed=1).to_json()}, ["training"]),
        ({"accuracy": {"3-8": {"correct": 1, "total": 1}}}, ["accuracy"]),
        ({"accuracy": {f"{a}-{b}": {"correct": 500, "total": 1000} for a, b in RANGES}},
         [f"accuracy {a}-{b}" for a, b in RANGES]),
    ],
)  # fmt: skip
def test_a_card_that_does_not_hold(changes, wrong, home):
    change_card(home / "matching", **changes)
    assert [line.what for line in verify.verify("matching", samples=100) if not line.fits] == wrong


def test_a_card_of_another_format(home):
    change_card(home / "matching", format=99)
    with pytest.raises(CheckpointError, match=r"card.json has format 99; accepted is 1"):
        shipped.card("matching")


# --- commands and making ----------------------------------------------------------------------------------------------


def test_commands(home):
    listed = run("list")
    assert all(f"hub:{name}" in listed and shipped.card(name)["about"] in listed for name in NAMES)
    for name in (NAMES[0], f"hub:{NAMES[0]}"):
        assert json.loads(run("show", name)) == shipped.card(NAMES[0])
    text = run("verify", "--samples", 50)
    assert all(f"hub:{name}  weights: {shipped.card(name)['n_weights']} / " in text for name in NAMES)
    assert "DOES NOT FIT" not in text
    spoil(home / NAMES[0] / checkpoint.WEIGHTS, 9)
    assert "model.safetensors" in run("verify", NAMES[0], exit_code=1)
    assert run("verify", exit_code=1).count("DOES NOT FIT") == 1


def test_build(tmp_path, small, monkeypatch):
    monkeypatch.setattr(cards, "TIMED_BATCHES", (1, 2))
    out, work = tmp_path / "out", tmp_path / "work"
    options = ("--out", out, "--work", work, "--samples", 20, "--hard-samples", 0, "--no-audit")
    assert str(out / "small") in run("build", "small", *options)
    monkeypatch.setattr(shipped, "HOME", out)
    assert shipped.names() == ("small",)
    first = shipped.card("small")
    assert list(first) == list(shipped.CARD_ENTRIES)
    assert first["hard_suite"] is first["audit"] is None
    assert first["known_failures"] == ["It has learned nothing."]
    assert {part["total"] for part in first["accuracy"].values()} == {20}
    assert all(line.fits for line in verify.verify("small", samples=20))
    weights = (out / "small" / checkpoint.WEIGHTS).read_bytes()
    run("build", "small", *options)  # trained already: the same weights, measured again
    assert (out / "small" / checkpoint.WEIGHTS).read_bytes() == weights
    assert shipped.card("small")["accuracy"] == first["accuracy"]
    assert [path.name for path in out.iterdir()] == ["small"]


def test_the_hard_suite_on_a_card(monkeypatch):
    """Certified rows before the others, which make the threshold; what was refused has no count."""

    def row(task: str, correct: int | None, certified: bool = False) -> hard_cases.HardResult:
        return hard_cases.HardResult(
            task, "3-8", "model", certified, correct, 10, "too many" if correct is None else ""
        )

    curve = [row(f"displaced/{d}sigma", 5 if d < 8 else 10) for d in hard_suite.DISPLACEMENTS]
    found = [row("displaced/48sigma", 9, certified=True), *curve, row("abstract", None)]
    monkeypatch.setattr(hard_cases, "run", lambda model, **options: found)
    card = cards._hard_suite(reward_models.load("hub:matching"), 10)
    assert card["accuracy"]["displaced/48sigma"] == {"3-8": {"correct": 9, "total": 10}}
    assert card["accuracy"]["displaced/2sigma"] == {"3-8": {"correct": 5, "total": 10}}
    assert card["accuracy"]["abstract"] == {"3-8": {"correct": None, "total": 10}}
    assert card["thresholds"] == {"3-8": pytest.approx(7)}  # half way from 6 to 8


def test_a_recipe_of_another_way(tmp_path, monkeypatch):
    def make(settings, folder: Path) -> None:
        checkpoint.save(models.create("matching", seed=settings.seed), folder, settings.describe_task())

    chosen = recipes.Recipe("Untrained.", replace(SMALL, seed=4), ("All of it.",), make)
    monkeypatch.setitem(recipes.SHIPPED, "untrained", chosen)
    monkeypatch.setattr(cards, "TIMED_BATCHES", (1,))
    home = cards.build("untrained", tmp_path / "out", tmp_path / "work", **QUICK)
    monkeypatch.setattr(shipped, "HOME", home.parent)
    assert (shipped.card("untrained")["seed"], shipped.card("untrained")["seconds"]) == (4, None)


def test_a_failed_build_leaves_what_was_there(tmp_path, small, monkeypatch):
    old = tmp_path / "out" / "small"
    old.mkdir(parents=True)
    (old / "old").touch()
    monkeypatch.setattr(shipped, "write_checksums", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cards.build("small", old.parent, tmp_path / "work", **QUICK)
    assert [path.name for path in old.parent.iterdir()] == ["small"]
    assert (old / "old").exists()


def test_an_unfinished_training_of_another_commit(tmp_path, small):
    made = cards._read_provenance() | {"commit": "0" * 40}
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / cards.MADE_BY).write_text(json.dumps(made))
    with pytest.raises(ValueError, match="unfinished training of commit 0000"):
        cards.build("small", tmp_path / "out", tmp_path, say=lambda _: None)
    with pytest.raises(ValueError, match=f"no recipe makes 'none'; accepted are {', '.join(recipes.SHIPPED)}"):
        cards.build("none", tmp_path / "out", tmp_path)
