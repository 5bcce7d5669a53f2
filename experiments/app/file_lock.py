"""One process at a time writes a file: a second one is told so before it does anything."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from amemgym_env.errors import RunError


@contextlib.contextmanager
def sole_writer(path: Path, out: Path | None = None) -> Iterator[None]:
    """Hold a file's name while it is being written.

    The lock is the operating system's on `<path>.lock`, so it ends with its process, however that
    ends; what a killed process leaves behind is an empty file that stops nobody. `out` is what the
    user named, where that is another path.

    Raises:
        RunError: another process holds the name, or the folder cannot be written to.
    """
    lock = path.with_name(f"{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _held(lock)
    except BlockingIOError as error:
        raise RunError(
            f"out={out or path}: expected to be the only writer, found another process at it; "
            "wait for its end, or choose another out="
        ) from error
    except OSError as error:
        raise RunError(
            f"out={out or path}: expected a folder to write to, found {error.filename!s}: "
            f"{error.strerror}"
        ) from error
    try:
        yield
    finally:
        # The name goes first: whoever opened this file meanwhile sees that it is no longer named.
        lock.unlink(missing_ok=True)
        file.close()


def _held(lock: Path) -> IO[str]:
    """Return the lock's file, locked, and still the one of that name."""
    while True:
        file = lock.open("a")
        try:
            _lock(file)
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                return file
        except FileNotFoundError:
            pass
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: IO[str]) -> None:
    try:
        import fcntl
    except ImportError:  # not every system has it; there two processes must not meet
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
