"""Every example runs as written, with warnings as errors, and prints true figures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SHORT = {  # arguments that make an example quick
    "audit_your_own": ["--starts", "16", "--search", "1000"],
    "generate_pairs": ["--pairs", "60", "--draw", "0"],
    "load_rel3d": [],
    "own_negatives": ["--samples", "2000"],
    "own_reward": [],
    "random_agent": ["--episodes", "2"],
    "record_video": ["--episodes", "2", "--steps", "15"],
    "reward_relation_agent": ["--steps", "2500", "--episodes", "10"],
    "swap_reward": ["--samples", "2000"],
    "train_relations": ["--pairs", "300", "--epochs", "3"],
    "train_sac_her": ["--steps", "1000", "--episodes", "50"],
    "vector_worlds": ["--copies", "64", "--steps", "60"],
}


@pytest.fixture(scope="module")
def run_example(tmp_path_factory):
    """Run an example in its short form in a folder of its own; returns its output and the folder."""

    def run(name: str) -> tuple[str, Path]:
        folder = tmp_path_factory.mktemp(name)
        path = next(path for path in EXAMPLES if path.stem == name)
        command = [sys.executable, "-W", "error", str(path), *SHORT[name]]
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        assert result.returncode == 0, result.stderr
        return result.stdout, folder

    return run


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_short_form(path):
    assert path.stem in SHORT
    assert "SpatialSim-Discrim-v0" not in path.read_text() or "spatialsim_env:SpatialSim-Discrim-v0" in path.read_text()
    assert all(f'add_argument("{option}"' in path.read_text() for option in SHORT[path.stem] if option.startswith("--"))


def test_random_agent(run_example):
    text, _ = run_example("random_agent")
    distances = re.findall(r"^episode \d: distance (\d+\.\d), achieved (True|False)$", text, re.MULTILINE)
    assert len(distances) == 2
    assert all((float(distance) <= 1) == (achieved == "True") for distance, achieved in distances)


def test_own_reward(run_example):
    text, _ = run_example("own_reward")
    claimed, true = re.fullmatch(r"of 1000 random steps, loose calls (\d+) achieved; (\d+) are\n", text).groups()
    assert int(claimed) >= int(true)


def test_audit_your_own(run_example):
    text, folder = run_example("audit_your_own")
    claims = re.findall(r"^search of \w+: from 16 starts, (\d+) called achieved; (\d+) are$", text, re.MULTILINE)
    assert len(claims) == 2
    assert all(int(true) < int(claimed) / 2 for claimed, true in claims), "mirror images and wrong angles pass"
    total, right = map(int, re.search(r"^of (\d+) pairs of the benchmark, (\d+) right$", text, re.MULTILINE).groups())
    assert right > 0.9 * total
    assert (folder / "runs/audit_your_own/report.md").exists()


def test_load_rel3d(run_example):
    text, folder = run_example("load_rel3d")
    assert "30 predicates, 8 objects, 0 odd records" in text
    assert re.search(r"^train: +16 samples, +8 hold, +16 in pairs$", text, re.MULTILINE)
    assert "'Box' on 'Table': holds" in text
    assert "4 annotated pairs of scenes, 9 states drawn, 7 odd rows" in text
    assert (folder / "runs/load_rel3d/scene.obj").exists()


def test_generate_pairs(run_example):
    text, folder = run_example("generate_pairs")
    margins = re.findall(r"^.+: margins (\+\d+\.\d\d) and (-\d+\.\d\d)$", text, re.MULTILINE)
    assert len(margins) == 5
    assert all(float(holds) >= 0.2 and float(fails) <= -0.2 for holds, fails in margins)
    assert (folder / "runs/generate_pairs/c_0.9_c_0.1.json").exists()


def test_train_relations(run_example):
    text, folder = run_example("train_relations")
    assert "language_only: accuracy 0.500, both of a pair right 0.000" in text
    assert re.search(r"^relational: accuracy \d\.\d{3}, both of a pair right \d\.\d{3}$", text, re.MULTILINE)
    assert (folder / "runs/train_relations/relational/model.safetensors").exists()


def test_own_negatives(run_example):
    text, folder = run_example("own_negatives")
    wrong = [float(share) for share in re.findall(r"certified \w+ *: (\d\.\d+) of the negatives are wrong", text)]
    assert wrong[0] < wrong[1] == 1
    right = re.findall(r"trained on (\S+) *: (\d\.\d+) right", text)
    assert [name for name, _ in right] == ["redrawn", "redrawn+stretched"]
    assert all((folder / "runs/own_negatives" / name / "model.json").exists() for name, _ in right)


def test_swap_reward(run_example):
    text, folder = run_example("swap_reward")
    title, *rows, _ = text.splitlines()
    assert title.split() == ["step", "distance", "sparse", "dense", "network", "probability"]
    table = [[float(value) for value in row.split()] for row in rows]
    assert [row[0] for row in table] == list(range(13))
    for _, distance, sparse, dense, network, probability in table:
        assert sparse == (0 if distance <= 1 else -1)
        assert dense == pytest.approx(-min(distance, 20), abs=0.01)
        assert network in (0, -1)
        assert -1 <= probability <= 0
    assert table[-1][1] < 0.01 < 1 < table[0][1]
    assert (folder / "runs/swap_reward/model.json").exists()


def test_train_sac_her(run_example):
    text, _ = run_example("train_sac_her")
    claimed, true = re.findall(r"^(?:its reward says|truly) achieved +(\d\.\d\d), of 50 episodes$", text, re.MULTILINE)
    assert claimed == true, "the reward is the truth"
    assert float(true) > 0.3


def test_record_video(run_example):
    image = pytest.importorskip("moviepy")
    text, folder = run_example("record_video")
    assert "2 of 2 truly achieved" in text
    videos = sorted((folder / "runs/videos").glob("*.mp4"))
    assert len(videos) == 2
    with image.VideoFileClip(str(videos[0])) as clip:
        assert clip.size == [784, 480]
        assert clip.n_frames == 16


def test_vector_worlds(run_example):
    text, _ = run_example("vector_worlds")
    assert text.startswith("64 copies, ")
    assert "64 episodes, achieved by chance at some step: " in text


def test_reward_relation_agent(run_example):
    text, folder = run_example("reward_relation_agent")
    rows = re.findall(r"^(near|to the left of \(wrt you\)) +(\d\.\d\d) +(\d\.\d\d) +(\d\.\d\d)$", text, re.MULTILINE)
    assert len(rows) == 2
    assert all(by_rule == by_reward for _, by_rule, by_reward, _ in rows)  # the reward is the rule
    assert (folder / "runs" / "reward_relation_agent" / "agent.json").exists()
