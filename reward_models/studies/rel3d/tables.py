"""The tables of the report on 3D relations, from rows and what is known of the test samples.

Means and deviations are over runs. Intervals are of the mean of these runs, by bootstrap over pairs of test scenes with
all runs on the same draw: they say what other test pairs would have given, the deviation what other seeds give.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from reward_models import models
from reward_models.measuring import relation_accuracy
from reward_models.studies.rel3d import runs, work
from reward_models.studies.rel3d.runs import FULL, KINDS, SHARES, STUDY, VARIANTS, name_of
from reward_models.studies.rel3d.test_set import TestSet
from reward_models.studies.rel3d.work import RelationRow
from reward_models.tables import NONE, Table, number

COMPARED = (  # (one, other): what is one minus other?
    ("boxes2d", "language_only"),
    ("mlp_raw", "boxes2d"),
    ("mlp_aligned_512", "boxes2d"),
    ("mlp_aligned_512", "mlp_raw"),
    ("mlp_raw", "mlp_raw_noskip"),
    ("mlp_raw_sincos", "mlp_raw"),
    ("mlp_raw_6d", "mlp_raw"),
    ("mlp_aligned_512_6d", "mlp_aligned_512"),
    ("relational", "mlp_raw_6d"),
    ("relational", "mlp_aligned_512_6d"),
)
MARGIN_BINS = 5  # of equally many samples


@dataclass(frozen=True, eq=False)
class Measured:
    """The rows of the study and its test samples."""

    rows: tuple[RelationRow, ...]
    tests: TestSet

    @property
    def predicates(self) -> list[str]:
        """Names by class index."""
        return self.rows[0].data["predicates"]

    @cached_property
    def _by_cell(self) -> dict[tuple[str, str], list[RelationRow]]:
        found: dict[tuple[str, str], list[RelationRow]] = {}
        for row in self.rows:
            if row.error is None:
                _, variant, data, _ = row.id.split("/")
                found.setdefault((variant, data), []).append(row)
        return found

    @property
    def variants(self) -> list[str]:
        """Those with a run on all samples, in the order of the study."""
        return [name for name in VARIANTS if (name, FULL) in self._by_cell]

    def runs(self, variant: str, data: str = FULL) -> list[RelationRow]:
        """The rows without an error of a variant on some data, in the order of seeds."""
        return self._by_cell.get((variant, data), [])

    def right(self, variant: str, data: str = FULL) -> NDArray[np.bool_]:
        """Answers (runs, N) to the test samples."""
        return np.stack([work.unpack_answers(row) for row in self.runs(variant, data)])

    def interval(self, variant: str, data: str = FULL) -> tuple[float, float] | None:
        """Of the mean accuracy of its runs."""
        score = self.right(variant, data).mean(axis=0)
        return relation_accuracy.interval(score, self.tests.predicate, self.tests.unit)

    def pair_interval(self, variant: str, data: str = FULL) -> tuple[float, float] | None:
        """Of the mean pair accuracy of its runs."""
        tests = self.tests
        return relation_accuracy.pair_interval(self.right(variant, data), tests.predicate, tests.pair, tests.unit)

    def by_predicate(self, variant: str, data: str = FULL) -> NDArray[np.float64]:
        """Mean accuracy (P,) of its runs; nan for a predicate without test samples."""
        found = [row.accuracy["test"] for row in self.runs(variant, data)]
        correct, total = (np.array([row[key] for row in found], float).sum(axis=0) for key in ("correct", "total"))
        return np.divide(correct, total, out=np.full(len(total), np.nan), where=total > 0)


def values(found: Iterable[RelationRow], key: str = "mean", part: str = "test") -> list[float]:
    """Accuracies of runs, those that are known."""
    return [row.accuracy[part][key] for row in found if row.accuracy[part][key] is not None]


def spread(found: Sequence[float]) -> str:
    """Mean ± deviation, the mean alone for one run."""
    if not found:
        return NONE
    deviation = f" ± {np.std(found, ddof=1):.3f}" if len(found) > 1 else ""
    return f"{np.mean(found):.3f}{deviation}"


def bounds(found: tuple[float, float] | None, sign: str = "") -> str:
    """An interval."""
    return NONE if found is None else f"{found[0]:{sign}.3f} to {found[1]:{sign}.3f}"


def accuracies(results: Measured, data: str = FULL) -> Table:
    """Every model that was trained on all samples, or on some."""
    columns = (
        "model", "weights", "with published classes", "published weights", "runs", "accuracy", "95 % interval", "pairs",
        "95 % interval of pairs", "train accuracy", "best epoch", "s a run",
    )  # fmt: skip
    lines = []
    for name in (name for name in VARIANTS if results.runs(name, data)):
        found, published = results.runs(name, data), VARIANTS[name].weights
        lines.append(
            (
                VARIANTS[name].title,
                f"{found[0].n_weights:,}",
                f"{published_size(name):,}",
                NONE if published is None else f"{published:,}",
                str(len(found)),
                spread(values(found)),
                bounds(results.interval(name, data)),
                spread(values(found, "pair_mean")),
                bounds(results.pair_interval(name, data)),
                spread(values(found, part="train")),
                f"{np.median([row.best_epoch for row in found]):.0f}",
                number(float(np.mean([row.seconds for row in found])), 0),
            )
        )
    note = (
        "Accuracy: unweighted mean over predicates; pairs: both members right. Guessing gives 0.5 and 0.25. Weights: "
        "of the runs; of the same network with the published 30 predicates and 67 categories; of the authors' network."
    )
    if data == FULL:
        return Table("accuracies", "Trained on all samples", columns, tuple(lines), note)
    kind, share = runs.parse_data(data)
    title = f"Trained on {share:.0%} of the groups, {KINDS[kind]}"
    return Table(f"accuracies_{data}", title, columns, tuple(lines), note)


def published_size(variant: str) -> int:
    """Weights of a variant's network for the published numbers of predicates and categories."""
    chosen = VARIANTS[variant]
    pixels = {} if chosen.pixels is None else {"pixels": chosen.pixels}
    with torch.device("meta"):
        return models.create(chosen.model, chosen.settings | pixels).n_weights


def by_predicate(results: Measured) -> Table:
    """Accuracy of each model on each predicate."""
    names = results.variants
    found = {name: results.by_predicate(name) for name in names}
    tested = np.bincount(results.tests.predicate, minlength=len(results.predicates))
    lines = [
        (predicate, str(tested[k]), *(number(float(found[name][k])) for name in names))
        for k, predicate in enumerate(results.predicates)
        if tested[k]
    ]
    columns = ("predicate", "test samples", *(VARIANTS[name].title for name in names))
    return Table("by_predicate", "Accuracy by predicate", columns, tuple(lines), "Means over the runs of a model.")


def differences(results: Measured) -> Table:
    """Models against each other, on the same test pairs."""
    lines = []
    for one, other in COMPARED:
        if one in results.variants and other in results.variants:
            score = results.right(one).mean(axis=0) - results.right(other).mean(axis=0)
            low_high = relation_accuracy.interval(score, results.tests.predicate, results.tests.unit)
            mean = np.mean(values(results.runs(one))) - np.mean(values(results.runs(other)))
            says = "no difference shown"
            if low_high is not None and (low_high[0] > 0 or low_high[1] < 0):
                says = "better" if low_high[0] > 0 else "worse"
            lines.append((VARIANTS[one].title, VARIANTS[other].title, f"{mean:+.3f}", bounds(low_high, "+"), says))
    columns = ("model", "against", "difference", "95 % interval", "verdict")
    note = (
        "Differences of mean accuracies, both models on the same draw of test pairs. Seeds are averaged, not drawn: a "
        "verdict is about the networks of these runs."
    )
    return Table("differences", "Models against each other", columns, tuple(lines), note)


def efficiency(results: Measured) -> Table:
    """Contrastive against non-contrastive training samples, at equal numbers."""
    lines = []
    for name in (name for name, variant in VARIANTS.items() if variant.curves):
        for share in SHARES:
            cells = [name_of(kind, share) for kind in KINDS]
            found = [results.runs(name, cell) for cell in cells]
            if not all(found):
                continue
            score = results.right(name, cells[0]).mean(axis=0) - results.right(name, cells[1]).mean(axis=0)
            low_high = relation_accuracy.interval(score, results.tests.predicate, results.tests.unit)
            sizes = "/".join(dict.fromkeys(f"{_samples(of_kind):,.0f}" for of_kind in found))
            shown = [spread(values(of_kind)) for of_kind in found]
            pairs = [spread(values(of_kind, "pair_mean")) for of_kind in found]
            change = f"{np.mean(values(found[0])) - np.mean(values(found[1])):+.3f}"
            runs = "/".join(dict.fromkeys(str(len(of_kind)) for of_kind in found))
            lines.append(
                (VARIANTS[name].title, f"{share:.0%}", sizes, runs, *shown, change, bounds(low_high, "+"), *pairs)
            )
    columns = (
        "model", "groups", "training samples", "runs", *KINDS.values(), "difference", "95 % interval",
        *(f"pairs, {kind}" for kind in KINDS.values()),
    )  # fmt: skip
    note = (
        "A share of the groups (predicate, subject, object) with samples of both labels, against as many samples of "
        "twice as many groups with one label each. Each kind chooses its epoch on validation samples of its own kind; "
        "the test samples are the same. Each seed draws groups of its own."
    )
    return Table("efficiency", "Contrastive against non-contrastive samples", columns, tuple(lines), note)


def _samples(found: Sequence[RelationRow]) -> float:
    return float(np.mean([row.data["samples"]["train"] for row in found]))


def margin_bins(results: Measured) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """Edges of ``MARGIN_BINS`` bins of |margin| with equally many test samples, and each sample's bin (N,).

    None where labels are human judgements, of which no margin is known.
    """
    margin = np.abs(results.tests.margin.astype(np.float64))
    if not np.isfinite(margin).all() or len(margin) < MARGIN_BINS:
        return None
    edges = np.quantile(margin, np.linspace(0, 1, MARGIN_BINS + 1))
    return edges, np.searchsorted(edges[1:-1], margin, side="right")


def disagreements(results: Measured) -> Table:
    """Table of disagreements of models and rules, by the rule's margin and by the kind of mistake."""
    found = margin_bins(results)
    if found is None:
        return Table("disagreements", "Where models and rules disagree", ("model",), (), "No margins are known.")
    edges, bins = found
    lines = []
    for name in results.variants:
        wrong = ~results.right(name)
        shares = [number(float(wrong[:, bins == k].mean())) if (bins == k).any() else NONE for k in range(MARGIN_BINS)]
        of_label = [number(float(wrong[:, results.tests.label == held].mean())) for held in (True, False)]
        lines.append((VARIANTS[name].title, *shares, *of_label))
    ranges = [f"|m| {low:.2f} to {high:.2f}" for low, high in pairwise(edges)]
    columns = ("model", *ranges, "of those that hold", "of those that fail")
    note = (
        "Shares of test samples on which a model contradicts the rule, by the rule's margin m (fifths of the test "
        "samples, the nearest to the boundary first) and by label. Means over runs."
    )
    return Table("disagreements", "Where models and rules disagree", columns, tuple(lines), note)


def every_run(results: Measured) -> Table:
    """Every run, for whoever computes something else."""
    columns = ("id", "train", "valid", "test", "accuracy", "pairs", "weights", "best epoch", "epochs", "s", "error")
    lines = []
    for row in results.rows:
        known = [str(row.data["samples"].get(part, NONE)) for part in ("train", "valid", "test")]
        test = row.accuracy.get("test", {"mean": None, "pair_mean": None})
        shares = (number(test["mean"], 4), number(test["pair_mean"], 4))
        more = tuple(NONE if value is None else str(value) for value in (row.n_weights, row.best_epoch))
        lines.append((row.id, *known, *shares, *more, str(len(row.log)), number(row.seconds, 1), row.error or ""))
    return Table("runs", "Every run", columns, tuple(lines))


def outstanding(results: Measured, quick: bool) -> Table:
    """List the missing runs of the study, and the reason why the long ones are missing."""
    done = {row.id for row in results.rows}
    lines = []
    for name, variant in VARIANTS.items():
        left = [run for run in runs.units(quick).values() if run.variant == name and run.id not in done]
        if left:
            pictures = "picture" in models.RELATIONS[variant.model].needs
            why = "too long for two processors" if variant.long else "not run"
            why += ", needs pictures" if pictures else ""
            command = f"spatialsim study run rel3d --filter {STUDY}/{name} --data ..."
            lines.append((variant.title, str(len(left)), why, command))
    columns = ("model", "runs left", "why", "command")
    return Table(
        "outstanding", "What was not run", columns, tuple(lines), "" if lines else "All of the study is there."
    )
