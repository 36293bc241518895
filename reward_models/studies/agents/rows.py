"""Rows of the study of agents: ``results/agents/rows/<id>.json``, a JSON object a run, written as its last act.

    id               agents/discrim_n5/matching/seed0
    version          ``study.VERSION`` of the code
    package, commit, versions, machine      as in the rows of the benchmark (``benchmark/rows.py``)
    settings         all that was run: the agent's configuration, the reward, the network's training, the episodes
    network          null, or {"run", "sha256", "training"} of the network that was the reward or was trained
    seconds, cpu_seconds     of training, those before a kill included; of the whole run where nothing is trained
    steps            of the environment in training
    n_weights        of the network that was trained; null for agents
    evaluation       {"success", "ever_success", "claimed", "ever_claimed", "precision": {"hits", "total", "interval"}}
                     by episodes, intervals after Wilson; empty where nothing is played
    claims           {network: {"claimed", "precision"}} at the last step, where a run asks several networks
    accuracy         {"3-8", "9-20", "21-30", "rollouts": {"hits", "total", "interval"}} of a network
    curve            [[steps, success, claimed, true reward, reward], ...] in training; null for what was not logged
    evaluations      [[steps, success, claimed], ...] of the deterministic policy in between; steps are those of the
                     line of the log that it is in, with sac up to a round of episodes later than the evaluation
    error            null, or one line; evaluation, claims and accuracy are then empty

Rows are read only if they are what the study of this version of the code says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from reward_models.agents.configs import AgentConfig
from reward_models.studies.agents import runs as study
from reward_models.studies.agents.runs import Run
from reward_models.studies.paper import rows as benchmark_rows
from reward_models.studies.paper.rows import FOLDER, RowError, named
from reward_models.training.config import TrainingConfig
from spatialsim_env.checks import read_object, require_entries

Row = dict[str, Any]

ENDING = ".json"
PACKAGES = ("gymnasium", "stable-baselines3")  # beside those of the benchmark's rows
SHARES = ("success", "ever_success", "claimed", "ever_claimed", "precision")
RESULTS = ("evaluation", "claims", "accuracy")  # what a run that failed has none of
_ENTRIES = {
    "id": str, "version": int, "package": str, "commit": (str, type(None)), "versions": dict, "machine": str,
    "settings": dict, "network": (dict, type(None)), "seconds": (int, float), "cpu_seconds": (int, float),
    "steps": int, "n_weights": (int, type(None)), "evaluation": dict, "claims": dict, "accuracy": dict, "curve": list,
    "evaluations": list, "error": (str, type(None)),
}  # fmt: skip
_WHOLE: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {  # settings with the defaults of what they lack
    "config": lambda values: AgentConfig.from_json(values).as_json(),
    "training": lambda values: TrainingConfig.from_json(values).to_json(),
}


@cache
def made_by() -> Row:
    """What a row says about the code and the machine, as they were when this was first called."""
    found = benchmark_rows.made_by()
    versions = found["versions"] | {name: version(name) for name in PACKAGES}
    return found | {"version": study.VERSION, "versions": versions}


def row_of(run: Run, **changes: Any) -> Row:
    """The row of a run; without changes one in which nothing was done."""
    nothing: Row = {
        "network": None, "seconds": 0.0, "cpu_seconds": 0.0, "steps": 0, "n_weights": None, "evaluation": {},
        "claims": {}, "accuracy": {}, "curve": [], "evaluations": [], "error": None,
    }  # fmt: skip
    return {"id": run.id, **made_by(), "settings": run.settings, **nothing, **changes}


def path_of(results: Path, run: Run) -> Path:
    """The file of a run's row."""
    return results / FOLDER / f"{run.id}{ENDING}"


def write(results: Path, run: Run, row: Row) -> Path:
    """Write the row of a run; returns its file, which is whole or as it was before.

    Raises:
        OSError: it cannot be written.
    """
    return benchmark_rows.write_file(path_of(results, run), [row])


def of_run(results: Path, run: Run) -> Row | None:
    """The row of a run, None if there is none yet.

    Raises:
        RowError: the file is damaged, or holds a row of another version or of another run than the study says.
    """
    return benchmark_rows.of_study(path_of(results, run), _read, lambda row: _problems(row, run), study.VERSION)


def read(results: Path, *, quick: bool = False) -> list[Row]:
    """All rows of a folder of results, in the order of the study; none where there is no folder.

    Args:
        quick: those of the small study.

    Raises:
        RowError: a damaged file, or rows of another version or of other runs than the study says; the message names
            them.
    """
    folder, known = Path(results) / FOLDER, study.runs(quick)
    found = {
        path.relative_to(folder).as_posix().removesuffix(ENDING): _read(path) for path in folder.rglob(f"*{ENDING}")
    }
    wrong = []
    for name, row in sorted(found.items()):
        wrong += _problems(row, known[name]) if name in known else [f"{name} is not in the study"]
    if wrong:
        raise RowError(
            f"{folder} holds rows of other runs than the study at version {study.VERSION}: {named(wrong)}; remove "
            "their files, or keep them in another folder of results"
        )
    return [found[name] for name in known if name in found]


def _read(path: Path) -> Row:
    """The row in a file.

    Raises:
        RowError: it is damaged; the message names it.
    """
    try:
        row = read_object(path, RowError)
        require_entries(path, row, _ENTRIES, RowError)
        for name in RESULTS:
            _check_shares(path, row[name])
    except RowError as error:
        raise RowError(f"{error}: the file is damaged; remove it, and it is run again") from error
    return row


def _check_shares(path: Path, found: Any) -> None:
    """Refuse shares that are none, wherever they lie in the results of a row."""
    if not isinstance(found, dict):
        return
    if "hits" not in found:
        for part in found.values():
            _check_shares(path, part)
        return
    hits, total = found["hits"], found.get("total")
    if not (isinstance(hits, int) and isinstance(total, int) and 0 <= hits <= total):
        raise RowError(f"{path} holds {hits!r} hits of {total!r}; accepted is 0 <= hits <= total")


def _problems(row: Row, run: Run) -> list[str]:
    """How a row differs from what the study says of a run; empty for a row of this study."""
    if row["version"] != study.VERSION:
        return [f"{row['id']} is of version {row['version']}, commit {row['commit']}"]
    if row["id"] != run.id:
        return [f"{row['id']} lies where {run.id} belongs"]
    found = [f"{run.id}: {difference}" for difference in differences(row["settings"], run.settings)]
    if row["error"] is None and not any(row[name] for name in RESULTS):
        found.append(f"{run.id} has neither results nor an error")
    played = row["evaluation"].get("success")
    if played is not None and played["total"] != run.settings["episodes"]:
        found.append(f"{run.id}: {played['total']} episodes, where the study has {run.settings['episodes']}")
    return found


def differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """What else was run than the study says; a setting that is not there had its default."""
    found = []
    for name in sorted(theirs.keys() | ours.keys()):
        there, here = theirs.get(name), ours.get(name)
        if name in _WHOLE and isinstance(there, dict) and isinstance(here, dict):
            try:
                there = _WHOLE[name](there)
            except (TypeError, ValueError) as error:
                found.append(f"{name} is of another version of the code ({error})")
                continue
            keys: Sequence[str] = [key for key in here if there[key] != here[key]]
            found += [f"{key} is {there[key]!r} there and {here[key]!r} in the study" for key in keys]
        elif there != here:
            found.append(f"{name} is {there!r} there and {here!r} in the study")
    return found
