"""Policies that attend to objects: one small network for each of them, which sees the others as well.

A perceptron over a list of objects has other weights for the first than for the second, and must learn each alone.
Here all objects share a network, which sees the object's own features and the mean and the greatest of all objects'
(a Deep Set layer). An object's part of the action comes from it; the critic judges, for every object, its features
beside what the action does to it. A permutation of the achieved objects permutes the action, padding changes nothing,
and the weights fit any number of objects.

``move_all``    an object's displacement and turn are its own part of the action.
``pick_place``  attention chooses: the point is where the attended object lies, displacement and turn are what it asks
                for. The critic gives the action to the object nearest to the point, softly, as the rules do.
``discrete``    one distribution over all pairs of an object and something to do with it (PPO).

The features are those of ``PlacedGoalExtractor``: position, way to its place, turn, presence.
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.distributions import DiagGaussianDistribution, Distribution
from stable_baselines3.common.policies import ContinuousCritic, MultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.sac.policies import LOG_STD_MAX, LOG_STD_MIN, Actor, SACPolicy
from torch import Tensor, nn

from reward_models.agents.extractor import FEATURES_PER_OBJECT

POINT, PRESENCE = slice(0, 2), slice(-1, None)  # of an object's features; POINT also of a pick_place action
CLOSE = 0.15  # half arenas; an object's share of a point at this distance is 1/e of that of one that lies there
EDGE = 0.99  # half arenas, how far out a squashed point can be meant
NEVER = -1e8  # logit of what cannot be chosen


class ObjectNetwork(nn.Module):
    """Two equivariant layers: (B, n, d_in) and presence (B, n, 1) -> (B, n, width), zero where padding."""

    def __init__(self, d_in: int, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(d_in, width)
        self.own, self.all = nn.Linear(width, width), nn.Linear(2 * width, width, bias=False)

    def forward(self, objects: Tensor, mask: Tensor) -> Tensor:
        hidden = self.first(objects).relu() * mask
        return (self.own(hidden) + self.all(pool(hidden, mask))[:, None]).relu() * mask


def pool(hidden: Tensor, mask: Tensor) -> Tensor:
    """Mean and maximum over the objects, of numbers from 0: (B, n, k), (B, n, 1) -> (B, 2 k)."""
    return torch.cat([hidden.sum(1) / mask.sum(1).clamp(min=1), hidden.amax(1)], dim=-1)


def objects_of(features: Tensor) -> tuple[Tensor, Tensor]:
    """The extractor's features (B, 9 n) by object (B, n, 9), and presence (B, n, 1)."""
    objects = features.unflatten(-1, (-1, FEATURES_PER_OBJECT))
    return objects, objects[..., PRESENCE]


class Gaussian(nn.Module):
    """Features (B, 9 n) -> mean and logarithm of the deviation of each number of a continuous action, (B, a) each.

    Args:
        mode: "move_all" or "pick_place".
        width: of the hidden layers.
        per_object: numbers of the action that are an object's own.
        squashed: whether tanh is applied to the mean afterwards.
    """

    def __init__(self, mode: str, width: int, per_object: int, squashed: bool) -> None:
        super().__init__()
        self.picks, self.squashed = mode == "pick_place", squashed
        self.network = ObjectNetwork(FEATURES_PER_OBJECT, width)
        self.mean = nn.Linear(width, per_object)
        self.deviation = nn.Linear(width, per_object)
        if self.picks:
            self.attention, self.point_deviation = nn.Linear(width, 1), nn.Linear(width, 2)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        objects, mask = objects_of(features)
        hidden = self.network(objects, mask)
        mean, deviation = self.mean(hidden), self.deviation(hidden)
        if not self.picks:
            return (mean * mask).flatten(1), deviation.flatten(1).clamp(LOG_STD_MIN, LOG_STD_MAX)
        share = self.attention(hidden).masked_fill(mask == 0, NEVER).softmax(1)
        point = (share * objects[..., POINT]).sum(1)
        if self.squashed:
            point = point.clamp(-EDGE, EDGE).atanh()
        deviation = torch.cat([self.point_deviation(hidden), deviation], dim=-1)
        mean = torch.cat([point, (share * mean).sum(1)], dim=-1)
        return mean, (share * deviation).sum(1).clamp(LOG_STD_MIN, LOG_STD_MAX)


class Critic(nn.Module):
    """One critic of a continuous action: (B, 9 n + a) -> (B, 1)."""

    def __init__(self, mode: str, width: int, features_dim: int, per_object: int) -> None:
        super().__init__()
        self.picks, self.features_dim = mode == "pick_place", features_dim
        self.network = ObjectNetwork(FEATURES_PER_OBJECT + per_object + self.picks, width)
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, features_and_actions: Tensor) -> Tensor:
        features, actions = features_and_actions.tensor_split([self.features_dim], dim=1)
        objects, mask = objects_of(features)
        effects = self._pick(objects, mask, actions) if self.picks else actions.unflatten(-1, (objects.shape[1], -1))
        return self.head(pool(self.network(torch.cat([objects, effects * mask], dim=-1), mask), mask))

    def _pick(self, objects: Tensor, mask: Tensor, actions: Tensor) -> Tensor:
        """Each object's share of the action, and what of displacement and turn falls to it: (B, n, 1 + k)."""
        apart = (objects[..., POINT] - actions[:, None, POINT]).square().sum(-1, keepdim=True) / CLOSE**2
        share = apart.neg().masked_fill(mask == 0, NEVER).softmax(1)
        return torch.cat([share, share * actions[:, None, POINT.stop :]], dim=-1)


def per_object(mode: str, n_actions: int, features_dim: int) -> int:
    """Numbers of a continuous action that are an object's own."""
    return n_actions - POINT.stop if mode == "pick_place" else n_actions * FEATURES_PER_OBJECT // features_dim


class _ObjectActor(Actor):
    def __init__(self, *args: Any, action_mode: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self.latent_pi, self.mu, self.log_std = nn.Identity(), nn.Identity(), nn.Identity()  # type: ignore[assignment]
        own = per_object(action_mode, self.action_space.shape[0], self.features_dim)
        self.gaussian = Gaussian(action_mode, self.net_arch[0], own, squashed=True)

    def get_action_dist_params(self, obs: Any) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        return *self.gaussian(self.extract_features(obs, self.features_extractor)), {}


class _ObjectCritic(ContinuousCritic):
    def __init__(self, *, action_mode: str, net_arch: list[int], features_dim: int, **options: Any) -> None:
        super().__init__(net_arch=net_arch, features_dim=features_dim, **options)
        own = per_object(action_mode, self.action_space.shape[0], features_dim)  # type: ignore[index]
        self.q_networks = [Critic(action_mode, net_arch[0], features_dim, own) for _ in self.q_networks]
        for place, network in enumerate(self.q_networks):
            self.add_module(f"qf{place}", network)


class ObjectSACPolicy(SACPolicy):
    """Policy of SAC that attends to objects, with ``PlacedGoalExtractor`` as its extractor.

    Args:
        action_mode: "move_all" or "pick_place".
        args, options: those of ``SACPolicy``; ``net_arch`` is one width, that of all hidden layers.
    """

    def __init__(self, *args: Any, action_mode: str, **options: Any) -> None:
        self.action_mode = action_mode
        super().__init__(*args, **options)

    def make_actor(self, features_extractor: BaseFeaturesExtractor | None = None) -> Actor:
        options = self._update_features_extractor(self.actor_kwargs, features_extractor)
        return _ObjectActor(**options, action_mode=self.action_mode).to(self.device)

    def make_critic(self, features_extractor: BaseFeaturesExtractor | None = None) -> ContinuousCritic:
        options = self._update_features_extractor(self.critic_kwargs, features_extractor)
        return _ObjectCritic(**options, action_mode=self.action_mode).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "action_mode": self.action_mode}


class PairDistribution(Distribution):
    """One choice among all pairs of an object and something to do with it.

    Two independent choices, as stable-baselines3 makes them in a ``MultiDiscrete`` space, cannot say: this object to
    the left or that one up.
    """

    distribution: torch.distributions.Categorical

    def __init__(self, n_moves: int) -> None:
        super().__init__()
        self.n_moves = n_moves

    def proba_distribution_net(self, *args: Any, **options: Any) -> nn.Module:
        """Nothing: the logits are what a policy makes."""
        return nn.Identity()

    def proba_distribution(self, logits: Tensor) -> PairDistribution:
        """Set it by logits (B, n_max * n_moves), the moves of the first object first."""
        self.distribution = torch.distributions.Categorical(logits=logits)
        return self

    def log_prob(self, actions: Tensor) -> Tensor:
        """Of actions (B, 2): (B,)."""
        actions = actions.long()
        return self.distribution.log_prob(actions[:, 0] * self.n_moves + actions[:, 1])

    def entropy(self) -> Tensor:
        """In nats, (B,)."""
        return self.distribution.entropy()

    def sample(self) -> Tensor:
        """Actions (B, 2)."""
        return self._pairs(self.distribution.sample())

    def mode(self) -> Tensor:
        """The likeliest actions (B, 2)."""
        return self._pairs(self.distribution.logits.argmax(-1))

    def _pairs(self, chosen: Tensor) -> Tensor:
        return torch.stack([chosen // self.n_moves, chosen % self.n_moves], dim=-1)

    def actions_from_params(self, logits: Tensor, deterministic: bool = False) -> Tensor:
        """Actions (B, 2) of logits."""
        return self.proba_distribution(logits).get_actions(deterministic)

    def log_prob_from_params(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (B, 2) of logits, and their log-probabilities."""
        actions = self.actions_from_params(logits)
        return actions, self.log_prob(actions)


class _Choice(nn.Module):
    """Features (B, 9 n) -> logits (B, n * moves)."""

    def __init__(self, width: int, n_moves: int) -> None:
        super().__init__()
        self.network, self.moves = ObjectNetwork(FEATURES_PER_OBJECT, width), nn.Linear(width, n_moves)

    def forward(self, features: Tensor) -> Tensor:
        objects, mask = objects_of(features)
        return self.moves(self.network(objects, mask)).masked_fill(mask == 0, NEVER).flatten(1)


class _Value(nn.Module):
    """Features (B, 9 n) -> what the value is read from (B, 2 width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.network = ObjectNetwork(FEATURES_PER_OBJECT, width)

    def forward(self, features: Tensor) -> Tensor:
        objects, mask = objects_of(features)
        return pool(self.network(objects, mask), mask)


class _Branches(nn.Module):
    """Branches of actor and critic, an ``mlp_extractor`` of stable-baselines3."""

    def __init__(self, actor: nn.Module, critic: nn.Module) -> None:
        super().__init__()
        self.forward_actor, self.forward_critic = actor, critic

    def forward(self, features: Tensor) -> tuple[Any, Tensor]:
        return self.forward_actor(features), self.forward_critic(features)


class ObjectPPOPolicy(MultiInputActorCriticPolicy):
    """Policy of PPO that attends to objects, with ``PlacedGoalExtractor`` as its extractor.

    Args:
        action_mode: one of ``dynamics.MODES``.
        args, options: those of ``ActorCriticPolicy``; ``net_arch`` is one width, that of all hidden layers.
    """

    def __init__(self, *args: Any, action_mode: str, **options: Any) -> None:
        self.action_mode = action_mode
        super().__init__(*args, **options)

    def _build(self, lr_schedule: Any) -> None:
        width: int = self.net_arch[0]  # type: ignore[index,assignment]
        actor: nn.Module
        if self.action_mode == "discrete":
            n_moves = int(self.action_space.nvec[1])  # type: ignore[attr-defined]
            self.action_dist, actor = PairDistribution(n_moves), _Choice(width, n_moves)
        else:
            own = per_object(self.action_mode, self.action_space.shape[0], self.features_dim)  # type: ignore[index]
            actor = Gaussian(self.action_mode, width, own, squashed=False)
        self.mlp_extractor = _Branches(actor, _Value(width))  # type: ignore[assignment]
        self.action_net, self.value_net = nn.Identity(), nn.Linear(2 * width, 1)
        rate = lr_schedule(1)
        self.optimizer = self.optimizer_class(self.parameters(), lr=rate, **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _get_action_dist_from_latent(self, latent_pi: Any) -> Distribution:
        if isinstance(self.action_dist, DiagGaussianDistribution):
            return self.action_dist.proba_distribution(*latent_pi)
        return self.action_dist.proba_distribution(latent_pi)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "action_mode": self.action_mode}
