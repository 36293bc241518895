"""What a row says of the code that made it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict

from reward_models import provenance


def test_a_stamp_says_version_packages_and_commit():
    stamp = provenance.stamp(3, ("scipy",))
    assert stamp.version == 3
    assert list(stamp.versions) == ["python", "numpy", "torch", "numba", "scipy"]
    assert json.loads(json.dumps(asdict(stamp))) == asdict(stamp)
    assert (provenance._ROOT / "reward_models/provenance.py").exists()
    assert provenance.describe() == {key: provenance.stamp(1).__dict__[key] for key in provenance.describe()}


def test_the_commit_and_whether_the_code_differs_from_it(tmp_path):
    def git(*arguments):
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True, capture_output=True)

    root = tmp_path.resolve()
    assert provenance.commit_of(root) is None
    (tmp_path / "reward_models").mkdir()
    source, result = tmp_path / "reward_models/a.py", tmp_path / "row.jsonl"
    source.write_text("1\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    commit = provenance.commit_of(root)
    assert len(commit) == 40
    result.write_text("{}\n")
    assert provenance.commit_of(root) == commit
    source.write_text("2\n")
    assert provenance.commit_of(root) == f"{commit}-dirty"
    assert provenance.commit_of(source.parent.resolve()) is None  # installed into a folder of some other checkout
