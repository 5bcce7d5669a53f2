"""Recorded calls: answers calls from a journal without asking the model."""

from __future__ import annotations

from collections.abc import Sequence

from amemgym_env.models.events import CallEvent, Event


class Recorded:
    """Calls of an earlier part of the same run, or of another run, by key and occurrence.

    A failed call is asked again, except the user's: the script's words took its place, and another
    follow-up now would change everything said after it.
    """

    def __init__(
        self,
        events: Sequence[Event] = (),
        others: Sequence[Event] = (),
    ) -> None:
        self._events = _by_key(events)
        self._others = _by_key(others)
        """Calls of another run that this one repeats."""

    def get(self, key: str, occurrence: int) -> tuple[CallEvent | None, bool]:
        """Return the event of a call, if it was made before, and whether by another run."""
        own = self._events.get((key, occurrence))
        return (own, False) if own is not None else (self._others.get((key, occurrence)), True)

    def __len__(self) -> int:
        """Return the number of recorded calls."""
        return len(self._events) + len(self._others)


def _by_key(events: Sequence[Event]) -> dict[tuple[str, int], CallEvent]:
    return {
        (event.key, event.occurrence): event
        for event in events
        if isinstance(event, CallEvent)
        and event.key is not None
        and (not event.failed or event.role == "user")
    }
