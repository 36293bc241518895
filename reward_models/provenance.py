"""Provenance of a row: code, versions and machine, the same entries in every row, card and report."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path

import spatialsim_env

PACKAGES = ("numpy", "torch", "numba")  # whose versions every stamp holds, beside Python's
_ROOT = Path(__file__).resolve().parents[1]
_SOURCES = ("reward_models", "spatialsim_env", ":(exclude)reward_models/hub/weights")  # weights are no code


@dataclass(frozen=True)
class Stamp:
    """The code and the machine that made something; a row holds these entries beside its own."""

    version: int  # of the study, raised by whatever alters results
    package: str  # version of the package
    commit: str | None  # None outside a checkout; ends in -dirty where code differs from it
    versions: dict[str, str]  # of Python and of packages
    machine: str  # as "x86_64, 2 cores"
    device: str = "cpu"  # or "cuda, NAME"


@cache
def stamp(version: int, packages: tuple[str, ...] = (), device: str = "cpu") -> Stamp:
    """Stamp of the code as it is when this is first called.

    Args:
        version: of the study.
        packages: whose versions matter, beside ``PACKAGES``.
        device: that torch computes on.
    """
    versions = {name: version_of(name) for name in (*PACKAGES, *packages)}
    return Stamp(
        version,
        spatialsim_env.__version__,
        _commit_at_start(),
        {"python": platform.python_version(), **versions},
        f"{platform.machine()}, {os.cpu_count()} cores",
        device_name(device),
    )


def describe(packages: tuple[str, ...] = ()) -> dict[str, object]:
    """Describe package, commit, versions and machine, where no study writes a row."""
    now = stamp(0, packages)
    return {"package": now.package, "commit": now.commit, "versions": dict(now.versions), "machine": now.machine}


def device_name(device: str) -> str:
    """Name a device with its card, as "cuda, NVIDIA H100"."""
    if device == "cpu":
        return device
    import torch

    kind = torch.device(device).type
    return f"{kind}, {torch.cuda.get_device_name(device)}" if kind == "cuda" else kind


def check_device(device: str) -> None:
    """Refuse a device that torch cannot compute on.

    Raises:
        ValueError: it is unknown or not there.
    """
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device is {device!r}; accepted are cpu and cuda where there is one: {reason}") from None


@cache
def _commit_at_start() -> str | None:
    return commit_of(_ROOT)


def commit_of(root: Path) -> str | None:
    """Commit of a checkout, with -dirty where its code differs; None where ``root`` is not the top of one."""
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top) != root:
        return None
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None:
        return None
    return f"{commit}-dirty" if _git(root, "status", "--porcelain", "--", *_SOURCES) else commit


def _git(root: Path, *arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", *arguments]
    try:
        ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None
