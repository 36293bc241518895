"""``spatialsim hard``: what a model makes of minimally wrong configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def hard(
    model: Annotated[str, typer.Argument(help="hub:NAME, or the folder of a trained network of two inputs.")],
    task: Annotated[
        list[str] | None, typer.Option(help="A task, as swapped; repeatable. All by default; a wrong name lists them.")
    ] = None,
    n_objects: Annotated[
        list[str] | None, typer.Option(help="Objects per scene, as 5 or 3-8; repeatable. 3-8 to 100 by default.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Samples per task and range; 10,000 of 3-8 to 400 of 100 by default.", min=2)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    name: Annotated[str | None, typer.Option(help="Of the model; that of the hub or its folder by default.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for the rows, NAME.json, and the report of all rows in it.")
    ] = None,
) -> None:
    """Accuracy and detection threshold on the hard suite, beside the ideal observer, the truth and simple rules."""
    from reward_models.cli.main import objects
    from reward_models.measuring import hard_cases
    from reward_models.studies.hard_suite import report as hard_report
    from reward_models.studies.hard_suite import rows as hard_rows
    from spatialsim_env.arrangements import hard_suite

    ranges = hard_suite.RANGES if n_objects is None else [objects(text) for text in n_objects]
    found = hard_rows.judge(model, name, tasks=task or hard_suite.NAMES, objects=ranges, size=size, seed=seed)
    about, rows = found.about["model"], found.rows
    sizes = sorted({row.total for row in rows})
    samples = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    print(f"{model}: {about['kind']}, {about['n_weights']:,} weights; {samples} samples a line, intervals of 95 %\n")
    print(hard_cases.table(rows))
    if out is not None:
        print(f"\n{hard_rows.write(out, found)}: {len(rows):,} rows")
        print(f"{hard_report.write(out)}")
