"""The words of Rel3D: 30 predicates with their frame of reference, and the published numbers of samples.

Names are verbatim those of the published files. Where a file lists its own predicates, their order there is the class
index; the order here is that of the published table and the class index of scenes of our own.
"""

from __future__ import annotations

OBSERVER = "relative"  # to whoever looks: what the names say as "(wrt you)"
OWN = "intrinsic"  # to the object's own axes
NONE = "none"  # no frame

_WRT_YOU = " (wrt you)"

# train, valid and test samples of each predicate in c_0.9_c_0.1, half of them true
COUNTS: dict[str, tuple[int, int, int]] = {
    "on": (1444, 186, 232),
    "under": (1502, 142, 94),
    "over": (1114, 112, 436),
    "on top of": (1312, 112, 148),
    "in": (994, 128, 290),
    "to the side of": (1030, 100, 348),
    "to the left of (wrt you)": (1018, 100, 252),
    "to the right of (wrt you)": (954, 106, 230),
    "faces away": (990, 80, 154),
    "faces towards": (908, 78, 120),
    "below": (932, 100, 148),
    "in front of": (820, 84, 128),
    "behind": (854, 82, 66),
    "around": (652, 88, 164),
    "leaning against": (660, 66, 74),
    "touching": (552, 50, 132),
    "near": (450, 48, 238),
    "points away": (568, 54, 126),
    "points towards": (448, 56, 138),
    "aligned to": (464, 64, 116),
    "behind (wrt you)": (532, 60, 128),
    "in front of (wrt you)": (422, 58, 72),
    "inside": (426, 52, 120),
    "covering": (256, 20, 314),
    "to the right of": (322, 34, 120),
    "to the left of": (308, 22, 60),
    "far from": (178, 26, 94),
    "passing through": (144, 12, 106),
    "to the side of (wrt you)": (144, 10, 72),
    "outside": (56, 8, 24),
}

PREDICATES = tuple(COUNTS)
INDEX = {name: index for index, name in enumerate(PREDICATES)}
DIRECTIONAL = ("to the left of", "to the right of", "to the side of", "in front of", "behind")  # in both frames
N_OBJECTS = 67  # published categories


def frame(name: str) -> str:
    """The frame of reference of a predicate: "relative" to the observer, "intrinsic" to the object, or "none".

    Raises:
        ValueError: not one of the 30.
    """
    if name not in INDEX:
        raise ValueError(f"predicate is {name!r}; accepted are {', '.join(PREDICATES)}")
    if name.endswith(_WRT_YOU):
        return OBSERVER
    return OWN if name in DIRECTIONAL else NONE


def relative(name: str) -> str:
    """The same direction in the observer's frame.

    Raises:
        ValueError: not one of the five directions.
    """
    if name not in DIRECTIONAL:
        raise ValueError(f"direction is {name!r}; accepted are {', '.join(DIRECTIONAL)}")
    return name + _WRT_YOU
