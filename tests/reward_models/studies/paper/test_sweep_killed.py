"""speed/killed_sweep.py with few passes and kills: killed sweeps end with the rows of one that is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[4] / "speed" / "killed_sweep.py"


def test_a_killed_sweep_ends_with_the_same_rows():
    command = [sys.executable, str(SCRIPT), "--passes", "3", "--kills", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kills, 6 rows of 6: the same rows" in done.stdout
