"""The verdict: what the truth and the reward that is plugged in say of episodes; ``info`` is made here alone."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np
from numpy.typing import ArrayLike

from spatialsim_env.core.judges import Array, Flags, Floats, M, Question
from spatialsim_env.core.rewards import Dense, Reward, Sparse
from spatialsim_env.core.world import World


class Referee(Generic[M]):
    """Judges episodes of a world by its truth and by the reward that is plugged in.

    Args:
        reward: what is plugged in.

    Raises:
        TypeError: an object that does not satisfy ``rewards.Reward``.
        ValueError: a reward that says in its attribute ``world`` that it judges another one.
    """

    def __init__(self, world: World[M], reward: Reward) -> None:
        if isinstance(reward, type):
            raise TypeError(f"reward is the class {reward.__name__}; accepted is an object of it")
        missing = [name for name in ("name", "success_threshold", "__call__") if not hasattr(reward, name)]
        if missing:
            raise TypeError(f"reward is a {type(reward).__name__} without {', '.join(missing)}; see rewards.Reward")
        judged = getattr(reward, "world", world.name)
        if judged != world.name:
            raise ValueError(f"reward {reward.name!r} judges {judged}; the environment has {world.name}")
        self.world, self.reward = world, reward

    def info(self, now: M, ever_success: Flags) -> dict[str, Array]:
        """Say what the truth and the plugged-in reward say of episodes, each of them (B,).

        Args:
            ever_success: (B,) whether they were achieved before.

        Raises:
            ValueError: the reward is not a finite number.
        """
        values = self.rewards(now)
        success = self.world.truth.achieved(now)
        return {
            "is_success": success,
            "ever_success": ever_success | success,
            "distance": now.distance.copy(),
            "reward_true": np.where(success, 0.0, -1.0),
            "reward_model": values,
            "is_success_model": values >= self.reward.success_threshold,
        }

    def rewards(self, question: Question) -> Floats:
        """Reward a question, (B,).

        Raises:
            ValueError: another shape, or numbers that are not finite.
        """
        if isinstance(self.reward, (Sparse, Dense)):
            return self.reward.of(question)
        goals = [batch.view() for batch in (question.achieved, question.desired)]
        for view in goals:
            view.flags.writeable = False
        values = np.array(self.reward(*goals), np.float64)
        if values.shape != (len(goals[0]),):
            raise ValueError(f"reward {self.reward.name!r} gave shape {values.shape}; accepted is {(len(goals[0]),)}")
        if not np.isfinite(values).all():
            raise ValueError(f"reward {self.reward.name!r} gave {values[~np.isfinite(values)][0]}, not a finite number")
        return values

    def compute_reward(self, achieved_goal: ArrayLike, desired_goal: ArrayLike) -> Any:
        """Reward goals: a pure function of the two.

        Args:
            achieved_goal, desired_goal: one flat goal or a batch of them, of any float type; see ``Goals.batch``.

        Returns:
            A float, or (B,) float64 for a batch.

        Raises:
            SceneError: other shapes, unequal batches, numbers that are not finite; in 3D also what is no scene.
            ValueError: the reward is not a finite number, or cannot judge such a goal.
        """
        achieved, batched = self.world.goals.batch(achieved_goal, "achieved_goal")
        desired, _ = self.world.goals.batch(desired_goal, "desired_goal")
        self.world.goals.check(achieved, desired)
        question = self.world.goals.question(
            achieved.astype(np.float32, copy=False), desired.astype(np.float32, copy=False)
        )
        values = self.rewards(question)
        return values if batched else float(values[0])
