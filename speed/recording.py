"""The parts of the scripts that measure speeds: one thread, clocks, provenance, tables, and the file of the result.

Import this module before anything numerical: it sets the number of threads.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np

from spatialsim_env.files import replace_file

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the plain implementations of the tests

Row = dict[str, Any]


def times(work: Callable[[], Any], repetitions: int) -> list[float]:
    """Wall times of calls, in seconds, after one that is not counted."""
    work()
    measured = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        measured.append(time.perf_counter() - start)
    return measured


def median(work: Callable[[], Any], repetitions: int = 7) -> float:
    """Median wall time of a call, in seconds."""
    return float(np.median(times(work, repetitions)))


def least(work: Callable[[], Any], repetitions: int = 5) -> float:
    """Least wall time of a call, in seconds."""
    return min(times(work, repetitions))


def state_origin(packages: Sequence[str]) -> dict[str, Any]:
    """State commit, versions and machine of a measurement on one thread."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "commit": commit.stdout.strip() or None,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, one thread",
    }


def format_met(met: bool | None) -> str:
    """Say whether a target is met; "-" without one."""
    return {None: "-", True: "yes", False: "no"}[met]


def markdown(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Format a table."""
    return "\n".join(
        [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *(f"| {' | '.join(x)} |" for x in lines)]
    )


def main(script: str, measure: Callable[[], Row], table: Callable[[Row], str]) -> None:
    """Measure and write the result beside the script, unless called with ``--print``; print its table."""
    path = Path(script).with_suffix(".json")
    if "--print" not in sys.argv[1:]:
        result = measure()
        with replace_file(path) as temporary:
            temporary.write_text(json.dumps(result, indent=2) + "\n")
    print(table(json.loads(path.read_text())))
