"""The tables of the README and the docs are those of the recorded runs, and their examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from reward_models.studies.readme.recorded import AUDIT, PAGES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_example_runs_as_written():
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"distance \d+\.\d, achieved: (True|False)\nTrue\nTrue\n", result.stdout)


def test_the_audit_runs_as_written():
    code = re.search(r"```python\n(.*?)```", AUDIT.read_text(), re.DOTALL)[1]
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"\[\('positions', \d+, \d+\), \('poses', \d+, \d+\)\]\n", result.stdout)


@pytest.mark.parametrize(("page", "name"), [(page, name) for page, tables in PAGES.items() for name in tables])
def test_tables_are_those_of_the_recorded_runs(page, name):
    tables = re.findall(rf"<!-- {name} -->\n(.*?)\n?<!-- /{name} -->", page.read_text(), re.DOTALL)
    assert tables == [PAGES[page][name]()]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


def test_keywords_are_those_of_the_environment():
    import inspect

    from spatialsim_env.arrangements.world import world
    from spatialsim_env.core.one import OneWorld

    table = README.split("| keyword | values |")[1].split("\n\n")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    accepted = {name for function in (world, OneWorld.__init__) for name in inspect.signature(function).parameters}
    accepted -= {"self", "world", "reference_seed"}
    assert named == accepted
