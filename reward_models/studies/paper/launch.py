"""The passes of a study on one machine (joblib), on a Ray cluster (joblib's own backend) or on SLURM (submitit).

The ids, the claims and the rows are the same everywhere, so any number of launches may be at the same study.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from reward_models.studies.paper import runner
from reward_models.studies.paper.experiments import Cell
from reward_models.studies.paper.runner import Bench, Outcome

BACKENDS = {"loky": 1, "ray": -1}  # passes at a time by default; -1 is joblib's for all CPUs, of the cluster here
DAY = 24 * 60  # minutes
SUBMITTED = "slurm"  # folder of submitit's logs in the work folder
T = TypeVar("T")
R = TypeVar("R")


def outcomes(
    cells: Sequence[Cell], bench: Bench, *, jobs: int | None = None, backend: str = "loky", progress: bool | None = None
) -> Iterator[Outcome]:
    """Run passes and give what became of each as it ends; from Ray when all have ended.

    Args:
        jobs: passes at a time, one thread each; 1 runs them in this process. By default 1, and as many as the cluster
            has CPUs on Ray.
        backend: "loky" for processes of this machine, "ray" for the cluster that Ray is connected to.
        progress: of a single process; None where standard error is a terminal.

    Raises:
        ValueError: an unknown backend, or no job; or what ``Bench.check`` refuses.
        claims.NoSpaceLeft: the disk is full.
        RuntimeError: a worker was killed; the rows that were written stay.
    """
    at_once = jobs_at_once(jobs, backend)
    bench.check(cells)
    if at_once == 1:
        return (runner.run(cell, bench, progress=progress) for cell in cells)
    return in_parallel(partial(runner.run, bench=bench), cells, at_once, backend)


def jobs_at_once(jobs: int | None, backend: str) -> int:
    """How many runs at a time are asked for, those of the backend by default; -1 is joblib's for all CPUs.

    Raises:
        ValueError: an unknown backend, or no job.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}; accepted are {', '.join(BACKENDS)}")
    if jobs is None:
        return BACKENDS[backend]
    if jobs < 1:
        raise ValueError(f"jobs is {jobs}; accepted is an int from 1")
    return jobs


def in_parallel(run: Callable[[T], R], runs: Sequence[T], jobs: int, backend: str = "loky") -> Iterator[R]:
    """What ``run`` makes of each of ``runs``, several at a time, as it ends; from Ray when all have ended.

    Raises:
        RuntimeError: a worker was killed.
    """
    from joblib import Parallel, delayed, parallel_config

    options: dict[str, Any] = {"inner_max_num_threads": 1}
    return_as = "generator_unordered"
    killed: type[Exception] = BrokenProcessPool
    if backend == "ray":
        options, return_as, killed = {}, "list", _register_ray()  # all that this backend offers
    try:
        with parallel_config(backend, n_jobs=jobs, **options):
            calls = (delayed(run)(each) for each in runs)
            yield from Parallel(return_as=return_as, batch_size=1)(calls)
    except killed as error:
        raise RuntimeError(
            "a worker process was killed, perhaps for want of memory; what it was at goes on where it was when the "
            f"same command is run again ({str(error).splitlines()[0]})"
        ) from error


def _register_ray() -> type[Exception]:
    """Make joblib know Ray; returns the error that says that a worker is gone."""
    try:
        from ray.exceptions import RayError
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise ImportError(
            f'the backend ray needs its package: pip install "spatialsim-env[cluster]" ({error})'
        ) from error
    register_ray()
    return RayError


def shards(cells: Sequence[T], number: int) -> list[list[T]]:
    """The orders in which several workers go through all passes: each begins with its own part, then helps the others.

    Raises:
        ValueError: no worker.
    """
    if number < 1:
        raise ValueError(f"shards is {number}; accepted is an int from 1")
    number = min(number, max(1, len(cells)))
    parts = [list(cells[k::number]) for k in range(number)]
    return [[cell for part in (*parts[k:], *parts[:k]) for cell in part] for k in range(number)]


def submit(
    cells: Sequence[Cell], bench: Bench, number: int, options: dict[str, Any] | None = None, cluster: str | None = None
) -> list[Any]:
    """Submit passes as a number of jobs; returns submitit's jobs.

    Args:
        options: of submitit, as timeout_min (a day unless told), mem_gb, slurm_partition; one GPU a job on cuda.
        cluster: "slurm" or "local"; by default SLURM where it is installed, else processes of this machine.

    Raises:
        ValueError: no job, an unknown option, or what ``Bench.check`` refuses.
    """
    bench.check(cells)
    run_part = partial(run_all, bench=bench)
    return submit_parts(run_part, cells, number, bench.work, options, cluster, gpu=bench.device.startswith("cuda"))


def submit_parts(
    run_part: Callable[[list[T]], R],
    runs: Sequence[T],
    number: int,
    work: Path,
    options: dict[str, Any] | None = None,
    cluster: str | None = None,
    *,
    gpu: bool = False,
) -> list[Any]:
    """Submit runs of any kind as a number of jobs, each ``run_part`` of all of them in an order of its own.

    Args:
        work: logs go to its folder ``SUBMITTED``.
        options, cluster: as for ``submit``.
        gpu: whether a job gets one.

    Raises:
        ValueError: no job, or an unknown option.
    """
    try:
        from submitit import AutoExecutor
    except ImportError as error:
        raise ImportError(f'--slurm needs submitit: pip install "spatialsim-env[cluster]" ({error})') from error
    executor = AutoExecutor(folder=Path(work) / SUBMITTED, cluster=cluster)
    usual: dict[str, Any] = {"name": "spatialsim", "cpus_per_task": 1, "timeout_min": DAY}
    if gpu:
        usual["gpus_per_node"] = 1
    try:
        executor.update_parameters(**(usual | (options or {})))
    except (NameError, TypeError, ValueError, AssertionError) as error:
        raise ValueError(f"options of submitit are {options}; {error}") from error
    with executor.batch():
        return [executor.submit(run_part, part) for part in shards(runs, number)]


def run_all(cells: Iterable[Cell], bench: Bench) -> list[Outcome]:
    """Run passes one after the other; those that other workers have claimed are left to them."""
    return [runner.run(cell, bench) for cell in cells]


def follow(found: Iterable[Outcome], total: int, say: Callable[[str], None] = print) -> list[Outcome]:
    """Say a line for each pass that ends, and at the end what is left; returns the outcomes."""
    seen: list[Outcome] = []
    for outcome in found:
        seen.append(outcome)
        say(f"[{len(seen):{len(str(total))}} of {total}] {line(outcome)}")
    say(summary(seen))
    return seen


def told(ended: Iterable[Any], total: int, figures: Callable[[Any], str]) -> Counter[str]:
    """Say a line for each run of one row that ends, and at the end how many are in which state.

    Args:
        ended: outcomes with ``run``, ``state``, ``row`` and ``new``.
        total: how many there will be.
        figures: what is said of one that has a row without an error.

    Returns:
        How many are in which state.
    """
    states: Counter[str] = Counter()
    for outcome in ended:
        states[outcome.state] += 1
        said = _without_figures(outcome) or figures(outcome)
        print(f"[{states.total():{len(str(total))}} of {total}] {outcome.run}: {said}", flush=True)
    print(", ".join(f"{number} {state}" for state, number in states.items()))
    return states


def _without_figures(outcome: Any) -> str | None:
    """What became of a run that has none."""
    if outcome.row is None:
        return "another process is at it"
    if outcome.row["error"] is None:
        return None
    when = "failed" if outcome.new else "failed before (--retry runs it again)"
    return f"{when}, {outcome.row['error']}"


def line(outcome: Outcome) -> str:
    """What became of a pass."""
    if outcome.state == runner.RUNNING:
        return f"{outcome.cell}: another process is at it"
    if outcome.state == runner.FAILED:
        return (
            f"{outcome.cell}: {'failed' if outcome.new else 'failed before (--retry runs it again)'}, {outcome.error}"
        )
    runs = f"{outcome.seeds} run{'s' * (outcome.seeds > 1)}"
    time = f"{outcome.seconds:.1f} s" if outcome.new else "there already"
    return f"{outcome.cell}: accuracy {outcome.accuracy:.4f}, {runs}, {time}"


def summary(found: Sequence[Outcome]) -> str:
    """How many passes are in which state."""
    counts = {state: sum(outcome.state == state for outcome in found) for state in runner.STATES}
    words = {runner.RUNNING: "skipped (claimed by another process)"}
    return ", ".join(f"{number} {words.get(state, state)}" for state, number in counts.items() if number)
