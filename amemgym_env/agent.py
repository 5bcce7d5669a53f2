"""The `Agent` protocol and its types: turns, exams, probes, operations, answers.

This module is the whole interface between environment and agent. It knows nothing of scenarios: an
agent that imports it cannot reach the answer key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from amemgym_env.errors import Cause, Reason

NO_ANSWER = -1
"""The agent was asked and gave no (readable) answer: scores 0."""

UNSCORED = -2
"""The agent could not be asked (infrastructure, budget): not scored, NaN, counted."""


class Phase(IntEnum):
    """The kind of step that the environment waits for."""

    DIALOGUE = 0
    EXAM = 1
    PROBE = 2


class Op(StrEnum):
    """The four operations on a memory bank."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"


class Operation(NamedTuple):
    """One requested operation on the memory bank."""

    op: Op
    entry_id: str | None = None
    text: str | None = None

    @classmethod
    def add(cls, text: str) -> Operation:
        """Return an ADD of a text."""
        return cls(Op.ADD, None, text)

    @classmethod
    def update(cls, entry_id: str, text: str) -> Operation:
        """Return an UPDATE that replaces an entry's text."""
        return cls(Op.UPDATE, entry_id, text)

    @classmethod
    def delete(cls, entry_id: str) -> Operation:
        """Return a DELETE of an entry."""
        return cls(Op.DELETE, entry_id, None)

    @classmethod
    def noop(cls) -> Operation:
        """Return a NOOP."""
        return cls(Op.NOOP, None, None)


class Entry(NamedTuple):
    """One entry of the memory bank. Times are the scenario's (ISO 8601), never the clock's."""

    id: str
    text: str
    written_at: str
    updated_at: str
    turn: int
    """Number of the round that last wrote the entry, counted over the episode; newest = largest."""


class Answer(NamedTuple):
    """An agent's answer to one exam question."""

    choice: int
    """Index of the choice as shown (from 0), NO_ANSWER or UNSCORED."""
    cause: Cause | Reason | None = None
    """Why there is no choice, for the counts of a report; a `Reason` with UNSCORED."""


class Value(NamedTuple):
    """An agent's answer about one probed variable."""

    index: int  # type: ignore[assignment]  # hides `tuple.index`
    """Index of the value as listed (from 0), NO_ANSWER or UNSCORED."""
    cause: Cause | Reason | None = None


def shown_message(message: str, time: str, opening: bool) -> str:
    """Return the user's message as the assistant sees it.

    A session's opener carries the session's time on a line of its own; follow-ups are plain.
    This is also the retrieval query. Paper: AMemGym, Section 4.1.
    """
    return f"[Current time: {time}]\n{message}" if opening else message


def shown_question(text: str, choices: Sequence[str]) -> str:
    """Return an exam question as it is put to the assistant: choices numbered from 1."""
    lines = (f"{number}. {choice}" for number, choice in enumerate(choices, start=1))
    return "\n".join((text, "", *lines))


def shown_probe(variables: Sequence[Variable]) -> str:
    """Return the state query of one question: each variable with the values it can take."""
    return "\n".join(f"- {variable.name}: {' | '.join(variable.values)}" for variable in variables)


@dataclass(frozen=True, slots=True)
class Turn:
    """One user turn, with what the environment retrieved for it."""

    period: int
    session: int
    round: int
    time: str
    message: str
    memory: tuple[Entry, ...] = ()
    asked: tuple[str, ...] = ()
    """Texts of the questions of past exams; empty before the first exam, or when withheld."""

    @property
    def shown(self) -> str:
        """The message as the assistant sees it (an opener with its time)."""
        return shown_message(self.message, self.time, self.round == 0)


@dataclass(frozen=True, slots=True)
class Question:
    """One exam question as shown, with the entries retrieved for it."""

    text: str
    choices: tuple[str, ...]
    memory: tuple[Entry, ...] = ()

    @property
    def shown(self) -> str:
        """The question with its numbered choices."""
        return shown_question(self.text, self.choices)


@dataclass(frozen=True, slots=True)
class Exam:
    """All questions of a period's exam. Answering it changes neither memory nor dialogue."""

    period: int
    time: str
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A probed state variable and the values that it can take."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProbedQuestion:
    """All variables of one question, asked about at once, with the entries retrieved for them."""

    variables: tuple[Variable, ...]
    memory: tuple[Entry, ...] = ()

    @property
    def shown(self) -> str:
        """The variables with the values they can take, one a line."""
        return shown_probe(self.variables)


@dataclass(frozen=True, slots=True)
class Probe:
    """The state query after a period (diagnosis): one for each exam question."""

    period: int
    time: str
    questions: tuple[ProbedQuestion, ...]


@runtime_checkable
class MemoryView(Protocol):
    """A read-only view of the environment's memory bank."""

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first."""
        ...

    def search(self, text: str, k: int) -> tuple[Entry, ...]:
        """Return the `k` entries most similar to `text`, most similar first."""
        ...


@runtime_checkable
class Agent(Protocol):
    """An assistant with a memory.

    It keeps its long-term memory in the environment's bank, through the operations that `write`
    returns, or has one of its own (`memory = "external"`, no operations). Check an implementation
    with `amemgym_env.testing.check_agent`.
    """

    def reset(self, view: MemoryView) -> None:
        """Begin a new episode with an empty memory; `view` shows the bank while it lasts."""
        ...

    def reply(self, turn: Turn) -> str:
        """Return the assistant's turn."""
        ...

    def write(self, turn: Turn, reply: str) -> Sequence[Operation]:
        """Return the operations on the bank after the round; they are applied in order."""
        ...

    def answer(self, exam: Exam) -> Sequence[Answer | int]:
        """Return one answer for each question. Must not change what the agent remembers."""
        ...

    def probe(self, probe: Probe) -> Sequence[Sequence[Value | int]]:
        """Return a value for each variable of each question. Must not change the memory."""
        ...

    def state_dict(self) -> Mapping[str, Any]:
        """Return everything that the next calls depend on, as a JSON object, without secrets."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        ...
