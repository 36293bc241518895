"""Measure a judge on the hard suite: accuracy per task, and the least displacement that it detects.

A judge is anything with ``score(achieved, desired)``, (B,), positive where it says the same configuration: a trained
model, a rule without learning, the truth, a function written elsewhere. All of them see the same samples. The ideal
observer's accuracy is the ceiling of a task: of an accuracy, the *share of the ceiling* is (accuracy - 1/2) divided by
(ceiling - 1/2), 0 for guessing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_models.judges.judge import Scorer, require_order
from reward_models.measuring import rules
from reward_models.shares import Accuracy
from spatialsim_env.arrangements import hard_suite
from spatialsim_env.arrangements.hard_suite import HardTask, label_of
from spatialsim_env.arrangements.ideal import observer
from spatialsim_env.arrangements.scene import pad
from spatialsim_env.arrangements.tasks import Discrimination, Samples, object_range
from spatialsim_env.checks import require_seed, require_whole
from spatialsim_env.streams import stream

_SHARE = "of the ceiling"
LEVEL = 0.75  # share of right answers at the detection threshold
CEILING = "ideal observer"  # the judge that no other can beat
SIZES = ((8, 10_000), (30, 2_000), (hard_suite.MOST_OBJECTS, 400))  # up to so many objects: samples per task and range
RULES = ("spread", "sorted_distances", "matching_rule")
RULE_TASK, RULE_SAMPLES = Discrimination((3, 8)), 10_000  # what the limits of the rules are fitted on


ForTask = Callable[[Discrimination], Scorer]  # a judge that may know which task it is asked about


@dataclass(frozen=True)
class HardResult:
    """Result of one judge on one task and range."""

    task: str  # name in hard_suite.REGISTRY
    objects: str  # "3-8", "n100"
    judge: str
    certified: bool  # whether the truth certified the negatives
    correct: int | None  # right answers; None where the judge refused the scenes
    total: int
    refusal: str = ""  # in its own words
    exact: int | None = None  # of the ideal observer: answers to pairs whose likelihood ratio is exact

    @property
    def accuracy(self) -> Accuracy | None:
        """Share of right answers, with its interval."""
        return None if self.correct is None else Accuracy(self.correct, self.total)

    def to_json(self) -> dict[str, Any]:
        """The row with its accuracy and the interval of 95 %."""
        accuracy = self.accuracy
        numbers = {} if accuracy is None else {"accuracy": accuracy.value, "interval": list(accuracy.interval)}
        return {**self.__dict__, **numbers}


@dataclass(frozen=True)
class RuleJudge:
    """A rule of the benchmark with its limit: the same where the number is below."""

    statistic: rules.Statistic
    limit: float

    @classmethod
    def fitted(cls, rule: str, seed: int = 0) -> RuleJudge:
        """A rule with the limit that is right most often on the benchmark with 3 to 8 objects."""
        training = RULE_TASK.sample(RULE_SAMPLES, stream(seed, "hard/rules"))
        statistic = rules.RULES[rule]
        return cls(statistic, rules.threshold(statistic(training), training.label))

    def score(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        """The limit minus the number, (B,)."""
        pairs = Samples(desired, pad(achieved, desired.shape[1]), np.zeros(len(desired), np.float32))
        return self.limit - self.statistic(pairs)


@dataclass(frozen=True)
class TaskTruth:
    """The truth of a task as a judge; it refuses what it has no answer for."""

    task: Discrimination

    def score(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        """1 - distance, (B,)."""
        return 1 - hard_suite.distance(self.task, desired, achieved)


@dataclass(frozen=True)
class Ideal:
    """The best possible decision on a task; it refuses a task whose densities are not known."""

    task: Discrimination

    def ratio(self, achieved: NDArray[Any], desired: NDArray[Any]) -> observer.Ratio:
        """The logarithm of the likelihood ratio, and where it is exact."""
        apart = self.task.abstract or self.task.distractors  # certified by the suite, not by the task
        truth = hard_suite.distance if apart and hard_suite.has_truth(self.task) else None
        return observer.log_likelihood_ratio(self.task, desired, achieved, truth)

    def score(self, achieved: NDArray[Any], desired: NDArray[Any]) -> NDArray[np.float64]:
        """The logarithm of the likelihood ratio, (B,)."""
        return self.ratio(achieved, desired).value


def reference_judges(seed: int = 0) -> dict[str, ForTask]:
    """Ideal observer, truth and rules without learning, which stand beside a judge unless others are given."""
    fitted = {rule: RuleJudge.fitted(rule, seed) for rule in RULES}
    return {CEILING: Ideal, "truth": TaskTruth, **{rule: _always(judge) for rule, judge in fitted.items()}}


def size_for(n_objects: int | tuple[int, int]) -> int:
    """Default number of samples per task for a range of objects."""
    high = object_range(n_objects)[1]
    return next(size for most, size in SIZES if high <= most)


def _always(judge: Scorer) -> ForTask:
    return lambda task: judge


def run(
    judge: Scorer,
    name: str = "model",
    beside: Mapping[str, ForTask] | None = None,
    tasks: Iterable[str] = hard_suite.NAMES,
    objects: Sequence[int | tuple[int, int]] = hard_suite.RANGES,
    size: int | None = None,
    seed: int = 0,
) -> list[HardResult]:
    """Accuracy of a judge and of those beside it on the hard suite.

    The ``displaced`` tasks appear without certificates, which is the detection curve, and again with them where a
    displacement is beyond the tolerance.

    Args:
        judge: what is judged; a model of the package is ``reward_models.load(FOLDER)``.
        name: what its rows are called.
        beside: other judges, made for each task; ``reference_judges()`` by default.
        tasks: names in ``hard_suite.REGISTRY``.
        objects: ranges of objects; a task takes the part that is its own.
        size: samples per task and range; ``size_for`` the range by default.
        seed: of the samples and of the limits of the rules.

    Raises:
        TypeError: a judge that takes the goal first.
        ValueError: an unknown task, numbers out of range, two judges of one name, or a judge that gives another shape
            or NaN. One that raises a ValueError has refused, which its row says.
    """
    if size is not None:
        require_whole("size", size, 2)
    require_seed("seed", seed)
    require_order(judge)
    beside = reference_judges(seed) if beside is None else beside
    if name in beside:
        raise ValueError(f"two judges are called {name!r}; give another name")
    judges: dict[str, ForTask] = {name: _always(judge), **beside}
    rows = []
    for hard in map(hard_suite.find, tuple(tasks)):
        for part in filter(None, map(hard.within, objects)):
            for certify in ways(hard, part):
                rng = hard_suite.rng_of(hard.name, part, seed)
                samples = hard.sample(part, size or size_for(part), rng, certify)
                asked = {key: make(hard.task(part, certify)) for key, make in judges.items()}
                rows += [_row(hard, part, certify, key, one, samples) for key, one in asked.items()]
    return rows


def ways(hard: HardTask, objects: tuple[int, int]) -> tuple[bool, ...]:
    """The forms of a task: with certificates, without, or both."""
    if not hard.certifies(objects):
        return (False,)
    return (True,) if hard.displacement is None else (False, True)


def _row(
    hard: HardTask, objects: tuple[int, int], certified: bool, name: str, judge: Scorer, samples: Samples
) -> HardResult:
    row = {"task": hard.name, "objects": label_of(objects), "judge": name, "certified": certified}
    exact = None
    try:
        if isinstance(judge, Ideal):
            ratio = judge.ratio(samples.reference, samples.target)
            score, exact = ratio.value, int(ratio.exact.sum())
        else:
            score = np.asarray(judge.score(samples.reference, samples.target))
    except ValueError as refusal:
        return HardResult(**row, correct=None, total=len(samples), refusal=str(refusal))  # type: ignore[arg-type]
    if score.shape != (len(samples),):
        raise ValueError(f"{name} gave scores of shape {score.shape}; accepted is {(len(samples),)}")
    if np.isnan(score).any():
        raise ValueError(f"{name} gave NaN on {hard.name}, {label_of(objects)} objects; accepted are numbers")
    right = (score > 0) == (samples.label == 1)
    return HardResult(**row, correct=int(right.sum()), total=len(samples), exact=exact)  # type: ignore[arg-type]


def detection_threshold(curve: Mapping[float, float]) -> float | None:
    """The least displacement, in deviations of the noise, at which a judge is right three times in four.

    The curve is linear between its points and begins at one half, since nothing tells the labels apart there.

    Args:
        curve: accuracy by displacement.

    Returns:
        None if it is never right so often.
    """
    points = [(0.0, 0.5), *sorted(curve.items())]
    for (near, low), (far, high) in pairwise(points):
        if high >= LEVEL:
            return near + (far - near) * (LEVEL - low) / (high - low)
    return None


def thresholds(rows: Iterable[HardResult]) -> dict[tuple[str, str], float | None]:
    """Detection threshold by judge and range, of those with rows of the whole curve; None: never."""
    curves: dict[tuple[str, str], dict[float, float]] = {}
    for row in rows:
        displacement, accuracy = hard_suite.find(row.task).displacement, row.accuracy
        if displacement is not None and not row.certified and accuracy is not None:
            curves.setdefault((row.judge, row.objects), {})[displacement] = accuracy.value
    return {
        key: detection_threshold(curve)
        for key, curve in curves.items()
        if sorted(curve) == sorted(hard_suite.DISPLACEMENTS)
    }


def share_of_ceiling(row: HardResult | None, ceiling: HardResult | None) -> float | None:
    """(accuracy - 1/2) / (ceiling - 1/2); None where one of both refused, or where the ceiling is guessing.

    Args:
        ceiling: the ideal observer's row of the same task, range and form.
    """
    own, most = (None if one is None else one.accuracy for one in (row, ceiling))
    if own is None or most is None or most.value <= 0.5:
        return None
    return (own.value - 0.5) / (most.value - 0.5)


def ratio_to_ceiling(known: Mapping[tuple[str, str], float | None], judge: str, objects: str) -> float | None:
    """A judge's detection threshold divided by the ideal observer's; None where one of both has none."""
    own, least = known.get((judge, objects)), known.get((CEILING, objects))
    return None if own is None or least is None else own / least


def to_json(rows: Sequence[HardResult]) -> dict[str, Any]:
    """Rows and thresholds as JSON holds them."""
    known = thresholds(rows)
    sigmas = [
        {"judge": judge, "objects": objects, "threshold": value, "ratio": ratio_to_ceiling(known, judge, objects)}
        for (judge, objects), value in known.items()
    ]
    return {"rows": [row.to_json() for row in rows], "thresholds": sigmas}


def in_order(judges: Iterable[str]) -> list[str]:
    """Names of judges, each once: the ideal observer, then the others as they come."""
    names = list(dict.fromkeys(judges))
    return [CEILING, *(name for name in names if name != CEILING)] if CEILING in names else names


def table(rows: Sequence[HardResult]) -> str:
    """Markdown: a line per task and range, a column per judge, the ideal observer first; below, detection thresholds.

    The certified form of a task is shown where there is one. In brackets: the interval of 95 %. After the first judge
    beside the ideal observer stands its share of the ceiling, in the lines of thresholds the ratio of both.
    """
    columns = in_order(row.judge for row in rows)
    model = columns[1] if columns[0] == CEILING and len(columns) > 1 else None
    if model is not None:
        columns.insert(2, _SHARE)
    lines = [["task", "objects", "negatives", *columns]]
    for (task, objects), cells in prefer_certified(rows).items():
        kind = "certified" if next(iter(cells.values())).certified else "by construction"
        texts = {judge: _cell(cells.get(judge)) for judge in columns}
        if model is not None:
            texts[_SHARE] = _number(share_of_ceiling(cells.get(model), cells.get(CEILING)))
        lines.append([task, objects, kind, *texts.values()])
    known = thresholds(rows)
    for objects in dict.fromkeys(objects for _, objects in known):
        values = {judge: known.get((judge, objects)) for judge in columns}
        texts = {judge: "never" if value is None else f"{value:.2f}" for judge, value in values.items()}
        if model is not None:
            texts[_SHARE] = _number(ratio_to_ceiling(known, model, objects), " times")
        lines.append([f"right {LEVEL:.0%} of the time from, sigma", objects, "by construction", *texts.values()])
    return "\n".join([_line(lines[0]), _line(["---"] * len(lines[0])), *map(_line, lines[1:])])


def prefer_certified(rows: Iterable[HardResult]) -> dict[tuple[str, str], dict[str, HardResult]]:
    """By task and range, then by judge: the certified form of a task where there is one."""
    forms: dict[tuple[str, str], dict[str, HardResult]] = {}
    for row in rows:
        cells = forms.setdefault((row.task, row.objects), {})
        if row.judge not in cells or row.certified:
            cells[row.judge] = row
    return forms


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.3f}{unit}"


def _cell(row: HardResult | None) -> str:
    accuracy = None if row is None else row.accuracy
    if row is None or accuracy is None:
        return "-"
    low, high = accuracy.interval
    approximate = "" if row.exact in (None, row.total) else ", approximate"
    return f"{accuracy.value:.3f} ({low:.3f} to {high:.3f}{approximate})"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
