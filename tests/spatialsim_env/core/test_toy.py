"""Adding a world takes one file of under 80 lines and a line of the registry; the contract holds for it."""

from __future__ import annotations

import inspect

import pytest

from spatialsim_env import registry
from tests.spatialsim_env.core import test_contract, toy

LIMIT = 80  # lines
OTHERS = {"test_names", "test_what_is_given_is_checked"}  # of registered environments; of goals that can be empty
CONTRACT = {name: test for name, test in vars(test_contract).items() if name.startswith("test_") and name not in OTHERS}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(registry.WORLDS, "line", f"{toy.__name__}:world")


def cases():
    """Every test of the contract with the arguments that it is called with beside the name of the world."""
    for name, test in CONTRACT.items():
        others = [mark.args for mark in getattr(test, "pytestmark", []) if mark.args[0] != "name"]
        for argument, values in others or [("", [None])]:
            for value in values:
                yield pytest.param(test, {argument: value} if argument else {}, id=f"{name}-{value}")


@pytest.mark.parametrize(("test", "arguments"), list(cases()))
def test_the_contract_holds(test, arguments):
    test("line", **arguments)


def test_it_is_small():
    assert len(inspect.getsource(toy).splitlines()) < LIMIT
