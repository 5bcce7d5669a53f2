"""Memory bank and its four operations, as pure functions on an immutable value.

The bank never evicts. Refused operations change nothing and are reported: ADD to a full bank,
UPDATE or DELETE of an unknown id, a blank text. ADD of a text that the bank already holds refreshes
that entry, so there are no duplicates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from amemgym_env.agent import Entry, Op, Operation


class Status(StrEnum):
    """Outcome of an operation."""

    APPLIED = "applied"
    REFRESHED = "refreshed"
    """ADD of a text that the bank holds: the entry gets the current time and turn."""
    NOOP = "noop"
    FULL = "full"
    UNKNOWN = "unknown_id"
    EMPTY = "empty_text"

    @property
    def refused(self) -> bool:
        """Whether the operation was refused."""
        return self in (Status.FULL, Status.UNKNOWN, Status.EMPTY)


class Applied(NamedTuple):
    """An operation, its outcome and the entry concerned, if any."""

    operation: Operation
    status: Status
    entry_id: str | None


class Bank(NamedTuple):
    """The entries, first written first; the number of the next id; the capacity (None: unbounded).

    Ids are never used again, so an id names one entry for a whole episode.
    """

    entries: tuple[Entry, ...] = ()
    next_id: int = 1
    capacity: int | None = None

    @property
    def full(self) -> bool:
        """Whether an ADD of a new text would be refused."""
        return self.capacity is not None and len(self.entries) >= self.capacity

    def apply(self, operation: Operation, time: str, turn: int) -> tuple[Bank, Applied]:
        """Return the bank after `operation` at scenario time `time`, and the outcome."""
        op, entry_id, text = operation
        if op is Op.NOOP:
            return self, Applied(operation, Status.NOOP, None)
        if op is not Op.DELETE and not (text and text.strip()):
            return self, Applied(operation, Status.EMPTY, entry_id)
        if op is Op.ADD:
            return self._add(operation, time, turn)
        position = next((n for n, known in enumerate(self.entries) if known.id == entry_id), None)
        if position is None:
            return self, Applied(operation, Status.UNKNOWN, entry_id)
        entry = self.entries[position]
        if op is Op.DELETE:
            return self._replaced(position), Applied(operation, Status.APPLIED, entry_id)
        changed = Entry(entry.id, text or "", entry.written_at, time, turn)
        return self._replaced(position, changed), Applied(operation, Status.APPLIED, entry_id)

    def apply_all(
        self, operations: Iterable[Operation], time: str, turn: int
    ) -> tuple[Bank, tuple[Applied, ...]]:
        """Return the bank after the operations, applied in order, and their outcomes."""
        bank, outcomes = self, []
        for operation in operations:
            bank, outcome = bank.apply(operation, time, turn)
            outcomes.append(outcome)
        return bank, tuple(outcomes)

    def _add(self, operation: Operation, time: str, turn: int) -> tuple[Bank, Applied]:
        text = operation.text or ""
        for position, entry in enumerate(self.entries):
            if entry.text == text:
                fresh = Entry(entry.id, text, entry.written_at, time, turn)
                outcome = Applied(operation, Status.REFRESHED, entry.id)
                return self._replaced(position, fresh), outcome
        if self.full:
            return self, Applied(operation, Status.FULL, None)
        new = Entry(str(self.next_id), text, time, time, turn)
        bank = Bank((*self.entries, new), self.next_id + 1, self.capacity)
        return bank, Applied(operation, Status.APPLIED, new.id)

    def _replaced(self, position: int, *entries: Entry) -> Bank:
        kept = (*self.entries[:position], *entries, *self.entries[position + 1 :])
        return Bank(kept, self.next_id, self.capacity)

    def to_json(self) -> dict[str, Any]:
        """Return the bank as a JSON object."""
        entries = [list(entry) for entry in self.entries]
        return {"entries": entries, "next_id": self.next_id, "capacity": self.capacity}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Bank:
        """Return the bank of a `to_json` object."""
        entries = tuple(Entry(*entry) for entry in state["entries"])
        return cls(entries, int(state["next_id"]), state["capacity"])


def in_time_order(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return entries as prompts show them: last written last.

    Turn numbers order the whole episode, so they decide; entries of one turn keep their order.
    """
    return tuple(sorted(entries, key=lambda entry: entry.turn))
