"""Base of all assistants: short-term window, and calls with memories in the context.

After a round its two messages join the window. When the window holds `freq + ns` messages or more,
the oldest `freq` leave it and are written to long-term memory. The window carries over sessions
and periods, counts in answers, and is part of the saved state. Paper: AMemGym, Section 4.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from amemgym_env.agent import (
    NO_ANSWER,
    UNSCORED,
    Answer,
    Entry,
    Exam,
    MemoryView,
    Operation,
    Probe,
    Turn,
    Value,
)
from amemgym_env.errors import ConfigError, ParseError
from amemgym_env.memory.bank import in_time_order
from amemgym_env.models.client import Models, Outcome
from amemgym_env.prompts.assistant import AssistantReply, Context, ExamAnswer, StateQuery
from amemgym_env.prompts.base import Message, message

ALL = -1
"""`top_k` of an agent that sees its whole memory."""


class Assistant(ABC):
    """An assistant whose long-term memory is the environment's bank."""

    memory: Literal["bank", "external"] = "bank"
    name: str

    def __init__(self, models: Models, freq: int = 2, ns: int = 4, top_k: int = 30) -> None:
        for setting, value, least in (("freq", freq, 1), ("ns", ns, 0), ("top_k", top_k, ALL)):
            if not isinstance(value, int) or value < least:
                raise ConfigError(
                    f"agent.{setting}: expected a whole number from {least}, found {value!r}"
                )
        self.models = models
        self.freq = freq
        self.ns = ns
        self.top_k = top_k
        self.window: list[Message] = []
        self.view: MemoryView | None = None

    @property
    def label(self) -> str:
        """The agent's name in tables, as the paper writes it: AWE-(freq, ns, topk)."""
        return f"{self.name}-{self.freq}-{self.ns}-{self.top_k}"

    def reset(self, view: MemoryView) -> None:
        """Begin an episode with an empty window."""
        self.view = view
        self.window = []

    def reply(self, turn: Turn) -> str:
        """Return the assistant's turn; empty when the model gave nothing to read."""
        outcome = self.models.ask(AssistantReply(self.context(turn.memory), turn.shown))
        return outcome.value or ""

    def write(self, turn: Turn, reply: str) -> Sequence[Operation]:
        """Add the round to the window; return what leaves it as operations."""
        self.window.append(message("user", turn.shown))
        if reply:
            self.window.append(message("assistant", reply))
        operations: list[Operation] = []
        while len(self.window) >= self.freq + self.ns:
            batch, self.window = self.window[: self.freq], self.window[self.freq :]
            operations.extend(self.store(tuple(batch)))
        return operations

    @abstractmethod
    def store(self, messages: tuple[Message, ...]) -> Sequence[Operation]:
        """Return the operations that write messages to long-term memory."""

    def context(self, memory: Sequence[Entry]) -> Context:
        """Return what the assistant has before it: memories in order of time, and the window."""
        memories = tuple(entry.text for entry in in_time_order(memory))
        return Context(memories, tuple(self.window))

    def answer(self, exam: Exam) -> Sequence[Answer]:
        """Return an answer to each question, all asked at once."""
        prompts = [ExamAnswer(self.context(asked.memory), asked) for asked in exam.questions]
        return [_answer(outcome) for outcome in self.models.ask_all(prompts)]

    def probe(self, probe: Probe) -> Sequence[Sequence[Value]]:
        """Return the values that the assistant takes to be true, all asked at once."""
        prompts = [
            StateQuery(self.context(asked.memory), asked.variables) for asked in probe.questions
        ]
        outcomes = self.models.ask_all(prompts)
        return [
            _values(outcome, len(asked.variables))
            for outcome, asked in zip(outcomes, probe.questions, strict=True)
        ]

    def state_dict(self) -> Mapping[str, Any]:
        """Return the window; the rest of the memory is the environment's."""
        return {"window": [dict(part) for part in self.window]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue with a saved window."""
        self.window = [message(part["role"], part["content"]) for part in state["window"]]


def _answer(outcome: Outcome[int]) -> Answer:
    if outcome.error is not None:
        return Answer(UNSCORED, outcome.error.reason)
    if outcome.value is None:
        return Answer(NO_ANSWER, outcome.cause)
    return Answer(outcome.value)


def _values(outcome: Outcome[tuple[int | ParseError | None, ...]], count: int) -> list[Value]:
    if outcome.error is not None:
        return [Value(UNSCORED, outcome.error.reason)] * count
    if outcome.value is None:
        return [Value(NO_ANSWER, outcome.cause)] * count
    return [_value(part) for part in outcome.value]


def _value(part: int | ParseError | None) -> Value:
    if part is None:
        return Value(NO_ANSWER, "no_answer")
    return Value(NO_ANSWER, part.cause) if isinstance(part, ParseError) else Value(part)
