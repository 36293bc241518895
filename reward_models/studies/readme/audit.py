"""The tables of the audit, from the cards of the shipped models: beside each other, and each against its targets."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reward_models.auditing.setup import AGENT, GRADIENT, SEARCH
from reward_models.auditing.targets import AGENT_OBJECTS, PRECISION_OBJECTS
from reward_models.hub.recipes import SHIPPED
from reward_models.hub.targets import THRESHOLD_RANGE, card_targets
from reward_models.judges import shipped
from reward_models.measuring.hard_cases import CEILING, thresholds
from reward_models.shares import value_of
from reward_models.studies.engine import rows as study_rows
from reward_models.studies.hard_suite.tables import STUDY
from reward_models.tables import markdown

RESULTS = Path(__file__).parents[3] / "results"
TRUTH, HARD = RESULTS / "audit" / "truth.json", RESULTS / "hard"
NONE = "-"
COMMAND = "`spatialsim hub build NAME`"

Card = dict[str, Any]


def models(cards: dict[str, Card] | None = None) -> str:
    """A line for each shipped model and one for the truth: what it is worth on fixed data, and under optimisation."""
    cards = audited() if cards is None else cards
    if not cards:
        return f"No card holds an audit yet: {COMMAND} makes one."
    if TRUTH.exists():
        cards = {**cards, "truth": json.loads(TRUTH.read_text())}
    sigmas = detection()
    ranges = list(next(iter(cards.values()))["accuracy"])
    header = ["model", "weights", *ranges, "detected from", "gradient", "search", "agent", "reach"]
    lines = [
        [
            f"`hub:{name}`" if name != "truth" else name,
            f"{card['n_weights']:,}" if "n_weights" in card else NONE,
            *(f"{part['correct'] / part['total']:.4f}" for part in card["accuracy"].values()),
            _threshold(sigmas.get(name, _of_card(card))),
            _shares(card["audit"], GRADIENT, "precision", PRECISION_OBJECTS),
            _shares(card["audit"], SEARCH, "precision", PRECISION_OBJECTS),
            _shares(card["audit"], AGENT, "precision", AGENT_OBJECTS),
            _shares(card["audit"], GRADIENT, "reach", PRECISION_OBJECTS),
        ]
        for name, card in cards.items()
    ]
    ideal = f"; the ideal observer's is {sigmas[CEILING]:.2f}" if sigmas.get(CEILING) is not None else ""
    note = (
        "Accuracy on the benchmark by number of objects. Detected from: the displacement of one of 3-8 objects, in "
        f"deviations of the noise, from which\nthe model is right three times in four{ideal}. Gradient, search, agent: "
        "precision under optimisation, the share truly achieved of\nwhat the optimiser got the model to call achieved; "
        f"by gradient and search with {_join(PRECISION_OBJECTS)} objects, the lesser of moving them and of\nmoving "
        f"and turning them; by an agent with {_join(AGENT_OBJECTS)}. Reach: the share of the gradient's starts that "
        "end in a claim that is true. *none*: nothing was\ncalled achieved."
    )
    return f"{markdown(header, lines)}\n\n{note}"


def targets(cards: dict[str, Card] | None = None) -> str:
    """Each shipped model against its targets."""
    cards = audited() if cards is None else cards
    if not cards:
        return f"No card holds an audit yet: {COMMAND} makes one."
    sigmas, parts = detection(), []
    for name, card in cards.items():
        found = card_targets(card, sigmas.get(name))
        lines = [[one.name, one.bound, one.found, "yes" if one.met else "**no**"] for one in found]
        met = sum(one.met for one in found)
        title = f"**`hub:{name}`**, {met} of {len(found)} met"
        parts.append(f"{title}\n\n{markdown(['target', 'bound', 'value', 'met'], lines)}")
    return "\n\n".join(parts)


def audited() -> dict[str, Card]:
    """The cards of the shipped models that hold an audit, in the order of their recipes."""
    cards = {name: shipped.card(name) for name in SHIPPED if name in shipped.names()}
    return {name: card for name, card in cards.items() if card["audit"] is not None}


def detection() -> dict[str, float | None]:
    """Detection thresholds on 3-8 objects by judge, of the rows of the hard suite."""
    rows = [row for model in study_rows.read(STUDY, HARD).done.values() for row in model.results]
    return {judge: sigma for (judge, objects), sigma in thresholds(rows).items() if objects == THRESHOLD_RANGE}


def _of_card(card: Card) -> float | str | None:
    """The threshold that a card holds; a text where it holds none."""
    hard = card.get("hard_suite")
    return NONE if hard is None else hard["thresholds"].get(THRESHOLD_RANGE)


def _threshold(sigma: float | str | None) -> str:
    return "never" if sigma is None else sigma if isinstance(sigma, str) else f"{sigma:.2f}"


def _shares(audit: Card, optimiser: str, name: str, objects: Iterable[int]) -> str:
    """The least share of an optimiser for each number of objects, "3 / 5 / 8"; why there is none, if so."""
    if audit["failures"]:
        return f"fails: {', '.join(sorted(audit['failures']))}"
    cells = []
    for n in objects:
        shares = [row[name] for row in audit["rows"] if (row["optimiser"], row["n_objects"]) == (optimiser, n)]
        values = [value for share in shares if (value := value_of(share)) is not None]
        cells.append(f"{min(values):.2f}" if values else "none" if shares else NONE)
    return NONE if set(cells) == {NONE} else " / ".join(cells)


def _join(numbers: Iterable[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}"
