"""Targets of an audit, from section 5 of the specification, and comparison with a recorded audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reward_models.auditing.measures import SHARES, label
from reward_models.shares import Z, value_of, wilson

Report = dict[str, Any]

PRECISION, PRECISION_OBJECTS = 0.98, (3, 5, 8, 20)  # under gradient and search
REACH = 0.8  # by gradient
AGENT_PRECISION, AGENT_OBJECTS = 0.95, (3, 5, 8)
AGENT_GAP = 0.05  # between the success of an agent trained on the truth and that of one trained on the model
SLACK = 1e-9  # of a comparison of rounded numbers
_WHERE = ("optimiser", "moves", "n_objects")


@dataclass(frozen=True)
class Target:
    """A target, and how far a model is from it."""

    name: str
    target: float
    value: float | None  # None where it is undefined or was not measured
    met: bool
    most: bool = False  # whether the target is the most that is accepted, not the least

    def __str__(self) -> str:
        return f"{self.name}: {self.found}, target {self.bound}: {'met' if self.met else 'NOT MET'}"

    @property
    def found(self) -> str:
        """The value as text, to four digits after the point."""
        return "undefined" if self.value is None else f"{self.value:,.4f}".rstrip("0").rstrip(".")

    @property
    def bound(self) -> str:
        """The target as text."""
        return f"{'at most' if self.most else 'at least'} {self.target:,.10g}"


def targets(found: Report) -> list[Target]:
    """The targets of a report's rows, a target for each row that has one; an undefined share meets none."""
    out = []
    for row in found["rows"]:
        optimiser, n = row["optimiser"], row["n_objects"]
        name = label(row)
        if optimiser == "agent" and n in AGENT_OBJECTS:
            out.append(_least(f"{name}: precision", AGENT_PRECISION, row["precision"]))
            out.append(_gap(f"{name}: success short of the truth's agent", row["training"]))
        elif optimiser != "agent" and n in PRECISION_OBJECTS:
            out.append(_least(f"{name}: precision", PRECISION, row["precision"]))
            if optimiser == "gradient":
                out.append(_least(f"{name}: reach", REACH, row["reach"]))
    return out


def _least(name: str, target: float, share: dict[str, Any]) -> Target:
    found = value_of(share)
    return Target(name, target, found, found is not None and found >= target)


def _gap(name: str, training: dict[str, Any]) -> Target:
    on_truth, on_model = value_of(training["success_on_truth"]), value_of(training["success"])
    gap = None if on_truth is None or on_model is None else on_truth - on_model
    return Target(name, AGENT_GAP, gap, gap is not None and gap <= AGENT_GAP + SLACK, most=True)


def card_of(found: Report) -> Report:
    """Reduce a report to a card's entries: settings, checks and shares; no paths, pictures or curves."""
    kept = ("format", "version", "settings", "failures", "not_run")
    left_out = ("paths", "calibration")
    rows = [{name: entry for name, entry in row.items() if name not in left_out} for row in found["rows"]]
    fixed = [{"n_objects": part["n_objects"], "accuracy": part["accuracy"]} for part in found["fixed"]]
    return {**{name: found[name] for name in kept}, "rows": rows, "fixed": fixed}


def compare(found: Report, recorded: Report, z: float = Z) -> list[str]:
    """List differences of a report from a recorded one beyond the stated intervals; empty where it is reproduced.

    A share that was found must lie within the 95 % interval of the recorded one; where fewer trials were made than
    were recorded, within the interval of so many. Rows that are only recorded are passed over, so that a part of an
    audit can be repeated.

    Args:
        found: a report of ``audit``, or ``card_of`` it.
        recorded: likewise.
        z: normal quantile of the intervals; of 95 % by default.
    """
    failed = [", ".join(sorted(report["failures"])) or "none" for report in (found, recorded)]
    differences = [] if failed[0] == failed[1] else [f"failed checks: {failed[0]}; recorded: {failed[1]}"]
    criteria = [report["settings"]["criterion"] for report in (found, recorded)]
    if criteria[0] != criteria[1]:
        differences.append(f"criterion {criteria[0]}; recorded {criteria[1]}")
    rows = {_key(row): row for row in recorded["rows"]}
    for row in found["rows"]:
        known = rows.get(_key(row))
        if known is None:
            differences.append(f"{label(row)}: not recorded")
        elif row["budget"] != known["budget"]:
            differences.append(f"{label(row)}: budget {row['budget']:,}; recorded {known['budget']:,}")
        else:
            differences += [
                f"{label(row)}: {name} {_number(row[name])}; recorded {_number(known[name])}"
                for name in SHARES
                if not _is_reproduced(row[name], known[name], z)
            ]
    return differences


def _is_reproduced(found: dict[str, Any], recorded: dict[str, Any], z: float) -> bool:
    share, known = value_of(found), value_of(recorded)
    if share is None or known is None:
        return share == known
    trials = min(found["total"], recorded["total"])
    low, high = wilson(round(known * trials), trials, z)
    return low - SLACK <= share <= high + SLACK


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _WHERE)


def _number(share: dict[str, Any]) -> str:
    found = value_of(share)
    return "undefined" if found is None else f"{found:.4f}"
