"""Locks between processes: one writer for each output file or folder."""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from amemgym_env.errors import RunError

_UNSUPPORTED = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}
"""Errors of file systems without locks, such as some of NFS, Lustre and FUSE."""


@contextlib.contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock `<path>.lock` and remove its file afterwards.

    The operating system releases the lock when the process ends, in whatever way. On a file system
    without locks the block runs after a warning.

    Raises:
        filelock.Timeout: another process holds the lock, and `wait` is false.
        OSError: the lock file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_name(f"{path.name}.lock")
    lock = FileLock(file, timeout=-1 if wait else 0, fallback_to_soft=False, thread_local=False)
    try:
        lock.acquire(poll_interval=0.2)
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _UNSUPPORTED:
            raise
        print(
            f"warning: {path.parent} is on a file system without locks; do not write to it from "
            "two processes at once",
            file=sys.stderr,
        )
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows keeps open files
            file.unlink()  # a process that waits sees this and opens a new file
        lock.release()


@contextlib.contextmanager
def sole_writer(path: Path, out: Path | None = None) -> Iterator[None]:
    """Hold a path while it is written; `out` is the path in error messages, if another.

    Raises:
        RunError: another process writes it, or its folder cannot be written to.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(path, wait=False))
        except Timeout as error:
            raise RunError(
                f"out={out or path}: expected to be the only writer, found another process at it; "
                "wait for its end, or choose another out="
            ) from error
        except OSError as error:
            raise RunError(
                f"out={out or path}: expected a folder to write to, found {error.filename!s}: "
                f"{error.strerror}"
            ) from error
        yield
