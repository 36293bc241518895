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
    starts: Annotated[int | None, typer.Option(help="Starts of gradient and search; 256 by default.", min=1)] = None,
    gradient: Annotated[
        int | None, typer.Option(help="Scores from each start that the ascent may ask for; 500 by default.", min=2)
    ] = None,
    search: Annotated[
        int | None, typer.Option(help="Scores from each start that the search may ask for; 10,000 by default.", min=2)
    ] = None,
    agent: Annotated[
        bool, typer.Option(help="Train agents too, on the model and on the truth: minutes for each number of objects.")
    ] = True,
    criterion: Annotated[
        str | None, typer.Option(help="The truth's: similarity or positions. Similarity by default.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random; 0 by default.", min=0)] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Compare with the card of a shipped model, gradient and search alone; settings are the card's.",
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the report; runs/audit/MODEL by default.")] = None,
) -> None:
    """Precision under optimisation: of what gradient, search and agent get the model to call achieved, how much is.

    Writes audit.json, report.md and pictures; prints each target. Run again, it does what is missing. Exits with 1 if
    the model's answers are not verdicts,
    or, with --check, if the card is not reproduced.
    """
    import reward_models
    from reward_models.studies.audits.tables import resume

    card = _card(model) if check else None
    chosen = {
        "n_objects": n_objects or None,
        "moves": moves or None,
        "starts": starts,
        "gradient_evaluations": gradient,
        "search_evaluations": search,
        "criterion": criterion,
        "seed": seed,
    }
    settings: dict[str, Any] = {} if card is None else dict(card["audit"]["settings"])
    settings |= {name: value for name, value in chosen.items() if value is not None}
    settings["agent"] = agent and not check
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    folder = out or Path("runs/audit") / (Path(model.removeprefix("hub:")).name or "model")
    if check:
        found = reward_models.audit(model, out=folder, progress=print, **settings)
    else:
        found = resume(model, folder, **settings)
    print()
    if not _print_comparison(found, card):
        raise typer.Exit(1)


def _card(model: str) -> Report:
    """The card of a shipped model that was audited.

    Raises:
        ValueError: not a shipped model, or its card holds none.
    """
    from reward_models.judges import shipped

    if not shipped.is_name(model):
        raise ValueError(f"--check compares with a card, and {model!r} has none; accepted is {shipped.PREFIX}NAME")
    card = shipped.card(model)
    if card["audit"] is None:
        raise ValueError(f"the card of {model} holds no audit to compare with")
    return card


def _print_comparison(found: Report, card: Report | None) -> bool:
    """Print what was found, and beside it what only the card says; whether all is well."""
    from reward_models.auditing.targets import compare, targets
    from reward_models.hub.targets import card_targets

    for name, text in found["failures"].items():
        print(f"not audited: {name}: {text}")
    for name, text in found["not_run"].items():
        print(f"{name}: {text}")
    anew = targets(found)
    for target in anew:
        print(target)
    if card is None:
        return not found["failures"]
    names = {target.name for target in anew}
    for target in card_targets(card):
        if target.name not in names:
            print(f"{target} (as recorded)")
    differences = compare(found, card["audit"])
    for line in differences:
        print(f"differs from the card: {line}")
    if not differences:
        print(f"the card is reproduced: {len(found['rows'])} rows within their intervals")
    return not differences
