"""The command line, ``spatialsim``. Each command is a thin call of the function that does the work."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from reward_models.cli.agents import app as agent_app
from reward_models.cli.arguments import objects
from reward_models.cli.auditing import audit
from reward_models.cli.hard_suite import hard
from reward_models.cli.hub import app as hub_app
from reward_models.cli.relations import rel3d_app
from reward_models.cli.rollouts import rollouts
from reward_models.studies.engine.commands import app as study_app
from spatialsim_env.arrangements import negatives

EXPECTED = (
    ValueError,
    TypeError,
    FileNotFoundError,
    FileExistsError,
    ImportError,
    RuntimeError,
    OSError,
    ArithmeticError,
)

INTERRUPTED = 130  # exit code after Ctrl-C

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Goals that are arrangements of objects: worlds, the truth, learned rewards, and what they are worth.\n\n"
    "Start with: spatialsim demo --quick",
)
app.add_typer(agent_app, name="agent")
app.add_typer(hub_app, name="hub")
app.add_typer(rel3d_app, name="rel3d")
app.add_typer(study_app, name="study")
app.command()(rollouts)
app.command()(audit)
app.command()(hard)

Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Negative = Annotated[
    str, typer.Option(help=f"Wrong configurations: {', '.join(negatives.NAMES)}, or several joined by +.")
]
Objects = Annotated[str, typer.Option(help="Objects per scene, as 5 or 3-8.")]


@app.command()
def demo(
    quick: Annotated[
        bool, typer.Option(help="Two minutes in place of five: fewer samples, one agent a reward.")
    ] = False,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder; runs/demo or runs/demo-quick by default.")] = None,
) -> None:
    """Train networks, train an agent on each one's reward, and show what they claim beside what is true."""
    from reward_models.demo import DemoConfig, run

    config = replace(DemoConfig.quick() if quick else DemoConfig(), seed=seed)
    run(config, out or Path("runs/demo-quick" if quick else "runs/demo"))


@app.command()
def generate(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Data sets or patterns, as 'discrimination/*/test'. Without one, all are listed."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All data sets of the paper, without variants.")] = False,
    only_list: Annotated[bool, typer.Option("--list", help="Only list them, with their sizes.")] = False,
    seed: Seed = 0,
    size: Annotated[int | None, typer.Option(help="Samples per set; its own number by default.", min=1)] = None,
    out: Annotated[Path, typer.Option(help="Folder to write into.")] = Path("data"),
) -> None:
    """Write data sets of the paper and variants: NAME.npz and its manifest NAME.json.

    Run again, it makes what is missing.
    """
    from spatialsim_env.arrangements.datasets import named

    if everything and names:
        raise ValueError(f"--all and {names[0]} contradict each other; accepted is one of them")
    chosen = list(named.PAPER) if everything else named.select(names or [])
    if only_list or not chosen:
        for name in chosen or named.NAMES:
            samples = size or named.find(name).size
            print(f"{name:44} {samples:>8,} samples {named.expected_bytes(name, size) / 1e6:>8.1f} MB")
        return
    total = sum(named.expected_bytes(name, size) for name in chosen)
    print(f"{len(chosen)} data set{'s' * (len(chosen) > 1)}, some {total / 1e6:,.1f} MB, into {out}")
    for name in chosen:
        if named.is_made(name, out, seed, size):
            print(f"{out / name}.json: there already")
            continue
        manifest = named.generate(name, out, seed, size)
        megabytes = manifest.with_suffix(".npz").stat().st_size / 1e6
        print(f"{manifest}: {named.read_manifest(manifest)['samples']:,} samples, {megabytes:.1f} MB")


@app.command("export")
def export_set(
    path: Annotated[Path, typer.Argument(help="A generated set, as data/discrimination/3-8/test.")],
    out: Annotated[Path, typer.Option(help="File to write; .safetensors for torch.")],
    to: Annotated[str, typer.Option("--format", help="text, the authors' format, or torch.")] = "text",
) -> None:
    """Write a data set for other programs: the authors' text files, or tensors."""
    from spatialsim_env.arrangements.datasets import shards, text_format

    if to not in ("text", "torch"):
        raise ValueError(f"--format is {to!r}; accepted are text and torch")
    samples = shards.load(path)
    if to == "torch":
        from reward_models.training import torch_datasets

        torch_datasets.write(samples, out)
    else:
        text_format.write(samples, out)
    print(f"{out}: {len(samples):,} samples, {out.stat().st_size / 1e6:.1f} MB")


@app.command("import")
def import_set(
    file: Annotated[Path, typer.Argument(help="A file of the authors' archive, text or JSON.")],
    out: Annotated[Path, typer.Option(help="The set to write, as data/published/CDS_3_8.")],
) -> None:
    """Make a data set of a file in the authors' format."""
    from spatialsim_env.arrangements.datasets import named, text_format
    from spatialsim_env.files import sha256

    samples = text_format.read(file)
    manifest = named.save(samples, out, {"source": file.name, "source_sha256": sha256(file)})
    print(f"{manifest}: {len(samples):,} samples, {samples.label.mean():.3f} of them positive")


@app.command()
def train(
    model: Annotated[
        str, typer.Argument(help="A model; a wrong name lists them, those in _single are for Identification.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run; run again to resume.")],
    n_objects: Annotated[
        str | None, typer.Option(help="Objects per scene: 3-8 by default, or one number, 5, for Identification.")
    ] = None,
    negative: Negative = "redrawn",
    samples: Annotated[int | None, typer.Option(help="Samples per stage; the paper's number by default.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs per stage; the paper's number by default.")] = None,
    curriculum: Annotated[
        bool | None, typer.Option(help="The paper's five stages of growing rotations; the model's own way by default.")
    ] = None,
    reference_seed: Annotated[int | None, typer.Option(help="Reference scene of Identification; 0 by default.")] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Folder of generated sets, as data/discrimination/3-8, which needs the curriculum; or rollouts:FOLDER."
        ),
    ] = None,
    seed: Seed = 0,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    tensorboard: Annotated[bool, typer.Option(help="Also log for TensorBoard.")] = False,
) -> None:
    """Train a network to recognise configurations: the paper's protocol, two epochs at all rotations for matching."""
    from reward_models import models
    from reward_models.training.config import TrainingConfig
    from reward_models.training.protocol import read_log
    from reward_models.training.protocol import train as train_model

    if model not in models.REGISTRY:
        raise ValueError(f"model is {model!r}; accepted are {', '.join(models.REGISTRY)}")
    kind = models.REGISTRY[model]
    changes: dict[str, Any] = {"model": model, "negative": negative, "seed": seed, "data": data}
    wanted = {"samples_per_stage": samples, "epochs_per_stage": epochs}
    changes |= {name: value for name, value in wanted.items() if value is not None}
    if not kind.two_inputs:
        if curriculum:
            raise ValueError(f"--curriculum and {model} contradict each other: Identification has one stage")
        n = objects(n_objects or "5")
        config = TrainingConfig.identification(n, reference_seed=reference_seed or 0, **changes)  # type: ignore[arg-type]
    elif reference_seed is not None:
        raise ValueError(f"--reference-seed and {model} contradict each other: it has no one reference scene")
    else:
        make = TrainingConfig if (kind.curriculum if curriculum is None else curriculum) else TrainingConfig.plain
        config = make(n_objects=objects(n_objects or "3-8"), **changes)
    trained = train_model(config, out, device=device, tensorboard=tensorboard)
    last = read_log(out)[-1]
    print(
        f"{out}: {model}, {trained.n_weights:,} weights, validation accuracy {last.validation_accuracy:.4f}; "
        f"spatialsim evaluate {out} says more"
    )


@app.command()
def evaluate(
    path: Annotated[Path, typer.Argument(help="Folder of a trained network.")],
    size: Annotated[int, typer.Option(help="Test samples per range.", min=1)] = 10_000,
    negative: Negative = "redrawn",
    seed: Seed = 0,
) -> None:
    """Accuracy of a network on fresh samples: 3-8, 9-20 and 21-30 objects, beside the truth's own."""
    from reward_models import load
    from reward_models.measuring.evaluation import accuracy_by_range, accuracy_on, truth_on
    from spatialsim_env.arrangements.tasks import RANGES, Discrimination, Identification

    model = load(path)
    print(f"{path}: {model.kind}, {model.module.n_weights:,} weights; accuracy on {size:,} samples, 95 % interval")
    if model.two_inputs:
        for (low, high), accuracy in zip(
            RANGES, accuracy_by_range(model.module, size, seed, negative).values(), strict=True
        ):
            truth = truth_on(Discrimination((low, high), negative=negative), size, seed)
            print(f"  {low}-{high} objects: {accuracy}; the truth {truth.value:.4f}")
        return
    training = model.task.get("training")
    if training is None:
        raise ValueError(f"{path} does not say which reference scene it was trained on; accepted are trained networks")
    task = Identification(training["n_objects"], negative=negative, reference_seed=training["reference_seed"])
    truth = truth_on(task, size, seed)
    print(f"  {task.n_objects} objects: {accuracy_on(model.module, task, size, seed)}; the truth {truth.value:.4f}")


@app.command()
def render(
    out: Annotated[Path, typer.Argument(help="A .png of a start, or a .gif or .mp4 of an episode.")],
    n_objects: Objects = "3-8",
    seed: Seed = 0,
) -> None:
    """Draw goal and arena side by side, with random actions; spatialsim agent watch shows a trained agent."""
    from reward_models.agents.configs import AgentConfig
    from reward_models.agents.evaluation import film
    from spatialsim_env.core.screen import save_frames

    frames = film("random", AgentConfig("random", env_kwargs={"n_objects": objects(n_objects)}), seed=seed)
    if out.suffix.lower() == ".png":
        frames = frames[:1]
    save_frames(frames, out)
    print(f"wrote {out}, {len(frames)} frame{'s' * (len(frames) > 1)}")


@app.command()
def play(
    n_objects: Objects = "3-8",
    criterion: Annotated[str, typer.Option(help="similarity or positions.")] = "similarity",
    seed: Annotated[int | None, typer.Option(help="Seed of the goals.")] = None,
) -> None:
    """Move the objects yourself, with mouse and keys, and watch the truth's distance."""
    from spatialsim_env.arrangements.play import play as play_by_hand

    play_by_hand(seed=seed, n_objects=objects(n_objects), criterion=criterion)


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 an error with its reason on one line, 2 wrong usage, 130 stopped."""
    try:
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:  # what typer makes of Ctrl-C
            print("stopped; the same command resumes from the last state on disk", file=sys.stderr)
        raise
    except EXPECTED as error:
        remedy = '; pip install "spatialsim-env[all]" brings it' if isinstance(error, ModuleNotFoundError) else ""
        print(f"spatialsim: {error}{remedy}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
