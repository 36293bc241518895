"""A sweep of short runs, killed with SIGKILL at random moments, beside one that was left alone: the rows must agree.

    python speed/killed_sweep.py                        20 passes of the small study, 10 kills
    python speed/killed_sweep.py --passes 4 --kills 2   fewer

Both sweeps are ``spatialsim study run paper --quick``. The killed one is started again after each kill, and left alone
after the last; after each kill every row file that is there must be whole. Rows are compared apart from timings, and
from the commit, which changes when a file is edited meanwhile. Exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from reward_models.studies.engine import rows
from reward_models.studies.engine.sweep import CLAIMS
from reward_models.studies.paper.study import STUDY
from reward_models.studies.paper.work import PaperRow

PASSES = (
    *(f"discrimination/{model}/3-8" for model in ("mlp", "deep_set", "rds", "conditioned_mpgnn")),
    *(f"rules/{rule}/3-8" for rule in ("spread", "truth")),
    *(f"discrimination/{model}/9-20" for model in ("gcn", "mpgnn", "mlp", "matching")),
    *(f"ablation/{change}/3-8" for change in ("no_curriculum", "one_round", "n3_only")),
    *(f"identification/{model}/n4" for model in ("mpgnn", "rds", "deep_set", "gcn", "mlp", "matching")),
    "discrimination/graph_matching/3-8",
)


WARM_UP = 1.0  # seconds that a process needs before its first epoch, about


def command(passes: int, jobs: int, folder: Path) -> list[str]:
    """The sweep as a command."""
    filters = [word for name in PASSES[:passes] for word in ("--filter", name)]
    places = ["--results", str(folder / "results"), "--work", str(folder / "work")]
    return [
        sys.executable,
        "-m",
        "reward_models.cli.main",
        "study",
        "run",
        "paper",
        "--quick",
        "--jobs",
        str(jobs),
        *filters,
        *places,
    ]


def held(claim: Path) -> bool:
    """Check that some process holds a claim."""
    try:
        with FileLock(claim).acquire(timeout=0):
            return False
    except Timeout:
        return True


def wait_for_work(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until a sweep holds a claim, or has ended."""
    while process.poll() is None and not any(map(held, (folder / "results" / CLAIMS).rglob("*.lock"))):
        time.sleep(0.02)


def sweep(passes: int, jobs: int, folder: Path, wait: float | None = None) -> tuple[bool, float]:
    """Run a sweep; kill it and all its processes ``wait`` seconds after it began, if that is given.

    Returns:
        Whether it was killed, and the seconds from its beginning to its end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(
        command(passes, jobs, folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        wait_for_work(process, folder)
        start = time.perf_counter()
        try:
            output, _ = process.communicate(timeout=wait)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return True, time.perf_counter() - start
    if process.returncode != 0:
        raise RuntimeError(f"the sweep ended with {process.returncode}:\n{output.decode()}")
    return False, time.perf_counter() - start


def whole_rows(folder: Path) -> list[PaperRow]:
    """The rows that are there, apart from timings and commit; refuses what is not whole."""
    if not (folder / "results" / STUDY.files.rows).exists():
        return []
    found = rows.read(STUDY, folder / "results", quick=True).rows.values()
    return [
        replace(row, stamp=replace(row.stamp, commit=None), seconds=0, log=[epoch[:-1] for epoch in row.log])
        for row in found
    ]


def differences(expected: Sequence[PaperRow], found: Sequence[PaperRow]) -> list[str]:
    """List the entries of rows that differ."""
    others = {row.id: row for row in found}
    missing = [f"{row.id} is missing" for row in expected if row.id not in others]
    return missing + [
        f"{row.id}: {', '.join(key for key, value in vars(row).items() if value != getattr(others[row.id], key))}"
        for row in expected
        if row.id in others and row != others[row.id]
    ]


def compare(passes: int, kills: int, jobs: int, moments: random.Random, place: Path) -> bool:
    """Check that sweeps that are killed, ``kills`` times in all, end with the rows of one that is not.

    A sweep that ends before it is killed is compared, and another one begun.
    """
    _, seconds = sweep(passes, jobs, place / "left-alone")
    expected = whole_rows(place / "left-alone")
    print(f"left alone: {passes} passes, {len(expected)} rows in {seconds:.1f} s", flush=True)
    killed = sweeps = n_found = 0
    while True:
        folder = place / f"killed{sweeps}"
        left = seconds * (1 - n_found / len(expected))
        longest = min(WARM_UP + 1.5 * left / max(1, kills - killed), 0.7 * left)
        was_killed, lived = sweep(passes, jobs, folder, moments.uniform(0, longest) if killed < kills else None)
        found = whole_rows(folder)
        killed, n_found = killed + was_killed, len(found)
        print(f"{'killed' if was_killed else 'ended'} after {lived:.2f} s: {n_found} rows", flush=True)
        if was_killed:
            continue
        if found != expected:
            print(f"OTHER ROWS: {'; '.join(differences(expected, found))}")
            return False
        if killed == kills:
            print(f"{kills} kills, {n_found} rows of {len(expected)}: the same rows")
            return True
        sweeps, n_found = sweeps + 1, 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=len(PASSES), choices=range(1, len(PASSES) + 1))
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=None, help="of the moments")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        same = compare(options.passes, options.kills, options.jobs, random.Random(options.seed), Path(place))
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
