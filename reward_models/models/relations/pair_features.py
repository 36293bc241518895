"""Two oriented boxes as numbers that tell relations: distances between faces, supports, shares, directions.

Everything is a function of scalar products between vectors of the scene, in the camera frame as anywhere, and so the
same however the whole scene is moved or turned: ``own`` reads both boxes and the world's up. ``seen`` reads the
observer too, the camera at the origin of the frame.

Lengths come as asinh(x / L), L the mean of all full sizes, and where contact or an absolute tolerance can decide also
as tanh(x / 0.02) and tanh(x / 0.2). Shares are means over 4 x 4 x 4 points of a box of sigmoids. All is continuous, and
differentiable but where a maximum or an absolute value changes sides; gradients are finite everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from reward_models.models.relations import shape_features
from reward_models.models.relations.base import BOX_CENTER, BOX_HALF, BOX_ROTATION, N_BOX, OBJECT, SUBJECT
from spatialsim_env.relations.scene import KINDS

CLOSE, BEYOND = 0.02, 0.2  # metres: contact, and "beyond" in the observer's frame
_POINTS = 4  # along each side of a box
_SOFT = 0.25  # of a half size: width of the sigmoids of shares
_UPRIGHT = 0.05  # sine of an edge's angle to up at which it counts half as a bound of the outline
_PARALLEL = 1e-3  # sine of the angle between two edges below which they span no axis
_TINY = 1e-6  # metres, and of unit vectors; keeps roots and ratios smooth


@dataclass(frozen=True)
class Pair:
    """A subject and an object. Axes are columns front, left, up; ``up`` is the world's."""

    centers: Tensor  # (B, 2, 3)
    axes: Tensor  # (B, 2, 3, 3)
    half: Tensor  # (B, 2, 3)
    up: Tensor  # (B, 3), unit
    kinds: Tensor  # (B, 2, 7)

    @classmethod
    def of(cls, boxes: Tensor, up: Tensor, kinds: Tensor) -> Pair:
        """From tensors as ``base.SHAPES`` has them."""
        axes = boxes[..., BOX_ROTATION].unflatten(-1, (3, 3))
        return cls(boxes[..., BOX_CENTER], axes, boxes[..., BOX_HALF], up / length(up)[:, None], kinds)

    @property
    def offset(self) -> Tensor:
        """From the object's centre to the subject's, (B, 3)."""
        return self.centers[:, SUBJECT] - self.centers[:, OBJECT]

    @property
    def unit(self) -> Tensor:
        """Mean of all full sizes, (B, 1)."""
        return 2 * self.half.mean((1, 2))[:, None]

    def reach(self, direction: Tensor) -> Tensor:
        """Half extent of both boxes along unit directions (B, n, 3), (B, 2, n)."""
        return torch.einsum("bnx,boxa,boa->bona", direction, self.axes, self.half).abs().sum(-1)


def length(x: Tensor) -> Tensor:
    """Lengths of vectors (..., d), smooth at 0."""
    return (x.square().sum(-1) + _TINY**2).sqrt()


def own(pair: Pair) -> Tensor:
    """Numbers that no observer alters, (B, N_OWN)."""
    parts = [
        pair.kinds.flatten(1),
        *(_sizes(pair, which) for which in (SUBJECT, OBJECT)),
        *(in_frame(pair, which) for which in (SUBJECT, OBJECT)),
        vertical(pair),
        separations(pair),
        *(shares(pair, which) for which in (SUBJECT, OBJECT)),
        directions(pair),
    ]
    return torch.cat(parts, dim=1)


def seen(pair: Pair) -> Tensor:
    """Numbers in the frame of the observer on the floor, (B, N_SEEN).

    Right is the picture's x without its vertical part; away is at a right angle to it. For scenes whose camera sees
    them in perspective, the direction from the camera to between the objects comes as well.
    """
    right = _level(pair, pair.up.new_tensor([1.0, 0.0, 0.0]).expand_as(pair.up))
    middle = _level(pair, pair.centers.mean(1))
    parts = []
    for axis in (right, middle):
        axis = axis / length(axis)[:, None]
        axes = torch.stack([axis, torch.linalg.cross(pair.up, axis)], dim=1)  # right and away, or ahead and left
        shift = (axes @ pair.offset[..., None]).squeeze(-1)
        reach = pair.reach(axes)
        gap = shift.abs() - reach.sum(1)
        cosine = shift / length(_level(pair, pair.offset))[:, None]
        parts += [_lengths(shift, pair, BEYOND), _lengths(gap, pair, BEYOND), _lengths(reach.flatten(1), pair), cosine]
    return torch.cat(parts, dim=1)


def _level(pair: Pair, x: Tensor) -> Tensor:
    """Vectors (B, ..., 3) without their part along up."""
    up = pair.up.view(-1, *[1] * (x.dim() - 2), 3)
    return x - (x * up).sum(-1, keepdim=True) * up


def _lengths(x: Tensor, pair: Pair, *absolute: float) -> Tensor:
    """Lengths (B, n) relative to the pair's sizes, and against absolute ones."""
    return torch.cat([(x / pair.unit).asinh(), *((x / scale).tanh() for scale in absolute)], dim=1)


def _sizes(pair: Pair, which: int) -> Tensor:
    """Half sizes, and how upright each axis is."""
    half = pair.half[:, which]
    upright = torch.einsum("bxa,bx->ba", pair.axes[:, which], pair.up)
    return torch.cat([(half / pair.unit).log(), half.log(), upright], dim=1)


def in_frame(pair: Pair, which: int) -> Tensor:
    """One box in the frame of the other one's axes: place, axes, ends of its axes, gaps between faces."""
    other = 1 - which
    sign = 1 if which == SUBJECT else -1
    frame = pair.axes[:, other].mT
    place = sign * (frame @ pair.offset[..., None]).squeeze(-1)
    turn = frame @ pair.axes[:, which]
    half = pair.half[:, other]
    arms = turn * pair.half[:, which, None, :]
    reach = arms.abs().sum(-1)
    gaps = torch.cat([place.abs() - reach - half, place - half, -place - half, place.abs() + reach - half], dim=1)
    ends = torch.cat([place[..., None] + arms, place[..., None] - arms], dim=-1).flatten(1)
    inside = (place / half).asinh()
    opening = shape_features.through_opening(place, arms, half, pair.kinds[:, other]).asinh()
    wedge = place / length(place[:, :2])[:, None]
    return torch.cat(
        [
            _lengths(place, pair, BEYOND),
            _lengths(gaps, pair, CLOSE),
            _lengths(ends, pair),
            _lengths(reach, pair),
            turn.flatten(1),
            inside,
            wedge[:, :2],
            wedge[:, 2:].asinh(),
            opening,
        ],
        dim=1,
    )


def vertical(pair: Pair) -> Tensor:
    """Heights between tops, bottoms and centres, and the level distance."""
    rise = (pair.offset * pair.up).sum(-1)
    subject, object = pair.reach(pair.up[:, None]).squeeze(-1).unbind(1)
    apart, level = subject + object, subject - object
    heights = [rise, rise - apart, -rise - apart, rise - level, rise + level]
    across = length(_level(pair, pair.offset))
    rest = torch.stack([across, length(pair.offset), subject, object], dim=1)
    return torch.cat([_lengths(torch.stack(heights, dim=1), pair, CLOSE, BEYOND), _lengths(rest, pair, BEYOND)], dim=1)


def separations(pair: Pair) -> Tensor:
    """Distance between the boxes: below it the greatest gap along the 15 axes that can part them, above it that of the
    nearest corner; where they meet, the former is minus the depth. The last is the former between their parts."""
    axes, never = _parting(pair)
    gaps = (axes @ pair.offset[..., None]).squeeze(-1).abs() - pair.reach(axes).sum(1) - never
    faces = torch.stack([gaps[:, :3].amax(1), gaps[:, 3:6].amax(1), gaps.amax(1)], dim=1)
    corners = torch.stack([_nearest(pair, which) for which in (SUBJECT, OBJECT)], dim=1)
    parts = shape_features.parts_apart(pair.offset, pair.axes, pair.half, pair.kinds, axes, never)
    values = torch.cat([faces, corners, corners.amin(1, keepdim=True), parts], dim=1)
    return torch.cat([_lengths(values, pair, CLOSE, BEYOND), (values / 0.1).tanh()], dim=1)


def _parting(pair: Pair) -> tuple[Tensor, Tensor]:
    """The 15 axes that can part two boxes, (B, 15, 3), and what to take off the gap along them, (B, 15).

    The cross product of two parallel edges is no axis; something is taken off it, so that it parts nothing.
    """
    subject, object = pair.axes[:, SUBJECT].mT, pair.axes[:, OBJECT].mT
    crosses = torch.linalg.cross(subject[:, :, None], object[:, None, :]).flatten(1, 2)
    size = length(crosses)
    parallel = torch.cat([torch.zeros_like(size[:, :6]), (_PARALLEL - size).clamp_min(0)], dim=1)
    return torch.cat([subject, object, crosses / size[..., None]], dim=1), 1e6 * parallel * pair.unit


def _nearest(pair: Pair, which: int) -> Tensor:
    """Least distance of one box's corners from the other box, (B,)."""
    outside = (_lattice(pair, which, 2, 1.0).abs() - pair.half[:, 1 - which, None]).clamp_min(0)
    return length(outside).amin(1)


def _lattice(pair: Pair, which: int, count: int, ends: float) -> Tensor:
    """Points of a box in the frame of the other one, (B, count^3, 3); the outermost at ``ends`` of the half sizes."""
    steps = torch.linspace(-ends, ends, count, dtype=pair.half.dtype, device=pair.half.device)
    points = torch.cartesian_prod(steps, steps, steps) * pair.half[:, which, None]
    other = 1 - which
    shift = pair.centers[:, which] - pair.centers[:, other]
    return (points @ pair.axes[:, which].mT + shift[:, None]) @ pair.axes[:, other]


def shares(pair: Pair, which: int) -> Tensor:
    """Shares of one box that lie inside the other, over or under its outline, above its top, below its bottom."""
    other = 1 - which
    half, points = pair.half[:, other, None], _lattice(pair, which, _POINTS, 1 - 1 / _POINTS)
    soft = _SOFT * torch.minimum(pair.half[:, which], pair.half[:, other]).amin(1)[:, None, None]
    within = ((half - points.abs()) / soft).sigmoid()
    up = torch.einsum("bxa,bx->ba", pair.axes[:, other], pair.up)
    heights = (points * up[:, None]).sum(-1)
    top = (up.abs() * pair.half[:, other]).sum(-1, keepdim=True)
    soft = soft[..., 0]
    above, below = ((heights - top) / soft).sigmoid(), ((-heights - top) / soft).sigmoid()
    over = outline(points, half, up, soft)
    memberships = [within.prod(-1), over, above, below, above * over, below * over, (heights / soft).sigmoid()]
    sides = [within[..., 0] * within[..., 1], within[..., 1] * within[..., 2], within[..., 0] * within[..., 2]]
    cavity = shape_features.in_cavity(points, pair.half[:, other], pair.kinds[:, other], soft[..., None])
    return torch.cat([torch.stack([x.mean(1) for x in (*memberships, *sides)], dim=1), cavity], dim=1)


def outline(points: Tensor, half: Tensor, up: Tensor, soft: Tensor) -> Tensor:
    """Soft membership of points (B, n, 3) in a box's outline from above, 0..1, (B, n): all in the frame of the box.

    The outline of a box is bounded by pairs of lines along the level parts of its edges; an upright edge gives none.
    """
    normals = torch.linalg.cross(up[:, None], torch.eye(3, dtype=up.dtype, device=up.device).expand(len(up), 3, 3))
    size = length(normals)
    normals = normals / size[..., None]
    reach = (normals.abs() * half).sum(-1)
    margin = (reach[:, None] - (points @ normals.mT).abs()) / soft[..., None]
    counts = (size.square() / (size.square() + _UPRIGHT**2))[:, None]
    return (1 - counts * (1 - margin.sigmoid())).prod(-1)


def directions(pair: Pair) -> Tensor:
    """Cosines between each box's axes and the way to the other, in space and on the level, and the boxes' yaw."""
    parts = []
    level = _level(pair, pair.offset)
    for which, sign in ((SUBJECT, -1), (OBJECT, 1)):
        turns = pair.axes[:, which]
        axes = torch.cat([turns.mT, shape_features.tip(turns, pair.kinds[:, which])[:, None]], dim=1)
        parts.append(_angles(axes, sign * pair.offset))
        parts.append(_angles(_level(pair, axes), sign * level))
    between = torch.einsum("bxa,bxc->bac", pair.axes[:, SUBJECT], pair.axes[:, OBJECT]).square().flatten(1)
    return torch.cat([*parts, between, _yaw(pair)], dim=1)


def _angles(axes: Tensor, way: Tensor) -> Tensor:
    """Cosines and angles between vectors (B, n, 3) and one (B, 3), (B, 2 n)."""
    way = (way / length(way)[:, None])[:, None].expand_as(axes)
    along, across = (axes * way).sum(-1), length(torch.linalg.cross(axes, way))
    return torch.cat([along / length(axes), torch.atan2(across, along)], dim=1)


def _yaw(pair: Pair) -> Tensor:
    """Agreement of the boxes' level directions: of fronts and of lefts, and of all axes modulo 90 degrees."""
    levels = [_level(pair, pair.axes[:, which].mT) for which in (SUBJECT, OBJECT)]
    own = [_fourfold(pair, x, x).clamp_min(_TINY).sqrt() for x in levels]
    both = _fourfold(pair, *levels) / (own[0] * own[1])
    fronts = [x[:, :2] / length(x)[:, :2, None] for x in levels]
    cosines = (fronts[0] @ fronts[1].mT).flatten(1)
    return torch.cat([cosines, torch.stack([both, *own], dim=1)], dim=1)


def _fourfold(pair: Pair, first: Tensor, second: Tensor) -> Tensor:
    """Sum over pairs of level vectors (B, n, 3) of the fourth power of length times cos(4 angle between), (B,)."""
    along = first @ second.mT
    across = torch.linalg.cross(first[:, :, None], second[:, None]) @ pair.up[:, None, :, None]
    x, y = along.square(), across.squeeze(-1).square()
    return (x.square() - 6 * x * y + y.square()).sum((1, 2))


def count() -> tuple[int, int]:
    """Numbers of features that ``own`` and ``seen`` give."""
    boxes = torch.zeros(1, 2, N_BOX, dtype=torch.float64)
    boxes[..., BOX_ROTATION] = torch.eye(3, dtype=torch.float64).flatten()
    boxes[..., BOX_HALF] = 1
    up = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    pair = Pair.of(boxes, up, torch.zeros(1, 2, len(KINDS), dtype=torch.float64))
    return own(pair).shape[1], seen(pair).shape[1]
