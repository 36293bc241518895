"""The report of the study of agents: tables and learning curves from its rows alone, as Markdown, CSV and PNG.

A share over several agents is that of all their episodes. Its interval is over agents and episodes: agents are drawn
with replacement (bootstrap), and each one's share from what its episodes leave open (a beta distribution).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reward_models.shares import PooledShare, pool
from reward_models.studies.agents import rows as study_rows
from reward_models.studies.agents import runs as study
from reward_models.studies.agents.rows import Row
from reward_models.studies.agents.runs import CLONED, NETWORKS, REWARDS, TARGETS, TRAINED, WITHIN
from reward_models.studies.paper.figures import blank_figure, png
from reward_models.studies.paper.report import put
from reward_models.studies.paper.tables import NONE, Table
from spatialsim_env.arrangements.tasks import RANGES

MARKDOWN, CURVES = "report.md", "curves.png"
COMPARED = tuple(name for name, (rewards, _) in TRAINED.items() if len(rewards) > 1)
COLUMNS = 3  # panels of the learning curves side by side
POINTS = 200  # of a mean learning curve
GROUPS = tuple(f"{low}-{high}" for low, high in RANGES)
_COLORS = {reward: f"C{k}" for k, reward in enumerate(REWARDS)}
_INTERVALS = "Intervals: 95 %, over agents and episodes."


class Results:
    """The rows of the study by id; those with an error are kept apart and never counted."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)
        self.failed = [row for row in self.rows if row["error"] is not None]
        self.by_id = {row["id"]: row for row in self.rows if row["error"] is None}

    def agents(self, config: str, reward: str) -> list[Row]:
        """Those of a configuration trained on a reward, in order of seeds."""
        return [row for name, row in self.by_id.items() if name.startswith(f"agents/{config}/{reward}/seed")]

    def share(self, config: str, reward: str, name: str) -> PooledShare | None:
        """A share of ``evaluation`` over the agents of a configuration and a reward."""
        return pool(row["evaluation"][name] for row in self.agents(config, reward))

    def of(self, run: str, name: str) -> PooledShare | None:
        """A share of ``evaluation`` of one run."""
        return pool([self.by_id[run]["evaluation"][name]]) if run in self.by_id else None


def write(results: str | os.PathLike[str], out: str | os.PathLike[str], *, quick: bool = False) -> Path:
    """Write the report of a folder of results; returns the path of its Markdown.

    ``out`` then holds report.md, tables/NAME.csv and, where a row has a learning curve, curves.png.

    Raises:
        study_rows.RowError: a damaged file, or rows of other runs; the message names them.
        ImportError: matplotlib is not installed.
        OSError: a file cannot be written.
    """
    known, folder = Results(study_rows.read(Path(results), quick=quick)), Path(out)
    shown = tables(known)
    for table in shown:
        put(folder / "tables" / f"{table.name}.csv", table.csv().encode())
    figure = curves(known)
    if figure is None:
        (folder / CURVES).unlink(missing_ok=True)
    else:
        put(folder / CURVES, png(figure))
    put(folder / MARKDOWN, _markdown(known, shown, figure is not None, quick).encode())
    return folder / MARKDOWN


def tables(known: Results) -> list[Table]:
    """All tables, in the order in which they are shown."""
    return [configurations(known), rewards(known), generalisation(known), classifiers(known)]


def configurations(known: Results) -> Table:
    """Every configuration: agents trained on the truth, beside the expert and chance."""
    lines = []
    for config, (trained, seeds) in TRAINED.items():
        agents, found = known.agents(config, trained[0]), known.share(config, trained[0], "success")
        target = TARGETS.get(config)
        cloned = known.share(config, "cloned", "success") if config in CLONED else None
        lines.append(
            (
                config,
                trained[0],
                _text(found),
                f"{len(agents)} of {len(seeds)}",
                NONE if target is None else f"{target:.2f}",
                _met(found, target),
                *(_value(known.of(f"agents/{config}/{policy}", "success")) for policy in ("expert", "random")),
                _value(cloned),
                _mean("{:,.0f}", [row["steps"] for row in agents]),
                _mean("{:.1f}", [row["seconds"] / 60 for row in agents]),
            )
        )
    columns = (
        "configuration", "truth", "truly achieved", "agents", "target", "met", "expert", "random", "cloned", "steps",
        "minutes",
    )  # fmt: skip
    note = (
        f"Agents trained on the truth, {study.EPISODES} episodes each, the same for all; an episode counts by "
        f"its last step. {_INTERVALS} Expert: the scripted policy, an upper bound; cloned: an agent that imitates it. "
        "Minutes on one core. Each line is run again by `spatialsim agent study run --filter agents/CONFIGURATION`."
    )
    return Table("configurations", "Agents by configuration", columns, tuple(lines), note)


def _met(found: PooledShare | None, target: float | None) -> str:
    if found is None or target is None:
        return NONE
    return "yes" if found.value >= target else "no"


def rewards(known: Results) -> Table:
    """What agents make of each reward: what it says of them, and what is true."""
    lines = []
    for config in COMPARED:
        best = known.share(config, TRAINED[config][0][0], "success")
        for reward in TRAINED[config][0]:
            agents = known.agents(config, reward)
            says, true, precision = (known.share(config, reward, name) for name in ("claimed", "success", "precision"))
            behind = NONE if best is None or true is None else f"{100 * (true.value - best.value):+.1f}"
            network = known.by_id.get(f"rewards/{reward}")
            lines.append(
                (
                    config,
                    f"{reward} truth" if reward in study.TRUTHS else reward,
                    NONE if network is None else f"{_ratio(network['accuracy'][GROUPS[0]]):.4f}",
                    _text(says),
                    _text(true),
                    "undefined" if agents and precision is None else _text(precision),
                    behind,
                    f"{len(agents)} of {len(TRAINED[config][1])}",
                )
            )
    columns = (
        "configuration", "reward", "accuracy 3-8", "says achieved", "truly achieved", "precision",
        "points beside the first", "agents",
    )  # fmt: skip
    note = (
        f"Agents trained on each reward alone, {study.EPISODES} episodes each. Precision: share truly achieved of the "
        f"episodes that the reward calls achieved at their last step, undefined without any. {_INTERVALS} Agents on "
        f"the matching network are to stay within {100 * WITHIN:.0f} points of those on the truth that stands first."
    )
    return Table("rewards", "Rewards learned and true", columns, tuple(lines), note)


def generalisation(known: Results) -> Table:
    """Finished agents where they were not trained, and what the networks say of them there."""
    lines = []
    for run in study.runs().values():
        if not isinstance(run, study.TransferRun):
            continue
        row = known.by_id.get(run.id)
        of_network = [
            NONE if row is None else _text(pool([row["claims"][network][name]]))
            for network in NETWORKS
            for name in ("claimed", "precision")
        ]
        agent, where = run.id.split("/")[1:]
        lines.append(
            (agent, _WHERE.get(where, f"{where[1:]} objects"), _text(known.of(run.id, "success")), *of_network)
        )
    columns = ["agent", "tested on", "truly achieved"]
    columns += [f"{network} {says}" for network in NETWORKS for says in ("says achieved", "precision")]
    note = (
        f"{study.EPISODES} episodes; agents of seed 0 trained on the sparse truth: discrim_3_5 with 3 to 5 objects, "
        "discrim_n5_narrow with goals at scales 0.5 to 1 and angles 0 to π. The networks, trained with 3 to 8 objects "
        "at all scales and angles, judge the last scene of each episode. Intervals over episodes, 95 %."
    )
    return Table("generalisation", "Where agents were not trained", tuple(columns), tuple(lines), note)


_WHERE = {
    "seen": "goals as in training",
    "scale": "scales 1 to 2",
    "angle": "angles π to 2π",
    "both": "scales 1 to 2 and angles π to 2π",
}


def classifiers(known: Results) -> Table:
    """The same networks trained on the benchmark and on rollouts, tested on both."""
    lines = []
    for network in NETWORKS:
        for source in ("rewards", "rollouts"):
            row = known.by_id.get(f"{source}/{network}")
            figures = [NONE] * (len(GROUPS) + 3)
            if row is not None:
                accuracies = [_text(pool([row["accuracy"][name]])) for name in (*GROUPS, "rollouts")]
                figures = [*accuracies, f"{row['n_weights']:,}", f"{row['seconds']:,.0f}"]
            lines.append((network, "benchmark" if source == "rewards" else "rollouts", *figures))
    columns = (
        "network",
        "trained on",
        *(f"benchmark {group}" for group in GROUPS),
        "fresh rollouts",
        "weights",
        "seconds",
    )
    note = (
        "Rollouts: pairs of scene and goal from episodes of a random policy and the expert with 3 to 8 objects, "
        "labelled by the truth, as many of one label as of the other. Accuracy with 95 % intervals over samples."
    )
    return Table("classifiers", "Classifiers trained on rollouts", columns, tuple(lines), note)


def _ratio(found: dict[str, Any]) -> float:
    return found["hits"] / found["total"]


def _text(found: PooledShare | None) -> str:
    return NONE if found is None else str(found)


def _value(found: PooledShare | None) -> str:
    return NONE if found is None else f"{found.value:.3f}"


def _mean(form: str, values: Sequence[float]) -> str:
    return form.format(sum(values) / len(values)) if values else NONE


def curves(known: Results) -> Any | None:
    """Learning curves: a panel a configuration, a color a reward; dashed what a learned reward says of its agents."""
    drawn = {
        config: {reward: [row for row in known.agents(config, reward) if row["curve"]] for reward in rewards}
        for config, (rewards, _) in TRAINED.items()
    }
    drawn = {config: found for config, found in drawn.items() if any(found.values())}
    if not drawn:
        return None
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    columns = min(COLUMNS, len(drawn))
    height = -(-len(drawn) // columns)
    figure = blank_figure(4 * columns + 0.5, 2.9 * height + 0.9)
    grid = figure.subplots(height, columns, squeeze=False, sharey=True)
    for axes in grid.flat[len(drawn) :]:
        axes.set_axis_off()
    for axes, (config, found) in zip(grid.flat, drawn.items(), strict=False):
        for reward, of_reward in found.items():
            if of_reward:
                _draw(axes, of_reward, reward)
        if config in TARGETS:
            axes.axhline(TARGETS[config], color="0.4", linestyle=":", linewidth=1.2)
        axes.set_title(config, fontsize=10)
        axes.set_ylim(-0.02, 1.02)
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize=8)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(lambda steps, _: f"{steps / 1000:g}k")
    shown = [reward for reward in REWARDS if any(found.get(reward) for found in drawn.values())]
    lines = [Line2D([], [], color=_COLORS[reward], label=f"trained on {reward}") for reward in shown]
    lines += [
        Line2D([], [], color="0.3", label="by the truth"),
        Line2D([], [], color="0.3", linestyle="--", label="as the reward says"),
        Line2D([], [], color="0.3", linestyle="", marker="o", markersize=3, label="evaluated"),
        Line2D([], [], color="0.4", linestyle=":", label="target"),
    ]
    figure.legend(handles=lines, loc="outside upper center", ncols=len(lines), fontsize=8, frameon=False)
    figure.supxlabel("environment steps", fontsize=9)
    figure.supylabel("episodes that end achieved; lines: the last 100 in training", fontsize=9)
    return figure


def _draw(axes: Any, rows: Sequence[Row], reward: str) -> None:
    """The mean over agents, from where all of them have one to where the first one ends, and each of them behind it.

    Dots are evaluations, crosses the reward's verdict on them; the last ones are those of the tables.
    """
    curves = [np.array(row["curve"], dtype=float) for row in rows]
    steps = np.linspace(max(curve[0, 0] for curve in curves), min(curve[-1, 0] for curve in curves), POINTS)
    says = [(1, "-", "o", "success"), (2, "--", "x", "claimed")][: 1 + (reward in NETWORKS)]
    for column, style, marker, name in says:
        mean = np.mean([np.interp(steps, curve[:, 0], curve[:, column]) for curve in curves], axis=0)
        axes.plot(steps, mean, style, color=_COLORS[reward], linewidth=1.6)
        for curve in curves[: len(curves) * (len(curves) > 1)]:
            axes.plot(curve[:, 0], curve[:, column], style, color=_COLORS[reward], linewidth=0.6, alpha=0.35)
        for row in rows:
            ends = [*row["evaluations"], [row["steps"], *[_ratio(row["evaluation"][name])] * 2]]
            evaluated = np.array(ends, dtype=float)
            axes.plot(evaluated[:, 0], evaluated[:, column], marker, color=_COLORS[reward], markersize=3, alpha=0.7)


def _markdown(known: Results, shown: Sequence[Table], drawn: bool, quick: bool) -> str:
    parts = ["# Agents: results", _origin(known, quick)]
    for table in shown:
        parts += [f"## {table.title}", table.note, table.markdown()]
    parts += ["## Learning curves", f"![Learning curves]({CURVES})" if drawn else "No row has one yet."]
    failures = [f"- `{row['id']}`: `{row['error'].replace('`', chr(39))}`" for row in known.failed]
    parts += ["## Runs that failed", "\n".join(failures) or "None."]
    missing = [f"- `{run}`" for run in study.runs(quick) if run not in {row["id"] for row in known.rows}]
    parts += ["## Runs without a row", "\n".join(missing) or "None."]
    return "\n\n".join(part for part in parts if part) + "\n"


def _origin(known: Results, quick: bool) -> str:
    """What made the rows, and how many there are."""
    parts = [f"{len(known.by_id)} of {len(study.runs(quick))} runs done, {len(known.failed)} failed."]
    if quick:
        parts.append("**Rows of the small study for tests: nothing in them was trained long enough to learn.**")
    made = {
        "commit": {str(row["commit"]) for row in known.rows},
        "machine": {row["machine"] for row in known.rows},
        "packages": {", ".join(f"{name} {number}" for name, number in row["versions"].items()) for row in known.rows},
    }
    parts.append("\n".join(f"- {name}: {'; '.join(sorted(values))}" for name, values in made.items() if values))
    return "\n\n".join(part for part in parts if part)
