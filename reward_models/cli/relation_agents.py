"""``spatialsim rel3d agent``: train agents on the rules or on a learned model, say what both think of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reward_models.shares import format_share

agent_app = typer.Typer(no_args_is_help=True, help="Agents that bring relations about, by the rules and by a model.")

Run = Annotated[Path, typer.Argument(help="Folder of a trained agent.")]


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
    from reward_models.agents import relations

    trained = relations.train(out, reward, predicate or relations.SEVEN, steps=steps, seed=seed)
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
) -> None:
    """Play episodes of each predicate: success by the rules, and claims of the agent's reward."""
    from reward_models.agents import relations
    from reward_models.agents.training import load_agent

    agent = load_agent(run)
    played = relations.evaluate(agent, agent.config, agent.reward, episodes=episodes)
    agent.close()
    for predicate, measured in relations.shares(played).items():
        shares = ", ".join(f"{name} {format_share(measured[name])}" for name in ("success", "claimed", "precision"))
        print(f"{predicate}: {shares}")
