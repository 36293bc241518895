"""The whole idea in one run: networks learn to recognise arrangements, agents learn from the networks alone, and the
truth says how often they really got there.

Networks and agents are jobs of two worker processes; an agent starts when the network that is its reward is ready.
Each job resumes or is skipped when its folder holds it already. ``summary.json`` holds every figure with the
settings, seeds and versions.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from reward_models import provenance
from reward_models.agents import configs
from reward_models.agents.configs import AgentConfig
from reward_models.training.config import TrainingConfig
from spatialsim_env.arrangements.tasks import RANGES, Discrimination
from spatialsim_env.arrangements.viewer import SceneViewer
from spatialsim_env.checks import read_object
from spatialsim_env.core.screen import import_pygame, save_frames
from spatialsim_env.files import replace_file

TRUTH, RANDOM = "truth", "random agent"
BEST = "matching, mixture"  # the reward whose agent is drawn
KINDS = ("mirrored", "twisted", "mis_scaled")  # wrong configurations that the benchmark does not have
HEARTBEAT = 30.0  # seconds of silence before a line says that jobs are running
NEAR_CHANCE = 0.55  # an accuracy below says that a network has learned nothing
KIND_OBJECTS = 3  # objects in the scenes of those kinds, as in the agents' world
PACKAGES = ("spatialsim-env", "numpy", "torch", "gymnasium", "stable-baselines3")

Row = dict[str, Any]


def _networks(samples: int, curriculum: int) -> dict[str, TrainingConfig]:
    return {
        "mpgnn": TrainingConfig("mpgnn", samples_per_stage=curriculum),
        "matching": TrainingConfig.plain("matching", samples_per_stage=samples),
        BEST: TrainingConfig.plain("matching", samples_per_stage=samples, negative="mixture"),
    }


@dataclass(frozen=True)
class DemoConfig:
    """Settings of the demo. The defaults are the paper's protocol for the MPGNN, and take minutes on two cores."""

    networks: dict[str, TrainingConfig] = field(default_factory=lambda: _networks(100_000, 100_000))  # by name
    agent: AgentConfig = field(
        default_factory=lambda: replace(configs.by_name("discrim_n3"), total_steps=2_000, episodes=200)
    )
    agents: int = 3  # per reward, with seeds from ``seed`` on
    test_samples: int = 10_000  # per range
    seed: int = 0  # of everything

    @classmethod
    def quick(cls) -> DemoConfig:
        """Two minutes: fewer samples, shorter agents."""
        agent = replace(configs.by_name("discrim_n3"), total_steps=1_200)
        return cls(_networks(50_000, 20_000), agent, agents=1, test_samples=4_000)

    def with_seed(self) -> DemoConfig:
        """Set the seed of every part."""
        networks = {name: replace(part, seed=self.seed) for name, part in self.networks.items()}
        return replace(self, networks=networks, agent=replace(self.agent, seed=self.seed))

    def to_json(self) -> dict[str, Any]:
        """The settings as a JSON object."""
        return {
            "networks": {name: part.to_json() for name, part in self.networks.items()},
            "agent": self.agent.as_json(),
            "agents": self.agents,
            "test_samples": self.test_samples,
            "kind_objects": KIND_OBJECTS,
            "seed": self.seed,
        }


def run(
    config: DemoConfig, directory: str | os.PathLike[str] = "runs/demo", say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Train, measure, draw; returns what ``summary.json`` holds.

    Args:
        directory: of everything that the demo writes.
        say: is given each line of the report.

    Raises:
        ValueError: the directory holds a demo with other settings.
    """
    config, folder, start = config.with_seed(), Path(directory), time.perf_counter()
    _check_drawing()
    _claim(folder, config)
    summary_file = folder / "summary.json"

    def tell(text: str) -> None:
        say(f"[{time.perf_counter() - start:5.0f} s] {text}")

    if summary_file.exists():
        tell(f"{folder} holds this demo already; another folder makes it anew")
        summary: dict[str, Any] = json.loads(summary_file.read_text())
    else:
        networks, agents = _work(config, folder, tell)
        summary = {
            "settings": config.to_json(),
            "commit": provenance.describe()["commit"],
            "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
            "networks": {name: networks[name] for name in (TRUTH, *config.networks)},
            "agents": {name: agents[name] for name in (RANDOM, TRUTH, *config.networks)},
            "seconds": time.perf_counter() - start,
        }
        with replace_file(summary_file) as temporary:
            temporary.write_text(json.dumps(summary, indent=2) + "\n")
    say("\n" + report(summary) + "\n")
    tell("drawing")
    pictures = draw(config, folder)
    for path in (summary_file, *pictures):
        say(f"wrote {path}")
    return summary


def _check_drawing() -> None:
    """Fail before the work, not after it."""
    import_pygame()
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise ImportError('the demo draws: pip install "spatialsim-env[render]"') from error


def _claim(folder: Path, config: DemoConfig) -> None:
    """Make the folder this demo's own, or refuse: other settings, or an unfinished demo of another commit."""
    file, claim = folder / "settings.json", {"settings": config.to_json(), "commit": provenance.describe()["commit"]}
    if file.exists():
        there = read_object(file)
        finished = (folder / "summary.json").exists()
        if there["settings"] != claim["settings"] or (not finished and there["commit"] != claim["commit"]):
            difference = "other settings" if there["settings"] != claim["settings"] else f"commit {there['commit']}"
            raise ValueError(f"{folder} holds a demo with {difference}; choose another folder (--out), or remove it")
        return
    with replace_file(file) as temporary:
        temporary.write_text(json.dumps(claim, indent=2) + "\n")


def _work(config: DemoConfig, folder: Path, tell: Callable[[str], None]) -> tuple[dict[str, Row], dict[str, Row]]:
    """All jobs, two at a time; the rows of networks and of agents by name."""
    networks: dict[str, Row] = {}
    agents: dict[str, list[Row]] = {name: [] for name in (RANDOM, TRUTH, *config.networks)}
    context = multiprocessing.get_context("spawn")
    with _workers(context) as pool:
        jobs: dict[Future[Row], tuple[str, str]] = {}

        def submit_agents(name: str, reward: str) -> None:
            for seed in range(config.seed, config.seed + config.agents):
                part = replace(config.agent, seed=seed)
                job = pool.submit(_train_agent, name, part, reward, _agent_folder(folder, name, seed))
                jobs[job] = ("agent", name)

        n_agents = config.agents * (len(config.networks) + 1)
        tell(f"two workers train {len(config.networks)} networks and {n_agents} agents; lines come as they finish")
        for name, network in config.networks.items():
            job = pool.submit(_train_network, network, _folder(folder, name), config.test_samples, config.seed)
            jobs[job] = ("network", name)
        jobs[pool.submit(_measure_truth, config.test_samples, config.seed)] = ("network", TRUTH)
        for name in (TRUTH, RANDOM):
            submit_agents(name, "sparse")
        while jobs:
            finished = wait(jobs, timeout=HEARTBEAT, return_when=FIRST_COMPLETED).done
            if not finished:
                tell(f"... {len(jobs)} of the jobs still to come")
            for done in finished:
                kind, name = jobs.pop(done)
                row = done.result()
                if kind == "agent":
                    agents[name].append(row)
                    tell(_agent_line(name, row))
                    continue
                networks[name] = row
                tell(_network_line(name, row))
                if name != TRUTH:
                    submit_agents(name, str(_folder(folder, name)))
    return networks, {name: _pool(runs) for name, runs in agents.items()}


@contextmanager
def _workers(context: Any) -> Iterator[ProcessPoolExecutor]:
    """Two processes of one thread each; an error or an interrupt ends them and what they are at."""
    pool = ProcessPoolExecutor(2, context, initializer=_begin_worker)
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise


def _pool(rows: list[Row]) -> Row:
    """Mean over the agents of a reward, and each of them, by seed."""
    runs = sorted(rows, key=lambda run: run["seed"])
    means = {key: float(np.mean([run["evaluation"][key] for run in runs])) for key in ("claimed", "success")}
    return {**means, "runs": runs}


def _begin_worker() -> None:
    """One torch thread; an interrupt ends the process at once, and so does the end of its parent."""
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _folder(root: Path, name: str) -> Path:
    return root / name.replace(", ", "_").replace(" ", "_")


def _agent_folder(root: Path, name: str, seed: int) -> Path:
    return _folder(root, f"agent {name} seed{seed}")


def _train_network(config: TrainingConfig, folder: Path, size: int, seed: int) -> Row:
    from reward_models.measuring.evaluation import accuracy_on
    from reward_models.training.protocol import read_log, train

    model = train(config, folder, progress=False)
    seconds = sum(row.seconds for row in read_log(folder))
    return {"weights": model.n_weights, "seconds": seconds, **_accuracies(partial(accuracy_on, model), size, seed)}


def _measure_truth(size: int, seed: int) -> Row:
    from reward_models.measuring.evaluation import truth_on

    return _accuracies(truth_on, size, seed)


def _accuracies(measure: Callable[..., Any], size: int, seed: int) -> Row:
    """Right answers on the benchmark's ranges and on the other kinds of wrong configurations."""
    ranges = {f"{low}-{high}": Discrimination((low, high)) for low, high in RANGES}
    kinds = {kind: Discrimination(KIND_OBJECTS, negative=kind, certified=True) for kind in KINDS}
    return {
        title: {name: asdict(measure(task, size, seed)) for name, task in tasks.items()}
        for title, tasks in (("accuracy", ranges), ("accuracy_by_kind", kinds))
    }


def _train_agent(name: str, config: AgentConfig, reward: str, folder: Path) -> Row:
    from reward_models.agents.evaluation import evaluate
    from reward_models.agents.training import train

    if name == RANDOM:
        ends = evaluate("random", config, reward, episodes=config.episodes, seed=config.seed * config.episodes)
        return {"seed": config.seed, "seconds": 0.0, "evaluation": ends.summary()}
    agent = train(config, reward, folder, resume=True, progress=False)
    agent.close()
    return {"seed": config.seed, "seconds": agent.record["seconds"], "evaluation": agent.record["evaluation"]}


def draw(config: DemoConfig, folder: Path) -> list[Path]:
    """A GIF and the last frame of an episode of the best agent, and where the first network misled its agent."""
    from reward_models.agents.evaluation import film

    frames = film(_load(config, folder, BEST), config.agent)
    drawn = {"reached.png": frames[-1:], "reached.gif": frames}
    misled = _false_claim(config, folder, next(iter(config.networks)))
    if misled is not None:
        drawn["false_claim.png"] = [misled]
    for name, parts in drawn.items():
        save_frames(parts, folder / name)
    return [folder / name for name in drawn]


def _false_claim(config: DemoConfig, folder: Path, name: str) -> Any:
    """The last scene of the episode that its reward calls achieved and that is farthest from it; None without one."""
    from reward_models.agents.evaluation import evaluate

    agent = _load(config, folder, name)
    ends = evaluate(agent, config.agent, agent.reward, episodes=config.agent.episodes)
    wrong = np.flatnonzero(ends.claimed & ~ends.success)
    if not len(wrong):
        return None
    worst = wrong[ends.distance[wrong].argmax()]
    viewer = SceneViewer(hint=f"the reward, {name}, says: achieved")
    scenes = ends.desired[worst], ends.achieved[worst]
    frame = viewer.draw(*scenes, float(ends.distance[worst]), achieved=False, step=config.agent.horizon)
    viewer.close()
    return frame


def _load(config: DemoConfig, folder: Path, name: str) -> Any:
    from reward_models.agents.training import load_agent

    return load_agent(_agent_folder(folder, name, config.seed))


def _network_line(name: str, row: Row) -> str:
    shares = ", ".join(f"{key} {_share(value):.4f}" for key, value in row["accuracy"].items())
    made = f"{row['weights']:,} weights, trained {row['seconds']:.0f} s, " if "weights" in row else ""
    return f"{name}: {made}accuracy {shares}"


def _agent_line(name: str, row: Row) -> str:
    ends = row["evaluation"]
    claim = "" if name in (TRUTH, RANDOM) else f"its reward says {ends['claimed']:.2f} achieved, "
    title = f"{name} {row['seed']}" if name == RANDOM else f"agent {row['seed']} on {name}"
    return f"{title}: {claim}truly achieved {ends['success']:.2f}"


def _share(accuracy: Row) -> float:
    return accuracy["correct"] / accuracy["total"]


def rows(summary: dict[str, Any]) -> list[list[str]]:
    """The report as cells: a header, then a line per reward."""
    ranges = list(next(iter(summary["networks"].values()))["accuracy"])
    header = ["reward", "weights", *ranges, *KINDS, "says achieved", "truly achieved"]
    lines = [header]
    for name, agent in summary["agents"].items():
        network = summary["networks"].get(name)
        cells = ["-"] * (1 + len(ranges) + len(KINDS))
        if network is not None:
            parts = [*network["accuracy"].values(), *network["accuracy_by_kind"].values()]
            weights = f"{network['weights']:,}" if "weights" in network else "-"
            cells = [weights, *(f"{_share(part):.4f}" for part in parts)]
        shares = [run["evaluation"]["success"] for run in agent["runs"]]
        claimed = "-" if name == RANDOM else f"{agent['claimed']:.2f}"
        lines.append([name, *cells, claimed, f"{agent['success']:.2f} ({min(shares):.2f} to {max(shares):.2f})"])
    return lines


def report(summary: dict[str, Any]) -> str:
    """The table of a summary for a terminal, with what its columns mean."""
    lines = rows(summary)
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    table = "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    low, *_, high = next(iter(summary["networks"].values()))["accuracy"]
    kinds = ", ".join(KINDS)
    return f"""{table}

{low} to {high}: accuracy on the benchmark by number of objects. {kinds}: accuracy on wrong
configurations of {KIND_OBJECTS} objects that the benchmark does not have. says achieved: share of the agents' episodes
that end in what their reward calls achieved; truly achieved: what the truth says of them, mean over
{_plural(summary["settings"]["agents"], "agent")} (lowest to highest).{_warning(summary)}"""


def _warning(summary: dict[str, Any]) -> str:
    """A line about networks that learned nothing, as happens with few samples."""
    first = {name: _share(next(iter(row["accuracy"].values()))) for name, row in summary["networks"].items()}
    chance = [name for name, share in first.items() if share < NEAR_CHANCE]
    return f"\n{', '.join(chance)}: near chance, trained too shortly to learn." if chance else ""


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
