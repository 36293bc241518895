"""Features of two sets: a vector of the arena and one of the goal, by the reward networks' encoders.

The vectors know no order. An action of ``move_all`` moves the object of a row, and a vector that is the same for every
order of the rows cannot say which row that is: a policy on these features can move no object on purpose there. They
serve ``pick_place``, whose actions name a point of the arena, and comparison; ``PlacedGoalExtractor``, which keeps a
row per object, serves ``move_all``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from reward_models.agents.extractor import PlacedGoalExtractor
from reward_models.models.branches import Branch
from reward_models.models.deep_set import SumOfObjects
from reward_models.models.layers import present
from reward_models.models.mpgnn import MessagePassing, WidthRoundsConfig
from spatialsim_env.arrangements.scene import ARENA, N_FEATURES, ORIENTATION, POSITION
from spatialsim_env.checks import require_whole


class SetExtractor(BaseFeaturesExtractor):
    """Features of ``Dict(observation, achieved_goal, desired_goal)``: (B, d), a summary of either scene.

    A branch with weights of its own reads each scene, positions and orientations brought to -1..1 (``scale``).
    Unchanged by any order of the achieved objects, by any order of the goal's, and by rows of padding, so weights
    serve scenes of any size. ``observation`` is not read: it is a copy of ``achieved_goal`` or a picture of it.

    Args:
        observation_space: the environment's.
        make_branch: makes a branch with new weights.
        rounds: how often each branch is applied; the summaries are those after the last round.
    """

    def __init__(self, observation_space: spaces.Dict, make_branch: Callable[[], Branch], rounds: int = 1) -> None:
        achieved, desired = make_branch(), make_branch()
        super().__init__(observation_space, achieved.width + desired.width)
        self.achieved_goal, self.desired_goal, self.rounds = achieved, desired, rounds

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Features (B, d) of flat observations (B, 10 n_max)."""
        summaries = []
        for key, branch in (("achieved_goal", self.achieved_goal), ("desired_goal", self.desired_goal)):
            state = branch.begin(scale(observations[key].unflatten(-1, (-1, N_FEATURES))))
            for _ in range(self.rounds):
                state = branch(state)
            summaries.append(branch.summary(state))
        return torch.cat(summaries, dim=-1)


def scale(scenes: Tensor) -> Tensor:
    """Bring the arena and the circle of angles of scenes (B, n, 10) to -1..1; sizes and colours stay as they are."""
    factors, offsets = torch.ones(N_FEATURES), torch.zeros(N_FEATURES)
    factors[POSITION], factors[ORIENTATION] = 2 / ARENA, 1 / math.pi
    offsets[POSITION], offsets[ORIENTATION] = -1, -1
    return (scenes * factors.to(scenes) + offsets.to(scenes)) * present(scenes)[..., None]


class DeepSetExtractor(SetExtractor):
    """rho(sum phi(x)) of each scene, the encoder of ``deep_set``; (B, 2 width).

    Args:
        observation_space: the environment's.
        width: of the layers of phi and rho, and of the summary.

    Raises:
        ValueError: a width below 1.
    """

    def __init__(self, observation_space: spaces.Dict, width: int = 64) -> None:
        require_whole("width", width)
        super().__init__(observation_space, lambda: SumOfObjects((N_FEATURES, width, width), (width, width)))


class MessagePassingExtractor(SetExtractor):
    """u of each scene after rounds of message passing, the encoder of ``mpgnn``; (B, 2 width).

    Args:
        observation_space: the environment's.
        width: of node, edge and global features.
        rounds: with the same weights.

    Raises:
        ValueError: a width below that of an object, or no round.
    """

    def __init__(self, observation_space: spaces.Dict, width: int = 32, rounds: int = 2) -> None:
        WidthRoundsConfig(rounds=rounds, width=width)  # checks them
        super().__init__(observation_space, lambda: MessagePassing(width), rounds)


EXTRACTORS: dict[str, type[BaseFeaturesExtractor]] = {
    "placed": PlacedGoalExtractor,
    "deep_set": DeepSetExtractor,
    "message_passing": MessagePassingExtractor,
}
