"""Cost of a reward that holds up: its training, its score, and the audit.

    python speed/audit_speed.py            measures, and writes audit_speed.json beside this file
    python speed/audit_speed.py --print    prints the table of the last run

All on one thread. *Training*: the matching network of the hub by its recipe, on 3-8 objects. *Score*: pairs of 8
objects from arrays to logits, the least wall time of several calls. *Audit*: three sizes, gradient and search with the
default budgets and their pictures not drawn; a model that seldom says achieved takes longest, as it uses them up.
Seconds are CPU time, so that what else the machine does is left out.
"""

from __future__ import annotations

import recording

# isort: split
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from recording import Row

from reward_models.auditing.audit import audit
from reward_models.hub.recipes import recipe
from reward_models.judges.learned import load
from reward_models.studies.audits.cards import TIMED_OBJECTS, microseconds

TRAINED = "matching"
AUDITED = ("matching", "mpgnn")
SIZES = (3, 5, 8)
TARGET = {"training": 60.0, "4096": 30.0, "1": 0.5, "audit": 600.0}  # s, ms, ms, s; under
PACKAGES = ("numpy", "numba", "torch", "cmaes")


def row(work: str, unit: str, value: float, target: float) -> Row:
    """A line of the table."""
    return {"work": work, "unit": unit, "value": value, "target": target, "met": value < target}


def seconds(work: Callable[[], Any]) -> float:
    """CPU time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def training(name: str = TRAINED) -> Row:
    """A model of the hub, trained by its recipe."""
    chosen = recipe(name)
    with tempfile.TemporaryDirectory() as folder:
        took = seconds(lambda: chosen.make(chosen.settings, Path(folder) / name))
    return row(f"training of {name} on 3-8 objects", "s", took, TARGET["training"])


def scores(size: int, name: str = TRAINED) -> Row:
    """``size`` pairs of 8 objects in one call."""
    pairs = "one pair" if size == 1 else f"{size:,} pairs"
    model = microseconds(load(f"hub:{name}"), size) * size / 1e3
    return row(f"score of {pairs} of {TIMED_OBJECTS}, {name}", "ms", model, TARGET[str(size)])


def audits(name: str, **settings: Any) -> Row:
    """Gradient and search with three sizes."""
    took = seconds(lambda: audit(f"hub:{name}", n_objects=SIZES, agent=False, **settings))
    sizes = ", ".join(map(str, SIZES))
    return row(f"audit of {name}, {sizes} objects, gradient and search", "s", took, TARGET["audit"])


def measure() -> dict[str, Any]:
    """All rows, with what they were measured on."""
    torch.set_num_threads(1)
    rows = [training(), scores(4_096), scores(1), *map(audits, AUDITED)]
    return recording.state_origin(PACKAGES) | {"rows": rows}


def table(result: dict[str, Any]) -> str:
    """The rows as Markdown."""
    lines = []
    for line in result["rows"]:
        value = f"{line['value']:.2f}" if line["value"] < 1 else f"{line['value']:,.0f}"
        target = f"under {line['target']:g} {line['unit']}"
        lines.append((line["work"], f"{value} {line['unit']}", target, recording.format_met(line["met"])))
    return recording.markdown(("work", "here", "target", "met"), lines)


if __name__ == "__main__":
    recording.main(__file__, measure, table)
