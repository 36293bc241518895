"""The report on 3D relations, from rows made by hand and from rows of the small study."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from reward_models.studies.engine import report as shell
from reward_models.studies.engine import rows
from reward_models.studies.rel3d import figures, report, runs, tables, test_set
from reward_models.studies.rel3d.report import REL3D
from reward_models.studies.rel3d.runs import RelationRun
from reward_models.studies.rel3d.tables import Measured
from reward_models.studies.rel3d.work import RelationRow, pack_answers
from tests.reward_models.relation_splits import PREDICATES, samples

SHA = "0123456789abcdef" * 4
TEST = samples(30, 2, n_views=2)  # 10 pairs of scenes a predicate, 2 views each: 120 samples


def row(run: RelationRun, answered: np.ndarray, **changes) -> RelationRow:
    """A row whose answers to the test samples are these."""
    from reward_models.measuring import relation_accuracy

    measured = relation_accuracy.measure(np.where(answered == TEST.label, 1.0, -1.0), TEST, len(PREDICATES))
    data = {
        "name": "scenes", "sha256": SHA, "rules": True, "predicates": list(PREDICATES), "fingerprints": {},
        "samples": {"train": 1000 if run.data == "full" else 100, "valid": 20, "test": len(TEST)},
    }  # fmt: skip
    known = {
        "n_weights": 123, "seconds": 1.5, "best_epoch": 2, "log": [[1, 0.5, 0.6, 0.001, 1], [2, 0.4, 0.7, 0.001, 0.5]],
        "accuracy": dict.fromkeys(("train", "valid", "test"), measured), "right": pack_answers(answered),
    }  # fmt: skip
    entries = json.loads(json.dumps({"settings": run.settings(run.id), "data": data, **known, **changes}))
    return RelationRow(run.id, REL3D.stamp(), **entries)


def answers(share: float) -> np.ndarray:
    """Right on the first ``share`` of the pairs of scenes of each predicate, with all their views."""
    place = np.arange(len(TEST)) // 4 // len(PREDICATES)
    return place < round(share * 10)


@pytest.fixture
def made(tmp_path):
    """Rows of two models, three seeds each, and of curves, in a folder of results."""
    units = runs.units()
    shares = {"language_only": (0.5, 0.5, 0.5), "boxes2d": (0.5, 0.6, 0.7), "relational": (0.9, 0.9, 1.0)}
    for name, of_seeds in shares.items():
        for seed, share in enumerate(of_seeds):
            run = units[f"rel3d/{name}/full/seed{seed}"]
            rows.write(REL3D, tmp_path, run, [row(run, answers(share))])
    for kind, share in (("c", 0.8), ("nc", 0.5)):
        for data in (f"{kind}_0.10", f"{kind}_0.25"):
            run = units[f"rel3d/boxes2d/{data}/seed0"]
            rows.write(REL3D, tmp_path, run, [row(run, answers(share))])
    failed = units["rel3d/mlp_raw/full/seed0"]
    nothing = {"accuracy": {}, "right": None, "log": [], "n_weights": None, "best_epoch": None}
    rows.write(REL3D, tmp_path, failed, [row(failed, answers(0), error="RuntimeError: no memory", **nothing)])
    test_set.keep(tmp_path, SHA, TEST)
    return tmp_path


def line_of(table, title):
    [line] = [line for line in table.lines if line[0] == title]
    return dict(zip(table.columns, line, strict=True))


def test_accuracies_are_means_over_seeds(made):
    found = line_of(tables.accuracies(report.read(made)), "2D boxes")
    assert (found["runs"], found["accuracy"], found["pairs"]) == ("3", "0.600 ± 0.100", "0.600 ± 0.100")
    assert (found["weights"], found["with published classes"], found["published weights"]) == (
        "123",
        "45,313",
        "45,313",
    )
    assert (found["best epoch"], found["s a run"]) == ("2", "2")
    words = line_of(tables.accuracies(report.read(made)), "language only")
    assert words["accuracy"] == "0.500 ± 0.000"
    low, high = map(float, words["95 % interval"].split(" to "))
    half = 1.96 * np.sqrt(0.25 / 30)  # 30 pairs of scenes, whole right or wrong, predicates of equal size
    assert (low, high) == (pytest.approx(0.5 - half, abs=0.03), pytest.approx(0.5 + half, abs=0.03))


def test_differences_are_on_the_same_pairs(made):
    table = tables.differences(report.read(made))
    [line] = table.lines
    found = dict(zip(table.columns, line, strict=True))
    assert (found["model"], found["against"], found["difference"]) == ("2D boxes", "language only", "+0.100")
    low, high = map(float, found["95 % interval"].split(" to "))
    assert 0 < low < 0.1 < high
    assert found["verdict"] == "better"


def test_the_efficiency_table_compares_equal_numbers(made):
    table = tables.efficiency(report.read(made))
    assert [line[:4] for line in table.lines] == [("2D boxes", "10%", "100", "1"), ("2D boxes", "25%", "100", "1")]
    found = dict(zip(table.columns, table.lines[0], strict=True))
    quarter = line_of(tables.accuracies(report.read(made), "c_0.25"), "2D boxes")
    assert (quarter["runs"], quarter["accuracy"]) == ("1", "0.800")
    assert (found["contrastive"], found["non-contrastive"], found["difference"]) == ("0.800", "0.500", "+0.300")


def test_each_predicate_has_a_line(made):
    table = tables.by_predicate(report.read(made))
    assert [line[:3] for line in table.lines] == [(name, "40", "0.500") for name in PREDICATES]
    assert table.columns[2:] == ("language only", "2D boxes", "relational")


def test_disagreements_by_margin_and_label(made):
    """All margins are 0.5 here, and mistakes are alike on both labels."""
    table = tables.disagreements(report.read(made))
    found = line_of(table, "relational")
    assert found["of those that hold"] == found["of those that fail"] == "0.067"
    assert len(table.columns) == 1 + tables.MARGIN_BINS + 2
    human = test_set.TestSet(**(vars(report.read(made).tests) | {"margin": np.full(len(TEST), np.nan)}))
    assert tables.disagreements(Measured(report.read(made).rows, human)).note == "No margins are known."


def test_nothing_is_passed_over(made):
    known = report.read(made)
    text = shell.write_study(REL3D, made, made / "report").read_text()
    assert "13 runs done, 1 failed" in text
    assert "- `rel3d/mlp_raw/full/seed0`: `RuntimeError: no memory`" in text
    assert "Labels are rules of this project, not human judgements" in text
    left = line_of(tables.outstanding(known, quick=False), "relational")
    assert left["runs left"] == str(2 + 2 * 4 * 5)
    with (made / "report/tables/runs.csv").open() as file:
        listed = list(csv.DictReader(file))
    assert [line["id"] for line in listed] == [row.id for row in known.rows]
    assert (made / "report/index.html").read_text().count("data:image/png;base64,") == 3


def test_a_report_is_the_same_again(made):
    files = {}
    for name in ("one", "other"):
        shell.write_study(REL3D, made, made / name)
        files[name] = {path.name: path.read_bytes() for path in (made / name).rglob("*.*")}
    assert files["one"] == files["other"]


def test_figures_of_what_is_there(made):
    known = report.read(made)
    assert figures.efficiency(known) is not None
    assert len(figures.positions(known).axes) == len(PREDICATES)
    assert figures.disagreement(known) is not None
    assert figures.boundaries({}, height=False) is None


def test_without_rows_there_is_no_report(tmp_path):
    with pytest.raises(FileNotFoundError, match="accepted is a folder that spatialsim study run wrote"):
        shell.write_study(REL3D, tmp_path, tmp_path / "report")
    (tmp_path / "rows").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no rows"):
        shell.write_study(REL3D, tmp_path, tmp_path / "report")


def test_rows_of_several_files_are_not_mixed(made):
    run = runs.units()["rel3d/relational/full/seed4"]
    other = row(run, answers(1))
    other.data["sha256"] = "f" * 64
    rows.write(REL3D, made, run, [other])
    with pytest.raises(rows.RowError, match="are of different split files"):
        report.read(made)


def test_rows_that_are_not_of_the_study_are_refused(made):
    run = RelationRun.of("relational", "full", 77)
    rows.write(REL3D, made, run, [row(run, answers(1))])
    with pytest.raises(rows.RowError, match="is not in the study"):
        report.read(made)
    with pytest.raises(rows.RowError, match="epochs is 800 there and 2 in the study"):
        rows.read(REL3D, made, quick=True)
