"""``spatialsim study``: run a study, see how far it is, write its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, help="Studies: every figure from runs with ids that say what is run.")

Name = Annotated[str, typer.Argument(help="Of the study; spatialsim study list names them.")]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        help="A run, unit, beginning, glob or group: identification/mpgnn/n5, '*/mpgnn/*', table1. Repeatable. A run "
        "brings its whole unit, as all seeds that are trained together.",
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="The small study: too little to learn from, to try it all.")]
Folder = Annotated[
    Path | None, typer.Option("--results", help="Folder of results and of claims; the study's own by default.")
]
Options = Annotated[
    list[str] | None, typer.Option("--option", help="An option of the study, as NAME=VALUE; a wrong name lists them.")
]


@app.command("run")
def run(
    name: Name,
    filters: Filters = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Units at a time, one thread each; by default 1, with ray a unit for each CPU.", min=1),
    ] = None,
    backend: Annotated[str, typer.Option(help="loky: processes here; ray: the cluster Ray is connected to.")] = "loky",
    slurm: Annotated[int | None, typer.Option(help="Submit this many jobs through submitit instead.", min=1)] = None,
    slurm_option: Annotated[
        list[str] | None, typer.Option(help="An option of submitit, as timeout_min=600 or slurm_partition=gpu.")
    ] = None,
    results: Folder = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder of unfinished units and of what the study keeps; in runs by default.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    data: Annotated[Path | None, typer.Option(help="Data that are read in place of being generated.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the work folders, with networks, in WORK/kept.")] = False,
    option: Options = None,
    quick: Quick = False,
) -> None:
    """Run a study or a part of it. Run again, anywhere, it does what is missing and resumes what was killed.

    A unit writes its rows last, to RESULTS. Several processes may run at once: a unit is claimed by a file lock in
    RESULTS, which on a network file system must support flock across its nodes. Exits with 1 if a unit failed, now or
    before.
    """
    from reward_models.studies.engine import launch
    from reward_models.studies.engine.registry import study
    from reward_models.studies.engine.run import FAILED
    from reward_models.studies.engine.select import select
    from reward_models.studies.engine.sweep import Sweep

    chosen = study(name)
    units = select(chosen, filters or (), quick=quick)
    options = pairs_of("--option", option or ())
    places = (results or Path(), work or Path())
    sweep = Sweep(
        chosen, *places, quick, device, data, retry, keep, {key: str(value) for key, value in options.items()}
    )
    if slurm is None:
        if slurm_option:
            raise ValueError("--slurm-option goes with --slurm alone")
        ended = launch.follow(launch.outcomes(units, sweep, jobs=jobs, backend=backend), len(units), chosen)
        if any(outcome.state == FAILED for outcome in ended):
            raise typer.Exit(1)
        return
    if jobs is not None or backend != "loky":
        raise ValueError("--slurm and --jobs or --backend contradict each other; accepted is one of them")
    submitted = launch.submit(units, sweep, slurm, pairs_of("--slurm-option", slurm_option or ()))
    names = ", ".join(str(job.job_id) for job in submitted)
    print(f"submitted {len(submitted)} jobs for {len(units)} units: {names}; logs in {sweep.work / launch.SUBMITTED}")


def pairs_of(option: str, texts: Sequence[str]) -> dict[str, Any]:
    """{name: value} from "name=value"; whole numbers become ints.

    Raises:
        ValueError: another form.
    """
    pairs: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign and value):
            raise ValueError(f"{option} is {text!r}; accepted is NAME=VALUE, as timeout_min=600")
        pairs[name] = int(value) if value.isdigit() else value
    return pairs


@app.command("status")
def status(
    name: Name,
    filters: Filters = None,
    results: Folder = None,
    each: Annotated[bool, typer.Option("--units", help="A line for each unit, too.")] = False,
    quick: Quick = False,
) -> None:
    """Print the numbers of done, failed, running and missing runs of each part of a study."""
    from reward_models.studies.engine.registry import study
    from reward_models.studies.engine.run import STATES, states
    from reward_models.studies.engine.select import select
    from reward_models.studies.engine.sweep import Sweep

    chosen = study(name)
    sweep = Sweep(chosen, results or Path(), quick=quick)
    by_unit = {unit.id: states(unit, sweep) for unit in select(chosen, filters or (), quick=quick)}
    if each:
        for unit, of_unit in by_unit.items():
            print(f"{unit:45} {', '.join(f'{number} {state}' for state, number in Counter(of_unit.values()).items())}")
    by_run = {run: state for of_unit in by_unit.values() for run, state in of_unit.items()}
    print(f"{'runs':28}" + "".join(f"{state:>9}" for state in STATES))
    for group, runs in {**chosen.groups(sweep.units), "all": list(by_run)}.items():
        counts = Counter(by_run[run] for run in runs if run in by_run)
        if counts or group == "all":
            print(f"{group:28}" + "".join(f"{counts[state]:>9,}" for state in STATES))


@app.command("report")
def report(
    name: Name,
    results: Folder = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the report; in RESULTS by default.")] = None,
    quick: Quick = False,
) -> None:
    """Rebuild all tables and figures of a study from its rows alone."""
    from reward_models.studies.engine import report as writer
    from reward_models.studies.engine.registry import study
    from reward_models.studies.engine.sweep import Sweep

    chosen = study(name)
    folder = results or Path(chosen.files.results)
    if quick and results is None:
        folder = Sweep(chosen, quick=True).results
    print(f"wrote {writer.write_study(chosen, folder, out or folder / chosen.files.report, quick=quick)}")


@app.command("list")
def list_units(
    name: Annotated[str | None, typer.Argument(help="A study, whose units are listed; else the studies are.")] = None,
    filters: Filters = None,
    quick: Quick = False,
) -> None:
    """List the studies, or the units of one in the order worth having."""
    from reward_models.studies.engine.registry import STUDIES, study
    from reward_models.studies.engine.select import select

    if name is not None:
        for unit in select(study(name), filters or (), quick=quick):
            print(unit.id)
        return
    for one in STUDIES:
        print(f"{one:16} {study(one).title}")
