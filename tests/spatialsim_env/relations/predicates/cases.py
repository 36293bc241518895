"""Hand-made scenes of two objects and, for each predicate, the margin that follows from the rule by hand.

A case is (subject, object, margin): the margin as a number where it is one line of arithmetic, else True or False.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spatialsim_env.relations import scene

Y_OBSERVER = scene.observers([0, -3, 1.5], [0, 0, 0.5])  # right is +x, away is +y
X_OBSERVER = scene.observers([3, 0, 1.5], [0, 0, 0.5])  # right is +y, away is -x


class Case(NamedTuple):
    subject: np.ndarray
    object: np.ndarray
    margin: float | bool
    observer: np.ndarray = Y_OBSERVER

    @property
    def scenes(self) -> np.ndarray:
        return np.stack([self.subject, self.object])[None]


def rotation(yaw=0.0, pitch=0.0, roll=0.0) -> np.ndarray:
    """Degrees. Roll about the front, then pitch that takes the front downward, then yaw about z."""
    p, r = np.radians(pitch), np.radians(roll)
    about_left = np.array([[np.cos(p), 0, np.sin(p)], [0, 1, 0], [-np.sin(p), 0, np.cos(p)]])
    about_front = np.array([[1, 0, 0], [0, np.cos(r), -np.sin(r)], [0, np.sin(r), np.cos(r)]])
    return scene.yaw_rotation(yaw) @ about_left @ about_front


def thing(center, half=0.1, kind="block", yaw=0.0, pitch=0.0, roll=0.0) -> np.ndarray:
    sizes = np.broadcast_to(half, (3,))
    return scene.objects(center, rotation(yaw, pitch, roll), sizes, scene.KIND_NAMES.index(kind))


CUBE = thing([0, 0, 0.1])  # 0.2 m wide, on the floor
PLATFORM = thing([0, 0, 0.1], (0.2, 0.2, 0.1))
CONTAINER = thing([0, 0, 0.2], (0.3, 0.3, 0.2), "container")  # cavity 0.456 wide, floor at 0.048, top at 0.4
RING = thing([0, 0, 0.1], (0.3, 0.3, 0.1), "ring")  # hole 0.456 wide
TABLE = thing([0, 0, 0.4], (0.5, 0.5, 0.4), "table")  # slab from 0.704 to 0.8
WALL = thing([0.1, 0, 1], (0.1, 2, 1))  # its face is x = 0
LEG_SPAN = 4 * np.degrees(np.arctan(1 / 0.76) - np.arctan(0.76))  # a table's legs begin at 0.76 of its half size


def lifted(z, half=0.1, x=0.0, **more) -> np.ndarray:
    return thing([x, 0, z], half, **more)


def touching() -> list[Case]:
    diagonal = 0.1 + 0.1 * np.sqrt(2)
    gaps = [(0.2, 1), (0.21, 0.5), (0.219, 0.05), (0.221, -0.05), (0.185, 0.25), (0.175, -0.25), (1.0, -39)]
    return [
        *[Case(thing([x, 0, 0.1]), CUBE, margin) for x, margin in gaps],
        Case(thing([diagonal + 0.01, 0, 0.1], yaw=45), CUBE, 0.5),
        Case(thing([0, 0, 0.1], 0.1), RING, 1 - 0.128 / 0.02),  # in the hole, away from its walls
        Case(thing([0, 0, 0.1], (0.218, 0.1, 0.1)), RING, 0.5),
    ]


def on() -> list[Case]:
    heights = [(0.3, 1), (0.31, 0.5), (0.319, 0.05), (0.321, -0.05), (0.281, 0.05), (0.279, -0.05), (0.1, -9)]
    return [
        *[Case(lifted(z), PLATFORM, margin) for z, margin in heights],
        Case(lifted(0.3, x=0.19), PLATFORM, 0.05),  # the centre, 0.19 of 0.2
        Case(lifted(0.3, x=0.21), PLATFORM, -0.05),
        Case(lifted(0.3, (0.15, 0.2, 0.1)), CUBE, (1 / 3 - 0.3) / 0.7),  # a third of the subject
        Case(lifted(0.3, (0.2, 0.2, 0.1)), CUBE, (0.25 - 0.3) / 0.7),
        Case(lifted(0.9), TABLE, 1),
    ]


def on_top_of() -> list[Case]:
    slab = (0.1, 0.1, 0.05)
    return [
        Case(lifted(0.3), PLATFORM, 1),
        Case(lifted(0.25 - 0.008, slab), PLATFORM, 0.2),  # 0.92 of it above
        Case(lifted(0.25 - 0.012, slab), PLATFORM, -0.2),  # 0.88 of it
        Case(lifted(0.319), PLATFORM, 0.05),
        Case(lifted(0.321), PLATFORM, -0.05),
        Case(lifted(0.3, x=0.21), PLATFORM, -0.05),
        Case(thing([1, 0, 0.1]), PLATFORM, False),
    ]


def over() -> list[Case]:
    slab = (0.2, 0.2, 0.05)
    return [
        Case(lifted(0.6, slab), CUBE, 1),
        Case(lifted(0.6), PLATFORM, 1),  # all of the subject over the object
        Case(lifted(0.225, slab), CUBE, 0.05 / 0.3),  # 0.75 of it above
        Case(lifted(0.215, slab), CUBE, -0.05 / 0.3),
        Case(lifted(0.6, slab, x=0.115), CUBE, 0.25),  # covers 0.925
        Case(lifted(0.6, slab, x=0.13), CUBE, -0.5),  # covers 0.85
        Case(lifted(0.3, x=0.115), PLATFORM, 0.25),
        Case(lifted(0.1, x=2), PLATFORM, False),
    ]


def under() -> list[Case]:
    slab = (0.2, 0.2, 0.05)
    return [
        Case(CUBE, lifted(0.6, slab), 1),
        Case(CUBE, lifted(0.24, slab), 0.5),  # 0.95 of it below
        Case(CUBE, lifted(0.228, slab), -0.1),  # 0.89
        Case(CUBE, lifted(0.22, slab), -0.5),
        Case(CUBE, lifted(0.6, slab, x=0.115), 0.25),  # 0.925 of its footprint
        Case(CUBE, lifted(0.6, slab, x=0.13), -0.5),
        Case(CUBE, TABLE, 1),  # below the slab, above the table's feet
        Case(lifted(0.9), TABLE, (0 - 0.9) / 0.1),
    ]


def below() -> list[Case]:
    slab = (0.1, 0.1, 0.05)
    drops = [(0.3, 1), (0.09, 0.5), (0.063, 0.05), (0.057, -0.05), (0.0, -1)]
    return [
        *[Case(CUBE, lifted(0.25 + drop, slab), margin) for drop, margin in drops],
        Case(CUBE, lifted(0.6, slab, x=0.15), 0.05 / 0.8),  # a quarter
        Case(CUBE, lifted(0.6, slab, x=0.17), -0.05 / 0.8),
        Case(CUBE, TABLE, 1),
        Case(thing([0, 0, 0.02], (2, 2, 0.02)), TABLE, 1),  # all of the smaller footprint
    ]


def in_() -> list[Case]:
    heights = [(0.148, 1), (0.158, 0.5), (0.167, 0.05), (0.169, -0.05)]
    return [
        *[Case(lifted(z), CONTAINER, margin) for z, margin in heights],
        Case(lifted(0.138), CONTAINER, 0.5),  # 0.01 in the floor, 0.95 in the cavity
        Case(lifted(0.123), CONTAINER, -0.25),  # 0.025 in the floor
        Case(lifted(0.25, x=0.128), CONTAINER, 1),  # at a wall
        Case(lifted(0.048 + 0.25, (0.1, 0.1, 0.25)), CONTAINER, (0.352 / 0.5 - 0.7) / 0.3),
        Case(lifted(0.048 + 0.26, (0.1, 0.1, 0.26)), CONTAINER, (0.352 / 0.52 - 0.7) / 0.3),
        Case(thing([1, 0, 0.1]), CONTAINER, 1 - 0.6 / 0.02),
        Case(lifted(0.1, (0.228, 0.1, 0.1)), RING, -0.7 / 0.3),  # a hole is no cavity
    ]


def inside() -> list[Case]:
    def tall(out):
        return lifted((0.448 + out) / 2, (0.1, 0.1, (0.352 + out) / 2))

    return [
        Case(lifted(0.25), CONTAINER, 1),
        Case(tall(0.0), CONTAINER, 1),
        Case(tall(0.01), CONTAINER, 0.5),
        Case(tall(0.019), CONTAINER, 0.05),
        Case(tall(0.021), CONTAINER, -0.05),
        Case(lifted(0.25, x=0.149), CONTAINER, -0.05),  # 0.021 in a wall
        Case(lifted(0.408, 0.008), CONTAINER, -0.7 / 0.3),  # 0.016 high, all of it above the rim
        Case(lifted(0.1), RING, 1 - 0.1 / 0.02),  # a hole is no cavity: as one of no size, 0.1 from the corners
        Case(thing([1, 0, 0.1]), CUBE, 1 - 1.1 / 0.02),
    ]


def outside() -> list[Case]:
    plate = (0.005, 0.1, 0.1)
    return [
        Case(thing([0.4, 0, 0.2]), CONTAINER, 1),
        Case(thing([0.41, 0, 0.2]), CONTAINER, 1.5),
        Case(thing([0.39, 0, 0.2]), CONTAINER, 0.5),
        Case(thing([0.379, 0, 0.2]), CONTAINER, -0.05),
        Case(lifted(0.148), CONTAINER, (0.02 - 0.248) / 0.02),
        Case(thing([0.102, 0, 0.1], plate), CUBE, 0.1),  # its centre 0.002 out
        Case(thing([0.098, 0, 0.1], plate), CUBE, -0.1),
        Case(RING, CUBE, -5),  # nothing of the ring in the cube, its centre 0.1 deep
        Case(lifted(0.3), CUBE, 1),
    ]


def covering() -> list[Case]:
    slab = (0.2, 0.2, 0.02)
    heights = [(0.22, 1), (0.245, 0.5), (0.268, 0.04), (0.272, -0.04), (0.21, 0.05 / 0.3), (0.205, -0.25)]
    return [
        *[Case(lifted(z, slab), CUBE, margin) for z, margin in heights],
        Case(lifted(0.22, slab, x=0.115), CUBE, 0.25),
        Case(lifted(0.22, slab, x=0.13), CUBE, -0.5),
        Case(lifted(0.25, 0.05), CUBE, (0.25 - 0.9) / 0.1),  # over, but covers a quarter
    ]


def around() -> list[Case]:
    frame = thing([0, 0, 0.3], (0.1, 0.3, 0.3), "frame")
    return [
        Case(RING, CUBE, 1),
        Case(RING, thing([0.15, 0, 0.1], 0.05), 0.5),
        Case(RING, lifted(0.19, 0.05), 0.1),
        Case(RING, lifted(0.21, 0.05), -0.1),
        Case(RING, lifted(0.1, (0.238, 0.05, 0.05)), 0.5),  # 0.01 in two walls
        Case(RING, lifted(0.1, (0.249, 0.05, 0.05)), -0.05),
        Case(frame, lifted(0.3, 0.05), 1),
        Case(CONTAINER, lifted(0.2, 0.1), 1),
        Case(thing([0, 0, 0.3], 0.3, "table"), lifted(0.3, 0.05), (LEG_SPAN - 270) / 90),
        Case(thing([0, 0, 0.3], 0.3), lifted(0.3, 0.05), 1 - 0.35 / 0.02),
    ]


def passing_through() -> list[Case]:
    ring = thing([0, 0, 0.5], (0.3, 0.3, 0.1), "ring")
    frame = thing([0, 0, 0.3], (0.05, 0.3, 0.3), "frame")

    def stick(x=0.0, z=0.5, half=0.4, pitch=90):
        return thing([x, 0, z], (half, 0.03, 0.03), "stick", pitch=pitch)

    return [
        Case(stick(), ring, 0.75),
        Case(stick(z=0.75), ring, 0.05 / 0.4),
        Case(stick(z=0.85), ring, -0.05 / 0.4),
        Case(stick(x=0.114), ring, 0.5),
        Case(stick(x=0.217), ring, 1 - 0.217 / 0.228),  # 0.019 in a wall
        Case(stick(x=0.219), ring, -0.05),  # 0.021 in a wall
        Case(stick(half=0.2, pitch=0), ring, -0.5),  # lies across the hole
        Case(stick(x=0.35), ring, 1 - 0.35 / 0.228),  # passes outside, 0.02 off the wall
        Case(stick(z=0.3, half=0.3, pitch=0), frame, 0.25 / 0.3),
        Case(stick(x=0.35), thing([0, 0, 0.5], (0.3, 0.3, 0.1)), -1),  # no opening
    ]


def near() -> list[Case]:
    gaps = [(0.0, 1), (0.05, 0.25), (0.06, 0.1), (0.07, -0.05), (0.5, -6.5)]  # of 0.2 / 3
    large = thing([0, 0, 0.3], 0.3)
    return [
        *[Case(thing([0.2 + gap, 0, 0.1]), CUBE, margin) for gap, margin in gaps],
        Case(thing([0.5, 0, 0.1]), large, 0.25),  # 0.1 of 0.4 / 3
        Case(thing([0.54, 0, 0.1]), large, -0.05),
    ]


def far() -> list[Case]:
    gaps = [(0.5, 0.25), (0.44, 0.1), (0.38, -0.05), (0.2, -0.5), (0.0, -1)]  # of 0.4
    large = thing([0, 0, 0.3], 0.3)
    return [
        *[Case(thing([0.2 + gap, 0, 0.1]), CUBE, margin) for gap, margin in gaps],
        Case(thing([0.4 + 0.84, 0, 0.1]), large, 0.05),
        Case(thing([0.4 + 0.76, 0, 0.1]), large, -0.05),
    ]


def leaning() -> list[Case]:
    def board(tilt=20.0, yaw=0.0, gap=0.0, lift=0.0, roll=0.0, half=(0.02, 0.2, 0.4)):
        """Its rightmost point at x = -gap, its lowest at z = lift."""
        reach = np.abs(rotation(yaw, tilt, roll)) @ half
        return thing([-gap - reach[0], 0, lift + reach[2]], half, yaw=yaw, pitch=tilt, roll=roll)

    def propped(height):
        """A board at 30 degrees over the edge of a block of that height, and the block."""
        turn = np.radians(30)
        up = 0.02 * np.sin(turn) + 0.4 * np.cos(turn)
        along = (height - 0.4 * np.cos(turn)) / np.cos(turn)  # of the contact from the board's middle
        board = thing([-0.02 * np.cos(turn) - along * np.sin(turn), 0, up], (0.02, 0.2, 0.4), pitch=30)
        return board, thing([0.1, 0, height / 2], (0.1, 0.5, height / 2))

    def wedge(degrees):
        edge = np.cos(np.radians(45))
        return (np.cos(np.radians(degrees)) - edge) / (1 - edge)

    return [
        Case(board(20), WALL, 2 / 3),
        Case(board(10), WALL, 0.25),
        Case(board(8.4), WALL, 0.05),
        Case(board(7.6), WALL, -0.05),
        Case(board(57), WALL, 0.05),
        Case(board(63), WALL, -0.05),
        Case(board(gap=0.019), WALL, 0.05),
        Case(board(gap=0.021), WALL, -0.05),
        Case(board(lift=0.019), WALL, 0.05),
        Case(board(lift=0.021), WALL, -0.05),
        Case(board(yaw=40), WALL, wedge(40)),
        Case(board(yaw=50), WALL, wedge(50)),
        Case(board(-20), WALL, False),  # away from the wall
        Case(board(tilt=0, roll=-20), WALL, wedge(90)),  # along the wall
        Case(*propped(0.4), 0.5),
        Case(*propped(0.2), False),  # contact below half
        Case(thing([-0.1, 0, 0.1]), WALL, -1),  # upright
    ]


def aligned() -> list[Case]:
    yaws = [(0, 1), (4.5, 0.5), (8.55, 0.05), (9.45, -0.05), (45, -4), (94.5, 0.5), (-85.5, 0.5), (180, 1)]
    return [
        *[Case(thing([1, 0.4, 0.1], yaw=yaw), CUBE, margin) for yaw, margin in yaws],
        Case(thing([1, 0, 0.1], yaw=120), thing([0, 0, 0.1], yaw=30), 1),
        Case(thing([1, 0, 0.1], yaw=4.5, pitch=90), CUBE, 0.5),  # lies on its front
        Case(thing([1, 0, 0.3], pitch=np.degrees(np.arcsin(1 / np.sqrt(3))), roll=45), CUBE, -1),  # on its corner
    ]


def around_subject(kind, degrees, raised=0.0) -> np.ndarray:
    """The object 1 m from (0, 0, 1), so many degrees from +x towards +y; raised: towards +z."""
    turn, up = np.radians(degrees), np.radians(raised)
    return thing([np.cos(turn) * np.cos(up), np.sin(turn) * np.cos(up), 1 + np.sin(up)], kind=kind)


def directed(angles, more=()) -> list[Case]:
    """The subject's front, a block's and a stick's tip, along +x."""
    at = [0, 0, 1]
    return [
        *[
            Case(thing(at, kind=kind), around_subject("block", angle), margin)
            for angle, margin in angles
            for kind in ("block", "stick")
        ],
        Case(thing(at, yaw=90, kind="stick"), around_subject("block", 90 + angles[1][0]), angles[1][1]),
        Case(thing(at), around_subject("table", 0, raised=angles[1][0]), angles[1][1]),
        *more,
    ]


def faces() -> list[Case]:
    return directed([(0, 1), (15, 0.5), (28.5, 0.05), (31.5, -0.05), (-90, -2), (180, -5)])


def faces_away() -> list[Case]:
    return directed([(180, 1), (165, 0.5), (151.5, 0.05), (148.5, -0.05), (90, -2), (0, -5)])


def points() -> list[Case]:
    spire = thing([0, 0, 1], kind="spire")
    more = [Case(spire, lifted(2), 1), Case(spire, around_subject("block", 0), -5), Case(spire, lifted(0), -11)]
    return directed([(0, 1), (7.5, 0.5), (14.25, 0.05), (15.75, -0.05), (-90, -5)], more)


def points_away() -> list[Case]:
    spire = thing([0, 0, 1], kind="spire")
    more = [Case(spire, lifted(0), 1), Case(spire, around_subject("block", 0), -5), Case(spire, lifted(2), -11)]
    return directed([(180, 1), (172.5, 0.5), (165.75, 0.05), (164.25, -0.05), (-90, -5)], more)


# ahead, aside, margin
OWN = [(0.3, 0, 2), (0.3, 0.25, 0.5), (0.3, -0.31, -0.1), (0.105, 0, 0.05), (0.095, 0, -0.05), (-0.3, 0, -4)]
SEEN = [(0.4, 0, 1), (0.4, 0.3, 0.5), (0.4, -0.42, -0.1), (0.21, 0, 0.05), (0.19, 0, -0.05), (-0.4, 0, -3)]


def own(quarter) -> list[Case]:
    """Along the object's front turned by so many degrees to the left; mean half size 0.1. Heights do not matter."""
    turns = [(ahead, aside, margin, yaw) for yaw in (0, 90, -37) for ahead, aside, margin in OWN]
    cases = []
    for ahead, aside, margin, yaw in turns:
        x, y, _ = scene.yaw_rotation(yaw + quarter) @ [ahead, aside, 0]
        cases.append(Case(thing([x, y, 0.7]), thing([0, 0, 0.1], yaw=yaw), margin))
    return cases


def seen(quarter) -> list[Case]:
    """Along the observer's right turned by so many degrees to the left; the object's own axes do not matter."""
    cases = []
    for observer, right in ((Y_OBSERVER, 0), (X_OBSERVER, 90)):
        for ahead, aside, margin in SEEN:
            x, y, _ = scene.yaw_rotation(right + quarter) @ [ahead, aside, 0]
            cases.append(Case(thing([x, y, 0.3]), thing([0, 0, 0.1], yaw=70), margin, observer))
    return cases


def either(first, second, opposite) -> list[Case]:
    """Both directions; the last of a table is the other direction, which holds as well."""
    cases = [*first, *second]
    return [case if case.margin not in opposite else case._replace(margin=opposite[case.margin]) for case in cases]


LYING = thing([0, 0, 0.1], pitch=-90)  # its front is up

CASES: dict[str, list[Case]] = {
    "on": on(),
    "under": under(),
    "over": over(),
    "on top of": on_top_of(),
    "in": in_(),
    "to the side of": either(own(90), own(-90), {-4: 2}),
    "to the left of (wrt you)": seen(180),
    "to the right of (wrt you)": seen(0),
    "faces away": faces_away(),
    "faces towards": faces(),
    "below": below(),
    "in front of": [*own(0), Case(lifted(0.4), LYING, 2), Case(thing([0.3, 0, 0.1]), LYING, -1)],
    "behind": own(180),
    "around": around(),
    "leaning against": leaning(),
    "touching": touching(),
    "near": near(),
    "points away": points_away(),
    "points towards": points(),
    "aligned to": aligned(),
    "behind (wrt you)": seen(90),
    "in front of (wrt you)": seen(-90),
    "inside": inside(),
    "covering": covering(),
    "to the right of": own(-90),
    "to the left of": own(90),
    "far from": far(),
    "passing through": passing_through(),
    "to the side of (wrt you)": either(seen(0), seen(180), {-3: 1}),
    "outside": outside(),
}
