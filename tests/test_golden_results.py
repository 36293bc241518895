"""What is recorded is read and written by today's code to the byte: rows of every study, tables, reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("matplotlib")

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = ("paper", "agents", "hard_suite", "hardening", "relation_agents", "rel3d")  # on the study engine
TEXTS = {".md", ".csv"}  # of reports; pictures are of one version of matplotlib


def study_report(name: str) -> Callable[[Path], str]:
    def write(out: Path) -> str:
        from reward_models.studies.engine import registry, report

        study = registry.study(name)
        report.write_study(study, study.files.results, out)
        return os.path.relpath(Path(study.files.results) / study.files.report, "results")

    return write


REPORTS = {name: study_report(name) for name in STUDIES}


@pytest.mark.parametrize("name", STUDIES)
def test_rows_of_studies_are_written_as_they_were_recorded(name, tmp_path):
    """To the byte where the recorded entries are those of today, else with the entries that ``upgraded`` adds."""
    from reward_models.studies.engine import registry, rows

    study = registry.study(name)
    results = Path(study.files.results)
    for unit in study.units(False).values():
        if (recorded := rows.of_unit(study, results, unit)) is not None:
            text = rows.path_of(study, results, unit).read_text()
            written = rows.write(study, tmp_path, unit, recorded).read_text()
            if text != written:
                one = study.files.form == "object"
                parts = ([x] if one else x.splitlines() for x in (text, written))
                old, new = ([json.loads(part) for part in of] for of in parts)
                assert [study.upgraded(row) for row in old] == new


@pytest.mark.parametrize("study", REPORTS)
def test_reports_are_those_that_are_published(study, tmp_path):
    published = RESULTS / REPORTS[study](tmp_path)
    texts = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.suffix in TEXTS}
    assert texts == {path.relative_to(published) for path in published.rglob("*") if path.suffix in TEXTS}
    assert [path for path in texts if (tmp_path / path).read_bytes() != (published / path).read_bytes()] == []


def test_learned_rewards_are_found_in_a_fresh_process():
    """The entry point is what installed packages hold; it stays where it is."""
    code = (
        "from importlib.metadata import EntryPoint\n"
        "entry = EntryPoint('learned', 'reward_models.learned_reward:resolve', 'spatialsim_env.rewards')\n"
        "import gymnasium, json\n"
        "reward = entry.load()('hub:matching')\n"
        "env = gymnasium.make('spatialsim_env:SpatialSim-Discrim-v0', n_objects=3, reward='hub:matching')\n"
        "observation, info = env.reset(seed=0)\n"
        "value = reward(observation['desired_goal'].reshape(1, 3, 10), observation['desired_goal'].reshape(1, 3, 10))\n"
        "print(json.dumps([reward.name, value.tolist(), info['reward_model']]))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == ["hub:matching", [0.0], -1.0]
