"""Prompts of a persona's course: initial state, updates, events.

Which variables change in a period is the generator's plan; the model says to what, and why.
Paper: AMemGym, Section 3.2 (state evolution); the texts are the project's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from amemgym_env.agent import Variable
from amemgym_env.errors import ParseError
from amemgym_env.prompts import parsing as replies
from amemgym_env.prompts.generation.base import (
    NUMBER,
    TEXT,
    Step,
    list_schema,
    listing,
    numbered_texts,
    read_rows,
    read_state,
    variable_rows,
)


@dataclass(frozen=True)
class InitialState(Step[dict[str, str]]):
    """The values that some variables have at the beginning."""

    profile: str
    date: str
    variables: tuple[Variable, ...]
    kind: ClassVar[str] = "initial_state"
    schema: ClassVar[Mapping[str, Any] | None] = list_schema(
        "state", {"variable": TEXT, "value": TEXT}
    )
    placeholders: ClassVar[tuple[str, ...]] = ("profile", "date", "variables")
    template: ClassVar[str] = """\
Decide the circumstances of one person's life on {date}.

The person:
{profile}

Variables with their possible values:
{variables}

Choose a value for every variable, so that together they are plausible for this person. Do not always choose the most usual one.

Reply with JSON and nothing else: {"state": [{"variable": "...", "value": "..."}]}"""

    def values(self) -> Mapping[str, str]:
        """Return the profile and the variables."""
        rows = variable_rows(self.variables)
        return {"profile": self.profile, "date": self.date, "variables": rows}

    def parse(self, text: str) -> dict[str, str]:
        """Return the state."""
        return read_state(read_rows(replies.read_object(text, "state"), "state"), self.variables)


@dataclass(frozen=True)
class PeriodUpdates(Step[dict[str, str]]):
    """The values to which some variables change in one period."""

    profile: str
    start: str
    end: str
    state: Mapping[str, str]
    """The whole state before the period."""
    changing: tuple[Variable, ...]
    held: Mapping[str, tuple[str, ...]]
    """Values that each changing variable has had so far, in order."""
    kind: ClassVar[str] = "period_updates"
    schema: ClassVar[Mapping[str, Any] | None] = list_schema(
        "updates", {"variable": TEXT, "value": TEXT}
    )
    placeholders: ClassVar[tuple[str, ...]] = ("profile", "start", "end", "state", "changing")
    template: ClassVar[str] = """\
One person's life goes on from {start} to {end}. Decide what some circumstances change to.

The person:
{profile}

The circumstances on {start}:
{state}

These change, each to another of its values; "held" is what it was so far, up to now:
{changing}

Changes are mostly gradual, to a neighbouring value, and together plausible for this person and this time of the year. Where several are, prefer one that was not held before.

Reply with the new values as JSON and nothing else: {"updates": [{"variable": "...", "value": "..."}]}"""

    def values(self) -> Mapping[str, str]:
        """Return the state and what changes."""
        changing = listing(
            {"variable": v.name, "values": list(v.values), "held": list(self.held[v.name])}
            for v in self.changing
        )
        return {
            "profile": self.profile,
            "start": self.start,
            "end": self.end,
            "state": listing([dict(self.state)]),
            "changing": changing,
        }

    def parse(self, text: str) -> dict[str, str]:
        """Return the new values; each differs from the old one."""
        new = read_state(read_rows(replies.read_object(text, "updates"), "updates"), self.changing)
        same = [name for name, value in new.items() if self.state[name] == value]
        if same:
            raise ParseError(f"expected other values than now, found the same for {same}")
        return new


@dataclass(frozen=True)
class LifeEvents(Step[tuple[str, ...]]):
    """Events of a period that explain its changes."""

    profile: str
    start: str
    end: str
    changes: tuple[Mapping[str, tuple[str, str]], ...]
    """For each event the variables that it changes, with the old and the new value."""
    language: str
    kind: ClassVar[str] = "life_events"
    schema: ClassVar[Mapping[str, Any] | None] = list_schema(
        "events", {"number": NUMBER, "event": TEXT}
    )
    placeholders: ClassVar[tuple[str, ...]] = ("profile", "start", "end", "changes", "language")
    template: ClassVar[str] = """\
Some circumstances of one person's life changed between {start} and {end}. Tell why.

The person:
{profile}

The changes, by event:
{changes}

For each number write, in {language}, one or two sentences about an event in this person's life that explains its changes. Do not repeat the names of values; tell what happened.

Reply with JSON and nothing else: {"events": [{"number": 1, "event": "..."}]}"""

    def values(self) -> Mapping[str, str]:
        """Return the changes, numbered from 1."""
        rows = listing(
            {
                "number": number,
                "changes": {name: {"from": old, "to": new} for name, (old, new) in event.items()},
            }
            for number, event in enumerate(self.changes, start=1)
        )
        return {
            "profile": self.profile,
            "start": self.start,
            "end": self.end,
            "changes": rows,
            "language": self.language,
        }

    def parse(self, text: str) -> tuple[str, ...]:
        """Return an event for every number."""
        rows = read_rows(replies.read_object(text, "events"), "events")
        return numbered_texts(rows, "event", len(self.changes))
