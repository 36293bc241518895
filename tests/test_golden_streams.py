"""Random streams, ids and versions keep their names: they are hashed into what has been recorded.

Names of streams are read off the calls of ``stream`` and ``keyed`` in the source, wherever they stand; what goes into
an f-string, and a key that is no constant, is written as ``{}``. Names that are made from tasks are asked for.
``python -m tests.test_golden_streams`` records: only a new stream justifies that, never a renamed one.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spatialsim_env.arrangements import hard_suite
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.streams import stream, stream_of

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "data" / "golden_streams.json"
PACKAGES = ("spatialsim_env", "reward_models")


def text_of(node: ast.expr) -> str | None:
    """A name in a call: a constant or an f-string; None for what is computed elsewhere."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def numbers_of(nodes: list[ast.expr]) -> str:
    """The keys of a stream as "[{}, 2]"."""
    return f"[{', '.join(str(each.value) if isinstance(each, ast.Constant) else '{}' for each in nodes)}]"


def named_in(source: str) -> Iterator[str]:
    """Names of the streams that a module makes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            name = text_of(node.args[-1]) if called == "stream" else None
            if called == "keyed" and not any(isinstance(key, ast.Starred) for key in node.args):
                name = numbers_of(node.args)
            elif called == "default_rng" and isinstance(node.args[0], ast.List):
                name = numbers_of(node.args[0].elts)
            if name is not None:
                yield name


def in_source() -> list[str]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return sorted({name for path in paths for name in named_in(path.read_text(encoding="utf-8"))})


def first_numbers(name: str) -> list[float]:
    """What a stream begins with under seed 0, zeros filled in."""
    filled = name.replace("{}", "0")
    rng = stream_of(*json.loads(filled)) if name.startswith("[") else stream(0, filled)
    return rng.random(4).tolist()


def of_names(names: list[str]) -> dict[str, Any]:
    """How many names there are, the first and last of them, and a hash over all."""
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:32]
    return {"names": len(names), "ends": [names[0], names[-1]], "sha256": digest}


def of_sets() -> dict[str, Any]:
    """Named sets of data: tasks make the names, which hash the names of their classes."""
    made = {name: named.set_name(chosen.task, name.rsplit("/", 1)[1]) for name, chosen in named.REGISTRY.items()}
    assert list(made.values()) == list(made)
    return of_names(list(made))


def of_trainings() -> dict[str, Any]:
    """The streams of the paper's trainings: each stage, and the validation."""
    from reward_models.studies.paper import runs

    configs = [cell.config(0) for cell in runs.CELLS.values() if hasattr(cell, "config")]
    return of_names([config.set_name(part) for config in configs for part in [*range(len(config.stages)), "valid"]])


def of_studies() -> dict[str, Any]:
    """Ids of all runs, and the versions of what they are."""

    from reward_models.hub import recipes
    from reward_models.studies.agents import runs
    from reward_models.studies.hard_suite import runs as hard
    from reward_models.studies.hardening import runs as hardened
    from reward_models.studies.paper import runs as paper
    from reward_models.studies.rel3d import runs as relations

    cells = [run for cell in paper.CELLS.values() for run in cell.runs]
    hardening = [f"{model}/{variant}" for model in recipes.HARDENED for variant in hardened.variants_of(model)]
    return {
        "paper": {**of_names(cells), "version": paper.VERSION},
        "agents": {**of_names(list(runs.units())), "version": runs.VERSION},
        "rel3d": {**of_names(list(relations.units())), "version": relations.VERSION},
        "hard": {**of_names(list(hard_suite.NAMES)), "version": hard.VERSION},
        "hardening": of_names(hardening),
    }


def golden() -> dict[str, Any]:
    return json.loads(GOLDEN.read_text())


def recorded() -> dict[str, Any]:
    streams = {name: first_numbers(name) for name in in_source()}
    return {"streams": streams, "sets": of_sets(), "trainings": of_trainings(), "studies": of_studies()}


def test_streams_are_those_that_were_recorded():
    assert in_source() == sorted(golden()["streams"])


def test_streams_begin_as_they_did():
    assert {name: first_numbers(name) for name in golden()["streams"]} == golden()["streams"]


def test_sets_have_their_names():
    assert of_sets() == golden()["sets"]


def test_trainings_have_their_streams():
    pytest.importorskip("torch")
    assert of_trainings() == golden()["trainings"]


def test_studies_have_their_ids_and_versions():
    pytest.importorskip("stable_baselines3")
    assert of_studies() == golden()["studies"]


def test_a_renamed_stream_is_seen():
    source = 'rng = stream(seed, f"order/{stage}")\nother = keyed(self.seed, 2)\nstream(0, name)\n'
    assert list(named_in(source)) == ["order/{}", "[{}, 2]"]
    assert first_numbers("order/{}") != first_numbers("orders/{}")


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(recorded(), indent=1) + "\n")
