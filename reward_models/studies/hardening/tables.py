"""Tables of the ablation of hardening: a line a variant, in the order in which ingredients are added."""

from __future__ import annotations

from collections.abc import Mapping

from reward_models.auditing.setup import GRADIENT, SEARCH
from reward_models.hub.recipes import HARDENED
from reward_models.shares import value_of
from reward_models.studies.engine import report as shell
from reward_models.studies.engine.study import Files, Json, Report, Results, Study
from reward_models.studies.hardening import runs, work
from reward_models.studies.hardening.runs import PLAIN, HardeningUnit, variants_of
from reward_models.studies.hardening.work import HardeningRow
from reward_models.tables import NONE, Table

OBJECTS = "3-8"  # of the thresholds and of the hard suite
TASKS = {"lookalikes": "lookalikes/five", "swapped": "swapped"}  # column: task


def report(results: Results[HardeningRow]) -> Report:
    """Make the report."""
    origin = f"{shell.QUICK * results.quick}\n\n{shell.origin(results.rows.values())}".strip()
    shown = [table(results.done, model) for model in HARDENED]
    return Report("Ablation of hardening", (origin, *shown, shell.failures(results), shell.missing(results)))


def table(rows: Mapping[str, HardeningRow], model: str) -> Table:
    """Compare the variants of a model, the one with default settings first, then the ingredients in turn."""
    names = [PLAIN, *(name for name in variants_of(model) if name != PLAIN)]
    chosen = [rows[run] for name in names if (run := f"{model}/{name}/seed0") in rows]
    sizes = sorted({part["n_objects"] for row in chosen for part in row.audit})
    objects = " / ".join(map(str, sizes))
    columns = (
        "replay up to", "3-8", "9-20", "21-30", "detected from", *TASKS,
        f"gradient, {objects}", f"search, {objects}", f"reach, {objects}", "s",
    )  # fmt: skip
    return Table(model, f"Hardening of the {model} network", columns, tuple(_line(row, sizes) for row in chosen))


def _line(row: HardeningRow, sizes: list[int]) -> tuple[str, ...]:
    sigma = row.thresholds[OBJECTS]
    return (
        "all, default settings" if row.variant == PLAIN else row.variant,
        *(f"{part['correct'] / part['total']:.4f}" for part in row.accuracy.values()),
        "never" if sigma is None else f"{sigma:.2f}",
        *(_accuracy(row.hard_suite.get(task, {}).get(OBJECTS)) for task in TASKS.values()),
        _least(row, GRADIENT, "precision", sizes),
        _least(row, SEARCH, "precision", sizes),
        _least(row, GRADIENT, "reach", sizes),
        f"{row.cpu_seconds:.0f}",
    )


def _accuracy(part: Json | None) -> str:
    return NONE if part is None else f"{part['correct'] / part['total']:.2f}"


def _least(row: HardeningRow, optimiser: str, name: str, sizes: list[int]) -> str:
    """Format the least share over what is moved, for each number of objects."""
    cells = []
    for n in sizes:
        shares = [part[name] for part in row.audit if (part["optimiser"], part["n_objects"]) == (optimiser, n)]
        values = [value for share in shares if (value := value_of(share)) is not None]
        cells.append(f"{min(values):.2f}" if values else "none")
    return " / ".join(cells)


def row_file(unit: str) -> str:
    """Name the file of a variant's row after it."""
    return f"{unit}.json"


STUDY: Study[HardeningUnit, HardeningRow] = Study(
    "hardening",
    runs.VERSION,
    HardeningRow,
    runs.units,
    work.work,
    report,
    work.fail,
    work.summarise_row,
    Files("results/hardening", rows=".", path=row_file, form="object"),
    title="Ablation of hardening: one ingredient more a variant",
    upgraded=work.upgrade,
)
