"""Gymnasium spaces for any text, and the observation and action space of `AMemGym-v0`.

`gymnasium.spaces.Text` has a fixed alphabet and length; here a text is any Python string. Elements
are immutable (strings, tuples, the records of `agent.py`). In a vector environment they batch as a
tuple, and `AsyncVectorEnv` needs `shared_memory=False`. The size of samples is not part of the
space, so spaces of one class are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from gymnasium import spaces

from amemgym_env.agent import Entry, Op, Operation, Phase, ProbedQuestion, Question, Variable

T_co = TypeVar("T_co", covariant=True)

COUNT_LIMIT = 2**31
"""Periods, sessions, rounds and entries are counted below this."""

_PIECES = (
    *[
        "I",
        "my",
        "no",
        "yes",
        "not",
        "now",
        "week",
        "rice",
        "bike",
        "work",
        "doctor",
        "Friday",
        "Oslo",
        "{x}",
        "\\n",
        "$&",
        "3.5",
        ";",
    ],
    *("", "\n", "\t", '"', "é", "ß", "Ünal", "你好", "かな", "нет", "🙂", "👩‍👧", "\u202e", "\x00"),
)
_OPERATIONS = (Op.ADD, Op.ADD, Op.UPDATE, Op.DELETE, Op.NOOP)
_IDS = tuple(str(number) for number in range(1, 33))
_TIME = "2024-01-31T10:00:00"


class _AnyText(spaces.Space[T_co], Generic[T_co]):
    """Base of the spaces: no shape, no dtype, equality by class."""

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(None, None, seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no array form."""
        return False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _text(self) -> str:
        picks = self.np_random.integers(len(_PIECES), size=self._below(12)).tolist()
        return " ".join([_PIECES[pick] for pick in picks])

    def _below(self, n: int) -> int:
        return int(self.np_random.random() * n)


class UnicodeText(_AnyText[str]):
    """Any string, the empty one included."""

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return some words, signs and line breaks of many scripts."""
        return self._text()

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a string."""
        return isinstance(x, str)


class TextSequence(_AnyText[tuple[str, ...]]):
    """Tuples of any number of strings."""

    def sample(self, mask: Any = None, probability: Any = None) -> tuple[str, ...]:
        """Return 0..2 texts."""
        return tuple(self._text() for _ in range(self._below(3)))

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a tuple of strings."""
        return _all(x, lambda item: isinstance(item, str))


class OperationSequence(_AnyText[tuple[Operation, ...]]):
    """Any number of memory operations, in the order in which they are applied."""

    def sample(self, mask: Any = None, probability: Any = None) -> tuple[Operation, ...]:
        """Return 0..2 operations on entry ids "1" to "32"."""
        return tuple(self._operation() for _ in range(self._below(3)))

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a tuple of operations, each an op with id and text where set."""
        return _all(x, _is_operation)

    def _operation(self) -> Operation:
        op = _OPERATIONS[self._below(len(_OPERATIONS))]
        if op is Op.ADD:
            return Operation(op, None, self._text())
        if op is Op.NOOP:
            return Operation(op, None, None)
        entry_id = _IDS[self._below(len(_IDS))]
        return Operation(op, entry_id, self._text() if op is Op.UPDATE else None)


class AnswerSequence(_AnyText[tuple[int, ...]]):
    """Any number of integers: index shown, NO_ANSWER or UNSCORED."""

    def sample(self, mask: Any = None, probability: Any = None) -> tuple[int, ...]:
        """Return 10 indices in 0..4; surplus ones are left out, and too large ones no answer."""
        return tuple(self.np_random.integers(5, size=10).tolist())

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a tuple of integers."""
        return _all(x, _is_index)


class ValueSequence(_AnyText[tuple[tuple[int, ...], ...]]):
    """For any number of questions, any number of integers: value index, NO_ANSWER or UNSCORED."""

    def sample(self, mask: Any = None, probability: Any = None) -> tuple[tuple[int, ...], ...]:
        """Return three indices in 0..2 for each of 10 questions."""
        return tuple(map(tuple, self.np_random.integers(3, size=(10, 3)).tolist()))

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a tuple of tuples of integers."""
        return _all(x, lambda row: _all(row, _is_index))


class EntrySequence(_AnyText[tuple[Entry, ...]]):
    """Any number of memory entries (`agent.Entry`)."""

    def sample(self, mask: Any = None, probability: Any = None) -> tuple[Entry, ...]:
        """Return 0..2 entries."""
        return tuple(
            Entry(_IDS[number], self._text(), _TIME, _TIME, number)
            for number in range(self._below(3))
        )

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a tuple of entries."""
        return _all(x, _is_entry)


class QuestionSequence(_AnyText[tuple[Question | ProbedQuestion, ...]]):
    """Exam questions (`agent.Question`) or state queries (`agent.ProbedQuestion`), never mixed."""

    def sample(
        self, mask: Any = None, probability: Any = None
    ) -> tuple[Question | ProbedQuestion, ...]:
        """Return 0..2 exam questions or state queries."""
        count = self._below(3)
        if self._below(2):
            return tuple(Question(self._text(), ("yes", "no")) for _ in range(count))
        variable = Variable("pace", ("slow", "fast"))
        return tuple(ProbedQuestion((variable,)) for _ in range(count))

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a tuple of questions of one kind with their entries."""
        return _all(x, _is_question) or _all(x, _is_probed)


def observation_space() -> spaces.Dict:
    """Return the observation space of `AMemGym-v0`; the fields are described there."""
    return spaces.Dict(
        {
            "phase": spaces.Discrete(len(Phase)),
            "period": spaces.Discrete(COUNT_LIMIT),
            "session": spaces.Discrete(COUNT_LIMIT),
            "round": spaces.Discrete(COUNT_LIMIT),
            "time": UnicodeText(),
            "message": UnicodeText(),
            "memory": EntrySequence(),
            "stored": spaces.Discrete(COUNT_LIMIT),
            "questions": QuestionSequence(),
            "asked": TextSequence(),
        }
    )


def action_space() -> spaces.Dict:
    """Return the action space of `AMemGym-v0`; see `actions.py`."""
    return spaces.Dict(
        {
            "reply": UnicodeText(),
            "memory": OperationSequence(),
            "answers": AnswerSequence(),
            "values": ValueSequence(),
        }
    )


def _all(x: Any, is_item: Callable[[Any], bool]) -> bool:
    return isinstance(x, tuple) and all(map(is_item, x))


def _is_index(x: Any) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def _is_operation(x: Any) -> bool:
    if not isinstance(x, Operation):
        return False
    return isinstance(x.op, Op) and all(
        part is None or isinstance(part, str) for part in (x.entry_id, x.text)
    )


def _is_entry(x: Any) -> bool:
    if not isinstance(x, Entry) or not isinstance(x.turn, int):
        return False
    return all(isinstance(part, str) for part in (x.id, x.text, x.written_at, x.updated_at))


def _is_question(x: Any) -> bool:
    if not isinstance(x, Question) or not isinstance(x.text, str):
        return False
    return _all(x.choices, lambda item: isinstance(item, str)) and _all(x.memory, _is_entry)


def _is_probed(x: Any) -> bool:
    if not isinstance(x, ProbedQuestion) or not _all(x.memory, _is_entry):
        return False
    return _all(x.variables, lambda item: isinstance(item, Variable))
