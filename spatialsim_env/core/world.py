"""A world is a value: where its episodes come from, what actions do, the truth, its goals, and how it is shown.

Episodes are rows of batched arrays and everything is a function of them, so one world and many cannot differ. A factory
(``arrangements/world.py``, ``relations/world/world.py``) makes the value of the keywords of ``gym.make``; ``one.py``
and ``many.py`` step it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from spatialsim_env.core.judges import Array, M, M_co, M_contra, Question, Truth

Observation = dict[str, Array]
OF_ENVIRONMENTS = (
    "reward", "terminate_on_success", "render_mode", "num_envs", "max_episode_steps", "autoreset_mode",
)  # fmt: skip
"""Keywords of ``gym.make`` that are the same for every world; the others make the world."""


class ActionError(ValueError):
    """An action outside the action space; nothing was changed."""


@dataclass(frozen=True)
class Given:
    """What of episodes is given; the rest is drawn."""

    achieved: Array | None = None  # (B, ...) goals that are achieved at first, as the world packs them
    desired: Array | None = None  # (B, ...) goals that are to be reached


NOTHING = Given()


class Episodes(Protocol[M_co]):
    """Where episodes come from: a batched function of uniform numbers."""

    @property
    def n_uniform(self) -> int:
        """Uniform numbers in the block of one reset."""

    def begin(self, blocks: NDArray[np.float32], given: Given = ...) -> M_co:
        """Begin episodes from blocks (B, n_uniform) of uniform numbers; what is given takes its part of the block's."""


class Dynamics(Protocol):
    """What actions do: batched and pure."""

    @property
    def action_space(self) -> spaces.Space[Any]:
        """The action space of one environment."""

    def check(self, actions: Any) -> Array:
        """Check actions (B, ...) and bring them into the form that ``step`` takes."""

    def step(self, states: Array, actions: Any) -> Array:
        """Carry out one action for each state, (B, ...) -> (B, ...)."""


class Goals(Protocol[M_contra]):
    """Goals and observations as arrays."""

    @property
    def space(self) -> spaces.Dict:
        """The observation space of one environment."""

    def observe(self, now: M_contra) -> Observation:
        """Observe episodes, (B, ...), as arrays of their own."""

    def batch(self, goals: ArrayLike, name: str = "goals") -> tuple[Array, bool]:
        """Bring goals into the form that rewards take, and say whether they were a batch."""

    def check(self, achieved: Array, desired: Array) -> None:
        """Refuse batches of goals that do not belong together, or hold what is no goal."""

    def question(self, achieved: Array, desired: Array) -> Question:
        """Ask whether goals (B, ...) are reached."""

    def relabel(self, later: Array, rng: np.random.Generator) -> NDArray[np.float32]:
        """Make goals such as episodes have of flat goals (B, ...) that were achieved later: hindsight."""


class Viewer(Protocol[M_contra]):
    """Shows episodes: as arrays, or in a window."""

    @property
    def is_open(self) -> bool:
        """Whether a window is on the screen."""

    def show(self, now: M_contra, achieved: bool, step: int) -> NDArray[np.uint8] | None:
        """Draw a moment of one episode, and what the verdict says of it."""

    def close(self) -> None:
        """Close the window and let go of everything."""


@dataclass(frozen=True)
class World(Generic[M]):
    """Everything that a kind of world consists of; it can be pickled."""

    name: str  # what its judges and rewards say in their attribute ``world``
    episodes: Episodes[M]
    dynamics: Dynamics
    truth: Truth[M]
    goals: Goals[M]
    viewer: Callable[[str, int], Viewer[M]]  # render mode, frames per second

    def begin(self, streams: Sequence[np.random.Generator], given: Given = NOTHING) -> M:
        """Begin an episode for each stream of numbers; it takes one block of each, whatever is given.

        Raises:
            SceneError: goals are given that are none.
            ValueError: given goals that do not go together.
        """
        blocks = np.empty((len(streams), self.episodes.n_uniform), np.float32)
        for stream, block in zip(streams, blocks, strict=True):
            stream.random(out=block, dtype=np.float32)
        if given is NOTHING:
            return self.episodes.begin(blocks)
        for goals in (given.achieved, given.desired):
            if goals is not None and len(goals) != len(blocks):
                raise ValueError(f"{len(goals)} goals are given; accepted is one for each of {len(blocks)} episodes")
        if given.achieved is not None:
            self.goals.check(given.achieved, given.achieved if given.desired is None else given.desired)
        now = self.episodes.begin(blocks, given)
        self.goals.check(now.achieved, now.desired)
        return now

    def step(self, now: M, actions: Any) -> M:
        """Step the episodes by one action each, (B, ...).

        Raises:
            ActionError: see the dynamics.
        """
        return self.truth.moved(now, self.dynamics.step(now.state, actions))

    def show(self, viewer: Viewer[M], now: M, row: int, step: int) -> NDArray[np.uint8] | None:
        """Show one of the episodes, with the truth's verdict."""
        one = now.rows(slice(row, row + 1))
        return viewer.show(one, bool(self.truth.achieved(one)[0]), step)


W = TypeVar("W", bound=World[Any])


def split(factory: Callable[..., W], args: tuple[Any, ...], options: dict[str, Any]) -> tuple[W, dict[str, Any]]:
    """Make the world of the arguments of ``gym.make``; returns it, and the keywords that are its environment's."""
    own = {name: value for name, value in options.items() if name in OF_ENVIRONMENTS}
    return factory(*args, **{name: value for name, value in options.items() if name not in own}), own
