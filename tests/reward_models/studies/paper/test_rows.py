"""Rows on disk: whole or not there, and read only if they are what the study says."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

from reward_models.studies.paper import experiments, rows
from reward_models.studies.paper.rows import RowError

CELL = experiments.CELLS["discrimination/rds/3-8"]
OTHER = experiments.CELLS["rules/truth/n3"]


def made(cell, **changes):
    """Rows of a cell as a run makes them."""
    return [
        {
            "id": cell.id(seed),
            "cell": cell.name,
            "seed": seed,
            **rows.made_by(),
            "device": "cpu",
            "settings": cell.settings(seed),
            "seeds_together": list(cell.seeds),
            "n_weights": 10,
            "seconds": 1.5,
            "accuracy": {name: {"correct": total // 2, "total": total} for name, total in cell.tests.items()},
            "log": [[1, 1, 0.7, 0.5, 0.1]],
            "heat_map": None,
            "error": None,
        }
        | changes
        for seed in cell.seeds
    ]


def test_round_trip(tmp_path):
    assert rows.of_cell(tmp_path, CELL) is None
    path = rows.write(tmp_path, CELL, made(CELL))
    rows.write(tmp_path, OTHER, made(OTHER))
    assert path == tmp_path / "rows/discrimination/rds/3-8.jsonl"
    assert len(path.read_text().splitlines()) == len(CELL.seeds)
    assert rows.of_cell(tmp_path, CELL) == made(CELL)
    assert rows.read(tmp_path) == made(CELL) + made(OTHER)
    assert list((tmp_path / "rows").rglob(".*")) == []


def test_rows_come_in_the_order_of_the_study(tmp_path):
    cells = [
        experiments.CELLS[name] for name in ("rules/truth/n3", "identification/mpgnn/n10", "identification/mpgnn/n9")
    ]
    for cell in cells:
        rows.write(tmp_path, cell, made(cell))
    found = list(dict.fromkeys(row["cell"] for row in rows.read(tmp_path)))
    assert found == [cell.name for cell in reversed(cells)]


def test_a_row_that_cannot_be_written_leaves_what_was_there(tmp_path):
    path = rows.write(tmp_path, CELL, made(CELL))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        rows.write(tmp_path, CELL, made(CELL, seconds=np.nan))
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "line 2 is not JSON"),
        (lambda text: "", "it is empty"),
        (lambda text: text.replace('"seed": 1', '"seed": "one"'), "seed is 'one'; accepted is a int"),
        (lambda text: text.replace('"log"', '"lag"'), "lacks log"),
        (lambda text: "[1]\n", "line 1 holds a list"),
        (lambda text: "\n".join(text.splitlines()[:2]) + "\n", r"it holds seeds \[0, 1\] of \[0, 1, 2\]"),
        (
            lambda text: text.replace("discrimination/rds", "discrimination/gcn"),
            "it holds discrimination/gcn/3-8/seed0",
        ),
        (lambda text: text.replace('"correct": 5000', '"correct": 20000'), "accuracy on discrimination/3-8/test"),
    ],
)
def test_damaged_files_are_named(damage, message, tmp_path):
    path = rows.write(tmp_path, CELL, made(CELL))
    path.write_text(damage(path.read_text()))
    with pytest.raises(RowError, match=message) as error:
        rows.read(tmp_path)
    assert "3-8" in str(error.value)


def test_bytes_that_are_no_text(tmp_path):
    path = rows.write(tmp_path, CELL, made(CELL))
    path.write_bytes(b"\xff\xfe" + path.read_bytes())
    with pytest.raises(RowError, match="is damaged"):
        rows.of_cell(tmp_path, CELL)


def test_rows_of_another_version_are_named(tmp_path):
    rows.write(tmp_path, CELL, made(CELL))
    rows.write(tmp_path, OTHER, made(OTHER, version=experiments.VERSION + 1, commit="abc"))
    with pytest.raises(RowError) as error:
        rows.read(tmp_path)
    assert f"rules/truth/n3/seed0 is of version {experiments.VERSION + 1}, commit abc" in str(error.value)
    assert "1 of 4 rows" in str(error.value)
    assert "discrimination" not in str(error.value)
    with pytest.raises(RowError, match="is of version"):
        rows.of_cell(tmp_path, OTHER)


def test_the_small_study_is_never_mixed_with_the_whole_one(tmp_path):
    small = experiments.cells(quick=True)
    rows.write(tmp_path, CELL, made(small[CELL.name]))
    assert rows.is_quick(rows.read(tmp_path))
    assert len(rows.read(tmp_path, quick=True)) == 2
    with pytest.raises(RowError, match="discrimination/rds/3-8/seed0: epochs_per_stage is 2 there and 5 in the study"):
        rows.read(tmp_path, quick=False)
    with pytest.raises(RowError, match="holds other runs than the study"):
        rows.of_cell(tmp_path, CELL)
    rows.write(tmp_path, OTHER, made(OTHER))
    with pytest.raises(RowError, match="rows of other runs than the study"):
        rows.read(tmp_path)
    rows.write(tmp_path, CELL, made(CELL))
    assert not rows.is_quick(rows.read(tmp_path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": CELL.settings(0) | {"learning_rate": 0.1}}, "learning_rate is 0.1 there and 0.001 in the study"),
        ({"settings": CELL.settings(0) | {"momentum": 0.9}}, "momentum is 0.9 there and None in the study"),
        ({"accuracy": {"discrimination/3-8/test": {"correct": 5, "total": 10}}}, "where the study has"),
        ({"accuracy": {}}, "where the study has"),
    ],
)
def test_other_runs_are_named(changes, message, tmp_path):
    rows.write(tmp_path, CELL, made(CELL, **changes))
    with pytest.raises(RowError, match=message) as error:
        rows.read(tmp_path)
    assert "discrimination/rds/3-8/seed0" in str(error.value)


def test_a_cell_that_is_not_in_the_study(tmp_path):
    path = rows.write(tmp_path, CELL, made(CELL))
    text = path.read_text().replace("discrimination/rds", "discrimination/new")
    (tmp_path / "rows/discrimination/new").mkdir()
    (tmp_path / "rows/discrimination/new/3-8.jsonl").write_text(text)
    with pytest.raises(RowError, match="discrimination/new/3-8/seed0 is not in the study"):
        rows.read(tmp_path)


def test_failed_runs_are_rows_without_accuracy(tmp_path):
    failed = made(CELL, accuracy={}, error="ValueError: no", log=[])
    rows.write(tmp_path, CELL, failed)
    assert rows.read(tmp_path) == failed
    assert rows.share(failed[0]) is None
    assert rows.share(made(CELL)[0]) == 0.5


def test_no_rows(tmp_path):
    with pytest.raises(FileNotFoundError, match="a folder that spatialsim bench run wrote"):
        rows.read(tmp_path)


def test_what_a_row_says_of_the_code():
    said = rows.made_by()
    assert said["version"] == experiments.VERSION
    assert set(said["versions"]) == {"python", "numpy", "torch", "numba"}
    assert json.loads(json.dumps(said)) == said


def test_the_commit_and_whether_the_code_differs_from_it(tmp_path, monkeypatch):
    def git(*arguments):
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(rows, "_ROOT", tmp_path.resolve())
    assert rows._commit() is None
    (tmp_path / "reward_models").mkdir()
    source, result = tmp_path / "reward_models/a.py", tmp_path / "row.jsonl"
    source.write_text("1\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    commit = rows._commit()
    assert len(commit) == 40
    result.write_text("{}\n")
    assert rows._commit() == commit
    source.write_text("2\n")
    assert rows._commit() == f"{commit}-dirty"
    monkeypatch.setattr(rows, "_ROOT", source.parent.resolve())  # installed into a folder of some other checkout
    assert rows._commit() is None
