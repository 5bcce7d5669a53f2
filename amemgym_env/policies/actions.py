"""The actions of the number environments, as operations on a memory bank.

The message of the present round is the candidate. An action that cannot be done is NOOP. This is
the one place in Python that says so; `array_episodes.py` is its translation into numpy.

| `Macro` (AMemGymMemory-v0) | does |
|---|---|
| 0 NOOP | nothing |
| 1 ADD | writes the message; a full bank first loses its oldest entry (written longest ago) |
| 2 UPDATE | the most similar entry becomes the message; not on an empty bank |
| 3 DELETE | the most similar entry goes; not on an empty bank |

| slot action (AMemGymSlots-v0, capacity C) | does |
|---|---|
| 0 | nothing |
| 1 | adds the message; only to a bank that is not full |
| 2 + i | entry i becomes the message: it is overwritten or, in a full bank, given up for it |
| 2 + C + i | entry i goes |

Entries stand in the bank's order, first added first. ADD of a message that stands there identically
refreshes that entry (the bank's own rule), so nothing is given up for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from amemgym_env.agent import Entry, Operation


class Macro(IntEnum):
    """The four actions of `AMemGymMemory-v0`."""

    NOOP = 0
    ADD = 1
    UPDATE = 2
    DELETE = 3


_NOTHING: tuple[Operation, ...] = ()


def oldest(entries: Sequence[Entry]) -> int:
    """Return the position of the entry written longest ago; entries must not be empty."""
    turns = [entry.turn for entry in entries]
    return turns.index(min(turns))


def macro_operations(
    action: int, message: str, entries: Sequence[Entry], capacity: int, nearest: int
) -> tuple[Operation, ...]:
    """Return the operations that a `Macro` stands for.

    `message` is the text that is written, `entries` the bank, `nearest` the position of the entry
    that is most similar to the message (any number when the bank is empty).
    """
    if action == Macro.ADD:
        if len(entries) < capacity or any(entry.text == message for entry in entries):
            return (Operation.add(message),)
        return (Operation.delete(entries[oldest(entries)].id), Operation.add(message))
    if action == Macro.NOOP or not entries:
        return _NOTHING
    entry_id = entries[nearest].id
    if action == Macro.UPDATE:
        return (Operation.update(entry_id, message),)
    return (Operation.delete(entry_id),)


def legal_macros(count: int) -> tuple[bool, bool, bool, bool]:
    """Return which macros do something on a bank of `count` entries; NOOP is always legal."""
    return (True, True, count > 0, count > 0)


def slot_operations(
    action: int, message: str, entries: Sequence[Entry], capacity: int
) -> tuple[Operation, ...]:
    """Return the operations that a slot action stands for."""
    if action == 0:
        return _NOTHING
    if action == 1:
        return (Operation.add(message),) if len(entries) < capacity else _NOTHING
    deletes, position = divmod(action - 2, capacity)
    if position >= len(entries):
        return _NOTHING
    if deletes:
        return (Operation.delete(entries[position].id),)
    return (Operation.update(entries[position].id, message),)


def legal_slots(count: int, capacity: int) -> list[bool]:
    """Return which of the 2 + 2 * capacity slot actions do something, or are action 0."""
    held = [True] * count + [False] * (capacity - count)
    return [True, count < capacity, *held, *held]
