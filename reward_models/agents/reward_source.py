"""The reward that an agent is trained on, in a form that a file can hold and a later process can find again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from reward_models.judges import shipped
from reward_models.judges.learned import LearnedReward
from reward_models.models import checkpoint
from spatialsim_env.checks import require_entries
from spatialsim_env.core import rewards
from spatialsim_env.core.rewards import Reward

SPARSE = "sparse"
_MODEL = {"folder": str, "beside": (str, type(None)), "kind": str, "sha256": str}


def fix_path(reward: str | Reward) -> str | Reward:
    """Make the path of a model absolute, so that every working directory finds the reward.

    Raises:
        ValueError: an unknown name, or a path without a model.
    """
    model = learned(reward)
    return reward if model is None or not isinstance(reward, str) else model.name


def learned(reward: str | Reward) -> LearnedReward | None:
    """The learned reward of a name, a path or a live object; None for any other.

    Raises:
        ValueError: an unknown name, or a path without a model.
    """
    resolved = rewards.installed(reward) if isinstance(reward, str) and reward not in rewards.TRUTHS else reward
    return resolved if isinstance(resolved, LearnedReward) else None


def describe(reward: str | Reward, run: Path) -> dict[str, Any]:
    """Entries of ``agent.json`` about a reward.

    ``reward`` is its name and ``live_reward`` whether it is an object that no file holds. ``model`` is None unless
    the reward comes from a model's folder; then it holds that folder (absolute, and where both lie in one tree also
    relative to the run), what the model's output is made into, and the SHA-256 of its weights.

    Args:
        run: folder of the run.

    Raises:
        ValueError: an unknown name, or a path without a model.
    """
    resolved = learned(reward)
    model = None if resolved is None else _describe_model(resolved, run.resolve())
    if resolved is not None and model is not None:
        return {"reward": resolved.name, "live_reward": False, "model": model}
    name = reward if isinstance(reward, str) else getattr(reward, "name", type(reward).__name__)
    return {"reward": name, "live_reward": not isinstance(reward, str), "model": None}


def _describe_model(reward: LearnedReward, run: Path) -> dict[str, Any] | None:
    folder = reward.folder
    if folder is None:
        return None
    beside = os.path.relpath(folder, run) if folder.is_relative_to(run.parent) else None
    return {"folder": str(folder), "beside": beside, "kind": reward.kind, "sha256": _digest(reward)}


def differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """List what sets two rewards apart, both as of ``describe``; a model is its weights, wherever it lies."""
    if theirs["model"] is None or ours["model"] is None:
        return [
            f"{key} is {theirs[key]!r} there and {ours[key]!r} here"
            for key in ("reward", "live_reward")
            if theirs[key] != ours[key]
        ]
    changes = []
    if theirs["model"]["sha256"] != ours["model"]["sha256"]:
        changes.append(
            f"reward is {theirs['reward']!r} with weights of SHA-256 {theirs['model']['sha256'][:12]} there "
            f"and {ours['reward']!r} with weights of SHA-256 {ours['model']['sha256'][:12]} here"
        )
    if theirs["model"]["kind"] != ours["model"]["kind"]:
        changes.append(f"reward is {theirs['model']['kind']} there and {ours['model']['kind']} here")
    return changes


def find(record: dict[str, Any], run: Path) -> str:
    """Find the present name of a run's reward; the sparse truth for a live object.

    Args:
        record: as of ``describe``.
        run: folder of the run; a model beside it is found where the whole tree was moved.

    Raises:
        ValueError: its model is gone, or its weights are others by now.
    """
    model = record["model"]
    if model is None:
        return SPARSE if record["live_reward"] else record["reward"]
    candidates = _candidates(record, run)
    for reward in candidates:
        if _digest(reward) == model["sha256"]:
            return reward.name
    state = "has other weights by now" if candidates else "is gone"
    raise ValueError(
        f"{run}: its reward {record['reward']!r}, weights of SHA-256 {model['sha256'][:12]}, {state}; "
        "accepted is that model in its place, or another reward by name"
    )


def _candidates(record: dict[str, Any], run: Path) -> list[LearnedReward]:
    """Look for a shipped model wherever this package lies; for any other beside the run and where it was."""
    model = record["model"]
    if shipped.is_name(record["reward"]):
        return [LearnedReward(record["reward"].removesuffix(f":{model['kind']}"), model["kind"])]
    folders = [Path(model["folder"])]
    if model["beside"] is not None:
        folders.insert(0, (run.resolve() / model["beside"]).resolve())
    whole = [folder for folder in dict.fromkeys(folders) if (folder / checkpoint.INFO).exists()]
    return [LearnedReward(folder, model["kind"]) for folder in whole]


def _digest(reward: LearnedReward) -> str:
    assert reward.folder is not None
    return checkpoint.read_info(reward.folder)["sha256"]


def check(file: Path, record: dict[str, Any]) -> None:
    """Refuse the record of a file that is not as of ``describe``.

    Raises:
        ValueError: an entry is missing or of another type.
    """
    types = {"reward": str, "live_reward": bool, "model": (dict, type(None))}
    require_entries(file, record, types, ValueError)
    if record["model"] is not None:
        require_entries(file, record["model"], _MODEL, ValueError)
