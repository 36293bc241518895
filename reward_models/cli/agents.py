"""``spatialsim agent``: train agents on rewards, say what they do, and show it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from reward_models.agents.configs import AgentConfig

app = typer.Typer(no_args_is_help=True, help="Train an agent on any reward, evaluate it by the truth, and watch it.")

SCRIPTED = ("random", "expert")  # policies that need no training

Run = Annotated[str, typer.Argument(help=f"Folder of a trained agent; or {' or '.join(SCRIPTED)}, with --config.")]
World = Annotated[
    str | None, typer.Option("--config", help="Whose world random or expert acts in, as discrim_n3; see agent list.")
]
FirstSeed = Annotated[int, typer.Option(help="Seed of the first episode; the others follow.", min=0)]


@app.command("train")
def train(
    config: Annotated[str, typer.Argument(help="Named configuration, as discrim_n3; see agent list.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; run again to resume.")],
    reward: Annotated[str, typer.Option(help="sparse, dense, or the folder of a network (FOLDER:dense).")] = "sparse",
    steps: Annotated[int | None, typer.Option(help="Environment steps; the configuration's by default.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    tensorboard: Annotated[bool, typer.Option(help="Also log for TensorBoard.")] = False,
) -> None:
    """Train an agent on a reward, and say what that reward and the truth think of it."""
    from reward_models.agents import configs
    from reward_models.agents.training import train as train_agent

    chosen = replace(configs.by_name(config), seed=seed)
    chosen = chosen if steps is None else replace(chosen, total_steps=steps)
    agent = train_agent(chosen, reward, out, resume=True, tensorboard=tensorboard)
    agent.close()
    print(f"{out}: {agent.record['steps']:,} steps")
    _say_ends(agent.record["evaluation"])


@app.command("clone")
def clone(
    config: Annotated[str, typer.Argument(help="Named configuration, as discrim_n3; see agent list.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; run again to resume.")],
    episodes: Annotated[int, typer.Option(help="Episodes of demonstrations.", min=1)] = 400,
    epochs: Annotated[int, typer.Option(help="Passes over them.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Teach an agent what the scripted expert does, without a reward, and say what the truth thinks of it."""
    from reward_models.agents import configs
    from reward_models.agents.cloning import clone as clone_expert

    chosen = replace(configs.by_name(config), seed=seed)
    agent = clone_expert(chosen, out, episodes=episodes, epochs=epochs, resume=True)
    agent.close()
    print(f"{out}: {agent.record['steps']:,} steps of demonstrations")
    _say_ends(agent.record["evaluation"])


@app.command("evaluate")
def evaluate(
    run: Run,
    config: World = None,
    episodes: Annotated[int, typer.Option(help="Episodes to play.", min=1)] = 100,
    seed: FirstSeed = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Play episodes of a trained agent, of the scripted expert or at random."""
    from reward_models.agents.evaluation import evaluate as evaluate_agent

    ends = evaluate_agent(*_cast(run, config), episodes=episodes, seed=seed).summary()
    if as_json:
        print(json.dumps(ends, indent=2))
        return
    print(f"{run}: {episodes} episodes")
    _say_ends(ends)


@app.command("watch")
def watch(
    run: Run,
    config: World = None,
    episodes: Annotated[int, typer.Option(help="Episodes to play.", min=1)] = 3,
    seed: FirstSeed = 10_000,
    out: Annotated[
        Path | None, typer.Option(help="A .gif or .mp4 to write, or a .png of the end; a window without one.")
    ] = None,
) -> None:
    """Watch a trained agent, the scripted expert or random actions: in a window, until it is closed, or in a file."""
    from reward_models.cli import watch as watching

    policy, world, reward = _cast(run, config)
    if out is not None:
        frames = watching.save(policy, world, out, episodes=episodes, seed=seed)
        print(f"wrote {out}, {frames} frame{'s' * (frames > 1)}")
        return
    ends = watching.show(policy, world, reward, episodes=episodes, seed=seed)
    print(f"{run}: {len(ends)} episode{'s' * (len(ends) != 1)} seen to the end")
    for key, title in (("is_success_model", "its reward says achieved"), ("is_success", "truly achieved")):
        print(f"  {title:26} {sum(end[key] for end in ends)}")


@app.command("list")
def list_configs() -> None:
    """The named configurations."""
    from reward_models.agents import configs

    for name, config in configs.CONFIGS.items():
        print(f"{name:20} {config.env_id.split(':')[1]} {dict(config.env_kwargs)}, {config.total_steps:,} steps")


def _cast(run: str, config: str | None) -> tuple[Any, AgentConfig, Any]:
    """Resolve the policy, its world, and the reward whose claims are counted.

    Raises:
        ValueError: a configuration is missing or too much; FileNotFoundError: there is no run.
    """
    from reward_models.agents import configs
    from reward_models.agents.training import load_agent

    if run in SCRIPTED:
        if config is None:
            raise ValueError(f"{run} acts in the world of --config NAME; accepted are {', '.join(configs.CONFIGS)}")
        return run, configs.by_name(config), "sparse"
    if config is not None:
        raise ValueError(f"--config and {run} contradict each other: a trained agent has its own configuration")
    agent = load_agent(run)
    agent.close()
    return agent, agent.config, agent.reward


def _say_ends(ends: dict[str, Any]) -> None:
    for key, title in (("claimed", "its reward says achieved"), ("success", "truly achieved")):
        low, high = ends[f"{key}_interval"]
        print(f"  {title:26} {ends[key]:.2f} ({low:.2f} to {high:.2f})")
