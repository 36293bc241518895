"""The tables of the README and of the pages beside this file, from recorded runs: running this file writes them in.

A table stands between ``<!-- name -->`` and ``<!-- /name -->``.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from reward_models import demo
from reward_models.studies.agents import tables as agent_tables
from reward_models.studies.engine import rows
from reward_models.studies.hard_suite import tables as hard_tables
from reward_models.studies.hardening import tables as hardening_tables
from reward_models.studies.paper import tables
from reward_models.studies.paper.protocol import title
from reward_models.studies.paper.study import STUDY
from reward_models.studies.paper.summary import Cells, published, summarise
from reward_models.studies.readme import audit, relations
from reward_models.tables import NONE, Table, markdown, number
from reward_models.training.config import TrainingConfig

ROOT = Path(__file__).parents[3]
README, FINDINGS, HARD_SUITE = (ROOT / name for name in ("README.md", "docs/findings.md", "docs/hard_suite.md"))
AUDIT = ROOT / "docs" / "audit.md"
RESULTS = ROOT / "results"
SPEED = ROOT / "speed"
DEMO = RESULTS / "demo.json"
AGENTS = RESULTS / "agents"
HARD = RESULTS / "hard"

sys.path.append(str(SPEED))


def _demo() -> str:
    """Table of the demo's measurements and their origin."""
    summary = json.loads(DEMO.read_text())
    header, *lines = demo.rows(summary)
    agent = summary["settings"]["agent"]
    return (
        f"{markdown(list(header), [list(line) for line in lines])}\n\n"
        f"Accuracy on {summary['settings']['test_samples']:,} samples: on the benchmark by number of objects (every "
        "network trained on 3-8), then on\nwrong configurations of three objects that the benchmark does not have. "
        f"{summary['settings']['agents']} agents a\nreward, {agent['total_steps']:,} steps of training and "
        f"{agent['episodes']} episodes each: mean (lowest to highest). Seed "
        f"{summary['settings']['seed']}, {summary['seconds'] / 60:.1f}\nminutes in all "
        f"([settings and all figures](results/demo.json), commit {summary['commit'][:7]})."
    )


def _speed(name: str) -> Callable[[], str]:
    """Make the table of the measurements of a script of ``speed``."""

    def table() -> str:
        path = SPEED / f"{name}.json"
        if not path.exists():
            return f"Not measured yet: `python speed/{name}.py` does it."
        result: dict[str, Any] = json.loads(path.read_text())
        return f"{importlib.import_module(name).table(result)}\n\nCommit {result['commit'][:7]}."

    return table


def _results() -> Cells:
    return Cells(rows.read(STUDY, RESULTS).rows.values() if (RESULTS / STUDY.files.rows).is_dir() else [])


def _benchmark() -> str:
    """Tables 1 and 2 of the paper, ours beside the published ones."""
    known = _results()
    if not known.rows:
        return "No run is recorded yet: `spatialsim study run paper` makes them."
    shown = [tables.table1(known)[0], tables.table2(known)[0]]
    return _format_tables(shown)


def _format_tables(shown: list[Table]) -> str:
    return "\n\n".join(f"**{table.title}**\n\n{table.markdown()}\n\n{table.note}" for table in shown)


def _agents() -> str:
    """Table of the agents' success in each configuration, and under each reward."""
    done = rows.read(agent_tables.STUDY, AGENTS).done
    return _format_tables([agent_tables.configurations(done), agent_tables.rewards(done)])


def _hard_suite() -> str:
    """Table of every model's accuracy on the hard suite, ceilings on top."""
    return _format_tables(hard_tables.tables(list(rows.read(hard_tables.STUDY, HARD).done.values())))


def _hardening(model: str) -> str:
    """Compare the variants of a model's hardening."""
    done = rows.read(hardening_tables.STUDY, RESULTS / "hardening").done
    return hardening_tables.table(done, model).markdown()


def _of(make: Callable[[Cells], Table]) -> Callable[[], str]:
    """A table of the report, with its note."""

    def table() -> str:
        made = make(_results())
        return f"{made.markdown()}\n\n{made.note}"

    return table


def _best() -> str:
    """The spread rule beside the best network of Table 2, published and measured here."""
    known, lines = _results(), []
    for k, group in enumerate(tables.GROUPS):
        theirs = {model: found["accuracy"][k] for model, found in published()["discrimination"].items()}
        best = max(theirs, key=lambda model: theirs[model])
        test = tables.range_test(group)
        here = {
            model: found.mean
            for model in tables.DISCRIMINATION
            if (found := summarise(known.accuracies(f"discrimination/{model}/{group}", test))) is not None
        }
        of_paper = {model: mean for model, mean in here.items() if tables.PUBLISHED_AS.get(model, model) in theirs}
        first = max(of_paper, key=lambda model: of_paper[model]) if of_paper else None
        rule = summarise(known.accuracies(f"rules/spread/{group}", test))
        lines.append(
            [
                group,
                number(rule.mean if rule else None),
                f"{theirs[best]:.3f} ({title(best)})",
                NONE if first is None else f"{of_paper[first]:.3f} ({title(first)})",
                *(number(here.get(model)) for model in ("graph_matching", "matching")),
            ]
        )
    columns = ["objects", "spread rule", "best published network", "best of the paper's networks here"]
    return markdown([*columns, title("graph_matching"), title("matching")], lines)


def _counts() -> str:
    """Weights of the networks of Table 2 here, those of the authors' code, beside the paper's."""
    known, lines = _results(), []
    for model, group in (("mpgnn", 0), ("conditioned_mpgnn", 0), ("rds", 0), ("deep_set", 0), ("gcn", 0)):
        weights = {row.n_weights for row in known.runs(tables.cells_of("discrimination", model, tables.GROUPS[group]))}
        paper = published()["discrimination"][tables.PUBLISHED_AS.get(model, model)]["weights"][group]
        lines.append([title(model), ", ".join(f"{count:,}" for count in weights) or "-", f"{paper:,}"])
    return markdown(["network of two inputs", "weights here", "weights in the paper"], lines)


def _deviations() -> str:
    """Table 3's deviations beside what test batches of the published accuracy would have, and ours over runs."""
    known, lines = _results(), []
    size = TrainingConfig().batch_size
    for model, trained_on in published()["transfer"].items():
        if model in ("note", "std"):
            continue
        for trained, tested_on in trained_on.items():
            for tested, accuracy in tested_on.items():
                ours = summarise(known.accuracies(f"discrimination/{model}/{trained}", tables.range_test(tested)))
                lines.append(
                    [
                        title(model),
                        trained,
                        tested,
                        f"{published()['transfer']['std'][model][trained][tested]:.3f}",
                        f"{math.sqrt(accuracy * (1 - accuracy) / size):.3f}",
                        number(ours.deviation if ours else None),
                    ]
                )
    columns = ["model", "trained on", "tested on", "published deviation", "of test batches", "over runs here"]
    return markdown(columns, lines)


PAGES: dict[Path, dict[str, Callable[[], str]]] = {
    README: {
        "demo": _demo,
        "benchmark": _benchmark,
        "agents": _agents,
        "audit": audit.models,
        "speed": _speed("speed"),
        "training_speed": _speed("training_speed"),
        "vector_speed": _speed("vector_speed"),
        "agent_speed": _speed("agent_speed"),
        "audit_speed": _speed("audit_speed"),
        "rel3d": relations.study,
        "rel3d_agents": relations.agents,
        "rel3d_audit": relations.audits,
        "relation_speed": _speed("relation_speed"),
    },
    AUDIT: {
        "ablation_matching": partial(_hardening, "matching"),
        "ablation_mpgnn": partial(_hardening, "mpgnn"),
        "targets": audit.targets,
    },
    HARD_SUITE: {"hard_suite": _hard_suite},
    FINDINGS: {
        "best": _best,
        "rules": _of(tables.rules),
        "table1": _of(lambda known: tables.table1(known)[0]),
        "table2": _of(lambda known: tables.table2(known)[0]),
        "table3": _of(lambda known: tables.table3(known)[0]),
        "counts": _counts,
        "deviations": _deviations,
        "ablations": _of(tables.ablations),
        "widths": _of(tables.widths),
    },
}


def main() -> None:
    for page, made in PAGES.items():
        text = page.read_text()
        for name, table in made.items():
            between = f"<!-- {name} -->\n{table()}\n<!-- /{name} -->".replace("\\", r"\\")
            text = re.sub(rf"<!-- {name} -->\n.*?<!-- /{name} -->", between, text, flags=re.DOTALL)
        page.write_text(text)


if __name__ == "__main__":
    main()
