"""``spatialsim rel3d audit``: what happens when the score of a model of relations is optimised."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def audit(
    model: Annotated[str, typer.Argument(help="Folder of a model of relations, hub:NAME, or truth for the rules.")],
    predicate: Annotated[
        list[str] | None, typer.Option(help="A predicate to audit, as 'to the left of (wrt you)'; may be repeated.")
    ] = None,
    starts: Annotated[int | None, typer.Option(help="Starts for each predicate; 64 by default.")] = None,
    gradient: Annotated[int | None, typer.Option(help="Scores from each start of the ascent; 300 by default.")] = None,
    search: Annotated[int | None, typer.Option(help="Scores from each start of CMA-ES; 3000 by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random; 0 by default.", min=0)] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the report; runs/rel3d/audit/MODEL by default.")] = None,
) -> None:
    """Precision under optimisation: of what gradient and search get the model to call achieved, how much is.

    Writes audit.json and report.md. Exits with 1 if the model's answers are not verdicts.
    """
    from reward_models.auditing.relations import RelationAudit
    from reward_models.studies.audits.tables import resume

    chosen = {
        "predicates": tuple(predicate) if predicate else None,
        "starts": starts,
        "gradient_evaluations": gradient,
        "search_evaluations": search,
        "seed": seed,
    }
    settings: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    folder = out or Path("runs/rel3d/audit") / (Path(model.removeprefix("hub:")).name or "model")
    found = resume(model, folder, RelationAudit.name, **settings)
    for name, text in found["failures"].items():
        print(f"not audited: {name}: {text}")
    for name, text in found["not_run"].items():
        print(f"{name}: {text}")
    print(f"wrote {folder}")
    if found["failures"]:
        raise typer.Exit(1)
