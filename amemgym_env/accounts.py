"""What calls of language models cost, and which calls were made before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls cost. Tokens are counts; `usd` is None where the price is not known."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    usd: float | None = 0.0
    estimated: bool = False
    """Whether some tokens were counted by us, because the provider did not say."""

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; unknown and estimated parts make it unknown and estimated."""
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.seconds + other.seconds,
            None if self.usd is None or other.usd is None else self.usd + other.usd,
            self.estimated or other.estimated,
        )

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


class Recorded:
    """Calls of an earlier part of the same run, or of another run, by key and occurrence.

    A call that failed is asked again, except the user's: the script's words took its place, and
    another follow-up now would change everything said after it.
    """

    def __init__(
        self,
        events: Sequence[Mapping[str, Any]] = (),
        others: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._events = _by_key(events)
        self._others = _by_key(others)
        """Calls of another run that this one repeats."""

    def get(self, key: str, occurrence: int) -> tuple[Mapping[str, Any] | None, bool]:
        """Return the event of a call, if it was made before, and whether by another run."""
        own = self._events.get((key, occurrence))
        return (own, False) if own is not None else (self._others.get((key, occurrence)), True)

    def __len__(self) -> int:
        """Return the number of recorded calls."""
        return len(self._events) + len(self._others)


def _by_key(events: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], Mapping[str, Any]]:
    return {
        (event["key"], event["occurrence"]): event
        for event in events
        if event["event"] == "call"
        and event["key"] is not None
        and ("error" not in event or event["role"] == "user")
    }
