"""Hindsight goals that look like the environment's.

The textbook buffer relabels a transition with a goal that was achieved later. The environment's goals are never that:
in 2D they are scenes under a similarity with their objects in another order, in 3D a single predicate. The world makes
such goals of those that were achieved (``relabel`` of its goals): what a network sees as its goal, and what a learned
reward is asked about, is always what it will meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3 import HerReplayBuffer

from spatialsim_env.core.world import Goals


class WorldHerReplayBuffer(HerReplayBuffer):
    """``HerReplayBuffer`` whose relabelled goals are such as the world draws.

    They come from a generator of the buffer's own, which takes its seed from NumPy's global state when the buffer is
    made: a model seeds that state, so one ``seed`` of the model gives one stream. The generator is pickled with the
    buffer and resumes there.

    Args:
        args, options: those of ``HerReplayBuffer``.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert self.env is not None
        self.goals: Goals[Any] = self.env.get_attr("world", 0)[0].goals
        self.rng = np.random.default_rng(np.random.randint(2**31, size=4))  # noqa: NPY002, what SB3 seeds

    def _sample_goals(self, batch_indices: NDArray[Any], env_indices: NDArray[Any]) -> NDArray[np.float32]:
        """Sample flat goals (B, ...) for the transitions at the indices (B,)."""
        relabelled: NDArray[np.float32] = self.goals.relabel(
            super()._sample_goals(batch_indices, env_indices), self.rng
        )
        return relabelled
