"""What can play in an episode of a goal: shapes and sizes with which the predicate can be brought about, and where.

The object stays, so where it has to be off the floor for a goal it hangs there. Sizes are half sizes in metres. A
subject that has to fit something takes its footprint from it: shares of the narrower half width of the object's
footprint, cavity or opening, or of the wider one where it is to surround or to cover the object.
"""

from __future__ import annotations

from dataclasses import dataclass

Sizes = tuple[float, float, float]
Range = tuple[float, float]

HALVES: dict[str, tuple[Sizes, Sizes]] = {  # lowest and highest half sizes along front, left, up
    "block": ((0.1, 0.1, 0.08), (0.25, 0.25, 0.25)),
    "stick": ((0.2, 0.03, 0.03), (0.35, 0.05, 0.05)),
    "spire": ((0.05, 0.05, 0.2), (0.1, 0.1, 0.35)),
    "container": ((0.2, 0.2, 0.12), (0.35, 0.35, 0.25)),
    "ring": ((0.2, 0.2, 0.05), (0.35, 0.35, 0.12)),
    "frame": ((0.05, 0.25, 0.25), (0.12, 0.4, 0.4)),
    "table": ((0.25, 0.25, 0.2), (0.4, 0.4, 0.35)),
}
ANY = tuple(HALVES)
AWAY, CLOSE, WITHIN = "away", "close", "within"  # where the subject is at first


@dataclass(frozen=True)
class Cast:
    """What plays for a predicate."""

    subjects: tuple[str, ...] = ANY  # names of scene.KINDS
    objects: tuple[str, ...] = ANY
    width: Range | None = None  # of the subject's half widths, shares of the object's; None takes its shape's
    of_wider: bool = False  # whether they are shares of the object's wider half width, not of the narrower one
    hollow: bool = False  # whether they are shares of the object's hole
    height: Range | None = None  # of the subject's half height, metres; None takes its shape's
    object_height: Range | None = None  # likewise of the object's
    hangs: Range = (0.0, 0.0)  # of the object's lower side, metres above the floor
    start: str = AWAY


_SMALL = ("block", "ring", "container")
CASTS: dict[str, Cast] = {
    "on": Cast(("block", "spire", "container", "ring", "table"), ("block", "table"), (0.3, 1.0)),
    "on top of": Cast(("block", "spire", "container", "ring", "table"), ("block", "table"), (0.3, 1.0)),
    "under": Cast(_SMALL, ("block",), (0.3, 0.6), height=(0.05, 0.15), hangs=(0.5, 1.0)),
    "below": Cast(("block", "container", "spire"), ("block", "container", "table"), hangs=(0.9, 1.4)),
    "over": Cast(("block", "container", "table"), ("block", "table", "ring"), (0.3, 0.65), height=(0.06, 0.2)),
    "in": Cast(_SMALL, ("container",), (0.3, 0.6), hollow=True, height=(0.05, 0.09)),
    "inside": Cast(_SMALL, ("container",), (0.3, 0.6), hollow=True, height=(0.05, 0.09)),
    "outside": Cast(_SMALL, ("container",), (0.3, 0.6), hollow=True, height=(0.05, 0.09), start=WITHIN),
    "around": Cast(("ring",), ("spire", "block"), (2.2, 2.6), of_wider=True),
    "covering": Cast(("block",), ("block", "table", "container"), (1.2, 1.5), of_wider=True, height=(0.03, 0.06)),
    "passing through": Cast(("stick",), ("frame",)),
    "leaning against": Cast(("spire",), ("block",), object_height=(0.15, 0.3)),
    "points away": Cast(("stick", "spire")),
    "points towards": Cast(("stick", "spire")),
    "far from": Cast(start=CLOSE),
}
_ANYTHING = Cast()


def cast(predicate: str) -> Cast:
    """What plays for a predicate: any two shapes, unless the predicate asks for certain ones."""
    return CASTS.get(predicate, _ANYTHING)
