"""``spatialsim rel3d``: spatial relations in 3D: make make data, train and test models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reward_models.cli.questions import questions
from reward_models.cli.relation_agents import agent_app
from reward_models.cli.relation_audit import audit

if TYPE_CHECKING:
    from spatialsim_env.relations.rel3d.published import Split

rel3d_app = typer.Typer(no_args_is_help=True, help="Relations of two objects in 3D (Rel3D): data and models.")
rel3d_app.add_typer(agent_app, name="agent")
rel3d_app.command("audit")(audit)
rel3d_app.command("questions")(questions)

Data = Annotated[
    Path, typer.Option(help="A split file, published or generated, or the folder that holds c_0.9_c_0.1.json.")
]
Pictures = Annotated[Path | None, typer.Option(help="Folder of the pictures, for models that see them.")]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]


def _read(data: Path) -> Split:
    """Load a split file; warn of odd records on standard error."""
    from reward_models.studies.rel3d.work import warn_of_problems
    from spatialsim_env.relations.rel3d import published

    split = published.load(data)
    warn_of_problems(split)
    return split


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
