"""Rows on disk: whole or not there, and read only if they are what the study says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from reward_models.studies.engine import rows
from reward_models.studies.engine.rows import RowError
from reward_models.studies.engine.study import Files
from tests.reward_models.studies.engine import toy
from tests.reward_models.studies.engine.toy import STUDY, Row

FAIR, BENT, COMPARED = toy.units(False).values()


def made(unit, **changes) -> list[Row]:
    """Rows of a unit as its work makes them."""
    return [replace(Row(run, STUDY.stamp(), unit.settings(run), 0.5, [[1, None, 0.5]]), **changes) for run in unit.runs]


def test_round_trip(tmp_path):
    assert rows.of_unit(STUDY, tmp_path, FAIR) is None
    path = rows.write(STUDY, tmp_path, FAIR, made(FAIR))
    rows.write(STUDY, tmp_path, COMPARED, made(COMPARED))
    assert path == tmp_path / "rows/coins/fair.jsonl"
    assert len(path.read_text().splitlines()) == 2
    assert rows.of_unit(STUDY, tmp_path, FAIR) == made(FAIR)
    known = rows.read(STUDY, tmp_path)
    assert list(known.rows.values()) == made(FAIR) + made(COMPARED)
    assert (known.missing, known.quick, known.folder) == (BENT.runs, False, tmp_path)
    assert list((tmp_path / "rows").rglob(".*")) == []


def test_a_row_is_its_fields_and_those_of_its_stamp_in_place():
    [row] = made(COMPARED)
    entries = rows.to_json(row)
    stamp = ["version", "package", "commit", "versions", "machine", "device"]
    assert list(entries) == ["id", *stamp, "settings", "share", "log", "error"]
    assert rows.from_json(Row, json.loads(json.dumps(entries)), None) == row


def test_an_object_a_file(tmp_path):
    study = replace(STUDY, files=Files("", rows=".", path="{}.json".format, form="object"))
    path = rows.write(study, tmp_path, COMPARED, made(COMPARED))
    assert path == tmp_path / "compared/all.json"
    assert path.read_text() == json.dumps(rows.to_json(made(COMPARED)[0]), indent=1) + "\n"
    assert list(rows.read(study, tmp_path).rows.values()) == made(COMPARED)


def test_recorded_rows_may_lack_what_rows_have_today(tmp_path):
    path = rows.write(STUDY, tmp_path, COMPARED, made(COMPARED))
    old = json.loads(path.read_text())
    del old["device"]
    path.write_text(json.dumps(old | {"name": "all"}) + "\n")

    def upgraded(entries):
        return {key: value for key, value in entries.items() if key != "name"} | {"device": "cpu"}

    assert rows.of_unit(replace(STUDY, upgraded=upgraded), tmp_path, COMPARED) == made(COMPARED)
    with pytest.raises(RowError, match=r"is damaged: .*lacks device"):
        rows.of_unit(STUDY, tmp_path, COMPARED)


def test_rows_come_in_the_order_of_the_study(tmp_path):
    for unit in (COMPARED, BENT, FAIR):
        rows.write(STUDY, tmp_path, unit, made(unit))
    assert list(rows.read(STUDY, tmp_path).rows) == [*FAIR.runs, *BENT.runs, *COMPARED.runs]


def test_a_row_that_cannot_be_written_leaves_what_was_there(tmp_path):
    path = rows.write(STUDY, tmp_path, FAIR, made(FAIR))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        rows.write(STUDY, tmp_path, FAIR, made(FAIR, log=[np.nan]))
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 4], "line 1 is not JSON"),
        (lambda text: "", "it is empty"),
        (lambda text: text.replace('"share": 0.5', '"share": "half"'), "share is 'half'; accepted is a int or float"),
        (lambda text: text.replace('"error"', '"mistake"'), "lacks error"),
        (lambda text: text.replace('"error"', '"mistake": 1, "error"'), "holds mistake, which no row has"),
        (lambda text: "[1]\n", "line 1 holds a list"),
        (lambda text: text.splitlines()[0] + "\n", "it holds coins/fair/seed0, where the study has"),
        (lambda text: text.replace("coins/fair", "coins/bent"), "it holds coins/bent/seed0"),
        (lambda text: text.replace('"share": 0.5', '"share": 1.5'), "share is 1.5; accepted is -1 to 1"),
    ],
)
def test_damaged_files_are_named(damage, message, tmp_path):
    path = rows.write(STUDY, tmp_path, FAIR, made(FAIR))
    path.write_text(damage(path.read_text()))
    for act in (lambda: rows.read(STUDY, tmp_path), lambda: rows.of_unit(STUDY, tmp_path, FAIR)):
        with pytest.raises(RowError, match=message):
            act()
    with pytest.raises(RowError, match=r"fair\.jsonl"):
        rows.of_unit(STUDY, tmp_path, FAIR)


def test_bytes_that_are_no_text(tmp_path):
    path = rows.write(STUDY, tmp_path, FAIR, made(FAIR))
    path.write_bytes(b"\xff\xfe" + path.read_bytes())
    with pytest.raises(RowError, match="is damaged"):
        rows.of_unit(STUDY, tmp_path, FAIR)


def test_rows_of_another_version_are_named(tmp_path):
    rows.write(STUDY, tmp_path, FAIR, made(FAIR))
    rows.write(STUDY, tmp_path, COMPARED, made(COMPARED, stamp=replace(STUDY.stamp(), version=2, commit="abc")))
    with pytest.raises(RowError, match="compared/all is of version 2, commit abc") as error:
        rows.read(STUDY, tmp_path)
    assert "coins" not in str(error.value)
    with pytest.raises(RowError, match="is of version 2"):
        rows.of_unit(STUDY, tmp_path, COMPARED)


def test_the_small_study_is_never_mixed_with_the_whole_one(tmp_path):
    small = toy.units(True)[FAIR.id]
    rows.write(STUDY, tmp_path, FAIR, made(small))
    assert rows.read(STUDY, tmp_path, quick=True).quick
    with pytest.raises(RowError, match="coins/fair/seed0: tosses is 10 there and 1000 in the study"):
        rows.read(STUDY, tmp_path)
    with pytest.raises(RowError, match="holds other runs than the study at version 1"):
        rows.of_unit(STUDY, tmp_path, FAIR)
    rows.write(STUDY, tmp_path, BENT, made(BENT))
    with pytest.raises(RowError, match="rows of other runs than the study"):
        rows.read(STUDY, tmp_path, quick=True)


def test_other_settings_are_named(tmp_path):
    rows.write(STUDY, tmp_path, COMPARED, made(COMPARED, settings={"coins": [], "bank": 1}))
    with pytest.raises(RowError, match="compared/all: bank is 1 there and None in the study; compared/all: coins is "):
        rows.read(STUDY, tmp_path)


def test_a_unit_that_is_not_in_the_study(tmp_path):
    path = rows.write(STUDY, tmp_path, FAIR, made(FAIR))
    path.with_name("new.jsonl").write_text(path.read_text().replace("coins/fair", "coins/new"))
    with pytest.raises(RowError, match="coins/new/seed0 is not in the study"):
        rows.read(STUDY, tmp_path)


def test_failed_runs_are_rows_apart(tmp_path):
    failed = [toy.failed(FAIR, run, STUDY.stamp(), "ValueError: no") for run in FAIR.runs]
    rows.write(STUDY, tmp_path, FAIR, failed)
    rows.write(STUDY, tmp_path, COMPARED, made(COMPARED))
    known = rows.read(STUDY, tmp_path)
    assert (list(known.failed.values()), list(known.done)) == (failed, ["compared/all"])


def test_no_rows(tmp_path):
    with pytest.raises(FileNotFoundError, match="a folder that spatialsim study run wrote"):
        rows.read(STUDY, tmp_path)


def test_only_the_first_problems_are_named():
    assert rows.name_some([str(k) for k in range(7)]) == "0; 1; 2; 3; 4; and 2 more"
