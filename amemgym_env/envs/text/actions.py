"""Actions of `AMemGym-v0`: constructors, validation and parsing.

An action is a dict with the fields `reply`, `memory`, `answers` and `values`. A step reads only the
fields of its phase; other fields are ignored. A field of the wrong type raises; an index out of
range counts as no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from amemgym_env.agent import Answer, Op, Operation, Phase, Value
from amemgym_env.episode import Action
from amemgym_env.errors import ActionError
from amemgym_env.text import storable

FIELDS = ("reply", "memory", "answers", "values")


def say(reply: str, *operations: Operation) -> dict[str, Any]:
    """Return the action of a round: the assistant's reply and the memory operations."""
    return {"reply": reply, "memory": operations, "answers": (), "values": ()}


def answers(given: Iterable[Answer | int]) -> dict[str, Any]:
    """Return the action of an exam: for each question the shown index, NO_ANSWER or UNSCORED."""
    choices = tuple(item.choice if isinstance(item, Answer) else item for item in given)
    return {"reply": "", "memory": (), "answers": choices, "values": ()}


def values(given: Iterable[Iterable[Value | int]]) -> dict[str, Any]:
    """Return the action of a probe: for each question and variable the value's index."""
    rows = tuple(
        tuple(item.index if isinstance(item, Value) else item for item in row) for row in given
    )
    return {"reply": "", "memory": (), "answers": (), "values": rows}


def read(action: object, phase: Phase) -> Action:
    """Return a validated action for a phase.

    Operations are `Operation`s or sequences (op, entry id or None, text or None). Text that is not
    Unicode (half of a surrogate pair) is mended here, so that everything can be stored.

    Raises:
        ActionError: the action, or a field of the phase, has the wrong type; or a field is unknown.
    """
    if not isinstance(action, Mapping):
        raise ActionError(
            f"action: expected a dict with the fields {', '.join(FIELDS)}, found "
            f"{_kind(action)}; build it with say(...), answers([...]) or values([...])"
        )
    unknown = [name for name in action if name not in FIELDS]
    if unknown:
        raise ActionError(f"action: expected the fields {', '.join(FIELDS)}, found {unknown[0]!r}")
    if phase is Phase.DIALOGUE:
        reply = action.get("reply", "")
        if not isinstance(reply, str):
            raise ActionError(f"action, reply: expected a string, found {_kind(reply)}")
        operations = _sequence(action.get("memory", ()), "memory", "operations")
        return Action(storable(reply), tuple(map(_operation, range(len(operations)), operations)))
    if phase is Phase.EXAM:
        return Action(answers=_indices(action.get("answers", ()), "answers"))
    rows = _sequence(action.get("values", ()), "values", "sequences of integers, one a question")
    return Action(values=tuple(_indices(row, f"values[{i}]") for i, row in enumerate(rows)))


def _operation(number: int, item: object) -> Operation:
    place = f"action, memory[{number}]"
    if not isinstance(item, list | tuple) or len(item) != 3:
        raise ActionError(
            f"{place}: expected an Operation (op, entry_id, text), found {_kind(item)}; "
            "build it with Operation.add(text), .update(id, text), .delete(id) or .noop()"
        )
    op, entry_id, text = item
    try:
        known = Op(op)
    except ValueError:
        raise ActionError(f"{place}, op: expected one of {[*Op]}, found {op!r:.80}") from None
    for name, value in (("entry_id", entry_id), ("text", text)):
        if value is not None and not isinstance(value, str):
            raise ActionError(f"{place}, {name}: expected a string or None, found {_kind(value)}")
    return Operation(known, entry_id, None if text is None else storable(text))


def _indices(given: object, field: str) -> tuple[int, ...]:
    items = _sequence(given, field, "integers")
    for number, item in enumerate(items):
        # `True` is an int for Python, and surely no answer.
        if isinstance(item, bool) or not isinstance(item, int | np.integer):
            raise ActionError(
                f"action, {field}[{number}]: expected an integer (index from 0, NO_ANSWER or "
                f"UNSCORED), found {_kind(item)}"
            )
    return tuple(int(item) for item in items)


def _sequence(given: object, field: str, content: str) -> Sequence[Any]:
    if isinstance(given, np.ndarray) and given.ndim:
        listed: list[Any] = given.tolist()
        return listed
    if not isinstance(given, list | tuple):
        raise ActionError(
            f"action, {field}: expected a list or tuple of {content}, found {_kind(given)}"
        )
    return given


def _kind(value: object) -> str:
    return f"{type(value).__name__} {value!r:.80}"
