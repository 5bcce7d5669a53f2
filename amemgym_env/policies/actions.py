"""Actions of the memory environments, as operations on a memory bank.

The message of the current round is the candidate. A masked action, one that cannot be carried out,
is played as NOOP. `envs/memory/vector_env.py` is the translation of these rules into numpy.

| `MemoryAction` (AMemGymMemory-v0) | effect |
|---|---|
| 0 NOOP | none |
| 1 ADD | adds the message; a full bank first evicts its oldest entry (written longest ago) |
| 2 UPDATE | replaces the most similar entry by the message; masked on an empty bank |
| 3 DELETE | deletes the most similar entry; masked on an empty bank |

| slot action (AMemGymSlots-v0, capacity C) | effect |
|---|---|
| 0 | none |
| 1 | adds the message; masked on a full bank |
| 2 + i | replaces entry i by the message; masked where there is no entry i |
| 2 + C + i | deletes entry i; masked where there is no entry i |

Entries are in the bank's order, first added first. ADD of a text that the bank already holds
refreshes that entry (the bank's own rule) and evicts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from amemgym_env.agent import Entry, Operation
from amemgym_env.errors import ActionError


class MemoryAction(IntEnum):
    """The four actions of `AMemGymMemory-v0`."""

    NOOP = 0
    ADD = 1
    UPDATE = 2
    DELETE = 3


_NOTHING: tuple[Operation, ...] = ()


def slot_action_count(capacity: int) -> int:
    """Return the number of slot actions for a bank of `capacity` entries."""
    return 2 + 2 * capacity


def checked_action(action: Any, count: int) -> int:
    """Return an action as an integer in 0..count-1.

    Raises:
        ActionError: not an integer (or an integer array of one element), or out of range.
    """
    if type(action) is int:
        if 0 <= action < count:
            return action
    else:
        scalar = isinstance(action, int | np.integer) and not isinstance(
            action, bool | np.timedelta64
        )
        array = isinstance(action, np.ndarray) and action.shape in ((), (1,))
        if not scalar and not (array and action.dtype.kind in "iu"):
            raise ActionError(
                f"action: expected an integer in 0..{count - 1}, found {action!r:.80}"
            )
        action = int(action.item()) if isinstance(action, np.ndarray) else int(action)
    if not 0 <= action < count:
        raise ActionError(f"action: expected an integer in 0..{count - 1}, found {action!r}")
    return int(action)


def oldest(entries: Sequence[Entry]) -> int:
    """Return the position of the entry written longest ago; entries must not be empty."""
    turns = [entry.turn for entry in entries]
    return turns.index(min(turns))


def memory_operations(
    action: int, message: str, entries: Sequence[Entry], capacity: int, nearest: int
) -> tuple[Operation, ...]:
    """Return the operations of a `MemoryAction`.

    `message` is the text that is written, `entries` the bank, `nearest` the position of the entry
    that is most similar to the message (any number when the bank is empty).
    """
    if action == MemoryAction.ADD:
        if len(entries) < capacity or any(entry.text == message for entry in entries):
            return (Operation.add(message),)
        return (Operation.delete(entries[oldest(entries)].id), Operation.add(message))
    if action == MemoryAction.NOOP or not entries:
        return _NOTHING
    entry_id = entries[nearest].id
    if action == MemoryAction.UPDATE:
        return (Operation.update(entry_id, message),)
    return (Operation.delete(entry_id),)


def legal_memory_actions(count: int) -> tuple[bool, bool, bool, bool]:
    """Return which memory actions are legal on a bank of `count` entries; NOOP always is."""
    return (True, True, count > 0, count > 0)


def slot_operations(
    action: int, message: str, entries: Sequence[Entry], capacity: int
) -> tuple[Operation, ...]:
    """Return the operations of a slot action."""
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


def legal_slot_actions(count: int, capacity: int) -> list[bool]:
    """Return which of the 2 + 2 * capacity slot actions are legal; action 0 always is."""
    held = [True] * count + [False] * (capacity - count)
    return [True, count < capacity, *held, *held]
