"""Locks: one writer at a time, no files left, and file systems that have no locks."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from amemgym_env.errors import RunError
from experiments.app.file_lock import locked, sole_writer


def test_a_second_writer_is_refused_and_the_lock_leaves_no_file() -> None:
    with sole_writer(Path("set.json")):
        assert [path.name for path in Path().iterdir()] == ["set.json.lock"]
        with (
            pytest.raises(RunError, match=r"out=runs: .* found another process at it"),
            sole_writer(Path("set.json"), Path("runs")),
        ):
            pass
    assert list(Path().iterdir()) == []
    with locked(Path("set.json"), wait=True):
        assert Path("set.json.lock").exists()


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_p19_a_file_system_without_locks_gets_a_warning(
    code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(code, "not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    written = []
    with sole_writer(Path("set.json")):
        written.append(1)
    assert written
    assert "warning: . is on a file system without locks" in capsys.readouterr().err
    assert list(Path().iterdir()) == []
