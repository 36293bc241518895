"""The 30 predicates of Rel3D on scenes of boxes: each gives a signed margin, positive where it holds.

The labels that follow from them are rules, not human judgements. The rules are in ``rules``, the table in
docs/rel3d_rules.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.relations.predicates.facts import Facts
from spatialsim_env.relations.predicates.rules import RULES, Rule
from spatialsim_env.relations.vocabulary import PREDICATES, frame

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Predicate:
    """A predicate and its rule."""

    name: str
    frame: str  # vocabulary.OBSERVER, OWN or NONE
    rule: Rule

    def margin(self, scenes: ArrayLike, observers: ArrayLike | None = None) -> Array:
        """Signed margins (B,) of scenes (B, 2, 19) seen by observers (B, 9); positive where the predicate holds.

        Raises:
            RoomError: other shapes; no observers for a predicate (wrt you).
        """
        return self.rule(Facts(scenes, observers))


REGISTRY = {name: Predicate(name, frame(name), RULES[name]) for name in PREDICATES}


def margins(scenes: ArrayLike, observers: ArrayLike | None = None, names: Sequence[str] | None = None) -> Array:
    """Signed margins (B, P) of the named predicates, all 30 by default, in the order of the names.

    Raises:
        RoomError: other shapes; no observers for a predicate (wrt you).
        ValueError: a name that is none of the 30.
    """
    names = PREDICATES if names is None else names
    unknown = [name for name in names if name not in REGISTRY]
    if unknown:
        raise ValueError(f"predicate is {unknown[0]!r}; accepted are {', '.join(PREDICATES)}")
    facts = Facts(scenes, observers)
    out = np.empty((len(facts.scenes), len(names)))
    for column, name in enumerate(names):
        out[:, column] = REGISTRY[name].rule(facts)
    return out


def margin_of(which: ArrayLike, scenes: ArrayLike, observers: ArrayLike | None = None) -> Array:
    """Signed margins (B,), of each scene for a predicate of its own: ``which`` (B,) are indices in PREDICATES.

    Raises:
        RoomError: other shapes; no observers for a predicate (wrt you).
        ValueError: an index outside the 30.
    """
    facts, which = Facts(scenes, observers), np.asarray(which)
    if which.shape != (len(facts.scenes),) or not np.issubdtype(which.dtype, np.integer):
        raise ValueError(f"which is {which.dtype} {which.shape}; accepted are {len(facts.scenes)} whole numbers")
    if ((which < 0) | (which >= len(PREDICATES))).any():
        raise ValueError(f"which has {which.min()} to {which.max()}; accepted are 0 to {len(PREDICATES) - 1}")
    out = np.empty(len(which))
    for index in np.unique(which):
        rows = which == index
        seen = None if facts.observers is None else facts.observers[rows]
        out[rows] = REGISTRY[PREDICATES[index]].margin(facts.scenes[rows], seen)
    return out


def holds(scenes: ArrayLike, observers: ArrayLike) -> NDArray[np.bool_]:
    """Mask of the predicates that hold, (B, 30)."""
    return margins(scenes, observers) > 0
