"""The page of counts is what the code gives, and the counter counts what it says."""

from __future__ import annotations

import ast

import pytest

from tools import house

CODE = '''"""What it is."""

import os  # used


class Judge:
    """How it
    judges."""

    def told(self):
        raise NotImplementedError

    @property
    def known(self):
        return os.sep
'''


def trees(**modules):
    """Toy modules by name, as files of the first package."""
    return {f"spatialsim_env/{name.replace('__', '/')}.py": ast.parse(text) for name, text in modules.items()}


def test_code_lines_leave_out_blank_lines_comments_and_docstrings():
    assert house.code_lines(CODE) == 7
    assert house.code_lines("# nothing\n\n") == 0
    assert house.code_lines("x = [\n\n    1,  # one\n]\n") == 3


def test_names_and_docstrings():
    tree = {"a.py": ast.parse(CODE)}
    assert [each.name for each in house.functions(tree) if house.is_participle(each)] == ["told"]
    assert [each.name for each in house.functions(tree) if house.is_hook(each)] == ["told"]
    assert [text.split()[0] for text in house.documented(tree)] == ["What", "How"]


def test_circles_are_found_at_import_and_in_functions():
    circle = trees(a="from spatialsim_env import b", b="def f():\n    import spatialsim_env.a")
    names = ["spatialsim_env.a", "spatialsim_env.b"]
    assert house.circles(house.module_arrows(circle, lazy=False)) == []
    assert house.circles(house.module_arrows(circle, lazy=True)) == [names]


def test_circles_of_packages_need_no_circle_of_modules():
    made = trees(a__one="import spatialsim_env.b.one", b__one="", b__two="from spatialsim_env.a import one")
    arrows = house.module_arrows(made, lazy=False)
    assert house.circles(arrows) == []
    assert house.circles(house.grouped(arrows)) == [["spatialsim_env.a", "spatialsim_env.b"]]


def test_what_only_a_type_checker_reads_is_no_import():
    checked = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from spatialsim_env import b"
    assert house.module_arrows(trees(a=checked, b=""), lazy=False)["spatialsim_env.a"] == set()


def test_a_page_without_a_row_is_refused():
    with pytest.raises(ValueError, match="has 0 rows named 'hooks'"):
        house.rewritten("| files | 1 | 2 | |", {"hooks": 3})
