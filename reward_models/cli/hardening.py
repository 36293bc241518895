"""``spatialsim ablation``: what each ingredient of hardening buys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def ablation(
    model: Annotated[str, typer.Argument(help="matching or mpgnn.")],
    variant: Annotated[
        list[str] | None, typer.Option(help="Up to which part the replay goes; repeatable. All by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
    out: Annotated[Path, typer.Option(help="Folder of the rows.")] = Path("results/hardening"),
    work: Annotated[Path, typer.Option(help="Folder of the trainings; they go on where they stopped.")] = Path(
        "runs/hardening"
    ),
) -> None:
    """Harden variants of a network, each with one ingredient more, and write a row each."""
    from reward_models.studies.hardening import ablation as ablations

    names = variant or ablations.variants_of(model)
    for path in ablations.ablation(model, names, out, work, seed=seed):
        print(path)
