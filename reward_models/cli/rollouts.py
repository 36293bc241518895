"""``spatialsim rollouts``: what policies do, as data for classifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def rollouts(
    out: Annotated[Path, typer.Argument(help="Folder to write parts train and valid into; run again to resume.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(help="random, expert, or the folder of a trained agent. Repeatable: they take turns."),
    ] = None,
    episodes: Annotated[int, typer.Option(help="Episodes of train; more of them later are added.", min=1)] = 10_000,
    valid: Annotated[int, typer.Option(help="Episodes of valid, others than train's.", min=1)] = 1_000,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Keep as many positive as negative pairs; most are negative else.")
    ] = False,
    n_objects: Annotated[str | None, typer.Option(help="Objects per scene; 3-8 by default, or the agent's.")] = None,
    action_mode: Annotated[str | None, typer.Option(help="move_all, pick_place or discrete.")] = None,
    criterion: Annotated[str | None, typer.Option(help="similarity or positions.")] = None,
    start: Annotated[str | None, typer.Option(help="How episodes begin, as redrawn or poses.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Steps per episode; 50 by default, or the agent's.")] = None,
    per_shard: Annotated[int, typer.Option(help="Episodes per file.", min=1)] = 1_000,
    minari: Annotated[str | None, typer.Option(help="Also a Minari data set of train, as spatialsim/n5-v0.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Write labelled pairs of scenes from episodes of policies; spatialsim train MODEL --data rollouts:OUT reads them.

    Without --policy, random and expert take turns.
    """
    from reward_models.cli.arguments import objects
    from spatialsim_env.arrangements.datasets import named
    from spatialsim_env.arrangements.datasets.rollouts import Rollouts

    given: dict[str, Any] = {"action_mode": action_mode, "criterion": criterion, "start": start}
    options = {name: value for name, value in given.items() if value is not None}
    if n_objects is not None:
        options["n_objects"] = objects(n_objects)
    world, policies = _cast(policy or ["random", "expert"], options, horizon)
    wanted = Rollouts(world, policies, seed, balanced, per_shard)
    for part, size in (("train", episodes), ("valid", valid)):
        manifest = wanted.write(out, part, size, _say)
        print(f"{manifest}: {named.read_manifest(manifest)['samples']:,} pairs of {size:,} episodes")
    if minari is not None:
        from spatialsim_env.arrangements.datasets import minari as minari_export

        print(minari_export.write(wanted, minari, "train", episodes))


def _cast(names: list[str], options: dict[str, Any], horizon: int | None) -> tuple[Any, tuple[Any, ...]]:
    """The world, an agent's own if there is one, and the policies."""
    from spatialsim_env import HORIZON
    from spatialsim_env.arrangements.datasets.rollouts import POLICIES, RolloutWorld

    folders = {name: Path(name) for name in names if name not in POLICIES}
    if not folders:
        world = RolloutWorld({"n_objects": (3, 8), **options}, horizon or HORIZON)
        return world, tuple(world.policy(name) for name in names)
    from reward_models.agents.agent_policy import AgentPolicy

    agents = {name: AgentPolicy(folder) for name, folder in folders.items()}
    worlds = [agent.world for agent in agents.values()]
    world = RolloutWorld({**worlds[0].options, **options}, horizon or worlds[0].horizon)
    for agent in agents.values():
        agent.check(world)
    return world, tuple(agents.get(name) or world.policy(name) for name in names)


def _say(shard: Path, made: bool) -> None:
    print(f"{shard}.npz" + ("" if made else ": there already"))
