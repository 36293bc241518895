"""``spatialsim hub``: the models that come with the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Models that come with the package: hub:NAME is a reward and a model.")

Agents = Annotated[
    bool, typer.Option(help="Train agents for the audit, on it and on the truth; those on the truth are kept in WORK.")
]
Name = Annotated[str, typer.Argument(help="A shipped model, as matching; a wrong name lists them.")]


@app.command("list")
def list_models() -> None:
    """Every shipped model: weights, accuracy on 3-8, 9-20 and 21-30 objects, microseconds a pair, what it is."""
    from reward_models.judges import shipped

    for name in shipped.names():
        card = shipped.card(name)
        shares = " ".join(f"{part['correct'] / part['total']:.4f}" for part in card["accuracy"].values())
        times = " and ".join(f"{value:g} us of {size}" for size, value in card["microseconds"].items())
        print(f"hub:{name:16} {card['n_weights']:>6,} weights  {shares}  {times}  {card['about']}")


@app.command()
def show(name: Name) -> None:
    """The card of a shipped model, as JSON."""
    from reward_models.judges import shipped

    print(json.dumps(shipped.card(name), indent=2))


@app.command()
def targets(
    name: Annotated[str | None, typer.Argument(help="A shipped model; all by default.")] = None,
) -> None:
    """Print a card's targets: value, target, and the verdict."""
    from reward_models.hub.targets import card_targets
    from reward_models.judges import shipped

    for one in shipped.names() if name is None else (name,):
        for target in card_targets(shipped.card(one)):
            print(f"hub:{one.removeprefix(shipped.PREFIX)}  {target}")


@app.command()
def verify(
    name: Annotated[str | None, typer.Argument(help="A shipped model; all by default.")] = None,
    samples: Annotated[int, typer.Option(help="Samples per range.", min=1)] = 2_000,
    seed: Annotated[int, typer.Option(help="Seed of the samples; another than the card's.", min=0)] = 1,
) -> None:
    """Find a part of a card anew: per line recorded, found, fits. Exit code 1 if a line does not fit."""
    from reward_models.hub.verify import verify as verify_card
    from reward_models.judges import shipped

    fits = True
    for one in shipped.names() if name is None else (name,):
        for line in verify_card(one, samples, seed):
            word = "fits" if line.fits else "DOES NOT FIT"
            print(f"hub:{one.removeprefix(shipped.PREFIX)}  {line.what}: {line.recorded} / {line.found} / {word}")
            fits &= line.fits
    if not fits:
        raise typer.Exit(1)


@app.command()
def build(
    name: Annotated[str, typer.Argument(help="A recipe, as matching; a wrong name lists them.")],
    out: Annotated[
        Path, typer.Option(help="Folder that gets NAME; reward_models/hub/weights of a checkout ships it.")
    ] = Path("runs/hub/built"),
    work: Annotated[Path, typer.Option(help="Folder of trainings; run again to resume.")] = Path("runs/hub/training"),
    samples: Annotated[int, typer.Option(help="Samples per range of the card's accuracy.", min=1)] = 10_000,
    hard_samples: Annotated[
        int, typer.Option(help="Samples per task and range of the hard suite; 0 leaves it out.", min=0)
    ] = 1_000,
    audit: Annotated[bool, typer.Option(help="Audit it: some minutes.")] = True,
    agent: Agents = True,
    pictures: Annotated[Path | None, typer.Option(help="Folder that gets NAME, small pictures of the audit.")] = None,
) -> None:
    """Train a model of the hub by its recipe, measure and audit it, and write it with its card and checksums."""
    from reward_models.studies.audits.cards import build as build_model

    sizes = {"samples": samples, "hard_samples": hard_samples}
    home = build_model(name, out, work, **sizes, audited=audit, agent=agent, pictures=pictures, say=_say)
    print(f"{home}: whole")


@app.command()
def truth(
    out: Annotated[Path, typer.Option(help="The file.")] = Path("results/audit/truth.json"),
    work: Annotated[Path, typer.Option(help="Folder of trainings, as of build.")] = Path("runs/hub/training"),
    samples: Annotated[int, typer.Option(help="Samples per range of the accuracy.", min=1)] = 10_000,
    agent: Agents = True,
) -> None:
    """Write what a card says of a model, of the truth: accuracy and audit."""
    from reward_models.studies.audits.cards import build_truth

    print(f"{build_truth(out, work, samples=samples, agent=agent, say=_say)}: whole")


def _say(line: str) -> None:
    """Print at once, as a build takes minutes."""
    print(line, flush=True)
