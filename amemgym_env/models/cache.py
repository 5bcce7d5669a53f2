"""Disk cache of completed calls, by model, parameters and messages.

One SQLite file in write-ahead mode: many threads and processes may use it at once, and a process
that is killed loses nothing that it had stored. Failed calls are not kept. No secrets are in it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

from amemgym_env.errors import ConfigError
from amemgym_env.models.backend import Completion
from amemgym_env.models.usage import Usage

_WAIT = 60.0
"""Seconds to wait for another process that writes."""


class CallCache:
    """Completions on disk; opens its file at the first use, one connection a process."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / "calls.sqlite"
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def get(self, key: str) -> Completion | None:
        """Return the completion stored under a key, at no cost, or None."""
        with self._lock:
            row = self._open().execute("SELECT value FROM calls WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        value = json.loads(row[0])
        details = {**value["details"], "cached": True}
        return Completion(value["text"], Usage(), value["finish_reason"], details=details)

    def put(self, key: str, completion: Completion) -> None:
        """Store a completion; what is there stays."""
        value: dict[str, Any] = {
            "text": completion.text,
            "finish_reason": completion.finish_reason,
            "details": dict(completion.details or {}),
        }
        with self._lock:
            connection = self._open()
            with connection:
                connection.execute(
                    "INSERT OR IGNORE INTO calls VALUES (?, ?)", (key, json.dumps(value))
                )

    def close(self) -> None:
        """Close the file; it opens again when it is needed."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        # A connection must not be used in a forked child: it gets one of its own.
        if self._connection is None or self._process != os.getpid():
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                connection = sqlite3.connect(self.path, timeout=_WAIT, check_same_thread=False)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, value TEXT) "
                    "WITHOUT ROWID"
                )
            except (OSError, sqlite3.Error) as error:
                raise ConfigError(
                    f"backend.cache: expected a folder that can be written, found "
                    f"{str(self.path.parent)!r}: {error}"
                ) from error
            self._connection, self._process = connection, os.getpid()
        return self._connection
