"""The units that filters name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from reward_models.studies.engine.study import R, Study, U, Unit

_FORM = "accepted are runs, units, their beginnings, globs and groups, as {} or '*/{}'"


def select(study: Study[U, R], filters: Sequence[str] = (), *, quick: bool = False) -> list[U]:
    """The units that match one of the filters; without filters all that are not long.

    A long unit is among them where a filter names its first two parts.

    Args:
        filters: ids of units or runs, their beginnings (``agents/discrim_n3``), globs (``agents/*/sparse/*``), groups.

    Raises:
        ValueError: a filter that matches nothing; the message lists what is accepted.
    """
    units = study.units(quick)
    if not filters:
        return [unit for unit in units.values() if not unit.long]
    chosen: set[str] = set()
    for pattern in (text.strip().rstrip("/") for text in filters):
        matching = {name for name, unit in units.items() if _matches(pattern, unit)} or _of_group(pattern, study, units)
        if not matching:
            raise ValueError(f"no run matches {pattern!r}; {_accepted(pattern, units)}")
        chosen |= matching
    return [unit for name, unit in units.items() if name in chosen]


def _matches(pattern: str, unit: Unit) -> bool:
    if unit.long and pattern.split("/")[:2] != unit.id.split("/")[:2]:
        return False
    if pattern and f"{unit.id}/".startswith(f"{pattern}/"):
        return True
    return fnmatchcase(unit.id, pattern) or (pattern.startswith(f"{unit.id}/") and pattern in unit.runs)


def _of_group(name: str, study: Study[U, R], units: Mapping[str, U]) -> set[str]:
    """The units of a group's runs that are not long."""
    runs = set(study.groups(units).get(name, ()))
    return {unit.id for unit in units.values() if runs and not unit.long and not runs.isdisjoint(unit.runs)}


def _accepted(pattern: str, units: Mapping[str, U]) -> str:
    """List the accepted first parts of a pattern."""
    form = _FORM.format(*[next(iter(units), "")] * 2)
    parts = pattern.split("/")
    paths = [run.split("/") for unit in units.values() for run in unit.runs]
    for depth, part in enumerate(parts):
        after = dict.fromkeys(path[depth] for path in paths if len(path) > depth)
        paths = [path for path in paths if len(path) > depth and fnmatchcase(path[depth], part)]
        if not paths:
            where = f"after {'/'.join(parts[:depth])} " if depth else ""
            return f"{part!r} is unknown: accepted {where}are {', '.join(after) or 'no further parts'}; {form}"
    return form
