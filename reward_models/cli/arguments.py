"""Arguments that several commands read."""

from __future__ import annotations


def objects(text: str) -> int | tuple[int, int]:
    """An int or a range from "5" or "3-8".

    Raises:
        ValueError: neither.
    """
    parts = text.split("-")
    if len(parts) > 2 or not all(part.isdigit() for part in parts):
        raise ValueError(f"number of objects is {text!r}; accepted are an int, as 5, or a range, as 3-8")
    return int(text) if len(parts) == 1 else (int(parts[0]), int(parts[1]))
