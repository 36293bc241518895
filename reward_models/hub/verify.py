"""Does a card hold? A part of it is found anew and compared, line by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reward_models.hub.recipes import SHIPPED
from reward_models.judges import shipped
from reward_models.judges.learned import LearnedModel, load
from reward_models.measuring.evaluation import accuracy_by_range
from reward_models.shares import Accuracy, wilson
from spatialsim_env.arrangements.tasks import RANGES

SAMPLES, SEED = 2_000, 1  # per range; another seed than the card's, so other samples
Z = 3.290527  # normal quantile of a two-sided interval of 99.9 %: several lines of each model are asked
STARTS = 32  # of the audit's gradient, with the fewest objects


@dataclass(frozen=True)
class Line:
    """One entry of a card."""

    what: str
    recorded: str
    found: str
    fits: bool


def verify(name: str, samples: int = SAMPLES, seed: int = SEED) -> list[Line]:
    """Checksums, weights, settings of the training, accuracy on fresh samples, and a part of the audit.

    An accuracy fits if its 99.9 % interval and the recorded one's have a share in common; a part of the audit, the
    gradient from a few of its starts, if its shares lie within such intervals of the recorded ones.

    Args:
        name: of a shipped model, with or without ``hub:``.
        samples: per range.
        seed: of the samples.

    Returns:
        The lines; those of the checksums alone if one of them does not fit.

    Raises:
        checkpoint.CheckpointError: an unknown name, or files that cannot be read though their checksums fit.
    """
    home = shipped.folder(name)
    lines = [
        Line(f"SHA-256 of {file}", expected[:12], found[:12] if found else "missing", found == expected)
        for file, (expected, found) in shipped.checksums(home).items()
    ]
    if not all(line.fits for line in lines):
        return lines
    card, model = shipped.card(name), load(shipped.PREFIX + home.name)
    lines += [
        _equal("name", card["name"], home.name),
        _equal("kind", card["kind"], model.kind),
        _equal("weights", card["n_weights"], model.module.n_weights),
        _settings(card, home.name),
    ]
    lines += _accuracies(card, model, samples, seed)
    return lines if card["audit"] is None else [*lines, _audit(card["audit"], model)]


def _equal(name: str, recorded: Any, found: Any) -> Line:
    return Line(name, str(recorded), str(found), recorded == found)


def _settings(card: dict[str, Any], name: str) -> Line:
    """The training against the recipe of this version; entries that differ are shown."""
    here = SHIPPED[name].settings.to_json() if name in SHIPPED else {}
    trained = card["training"]
    keys = [key for key in trained | here if trained.get(key) != here.get(key)]
    if not keys:
        return Line("training", f"{len(trained)} settings", "the same", True)
    recorded, found = (", ".join(f"{key} {part.get(key)!r}" for key in keys) for part in (trained, here))
    return Line("training", recorded, found, False)


def _accuracies(card: dict[str, Any], model: LearnedModel, samples: int, seed: int) -> list[Line]:
    recorded = {label: Accuracy(**part) for label, part in card["accuracy"].items()}
    wanted = {f"{low}-{high}" for low, high in RANGES}
    if recorded.keys() != wanted:
        return [_equal("accuracy", sorted(recorded), sorted(wanted))]
    found = accuracy_by_range(model.module, samples, seed)
    return [
        Line(f"accuracy {label}", str(recorded[label]), str(part), _agree(recorded[label], part))
        for label, part in found.items()
    ]


def _audit(recorded: dict[str, Any], model: LearnedModel) -> Line:
    """Precision under the ascent of the positions of the fewest objects."""
    from reward_models.auditing.audit import audit
    from reward_models.auditing.measures import format_row, label
    from reward_models.auditing.setup import GRADIENT
    from reward_models.auditing.targets import compare

    settings = recorded["settings"]
    few: dict[str, Any] = {name: settings[name] for name in ("gradient_evaluations", "criterion", "seed")}
    few |= {"search_evaluations": 2, "fixed_samples": 2, "agent": False}
    starts, n, moves = min(STARTS, settings["starts"]), min(settings["n_objects"]), settings["moves"][0]
    found = audit(model, n_objects=(n,), moves=(moves,), starts=starts, **few)
    found["rows"] = [row for row in found["rows"] if row["optimiser"] == GRADIENT]
    differences = compare(found, recorded, Z)
    what = f"audit with {starts} starts"
    here = {label(row) for row in found["rows"]}
    known, anew = (
        "; ".join(format_row(row) for row in report["rows"] if label(row) in here)
        or f"fails {', '.join(report['failures'])}"
        for report in (recorded, found)
    )
    return Line(what, known, anew, not differences)


def _agree(one: Accuracy, other: Accuracy) -> bool:
    (low, high), (least, most) = (wilson(part.correct, part.total, Z) for part in (one, other))
    return low <= most and least <= high
