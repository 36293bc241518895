"""Every example runs as written, with warnings as errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SHORT = {  # arguments that make an example quick
    "random_agent": ["--episodes", "2"],
    "vector_worlds": ["--copies", "64", "--steps", "60"],
}
SAYS = {
    "random_agent": "episode 1: distance",
    "own_reward": "of 1000 random steps, loose calls",
    "vector_worlds": "64 episodes, achieved by chance",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path):
    assert len(path.read_text().splitlines()) <= 60
    command = [sys.executable, "-W", "error", str(path), *SHORT.get(path.stem, [])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert SAYS[path.stem] in result.stdout
