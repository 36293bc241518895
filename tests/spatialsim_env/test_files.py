from __future__ import annotations

import hashlib
import threading

import pytest

from spatialsim_env.files import replace_file, sha256


def test_replaced_makes_folders_and_leaves_one_file(tmp_path):
    path = tmp_path / "a" / "b.txt"
    with replace_file(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_replaced_keeps_the_old_file_when_the_block_fails(tmp_path):
    path = tmp_path / "b.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), replace_file(path) as temporary:  # noqa: PT012
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_sha256(tmp_path):
    path = tmp_path / "c"
    path.write_bytes(b"x" * 3_000_000)
    assert sha256(path) == hashlib.sha256(b"x" * 3_000_000).hexdigest()


def test_writers_of_one_file_do_not_meet(tmp_path):
    """Threads share a process id; each writes a file of its own, and the last one wins."""
    path = tmp_path / "shared"

    def write(text: str) -> None:
        for _ in range(50):
            with replace_file(path) as temporary:
                temporary.write_text(text * 1000)

    threads = [threading.Thread(target=write, args=(text,)) for text in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in {text * 1000 for text in "abc"}
    assert list(tmp_path.iterdir()) == [path]
