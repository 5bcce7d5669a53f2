"""Journals: the events of a scenario, in memory or as JSON Lines, written as they happen.

Resume, replay, re-scoring and the report read them. A line is on disk before the next call begins.
An incomplete last line is dropped before anything is appended; an incomplete line elsewhere is an
error.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from amemgym_env.errors import RunError
from amemgym_env.models.events import Event, event_json, read_event

_REMEDY = "restore the file, or delete it to play the scenario again"


class Journal(Protocol):
    """Where the events of one scenario go, and where earlier ones come from."""

    def read(self) -> list[Event]:
        """Return all events so far."""
        ...

    def write(self, event: Event) -> None:
        """Add an event; safe to call from several threads."""
        ...


class MemoryJournal:
    """A journal that lives as long as the process."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def read(self) -> list[Event]:
        """Return all events so far."""
        return list(self._events)

    def write(self, event: Event) -> None:
        """Add an event."""
        self._events.append(event)


class FileJournal:
    """A journal in a file of JSON Lines. Use it as a context manager while writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file: Any = None

    def read(self) -> list[Event]:
        """Return all events so far; an incomplete last line is left out.

        Raises:
            RunError: another line cannot be read.
        """
        return [self._event(number, *line) for number, line in enumerate(self._lines(), start=1)]

    def write(self, event: Event) -> None:
        """Add an event and hand it to the operating system before returning."""
        line = json.dumps(event_json(event)) + "\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()

    def __enter__(self) -> FileJournal:
        """Open the file for writing behind its last whole line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        end = max((end for _, end in self._lines()), default=0)
        self._file = self.path.open("ab")
        self._file.truncate(end)
        self._file.close()
        self._file = self.path.open("a", encoding="utf-8", newline="\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._file.close()

    def _event(self, number: int, content: dict[str, Any], _: int) -> Event:
        try:
            return read_event(content)
        except RunError as error:
            raise RunError(f"{self.path}, line {number}: {error}; {_REMEDY}") from error

    def _lines(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield the JSON object of each line with the offset of the line's end."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        start = 0
        while start < len(data):
            newline = data.find(b"\n", start)
            end = len(data) if newline < 0 else newline + 1
            try:
                event = json.loads(data[start:end])
                if not isinstance(event, dict) or "event" not in event:
                    raise ValueError("no event")
            except ValueError as error:
                if newline < 0 or end == len(data):
                    return
                number = data.count(b"\n", 0, start) + 1
                raise RunError(
                    f"{self.path}, line {number}: expected a JSON object, found a damaged line; "
                    f"{_REMEDY}"
                ) from error
            if newline < 0:
                return
            yield event, end
            start = end
