"""Imports go one way: which package may use which is a table, and no module is in a circle."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from tools import house

WORLD, LEARNED = "spatialsim_env", "reward_models"
# a unit is a package with all that is in it, or one module; it may use the units of its entry and what those may use
ARROWS: dict[str, set[str]] = {
    WORLD: {f"{WORLD}.registry"},  # registers the environments
    f"{WORLD}.registry": set(),  # ids and entry points, as text
    f"{WORLD}.files": set(),
    f"{WORLD}.streams": set(),
    f"{WORLD}.checks": set(),
    f"{WORLD}.core": {WORLD, f"{WORLD}.registry", f"{WORLD}.files", f"{WORLD}.streams", f"{WORLD}.checks"},
    f"{WORLD}.arrangements": {f"{WORLD}.core"},
    f"{WORLD}.testing": {f"{WORLD}.arrangements"},
    f"{WORLD}.relations.vocabulary": set(),
    f"{WORLD}.relations.scene": set(),
    f"{WORLD}.relations.geometry": {f"{WORLD}.relations.scene", f"{WORLD}.files"},
    f"{WORLD}.relations.predicates": {f"{WORLD}.relations.geometry", f"{WORLD}.relations.vocabulary"},
    f"{WORLD}.relations.rendering": {f"{WORLD}.relations.geometry"},
    f"{WORLD}.relations.testing": {f"{WORLD}.relations.scene"},
    f"{WORLD}.relations.rel3d": {f"{WORLD}.relations.predicates"},
    f"{WORLD}.relations.world": {f"{WORLD}.relations.predicates", f"{WORLD}.core"},
    f"{WORLD}.relations.pairs": {
        f"{WORLD}.relations.rel3d",
        f"{WORLD}.relations.world",
        f"{WORLD}.relations.rendering",
    },
    f"{WORLD}.relations": set(),
    f"{LEARNED}.shares": set(),
    f"{LEARNED}.threads": set(),
    f"{LEARNED}.provenance": {WORLD},
    f"{LEARNED}.tables": set(),
    f"{LEARNED}.models": {
        f"{LEARNED}.shares",
        f"{LEARNED}.threads",
        f"{LEARNED}.provenance",
        f"{LEARNED}.tables",
        f"{WORLD}.arrangements",
        f"{WORLD}.relations.pairs",
    },
    f"{LEARNED}.judges": {f"{LEARNED}.models"},
    f"{LEARNED}.measuring": {f"{LEARNED}.judges"},
    f"{LEARNED}.training": {f"{LEARNED}.measuring"},
    f"{LEARNED}.agents": {f"{LEARNED}.judges", f"{LEARNED}.training"},
    f"{LEARNED}.demo": {f"{LEARNED}.agents"},
    f"{LEARNED}.auditing": {f"{LEARNED}.agents"},
    f"{LEARNED}.training.hardening": {f"{LEARNED}.auditing"},  # trains on the ends of an audit's optimisers
    f"{LEARNED}.hub": {f"{LEARNED}.training.hardening"},
    f"{LEARNED}.studies": {f"{LEARNED}.hub", f"{LEARNED}.demo", LEARNED},
    f"{LEARNED}.cli": {f"{LEARNED}.studies"},
    f"{LEARNED}.learned_reward": {f"{LEARNED}.judges"},  # the entry point
    LEARNED: {f"{LEARNED}.auditing"},  # the public names, imported when they are asked for
}


def reach(unit: str, arrows: Mapping[str, set[str]]) -> set[str]:
    """All units that a unit may use, itself included."""
    return {unit}.union(*(reach(other, arrows) for other in arrows[unit]))


def unit_of(module: str, arrows: Mapping[str, set[str]]) -> str | None:
    """The narrowest unit that a module is in."""
    fitting = [unit for unit in arrows if f"{module}.".startswith(f"{unit}.")]
    return max(fitting, key=len, default=None)


def violations(imported: Mapping[str, set[str]], arrows: Mapping[str, set[str]]) -> list[str]:
    """Imports that no arrow allows, and modules that no unit holds."""
    wrong = []
    for module, others in sorted(imported.items()):
        unit = unit_of(module, arrows)
        if unit is None:
            wrong.append(f"{module} is in no unit")
            continue
        allowed = reach(unit, arrows)
        wrong += [f"{module} -> {other}" for other in sorted(others) if unit_of(other, arrows) not in allowed]
    return wrong


@pytest.fixture(scope="module")
def trees():
    return {path: ast.parse(text) for path, text in house.sources(house.ROOT).items()}


def test_imports_follow_the_arrows(trees):
    """Imports inside functions count too: they are arrows all the same."""
    wrong = violations(house.module_arrows(trees, lazy=True), ARROWS)
    assert wrong == []


def test_the_table_has_no_circle():
    assert house.circles(ARROWS) == []


def test_no_module_is_in_a_circle(trees):
    assert house.circles(house.module_arrows(trees, lazy=False)) == []


TOY = {"a": set(), "b": {"a"}, "b.inner": set(), "c": {"b"}}


@pytest.mark.parametrize(
    ("imported", "wrong"),
    [
        ({"a": set(), "b.x": {"a"}, "c": {"a.y", "b"}}, []),
        ({"a.x": {"b.y"}}, ["a.x -> b.y"]),
        ({"b.inner.x": {"a"}}, ["b.inner.x -> a"]),
        ({"d": {"a"}}, ["d is in no unit"]),
        ({"c": {"d"}}, ["c -> d"]),
    ],
)
def test_what_breaks_an_arrow_is_named(imported, wrong):
    assert violations(imported, TOY) == wrong
