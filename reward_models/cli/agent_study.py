"""``spatialsim agent study``: run the study of agents, see how far it is, write its report."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from reward_models.studies.agents.runner import Outcome

study_app = typer.Typer(
    no_args_is_help=True, help="What agents learn from rewards, learned and true, as a list of runs."
)

RESULTS, WORK = Path("results/agents"), Path("runs/agents")
QUICK_RESULTS, QUICK_WORK = Path("runs/agents-quick/results"), Path("runs/agents-quick/work")

Filters = Annotated[
    list[str] | None,
    typer.Option("--filter", help="A run, the beginning of some or a glob: agents/discrim_n3, 'agents/*/sparse/*'."),
]
Quick = Annotated[bool, typer.Option("--quick", help="The small study: too little to learn from, to try it all.")]
Results = Annotated[
    Path | None,
    typer.Option(help=f"Folder of results and of claims; {RESULTS} by default, {QUICK_RESULTS} with --quick."),
]
Work = Annotated[
    Path | None, typer.Option(help=f"Folder of networks and agents; {WORK} by default, {QUICK_WORK} with --quick.")
]


def _results(quick: bool, results: Path | None) -> Path:
    return results or (QUICK_RESULTS if quick else RESULTS)


@study_app.command("run")
def run(
    filters: Filters = None,
    jobs: Annotated[int, typer.Option(help="Runs at a time, one thread each.", min=1)] = 1,
    results: Results = None,
    work: Work = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed.")] = False,
    quick: Quick = False,
) -> None:
    """Run the study or a part of it. Run again, it does what is missing and goes on with what was killed.

    A run writes its row last, to RESULTS/rows. Several processes may run at once: a run is claimed by a file lock in
    RESULTS. Exits with 1 if a run failed, now or before.
    """
    from reward_models.studies.agents import runner
    from reward_models.studies.agents import runs as study
    from reward_models.studies.paper import launch
    from reward_models.studies.paper.runner import FAILED

    chosen = study.select(filters or (), quick=quick)
    here = runner.Study(_results(quick, results), work or (QUICK_WORK if quick else WORK), quick, retry)
    here.check(chosen)
    do = partial(runner.run, here=here)
    ended = map(do, chosen) if jobs == 1 else launch.in_parallel(do, chosen, jobs)
    if launch.told(ended, len(chosen), _figures)[FAILED]:
        raise typer.Exit(1)


def _figures(outcome: Outcome) -> str:
    """What a run found."""
    row = outcome.row
    assert row is not None
    shares = {"truly achieved": row["evaluation"].get("success"), "accuracy on 3-8": row["accuracy"].get("3-8")}
    said = [f"{title} {found['hits'] / found['total']:.3f}" for title, found in shares.items() if found is not None]
    return f"{', '.join(said)}, {row['seconds']:.0f} s" + ("" if outcome.new else ", there already")


@study_app.command("status")
def status(
    filters: Filters = None,
    results: Results = None,
    each: Annotated[bool, typer.Option("--runs", help="A line for each run, too.")] = False,
    quick: Quick = False,
) -> None:
    """How many runs of each part of the study are done, failed, running and missing."""
    from reward_models.studies.agents import runner
    from reward_models.studies.agents import runs as study
    from reward_models.studies.paper.runner import STATES

    chosen = study.select(filters or (), quick=quick)
    here = runner.Study(_results(quick, results), quick=quick)
    states = {run.id: runner.state(run, here) for run in chosen}
    if each:
        for name, state in states.items():
            print(f"{name:45} {state}")
    parts = dict.fromkeys(
        "/".join(name.split("/")[:2]) if name.startswith("agents") else name.split("/")[0] for name in states
    )
    print(f"{'runs':28}" + "".join(f"{state:>9}" for state in STATES))
    for part in (*parts, "all"):
        counts = Counter(state for name, state in states.items() if part == "all" or f"{name}/".startswith(f"{part}/"))
        print(f"{part:28}" + "".join(f"{counts[state]:>9,}" for state in STATES))


@study_app.command("report")
def report(
    results: Results = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the report; RESULTS by default.")] = None,
    quick: Quick = False,
) -> None:
    """Rebuild tables and learning curves from the rows of RESULTS."""
    from reward_models.studies.agents import report as study_report
    from reward_models.studies.paper.rows import FOLDER

    folder = _results(quick, results)
    if not (folder / FOLDER).is_dir():
        raise FileNotFoundError(f"{folder / FOLDER} does not exist; accepted is a folder that agent study run wrote")
    print(f"wrote {study_report.write(folder, out or folder, quick=quick)}")
