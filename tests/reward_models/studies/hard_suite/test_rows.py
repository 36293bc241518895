"""Rows of the hard suite: written and read back, refused where they do not belong; their report; the command."""

from __future__ import annotations

import csv
import json
import re

import pytest
from typer.testing import CliRunner

from reward_models.cli.main import app
from reward_models.measuring.hard_cases import thresholds
from reward_models.studies.engine.rows import RowError
from reward_models.studies.hard_suite import report as hard_report
from reward_models.studies.hard_suite import rows as hard_rows
from spatialsim_env.arrangements.hard_suite import NAMES

TASKS = [name for name in NAMES if name.startswith(("displaced", "swapped", "radius", "abstract_"))]
FEW = {"tasks": TASKS, "objects": [(3, 4)], "size": 20}


@pytest.fixture(scope="module")
def recorded():
    return hard_rows.judge("hub:mpgnn", **FEW)


@pytest.fixture
def folder(recorded, tmp_path):
    hard_rows.write(tmp_path, recorded)
    return tmp_path


def changed(folder, file="mpgnn", **entries):
    """The rows of a folder once more in another file, with other entries."""
    held = json.loads((folder / "mpgnn.json").read_text())
    rows = [{**row, "judge": file if row["judge"] == "mpgnn" else row["judge"]} for row in held["rows"]]
    (folder / f"{file}.json").write_text(json.dumps({**held, "name": file, "rows": rows, **entries}))


def test_rows_are_read_as_they_were_written(folder, recorded):
    assert hard_rows.read(folder) == [recorded]
    assert {row.judge for row in recorded.of_model} == {"mpgnn"}
    assert len(recorded.of_model) * 6 == len(recorded.rows) == len(recorded.of_model) + len(recorded.beside)
    about = recorded.about
    assert about["model"]["source"] == "hub:mpgnn"
    assert (about["model"]["kind"], about["model"]["n_weights"]) == ("mpgnn", 4366)
    assert re.fullmatch("[0-9a-f]{64}", about["model"]["sha256"])
    assert about["model"]["training"]["model"] == "mpgnn"
    assert about["settings"] == {"tasks": TASKS, "objects": [[3, 4]], "size": 20}
    assert {"package", "commit", "versions", "machine", "seed", "version"} < about.keys()


def test_no_folder_holds_no_rows(tmp_path):
    assert hard_rows.read(tmp_path / "none") == []
    with pytest.raises(FileNotFoundError, match="holds no rows; accepted is a folder that spatialsim hard wrote"):
        hard_report.write(tmp_path)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"version": 0}, "version 0; accepted is 1: run spatialsim hard again"),
        ({"name": "other"}, r"holds the rows of other; accepted is other\.json"),
        ({"seed": "0"}, "seed is '0'; accepted is a int"),
        ({"rows": [3]}, "a row is 3; accepted are JSON objects"),
        ({"rows": [{}]}, "lacks task, objects"),
    ],
)
def test_files_that_are_refused(folder, entries, message):
    changed(folder, **entries)
    with pytest.raises(RowError, match=message):
        hard_rows.read(folder)


def test_impossible_counts_are_refused(folder, recorded):
    row = json.loads((folder / "mpgnn.json").read_text())["rows"][0]
    for change in ({"correct": 21}, {"correct": -1}, {"task": "upside_down"}):
        changed(folder, rows=[{**row, **change}])
        with pytest.raises(RowError, match="accepted are known tasks and 0 <= correct <= total"):
            hard_rows.read(folder)
    hard_rows.write(folder, recorded)


def test_files_that_do_not_belong_together(folder):
    changed(folder, "other")
    assert [one.name for one in hard_rows.read(folder)] == ["mpgnn", "other"]
    for entries, message in (
        ({"seed": 1}, "seed of other and mpgnn differ"),
        ({"settings": {}}, "settings of other and mpgnn differ"),
        ({"rows": []}, "the judges beside other and mpgnn differ"),
    ):
        changed(folder, "other", **entries)
        with pytest.raises(RowError, match=message):
            hard_rows.read(folder)


@pytest.mark.parametrize("name", ["a/b", "truth"])
def test_names_that_are_refused(name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        hard_rows.judge("hub:mpgnn", name, **FEW)


def test_names(untrained):
    assert hard_rows.name_of("hub:matching") == "matching"
    folder = untrained("mpgnn")
    assert hard_rows.name_of(folder) == hard_rows.name_of(folder / "model.json") == "mpgnn"


# --- report ---------------------------------------------------------------------------------------------------------


def test_tables_have_the_ceiling_on_top_and_every_model_once(folder):
    changed(folder, "other")
    found = hard_rows.read(folder)
    kinds, curve = hard_report.tables(found)
    beside = ["ideal observer", "truth", "spread", "sorted_distances", "matching_rule"]
    for table in (kinds, curve):
        assert [line[0] for line in table.lines] == [*beside, "mpgnn", "other"]
        assert len({len(line) for line in (*table.lines, table.columns)}) == 1
        assert table.lines[-1][1:] == table.lines[-2][1:]
    assert kinds.columns == ("", "swapped", "radius_matched (n4)", "abstract_distractors")
    assert curve.columns[1:3] == ("2sigma", "3sigma")
    assert curve.columns[-2:] == ("threshold", "of the ideal observer's")
    assert kinds.lines[0][2].endswith(" *")  # approximate
    assert kinds.lines[0][3] == kinds.lines[1][3] == "-"
    sigmas = thresholds(found[0].rows)
    assert curve.lines[0][-2:] == (f"{sigmas['ideal observer', '3-4']:.2f}", "1.00")
    assert curve.lines[1][-2:] == (
        f"{sigmas['truth', '3-4']:.2f}",
        f"{sigmas['truth', '3-4'] / sigmas['ideal observer', '3-4']:.2f}",
    )


def test_shares_of_the_ceiling_stand_in_brackets(recorded):
    kinds, _ = hard_report.tables([recorded])
    by_judge = {row.judge: row.accuracy.value for row in recorded.rows if row.task == "swapped"}
    share = (by_judge["mpgnn"] - 0.5) / (by_judge["ideal observer"] - 0.5)
    assert kinds.lines[-1][1] == f"{by_judge['mpgnn']:.3f} ({share:.2f})"


def test_report_is_made_of_the_rows(folder, recorded):
    text = hard_report.write(folder).read_text()
    for table in hard_report.tables([recorded]):
        assert table.markdown() in text
        assert (folder / "tables" / f"{table.name}.csv").read_text() == table.csv()
    assert f"SHA-256 {recorded.about['model']['sha256'][:12]}, commit {recorded.about['commit']}" in text
    lines = list(csv.DictReader((folder / "tables" / "rows.csv").read_text().splitlines()))
    assert len(lines) == len(recorded.rows)
    assert {line["judge"] for line in lines if line["exact"] != "-"} == {"ideal observer"}


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command(untrained, tmp_path):
    out = tmp_path / "new"
    options = ["--task", "swapped", "--task", "radius_matched", "--n-objects", "3-5", "--size", 20, "--out", out]
    result = CliRunner().invoke(app, ["hard", str(untrained("mpgnn")), "--name", "mine", *map(str, options)])
    assert result.exit_code == 0, result.output
    assert "mpgnn, 4,366 weights; 20 samples a line" in result.output
    assert "| task | objects | negatives | ideal observer | mine | of the ceiling | truth |" in result.output
    assert "| radius_matched | 4-5 | certified | " in result.output
    (found,) = hard_rows.read(out)
    assert (found.name, len(found.rows)) == ("mine", 2 * 6)
    assert "## Kinds of negatives, 3-5 objects" in (out / "report.md").read_text()


def test_the_command_refuses_models_of_one_scene(untrained):
    result = CliRunner().invoke(app, ["hard", str(untrained("mpgnn_single"))])
    assert "knows one reference scene; accepted are models that compare two scenes" in str(result.exception)
