"""Checks of what comes from outside: values of configurations, and JSON files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

MOST_SEED = 2**31 - 1  # every generator in use takes it, and some numbers above it


def require(holds: bool, name: str, value: Any, accepted: str) -> None:
    """Raise a ValueError that names the value, unless it holds."""
    if not holds:
        raise ValueError(f"{name} is {value!r}; accepted is {accepted}")


def is_whole(value: Any, least: int = 1) -> bool:
    """Check that the value is an int, not a bool, of at least ``least``."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_finite(value: Any) -> bool:
    """Check that the value is an int or float, not a bool, and finite."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def require_whole(name: str, value: Any, least: int = 1) -> None:
    """Refuse what is not an int of at least ``least``."""
    require(is_whole(value, least), name, value, f"an int from {least}")


def require_seed(name: str, value: Any) -> None:
    """Refuse what some generator would not take as a seed."""
    require(is_whole(value, 0) and value <= MOST_SEED, name, value, f"an int from 0 to {MOST_SEED}")


def read_object(file: Path, error: type[ValueError] = ValueError) -> dict[str, Any]:
    """The JSON object in a file.

    Args:
        error: what is raised.

    Raises:
        ValueError: no JSON in it, or JSON that is no object; of the type ``error``.
        OSError: it cannot be read.
    """
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as cause:
        raise error(f"{file} is not JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise error(f"{file} holds a {type(value).__name__}; accepted is a JSON object")
    return value


def require_entries(file: Path, entries: dict[str, Any], types: dict[str, Any], error: type[ValueError]) -> None:
    """Refuse an object that lacks one of the keys of ``types``, or holds a value of another type there."""
    missing = [key for key in types if key not in entries]
    if missing:
        raise error(f"{file} lacks {', '.join(missing)}")
    for key, accepted in types.items():
        if not isinstance(entries[key], accepted):
            names = " or ".join(kind.__name__ for kind in (accepted if isinstance(accepted, tuple) else (accepted,)))
            raise error(f"{file}: {key} is {entries[key]!r}; accepted is a {names}")


def check_seed(name: str, seed: Any) -> None:
    """Refuse what is not a seed.

    Raises:
        ValueError: not an int from 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"{name} is {seed!r}; accepted is an int from 0")


def check_choice(name: str, value: Any, accepted: tuple[Any, ...]) -> None:
    """Refuse what is not among the accepted values.

    Raises:
        ValueError: another value.
    """
    if value not in accepted:
        raise ValueError(f"{name} is {value!r}; accepted are {', '.join(map(str, accepted))}")
