"""The settings of a hardening: the start, the parts of a replay, the rounds and their optimisers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from reward_models.training.config import TrainingConfig
from spatialsim_env.arrangements.negatives import Displaced
from spatialsim_env.checks import is_finite, require, require_seed, require_whole

OBJECTS = (3, 8)  # per scene
ENDS = "ends"
PARTS = ("benchmark", "mixture", "displaced", "lookalikes", "rollouts", ENDS)  # of a replay, see replay.py


@dataclass(frozen=True)
class HardeningConfig:
    """One hardening.

    Raises:
        ValueError: a value that is not accepted, or a training that is not of Discrimination with 3 to 8 objects.
    """

    training: TrainingConfig = field(default_factory=lambda: TrainingConfig.plain(negative="mixture"))  # of the start
    shares: dict[str, float] = field(default_factory=lambda: {"mixture": 0.7, ENDS: 0.3})  # of the parts of a replay
    rounds: int = 4  # at most
    samples: int = 50_000  # of a replay
    epochs: int = 1  # over it
    learning_rate: float = 1e-3  # at the beginning of a round; it falls in a straight line
    batch_size: int = 128
    displacements: tuple[float, float] = (2.0, 8.0)  # deviations of the position noise
    episodes: int = 200  # of rollouts in a round
    sizes: int = 2  # numbers of objects that a round's optimisers are asked about
    starts: int = 64  # of each optimiser, for each number of objects
    gradient_evaluations: int = 300  # scores from each start, at most
    search_evaluations: int = 1_000  # scores from each start, at most
    points: int = 4  # kept along the way from each start
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rounds", "samples", "epochs", "batch_size", "episodes", "starts", "sizes"):
            require_whole(name, getattr(self, name))
        for name in ("gradient_evaluations", "search_evaluations"):
            require_whole(name, getattr(self, name), 2)
        require_whole("points", self.points, 0)
        most = OBJECTS[1] - OBJECTS[0] + 1
        require(self.sizes <= most, "sizes", self.sizes, f"an int from 1 to {most}")
        require_seed("seed", self.seed)
        rate = self.learning_rate
        require(is_finite(rate) and rate > 0, "learning_rate", rate, "a positive number")
        Displaced(*self.displacements)
        known = isinstance(self.shares, dict) and set(self.shares) <= set(PARTS) and set(self.shares) - {ENDS}
        require(bool(known), "shares", self.shares, f"a dict of {', '.join(PARTS)}, at least one beside {ENDS}")
        fits = all(is_finite(share) and share > 0 for share in self.shares.values())
        require(fits, "shares", self.shares, "a dict of positive numbers")
        training = self.training
        fits = training.task == "discrimination" and training.n_objects == OBJECTS and training.data is None
        require(fits, "training", training, f"discrimination with {OBJECTS} objects, without stored sets")

    @property
    def optimises(self) -> bool:
        """True with "ends" in a replay; else no optimiser is asked, and all rounds are gone through."""
        return ENDS in self.shares

    def describe_task(self) -> dict[str, Any]:
        """Entries of ``model.json``: the task of the start, and this."""
        return self.training.describe_task() | {"hardening": self.to_json()}

    def to_json(self) -> dict[str, Any]:
        """Give the settings as a JSON object."""
        return json.loads(json.dumps(asdict(self)))
