"""Tables of the hard suite from its rows alone, ceilings on top."""

from __future__ import annotations

from collections.abc import Sequence, Sized

from reward_models.measuring.hard_cases import (
    CEILING,
    LEVEL,
    HardResult,
    in_order,
    prefer_certified,
    ratio_to_ceiling,
    share_of_ceiling,
    thresholds,
)
from reward_models.studies.engine.rows import RowError
from reward_models.studies.engine.study import Files, Report, Results, Study
from reward_models.studies.hard_suite import runs, work
from reward_models.studies.hard_suite.runs import HardUnit
from reward_models.studies.hard_suite.work import HardRow
from reward_models.tables import NONE, Table
from spatialsim_env.arrangements import hard_suite
from spatialsim_env.arrangements.hard_suite import label_of

RATIO = 1.1  # the target: a detection threshold of at most so many times the ideal observer's
_NEVER = "never"
_SHARES = (
    "Shares of right answers; in brackets the share of the ceiling, (accuracy - 1/2) / (ideal observer's - 1/2), that "
    "is 0 for guessing. *: the ceiling is approximate for some of the pairs (`ideal/observer.py` says "
    f"where). {NONE}: no answer."
)
_CURVE = (
    "Shares of right answers where one object is moved by so many deviations of the noise, without certificates. "
    f"Threshold: from where {LEVEL:.0%} are right, in deviations; beside it, divided by the ideal observer's (target: "
    f"at most {RATIO})."
)


def report(results: Results[HardRow]) -> Report:
    """Make the report.

    Raises:
        RowError: as ``join``.
    """
    models = list(results.done.values())
    return Report("Hard suite: results", (_origin(models), *tables(models)), (in_full(models),))


def tables(models: Sequence[HardRow]) -> list[Table]:
    """For each range of objects every kind of negative, then the curve of the displaced object."""
    settings, rows = models[0].settings, join(models)
    parts = [(low, high) for low, high in settings["objects"]]
    made = [make(rows, settings["tasks"], part) for part in parts for make in (kinds, curve)]
    return [table for table in made if table.lines]


def join(models: Sequence[HardRow]) -> list[HardResult]:
    """Join the results of the judges beside the models, once, with those of the models.

    Raises:
        RowError: models with other settings, seeds or judges beside them.
    """
    first = models[0]
    for other in models[1:]:
        for entry in ("seed", "settings"):
            if getattr(other, entry) != getattr(first, entry):
                raise RowError(
                    f"{entry} of {other.id} and {first.id} differ; run spatialsim hard again for one of them"
                )
        if other.beside != first.beside:
            raise RowError(
                f"the judges beside {other.id} and {first.id} differ, so one is of other code or of another machine; "
                "run spatialsim hard again for both"
            )
    return [*first.beside, *(row for model in models for row in model.of_model)]


def kinds(rows: Sequence[HardResult], tasks: Sequence[str], part: tuple[int, int]) -> Table:
    """Accuracy of every judge on every kind of negative but the displaced, in a range of objects."""
    held = {
        hard.name: label_of(within)
        for hard in map(hard_suite.find, tasks)
        if hard.displacement is None and (within := hard.within(part)) is not None
    }
    by_task, label = prefer_certified(rows), label_of(part)
    lines = [
        (judge, *(_share(by_task.get(of, {}).get(judge), by_task.get(of, {}).get(CEILING)) for of in held.items()))
        for judge in in_order(row.judge for row in rows)
    ]
    columns = [name if of == label else f"{name} ({of})" for name, of in held.items()]
    return Table(f"kinds_{label}", f"Kinds of negatives, {_objects(label)}", ("", *columns), _if(held, lines), _SHARES)


def curve(rows: Sequence[HardResult], tasks: Sequence[str], part: tuple[int, int]) -> Table:
    """Accuracy of every judge by displacement, and where it is right three times in four."""
    label, sigmas = label_of(part), thresholds(rows)
    held = [hard.name for hard in map(hard_suite.find, tasks) if hard.displacement is not None and hard.within(part)]
    by_task = {(row.task, row.judge): row for row in rows if row.objects == label and not row.certified}
    lines = []
    for judge in in_order(row.judge for row in rows):
        cells = [_share(by_task.get((name, judge)), by_task.get((name, CEILING))) for name in held]
        known, ratio = (judge, label) in sigmas, ratio_to_ceiling(sigmas, judge, label)
        least = sigmas.get((judge, label))
        threshold = NONE if not known else _NEVER if least is None else f"{least:.2f}"
        lines.append((judge, *cells, threshold, NONE if ratio is None else f"{ratio:.2f}"))
    columns = ("", *(name.removeprefix("displaced/") for name in held), "threshold", "of the ideal observer's")
    return Table(f"curve_{label}", f"One object displaced, {_objects(label)}", columns, _if(held, lines), _CURVE)


def in_full(models: Sequence[HardRow]) -> Table:
    """Every row, a line each."""
    rows, lines = join(models), []
    ceilings = {(row.task, row.objects, row.certified): row for row in rows if row.judge == CEILING}
    for row in rows:
        share = share_of_ceiling(row, ceilings.get((row.task, row.objects, row.certified)))
        numbers = [None] * 3 if row.accuracy is None else [row.accuracy.value, *row.accuracy.interval]
        counts = [NONE if count is None else str(count) for count in (row.correct, row.total, row.exact)]
        texts = [NONE if number is None else f"{number:.4f}" for number in (*numbers, share)]
        kind = "certified" if row.certified else "by construction"
        lines.append((row.task, row.objects, kind, row.judge, *counts, *texts, row.refusal))
    columns = ["task", "objects", "negatives", "judge", "correct", "total", "exact", "accuracy", "95 % low"]
    columns += ["95 % high", "share of the ceiling", "refusal"]
    return Table("rows", "All rows", tuple(columns), tuple(lines))


def _if(held: Sized, lines: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    return tuple(lines) if held else ()


def _share(row: HardResult | None, ceiling: HardResult | None) -> str:
    if row is None or row.accuracy is None:
        return NONE
    text = f"{row.accuracy.value:.3f}"
    if row.judge == CEILING:
        return text if row.exact == row.total else f"{text} *"
    share = share_of_ceiling(row, ceiling)
    return text if share is None else f"{text} ({share:.2f})"


def _objects(label: str) -> str:
    return f"{label.removeprefix('n')} objects"


def _origin(models: Sequence[HardRow]) -> str:
    """List the models, the code that judged them, and the samples."""
    lines = [
        f"- {row.id}: {row.model['source']}, {row.model['kind']}, {row.model['n_weights']:,} weights, SHA-256 "
        f"{row.model['sha256'][:12]}, commit {row.stamp.commit}, {row.stamp.machine}"
        for row in models
    ]
    sizes = sorted({(row.objects, row.total) for row in models[0].results})
    samples = ", ".join(f"{total:,} of {objects}" for objects, total in sizes)
    return "\n".join([*lines, f"- seed {models[0].seed}; samples per task: {samples}"])


def row_file(unit: str) -> str:
    """Name the file of a model's row after the model."""
    return f"{unit}.json"


STUDY: Study[HardUnit, HardRow] = Study(
    "hard_suite",
    runs.VERSION,
    HardRow,
    runs.units,
    work.work,
    report,
    work.fail,
    work.summarise_row,
    Files("results/hard", rows=".", report=".", path=row_file),
    title="Models of the hub on the hard suite, beside the ideal observer",
    upgraded=work.upgrade,
)
