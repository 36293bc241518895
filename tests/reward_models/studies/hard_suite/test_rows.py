"""Rows of the hard suite: written and read back, refused where they do not belong; their report; the command."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from reward_models.cli.main import app
from reward_models.measuring.hard_cases import thresholds
from reward_models.studies.engine import report, rows
from reward_models.studies.engine.rows import RowError
from reward_models.studies.engine.study import Results
from reward_models.studies.hard_suite import tables, work
from reward_models.studies.hard_suite.runs import HardUnit
from reward_models.studies.hard_suite.tables import STUDY
from spatialsim_env.arrangements.hard_suite import NAMES

TASKS = [name for name in NAMES if name.startswith(("displaced", "swapped", "radius", "abstract_"))]
FEW = HardUnit("mpgnn", "hub:mpgnn", TASKS, [(3, 4)], 20)


@pytest.fixture(scope="module")
def recorded():
    return work.judge(FEW, STUDY.stamp())


@pytest.fixture
def folder(recorded, tmp_path):
    rows.write(STUDY, tmp_path, FEW, [recorded])
    return tmp_path


def read(folder):
    """All rows of a folder, in the order of names."""
    return [row for path in sorted(folder.glob("*.json")) for row in rows.read_file(STUDY, path)]


def changed(folder, file="mpgnn", **entries):
    """The row of a folder once more in another file, with other entries."""
    held = json.loads((folder / "mpgnn.json").read_text())
    judged = [{**row, "judge": file if row["judge"] == "mpgnn" else row["judge"]} for row in held["rows"]]
    (folder / f"{file}.json").write_text(json.dumps({**held, "id": file, "rows": judged, **entries}))


def test_rows_are_read_as_they_were_written(folder, recorded):
    assert read(folder) == [recorded]
    assert {row.judge for row in recorded.of_model} == {"mpgnn"}
    assert len(recorded.of_model) * 6 == len(recorded.rows) == len(recorded.of_model) + len(recorded.beside)
    assert recorded.model["source"] == "hub:mpgnn"
    assert (recorded.model["kind"], recorded.model["n_weights"]) == ("mpgnn", 4366)
    assert re.fullmatch("[0-9a-f]{64}", recorded.model["sha256"])
    assert recorded.model["training"]["model"] == "mpgnn"
    assert recorded.settings == {"tasks": TASKS, "objects": [[3, 4]], "size": 20}


def test_a_recorded_row_gets_its_id_and_device(folder):
    held = json.loads((folder / "mpgnn.json").read_text())
    first = {"name": held.pop("id"), **{key: value for key, value in held.items() if key not in ("device", "error")}}
    upgraded = work.upgrade(first)
    assert (upgraded["id"], upgraded["device"], upgraded["error"]) == ("mpgnn", "cpu", None)
    assert "name" not in upgraded


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"version": 0}, "mpgnn is of version 0"),
        ({"id": "other"}, "it holds other, where the study has mpgnn"),
        ({"seed": "0"}, "seed is '0'; accepted is a int"),
        ({"rows": [3]}, "a row is 3; accepted are objects"),
        ({"rows": [{}]}, "accepted are objects with certified, correct"),
    ],
)
def test_files_that_are_refused(folder, entries, message):
    changed(folder, **entries)
    with pytest.raises(RowError, match=message):
        rows.of_unit(STUDY, folder, FEW)


def test_impossible_counts_are_refused(folder, recorded):
    row = json.loads((folder / "mpgnn.json").read_text())["rows"][0]
    for change in ({"correct": 21}, {"correct": -1}, {"task": "upside_down"}):
        changed(folder, rows=[{**row, **change}])
        with pytest.raises(RowError, match="accepted are known tasks and 0 <= correct <= total"):
            read(folder)
    rows.write(STUDY, folder, FEW, [recorded])


def test_files_that_do_not_belong_together(folder):
    changed(folder, "other")
    assert [one.id for one in read(folder)] == ["mpgnn", "other"]
    for entries, message in (
        ({"seed": 1}, "seed of other and mpgnn differ"),
        ({"settings": {}}, "settings of other and mpgnn differ"),
        ({"rows": []}, "the judges beside other and mpgnn differ"),
    ):
        changed(folder, "other", **entries)
        with pytest.raises(RowError, match=message):
            tables.join(read(folder))


@pytest.mark.parametrize("name", ["a/b", "truth"])
def test_names_that_are_refused(name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        work.judge(replace(FEW, id=name), STUDY.stamp())


def test_names(untrained):
    assert work.name_of("hub:matching") == "matching"
    folder = untrained("mpgnn")
    assert work.name_of(folder) == work.name_of(folder / "model.json") == "mpgnn"


# --- report ---------------------------------------------------------------------------------------------------------


def test_tables_have_the_ceiling_on_top_and_every_model_once(folder):
    changed(folder, "other")
    found = read(folder)
    kinds, curve = tables.tables(found)
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
    sigmas = thresholds(found[0].results)
    assert curve.lines[0][-2:] == (f"{sigmas['ideal observer', '3-4']:.2f}", "1.00")
    assert curve.lines[1][-2:] == (
        f"{sigmas['truth', '3-4']:.2f}",
        f"{sigmas['truth', '3-4'] / sigmas['ideal observer', '3-4']:.2f}",
    )


def test_shares_of_the_ceiling_stand_in_brackets(recorded):
    kinds, _ = tables.tables([recorded])
    by_judge = {row.judge: row.accuracy.value for row in recorded.results if row.task == "swapped"}
    share = (by_judge["mpgnn"] - 0.5) / (by_judge["ideal observer"] - 0.5)
    assert kinds.lines[-1][1] == f"{by_judge['mpgnn']:.3f} ({share:.2f})"


def test_report_is_made_of_the_rows(folder, recorded):
    text = report.write(STUDY.report(Results({"mpgnn": recorded}, False, (), folder)), folder).read_text()
    for table in tables.tables([recorded]):
        assert table.markdown() in text
        assert (folder / "tables" / f"{table.name}.csv").read_text() == table.csv()
    assert f"SHA-256 {recorded.model['sha256'][:12]}, commit {recorded.stamp.commit}" in text
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
    (found,) = read(out)
    assert (found.id, len(found.rows)) == ("mine", 2 * 6)
    assert "## Kinds of negatives, 3-5 objects" in (out / "report.md").read_text()


def test_the_command_refuses_models_of_one_scene(untrained):
    result = CliRunner().invoke(app, ["hard", str(untrained("mpgnn_single"))])
    assert "knows one reference scene; accepted are models that compare two scenes" in str(result.exception)
