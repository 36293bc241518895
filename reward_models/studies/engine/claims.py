"""Claims on units, for any number of processes at one study, and the end of all of them: a full disk.

A claim is a lock (flock) on a file, which the kernel frees when the process ends, however it ends; the file stays. On a
network file system claims need flock to work across the nodes (NFS from version 4, Lustre mounted with ``flock``).
"""

from __future__ import annotations

import errno
import traceback
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

PATIENCE = 0.3  # seconds for which a lock may be held by someone who only looks whether it is
FOREVER = -1.0  # seconds, as filelock counts them


class NoSpaceLeft(OSError):
    """The disk is full, which no other unit would survive either."""


def claim(lock: Path, patience: float = 0.0) -> AbstractContextManager[Any]:
    """Hold the claim whose file is ``lock``; raises ``filelock.Timeout`` if another has it for ``patience`` seconds."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(lock).acquire(timeout=patience)


def is_claimed(lock: Path) -> bool:
    """Check that a process holds the claim."""
    if not lock.exists():
        return False
    try:
        with claim(lock):
            return False
    except Timeout:
        return True


def refuse_full_disk(error: BaseException, name: str) -> None:
    """Raise NoSpaceLeft if that is what lies behind an error of the unit called ``name``."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpaceLeft(
                cause.errno,
                f"no space left on the disk while {name} was run; no row of it was written. Make room, and the same "
                "command resumes",
            ) from error
        cause = cause.__cause__ or cause.__context__


def last_line(error: Exception) -> str:
    """The last line of an error's traceback, which its row holds."""
    return traceback.format_exception_only(error)[-1].strip().splitlines()[0]
