"""Watching a policy act: in a window, or in a file.

Between episodes the end of one stays in sight for about a second.
"""

from __future__ import annotations

from contextlib import closing, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from reward_models.agents.configs import AgentConfig
from reward_models.agents.evaluation import film, steps
from reward_models.agents.policies import Policy
from spatialsim_env.core.screen import save_frames

HOLD = 15  # further frames of the end of an episode


def show(
    policy: Policy | str, config: AgentConfig, reward: Any = "sparse", *, episodes: int = 3, seed: int = 10_000
) -> list[dict[str, Any]]:
    """Play episodes in a window, in the environment's time, until its user closes it or stops with Ctrl-C.

    Args:
        policy, config, reward, seed: as of ``evaluation.evaluate``.
        episodes: how many.

    Returns:
        The last ``info`` of each episode that was seen to its end.

    Raises:
        ImportError: pygame-ce is not installed; RuntimeError: there is no display.
    """
    ends: list[dict[str, Any]] = []
    with closing(config.make_env(reward, render_mode="human")) as env, suppress(KeyboardInterrupt):
        for episode in range(seed, seed + episodes):
            seen = list(takewhile(lambda _: env.get_wrapper_attr("is_shown"), steps(policy, env, episode)))
            for _ in range(HOLD):
                env.render()
            if not env.get_wrapper_attr("is_shown"):
                break
            ends.append(seen[-1])
    return ends


def save(policy: Policy | str, config: AgentConfig, out: Path, *, episodes: int = 3, seed: int = 10_000) -> int:
    """Write episodes as an animated .gif or a .mp4, or the end of the last one as a .png.

    Returns:
        The number of frames.

    Raises:
        ValueError, ImportError: as ``rendering.save_frames``.
    """
    frames = []
    for episode in range(seed, seed + episodes):
        played = film(policy, config, seed=episode)
        frames += played + HOLD * played[-1:]
    if out.suffix.lower() == ".png":
        frames = frames[-1:]
    save_frames(frames, out)
    return len(frames)
