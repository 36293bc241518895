"""The tables of the README, from the recorded runs: `python docs/readme_tables.py` writes them into it."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from reward_models import demo
from reward_models.benchmark import rows, tables
from reward_models.benchmark.summary import Results

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
DEMO, SPEED = RESULTS / "demo.json", ROOT / "benchmarks" / "speed.json"


def _demo() -> str:
    """What the demo measured, and on what."""
    summary = json.loads(DEMO.read_text())
    header, *lines = demo.rows(summary)
    table = "\n".join("| " + " | ".join(line) + " |" for line in (header, ["---"] * len(header), *lines))
    agent = summary["settings"]["agent"]
    return (
        f"{table}\n\n"
        f"Accuracy on {summary['settings']['test_samples']:,} samples: on the benchmark by number of objects (every "
        "network trained on 3-8), then on\nwrong configurations of three objects that the benchmark does not have. "
        f"{summary['settings']['agents']} agents a\nreward, {agent['total_steps']:,} steps of training and "
        f"{agent['episodes']} episodes each: mean (lowest to highest). Seed "
        f"{summary['settings']['seed']}, {summary['seconds'] / 60:.1f}\nminutes in all "
        f"([settings and all figures](results/demo.json), commit {summary['commit'][:7]})."
    )


def _speed() -> str:
    """What the benchmark measured."""
    result: dict[str, Any] = json.loads(SPEED.read_text())
    return f"{_load(ROOT / 'benchmarks' / 'speed.py').table(result)}\n\nCommit {result['commit'][:7]}."


def _benchmark() -> str:
    """Tables 1 and 2 of the paper, ours beside the published ones."""
    known = Results(rows.read(RESULTS, quick=False) if (RESULTS / rows.FOLDER).is_dir() else [])
    if not known.rows:
        return "No run is recorded yet: `spatialsim bench run` makes them."
    shown = [tables.table1(known)[0], tables.table2(known)[0]]
    return "\n\n".join(f"**{table.title}**\n\n{table.markdown()}\n\n{table.note}" for table in shown)


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES: dict[str, Callable[[], str]] = {"demo": _demo, "benchmark": _benchmark, "speed": _speed}


def render(name: str) -> str:
    """A table as the README holds it."""
    return TABLES[name]()


def main() -> None:
    readme = ROOT / "README.md"
    text = readme.read_text()
    for name in TABLES:
        between = f"<!-- {name} -->\n{render(name)}\n<!-- /{name} -->"
        text = re.sub(rf"<!-- {name} -->\n.*?<!-- /{name} -->", lambda _, new=between: new, text, flags=re.DOTALL)
    readme.write_text(text)


if __name__ == "__main__":
    main()
