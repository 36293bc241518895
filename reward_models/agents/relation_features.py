"""Features of a relation: the subject's place in every frame that a goal may speak of.

A goal names a predicate, and a predicate speaks of the world's up, of the object's own axes or of the observer's; an
action speaks of the world's axes. The extractor lays the same displacement out in all three frames, and beside it the
axes themselves, heights and sizes, so that neither a frame nor a contact has to be found out from raw boxes. It has no
weights.
"""

from __future__ import annotations

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from spatialsim_env.relations.scene import (
    CENTER,
    EYE_RIGHT,
    FLOOR,
    FRONT,
    HALF,
    HEIGHT,
    KIND,
    KINDS,
    N_FEATURES,
    OBJECT,
    SUBJECT,
    UP,
)
from spatialsim_env.relations.vocabulary import DIRECTIONAL, INDEX, relative
from spatialsim_env.relations.world import goals

NEAR = 0.1  # metres, where the fine features bend: a step of the subject
CONTACT = 0.02  # metres, where the finest features of heights bend: the rules' contact tolerance
MOST_SIZES = 2.0  # half sizes of the object, beyond which the way is not told in them
N_POSE = 2 * 9 + 3 + 2 * 3 + 2 * 2 + 2 * 6 + 2 * 3 + 3 * 3
N_DIRECTION = 7
N_RELATION = N_POSE + N_DIRECTION + 2 * len(KINDS) + goals.N_FLAGS


class RelationExtractor(BaseFeaturesExtractor):
    """Features (B, ...) of ``Dict(observation, achieved_goal, desired_goal)`` of the environment of relations.

    The displacement from the object to the subject in the world's axes, the object's and the observer's, each also bent
    by tanh in units of ``NEAR``, and in half sizes of the object; the object's front and left and the observer's right
    and away on the floor, in the world's axes; the subject's axes in the world and in the object's frame; half sizes;
    heights of the subject's lower side above the object's upper one, of its upper side above the object's lower one and
    of its lower side above the floor, each also bent in units of ``NEAR`` and of ``CONTACT``; both shapes; where a
    direction that is required points to (``direction_features``); the required flags.
    """

    def __init__(self, observation_space: spaces.Dict) -> None:
        super().__init__(observation_space, N_RELATION)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Features of flat observations (B, 47), (B, 77), (B, 77)."""
        achieved, desired = observations["achieved_goal"], observations["desired_goal"]
        scenes = achieved[:, goals.SCENE].unflatten(-1, (2, N_FEATURES))
        flags = (desired[:, goals.FLAGS] > 0.5).to(achieved.dtype)
        observers = achieved[:, goals.OBSERVER]
        named = direction_features(scenes, observers, flags)
        return torch.cat((relation_features(scenes, observers), named, flags), dim=-1)


def relation_features(scenes: Tensor, observers: Tensor) -> Tensor:
    """Features of scenes (B, 2, 19) and observers (B, 9), without the goal."""
    subject, still = scenes[:, SUBJECT], scenes[:, OBJECT]
    turns = [_turn(each) for each in (subject, still)]
    way = subject[:, CENTER] - still[:, CENTER]
    right, away = _floor_frame(observers)
    seen = torch.stack([(way[:, :2] * right).sum(-1), (way[:, :2] * away).sum(-1), way[:, 2]], dim=-1)
    ways = torch.cat([way, _within(turns[1], way), seen], dim=-1)
    axes = torch.cat([turns[1][:, :, 0], turns[1][:, :, 1]], dim=-1)
    own = turns[1].transpose(1, 2) @ turns[0][:, :, [0, 2]]
    mine = turns[0][:, :, [0, 2]]
    reach = [(turn[:, 2].abs() * each[:, HALF]).sum(-1) for turn, each in zip(turns, (subject, still), strict=True)]
    low, high = subject[:, HEIGHT] - reach[0], subject[:, HEIGHT] + reach[0]
    heights = torch.stack([low - still[:, HEIGHT] - reach[1], high - still[:, HEIGHT] + reach[1], low], dim=-1)
    return torch.cat(
        (
            ways,
            torch.tanh(ways / NEAR),
            axes,
            right,
            away,
            mine.flatten(1),
            own.flatten(1),
            (_within(turns[1], way) / still[:, HALF]).clamp(-MOST_SIZES, MOST_SIZES),
            subject[:, HALF] * 4,
            still[:, HALF] * 4,
            heights,
            torch.tanh(heights / NEAR),
            torch.tanh(heights / CONTACT),
            subject[:, KIND],
            still[:, KIND],
        ),
        dim=-1,
    )


def direction_features(scenes: Tensor, observers: Tensor, flags: Tensor) -> Tensor:
    """Lay out a required direction (B, 30) in scenes (B, 2, 19): (B, 7), zeros without one.

    The unit vector on the floor in the world's axes; how far the subject is along it from the object and to its side,
    coarse and fine; how far the object reaches along it. "To the side" is the side that the subject is on.
    """
    still, way = scenes[:, OBJECT], (scenes[:, SUBJECT] - scenes[:, OBJECT])[:, FLOOR]
    turn = _turn(still)
    right, away = _floor_frame(observers)
    front, left = (_flat(turn[:, :2, axis]) for axis in (0, 1))
    word = torch.zeros_like(right)
    for named, (ahead, aside) in ((str, (front, left)), (relative, (-away, -right))):
        side = torch.where((way * aside).sum(-1, keepdim=True) < 0, -aside, aside)
        for name, vector in zip(DIRECTIONAL, (aside, -aside, side, ahead, -ahead), strict=True):
            word = word + flags[:, INDEX[named(name)], None] * vector
    word = _flat(word)
    along = (way * word).sum(-1, keepdim=True)
    across = way[:, :1] * word[:, 1:] - way[:, 1:] * word[:, :1]
    reach = ((turn[:, :2] * word[:, :, None]).sum(1).abs() * still[:, HALF]).sum(-1, keepdim=True)
    return torch.cat((word, along, across, torch.tanh(along / NEAR), torch.tanh(across / NEAR), reach), dim=-1)


def _flat(vectors: Tensor) -> Tensor:
    """Vectors (B, 2) made unit vectors; zeros stay."""
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=1e-6)


def _turn(objects: Tensor) -> Tensor:
    """Rotations (B, 3, 3) of objects (B, 19): columns front, left, up."""
    front, up = objects[:, FRONT], objects[:, UP]
    return torch.stack([front, torch.linalg.cross(up, front), up], dim=-1)


def _within(turn: Tensor, vector: Tensor) -> Tensor:
    return (turn * vector[:, :, None]).sum(1)


def _floor_frame(observers: Tensor) -> tuple[Tensor, Tensor]:
    """The observers' right and away on the floor, unit vectors (B, 2)."""
    right = _flat(observers[:, EYE_RIGHT][:, :2])
    return right, torch.stack([-right[:, 1], right[:, 0]], dim=-1)
