"""Features of a goal: for every object, the way to its place.

A goal is a scene under an unknown similarity, its objects in an unknown order, and a multilayer perceptron reads
neither off the features. This extractor undoes both in closed form: appearance says which object is which, sizes
give the scale, orientations the angle, and the barycentre the translation. It has no weights.

This is most of the task: walking along the displacements reaches the goal. What is left to learn from the reward is
that this is the thing to do, so an agent with these features is truly successful more often than its reward alone
would make it.
"""

from __future__ import annotations

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from reward_models.models import layers
from spatialsim_env.arrangements.scene import ARENA, COLOR, N_FEATURES, ORIENTATION, POSITION, SHAPE, SIZE

FAR = 5.0  # units, the displacement that the coarse feature calls 1
NEAR = 1.0  # units, where the fine feature bends: the truth's tolerance
SHAPE_WEIGHT = 10.0  # of a difference of shape beside one of colour, which is at most sqrt 3
TINY = 1e-6
FEATURES_PER_OBJECT = 9


class PlacedGoalExtractor(BaseFeaturesExtractor):
    """Features of ``Dict(observation, achieved_goal, desired_goal)``: (B, 9 n_max), objects in the achieved order.

    Per object: position (2, the arena is -1..1), displacement to its place (2, in units of ``FAR``), the same bent
    by tanh in units of ``NEAR`` (2), sine and cosine minus 1 of the orientation error (2), presence (1). A row of
    padding is zeros. Unchanged by any order and by any proper similarity of the goal; a permutation of the achieved
    objects permutes the rows. The displacements are zero exactly where every object stands in its place under the
    similarity that sizes and orientations speak for.

    ``observation`` is not read: it is a copy of ``achieved_goal`` or a picture of it.
    """

    def __init__(self, observation_space: spaces.Dict) -> None:
        width = observation_space["achieved_goal"].shape
        assert width is not None
        super().__init__(observation_space, width[0] // N_FEATURES * FEATURES_PER_OBJECT)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Features (B, 9 n_max) of flat observations (B, 10 n_max)."""
        achieved, desired = (
            observations[key].unflatten(-1, (-1, N_FEATURES)) for key in ("achieved_goal", "desired_goal")
        )
        return place_goal(achieved, desired).flatten(1)


def place_goal(achieved: Tensor, desired: Tensor) -> Tensor:
    """The features of ``PlacedGoalExtractor``: scenes (B, n, 10), (B, n, 10) -> (B, n, 9)."""
    mask = present(achieved)
    goal = desired.gather(1, match(achieved, desired)[..., None].expand_as(desired))
    scale = size_ratio(achieved, goal, mask)
    turn = (achieved[..., ORIENTATION] - goal[..., ORIENTATION])[..., None]
    cosine, sine = common_angle(turn, mask)
    at = achieved[..., POSITION]
    way = (arrange(at, goal[..., POSITION], scale, cosine, sine, mask) - at) * mask
    turn_cosine, turn_sine = turn.cos(), turn.sin()
    error = (turn_sine * cosine - turn_cosine * sine, turn_cosine * cosine + turn_sine * sine - 1)
    parts = ((at * (2 / ARENA) - 1) * mask, way / FAR, torch.tanh(way / NEAR), error[0] * mask, error[1] * mask, mask)
    return torch.cat(parts, dim=-1)


def present(scenes: Tensor) -> Tensor:
    """1 where a row holds an object, else 0: (B, n, 10) -> (B, n, 1), of the scenes' type."""
    return layers.present(scenes)[..., None].to(scenes.dtype)


def match(achieved: Tensor, desired: Tensor) -> Tensor:
    """Find each row of ``achieved`` in ``desired`` by shape and colour: (B, n, 10) twice -> rows (B, n).

    The nearest appearance, which is exact while objects are distinguishable. Where two objects claim one row, pairs
    are taken in the order of their likeness, so that objects that look the same each get a row of their own.
    """
    cost = torch.cdist(_appearance(achieved), _appearance(desired), compute_mode="donot_use_mm_for_euclid_dist")
    nearest = cost.argmin(-1)
    mask = present(achieved).squeeze(-1)
    claims = torch.zeros_like(mask).scatter_add_(1, nearest, mask)
    contested = (claims > 1).any(1)
    if contested.any():
        nearest[contested] = _greedy(cost[contested])
    return nearest


def _appearance(scenes: Tensor) -> Tensor:
    return torch.cat((SHAPE_WEIGHT * scenes[..., SHAPE], scenes[..., COLOR]), dim=-1)


def _greedy(cost: Tensor) -> Tensor:
    """One-to-one pairs by increasing cost: (B, n, n) -> (B, n)."""
    size, n, _ = cost.shape
    cost, rows = cost.clone(), torch.arange(size, device=cost.device)
    columns = torch.zeros(size, n, dtype=torch.long, device=cost.device)
    for _ in range(n):
        pair = cost.flatten(1).argmin(1)
        row, column = pair // n, pair % n
        columns[rows, row] = column
        cost[rows, row, :] = torch.inf
        cost[rows, :, column] = torch.inf
    return columns


def size_ratio(achieved: Tensor, goal: Tensor, mask: Tensor) -> Tensor:
    """Geometric mean of achieved over goal sizes: (B, n, 10) twice, (B, n, 1) -> (B, 1, 1)."""
    ratio = achieved[..., SIZE].clamp(min=TINY).log() - goal[..., SIZE].clamp(min=TINY).log()
    return _mean(ratio[..., None], mask).exp()


def common_angle(turn: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine (B, 1, 1) of the circular mean of ``turn`` (B, n, 1); of angle 0 where there is none."""
    cosine, sine = _mean(turn.cos(), mask), _mean(turn.sin(), mask)
    length = torch.hypot(cosine, sine)
    none = length < TINY
    length = length.clamp(min=TINY)
    return torch.where(none, 1, cosine / length), torch.where(none, 0, sine / length)


def arrange(at: Tensor, goal: Tensor, scale: Tensor, cosine: Tensor, sine: Tensor, mask: Tensor) -> Tensor:
    """Place the objects: the goal, turned and scaled, about their barycentre and moved into the arena.

    Args:
        at, goal: positions (B, n, 2) in the arena and in the goal.
        scale, cosine, sine: (B, 1, 1).
        mask: presence (B, n, 1).

    Returns:
        (B, n, 2); an arrangement wider than the arena is centred in it.
    """
    offset = (goal - _mean(goal, mask)) * scale
    x, y = offset.split(1, dim=-1)
    placed = _mean(at, mask) + torch.cat((cosine * x - sine * y, sine * x + cosine * y), dim=-1)
    absent = mask == 0
    least_move = -placed.masked_fill(absent, torch.inf).amin(1, keepdim=True)
    most_move = ARENA - placed.masked_fill(absent, -torch.inf).amax(1, keepdim=True)
    inside = least_move.clamp(min=0) + most_move.clamp(max=0)
    move = torch.where(least_move <= most_move, inside, (least_move + most_move) / 2)
    return placed + move


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the objects that are present: (B, n, k), (B, n, 1) -> (B, 1, k)."""
    return (values * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
