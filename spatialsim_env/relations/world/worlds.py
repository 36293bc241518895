"""What one world of relations and many have in common: options, spaces, episodes, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.checks import check_choice
from spatialsim_env.core import rewards
from spatialsim_env.core.episodic import Episodic, Observation
from spatialsim_env.relations import scene
from spatialsim_env.relations.scene import SceneError
from spatialsim_env.relations.vocabulary import PREDICATES
from spatialsim_env.relations.world import goals
from spatialsim_env.relations.world.dynamics import Dynamics
from spatialsim_env.relations.world.episodes import Batch, Episodes, judged
from spatialsim_env.relations.world.rewards import WORLD, RelationTruth, resolve


class RelationWorlds(Episodic):
    """What ``RelationEnv`` and ``RelationVectorEnv`` are made of; the former documents the options.

    Raises:
        ValueError: unknown names.
    """

    world = WORLD

    def __init__(
        self,
        predicates: str | Sequence[str] = PREDICATES,
        *,
        reward: str = "sparse",
        terminate_on_success: bool = False,
        render_mode: str | None = None,
    ) -> None:
        check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self.episodes = Episodes(_checked_predicates(predicates))
        self.dynamics = Dynamics()
        self.terminate_on_success = terminate_on_success
        self.render_mode = render_mode
        self.set_reward(resolve(reward))
        self.action_space: spaces.Space[Any] = self.dynamics.action_space
        self.observation_space: spaces.Space[Any] = self._observation_space()

    def _observation_space(self) -> spaces.Dict:
        low, high = goals.bounds()
        goal = spaces.Box(low, high, dtype=np.float32)
        seen = spaces.Box(low[goals.STATE], high[goals.STATE], dtype=np.float32)
        return spaces.Dict({"observation": seen, "achieved_goal": goal, "desired_goal": goal})

    def is_achieved(self, distance: Any) -> Any:
        """Whether the truth calls a distance achieved: below 0, where every required margin is positive."""
        return distance < 0

    def goal_batch(self, goals_: ArrayLike, name: str = "goals") -> tuple[NDArray[Any], bool]:
        """Goals (B, 77) of one goal (77,) or a batch of them, and whether they were a batch.

        Raises:
            SceneError: another shape.
        """
        return goals.as_batch(goals_, name)

    def _resolved(self, name: str) -> rewards.Reward:
        return resolve(name)

    def _check_goals(self, achieved: NDArray[Any], desired: NDArray[Any]) -> None:
        if achieved.shape != desired.shape:
            raise SceneError(f"achieved_goal holds {len(achieved)} goals and desired_goal {len(desired)}")
        if not (np.isfinite(achieved).all() and np.isfinite(desired).all()):
            raise SceneError("achieved_goal or desired_goal holds numbers that are not finite")
        scene.validate(*goals.state(achieved))

    def _advanced(self, now: Batch, actions: Any) -> Batch:
        return judged(self.dynamics.step(now.scenes, actions), now.observers, now.required)

    def _values(self, now: Batch) -> NDArray[np.float64]:
        if isinstance(self.reward, RelationTruth):
            return self.reward.from_margin(-now.distance)
        return self._rewards(now.achieved, now.desired)

    def _observed(self, now: Batch) -> Observation:
        achieved = now.achieved
        return {"observation": achieved[:, goals.STATE].copy(), "achieved_goal": achieved, "desired_goal": now.desired}

    def _drawn(self, row: int, step: int) -> NDArray[np.uint8] | None:
        """The observer's view and one from above, with the goal in words."""
        now: Batch = self._under_way()
        if self._viewer is None:
            from spatialsim_env.relations.world.viewer import RelationViewer

            self._viewer = RelationViewer(self.render_mode or "", self.metadata["render_fps"])
        return self._viewer.draw(
            now.scenes[row], now.observers[row], now.goal_names(row), distance=float(now.distance[row]), step=step
        )


def _checked_predicates(predicates: Any) -> tuple[str, ...]:
    names = (predicates,) if isinstance(predicates, str) else tuple(predicates)
    if not names:
        raise ValueError(f"predicates is {predicates!r}; accepted are one name or several of {', '.join(PREDICATES)}")
    for name in names:
        check_choice("predicates", name, PREDICATES)
    return names
