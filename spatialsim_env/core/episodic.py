"""What every environment of this package has in common, whatever its world is made of.

Episodes are rows of batched arrays and everything is a function of them, so a single environment and a vector of
them cannot differ. A world says what an episode is and what an action does to it (``worlds.py`` in 2D,
``relations/worlds.py`` in 3D); ``env.py`` and ``vector_env.py`` say how one and many of them are stepped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.core import rewards

Observation = dict[str, NDArray[Any]]
_Moment = TypeVar("_Moment", bound="Moment")


class Moment:
    """B episodes at one moment: the base of frozen dataclasses whose fields are arrays (B, ...), never written to."""

    distance: NDArray[np.float64]  # (B,) the truth's

    def rows(self: _Moment, rows: Any) -> _Moment:
        """Some of the episodes, by index or mask."""
        return type(self)(*(getattr(self, part.name)[rows] for part in fields(self)))  # type: ignore[arg-type]

    def replaced(self: _Moment, rows: Any, others: _Moment) -> _Moment:
        """These episodes with ``others`` in the place of some, by index or mask."""
        parts = {part.name: getattr(self, part.name).copy() for part in fields(self)}  # type: ignore[arg-type]
        for name, array in parts.items():
            array[rows] = getattr(others, name)
        return type(self)(**parts)


class Episodic:
    """Episodes, the reward that is plugged in, and the verdict.

    A world defines ``episodes`` (with ``n_uniform`` and ``begin``), ``dynamics`` and the methods that raise
    NotImplementedError here.
    """

    world: str = rewards.SCENES  # what its rewards must judge
    metadata: dict[str, Any]
    episodes: Any
    dynamics: Any
    reward: rewards.Reward
    render_mode: str | None
    terminate_on_success: bool
    _now: Any = None  # the episodes, a Moment
    _viewer: Any = None

    @property
    def scenes(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Copies of the two arrays that say how the world lies."""
        raise NotImplementedError

    def is_achieved(self, distance: Any) -> Any:
        """Whether the truth calls a distance achieved, elementwise."""
        raise NotImplementedError

    def goal_batch(self, goals: ArrayLike, name: str = "goals") -> tuple[NDArray[Any], bool]:
        """Goals as a batch that rewards take, and whether they were one.

        Raises:
            SceneError: another shape.
        """
        raise NotImplementedError

    def _resolved(self, name: str) -> rewards.Reward:
        """The reward of a name.

        Raises:
            ValueError: an unknown name.
        """
        raise NotImplementedError

    def _advanced(self, now: Any, actions: Any) -> Any:
        """The episodes after one action each, (B, ...).

        Raises:
            ActionError: see the dynamics.
        """
        raise NotImplementedError

    def _values(self, now: Any) -> NDArray[np.float64]:
        """The plugged-in reward of the episodes, (B,)."""
        raise NotImplementedError

    def _observed(self, now: Any) -> Observation:
        """The observations of the episodes, (B, ...), as arrays of their own."""
        raise NotImplementedError

    def _drawn(self, row: int, step: int) -> NDArray[np.uint8] | None:
        """One world: an array, or a window in human mode."""
        raise NotImplementedError

    def set_reward(self, reward: str | rewards.Reward) -> None:
        """Plug in a reward: a name, or an object that satisfies ``rewards.Reward``.

        Raises:
            TypeError: neither.
            ValueError: an unknown name, or a reward that says in its attribute ``world`` that it judges another one.
        """
        if isinstance(reward, str):
            self.reward = self._resolved(reward)
            return
        if isinstance(reward, type):
            raise TypeError(f"reward is the class {reward.__name__}; accepted is an object of it")
        missing = [name for name in ("name", "success_threshold", "__call__") if not hasattr(reward, name)]
        if missing:
            raise TypeError(f"reward is a {type(reward).__name__} without {', '.join(missing)}; see rewards.Reward")
        judged = getattr(reward, "world", self.world)
        if judged != self.world:
            raise ValueError(f"reward {reward.name!r} judges {judged}; the environment has {self.world}")
        self.reward = reward

    def compute_reward(self, achieved_goal: ArrayLike, desired_goal: ArrayLike, info: Any = None) -> Any:
        """The plugged-in reward as a pure function of the two goals.

        Args:
            achieved_goal, desired_goal: one flat goal or a batch of them, of any float type; see ``goal_batch``.
            info: not used.

        Returns:
            A float, or (B,) float64 for a batch.

        Raises:
            SceneError: other shapes, unequal batches, numbers that are not finite; in 3D also what is no scene.
            ValueError: the reward is not a finite number, or cannot judge such a goal.
        """
        achieved, batched = self.goal_batch(achieved_goal, "achieved_goal")
        desired, _ = self.goal_batch(desired_goal, "desired_goal")
        self._check_goals(achieved, desired)
        values = self._rewards(achieved.astype(np.float32, copy=False), desired.astype(np.float32, copy=False))
        return values if batched else float(values[0])

    def _check_goals(self, achieved: NDArray[Any], desired: NDArray[Any]) -> None:
        """Refuse batches of goals that do not belong together, or hold what is no scene.

        Raises:
            SceneError: they do.
        """
        raise NotImplementedError

    def _rewards(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        """The plugged-in reward of a batch, (B,), which may read the goals only."""
        goals = [batch.view() for batch in (achieved, desired)]
        for view in goals:
            view.flags.writeable = False
        values = np.array(self.reward(*goals), np.float64)
        if values.shape != (len(achieved),):
            raise ValueError(f"reward {self.reward.name!r} gave shape {values.shape}; accepted is {(len(achieved),)}")
        if not np.isfinite(values).all():
            raise ValueError(f"reward {self.reward.name!r} gave {values[~np.isfinite(values)][0]}, not a finite number")
        return values

    def _begun(self, streams: Sequence[np.random.Generator]) -> Any:
        """A new episode for each stream of numbers; it takes one block of each."""
        blocks = np.empty((len(streams), self.episodes.n_uniform), np.float32)
        for stream, block in zip(streams, blocks, strict=True):
            stream.random(out=block, dtype=np.float32)
        return self.episodes.begin(blocks)

    def _judged(self, now: Any, ever_success: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
        """What the truth and the plugged-in reward say of the episodes, each of them (B,): ``info``.

        Args:
            now: the episodes.
            ever_success: (B,) whether they were achieved before.
        """
        values = self._values(now)
        success = self.is_achieved(now.distance)
        return {
            "is_success": success,
            "ever_success": ever_success | success,
            "distance": now.distance.copy(),
            "reward_true": np.where(success, 0.0, -1.0),
            "reward_model": values,
            "is_success_model": values >= self.reward.success_threshold,
        }

    def _under_way(self) -> Any:
        """The episodes.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self._now is None:
            raise gym.error.ResetNeeded("call reset first")
        return self._now

    def _close_viewer(self) -> None:
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None
