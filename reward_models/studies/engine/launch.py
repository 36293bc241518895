"""The units of a study on one machine (joblib), on a Ray cluster (joblib's own backend) or on SLURM (submitit).

The ids, the claims and the rows are the same everywhere, so any number of launches may be at the same study.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, TypeVar

from reward_models.studies.engine.run import FAILED, RUNNING, STATES, Outcome, run, run_all
from reward_models.studies.engine.study import R, Study, U
from reward_models.studies.engine.sweep import Sweep

BACKENDS = {"loky": 1, "ray": -1}  # units at a time by default; -1 is joblib's for all CPUs, of the cluster here
DAY = 24 * 60  # minutes
SUBMITTED = "slurm"  # folder of submitit's logs in the work folder
T = TypeVar("T")


def outcomes(
    units: Sequence[U],
    sweep: Sweep[U, R],
    *,
    jobs: int | None = None,
    backend: str = "loky",
    progress: bool | None = None,
) -> Iterator[Outcome[R]]:
    """Run units and give what became of each as it ends; from Ray when all have ended.

    Args:
        jobs: units at a time, one thread each; 1 runs them in this process. By default 1, and as many as the cluster
            has CPUs on Ray.
        backend: "loky" for processes of this machine, "ray" for the cluster that Ray is connected to.
        progress: of a single process; None where standard error is a terminal.

    Raises:
        ValueError: an unknown backend, or no job; or what ``Sweep.check`` refuses.
        claims.NoSpaceLeft: the disk is full.
        RuntimeError: a worker was killed; the rows that were written stay.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}; accepted are {', '.join(BACKENDS)}")
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs is {jobs}; accepted is an int from 1")
    at_once = jobs or BACKENDS[backend]
    sweep.check(units)
    if at_once == 1:
        return (run(unit, sweep, progress=progress) for unit in units)
    return _in_parallel(partial(run, sweep=sweep), units, at_once, backend)


def _in_parallel(do: Callable[[U], Outcome[R]], units: Sequence[U], jobs: int, backend: str) -> Iterator[Outcome[R]]:
    from joblib import Parallel, delayed, parallel_config

    options: dict[str, Any] = {"inner_max_num_threads": 1}
    return_as = "generator_unordered"
    killed: type[Exception] = BrokenProcessPool
    if backend == "ray":
        options, return_as, killed = {}, "list", _register_ray()  # all that this backend offers
    try:
        with parallel_config(backend, n_jobs=jobs, **options):
            yield from Parallel(return_as=return_as, batch_size=1)(delayed(do)(unit) for unit in units)
    except killed as error:
        raise RuntimeError(
            "a worker process was killed, perhaps for want of memory; its unit resumes when the "
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


def shards(units: Sequence[T], number: int) -> list[list[T]]:
    """The orders in which several workers go through all units: each begins with its own part, then helps the others.

    Raises:
        ValueError: no worker.
    """
    if number < 1:
        raise ValueError(f"shards is {number}; accepted is an int from 1")
    number = min(number, max(1, len(units)))
    parts = [list(units[k::number]) for k in range(number)]
    return [[unit for part in (*parts[k:], *parts[:k]) for unit in part] for k in range(number)]


def submit(
    units: Sequence[U],
    sweep: Sweep[U, R],
    number: int,
    options: dict[str, Any] | None = None,
    cluster: str | None = None,
) -> list[Any]:
    """Submit units as a number of jobs; returns submitit's jobs.

    Args:
        options: of submitit, as timeout_min (a day by default), mem_gb, slurm_partition; one GPU a job on cuda.
        cluster: "slurm" or "local"; by default SLURM where it is installed, else processes of this machine.

    Raises:
        ValueError: no job, an unknown option, or what ``Sweep.check`` refuses.
    """
    sweep.check(units)
    try:
        from submitit import AutoExecutor
    except ImportError as error:
        raise ImportError(f'--slurm needs submitit: pip install "spatialsim-env[cluster]" ({error})') from error
    executor = AutoExecutor(folder=sweep.work / SUBMITTED, cluster=cluster)
    usual: dict[str, Any] = {"name": "spatialsim", "cpus_per_task": 1, "timeout_min": DAY}
    if sweep.device.startswith("cuda"):
        usual["gpus_per_node"] = 1
    try:
        executor.update_parameters(**(usual | (options or {})))
    except (NameError, TypeError, ValueError, AssertionError) as error:
        raise ValueError(f"options of submitit are {options}; {error}") from error
    with executor.batch():
        return [executor.submit(partial(run_all, sweep=sweep), part) for part in shards(units, number)]


def follow(
    ended: Iterable[Outcome[R]], total: int, study: Study[U, R], say: Callable[[str], None] = print
) -> list[Outcome[R]]:
    """Say a line for each unit that ends, and at the end what is left; returns the outcomes."""
    seen: list[Outcome[R]] = []
    for outcome in ended:
        seen.append(outcome)
        say(f"[{len(seen):{len(str(total))}} of {total}] {line_of(outcome, study)}")
    say(summary(seen))
    return seen


def line_of(outcome: Outcome[R], study: Study[U, R]) -> str:
    """Format the outcome of a unit."""
    if outcome.state == RUNNING:
        return f"{outcome.unit}: another process is at it"
    if outcome.state == FAILED:
        when = "failed" if outcome.new else "failed before (--retry runs it again)"
        return f"{outcome.unit}: {when}, {outcome.error}"
    time = f"{outcome.seconds:.1f} s" if outcome.new else "there already"
    return f"{outcome.unit}: {study.line(outcome.rows)}, {time}"


def summary(seen: Sequence[Outcome[R]]) -> str:
    """Count the units in each state."""
    counts = Counter(outcome.state for outcome in seen)
    words = {RUNNING: "skipped (claimed by another process)"}
    return ", ".join(f"{counts[state]} {words.get(state, state)}" for state in STATES if counts[state])
