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
    from reward_models.cli.arguments import objects
    from reward_models.measuring import hard_cases
    from reward_models.studies.engine import report, rows
    from reward_models.studies.engine.study import Results
    from reward_models.studies.hard_suite import work
    from reward_models.studies.hard_suite.runs import HardUnit
    from reward_models.studies.hard_suite.tables import STUDY
    from spatialsim_env.arrangements import hard_suite

    ranges = hard_suite.RANGES if n_objects is None else [objects(text) for text in n_objects]
    unit = HardUnit(name or work.name_of(model), model, task or hard_suite.NAMES, ranges, size, seed)
    row = work.judge(unit, STUDY.stamp())
    sizes = sorted({result.total for result in row.results})
    samples = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    kind, n_weights = row.model["kind"], row.model["n_weights"]
    print(f"{model}: {kind}, {n_weights:,} weights; {samples} samples a line, intervals of 95 %\n")
    print(hard_cases.table(row.results))
    if out is not None:
        path = rows.write(STUDY, out, unit, [row])
        print(f"\n{path}: {len(row.rows):,} rows")
        models = {one.id: one for file in sorted(out.glob("*.json")) for one in rows.read_file(STUDY, file)}
        print(report.write(STUDY.report(Results(models, False, (), out)), out))
