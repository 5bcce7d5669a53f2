"""The last attempt at a scenario in its journal, and the calls that count as its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from amemgym_env.models.events import (
    CallEvent,
    EndEvent,
    Event,
    EvolutionEvent,
    ExamEvent,
    ProbeEvent,
    ReferenceEvent,
    StartEvent,
    TurnEvent,
)

Kind = TypeVar("Kind", bound=Event)


@dataclass(frozen=True)
class Play:
    """One attempt at a scenario, from its start; the calls made before it are kept apart."""

    events: tuple[Event, ...]
    """From the start on."""
    earlier: tuple[Event, ...] = ()
    """Everything before the start: earlier attempts."""

    @cached_property
    def start(self) -> StartEvent | None:
        """How the attempt began; None for a journal without a start."""
        return next(self.of(StartEvent), None)

    @cached_property
    def reference(self) -> ReferenceEvent | None:
        """The upper bound's answers, if they were asked."""
        return self._last(ReferenceEvent)

    @cached_property
    def end(self) -> EndEvent | None:
        """How the attempt ended; None where it was killed."""
        return self._last(EndEvent)

    @cached_property
    def turns(self) -> tuple[TurnEvent, ...]:
        """The rounds, in order of play."""
        return tuple(self.of(TurnEvent))

    @cached_property
    def exams(self) -> dict[int, ExamEvent]:
        """The exams by period."""
        return {event.period: event for event in self.of(ExamEvent)}

    @cached_property
    def probes(self) -> dict[int, ProbeEvent]:
        """The probes by period."""
        return {event.period: event for event in self.of(ProbeEvent)}

    @cached_property
    def evolution(self) -> tuple[EvolutionEvent, ...]:
        """The steps of an evolution, in order."""
        return tuple(self.of(EvolutionEvent))

    @cached_property
    def earlier_calls(self) -> tuple[CallEvent, ...]:
        """Calls of real models before the start: this attempt reads them from the record."""
        return tuple(
            event
            for event in self.earlier
            if isinstance(event, CallEvent) and event.key is not None
        )

    @cached_property
    def calls(self) -> tuple[CallEvent, ...]:
        """All calls that count as this attempt's: its own, and those that it did not repeat."""
        return (*self.earlier_calls, *self.of(CallEvent))

    def of(self, wanted: type[Kind]) -> Iterator[Kind]:
        """Yield the events of one class."""
        return (event for event in self.events if isinstance(event, wanted))

    def _last(self, wanted: type[Kind]) -> Kind | None:
        return next((event for event in reversed(self.events) if isinstance(event, wanted)), None)


def last_play(events: Sequence[Event]) -> Play:
    """Return the last attempt in a journal: what follows its last start, or all without a start."""
    starts = [number for number, event in enumerate(events) if isinstance(event, StartEvent)]
    first = starts[-1] if starts else 0
    return Play(tuple(events[first:]), tuple(events[:first]))


def calls_in(events: Iterable[Event]) -> Iterator[CallEvent]:
    """Yield the calls among events."""
    return (event for event in events if isinstance(event, CallEvent))
