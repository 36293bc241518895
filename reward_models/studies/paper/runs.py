"""The study as data: every table and figure of the paper is a list of run ids, and an id says what is run.

A *cell* is one pass, as ``identification/mpgnn/n5``: one configuration trained with a fixed list of seeds together. It
is what is claimed, killed and resumed. A *run* is one seed of it, as ``identification/mpgnn/n5/seed3``, and a row of
results. The ids are the same on a laptop and on a cluster.

- ``identification/MODEL/nN``: Table 1, one data set for each N from 3 to 30 objects;
- ``discrimination/MODEL/RANGE``: Tables 2 and 3, trained on a range and tested on all three;
- ``ablation/CHANGE/RANGE``: the MPGNN with one thing of the protocol changed;
- ``rules/RULE/OBJECTS``: rules without learning, apart from one threshold (``measuring/rules.py``).

Every model in ``models.REGISTRY`` has its cells. Those that see pictures are too long for two processors; one cell with
small pictures stands in for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import Any

from reward_models import models
from reward_models.models import RewardModel
from reward_models.studies.engine.study import Json, Unit, as_json, other_settings
from reward_models.training.config import IDENTIFICATION, PLAIN, TrainingConfig
from spatialsim_env.arrangements.datasets import named
from spatialsim_env.arrangements.scene import TURN
from spatialsim_env.arrangements.tasks import RANGES, STAGES

VERSION = 1  # raised whenever a change of the code alters results; rows of two versions are never mixed

SEEDS = tuple(range(10))
FEW_SEEDS = tuple(range(3))
DATA_SEED = 0  # of all data sets, tests included
OBJECTS = range(3, 31)  # the 28 data sets of Identification
GROUPS = tuple(f"{low}-{high}" for low, high in RANGES)
MATCHING = "matching"  # sees both scenes in Identification, too
TEN_SEEDS = ("mpgnn", "conditioned_mpgnn", MATCHING)  # in Discrimination; other models have FEW_SEEDS
SINGLE = "_single"  # end of the names of models of one input; ids leave it out
RULES = ("spread", "sorted_distances", "matching_rule", "truth")

UNROTATED = "discrimination-rotation/3-8/000"  # every target rotated by 0 degrees

_SMALL_PICTURES = {"samples_per_stage": 2_000, "settings": {"pixels": 64}}
_DEFAULTS = {
    item.name: item.default if item.default_factory is MISSING else item.default_factory()
    for item in fields(TrainingConfig)
}


@dataclass(frozen=True)
class Cell(Unit):
    """One pass: what is done, with which seeds, and what it is tested on."""

    seeds: tuple[int, ...]
    tests: dict[str, int]  # samples of each test set, by its name
    heat_map: bool = False  # whether the row of the lowest seed holds one
    long: bool = False  # not for two processors: run where a filter names its model, and listed with what it would cost

    @property
    def runs(self) -> tuple[str, ...]:
        """A run a seed."""
        return tuple(self.run(seed) for seed in self.seeds)

    def run(self, seed: int) -> str:
        """Id of the run of a seed."""
        return f"{self.id}/seed{seed}"

    def quick(self) -> Cell:
        """The same in a moment, for tests: too little of everything to learn from."""
        raise NotImplementedError

    def differences(self, settings: Mapping[str, Any], run: str) -> list[str]:
        """List the settings of a row that differ from this cell's; a setting that a row lacks had its default."""
        ours = self.settings(run)
        defaults = {key: value for key, value in as_json(_DEFAULTS).items() if key in ours}
        theirs = {key: value for key, value in (defaults | dict(settings)).items() if key != "data"}
        return other_settings(theirs, {key: value for key, value in ours.items() if key != "data"})


def seed_of(run: str) -> int:
    """The seed of a run's id."""
    return int(run.rpartition("/seed")[2])


@dataclass(frozen=True)
class TrainedCell(Cell):
    """A pass that trains networks."""

    training: dict[str, Any] = field(default_factory=dict)  # what differs from the defaults of TrainingConfig

    def config(self, seed: int, data: str | None = None) -> TrainingConfig:
        """The configuration of a run; ``data`` is a folder of stored sets in place of generated samples."""
        return TrainingConfig(**(self.training | {"seed": seed, "data": data}))

    def settings(self, run: str) -> Json:
        return as_json(_DEFAULTS | self.training | {"seed": seed_of(run)})

    def quick(self) -> TrainedCell:
        few = {"samples_per_stage": 256, "epochs_per_stage": 2, "validation_samples": 64}
        training = self.training | few
        if models.REGISTRY[self.training["model"]].sees_pictures:
            training["samples_per_stage"] = 64
        return replace(self, seeds=self.seeds[:2], tests=dict.fromkeys(self.tests, 100), training=training)


@dataclass(frozen=True)
class RuleCell(Cell):
    """A rule without learning; its threshold is fitted on training samples."""

    rule: str = "truth"
    samples: int = 20_000  # that the threshold is fitted on

    def settings(self, run: str) -> Json:
        return {"rule": self.rule, "samples": self.samples, "seed": seed_of(run)}

    def quick(self) -> RuleCell:
        return replace(self, tests=dict.fromkeys(self.tests, 100), samples=200)


def _tests(names: Iterable[str]) -> dict[str, int]:
    return {name: named.find(name).size for name in names}


def group_of(n: int) -> tuple[int, int]:
    """The range among 3-8, 9-20, 21-30 that a number of objects belongs to."""
    return next((low, high) for low, high in RANGES if low <= n <= high)


def _training(kind: str, group: tuple[int, int], **changes: Any) -> dict[str, Any]:
    """Return a model's own changes to a training configuration of the study."""
    model = models.REGISTRY[kind]
    training: dict[str, Any] = {"model": kind, "data_seed": DATA_SEED} | changes
    if not model.curriculum:
        training |= PLAIN
    if _is_built_for_a_range(model):
        training["settings"] = dict(zip(("n_min", "n_max"), group, strict=True))
    return training


def _is_built_for_a_range(model: type[RewardModel]) -> bool:
    return "n_max" in model.Config.__dataclass_fields__


def _identification(kind: str, n: int) -> TrainedCell:
    name, long = f"identification/{kind.removesuffix(SINGLE)}/n{n}", models.REGISTRY[kind].sees_pictures
    training = _training(kind, group_of(n), n_objects=n, **IDENTIFICATION)
    return TrainedCell(name, SEEDS, _tests([f"identification/n{n}/test"]), n == 5, long, training)


def _discrimination(kind: str, group: tuple[int, int], seeds: tuple[int, ...]) -> TrainedCell:
    model, name = models.REGISTRY[kind], f"discrimination/{kind}/{group[0]}-{group[1]}"
    largest = group[1] if _is_built_for_a_range(model) else RANGES[-1][1]
    tests = _tests(f"discrimination/{low}-{high}/test" for low, high in RANGES if high <= largest)
    training = _training(kind, group, n_objects=group)
    return TrainedCell(name, seeds, tests, group == RANGES[0], model.sees_pictures, training)


def _ablation(name: str, group: tuple[int, int], *tests: str, **changes: Any) -> TrainedCell:
    training = {"model": "mpgnn", "n_objects": group, "data_seed": DATA_SEED} | changes
    names = [*(f"discrimination/{other}/test" for other in GROUPS), *tests]
    return TrainedCell(f"ablation/{name}/{group[0]}-{group[1]}", FEW_SEEDS, _tests(names), training=training)


def _rule(rule: str, objects: str) -> RuleCell:
    task = "identification" if objects == "n5" else "discrimination"
    tests = _tests([f"{task}/{objects}/test"])
    heat_map = rule == "truth" and objects in ("n5", "3-8")
    return RuleCell(f"rules/{rule}/{objects}", SEEDS[:1], tests, heat_map, rule=rule)


def _cells() -> dict[str, Cell]:
    small, _, large = RANGES
    single = [kind for kind, model in models.REGISTRY.items() if not model.two_inputs]
    two = [kind for kind, model in models.REGISTRY.items() if model.two_inputs]
    cells: list[Cell] = [_identification(kind, n) for kind in (*single, MATCHING) for n in OBJECTS]
    for kind in (*TEN_SEEDS, *(kind for kind in two if kind not in TEN_SEEDS)):
        seeds = SEEDS if kind in TEN_SEEDS else FEW_SEEDS
        cells += [_discrimination(kind, group, seeds) for group in RANGES]
    pictures = _identification("resnet18_single", 5)
    cells += [
        _ablation("no_curriculum", small, stages=(TURN,) * len(STAGES)),
        _ablation("no_rotations", small, UNROTATED, stages=(0.0,) * len(STAGES)),
        _ablation("n3_only", small, "discrimination/n3/test", n_objects=3),
        _ablation("one_round", small, settings={"rounds": 1}),
        *(_ablation(f"width{width}", large, settings={"width": width}) for width in (16, 32)),
        replace(
            pictures,
            id="identification/resnet18_64px/n5",
            seeds=SEEDS[:1],
            long=False,
            training=pictures.training | _SMALL_PICTURES,
        ),
        *(_rule(rule, objects) for rule in RULES for objects in ("n3", *GROUPS)),
        _rule("truth", "n5"),
    ]
    return {cell.id: cell for cell in sorted(cells, key=lambda cell: cell.long)}


CELLS = _cells()


def cells(quick: bool = False) -> dict[str, Cell]:
    """All cells by id, in the order in which they are worth having, those that are too long for two processors last.

    ``quick`` is the small study, for tests; it leaves those out.
    """
    return {name: cell.quick() for name, cell in CELLS.items() if not cell.long} if quick else dict(CELLS)


def _ids(*patterns: str) -> list[str]:
    """The ids of the cells that match and are not too long."""
    short = [cell for cell in CELLS.values() if not cell.long]
    found = [cell for cell in short if any(fnmatchcase(cell.id, pattern) for pattern in patterns)]
    return [run for cell in found for run in cell.runs]


# the runs behind each table and figure; Figure 1 shows samples and needs none
TABLES: dict[str, list[str]] = {
    "table1": _ids("identification/*"),
    "table2": _ids("discrimination/*"),
    "table3": _ids("discrimination/*"),
    "figure1": [],
    "figure2": [cell.runs[0] for cell in CELLS.values() if cell.heat_map and not cell.long],
    "curves": _ids("discrimination/*/3-8", "identification/*/n5"),
    "rules": _ids("rules/*"),
    "ablations": _ids("ablation/*", "discrimination/mpgnn/3-8", "discrimination/mpgnn/21-30"),
}


def groups(units: Mapping[str, Cell]) -> dict[str, list[str]]:
    """The runs of each table and figure."""
    return TABLES
