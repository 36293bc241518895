import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from reward_models.agents.algorithms import make_model
from reward_models.agents.configs import CONFIGS, AgentConfig
from reward_models.agents.evaluation import evaluate
from reward_models.agents.object_policy import CLOSE, NEVER, Critic, PairDistribution, objects_of, pool
from reward_models.agents.training import Agent, load_agent, make_envs, train, transfer
from spatialsim_env.arrangements.dynamics import MODES
from spatialsim_env.arrangements.scene import N_FEATURES

SMALL = AgentConfig("small", native=True, horizon=10, total_steps=80, learning_starts=50, batch_size=32, net=(16,),
                    gradient_steps=1, episodes=4)  # fmt: skip
COMBINATIONS = [
    (algorithm, mode) for mode in MODES for algorithm in ("sac", "ppo") if (algorithm, mode) != ("sac", MODES[2])
]


def config_of(algorithm, mode, n_objects=4, **changes):
    rollout = {"rollout": 32, "batch_size": 64} if algorithm == "ppo" else {}
    env = {"n_objects": n_objects, "action_mode": mode}
    return replace(SMALL, algorithm=algorithm, env_kwargs=env, **rollout, **changes)


def made(algorithm, mode, n_objects=4):
    config = config_of(algorithm, mode, n_objects)
    envs = make_envs(config)
    return make_model(config, envs), envs.reset()


def action_parameters(model, observations):
    """What the distribution of actions is made from."""
    seen, _ = model.policy.obs_to_tensor(observations)
    with torch.no_grad():
        if hasattr(model, "actor"):
            mean, deviation, _ = model.actor.get_action_dist_params(seen)
            return torch.cat([mean, deviation], dim=1)
        latent = model.policy.mlp_extractor.forward_actor(model.policy.extract_features(seen))
        return torch.cat(latent, dim=1) if isinstance(latent, tuple) else latent


def by_scene(observations, change):
    """Observations with a change of their scenes (B, n, 10)."""
    return {
        key: change(key, value.reshape(len(value), -1, N_FEATURES)).reshape(len(value), -1)
        for key, value in observations.items()
    }


def permuted(observations, order):
    return by_scene(observations, lambda key, x: x if key == "desired_goal" else x[:, order])


@pytest.mark.parametrize(("algorithm", "mode"), COMBINATIONS)
def test_a_permutation_of_the_objects_permutes_their_parts_of_the_action(algorithm, mode):
    model, observations = made(algorithm, mode)
    order = [2, 0, 3, 1]
    before = action_parameters(model, observations)
    after = action_parameters(model, permuted(observations, order))
    if mode != "pick_place":
        of_object = before.unflatten(1, (-1, 4, model.action_space.shape[0] // 4 if mode == "move_all" else 6))
        before = of_object[:, :, order].flatten(1)
    torch.testing.assert_close(after, before, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("algorithm", "mode"), COMBINATIONS)
def test_the_weights_fit_any_number_of_objects_and_padding_changes_nothing(algorithm, mode):
    (small, observations), (large, _) = (made(algorithm, mode, n) for n in (4, 6))
    large.policy.load_state_dict(small.policy.state_dict())
    wider = by_scene(observations, lambda key, x: np.pad(x, ((0, 0), (0, 2), (0, 0))))
    narrow, wide = action_parameters(small, observations), action_parameters(large, wider)
    if mode == "discrete":
        assert (wide[:, 4 * 6 :] == NEVER).all()
        wide = wide[:, : 4 * 6]
    elif mode == "move_all":
        wide = wide.unflatten(1, (2, 6, 3))
        assert (wide[:, 0, 4:] == 0).all()
        wide = wide[:, :, :4].flatten(1)
    torch.testing.assert_close(wide, narrow, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("mode", MODES[:2])
def test_critics_know_no_order(mode):
    model, observations = made("sac", mode)
    order = [2, 0, 3, 1]
    actions = torch.as_tensor(np.stack([model.action_space.sample() for _ in range(model.n_envs)]))
    moved = actions.unflatten(1, (4, 3))[:, order].flatten(1) if mode == "move_all" else actions
    with torch.no_grad():
        values, after = (
            model.critic(model.policy.obs_to_tensor(seen)[0], action)
            for seen, action in ((observations, actions), (permuted(observations, order), moved))
        )
    torch.testing.assert_close(after, values, atol=1e-5, rtol=1e-4)
    assert values[0].std() > 0


def test_every_weight_of_actor_and_critics_gets_a_gradient():
    for algorithm, mode in COMBINATIONS:
        model, observations = made(algorithm, mode)
        seen, _ = model.policy.obs_to_tensor(observations)
        if algorithm == "sac":
            actions, log_likelihood = model.actor.action_log_prob(seen)
            (sum(x.sum() for x in model.critic(seen, actions)) + log_likelihood.sum()).backward()
            parameters = [*model.actor.named_parameters(), *model.critic.named_parameters()]
        else:
            actions = torch.as_tensor(np.stack([model.action_space.sample() for _ in range(model.n_envs)]))
            values, log_likelihood, _ = model.policy.evaluate_actions(seen, actions)
            (values.sum() + log_likelihood.sum()).backward()
            parameters = model.policy.named_parameters()
        assert not [name for name, x in parameters if x.grad is None or not x.grad.any()], (algorithm, mode)


def test_a_pick_falls_to_the_object_nearest_to_the_point():
    critic = Critic("pick_place", 8, 4 * 9, 3)
    objects = torch.zeros(1, 4, 9)
    objects[0, :, :2] = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.0, 0.5], [0.02, 0.02]])
    objects[0, :3, -1] = 1  # the last is padding
    action = torch.tensor([[0.05, 0.0, 0.3, -0.2, 0.1]])
    picked = critic._pick(objects, objects[..., -1:], action)[0]
    weight = [math.exp(-((0.05 - x) ** 2 + y**2) / CLOSE**2) for x, y in ((0, 0), (0.5, 0), (0, 0.5))]
    expected = torch.tensor([*(w / sum(weight) for w in weight), 0.0])
    torch.testing.assert_close(picked[:, 0], expected)
    torch.testing.assert_close(picked[:, 1:], expected[:, None] * action[:, 2:])
    assert expected[0] > 0.99


def test_the_distribution_of_pairs_is_one_over_their_product():
    logits = torch.randn(5, 3 * 4, generator=torch.Generator().manual_seed(0))
    distribution = PairDistribution(4).proba_distribution(logits)
    probabilities = logits.softmax(-1)
    for pair in range(12):
        action = torch.tensor([[pair // 4, pair % 4]]).expand(5, 2)
        torch.testing.assert_close(distribution.log_prob(action).exp(), probabilities[:, pair])
    torch.testing.assert_close(distribution.entropy(), -(probabilities * probabilities.log()).sum(-1))
    best = probabilities.argmax(-1)
    assert (distribution.mode() == torch.stack([best // 4, best % 4], dim=-1)).all()
    torch.manual_seed(0)
    drawn = PairDistribution(4).proba_distribution(logits[:1].expand(20_000, -1)).sample()
    shares = torch.bincount(drawn[:, 0] * 4 + drawn[:, 1], minlength=12) / 20_000
    torch.testing.assert_close(shares, probabilities[0], atol=0.015, rtol=0)
    actions, log_likelihood = distribution.log_prob_from_params(logits)
    assert spaces.MultiDiscrete([3, 4]).contains(actions[0].numpy())
    torch.testing.assert_close(log_likelihood, distribution.log_prob(actions))


def test_pooling_leaves_padding_out():
    mask = torch.tensor([[[1.0], [1.0], [0.0]]])
    hidden = torch.tensor([[[1.0, 4.0], [3.0, 2.0], [0.0, 0.0]]])
    assert pool(hidden, mask).tolist() == [[2.0, 3.0, 3.0, 4.0]]
    assert objects_of(torch.zeros(2, 27))[1].shape == (2, 3, 1)


@pytest.mark.parametrize(("algorithm", "mode"), COMBINATIONS)
def test_an_agent_trains_is_saved_and_read(tmp_path, algorithm, mode):
    trained = train(config_of(algorithm, mode), "sparse", tmp_path, progress=False)
    again = load_agent(tmp_path)
    for name in ("success", "distance", "achieved"):
        first, second = (getattr(evaluate(x, trained.config, episodes=4), name) for x in (trained, again))
        assert (first == second).all()
    trained.close()
    again.close()


def test_an_agent_acts_among_more_objects_than_it_was_trained_with(tmp_path):
    config = config_of("sac", "move_all", 3)
    agent = train(config, "sparse", tmp_path, progress=False)
    more = replace(config, env_kwargs={"n_objects": (5, 7)})
    there = transfer(agent, more)
    assert evaluate(there, more, episodes=4).achieved.shape == (4, 7, N_FEATURES)
    same = transfer(agent, config)
    assert (evaluate(same, config, episodes=4).achieved == evaluate(agent, config, episodes=4).achieved).all()
    with pytest.raises(ValueError, match="the weights of small do not fit small"):
        transfer(agent, replace(config, env_kwargs={"n_objects": 3, "max_turn": 0}))
    flat = Agent(agent.model, replace(config, policy="mlp"), "sparse", {})
    with pytest.raises(ValueError, match="policy is 'mlp'; accepted is \"objects\""):
        transfer(flat, more)


def test_an_agent_whose_batch_is_more_than_one_copy_gives_acts_among_more_objects(tmp_path):
    config = replace(config_of("ppo", "discrete", 3), rollout=16, n_envs=4)
    agent = train(config, "sparse", tmp_path, progress=False)
    more = replace(config, env_kwargs={"n_objects": 5, "action_mode": "discrete"})
    assert evaluate(transfer(agent, more), more, episodes=4).achieved.shape == (4, 5, N_FEATURES)


def test_the_named_configuration_of_three_objects_learns(tmp_path):
    agent = train(replace(CONFIGS["discrim_n3"], total_steps=1_200), "sparse", tmp_path, progress=False)
    assert agent.evaluation.success_rate >= 0.9
    agent.close()
