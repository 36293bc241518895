"""The demo from end to end, in small."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reward_models import demo
from reward_models.agents import configs
from reward_models.demo import BEST, RANDOM, TRUTH, DemoConfig
from reward_models.training.config import TrainingConfig


def tiny(seed: int = 0) -> DemoConfig:
    networks = {
        "mpgnn": TrainingConfig("mpgnn", samples_per_stage=128, epochs_per_stage=1, validation_samples=10),
        BEST: TrainingConfig.plain("matching", samples_per_stage=20_000, epochs_per_stage=1, negative="mixture"),
    }
    agent = replace(configs.by_name("discrim_n3"), total_steps=404, episodes=20)
    return DemoConfig(networks, agent, agents=2, test_samples=500, seed=seed)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    lines: list[str] = []
    return folder, demo.run(tiny(seed=3), folder, lines.append), "\n".join(lines)


def test_summary_holds_figures_settings_seeds_and_versions(finished):
    folder, summary, _ = finished
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert list(summary["networks"]) == [TRUTH, "mpgnn", BEST]
    assert list(summary["agents"]) == [RANDOM, TRUTH, "mpgnn", BEST]
    assert {part["seed"] for part in summary["settings"]["networks"].values()} == {3}
    assert summary["settings"]["agent"]["seed"] == summary["settings"]["seed"] == 3
    assert {"python", "torch", "numpy", "spatialsim-env"} <= set(summary["versions"])
    for name, weights in (("mpgnn", 4366), (BEST, 383)):
        assert summary["networks"][name]["weights"] == weights
    for row in summary["networks"].values():
        assert [part["total"] for part in row["accuracy"].values()] == [500] * 3
    assert all(part["correct"] >= 498 for part in summary["networks"][TRUTH]["accuracy"].values())


def test_claims_are_beside_the_truth(finished):
    _, summary, text = finished
    for name, row in summary["agents"].items():
        assert [run["seed"] for run in row["runs"]] == [3, 4]
        assert {run["evaluation"]["episodes"] for run in row["runs"]} == {20}
        shares = [run["evaluation"]["success"] for run in row["runs"]]
        assert row["success"] == pytest.approx(sum(shares) / 2)
        line = next(line for line in text.splitlines() if line.startswith(name))
        assert f"{row['success']:.2f} ({min(shares):.2f} to {max(shares):.2f})" in line
    assert summary["agents"][TRUTH]["claimed"] == summary["agents"][TRUTH]["success"]


def test_pictures_are_written(finished):
    folder, _, text = finished
    with pytest.importorskip("PIL.Image").open(folder / "reached.gif") as gif:
        assert gif.n_frames > 10
    for name in ("summary.json", "reached.png", "reached.gif"):
        assert (folder / name).stat().st_size > 0
        assert f"wrote {folder / name}" in text


def test_a_second_run_trains_nothing_again(finished):
    folder, summary, _ = finished
    trained = {path: path.stat().st_mtime_ns for path in folder.rglob("agent.zip")}
    assert demo.run(tiny(seed=3), folder, lambda line: None) == summary
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("agent.zip")} == trained


def test_what_was_finished_is_kept_when_the_demo_was_killed(finished):
    folder, summary, _ = finished
    (folder / "summary.json").unlink()
    trained = {path: path.stat().st_mtime_ns for path in folder.rglob("agent.zip")}
    again = demo.run(tiny(seed=3), folder, lambda line: None)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("agent.zip")} == trained
    assert again["agents"] == summary["agents"]
    assert again["networks"] == summary["networks"]


def test_another_demo_in_the_same_folder_is_refused(finished):
    with pytest.raises(ValueError, match="other settings"):
        demo.run(tiny(seed=4), finished[0], lambda line: None)


@pytest.mark.parametrize("config", [DemoConfig(), DemoConfig.quick()])
def test_the_shipped_demos_train_on_three_to_eight_objects_only(config):
    assert {part.n_objects for part in config.networks.values()} == {(3, 8)}
    assert config.agent.env_kwargs["n_objects"] == 3
    assert config.agent.env_kwargs.get("criterion", "similarity") == "similarity"
    assert config.networks[BEST].negative == "mixture"
    assert [part.negative for name, part in config.networks.items() if name != BEST] == ["redrawn"] * 2
