"""The settings of a training: the paper's protocol (sections 2.3 and 3.2) as data, every number open to change."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from reward_models import models
from spatialsim_env.arrangements.datasets.named import set_name
from spatialsim_env.arrangements.scene import TURN
from spatialsim_env.arrangements.tasks import STAGES, Discrimination, Identification, Task, reference_scene
from spatialsim_env.checks import is_finite, is_whole, require, require_seed, require_whole

TASKS = ("discrimination", "identification")
REDRAWN = "redrawn"  # the benchmark's negative
VALID = "valid"
ROLLOUTS = "rollouts:"  # before the folder of rollouts, whose part "train" serves every stage
IDENTIFICATION: dict[str, Any] = {  # where the paper's protocol for Identification differs from the defaults
    "task": "identification",
    "stages": (TURN,),
    "samples_per_stage": 10_000,
    "epochs_per_stage": 20,
    "validation_samples": 5_000,
}
PLAIN: dict[str, Any] = {"stages": (TURN,), "epochs_per_stage": 2, "learning_rate": 1e-2}  # without a curriculum


@dataclass(frozen=True)
class TrainingConfig:
    """One training run. The defaults are the paper's protocol for Discrimination.

    With ``data``, ``samples_per_stage`` and ``validation_samples`` are the most that is taken of each set, from its
    beginning; a smaller set is taken whole.

    Raises:
        ValueError: an unknown name, a number out of range, or values that contradict each other.
    """

    model: str = "mpgnn"  # name in models.REGISTRY
    settings: dict[str, Any] = field(default_factory=dict)  # of the model
    task: str = "discrimination"  # or "identification"
    n_objects: int | tuple[int, int] = (3, 8)  # objects per scene; one number for identification
    reference_seed: int = 0  # of the reference scene of identification
    negative: str = REDRAWN  # name in negatives.NAMES, or several joined by +
    stages: tuple[float, ...] = STAGES  # rotation limit of each stage, radians
    samples_per_stage: int = 100_000
    epochs_per_stage: int = 5
    validation_samples: int = 10_000  # at 2 pi
    learning_rate: float = 1e-3
    batch_size: int = 128
    seed: int = 0  # of weights, samples and their order
    data_seed: int | None = None  # of the samples in place of seed: runs of several seeds on the same samples
    data: str | None = None  # folder of stored sets (stage1.., train, valid), or rollouts:FOLDER, not generated samples

    def __post_init__(self) -> None:
        require(self.task in TASKS, "task", self.task, " or ".join(TASKS))
        for name in ("model", "negative"):
            require(isinstance(getattr(self, name), str), name, getattr(self, name), "a name")
        require(isinstance(self.settings, dict), "settings", self.settings, "a dict")
        models.configure(self.model, self.settings)
        require(self.model in models.REGISTRY, "model", self.model, f"a model of scenes: {', '.join(models.REGISTRY)}")
        if not models.REGISTRY[self.model].two_inputs and self.task != "identification":
            raise ValueError(f"{self.model} sees one scene; accepted is task='identification', or a two-input model")
        for name in ("samples_per_stage", "epochs_per_stage", "validation_samples", "batch_size"):
            require_whole(name, getattr(self, name))
        require_seed("seed", self.seed)
        require_seed("reference_seed", self.reference_seed)
        if self.data_seed is not None:
            require_seed("data_seed", self.data_seed)
        rate = self.learning_rate
        require(is_finite(rate) and rate > 0, "learning_rate", rate, "a positive number")
        self._check_samples()

    def _check_samples(self) -> None:
        numbers = self.n_objects if isinstance(self.n_objects, tuple) else (self.n_objects,)
        fits = all(map(is_whole, numbers))
        require(fits, "n_objects", self.n_objects, "an int from 1, or a tuple (low, high) of two")
        fits = isinstance(self.stages, tuple) and len(self.stages) > 0 and all(map(is_finite, self.stages))
        require(fits, "stages", self.stages, "a tuple of rotation limits in radians, at least one")
        for limit in self.stages:
            self.task_at(limit)
        require(self.data is None or isinstance(self.data, str), "data", self.data, "a path as a str, or None")
        if self.data is not None and self.negative != REDRAWN:
            raise ValueError(
                f"negative is {self.negative!r} and data {self.data!r}; stored sets hold negatives of their own: "
                f"accepted is negative={REDRAWN!r}, or no data"
            )
        if self.data is not None and self.data.startswith(ROLLOUTS) and self.task == "identification":
            raise ValueError(
                f"data is {self.data!r} and task 'identification'; rollouts are pairs of scenes: accepted is a "
                "two-input model and task='discrimination'"
            )

    @classmethod
    def identification(cls, n_objects: int = 5, **changes: Any) -> TrainingConfig:
        """The paper's protocol for Identification: 20 epochs on 10,000 samples."""
        return cls(**(IDENTIFICATION | {"model": "mpgnn_single", "n_objects": n_objects} | changes))

    @classmethod
    def plain(cls, model: str = "matching", **changes: Any) -> TrainingConfig:
        """Discrimination without a curriculum, for the matching network: every rotation from the start, two epochs.

        Its biases have some way to go from where they start, hence the faster learning.
        """
        return cls(**(PLAIN | {"model": model} | changes))

    @property
    def n_epochs(self) -> int:
        """Epochs of all stages."""
        return len(self.stages) * self.epochs_per_stage

    def task_at(self, max_rotation: float) -> Task:
        """The generator of samples for a rotation limit (radians)."""
        if self.task == "discrimination":
            return Discrimination(self.n_objects, max_rotation, self.negative)
        if not isinstance(self.n_objects, int):
            raise ValueError(f"n_objects is {self.n_objects!r}; identification has one reference scene: give an int")
        return Identification(self.n_objects, max_rotation, self.negative, reference_seed=self.reference_seed)

    def set_name(self, part: int | str) -> str:
        """Name of the set of samples of a stage (from 0) or of "valid"; it names their stream, too.

        A run of the paper's protocol has the samples of the named sets of ``datasets`` of its ``data_seed``.
        """
        if isinstance(part, str):
            return set_name(self.task_at(TURN), part)
        alone = self.task == "identification" and len(self.stages) == 1
        return set_name(self.task_at(self.stages[part]), "train" if alone else f"stage{part + 1}")

    def describe_task(self, sets: dict[str, str] | None = None) -> dict[str, Any]:
        """Entries of ``model.json`` about the task; ``sets`` are the SHA-256 of the stored sets by name."""
        info: dict[str, Any] = {"name": self.task, "training": self.to_json()}
        if self.data is not None:
            info["data"] = {"path": self.data, "sha256": dict(sets or {})}
        if self.task == "identification":
            assert isinstance(self.n_objects, int)
            info["reference"] = reference_scene(self.n_objects, self.reference_seed).tolist()
        return info

    def to_json(self) -> dict[str, Any]:
        """The configuration as a JSON object."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> TrainingConfig:
        """The inverse of ``to_json``."""
        tuples: dict[str, Any] = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
        return cls(**(values | tuples))
