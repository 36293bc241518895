"""The rules of the 30 predicates, their thresholds and their readings (docs/rel3d_rules.md has the table).

A rule gives a *signed margin*: positive where the predicate holds, continuous in the poses, without a unit. It is the
least of the rule's clauses, each divided by a unit of its own. S is the subject, O the object, "ov", "above", "pen"
and L are those of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from spatialsim_env.relations.geometry import boxes
from spatialsim_env.relations.predicates.facts import Facts
from spatialsim_env.relations.scene import CENTER, FRONT, HALF, KINDS, corners, kind

Array = NDArray[np.float64]

# Thresholds: the rule table in docs/rel3d_rules.md. Metres, degrees, shares.
CONTACT = 0.02  # m, the contact tolerance: "gap <= 0.02 and pen <= 0.02", "within 0.02"
ON_SHARE = 0.3  # on: "ov >= 0.3"
ON_TOP_SHARE = 0.9  # on top of: "above >= 0.9"
OVER_SHARE = 0.7  # over: "above >= 0.7"
COVER_SHARE = 0.9  # over, covering: "covers 0.9 of O or ov >= 0.9"; under: within the footprint
UNDER_SHARE = 0.9  # under: "below >= 0.9"
BELOW_DROP = 0.06  # m, below: "at least 0.06 under O"
BELOW_SHARE = 0.2  # below: "footprints overlap 0.2"
IN_SHARE = 0.7  # in: "0.7 of S in O's cavity"
COVER_GAP = 0.05  # m, covering: "gap <= 0.05"
AROUND_SPAN = 270.0  # degrees, around
NEAR = 1 / 3  # of the mean full size, near: "gap <= L/3"
FAR = 2.0  # of the mean full size, far from: "gap >= 2 L"
LEAST_TILT, MOST_TILT = 8.0, 60.0  # degrees, leaning against
LEAN_WEDGE = 45.0  # degrees, leaning against: "towards O"; our reading
ALIGNED = 9.0  # degrees, aligned to
FACING, FACING_AWAY = 30.0, 150.0  # degrees, faces towards and away
POINTING, POINTING_AWAY = 15.0, 165.0  # degrees, points towards and away
WEDGE = 45.0  # degrees to either side, the directions in both frames
BESIDE = 0.2  # m, the directions (wrt you): "beyond 0.2"

UNCLEAR_YAW = 0.1  # of the fourfold sum of the axes, 2 for upright objects: below it the yaw fades to "not aligned"
NO_OPENING = -1.0  # margin of the clause that needs an opening, where the shape has none

_OPENING = np.array([shape.opening[1] if shape.opening else (1.0, 1.0, 1.0) for shape in KINDS])
_HAS_OPENING = np.array([shape.opening is not None for shape in KINDS])

Rule = Callable[[Facts], Array]


def all_of(*clauses: Array) -> Array:
    """The least of the clauses."""
    return reduce(np.minimum, clauses)


def at_most(value: Array, most: float | Array) -> Array:
    """1 at 0, 0 at ``most``."""
    return 1 - value / most


def share(value: Array, least: float) -> Array:
    """1 at the whole, 0 at ``least``."""
    return (value - least) / (1 - least)


def _touching(facts: Facts) -> Array:
    return all_of(at_most(facts.gap, CONTACT), at_most(facts.depth, CONTACT))


def _on(facts: Facts) -> Array:
    height = np.abs(boxes.bottom(facts.subject) - boxes.top(facts.object))
    center_over = boxes.centrality(facts.subject[:, CENTER], facts.object)
    return all_of(at_most(height, CONTACT), share(facts.on_object, ON_SHARE), center_over)


def _on_top_of(facts: Facts) -> Array:
    return all_of(_on(facts), share(facts.above, ON_TOP_SHARE))


def _over(facts: Facts) -> Array:
    cover = np.maximum(share(facts.covered, COVER_SHARE), share(facts.on_object, COVER_SHARE))
    return all_of(share(facts.above, OVER_SHARE), cover)


def _under(facts: Facts) -> Array:
    below = boxes.share_below(facts.subject, facts.underside)
    return all_of(share(below, UNDER_SHARE), share(facts.on_object, COVER_SHARE))


def _below(facts: Facts) -> Array:
    drop = facts.underside - boxes.top(facts.subject)
    shared = np.maximum(facts.on_object, facts.covered)  # of the smaller footprint
    return all_of(drop / BELOW_DROP - 1, share(shared, BELOW_SHARE))


def _in(facts: Facts) -> Array:
    return all_of(share(facts.within, IN_SHARE), _touching(facts))


def _inside(facts: Facts) -> Array:
    """Every corner of S's box in the cavity up to the contact tolerance, and 0.7 of S for what is as small as that."""
    cavity = boxes.CAVITIES[kind(facts.object)] * facts.object[:, None, HALF]
    places = boxes.in_frame(corners(facts.subject), facts.object)
    out = (np.abs(places - cavity[:, None, 0]) - cavity[:, None, 1]).max(axis=(1, 2))
    return all_of(at_most(out, CONTACT), share(facts.within, IN_SHARE))


def _outside(facts: Facts) -> Array:
    """No part of S in O's box, what is hollow in O included, and S's centre outside it."""
    gap, depth = boxes.apart(facts.scenes, object_=boxes.whole(facts.object))
    return all_of(
        (CONTACT + gap - depth) / CONTACT, boxes.beyond_box(facts.own_offset, facts.object[:, HALF]) / CONTACT
    )


def _covering(facts: Facts) -> Array:
    return all_of(_over(facts), at_most(facts.gap, COVER_GAP), share(facts.covered, COVER_SHARE))


def _around(facts: Facts) -> Array:
    center = np.abs(boxes.in_frame(facts.object[:, CENTER], facts.subject))
    in_hull = 1 - (center / facts.subject[:, HALF]).max(axis=-1)
    span = (boxes.span(facts.subject) - AROUND_SPAN) / (360 - AROUND_SPAN)
    return all_of(in_hull, at_most(facts.depth, CONTACT), span)


def _passing_through(facts: Facts) -> Array:
    which, rows = kind(facts.object), np.arange(len(facts.scenes))
    half = facts.subject[:, HALF]
    longest = half.argmax(axis=-1)
    axis = facts.subject_turn[rows, :, longest] * half[rows, longest, None]
    middle = facts.own_offset
    reach = boxes.in_frame(axis + facts.object[:, CENTER], facts.object)
    through = 1 - boxes.nearness(middle, reach, _OPENING[which] * facts.object[:, HALF])
    along = boxes.AXES[which]
    ends = np.abs(reach[rows, along]) - np.abs(middle[rows, along]) - facts.object[:, HALF][rows, along]
    sticks_out = ends / half[rows, longest]
    crossing = np.where(_HAS_OPENING[which], through, NO_OPENING)
    return all_of(crossing, sticks_out, at_most(facts.depth, CONTACT))


def _near(facts: Facts) -> Array:
    return at_most(facts.gap, NEAR * facts.mean_size)


def _far(facts: Facts) -> Array:
    return facts.gap / (FAR * facts.mean_size) - 1


def _leaning(facts: Facts) -> Array:
    """S's standing axis is its tip's, else up, and is taken upward; its foot is the lower end of that axis.

    The factors up to 1 keep the margin continuous where "upward" or a direction is not defined; no sign hangs on them.
    """
    which, axis = facts.standing
    sign = np.where(axis[:, 2] < 0, -1.0, 1.0)
    axis = axis * sign[:, None]
    tilt = np.degrees(np.arctan2(np.hypot(axis[:, 0], axis[:, 1]), axis[:, 2]))
    upright = np.minimum(1, axis[:, 2] / np.cos(np.radians(MOST_TILT)))
    length = facts.subject[:, HALF][np.arange(len(axis)), which, None]
    foot = facts.subject[:, CENTER] - axis * length
    towards = _towards(axis[:, :2], boxes.nearest_of_footprint(foot, facts.object) - foot[:, :2])
    gap, _ = boxes.apart(facts.scenes, subject=boxes.half_of(facts.subject, which, sign))
    return all_of(
        _touching(facts),
        tilt / LEAST_TILT - 1,
        at_most(tilt, MOST_TILT),
        upright * towards,
        upright * at_most(gap, CONTACT),
        at_most(np.abs(boxes.bottom(facts.subject)), CONTACT),
    )


def _towards(lean: Array, way: Array) -> Array:
    """1 where the lean (B, 2) goes along the way (B, 2) to O, 0 at the edge of the wedge."""
    slope, length = np.hypot(lean[:, 0], lean[:, 1]), np.hypot(way[:, 0], way[:, 1])
    cosine = (lean * way).sum(axis=-1) / np.maximum(slope * length, 1e-12)
    edge = np.cos(np.radians(LEAN_WEDGE))
    clear = np.minimum(1, slope / np.sin(np.radians(LEAST_TILT))) * np.minimum(1, length / CONTACT)
    return clear * (cosine - edge) / (1 - edge)


def _aligned(facts: Facts) -> Array:
    own, other = boxes.fourfold(facts.subject), boxes.fourfold(facts.object)
    turn = own * other.conj()
    clear = np.minimum(1, np.abs(own) / UNCLEAR_YAW) * np.minimum(1, np.abs(other) / UNCLEAR_YAW)
    difference = np.degrees(np.abs(np.arctan2(turn.imag, turn.real))) / 4
    return clear * at_most(difference, ALIGNED) - (1 - clear)


def _faces(facts: Facts) -> Array:
    return at_most(facts.angle(facts.subject[:, FRONT]), FACING)


def _faces_away(facts: Facts) -> Array:
    return (facts.angle(facts.subject[:, FRONT]) - FACING_AWAY) / (180 - FACING_AWAY)


def _points(facts: Facts) -> Array:
    return at_most(facts.angle(facts.tip), POINTING)


def _points_away(facts: Facts) -> Array:
    return (facts.angle(facts.tip) - POINTING_AWAY) / (180 - POINTING_AWAY)


def _own(axis: int, sign: float) -> Rule:
    """A direction along O's front (0) or left (1): S's centre beyond O's half size and inside the wedge."""

    def rule(facts: Facts) -> Array:
        ahead, aside = sign * facts.own_offset[:, axis], np.abs(facts.own_offset[:, 1 - axis])
        beyond = ahead - facts.object[:, HALF][:, axis]
        return all_of(beyond, _wedge(ahead, aside)) / (facts.mean_size / 2)

    return rule


def _seen(axis: int, sign: float) -> Rule:
    """A direction along the observer's right (0) or away (1): S's centre beyond BESIDE and inside the wedge."""

    def rule(facts: Facts) -> Array:
        ahead, aside = sign * facts.seen_offset[:, axis], np.abs(facts.seen_offset[:, 1 - axis])
        return all_of(ahead - BESIDE, _wedge(ahead, aside)) / BESIDE

    return rule


def _wedge(ahead: Array, aside: Array) -> Array:
    return ahead * np.tan(np.radians(WEDGE)) - aside


def _either(first: Rule, second: Rule) -> Rule:
    return lambda facts: np.maximum(first(facts), second(facts))


_LEFT, _RIGHT, _FRONT, _BEHIND = _own(1, 1), _own(1, -1), _own(0, 1), _own(0, -1)
_SEEN_LEFT, _SEEN_RIGHT, _SEEN_FRONT, _SEEN_BEHIND = _seen(0, -1), _seen(0, 1), _seen(1, -1), _seen(1, 1)

RULES: dict[str, Rule] = {
    "on": _on,
    "under": _under,
    "over": _over,
    "on top of": _on_top_of,
    "in": _in,
    "to the side of": _either(_LEFT, _RIGHT),
    "to the left of (wrt you)": _SEEN_LEFT,
    "to the right of (wrt you)": _SEEN_RIGHT,
    "faces away": _faces_away,
    "faces towards": _faces,
    "below": _below,
    "in front of": _FRONT,
    "behind": _BEHIND,
    "around": _around,
    "leaning against": _leaning,
    "touching": _touching,
    "near": _near,
    "points away": _points_away,
    "points towards": _points,
    "aligned to": _aligned,
    "behind (wrt you)": _SEEN_BEHIND,
    "in front of (wrt you)": _SEEN_FRONT,
    "inside": _inside,
    "covering": _covering,
    "to the right of": _RIGHT,
    "to the left of": _LEFT,
    "far from": _far,
    "passing through": _passing_through,
    "to the side of (wrt you)": _either(_SEEN_LEFT, _SEEN_RIGHT),
    "outside": _outside,
}
