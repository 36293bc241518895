"""``spatialsim rel3d agent``: train agents on the rules or on a learned model, say what both think of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reward_models.shares import format_share

if TYPE_CHECKING:
    from reward_models.studies.relation_agents.agent import Row

agent_app = typer.Typer(no_args_is_help=True, help="Agents that bring relations about, by the rules and by a model.")

RESULTS = Path("results/rel3d/agents")

Run = Annotated[Path, typer.Argument(help="Folder of a trained agent.")]
Results = Annotated[Path, typer.Option(help="Folder of the rows.")]


@agent_app.command("train")
def train(
    out: Annotated[Path, typer.Option(help="Folder of the run; run again to resume.")],
    reward: Annotated[
        str, typer.Option(help="dense or sparse for the rules, FOLDER:dense for a model of relations.")
    ] = "dense",
    predicate: Annotated[
        list[str] | None, typer.Option(help="A predicate to learn; may be repeated; seven by default.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Environment steps; the configuration's by default.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
) -> None:
    """Train an agent, and say what its reward and the rules think of it."""
    from reward_models.studies.relation_agents import agent

    trained = agent.train(out, reward, predicate or agent.SEVEN, steps=steps, seed=seed)
    trained.close()
    ends = trained.record["evaluation"]
    print(f"{out}: {trained.record['steps']:,} steps, {trained.record['cpu_seconds']:.0f} seconds of one core")
    for key, title in (("claimed", "its reward says achieved"), ("success", "achieved by the rules")):
        low, high = ends[f"{key}_interval"]
        print(f"  {title:26} {ends[key]:.2f} ({low:.2f} to {high:.2f})")


@agent_app.command("evaluate")
def evaluate(
    run: Run,
    episodes: Annotated[int, typer.Option(help="Episodes of each predicate.", min=1)] = 100,
    name: Annotated[str | None, typer.Option(help="Write a row of this id, as rule/seed0.")] = None,
    results: Results = RESULTS,
) -> None:
    """Play episodes of each predicate: success by the rules, and what the agent's reward says."""
    from reward_models.agents.training import load_agent
    from reward_models.studies.relation_agents import agent

    trained = load_agent(run)
    row = agent.row_of(name or run.name, trained, run, episodes)
    trained.close()
    _say(row)
    if name is not None:
        print(f"wrote {agent.write(results, row)}")


@agent_app.command("table")
def table(results: Results = RESULTS) -> None:
    """The rows as a table: success by the rules, claims, and the gap to the agent that was trained on the rules."""
    from reward_models.studies.relation_agents import agent

    print(agent.table(agent.read(results)).markdown())


def _say(row: Row) -> None:

    for predicate, found in row["predicates"].items():
        said = ", ".join(f"{name} {format_share(found[name])}" for name in ("success", "claimed", "precision"))
        print(f"{predicate}: {said}")
