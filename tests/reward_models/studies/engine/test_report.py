"""A report holds what the rows say, and nothing is passed over."""

from __future__ import annotations

import sys

import pytest

from reward_models.studies.engine import report as writer
from reward_models.studies.engine import rows, run
from reward_models.studies.engine.sweep import Sweep
from reward_models.tables import Table
from tests.reward_models.studies.engine import toy
from tests.reward_models.studies.engine.toy import STUDY

UNITS = list(toy.units(True).values())


@pytest.fixture
def sweep(tmp_path) -> Sweep:
    return Sweep(STUDY, tmp_path / "results", tmp_path / "work", quick=True)


def test_a_report_in_full(sweep, tmp_path):
    pytest.importorskip("markdown")
    out = tmp_path / "out"
    run.run(UNITS[0], sweep)
    rows.write(STUDY, sweep.results, UNITS[2], [toy.failed(UNITS[2], "compared/all", sweep.stamp, "E: a `b`")])
    (out / "figures").mkdir(parents=True)
    (out / "figures/none.png").touch()
    path = writer.write_study(STUDY, sweep.results, out, quick=True)
    text = path.read_text()
    shares = [toy.toss(UNITS[0], seed) for seed in range(2)]
    lines = "".join(f"\n| coins/fair/seed{seed} | {share:.3f} |" for seed, share in enumerate(shares))
    assert text.startswith("# Coins\n\n- version of the results: 1\n- commit: ")
    assert (
        f"## Shares\n\n| run | share |\n| --- | --- |{lines}\n\n## A picture\n\n![A picture](figures/one.png)" in text
    )
    assert "## No picture\n\nNo row has it yet.\n\n## Runs that failed\n\n- `compared/all`: `E: a 'b'`\n\n" in text
    assert text.endswith("## Runs without a row\n\n- `coins/bent/seed0`\n- `coins/bent/seed1`\n")
    there = {file.relative_to(out).as_posix() for file in out.rglob("*") if file.is_file()}
    assert there == {"report.md", "index.html", "tables/shares.csv", "tables/every.csv", "figures/one.png"}
    html = (out / "index.html").read_text()
    assert "<title>Coins</title>" in html
    assert 'src="data:image/png;base64,cG5n"' in html


def test_no_row_is_no_report(tmp_path):
    (tmp_path / "rows").mkdir()
    with pytest.raises(FileNotFoundError, match="rows holds no rows; spatialsim study run writes them"):
        writer.write_study(STUDY, tmp_path, tmp_path)


def test_packages_that_are_not_there():
    writer.require_packages("json", "sys")
    with pytest.raises(ImportError, match=r'the report needs cheese: pip install "spatialsim-env\[bench\]"'):
        writer.require_packages("json", "cheese")


def test_tables_are_text():
    table = Table("t", "T", ("a", "b|c"), (("1", "x|y"), ("2", 'say "z", then')))
    assert table.markdown() == '| a | b\\|c |\n| --- | --- |\n| 1 | x\\|y |\n| 2 | say "z", then |'
    assert table.csv() == 'a,b|c\n1,x|y\n2,"say ""z"", then"\n'


def test_nothing_that_draws_is_imported_with_the_engine():
    import subprocess

    code = "import sys; import reward_models.studies.engine.report, reward_models.studies.engine.commands; "
    code += "print([name for name in ('torch', 'matplotlib', 'joblib', 'markdown') if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
