"""``spatialsim bench``: run the study, see how far it is, write its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from reward_models.studies.paper.experiments import Cell

app = typer.Typer(no_args_is_help=True, help="The paper's study: every table and figure as a list of runs.")

RESULTS, WORK = Path("results"), Path("runs/bench")
QUICK_RESULTS, QUICK_WORK = Path("runs/bench-quick/results"), Path("runs/bench-quick/work")

Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        help="A run, pass, beginning or glob: identification/mpgnn/n5, '*/mpgnn/*'. Repeatable. A run brings its whole "
        "pass: all seeds are trained together, on the same samples.",
    ),
]
Table = Annotated[str | None, typer.Option(help="The runs of one table or figure; a wrong name lists them.")]
Quick = Annotated[bool, typer.Option("--quick", help="The small study: too little to learn from, to try it all.")]
Results = Annotated[
    Path | None,
    typer.Option(help=f"Folder of results and of claims; {RESULTS} by default, {QUICK_RESULTS} with --quick."),
]
Work = Annotated[
    Path | None,
    typer.Option(help=f"Folder of unfinished passes; {WORK} by default, {QUICK_WORK} with --quick."),
]
Backend = Annotated[str, typer.Option(help="loky: processes here; ray: the cluster Ray is connected to.")]
Slurm = Annotated[int | None, typer.Option(help="Submit this many jobs through submitit instead.", min=1)]
SlurmOptions = Annotated[
    list[str] | None, typer.Option(help="An option of submitit, as timeout_min=600 or slurm_partition=gpu.")
]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
Retry = Annotated[bool, typer.Option("--retry", help="Run again what failed.")]
KeepWeights = Annotated[bool, typer.Option("--keep-weights", help="Keep the networks in WORK/weights.")]


def _places(quick: bool, results: Path | None, work: Path | None) -> tuple[Path, Path]:
    return results or (QUICK_RESULTS if quick else RESULTS), work or (QUICK_WORK if quick else WORK)


def _selected(filters: Sequence[str], table: str | None, quick: bool) -> list[Cell]:
    """The passes that are asked for.

    Raises:
        ValueError: as ``experiments.select``; there are none.
    """
    from reward_models.studies.paper import experiments

    cells = experiments.select(filters, table, quick=quick)
    if not cells:
        asked = [f"--table {table}", *(f"--filter {pattern}" for pattern in filters)]
        raise ValueError(f"{' '.join(asked)} selects no run; spatialsim bench status counts the runs of each table")
    return cells


@app.command("run")
def run(
    filters: Filters = None,
    table: Table = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Passes at a time, one thread each; by default 1, with ray a pass for each CPU.", min=1),
    ] = None,
    backend: Backend = "loky",
    slurm: Slurm = None,
    slurm_option: SlurmOptions = None,
    results: Results = None,
    work: Work = None,
    device: Device = "cpu",
    data: Annotated[
        Path | None, typer.Option(help="Folder that spatialsim generate filled, in place of generating samples.")
    ] = None,
    retry: Retry = False,
    keep_weights: KeepWeights = False,
    quick: Quick = False,
) -> None:
    """Run the study or a part of it. Run again, anywhere, it does what is missing and goes on with what was killed.

    A pass trains all its seeds together and writes its rows last, to RESULTS/rows. Several processes may run at once:
    a pass is claimed by a file lock in RESULTS, which on a network file system must support flock across its nodes.
    Exits with 1 if a pass failed, now or before.
    """
    from reward_models.studies.paper import launch
    from reward_models.studies.paper.runner import FAILED, Bench

    cells = _selected(filters or (), table, quick)
    bench = Bench(*_places(quick, results, work), device=device, data=data, retry=retry, keep_weights=keep_weights)
    if slurm is None:
        if slurm_option:
            raise ValueError("--slurm-option goes with --slurm alone")
        found = launch.follow(launch.outcomes(cells, bench, jobs=jobs, backend=backend), len(cells))
        if any(outcome.state == FAILED for outcome in found):
            raise typer.Exit(1)
        return
    if jobs is not None or backend != "loky":
        raise ValueError("--slurm and --jobs or --backend contradict each other; accepted is one of them")
    submitted = launch.submit(cells, bench, slurm, options_of(slurm_option or ()))
    names = ", ".join(str(job.job_id) for job in submitted)
    print(f"submitted {len(submitted)} jobs for {len(cells)} passes: {names}; logs in {bench.work / launch.SUBMITTED}")


def options_of(texts: Sequence[str]) -> dict[str, Any]:
    """{name: value} from "name=value"; whole numbers become ints.

    Raises:
        ValueError: another form.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign and value):
            raise ValueError(f"--slurm-option is {text!r}; accepted is NAME=VALUE, as timeout_min=600")
        found[name] = int(value) if value.isdigit() else value
    return found


@app.command("status")
def status(
    filters: Filters = None,
    table: Table = None,
    results: Results = None,
    cells: Annotated[bool, typer.Option("--cells", help="A line for each pass, too.")] = False,
    quick: Quick = False,
) -> None:
    """How many runs of each table and figure are done, failed, running and missing."""
    from reward_models.studies.paper import experiments, runner
    from reward_models.studies.paper.runner import Bench

    chosen = _selected(filters or (), table, quick)
    bench = Bench(_places(quick, results, None)[0])
    states = {cell.name: runner.states(cell, bench) for cell in chosen}
    if cells:
        for cell in chosen:
            counts = Counter(states[cell.name].values())
            print(f"{cell.name:36} {', '.join(f'{number} {state}' for state, number in counts.items())}")
    by_run = {run: state for of_cell in states.values() for run, state in of_cell.items()}
    wanted = {name: runs for name, runs in experiments.TABLES.items() if table in (None, name)} | {"all": list(by_run)}
    print(f"{'runs':12}" + "".join(f"{state:>9}" for state in runner.STATES))
    for name, runs in wanted.items():
        counts = Counter(by_run[run] for run in runs if run in by_run)
        print(f"{name:12}" + "".join(f"{counts[state]:>9,}" for state in runner.STATES))


@app.command("report")
def report(
    results: Results = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the report; RESULTS/report by default.")] = None,
    quick: Quick = False,
) -> None:
    """Rebuild all tables and figures from the rows of RESULTS."""
    from reward_models.studies.paper import report as writer

    folder = _places(quick, results, None)[0]
    print(f"wrote {writer.write(folder, out or folder / 'report')}")
