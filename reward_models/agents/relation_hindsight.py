"""Hindsight goals of relations: what was required of a transition, replaced by a goal such as the environment draws.

The textbook buffer would require all that held at a later step, about ten predicates at once, which no episode of the
environment does. Here a relabelled transition requires one predicate of the environment's: one that held at the later
step, or any, equally often. The first kind shows success, the second what each predicate makes of a motion that was
made for another; the reward of either is computed from the boxes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3 import HerReplayBuffer

from spatialsim_env.relations.world import goals

ACHIEVED = 0.5  # share of the relabelled transitions whose goal held later, where one of the environment's did


class RelationHerReplayBuffer(HerReplayBuffer):
    """``HerReplayBuffer`` whose relabelled goals require one of the environment's predicates.

    The choices come from a generator of the buffer's own, which takes its seed from NumPy's global state when the
    buffer is made: a model seeds that state, so one ``seed`` of the model gives one stream.

    Args:
        args, options: those of ``HerReplayBuffer``.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert self.env is not None
        self.indices = self.env.get_attr("episodes", 0)[0].indices
        self.rng = np.random.default_rng(np.random.randint(2**31, size=4))  # noqa: NPY002, what SB3 seeds

    def _sample_goals(self, batch_indices: NDArray[Any], env_indices: NDArray[Any]) -> NDArray[np.float32]:
        """Goals (B, 77) for the transitions at the indices (B,)."""
        later = goals.required(super()._sample_goals(batch_indices, env_indices))[:, self.indices]
        chosen = self.rng.random(later.shape)
        held = (self.rng.random(len(later)) < ACHIEVED) & later.any(axis=1)
        chosen[held[:, None] & ~later] = -1
        flags = np.zeros((len(later), goals.N_FLAGS), np.bool_)
        flags[np.arange(len(later)), self.indices[chosen.argmax(axis=1)]] = True
        return goals.desired(flags)
