"""Which units filters name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from reward_models.studies.engine.select import select
from reward_models.studies.engine.study import Unit
from tests.reward_models.studies.engine import toy


@dataclass(frozen=True)
class Long(Unit):
    @property
    def long(self) -> bool:
        return True


def units(quick: bool) -> dict[str, Unit]:
    return {**toy.units(quick), "coins/huge/a": Long("coins/huge/a")}


def groups(known):
    return {"table1": ["coins/bent/seed0", "compared/all", "coins/huge/a"], "figure1": []}


STUDY = replace(toy.STUDY, units=units, groups=groups)


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ([], ["coins/fair", "coins/bent", "compared/all"]),
        (["coins"], ["coins/fair", "coins/bent"]),
        (["coins/"], ["coins/fair", "coins/bent"]),
        (["coins/fair"], ["coins/fair"]),
        (["coins/fair/seed1"], ["coins/fair"]),
        (["*/*a*"], ["coins/fair", "compared/all"]),
        (["*"], ["coins/fair", "coins/bent", "compared/all"]),
        (["compared/all", "coins/fair"], ["coins/fair", "compared/all"]),
        (["coins/huge"], ["coins/huge/a"]),
        (["coins/huge/*"], ["coins/huge/a"]),
        (["table1"], ["coins/bent", "compared/all"]),
    ],
)
def test_filters(filters, names):
    assert [unit.id for unit in select(STUDY, filters)] == names


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("coins/odd", "no run matches 'coins/odd'; 'odd' is unknown: accepted after coins are fair, bent, huge; "),
        ("dice", "'dice' is unknown: accepted are coins, compared; accepted are runs, units, their beginnings, globs"),
        ("coins/fair/seed7", "accepted after coins/fair are seed0, seed1"),
        ("coins/fair/seed1/x", "accepted after coins/fair/seed1 are no further parts"),
        ("", "no run matches ''"),
        ("figure1", "'figure1' is unknown"),
    ],
)
def test_a_filter_that_matches_nothing_says_what_is_accepted(pattern, message):
    with pytest.raises(ValueError, match="no run matches") as error:
        select(STUDY, ["coins", pattern])
    assert message in str(error.value)


def test_no_id_of_a_run_is_formatted_for_a_filter_of_units(monkeypatch):
    monkeypatch.setattr(toy.Coin, "runs", property(lambda unit: pytest.fail("formatted")))
    assert len(select(STUDY, ["coins/fair", "compared/*"])) == 2
