"""The report from rows to files."""

from __future__ import annotations

import base64
import re

import pytest

from reward_models.studies.engine import report as writer
from reward_models.studies.engine.report import write
from reward_models.studies.paper import runs
from reward_models.studies.paper.study import report
from reward_models.studies.paper.summary import Cells
from reward_models.studies.readme import recorded
from tests.reward_models.studies.paper.synthetic import cell, results_of, row, settings_of

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def some():
    found = [line for n in (4, 5) for line in cell(f"identification/mpgnn/n{n}", 0.95, 0.97)]
    found += cell("discrimination/mpgnn/3-8", 0.9, 0.8, 0.85)
    found += cell("discrimination/matching/3-8", 1.0)
    return [*found, row("identification/rds/n5", 0, error="ValueError: loss is <b>| nan", accuracy={})]


@pytest.fixture(scope="module")
def written(tmp_path_factory, some):
    folder = tmp_path_factory.mktemp("report")
    return write(report(results_of(some)), folder / "out").parent


def test_it_writes_markdown_page_tables_and_figures(written):
    assert {path.name for path in written.iterdir()} == {"report.md", "index.html", "tables", "figures"}
    assert {path.stem for path in (written / "tables").iterdir()} == {
        *(f"table{k}{form}" for k in (1, 2, 3) for form in ("", "_full")),
        *("rules", "ablations", "widths", "runs", "outstanding"),
    }
    names = {
        "figure1",
        *(f"{kind}_{task}" for kind in ("figure2", "curves") for task in ("identification", "discrimination")),
    }
    assert {path.stem for path in (written / "figures").iterdir()} == names
    text = (written / "report.md").read_text()
    for path in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (written / path).read_bytes().startswith(b"\x89PNG")
    assert "0.960 ± 0.012, within (2 of 6 sets)" in text  # sqrt(4 * 0.01^2 / 3) = 0.01155


def test_the_page_is_whole_in_one_file(written):
    page = (written / "index.html").read_text()
    sources = re.findall(r'src="([^"]+)"', page)
    assert len(sources) == 5
    for source in sources:
        head, content = source.split(",")
        assert head == "data:image/png;base64"
        assert base64.b64decode(content).startswith(b"\x89PNG")
    text = (written / "report.md").read_text()
    assert page.count("<table>") == len(re.findall(r"^\| ---", text, re.MULTILINE))
    assert "http" not in re.sub(r'src="[^"]+"', "", page)


def test_failed_and_missing_runs_are_listed(written, some):
    text = (written / "report.md").read_text()
    total = sum(len(cell.seeds) for cell in runs.CELLS.values() if not cell.long)
    assert "<b>" not in (written / "index.html").read_text()
    assert f"8 of {total:,} runs done, 1 failed" in text
    assert "`identification/rds/n5/seed0`: `ValueError: loss is <b>| nan`" in text
    left = text.split("## What was not run")[1]
    n_runs = sum(int(line.split(" | ")[2]) for line in left.splitlines() if line.startswith("| `spatialsim"))
    assert n_runs == sum(len(cell.seeds) for cell in runs.CELLS.values()) - len(some)


def test_the_same_rows_give_the_same_bytes(written, some, tmp_path):
    again = write(report(results_of(some[::-1])), tmp_path / "out").parent
    for path in written.rglob("*.*"):
        assert (again / path.relative_to(written)).read_bytes() == path.read_bytes(), path.name


def test_it_says_what_it_does_not_have_and_leaves_no_old_figure(tmp_path):
    results = results_of(cell("identification/rds/n7", 0.8))
    old = tmp_path / "out" / "figures" / "figure2_identification.png"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"old")
    text = write(report(results), tmp_path / "out").read_text()
    assert "## Figure 2: heat maps, Identification\n\nNo row has it yet." in text
    assert not old.exists()


def test_without_a_row_a_report_is_of_dashes(tmp_path):
    assert "0 of" in write(report(results_of([])), tmp_path / "out").read_text()


def test_the_small_study_is_named(tmp_path):
    small = runs.cells(quick=True)["identification/gcn/n5"]
    tested = {test: {"correct": 50, "total": total} for test, total in small.tests.items()}
    found = [row(small.id, seed, settings=settings_of(small, seed), accuracy=tested) for seed in small.seeds]
    text = write(report(results_of(found, quick=True)), tmp_path / "out").read_text()
    assert "small study for tests" in text
    assert "not comparable" in text
    assert "<li>version of the results" in (tmp_path / "out" / "index.html").read_text()


def test_nothing_is_trained(written, monkeypatch, some, tmp_path):
    from reward_models.training import protocol as training

    def refuse(*args, **kwargs):
        raise AssertionError("a report trains")

    for name in ("train", "train_together"):
        monkeypatch.setattr(training, name, refuse, raising=False)
    assert write(report(results_of(some)), tmp_path / "out").read_bytes() == (written / "report.md").read_bytes()


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(writer, "find_spec", lambda name: None if name == "matplotlib" else name)
    with pytest.raises(ImportError, match=r'matplotlib: pip install "spatialsim-env\[bench\]"'):
        report(results_of([]))


def test_the_readme_has_tables_1_and_2(monkeypatch, tmp_path, some):
    results = recorded._results
    monkeypatch.setattr(recorded, "_results", lambda: Cells(some))
    text = recorded.PAGES[recorded.README]["benchmark"]()
    assert re.search(r"\*\*Table 1.*0\.960 ± 0\.012, within \(2 of 6 sets\) \| 0\.970 ± 0\.026", text, re.DOTALL)
    assert re.search(r"\*\*Table 2.*0\.850 ± 0\.050, below \| 0\.890 ± 0\.030", text, re.DOTALL)
    monkeypatch.setattr(recorded, "_results", results)
    monkeypatch.setattr(recorded, "RESULTS", tmp_path / "none")
    assert (
        recorded.PAGES[recorded.README]["benchmark"]()
        == "No run is recorded yet: `spatialsim study run paper` makes them."
    )
