"""Code that stands twice stays within a budget: runs of equal lines, whatever names a copy has changed."""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tools import house

WINDOW = 6  # statements' lines in a row that make a copy
BUDGET = 350  # lines of the code that are part of a copy; lower it where copies go
DECLARED = ("_ = 0", "_ : _", "_ : _ = 0", "pass")  # tables of names are alike and no copies


class Bare(ast.NodeTransformer):
    """Takes imports and docstrings away: they are alike in many files and no copies."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    visit_ImportFrom = visit_Import

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if house.is_docstring(node) else node


def lines_of(text: str) -> list[str]:
    """A module as a line a statement: names, texts and numbers are alike, what is but declared is left out."""
    source = ast.unparse(Bare().visit(ast.parse(text)))
    lines: dict[int, list[str]] = defaultdict(list)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind, word = token.type, token.string
        if kind == tokenize.NAME and not keyword.iskeyword(word):
            word = "_"
        elif kind in (tokenize.STRING, tokenize.NUMBER):
            word = "0"
        if word.strip():
            lines[token.start[0]].append(word)
    return [line for line in (" ".join(words) for _, words in sorted(lines.items())) if line not in DECLARED]


def copies(texts: Mapping[str, str], window: int = WINDOW) -> Iterator[tuple[str, int, int]]:
    """Runs of lines that stand elsewhere too: file, first and last line of it as ``lines_of`` numbers them."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for path, text in texts.items():
        lines = lines_of(text)
        for start in range(len(lines) - window + 1):
            places[tuple(lines[start : start + window])].append((path, start))
    starts: dict[str, list[int]] = defaultdict(list)
    for found in places.values():
        if len(found) > 1:
            for path, start in found:
                starts[path].append(start)
    for path, numbers in sorted(starts.items()):
        run: list[int] = []
        for start in sorted(numbers):
            if run and start > run[-1] + window:
                yield path, run[0], run[-1] + window
                run = []
            run.append(start)
        yield path, run[0], run[-1] + window


def test_copies_stay_within_the_budget():
    found = sorted(copies(house.sources(house.ROOT)), key=lambda run: run[1] - run[2])
    total = sum(end - start for _, start, end in found)
    worst = ", ".join(f"{path} ({end - start} lines)" for path, start, end in found[:8])
    assert total <= BUDGET, f"{total} lines stand twice, the budget is {BUDGET}; the longest copies: {worst}"


COPIED = """
def first(scene, size):
    \"\"\"Its own words.\"\"\"
    total = f(0)
    seen = []
    for part in scene:
        if part.size > size:
            total += part.size
            seen.append(part)
    return total / len(seen)
"""
RENAMED = """
import os

def other(goal, limit):
    area = g(1)
    names = []
    for each in goal:
        if each.area > limit:
            area += each.area
            names.append(each)
    return area / len(names)
"""


def test_a_copy_with_other_names_is_seen():
    assert list(copies({"a.py": COPIED, "b.py": RENAMED})) == [("a.py", 0, 8), ("b.py", 0, 8)]


def test_a_copy_in_the_same_file_is_seen():
    assert list(copies({"a.py": f"{COPIED}\nX = f(1)\n{RENAMED}"})) == [("a.py", 0, 8), ("a.py", 9, 17)]


def test_other_code_is_none():
    assert list(copies({"a.py": COPIED, "b.py": RENAMED.replace(">", "<")})) == []
