"""Steps of the last attempt at a scenario, each with the calls that it took.

Calls of a real model made before the last start count too: a resumed run reads them from the
record and does not repeat them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from amemgym_env.models.events import CallEvent, Event, ExamEvent, ProbeEvent, TurnEvent
from amemgym_env.models.last_play import Play, last_play
from amemgym_env.models.usage import Usage

Place = tuple[str | int, ...]
"""Kind of event and where it belongs."""


class Step(NamedTuple):
    """An event with the calls made since the event before it; None: calls after the last event."""

    event: Event | None
    calls: tuple[CallEvent, ...]

    @property
    def usage(self) -> Usage:
        """Usage of the calls and of their earlier attempts."""
        return sum((call.total for call in self.calls), Usage())


class StepLog(NamedTuple):
    """The steps of a journal and their usage."""

    play: Play
    steps: tuple[Step, ...]
    """Steps of the last attempt, in order."""
    usage: Mapping[Place, Usage]
    """Usage of each step, over all attempts."""

    def cost(self, event: type[Event], *place: int) -> Usage:
        """Return the usage of a turn (period, session, round), exam, probe (period), reference."""
        return self.usage.get((event.KIND, *place), Usage())


def step_log(events: Sequence[Event]) -> StepLog:
    """Return the steps of the last attempt in a journal, and the usage of all attempts."""
    play = last_play(events)
    steps = _steps(play.events)
    usage: dict[Place, Usage] = {}
    for step in (*_steps(play.earlier, keyed=True), *steps):
        if step.event is not None:
            place: Place = (step.event.KIND, *place_of(step.event))
            usage[place] = usage.get(place, Usage()) + step.usage
    return StepLog(play, steps, usage)


def place_of(event: Event) -> tuple[int, ...]:
    """Return where an event belongs: period, session and round of a turn, period of an exam."""
    if isinstance(event, TurnEvent):
        return event.place
    return (event.period,) if isinstance(event, ExamEvent | ProbeEvent) else ()


def _steps(events: Sequence[Event], keyed: bool = False) -> tuple[Step, ...]:
    steps: list[Step] = []
    calls: list[CallEvent] = []
    for event in events:
        if not isinstance(event, CallEvent):
            steps.append(Step(event, tuple(calls)))
            calls = []
        elif not keyed or event.key is not None:
            calls.append(event)
    return (*steps, Step(None, tuple(calls)))
