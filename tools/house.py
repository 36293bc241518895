"""Count what a newcomer has to carry: lines, names that occur twice, circles of imports, files of a step, studies.

``python tools/house.py`` prints the counts of this tree, ``--root PATH`` those of another checkout, and ``--write``
puts them into the table of ``docs/house.md``, whose first column is what commit 3f55a1f gave.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = "docs/house.md"
PACKAGES = ("spatialsim_env", "reward_models")
BEGINNINGS = ("What", "Which", "Whether", "How")  # of a docstring that leans on the code beside it
PARTICIPLES = {"begun", "drawn", "found", "given", "held", "kept", "known", "made", "put", "said", "seen", "shown",
               "taken", "told", "worn", "written"}  # fmt: skip
NO_PARTICIPLES = {"bed", "embed", "feed", "need", "proceed", "red", "seed", "shed", "speed"}
STUDIES = {  # below reward_models, with their commands, as they lie now and as they lay at commit 3f55a1f
    "the engine of studies": r"studies/engine/|claims\.py",
    "the paper's study": r"studies/paper/|benchmark/",
    "the study of agents": r"studies/agents/|cli/agent_study\.py|agents/study",
    "the study of Rel3D": r"studies/rel3d/|cli/relations\.py"
    r"|relations/(runner|rows|commands|experiments|report|tables|figures|test_set)\.py",
    "the study of relation agents": r"studies/relation_agents/|cli/relation_agents\.py|relations/agent(_commands)?\.py",
    "the hard suite's study": r"studies/hard_suite/|cli/hard_suite\.py|hard_(rows|report|commands)\.py",
    "the study of hardening": r"studies/hardening/|cli/hardening\.py|ablation\.py|hardening_commands\.py",
    "audits, with the hub's cards": r"auditing/|studies/audits/|hub/|cli/(relation_)?audit|cli/hub\.py"
    r"|relations/(audit|audit_commands|climbing|judge)\.py",
}
_STEP = """
import json, os, sys
import gymnasium, numpy
env = gymnasium.make("spatialsim_env:{env_id}", reward="{reward}", disable_env_checker=True)
env.reset(seed=0)
action = env.action_space.sample()
env.step(action)
import spatialsim_env
root = os.path.dirname(os.path.dirname(spatialsim_env.__file__)) + os.sep
files, crossings, stack = set(), 0, []
def watch(frame, event, _):
    global crossings
    name = frame.f_code.co_filename
    if not name.startswith(root):
        return
    if event == "call":
        files.add(name[len(root):])
        crossings += bool(stack) and stack[-1] != name
        stack.append(name)
    elif event == "return" and stack:
        stack.pop()
sys.setprofile(watch)
env.step(action)
sys.setprofile(None)
world = env.unwrapped
classes = [*type(world).__mro__, type(getattr(world, "world", world))]
modules = {{c.__module__.replace(".", "/") + ".py" for c in classes if c.__module__.startswith("spatialsim_env")}}
print(json.dumps([sorted(files), crossings, sorted(modules)]))
"""


def sources(root: Path) -> dict[str, str]:
    """The text of all modules outside tests, by path."""
    paths = (path.relative_to(root) for path in root.rglob("*.py"))
    kept = (path for path in paths if path.parts[0] != "tests" and not any(p.startswith(".") for p in path.parts))
    return {path.as_posix(): (root / path).read_text(encoding="utf-8") for path in sorted(kept)}


def code_lines(text: str) -> int:
    """Lines that hold code: no blank lines, comments and docstrings."""
    held: set[int] = set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            held.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and body and is_docstring(body[0]):
            held.difference_update(range(body[0].lineno, body[0].end_lineno + 1))
    return len(held)


def is_docstring(statement: ast.stmt) -> bool:
    """Check that a statement is a text alone."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def module_name(path: str) -> str:
    """The dotted name of a file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports(tree: ast.Module, name: str, known: Set[str], lazy: bool) -> set[str]:
    """The modules of ``known`` that a module imports, with or without those that functions import."""
    nodes = list(ast.walk(tree) if lazy else at_import(tree))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(part if part in known else node.module for part in parts)
    return {each for each in found if each in known} - {name}


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """All that runs when a module is imported; what only a type checker reads is left out."""
    for child in ast.iter_child_nodes(node):
        checked = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if not checked and not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
            yield from at_import(child)


def circles(arrows: Mapping[str, Set[str]]) -> list[list[str]]:
    """Groups of modules, or packages, each of which is reached from itself through the others."""
    reach = {name: set(others) for name, others in arrows.items()}
    for middle in reach:
        for others in reach.values():
            if middle in others:
                others |= reach[middle]
    found = {tuple(sorted(b for b in reach[a] if a in reach.get(b, ()))) for a in reach if a in reach[a]}
    return sorted(map(list, found))


def code_of(texts: Mapping[str, str], pattern: str) -> int:
    """Code lines of the files below ``reward_models`` that a pattern names."""
    return sum(code_lines(text) for path, text in texts.items() if re.match(f"reward_models/({pattern})", path))


def unit_of(module: str) -> str:
    """The package below a root that a module stands in; a module of a root stands for itself."""
    return ".".join(module.split(".")[:2])


def grouped(arrows: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    """Arrows between units."""
    units: dict[str, set[str]] = defaultdict(set)
    for name, others in arrows.items():
        units[unit_of(name)] |= {unit_of(other) for other in others} - {unit_of(name)}
    return units


def module_arrows(trees: Mapping[str, ast.Module], lazy: bool) -> dict[str, set[str]]:
    """The modules of the packages that each of them imports."""
    by_name = {module_name(path): tree for path, tree in trees.items() if path.startswith(PACKAGES)}
    return {name: imports(tree, name, set(by_name), lazy) for name, tree in by_name.items()}


def functions(trees: Mapping[str, ast.Module]) -> Iterator[ast.FunctionDef]:
    """All functions and methods."""
    for tree in trees.values():
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def is_participle(function: ast.FunctionDef) -> bool:
    """Check that a function, no property, is named after a participle: ``told``, ``found_again``, ``_rebuilt``."""
    if any("property" in ast.unparse(decorator) for decorator in function.decorator_list):
        return False
    first = function.name.strip("_").partition("_")[0]
    return first in PARTICIPLES or (first.endswith("ed") and first not in NO_PARTICIPLES)


def documented(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """The docstrings of modules, classes and functions."""
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                yield text


def is_hook(function: ast.FunctionDef) -> bool:
    """Check that a function does nothing but refuse, so that a subclass must know of it."""
    body = function.body[1:] if is_docstring(function.body[0]) else function.body
    return len(body) == 1 and isinstance(body[0], ast.Raise) and "NotImplementedError" in ast.unparse(body[0])


def step(root: Path, env_id: str, reward: str = "sparse") -> tuple[list[str], int, list[str]]:
    """Files that a step enters, how often it crosses from one to another, and the files of its classes."""
    code = _STEP.format(env_id=env_id, reward=reward)
    settings = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=root, env=settings, capture_output=True, text=True, check=True)
    entered, crossings, classes = json.loads(run.stdout)
    return entered, crossings, classes


def counts(root: Path = ROOT) -> dict[str, int]:
    """All counts of the table, by their names."""
    texts = sources(root)
    trees = {path: ast.parse(text) for path, text in texts.items()}
    of_packages = {path: tree for path, tree in trees.items() if path.startswith(PACKAGES)}
    defined = [node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    eager, lazy = module_arrows(trees, lazy=False), module_arrows(trees, lazy=True)
    top = Counter(node.name for tree in of_packages.values() for node in tree.body if isinstance(node, ast.FunctionDef))
    plane, space = step(root, "SpatialSim-Discrim-v0", "hub:matching"), step(root, "SpatialSim-Relation3D-v0")
    return {
        "raw lines outside tests": sum(text.count("\n") for text in texts.values()),
        "code lines outside tests": sum(map(code_lines, texts.values())),
        "files outside tests": len(texts),
        "files of more than 400 lines": sum(text.count("\n") > 400 for text in texts.values()),
        "class names that occur more than once": sum(number > 1 for number in Counter(defined).values()),
        "circles of modules": len(circles(eager)),
        "circles of packages": len(circles(grouped(eager))),
        "circles of modules, imports inside functions counted": len(circles(lazy)),
        "circles of packages, imports inside functions counted": len(circles(grouped(lazy))),
        "files of a step's classes, 2D": len(plane[2]),
        "files of a step's classes, 3D": len(space[2]),
        "files that a step enters, 2D": len(plane[0]),
        "files that a step enters, 3D": len(space[0]),
        "crossings between files in a step, 2D": plane[1],
        "crossings between files in a step, 3D": space[1],
        "hooks of these classes, methods that only refuse": sum(
            map(is_hook, functions({path: trees[path] for path in {*plane[2], *space[2]}}))
        ),
        **{f"code lines of {name}": code_of(texts, pattern) for name, pattern in STUDIES.items()},
        **{f"functions named `{name}`": top[name] for name in ("audit", "judge_of", "failures")},
        "functions named after participles": sum(map(is_participle, functions(of_packages))),
        "docstrings that begin with What, Which, Whether, How": sum(
            text.split(None, 1)[0] in BEGINNINGS for text in documented(of_packages)
        ),
    }


def rewritten(page: str, given: Mapping[str, int]) -> str:
    """The page with the column "now" of its table filled in."""
    for name, number in given.items():
        row = re.compile(rf"^(\| {re.escape(name)} \| [^|]* \|)[^|]*(\|.*)$", re.MULTILINE)
        page, hits = row.subn(rf"\g<1> {number:,} \g<2>", page)
        if hits != 1:
            raise ValueError(f"{PAGE} has {hits} rows named {name!r}; accepted is one for each count")
    return page


def main() -> None:
    """Print the counts, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--write", action="store_true", help=f"fill in {PAGE}")
    arguments = parser.parse_args()
    given = counts(arguments.root.resolve())
    for name, number in given.items():
        print(f"{number:>8,}  {name}")
    if arguments.write:
        page = ROOT / PAGE
        page.write_text(rewritten(page.read_text(encoding="utf-8"), given), encoding="utf-8")


if __name__ == "__main__":
    main()
