"""Hindsight goals that look like the environment's: each relabelled goal under a random similarity.

The textbook buffer relabels a transition with a scene that was achieved in the arena. The environment's goals are
never that: they are scenes under a similarity, their objects in another order. Success does not change under
either, so applying both to the relabelled goals costs nothing and makes the two kinds of rows one distribution:
what a network sees as its goal, and what a learned reward is asked about, is always what it will meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3 import HerReplayBuffer

from spatialsim_env.arrangements import similarities
from spatialsim_env.arrangements.scene import as_batch
from spatialsim_env.arrangements.tasks import shuffle


class SimilarityHerReplayBuffer(HerReplayBuffer):
    """``HerReplayBuffer`` whose relabelled goals are random similarities of achieved scenes, objects reordered.

    The similarities are those that the environment draws its goals with (``goal_scale``, ``goal_angle``), so goals stay
    within the bounds of the observation space. They come from a generator of the buffer's own, which takes its seed
    from NumPy's global state when the buffer is made: a model seeds that state, so one ``seed`` of the model gives one
    stream. The generator is pickled with the buffer and resumes there.

    Args:
        args, options: those of ``HerReplayBuffer``.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert self.env is not None
        episodes = self.env.get_attr("episodes", 0)[0]
        self.scales, self.angles = episodes.goal_scale, episodes.goal_angle
        self.rng = np.random.default_rng(np.random.randint(2**31, size=4))  # noqa: NPY002, what SB3 seeds

    def _sample_goals(self, batch_indices: NDArray[Any], env_indices: NDArray[Any]) -> NDArray[np.float32]:
        """Goals (B, 10 n_max) for the transitions at the indices (B,), padding last."""
        goals = super()._sample_goals(batch_indices, env_indices)
        scenes, _ = as_batch(goals)
        shuffled = shuffle(scenes, self.rng.random(scenes.shape[:2], np.float32))
        similarity = similarities.sample(len(scenes), self.rng, self.scales, self.angles)
        return similarity.apply(shuffled).reshape(goals.shape)
