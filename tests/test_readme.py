"""The README says what was measured, and its example runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from readme_tables import TABLES, render

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_example_runs_as_written():
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    assert len(code.strip().splitlines()) <= 11
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"distance \d+\.\d, achieved: (True|False)\nTrue\nTrue\n", result.stdout)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_those_of_the_recorded_runs(name):
    assert re.search(rf"<!-- {name} -->\n(.*?)\n?<!-- /{name} -->", README, re.DOTALL)[1] == render(name)


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_to_files(target):
    assert (ROOT / target).exists()


def test_keywords_are_those_of_the_environment():
    import inspect

    from spatialsim_env.env import SpatialSimEnv

    table = README.split("| keyword | values |")[1].split("\n\n")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    accepted = set(inspect.signature(SpatialSimEnv.__init__).parameters) - {"self", "reference_seed"}
    assert named == accepted
