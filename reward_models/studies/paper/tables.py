"""The tables of a benchmark's report, from its rows.

Tables 1-3 have two forms: wide, as the paper prints them, with the published figure beside ours; and in full, a line a
figure, with its interval, what was run, weights and seconds. A figure without a run is "-".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reward_models.studies.paper.protocol import departures, title, was_run
from reward_models.studies.paper.runs import CELLS, GROUPS
from reward_models.studies.paper.runs import RULES as RULE_NAMES
from reward_models.studies.paper.summary import (
    CLOSE,
    Cells,
    Published,
    Summary,
    closeness,
    published,
    published_for,
    share,
    summarise,
    verdict,
)
from reward_models.studies.paper.work import PaperRow
from reward_models.tables import NONE, Table, number


def _models(task: str, *paper: str) -> tuple[str, ...]:
    """The models of a task: those of the paper's table in its order, then the others of the study."""
    parts = [name.split("/") for name in CELLS]
    return tuple(dict.fromkeys((*paper, *(model for of_task, model, _ in parts if of_task == task))))


IDENTIFICATION = _models("identification", "mpgnn", "gcn", "rds", "deep_set", "resnet18", "mlp")
DISCRIMINATION = _models(
    "discrimination", "mpgnn", "conditioned_mpgnn", "gcn", "rds", "deep_set", "resnet18", "mlp", "graph_matching"
)
RULES = {
    "spread": "ratio of the RMS spreads of the positions, divided by the size ratio",
    "sorted_distances": "sorted distances to the barycentre",
    "matching_rule": "match by shape and colour, fit the similarity, threshold the residual",
    "truth": "distance of the truth",
}
PUBLISHED_AS = {"conditioned_mpgnn": "mpgnn", "resnet18_64px": "resnet18"}  # what the paper's tables call them

_WIDTH = "width"  # beginning of the names of the cells with other embedding widths
_SUMMARY = ("mean", "deviation", "95 % low", "95 % high", "runs")


def weights_of(rows: Sequence[PaperRow]) -> list[int]:
    """The numbers of trained weights of runs that trained a network."""
    return sorted({row.n_weights for row in rows if row.n_weights is not None})


@dataclass(frozen=True)
class CellFigure:
    """One figure of Table 1 or 2: a model on a group."""

    model: str
    group: str
    n_sets: int  # cells that the group has
    runs: tuple[PaperRow, ...]
    ours: Summary | None
    theirs: Published | None

    @property
    def judgement(self) -> str:
        """The verdict, with what qualifies it; "-" where there is nothing to compare."""
        if self.ours is None or self.theirs is None:
            return NONE
        if any(departures(row.settings) for row in self.runs):
            return "not comparable"
        parts = []
        if self.ours.n_cells < self.n_sets:
            parts.append(f"{self.ours.n_cells} of {self.n_sets} sets")
        begun = sum({row.cell: len(row.seeds_together) for row in self.runs}.values())
        if self.ours.n_runs < begun:
            parts.append(f"{self.ours.n_runs} of {begun} runs")
        return verdict(self.ours.mean, self.theirs) + (f" ({', '.join(parts)})" if parts else "")

    @property
    def weights(self) -> str:
        """Trained weights of the runs."""
        return " / ".join(f"{n:,}" for n in weights_of(self.runs)) or NONE

    @property
    def seconds(self) -> str:
        """Mean seconds of training, per run."""
        return number(sum(row.seconds for row in self.runs) / len(self.runs), 1) if self.runs else NONE


def figures(results: Cells, task: str, models: Sequence[str]) -> list[CellFigure]:
    """A figure for each model and group, each model tested on the set of what it was trained on."""
    found = []
    for model in models:
        for group in GROUPS:
            cells = cells_of(task, model, group)
            values = summarise(*(results.accuracies(cell, own_test(cell)) for cell in cells))
            theirs = published_for(task, PUBLISHED_AS.get(model, model), group)
            found.append(CellFigure(model, group, len(cells), tuple(results.runs(cells)), values, theirs))
    return found


def cells_of(task: str, model: str, group: str) -> list[str]:
    """The cells of a group: one for each number of objects in Identification, one in Discrimination."""
    if task == "discrimination":
        return [f"{task}/{model}/{group}"]
    low, high = map(int, group.split("-"))
    return [f"{task}/{model}/n{n}" for n in range(low, high + 1)]


def own_test(cell: str) -> str:
    """The test set of what a cell trains on: "discrimination/rds/3-8" -> "discrimination/3-8/test"."""
    task, _, scenes = cell.split("/")
    return f"{task}/{scenes}/test"


def range_test(scenes: str) -> str:
    """The Discrimination test set of "3-8", ..., or of "n3"."""
    return f"discrimination/{scenes}/test"


def pair(figure: Summary | Published | None) -> str:
    """Mean ± deviation; the mean alone for one run."""
    if figure is None:
        return NONE
    return number(figure.mean) + ("" if figure.deviation is None else f" ± {number(figure.deviation)}")


def _numbers(figure: Summary | None) -> tuple[str, ...]:
    """The columns of ``_SUMMARY``."""
    if figure is None:
        return (NONE,) * 4 + ("0",)
    low, high = figure.interval or (None, None)
    return (number(figure.mean), number(figure.deviation), number(low), number(high), str(figure.n_runs))


def table1(results: Cells) -> tuple[Table, Table]:
    """Identification: wide and in full."""
    note = (
        "Mean and deviation over the sets of a group (a set for each number of objects) and over seeds, beside the "
        "published ones; the interval is a bootstrap over the sets, each with all of its seeds."
    )
    found = figures(results, "identification", IDENTIFICATION)
    return _wide("table1", "Table 1: Identification", note, found), _full("table1", "Table 1 in full", found)


def table2(results: Cells) -> tuple[Table, Table]:
    """Discrimination, each model tested on the range that it was trained on: wide and in full."""
    note = (
        "Trained and tested on one range: mean and deviation over seeds, beside the published ones; the interval is a "
        "bootstrap over runs, and of three runs it is too narrow. The paper counts 4,686 weights of its MPGNN, which "
        "are those of the conditioned one; the authors' class has 4,366. Both stand beside the same published figure."
    )
    found = figures(results, "discrimination", DISCRIMINATION)
    return _wide("table2", "Table 2: Discrimination", note, found), _full("table2", "Table 2 in full", found)


def _wide(name: str, heading: str, note: str, found: Sequence[CellFigure]) -> Table:
    columns = ["model", "weights", "runs", *(column for group in GROUPS for column in (group, f"{group} published"))]
    lines = []
    for start in range(0, len(found), len(GROUPS)):
        row = found[start : start + len(GROUPS)]
        weights = [figure.weights for figure in row if figure.weights != NONE]
        line = [title(row[0].model), " / ".join(dict.fromkeys(weights)) or NONE]
        line.append(" / ".join(dict.fromkeys(str(figure.ours.n_runs) if figure.ours else "0" for figure in row)))
        for figure in row:
            says = f", {figure.judgement}" if figure.judgement != NONE else ""
            line += [pair(figure.ours) + says, pair(figure.theirs)]
        lines.append(tuple(line))
    rule = (
        'Verdict: "within" one published deviation of the published mean, else "above" or "below"; "not comparable" '
        "where the runs depart from the paper's protocol."
    )
    return Table(name, heading, tuple(columns), tuple(lines), f"{note} {rule}{_departing(found)}")


def _departing(found: Sequence[CellFigure]) -> str:
    """A sentence about the models whose runs depart from the protocol; empty without one."""
    by_model: dict[str, list[PaperRow]] = {}
    for figure in found:
        by_model.setdefault(figure.model, []).extend(row for row in figure.runs if departures(row.settings))
    named = [f"{title(model)} ({was_run(runs)})" for model, runs in by_model.items() if runs]
    return f" Other than the protocol: {'; '.join(named)}." if named else ""


def _full(name: str, heading: str, found: Sequence[CellFigure]) -> Table:
    published_columns = ("published mean", "published deviation", "verdict", "weights", "published weights")
    columns = ("model", "objects", *_SUMMARY, *published_columns, "s a run", "what was run")
    lines = []
    for figure in found:
        theirs = figure.theirs
        pair_of, counted = (NONE, NONE), NONE
        if theirs is not None:
            pair_of, counted = (number(theirs.mean), number(theirs.deviation)), f"{theirs.weights:,}"
        described = (figure.judgement, figure.weights, counted, figure.seconds, was_run(figure.runs))
        lines.append((title(figure.model), figure.group, *_numbers(figure.ours), *pair_of, *described))
    return Table(f"{name}_full", heading, columns, tuple(lines))


def table3(results: Cells) -> tuple[Table, Table]:
    """Discrimination, trained on one range and tested on all: wide and in full."""
    wide, full = [], []
    for model in DISCRIMINATION:
        for trained in GROUPS:
            line = [title(model), trained]
            for tested in GROUPS:
                ours = summarise(results.accuracies(f"discrimination/{model}/{trained}", range_test(tested)))
                theirs = published()["transfer"].get(PUBLISHED_AS.get(model, model), {}).get(trained, {}).get(tested)
                difference, says = NONE, NONE
                if ours is not None and theirs is not None:
                    difference, says = f"{ours.mean - theirs:+.3f}", closeness(ours.mean, theirs)
                known = NONE if theirs is None else number(theirs)
                line += [pair(ours), known, NONE if says == NONE else f"{difference}, {says}"]
                full.append((title(model), trained, tested, *_numbers(ours), known, difference, says))
            wide.append(tuple(line))
    note = (
        "Rows: the range trained on; columns: the range tested on. Means are compared, because not all published "
        "deviations off the diagonal can be over runs: "
        f'"close" where they differ by at most {CLOSE:g}, else "above" or "below".'
    )
    columns = ["model", "trained on", *(name for group in GROUPS for name in (group, "published", "difference"))]
    described = ("model", "trained on", "tested on", *_SUMMARY, "published mean", "difference", "verdict")
    return (
        Table("table3", "Table 3: transfer between ranges", tuple(columns), tuple(wide), note),
        Table("table3_full", "Table 3 in full", described, tuple(full)),
    )


def rules(results: Cells) -> Table:
    """Rules without learning, beside what is known of them."""
    known = published()["rules"]
    titles = {"n3": "n = 3"}
    columns = [name for column in known["columns"] for name in (titles.get(column, column), "expected")]
    lines = []
    for rule in RULE_NAMES:
        line = [RULES.get(rule, rule)]
        for k, column in enumerate(known["columns"]):
            ours = summarise(results.accuracies(f"rules/{rule}/{column}", range_test(column)))
            line += [number(ours.mean, 4) if ours else NONE, number(known[rule][k], 4) if rule in known else NONE]
        lines.append(tuple(line))
    note = (
        "One number of a pair of scenes each, and a threshold fitted on training samples: what a reader of Table 2 "
        "should compare networks with."
    )
    return Table("rules", "Rules without learning, Discrimination", ("rule", *columns), tuple(lines), note)


def ablations(results: Cells) -> Table:
    """The MPGNN at 3-8 with one thing changed, on every set that such runs were tested on."""
    cells = {name.replace("_", " "): cell for name, cell in _changed().items() if not name.startswith(_WIDTH)}
    note = "The MPGNN, trained on 3-8 objects; below the first row with one thing changed each. "
    return _variants("ablations", "Ablations", note, {"MPGNN": "discrimination/mpgnn/3-8"} | cells, results)


def widths(results: Cells) -> Table:
    """The MPGNN at 21-30 with wider embeddings, on every set that such runs were tested on."""
    cells = {name: cell for name, cell in _changed().items() if name.startswith(_WIDTH)}
    note = "The MPGNN, trained on 21-30 objects, by the width of its node, edge and global features. "
    return _variants(
        "widths", "Embedding widths", note, {"width10, the MPGNN": "discrimination/mpgnn/21-30"} | cells, results
    )


def _changed() -> dict[str, str]:
    """The cells with one thing changed, by what is changed."""
    return {name.split("/")[1]: name for name in CELLS if name.startswith("ablation/")}


def _variants(name: str, heading: str, note: str, cells: dict[str, str], results: Cells) -> Table:
    base = next(iter(cells.values()))
    tests = sorted({test for row in results.runs(list(cells.values())) for test in row.accuracy}, key=_by_size)
    own = own_test(base)
    lines = []
    for label, cell in cells.items():
        runs = results.runs([cell])
        shares = [pair(summarise(results.accuracies(cell, test))) for test in tests]
        change = NONE if cell == base else _change(results, cell, base, own)
        weights = " / ".join(f"{n:,}" for n in weights_of(runs)) or NONE
        lines.append((label, weights, *shares, change, was_run(runs)))
    columns = ("variant", "weights", *tests, f"change on {own}", "what was run")
    note += "The change is the difference of means to the first row over the seeds that both have."
    return Table(name, heading, columns, tuple(lines), note)


def _change(results: Cells, cell: str, base: str, test: str) -> str:
    by_seed = [{row.seed: row for row in results.runs([name]) if test in row.accuracy} for name in (cell, base)]
    shared = sorted(by_seed[0].keys() & by_seed[1].keys())
    if not shared:
        return NONE
    ours, theirs = ([share(of_cell[seed].accuracy[test]) for seed in shared] for of_cell in by_seed)
    return f"{sum(ours) / len(shared) - sum(theirs) / len(shared):+.3f} ({len(shared)} seeds)"


def _by_size(test: str) -> tuple[int, str]:
    """Sorts test sets by the first number in their name, ranges before other sets of it."""
    digits = "".join(character if character.isdigit() else " " for character in test).split()
    return int(digits[0]) if digits else 0, test


def runs(results: Cells) -> Table:
    """Every run on every test set, for whoever computes something else."""
    columns = ("id", "test", "correct", "total", "accuracy", "weights", "s of training", "error")
    lines = []
    for row in results.rows:
        known = (NONE if row.n_weights is None else str(row.n_weights), number(row.seconds, 3))
        for test, measured in row.accuracy.items():
            lines.append(
                (
                    row.id,
                    test,
                    str(measured["correct"]),
                    str(measured["total"]),
                    number(share(measured), 4),
                    *known,
                    "",
                )
            )
        if row.error is not None:
            lines.append((row.id, *(NONE,) * 4, *known, row.error))
    return Table("runs", "Every run", columns, tuple(lines))
