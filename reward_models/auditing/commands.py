"""``spatialsim audit``: what happens when the score of a model is optimised."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from reward_models.auditing.targets import Report


def audit(
    model: Annotated[str, typer.Argument(help="hub:NAME, the folder of a network, or truth.")],
    n_objects: Annotated[
        list[int] | None, typer.Option(help="Objects per scene; repeatable. 3, 5, 8 and 20 by default.", min=2)
    ] = None,
    moves: Annotated[
        list[str] | None, typer.Option(help="What gradient and search change: positions, or poses, angles too. Both.")
    ] = None,
    starts: Annotated[int, typer.Option(help="Starts of gradient and search.", min=1)] = 256,
    gradient: Annotated[int, typer.Option(help="Scores from each start that the ascent may ask for.", min=2)] = 500,
    search: Annotated[int, typer.Option(help="Scores from each start that the search may ask for.", min=2)] = 10_000,
    agent: Annotated[
        bool, typer.Option(help="Train agents too, on the model and on the truth: minutes for each number of objects.")
    ] = True,
    criterion: Annotated[str, typer.Option(help="The truth's: similarity or positions.")] = "similarity",
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with the card of a shipped model, gradient and search alone.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the report; runs/audit/MODEL by default.")] = None,
) -> None:
    """Precision under optimisation: of what gradient, search and agent get the model to call achieved, how much is.

    Writes audit.json, report.md and pictures; prints each target. Exits with 1 if the model's answers are not verdicts,
    or, with --check, if the card is not reproduced.
    """
    import reward_models

    recorded = _card(model) if check else None
    chosen = {"n_objects": n_objects, "moves": moves}
    changes: dict[str, Any] = {name: tuple(values) for name, values in chosen.items() if values}
    found = reward_models.audit(
        model,
        out=out or Path("runs/audit") / (Path(model.removeprefix("hub:")).name or "model"),
        progress=print,
        starts=starts,
        gradient_evaluations=gradient,
        search_evaluations=search,
        agent=agent and not check,
        criterion=criterion,
        seed=seed,
        **changes,
    )
    print()
    if not _said(found, recorded):
        raise typer.Exit(1)


def _card(model: str) -> Report:
    """The audit that the card of a shipped model holds.

    Raises:
        ValueError: not a shipped model, or its card holds none.
    """
    from reward_models.hub import shipped

    if not shipped.is_name(model):
        raise ValueError(f"--check compares with a card, and {model!r} has none; accepted is {shipped.PREFIX}NAME")
    recorded = shipped.card(model)["audit"]
    if recorded is None:
        raise ValueError(f"the card of {model} holds no audit to compare with")
    return recorded


def _said(found: Report, recorded: Report | None) -> bool:
    """Print what was found; whether all is well."""
    from reward_models.auditing.targets import compare, targets

    for name, text in found["failures"].items():
        print(f"not audited: {name}: {text}")
    for name, text in found["not_run"].items():
        print(f"{name}: {text}")
    for target in targets(found):
        print(target)
    if recorded is None:
        return not found["failures"]
    differences = compare(found, recorded)
    for line in differences:
        print(f"differs from the card: {line}")
    if not differences:
        print(f"the card is reproduced: {len(found['rows'])} rows within their intervals")
    return not differences
