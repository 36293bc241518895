"""The tables say what the rows say."""

from __future__ import annotations

import csv
import io

import pytest

from reward_models.studies.engine.select import select
from reward_models.studies.paper import runs, tables
from reward_models.studies.paper.outstanding import outstanding
from reward_models.studies.paper.protocol import compress, departures, was_run
from reward_models.studies.paper.study import STUDY
from reward_models.studies.paper.summary import Cells
from reward_models.tables import Table
from tests.reward_models.studies.paper.synthetic import cell, row, settings_of

ALL = (tables.table1, tables.table2, tables.table3, tables.rules, tables.ablations, tables.widths)


def lines(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.csv())))


def find(table: Table, **wanted: str) -> dict[str, str]:
    found = [
        line for line in lines(table) if all(line[key.replace("_", " ")] == value for key, value in wanted.items())
    ]
    assert len(found) == 1, found
    return found[0]


def drawn(results: Cells) -> list[Table]:
    found = [make(results) for make in ALL]
    return [table for part in found for table in (part if isinstance(part, tuple) else (part,))]


def test_a_figure_of_table_1_is_over_sets_and_seeds():
    sets = [row for n in range(3, 9) for row in cell(f"identification/mpgnn/n{n}", 0.95, 0.97, seconds=n)]
    wide, full = tables.table1(Cells(sets))
    found = find(full, model="MPGNN", objects="3-8")
    assert found["mean"] == "0.960"
    assert found["deviation"] == "0.010"  # sqrt(12 * 0.01^2 / 11) = 0.01045
    assert (found["95 % low"], found["95 % high"]) == ("0.960", "0.960")  # all sets have the same mean
    assert (found["published mean"], found["published deviation"], found["verdict"]) == ("0.970", "0.026", "within")
    assert (found["runs"], found["weights"], found["published weights"]) == ("12", "2,208", "2,208")
    assert found["s a run"] == "5.5"
    assert found["what was run"] == "n = 3-8, seeds 0-1"
    assert find(wide, model="MPGNN")["3-8"] == "0.960 ± 0.010, within"
    assert find(wide, model="MPGNN")["3-8 published"] == "0.970 ± 0.026"
    assert find(wide, model="MPGNN")["9-20"] == "-"


def test_a_verdict_on_some_of_the_sets_says_so():
    _, full = tables.table1(Cells(cell("identification/gcn/n4", 0.9, 0.9)))
    assert find(full, model="GCN", objects="3-8")["verdict"] == "above (1 of 6 sets)"


def test_a_verdict_without_some_of_the_runs_says_so():
    """A run that failed is in no mean."""
    rows = cell("discrimination/rds/3-8", 0.8, 0.8, 0.8)[:2]
    _, full = tables.table2(Cells(rows))
    assert find(full, model="RDS", objects="3-8")["verdict"] == "within (2 of 3 runs)"


def test_runs_that_depart_from_the_protocol_are_labelled_and_not_judged():
    wide, full = tables.table1(Cells(cell("identification/resnet18_64px/n5", 0.9)))
    found = find(full, model="ResNet18, 64 px", objects="3-8")
    assert found["what was run"] == "n = 5, seed 0, 2,000 training samples, 64 px"
    assert found["verdict"] == "not comparable"
    assert found["deviation"] == found["95 % low"] == "-"
    assert "ResNet18, 64 px (n = 5, seed 0, 2,000 training samples, 64 px)" in wide.note


def test_both_message_passing_networks_stand_beside_the_published_one():
    rows = cell("discrimination/mpgnn/3-8", 0.85, n_weights=4366)
    rows += cell("discrimination/conditioned_mpgnn/3-8", 0.93, n_weights=4686)
    _, full = tables.table2(Cells(rows))
    ours = find(full, model="MPGNN", objects="3-8")
    theirs = find(full, model="MPGNN, conditioned", objects="3-8")
    assert (ours["weights"], ours["published weights"], ours["verdict"]) == ("4,366", "4,686", "below")
    assert (theirs["weights"], theirs["published mean"], theirs["verdict"]) == ("4,686", "0.890", "above")


def test_table_2_is_about_the_range_trained_on():
    rows = cell("discrimination/rds/9-20", lambda test: 0.7 if "9-20" in test else 0.1)
    _, full = tables.table2(Cells(rows))
    assert find(full, model="RDS", objects="9-20")["mean"] == "0.700"


def test_table_3_compares_means():
    tested = {"discrimination/3-8/test": 0.88, "discrimination/9-20/test": 0.8, "discrimination/21-30/test": 0.4}
    wide, full = tables.table3(Cells(cell("discrimination/mpgnn/3-8", tested.__getitem__, tested.__getitem__)))
    said = [find(full, model="MPGNN", trained_on="3-8", tested_on=group) for group in runs.GROUPS]
    assert [line["mean"] for line in said] == ["0.880", "0.800", "0.400"]
    assert [line["published mean"] for line in said] == ["0.890", "0.680", "0.510"]
    assert [line["difference"] for line in said] == ["-0.010", "+0.120", "-0.110"]
    assert [line["verdict"] for line in said] == ["close", "above", "below"]
    assert len(wide.lines) == 3 * len(tables.DISCRIMINATION)


def test_rules_stand_beside_what_is_known_of_them():
    table = tables.rules(Cells(cell("rules/spread/3-8", 0.9238)))
    line = next(line for line in table.lines if line[0].startswith("ratio of the RMS spreads"))
    assert line[1:] == ("-", "0.9300", "0.9238", "0.9240", "-", "0.9180", "-", "0.9170")


def test_an_ablation_is_compared_over_the_seeds_that_both_have():
    rows = cell("discrimination/mpgnn/3-8", 0.9, 0.8, 0.7, 0.1) + cell("ablation/no_rotations/3-8", 0.6, 0.5)
    found = find(tables.ablations(Cells(rows)), variant="no rotations")
    assert found["change on discrimination/3-8/test"] == "-0.300 (2 seeds)"
    assert found[runs.UNROTATED] == "0.550 ± 0.071"
    assert found["what was run"] == "seeds 0-1, all 5 stages at 0 pi"
    assert (
        "width 32" in find(tables.widths(Cells(cell("ablation/width32/21-30", 0.6))), variant="width32")["what was run"]
    )


def test_every_table_can_be_drawn_without_a_row():
    for table in drawn(Cells([])):
        assert all(len(line) == len(table.columns) for line in table.lines)
        ours = [line[table.columns.index("mean")] for line in table.lines if "mean" in table.columns]
        assert set(ours) <= {"-"}


@pytest.mark.parametrize("name", [name for name in runs.CELLS if name != "rules/truth/n5"])
def test_every_cell_of_the_study_is_in_a_table(name):
    """The truth at n = 5 is there for its heat map."""
    empty, one = drawn(Cells([])), drawn(Cells(cell(name, 0.75)))
    assert [table.lines for table in empty] != [table.lines for table in one]


def test_markdown_has_a_line_for_each_line_and_escapes_bars():
    table = Table("t", "T", ("a", "b"), (("1", "x|y"),))
    assert table.markdown() == "| a | b |\n| --- | --- |\n| 1 | x\\|y |"


def test_every_run_is_in_the_list_of_runs():
    failed = row("identification/rds/n3", 1, error="ValueError: no", accuracy={})
    table = tables.runs(Cells([row("identification/rds/n3", 0, 0.9), failed]))
    assert [line["id"].rpartition("/")[2] for line in lines(table)] == ["seed0", "seed1"]
    assert lines(table)[0]["accuracy"] == "0.9000"
    assert lines(table)[1]["error"] == "ValueError: no"


def test_the_protocol_itself_departs_in_nothing():
    for name in ("identification/mlp/n9", "discrimination/mpgnn/3-8", "discrimination/mlp/21-30"):
        assert departures(settings_of(runs.CELLS[name])) == []
    matching = departures(settings_of(runs.CELLS["discrimination/matching/3-8"]))
    assert matching == ["no curriculum", "2 epochs a stage", "learning rate 0.01"]


def test_numbers_are_drawn_together():
    assert compress([3, 4, 5, 9, 11, 12]) == "3-5, 9, 11-12"
    assert was_run([]) == "-"


def test_what_is_left_is_a_command_with_its_cost():
    """Seconds that grow with the square of the number of objects: 360 at n = 4 and 1,440 at n = 8 make 3,240 at 12."""
    cells = [runs.CELLS[f"identification/mpgnn/n{n}"] for n in (4, 8, 12)]
    rows = [
        row(one.id, seed, seconds=s) for one, s in zip(cells[:2], (360.0, 1440.0), strict=True) for seed in one.seeds
    ]
    found = lines(outstanding(Cells(rows), cells))
    assert len(found) == 1
    assert found[0]["command"] == "`spatialsim study run paper --filter identification/mpgnn/n12`"
    assert (found[0]["objects"], found[0]["runs"], found[0]["hours"]) == ("n = 12", "10", "9.00")
    assert found[0]["from"] == "2 sizes of identification/mpgnn"


def test_what_is_left_of_a_model_without_a_row_has_no_cost():
    cells = [cell for name, cell in runs.CELLS.items() if name.startswith("discrimination/rds")]
    found = lines(outstanding(Cells([]), cells))
    assert [(line["command"], line["runs"], line["hours"]) for line in found] == [
        ("`spatialsim study run paper --filter discrimination/rds`", "9", "-")
    ]
    assert outstanding(Cells([]), []).lines == ()


def test_what_one_size_costs_grows_with_the_objects():
    cells = [runs.CELLS[f"discrimination/rds/{group}"] for group in ("3-8", "21-30")]
    rows = [row(cells[0].id, seed, seconds=55.0) for seed in cells[0].seeds]
    assert lines(outstanding(Cells(rows), cells))[0]["hours"] == "0.21"  # 3 runs of 255 s


def test_what_pictures_cost_follows_from_their_pixels():
    """2,000 pictures of 64 x 64 in 20 epochs against 10,000 of 224 x 224: 61.25 times as long."""
    small, full = (runs.CELLS[f"identification/{name}/n5"] for name in ("resnet18_64px", "resnet18"))
    rows = [row(small.id, 0, seconds=360.0)]
    found = lines(outstanding(Cells(rows), [small, full]))
    assert [line["hours"] for line in found] == ["61"]  # ten runs of 6.125 hours
    assert found[0]["from"] == small.id
    assert found[0]["hours on a GPU"] == "0.60"  # 10 x 200,000 pictures, 6 x 1.8e9 operations each, at 1e13 a second


def test_commands_are_accepted_by_the_study():
    for line in lines(outstanding(Cells([]), list(runs.CELLS.values()))):
        pattern = line["command"].strip("`").rpartition(" ")[2]
        assert sum(len(cell.runs) for cell in select(STUDY, [pattern])) == int(line["runs"])
