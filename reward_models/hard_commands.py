"""``spatialsim hard``: what a model makes of minimally wrong configurations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def hard(
    path: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a trained network of two inputs.")],
    task: Annotated[
        list[str] | None, typer.Option(help="A task, as swapped; repeatable. All by default; a wrong name lists them.")
    ] = None,
    n_objects: Annotated[
        list[str] | None, typer.Option(help="Objects per scene, as 5 or 3-8; repeatable. 3-8 to 100 by default.")
    ] = None,
    size: Annotated[int, typer.Option(help="Samples per task and range.", min=2)] = 2_000,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A JSON file to write the rows to as well.")] = None,
) -> None:
    """Accuracy and detection threshold on the hard suite, beside the truth and rules without learning."""
    from reward_models import hard_cases, load
    from reward_models.cli import objects
    from spatialsim_env import hard_suite
    from spatialsim_env.files import replaced

    model = load(path)
    if not model.two_inputs:
        raise ValueError(f"{path}: {model.kind} knows one reference scene; accepted are models that compare two scenes")
    ranges = hard_suite.RANGES if n_objects is None else [objects(text) for text in n_objects]
    rows = hard_cases.run(model, model.kind, tasks=task or hard_suite.NAMES, objects=ranges, size=size, seed=seed)
    print(f"{path}: {model.kind}, {model.module.n_weights:,} weights; {size:,} samples a line, intervals of 95 %\n")
    print(hard_cases.table(rows))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with replaced(out) as temporary:
            temporary.write_text(json.dumps(hard_cases.to_json(rows), indent=2) + "\n")
        print(f"\n{out}: {len(rows):,} rows")
