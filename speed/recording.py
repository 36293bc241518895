"""What the scripts that measure speeds share: what a result says about its making, and where it is kept."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spatialsim_env.files import replaced


def made_by(packages: Sequence[str]) -> dict[str, Any]:
    """Commit, versions and machine of a measurement on one thread."""
    root = Path(__file__).parents[1]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    return {
        "commit": commit.stdout.strip() or None,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, one thread",
    }


def main(path: Path, measure: Callable[[], dict[str, Any]], table: Callable[[dict[str, Any]], str]) -> None:
    """Measure and write the result, unless called with ``--print``; print the table of what is written."""
    if "--print" not in sys.argv[1:]:
        result = measure()
        with replaced(path) as temporary:
            temporary.write_text(json.dumps(result, indent=2) + "\n")
    print(table(json.loads(path.read_text())))
