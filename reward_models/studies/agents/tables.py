"""Tables and learning curves of the study of agents, from its rows alone.

A share over several agents is that of all their episodes. Its interval is over agents and episodes: agents are drawn
with replacement (bootstrap), and each one's share from what its episodes leave open (a beta distribution).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reward_models.shares import PooledShare, pool
from reward_models.studies.agents import runs, work
from reward_models.studies.agents.runs import CLONED, NETWORKS, REWARDS, TARGETS, TRAINED, WITHIN
from reward_models.studies.agents.work import AgentRow
from reward_models.studies.engine import report as shell
from reward_models.studies.engine.study import Figure, Files, Report, Results, Study
from reward_models.tables import NONE, Table, blank_figure, png
from spatialsim_env.arrangements.tasks import RANGES

COMPARED = tuple(name for name, (rewards, _) in TRAINED.items() if len(rewards) > 1)
COLUMNS = 3  # panels of the learning curves side by side
POINTS = 200  # of a mean learning curve
GROUPS = tuple(f"{low}-{high}" for low, high in RANGES)
_COLORS = {reward: f"C{k}" for k, reward in enumerate(REWARDS)}
_INTERVALS = "Intervals: 95 %, over agents and episodes."

Rows = Mapping[str, AgentRow]  # by id, those without an error


def agents_of(rows: Rows, config: str, reward: str) -> list[AgentRow]:
    """Select the agents of a configuration trained on a reward, in order of seeds."""
    return [row for name, row in rows.items() if name.startswith(f"agents/{config}/{reward}/seed")]


def pool_agents(rows: Rows, config: str, reward: str, name: str) -> PooledShare | None:
    """Pool a share of ``evaluation`` over the agents of a configuration and a reward."""
    return pool(row.evaluation[name] for row in agents_of(rows, config, reward))


def share_of_run(rows: Rows, run: str, name: str) -> PooledShare | None:
    """Read a share of ``evaluation`` of one run; None without a row."""
    return pool([rows[run].evaluation[name]]) if run in rows else None


def report(results: Results[AgentRow]) -> Report:
    """Make the report."""
    figure = draw_curves(results.done)
    curves = Figure("curves", "Learning curves", None if figure is None else png(figure), folder=".")
    total = len(results.rows) + len(results.missing)
    count = f"{len(results.done)} of {total} runs done, {len(results.failed)} failed."
    heading = (count, shell.QUICK * results.quick, shell.origin(results.rows.values()))
    endings = (shell.failures(results), shell.missing(results))
    return Report("Agents: results", (*heading, *tables(results.done), curves, *endings))


def object_file(unit: str) -> str:
    """Name the file of a run's row after the run."""
    return f"{unit}.json"


def tables(rows: Rows) -> list[Table]:
    """Make all tables, in the order in which they are shown."""
    return [configurations(rows), rewards(rows), generalisation(rows), classifiers(rows)]


def configurations(rows: Rows) -> Table:
    """Every configuration: agents trained on the truth, beside the expert and chance."""
    lines = []
    for config, (trained, seeds) in TRAINED.items():
        agents, achieved = agents_of(rows, config, trained[0]), pool_agents(rows, config, trained[0], "success")
        target = TARGETS.get(config)
        cloned = pool_agents(rows, config, "cloned", "success") if config in CLONED else None
        lines.append(
            (
                config,
                trained[0],
                _text(achieved),
                f"{len(agents)} of {len(seeds)}",
                NONE if target is None else f"{target:.2f}",
                _met(achieved, target),
                *(
                    _value(share_of_run(rows, f"agents/{config}/{policy}", "success"))
                    for policy in ("expert", "random")
                ),
                _value(cloned),
                _mean("{:,.0f}", [row.steps for row in agents]),
                _mean("{:.1f}", [row.seconds / 60 for row in agents]),
            )
        )
    columns = (
        "configuration", "truth", "truly achieved", "agents", "target", "met", "expert", "random", "cloned", "steps",
        "minutes",
    )  # fmt: skip
    note = (
        f"Agents trained on the truth, {runs.EPISODES} episodes each, the same for all; an episode counts by "
        f"its last step. {_INTERVALS} Expert: the scripted policy, an upper bound; cloned: an agent that imitates it. "
        "Minutes on one core. Each line is run again by `spatialsim study run agents --filter agents/CONFIGURATION`."
    )
    return Table("configurations", "Agents by configuration", columns, tuple(lines), note)


def _met(share: PooledShare | None, target: float | None) -> str:
    if share is None or target is None:
        return NONE
    return "yes" if share.value >= target else "no"


def rewards(rows: Rows) -> Table:
    """Compare rewards by their agents: achieved by the reward and in truth."""
    lines = []
    for config in COMPARED:
        best = pool_agents(rows, config, TRAINED[config][0][0], "success")
        for reward in TRAINED[config][0]:
            agents = agents_of(rows, config, reward)
            shares = (pool_agents(rows, config, reward, name) for name in ("claimed", "success", "precision"))
            says, true, precision = shares
            behind = NONE if best is None or true is None else f"{100 * (true.value - best.value):+.1f}"
            network = rows.get(f"rewards/{reward}")
            lines.append(
                (
                    config,
                    f"{reward} truth" if reward in runs.TRUTHS else reward,
                    NONE if network is None else f"{_ratio(network.accuracy[GROUPS[0]]):.4f}",
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
        f"Agents trained on each reward alone, {runs.EPISODES} episodes each. Precision: share truly achieved of the "
        f"episodes that the reward calls achieved at their last step, undefined without any. {_INTERVALS} Agents on "
        f"the matching network are to stay within {100 * WITHIN:.0f} points of those on the truth that stands first."
    )
    return Table("rewards", "Rewards learned and true", columns, tuple(lines), note)


def generalisation(rows: Rows) -> Table:
    """Finished agents where they were not trained, and what the networks say of them there."""
    lines = []
    for run in runs.units().values():
        if not isinstance(run, runs.TransferRun):
            continue
        row = rows.get(run.id)
        of_network = [
            NONE if row is None else _text(pool([row.claims[network][name]]))
            for network in NETWORKS
            for name in ("claimed", "precision")
        ]
        agent, where = run.id.split("/")[1:]
        achieved = _text(share_of_run(rows, run.id, "success"))
        lines.append((agent, _WHERE.get(where, f"{where[1:]} objects"), achieved, *of_network))
    columns = ["agent", "tested on", "truly achieved"]
    columns += [f"{network} {says}" for network in NETWORKS for says in ("says achieved", "precision")]
    note = (
        f"{runs.EPISODES} episodes; agents of seed 0 trained on the sparse truth: discrim_3_5 with 3 to 5 objects, "
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


def classifiers(rows: Rows) -> Table:
    """The same networks trained on the benchmark and on rollouts, tested on both."""
    lines = []
    for network in NETWORKS:
        for source in ("rewards", "rollouts"):
            row = rows.get(f"{source}/{network}")
            figures = [NONE] * (len(GROUPS) + 3)
            if row is not None:
                accuracies = [_text(pool([row.accuracy[name]])) for name in (*GROUPS, "rollouts")]
                figures = [*accuracies, f"{row.n_weights:,}", f"{row.seconds:,.0f}"]
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


def _ratio(share: dict[str, Any]) -> float:
    return share["hits"] / share["total"]


def _text(share: PooledShare | None) -> str:
    return NONE if share is None else str(share)


def _value(share: PooledShare | None) -> str:
    return NONE if share is None else f"{share.value:.3f}"


def _mean(form: str, values: Sequence[float]) -> str:
    return form.format(sum(values) / len(values)) if values else NONE


def draw_curves(rows: Rows) -> Any | None:
    """Learning curves: a panel a configuration, a color a reward; dashed what a learned reward says of its agents."""
    drawn = {
        config: {reward: [row for row in agents_of(rows, config, reward) if row.curve] for reward in rewards}
        for config, (rewards, _) in TRAINED.items()
    }
    drawn = {config: by_reward for config, by_reward in drawn.items() if any(by_reward.values())}
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
    for axes, (config, by_reward) in zip(grid.flat, drawn.items(), strict=False):
        for reward, of_reward in by_reward.items():
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
    shown = [reward for reward in REWARDS if any(by_reward.get(reward) for by_reward in drawn.values())]
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


def _draw(axes: Any, rows: Sequence[AgentRow], reward: str) -> None:
    """The mean over agents, from where all of them have one to where the first one ends, and each of them behind it.

    Dots are evaluations, crosses the reward's verdict on them; the last ones are those of the tables.
    """
    curves = [np.array(row.curve, dtype=float) for row in rows]
    steps = np.linspace(max(curve[0, 0] for curve in curves), min(curve[-1, 0] for curve in curves), POINTS)
    says = [(1, "-", "o", "success"), (2, "--", "x", "claimed")][: 1 + (reward in NETWORKS)]
    for column, style, marker, name in says:
        mean = np.mean([np.interp(steps, curve[:, 0], curve[:, column]) for curve in curves], axis=0)
        axes.plot(steps, mean, style, color=_COLORS[reward], linewidth=1.6)
        for curve in curves[: len(curves) * (len(curves) > 1)]:
            axes.plot(curve[:, 0], curve[:, column], style, color=_COLORS[reward], linewidth=0.6, alpha=0.35)
        for row in rows:
            ends = [*row.evaluations, [row.steps, *[_ratio(row.evaluation[name])] * 2]]
            evaluated = np.array(ends, dtype=float)
            axes.plot(evaluated[:, 0], evaluated[:, column], marker, color=_COLORS[reward], markersize=3, alpha=0.7)


STUDY = Study(
    "agents",
    runs.VERSION,
    AgentRow,
    runs.units,
    work.work,
    report,
    work.fail,
    work.summarise_row,
    Files("results/agents", report=".", path=object_file),
    title="Agents on rewards, learned and true",
    packages=("gymnasium", "stable-baselines3"),
    keeps_work=True,
    differences=work.list_differences,
    upgraded=work.upgrade,
    groups=runs.group,
)
