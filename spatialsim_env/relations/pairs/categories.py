"""Things of our own scenes: categories with size ranges, and which (category, predicate, category) are admissible.

Sizes are full sizes in metres along front, left, up. Ranges are plausible everyday sizes that we chose; no published
category is copied. The tip, cavity and opening of a category are those of its kind (``scene.KINDS``).
Admissible triples follow from rules over kinds, sizes and flight, not from a list, so a new category gets its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations.scene import INNER, KIND_NAMES, KINDS, WALL, Kind
from spatialsim_env.relations.vocabulary import PREDICATES

Sizes = tuple[float, float, float]

ROOMY = 0.95  # a thing must leave a twentieth of the hole or footprint that it is to fit in
TALLEST = 3.0  # of two stacked things
BASE = 0.65  # share of a thing's footprint that must find place on what it stands on
POISE = 0.35  # the same of what is larger than its base
LEVEL = 1.0  # height of things that something on the floor can point at
FLAT = 0.5  # height of what covers


@dataclass(frozen=True)
class Category:
    """A sort of things: full sizes in metres along front, left, up lie between low and high."""

    name: str
    shape: str  # name of one of scene.KINDS
    low: Sizes
    high: Sizes
    flies: bool = False  # stays where it is put; gravity does not move it

    @property
    def kind(self) -> Kind:
        """Its shape."""
        return KINDS[KIND_NAMES.index(self.shape)]

    @property
    def middle(self) -> Sizes:
        """The middle of its range."""
        low, high = self.low, self.high
        return (low[0] + high[0]) / 2, (low[1] + high[1]) / 2, (low[2] + high[2]) / 2

    @property
    def narrow(self) -> float:
        """Lesser side of its footprint."""
        return min(self.middle[:2])

    @property
    def wide(self) -> float:
        """Diagonal of its footprint: it fits in a square of this side however it is turned."""
        return math.hypot(*self.middle[:2])


def _flying(name: str, shape: str, low: Sizes, high: Sizes) -> Category:
    return Category(name, shape, low, high, flies=True)


CATEGORIES: tuple[Category, ...] = (
    Category("crate", "block", (0.4, 0.4, 0.35), (0.65, 0.65, 0.6)),
    Category("book", "block", (0.2, 0.14, 0.03), (0.3, 0.22, 0.06)),
    Category("brick", "block", (0.18, 0.09, 0.06), (0.25, 0.12, 0.09)),
    Category("apple", "block", (0.07, 0.07, 0.07), (0.1, 0.1, 0.1)),
    Category("teddy bear", "block", (0.14, 0.18, 0.26), (0.2, 0.26, 0.38)),
    Category("suitcase", "block", (0.2, 0.4, 0.5), (0.3, 0.55, 0.7)),
    Category("cushion", "block", (0.38, 0.38, 0.1), (0.5, 0.5, 0.16)),
    Category("cabinet", "block", (0.4, 0.7, 1.2), (0.55, 1.1, 1.8)),
    Category("fridge", "block", (0.6, 0.6, 1.4), (0.7, 0.75, 1.8)),
    Category("person", "block", (0.25, 0.4, 1.5), (0.35, 0.55, 1.85)),
    Category("dog", "block", (0.6, 0.2, 0.45), (0.9, 0.3, 0.65)),
    Category("toy car", "block", (0.22, 0.12, 0.1), (0.36, 0.18, 0.14)),
    Category("rug", "block", (1.1, 0.8, 0.03), (1.6, 1.2, 0.05)),
    Category("blanket", "block", (0.9, 0.7, 0.04), (1.3, 1.0, 0.08)),
    Category("tray", "block", (0.3, 0.42, 0.03), (0.4, 0.6, 0.05)),
    Category("door", "block", (0.04, 0.7, 1.5), (0.07, 0.9, 1.9)),
    Category("mirror", "block", (0.03, 0.4, 0.9), (0.06, 0.6, 1.3)),
    _flying("drone", "block", (0.3, 0.3, 0.08), (0.5, 0.5, 0.14)),
    _flying("bird", "block", (0.14, 0.08, 0.08), (0.22, 0.13, 0.13)),
    _flying("butterfly", "block", (0.09, 0.1, 0.04), (0.14, 0.16, 0.07)),
    _flying("balloon", "block", (0.16, 0.16, 0.18), (0.24, 0.24, 0.28)),
    _flying("cloud", "block", (0.9, 0.8, 0.25), (1.4, 1.2, 0.45)),
    Category("broom", "stick", (1.2, 0.04, 0.04), (1.5, 0.06, 0.06)),
    Category("pole", "stick", (1.5, 0.05, 0.05), (2.0, 0.08, 0.08)),
    Category("torch", "stick", (0.2, 0.05, 0.05), (0.3, 0.08, 0.08)),
    _flying("arrow", "stick", (0.6, 0.03, 0.03), (0.9, 0.05, 0.05)),
    _flying("spear", "stick", (1.2, 0.03, 0.03), (1.7, 0.05, 0.05)),
    _flying("airplane", "stick", (0.9, 0.25, 0.16), (1.3, 0.4, 0.26)),
    Category("bottle", "spire", (0.07, 0.07, 0.24), (0.1, 0.1, 0.34)),
    Category("lamp", "spire", (0.28, 0.28, 1.0), (0.4, 0.4, 1.5)),
    Category("traffic cone", "spire", (0.28, 0.28, 0.5), (0.4, 0.4, 0.75)),
    _flying("rocket", "spire", (0.16, 0.16, 0.7), (0.26, 0.26, 1.1)),
    Category("bowl", "container", (0.26, 0.26, 0.12), (0.38, 0.38, 0.18)),
    Category("bucket", "container", (0.3, 0.3, 0.3), (0.42, 0.42, 0.42)),
    Category("basket", "container", (0.45, 0.45, 0.3), (0.65, 0.65, 0.45)),
    Category("bathtub", "container", (1.3, 0.75, 0.5), (1.6, 0.9, 0.62)),
    Category("bin", "container", (0.4, 0.4, 0.6), (0.55, 0.55, 0.85)),
    Category("tyre", "ring", (0.6, 0.6, 0.16), (0.8, 0.8, 0.24)),
    Category("hoop", "ring", (0.8, 0.8, 0.05), (1.1, 1.1, 0.09)),
    Category("wreath", "ring", (0.4, 0.4, 0.06), (0.6, 0.6, 0.1)),
    _flying("halo", "ring", (0.5, 0.5, 0.05), (0.75, 0.75, 0.09)),
    _flying("hula hoop", "ring", (0.9, 0.9, 0.04), (1.2, 1.2, 0.07)),
    Category("doorway", "frame", (0.12, 1.0, 1.8), (0.2, 1.3, 2.2)),
    Category("window", "frame", (0.07, 0.7, 0.8), (0.12, 1.1, 1.2)),
    Category("goal", "frame", (0.2, 1.2, 0.9), (0.35, 1.7, 1.3)),
    Category("table", "table", (0.8, 1.1, 0.68), (1.0, 1.5, 0.78)),
    Category("stool", "table", (0.35, 0.35, 0.45), (0.45, 0.45, 0.6)),
    Category("bench", "table", (0.4, 1.0, 0.42), (0.5, 1.4, 0.5)),
)
NAMES = tuple(category.name for category in CATEGORIES)
INDEX = {category.name: index for index, category in enumerate(CATEGORIES)}

KIND = np.array([KIND_NAMES.index(category.shape) for category in CATEGORIES])  # (categories,), index in scene.KINDS
LOW = np.array([category.low for category in CATEGORIES])  # (categories, 3)
HIGH = np.array([category.high for category in CATEGORIES])
FLIES = np.array([category.flies for category in CATEGORIES])


def draw_sizes(which: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Full sizes (..., 3) of categories (...), uniform in their ranges."""
    return rng.uniform(LOW[which], HIGH[which])


def _surface(thing: Category) -> bool:
    return thing.shape in ("block", "table") and not thing.flies


def _base_share(s: Category, o: Category) -> float:
    """Share of s's footprint that can be on o's, their longer sides along each other."""
    longer, shorter = (max(x.middle[:2]) for x in (o, s)), (min(x.middle[:2]) for x in (o, s))
    return math.prod(min(1.0, other / own) for other, own in (longer, shorter))


def _holds_up(s: Category, o: Category) -> bool:
    """Check that s can stand on o: a flat top that is wide enough under a thing that is not too tall."""
    return _surface(o) and _base_share(s, o) >= BASE and s.high[2] + o.high[2] <= TALLEST


def _fits_hole(s: Category, o: Category) -> bool:
    """Check that s, however it is turned about up, fits between the walls of o."""
    return s.wide <= ROOMY * INNER * o.narrow


def _larger(s: Category, o: Category) -> bool:
    """Check that s can cover o."""
    sides = zip(sorted(s.middle[:2]), sorted(o.middle[:2]), strict=True)
    return all(own * ROOMY >= other for own, other in sides)


def _balances(s: Category, o: Category) -> bool:
    """Check that s, larger than o, can lie on it."""
    solid = s.shape in ("block", "table", "container")
    return solid and _surface(o) and _base_share(s, o) >= POISE and s.high[2] + o.high[2] <= TALLEST


def _over(s: Category, o: Category) -> bool:
    if _larger(o, s):
        return s.flies or _holds_up(s, o)
    return _larger(s, o) and (s.flies or _balances(s, o))


def _under(s: Category, o: Category) -> bool:
    if o.shape == "table":
        return _fits_hole(s, o) and s.middle[2] < INNER * o.middle[2]
    return _larger(o, s) and (o.flies or _balances(o, s))


def _below(s: Category, o: Category) -> bool:
    if o.shape == "table":
        return _under(s, o)
    return o.flies and s.high[2] <= 2.0 and max(_base_share(s, o), _base_share(o, s)) >= BASE


def _in(s: Category, o: Category) -> bool:
    return o.shape == "container" and _fits_hole(s, o) and s.middle[2] <= 1.2 * (1 - WALL) * o.middle[2]


def _inside(s: Category, o: Category) -> bool:
    return _in(s, o) and s.middle[2] <= ROOMY * (1 - WALL) * o.middle[2]


def _outside(s: Category, o: Category) -> bool:
    return o.shape == "container" and _fits_hole(s, o) and s.flies


def _covering(s: Category, o: Category) -> bool:
    return s.shape == "block" and s.high[2] <= FLAT and _larger(s, o) and (s.flies or _balances(s, o))


def _around(s: Category, o: Category) -> bool:
    if s.shape == "container":
        return _inside(o, s)
    low = o.middle[2] / 2 <= ROOMY * s.middle[2]  # the middle of o, on the floor, is as low as s
    return s.shape == "ring" and _fits_hole(o, s) and (s.flies or low)


def _passing_through(s: Category, o: Category) -> bool:
    if s.shape != "stick":
        return False
    hole = INNER * min(o.low[1], o.low[2] if o.shape == "frame" else o.low[0])
    thin = max(s.high[1:]) * 2 <= hole
    if o.shape == "ring":
        return thin and o.flies and s.low[0] >= 0.5
    return thin and o.shape == "frame" and s.low[0] >= 0.5 and s.flies


def _leaning(s: Category, o: Category) -> bool:
    flat = s.shape in ("block", "frame") and s.high[0] <= 0.12 and s.low[2] >= 0.7
    stick = s.shape == "stick" and s.low[0] >= 1.0
    tall = s.low[0] if stick else s.low[2]
    steady = o.shape in ("block", "table", "container", "frame") and min(o.high[:2]) >= 0.12
    return (flat or stick) and not s.flies and steady and not o.flies and o.low[2] >= 0.55 * tall


def _points(s: Category, o: Category) -> bool:
    return s.kind.tip is not None and (s.flies or o.high[2] <= LEVEL)


def _any(s: Category, o: Category) -> bool:
    return True


_RULES: dict[str, Callable[[Category, Category], bool]] = {
    "on": _holds_up,
    "on top of": _holds_up,
    "over": _over,
    "under": _under,
    "below": _below,
    "in": _in,
    "inside": _inside,
    "outside": _outside,
    "covering": _covering,
    "around": _around,
    "passing through": _passing_through,
    "leaning against": _leaning,
    "points towards": _points,
    "points away": _points,
}


def admissible(subject: str, predicate: str, object_: str) -> bool:
    """Check that scenes of this triple are made.

    Raises:
        ValueError: unknown names.
    """
    for role, name, names in (
        ("subject", subject, NAMES),
        ("predicate", predicate, PREDICATES),
        ("object", object_, NAMES),
    ):
        if name not in names:
            raise ValueError(f"{role} is {name!r}; accepted are {', '.join(names)}")
    rule = _RULES.get(predicate, _any)
    return subject != object_ and rule(CATEGORIES[INDEX[subject]], CATEGORIES[INDEX[object_]])


@cache
def triples(predicate: str) -> NDArray[np.int64]:
    """All admissible (subject, object) of a predicate as indices in CATEGORIES, (n, 2), in their order. Read-only.

    Raises:
        ValueError: unknown predicate.
    """
    pairs = [
        (INDEX[subject], INDEX[object_])
        for subject in NAMES
        for object_ in NAMES
        if admissible(subject, predicate, object_)
    ]
    out = np.array(pairs, np.int64).reshape(-1, 2)
    out.flags.writeable = False
    return out
