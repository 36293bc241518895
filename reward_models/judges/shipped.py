"""The folders of the hub, ``weights/NAME/``, and the check of every file in them.

    model.json, model.safetensors   the model (``checkpoint.py``)
    card.json                       what it was made of and what it is worth (``build.py``)
    SHA256SUMS                      of the three, as ``sha256sum`` writes them

Nothing is read from a folder before all of its checksums fit.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from reward_models.models import checkpoint
from reward_models.models.checkpoint import Checkpoint, CheckpointError
from spatialsim_env.checks import read_object, require_entries
from spatialsim_env.files import replace_file, sha256

PREFIX = "hub:"
HOME = Path(__file__).parents[1] / "hub" / "weights"
CARD, CARD_FORMAT = "card.json", 1
SUMS = "SHA256SUMS"
FILES = (checkpoint.INFO, checkpoint.WEIGHTS, CARD)
CARD_ENTRIES: dict[str, Any] = {
    "format": int, "name": str, "about": str, "command": str, "kind": str, "n_weights": int, "seed": int,
    "training": dict, "seconds": (int, float, type(None)), "trained": dict, "measured": dict, "accuracy_seed": int,
    "accuracy": dict, "microseconds": dict, "hard_suite": (dict, type(None)), "audit": (dict, type(None)),
    "known_failures": list,
}  # fmt: skip
_SUM = re.compile(r"([0-9a-f]{64})  (\S+)")


def names() -> tuple[str, ...]:
    """The names of all shipped models, without ``hub:``."""
    return tuple(sorted(path.parent.name for path in HOME.glob(f"*/{SUMS}") if not path.parent.name.startswith(".")))


def is_name(text: str) -> bool:
    """Check that a text names a model of the hub, shipped or not: ``hub:NAME``."""
    return text.startswith(PREFIX)


def folder(name: str) -> Path:
    """The folder of a shipped model, its files not yet checked.

    Args:
        name: with or without ``hub:``.

    Raises:
        CheckpointError: an unknown name.
    """
    bare = name.removeprefix(PREFIX)
    if bare not in names():
        accepted = ", ".join(PREFIX + known for known in names())
        raise CheckpointError(f"{PREFIX}{bare} is not in the hub; accepted are {accepted}")
    return HOME / bare


def check_folder(name: str) -> Path:
    """The folder of a shipped model whose files are all as they were shipped.

    Raises:
        CheckpointError: an unknown name; a file that is missing, cut or changed, which the message names.
    """
    home = folder(name)
    for file, (said, found) in checksums(home).items():
        if found is None:
            raise CheckpointError(f"{PREFIX}{home.name}: {home / file} is missing; {SUMS} lists it")
        if found != said:
            raise CheckpointError(
                f"{PREFIX}{home.name}: {home / file} is cut or changed: SHA-256 {found[:12]}, {SUMS} says {said[:12]}"
            )
    return home


def load(name: str) -> Checkpoint:
    """A shipped model.

    Raises:
        CheckpointError: as ``checked``; weights that are not those of the model they claim to be.
    """
    home = check_folder(name)
    try:
        return checkpoint.load(home)
    except CheckpointError as error:
        raise CheckpointError(f"{PREFIX}{home.name}: {error}") from error


def card(name: str) -> dict[str, Any]:
    """The card of a shipped model.

    Raises:
        CheckpointError: as ``checked``; a card of another format.
    """
    file = check_folder(name) / CARD
    found = read_object(file, CheckpointError)
    if found.get("format") != CARD_FORMAT:
        raise CheckpointError(f"{file} has format {found.get('format')!r}; accepted is {CARD_FORMAT}")
    require_entries(file, found, CARD_ENTRIES, CheckpointError)
    return found


def checksums(home: Path) -> dict[str, tuple[str, str | None]]:
    """SHA-256 of each file of a folder: what is said of it, and what it is, None where it is missing.

    Raises:
        CheckpointError: the list itself is missing, cut or changed.
    """
    file = home / SUMS
    try:
        text = file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{PREFIX}{home.name}: {file} cannot be read: {error}") from error
    said = {match[2]: match[1] for match in map(_SUM.fullmatch, text.splitlines()) if match}
    if tuple(said) != FILES or text != _sums(said):
        raise CheckpointError(f"{PREFIX}{home.name}: {file} is cut or changed; accepted are sums of {', '.join(FILES)}")
    return {name: (said[name], sha256(home / name) if (home / name).is_file() else None) for name in FILES}


def write_checksums(home: Path) -> None:
    """Write the list of a folder that is otherwise complete."""
    with replace_file(home / SUMS) as temporary:
        temporary.write_text(_sums({name: sha256(home / name) for name in FILES}), encoding="ascii", newline="\n")


def _sums(digests: dict[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in digests.items())
