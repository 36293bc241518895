"""``spatialsim rel3d``: spatial relations in 3D: make data, train and test models, run the study, write its report."""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reward_models.cli.paper import Backend, Device, KeepWeights, Quick, Retry, Slurm, SlurmOptions, options_of
from reward_models.cli.questions import questions
from reward_models.cli.relation_agents import agent_app
from reward_models.cli.relation_audit import audit

if TYPE_CHECKING:
    from reward_models.studies.rel3d.runner import Outcome
    from spatialsim_env.relations.rel3d.published import Split

rel3d_app = typer.Typer(no_args_is_help=True, help="Relations of two objects in 3D (Rel3D): data, models, the study.")
rel3d_app.add_typer(agent_app, name="agent")
rel3d_app.command("audit")(audit)
rel3d_app.command("questions")(questions)

RESULTS, WORK = Path("results/rel3d"), Path("runs/rel3d")
QUICK_RESULTS, QUICK_WORK = Path("runs/rel3d-quick/results"), Path("runs/rel3d-quick/work")

Data = Annotated[
    Path, typer.Option(help="A split file, published or generated, or the folder that holds c_0.9_c_0.1.json.")
]
Pictures = Annotated[Path | None, typer.Option(help="Folder of the pictures, for models that see them.")]
Filters = Annotated[
    list[str] | None,
    typer.Option("--filter", help="A run, the beginning of some or a glob: rel3d/relational, 'rel3d/*/full/*'."),
]
Results = Annotated[
    Path | None,
    typer.Option(help=f"Folder of results and of claims; {RESULTS} by default, {QUICK_RESULTS} with --quick."),
]
Work = Annotated[
    Path | None, typer.Option(help=f"Folder of unfinished runs; {WORK} by default, {QUICK_WORK} with --quick.")
]


def _read(data: Path) -> Split:
    """A split file; what is odd about it is said on standard error."""
    from spatialsim_env.relations.rel3d import published

    split = published.load(data)
    _tell(split)
    return split


def _tell(split: Split) -> None:
    """How many records of a file were left out or are odd, by kind, and the first that was left out."""
    out = [problem for problem in split.problems if not problem.kept]
    for what, found in (("left out", out), ("kept", [problem for problem in split.problems if problem.kept])):
        if found:
            kinds = ", ".join(f"{number:,} {kind}" for kind, number in Counter(x.kind for x in found).items())
            print(f"{split.name}: odd records that are {what}: {kinds}", file=sys.stderr)
    if out:
        print(f"{split.name}: the first: {out[0]}", file=sys.stderr)


def _results(quick: bool, results: Path | None) -> Path:
    return results or (QUICK_RESULTS if quick else RESULTS)


@rel3d_app.command("generate")
def generate(
    out: Annotated[Path, typer.Argument(help="Folder to write into; run again to go on.")],
    pairs: Annotated[int, typer.Option(help="Pairs of scenes; a tenth is for tests.", min=1)] = 14_000,
    views: Annotated[int, typer.Option(help="Views of each pair; a pair gives twice as many samples.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
    jobs: Annotated[int, typer.Option(help="Processes; the files do not depend on it.", min=1)] = 1,
    margin: Annotated[float, typer.Option(help="Least margin by which a predicate holds or fails.")] = 0.2,
    settle: Annotated[bool, typer.Option("--settle", help="Let gravity act on the scenes; needs mujoco.")] = False,
    pictures: Annotated[
        str | None, typer.Option(help="Also render every sample at WIDTHxHEIGHT, as 320x180; needs mujoco.")
    ] = None,
) -> None:
    """Write minimally contrastive pairs of our own in the published form. Labels are rules, not human judgements."""
    from spatialsim_env.relations.pairs import generation
    from spatialsim_env.relations.rel3d.published import MAIN

    size = None if pictures is None else size_of(pictures)
    shown = sys.stderr.isatty()

    def tell(done: int, total: int) -> None:
        if shown:
            print(f"\r{done} of {total} parts", end="\n" if done == total else "", file=sys.stderr, flush=True)

    folder = generation.generate(
        out, pairs, seed, jobs=jobs, views=views, margin=margin, settle=settle, pictures=size, progress=tell
    )
    print(f"{folder / MAIN}: {pairs:,} pairs, {2 * views * pairs:,} samples; labels are rules, not human judgements")


def size_of(text: str) -> tuple[int, int]:
    """Width and height from "320x180".

    Raises:
        ValueError: another form.
    """
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        raise ValueError(f"--pictures is {text!r}; accepted is WIDTHxHEIGHT, as 320x180")
    return int(parts[0]), int(parts[1])


@rel3d_app.command("train")
def train(
    model: Annotated[str, typer.Argument(help="A model; a wrong name lists them.")],
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the run; run again to resume.")],
    pictures: Pictures = None,
    pixels: Annotated[int, typer.Option(help="Height and width of pictures.", min=32)] = 224,
    epochs: Annotated[int | None, typer.Option(help="At most; the published number by default.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Seed of weights and order.")] = 0,
    device: Device = "cpu",
) -> None:
    """Train a model of relations: the published protocol. The epoch that is best on the validation samples is kept."""
    from reward_models.training.rel3d import RelationConfig, best_epoch, read_log
    from reward_models.training.rel3d import train as train_model

    limit = {} if epochs is None else {"epochs": epochs}
    config = RelationConfig.published(model, seed=seed, pixels=pixels, **limit)
    trained = train_model(config, _read(data), out, device=device, pictures=pictures, keep_every=10.0)
    log = read_log(out)
    best = log[best_epoch([row.validation_accuracy for row in log])]
    print(
        f"{out}: {model}, {trained.n_weights:,} weights, validation accuracy {best.validation_accuracy:.4f} after "
        f"epoch {best.epoch} of {len(log)}; spatialsim rel3d evaluate {out} --data {data} says more"
    )


@rel3d_app.command("evaluate")
def evaluate(
    path: Annotated[Path, typer.Argument(help="Folder of a trained model.")],
    data: Data,
    pictures: Pictures = None,
    part: Annotated[str, typer.Option(help="train, valid or test.")] = "test",
    device: Device = "cpu",
) -> None:
    """Accuracy of a trained model on a split file: the mean over predicates, pairs, and each predicate."""
    from reward_models.measuring import relation_accuracy

    split = _read(data)
    found = relation_accuracy.of_folder(path, split, part, device=device, pictures=pictures)
    low, high = found["interval"]
    pairs = found["pair_interval"]
    print(f"{path} on {part} of {split.name}: {sum(found['total']):,} samples, 95 % intervals by bootstrap over pairs")
    print(f"  mean over predicates {found['mean']:.4f} ({low:.4f} to {high:.4f})")
    if pairs is not None:
        print(f"  both of a pair right {found['pair_mean']:.4f} ({pairs[0]:.4f} to {pairs[1]:.4f}); chance 0.25")
    for name, correct, total in zip(split.predicates, found["correct"], found["total"], strict=True):
        if total:
            print(f"  {name:26} {correct / total:.4f} of {total:,}")


@rel3d_app.command("run")
def run(
    data: Data,
    filters: Filters = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Runs at a time, one thread each; by default 1, with ray a run for each CPU.", min=1),
    ] = None,
    backend: Backend = "loky",
    slurm: Slurm = None,
    slurm_option: SlurmOptions = None,
    pictures: Pictures = None,
    results: Results = None,
    work: Work = None,
    device: Device = "cpu",
    retry: Retry = False,
    keep_weights: KeepWeights = False,
    quick: Quick = False,
) -> None:
    """Run the study or a part of it. Run again, anywhere, it does what is missing and goes on with what was killed.

    A run writes its row last, to RESULTS/rows. Several processes may run at once: a run is claimed by a file lock in
    RESULTS. Exits with 1 if a run failed, now or before.
    """
    from reward_models.studies.paper import launch
    from reward_models.studies.paper.runner import FAILED
    from reward_models.studies.rel3d import experiments, runner

    if slurm is not None and (jobs is not None or backend != "loky"):
        raise ValueError("--slurm and --jobs or --backend contradict each other; accepted is one of them")
    if slurm is None and slurm_option:
        raise ValueError("--slurm-option goes with --slurm alone")
    at_once = launch.jobs_at_once(jobs, backend)
    chosen = experiments.select(filters or (), quick=quick)
    here = runner.Study(
        data, _results(quick, results), work or (QUICK_WORK if quick else WORK), pictures, device, retry, keep_weights
    )  # fmt: skip
    here.check(chosen)
    _tell(here.split)
    if slurm is not None:
        do_all = partial(runner.run_all, here=here)
        options = options_of(slurm_option or ())
        submitted = launch.submit_parts(do_all, chosen, slurm, here.work, options, gpu=device.startswith("cuda"))
        names = ", ".join(str(job.job_id) for job in submitted)
        print(
            f"submitted {len(submitted)} jobs for {len(chosen)} runs: {names}; logs in {here.work / launch.SUBMITTED}"
        )
        return
    do = partial(runner.run, here=here)
    alone = partial(runner.run, here=here, progress=None)
    ended = map(alone, chosen) if at_once == 1 else launch.in_parallel(do, chosen, at_once, backend)
    if launch.told(ended, len(chosen), _figures)[FAILED]:
        raise typer.Exit(1)


def _figures(outcome: Outcome) -> str:
    """What a run found."""
    row = outcome.row
    assert row is not None
    test, epochs = row["accuracy"]["test"], len(row["log"])
    said = f"accuracy {test['mean']:.4f}" + ("" if test["pair_mean"] is None else f", pairs {test['pair_mean']:.4f}")
    time = f"{epochs} epochs, {outcome.seconds:.0f} s" if outcome.new else "there already"
    return f"{said}, {time}"


@rel3d_app.command("list")
def list_runs(
    filters: Filters = None,
    results: Results = None,
    each: Annotated[bool, typer.Option("--runs", help="A line for each run, too.")] = False,
    quick: Quick = False,
) -> None:
    """The runs of the study: how many of each model are done, failed, running and missing."""
    from reward_models.studies.paper.runner import STATES
    from reward_models.studies.rel3d import experiments, runner

    folder = _results(quick, results)
    chosen = experiments.select(filters or (), quick=quick)
    states = {run.id: runner.state(run, folder) for run in chosen}
    if each:
        for name, state in states.items():
            print(f"{name:45} {state}")
    print(f"{'runs':28}" + "".join(f"{state:>9}" for state in STATES))
    for variant in (*dict.fromkeys(run.variant for run in chosen), "all"):
        counts = Counter(states[run.id] for run in chosen if variant in ("all", run.variant))
        print(f"{variant:28}" + "".join(f"{counts[state]:>9,}" for state in STATES))


@rel3d_app.command("report")
def report(
    results: Results = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the report; RESULTS/report by default.")] = None,
    quick: Quick = False,
) -> None:
    """Rebuild all tables and figures from the rows of RESULTS."""
    from reward_models.studies.rel3d import report as writer

    folder = _results(quick, results)
    print(f"wrote {writer.write(folder, out or folder / 'report', quick=quick)}")
