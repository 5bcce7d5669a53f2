"""Prompts of an episode: replies, follow-ups of the user, exams, state queries.

The texts are the project's own. How they are put together (what the assistant sees, and where)
follows the benchmark: a system message with the memories, the short-term window, then the user's
message. Paper: AMemGym, Section 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from amemgym_env.agent import Question, Variable, shown_probe
from amemgym_env.errors import ParseError
from amemgym_env.prompts import parsing as replies
from amemgym_env.prompts.base import Message, Prompt, Role, Templates, message
from amemgym_env.prompts.memory import (
    DictionaryUpdate,
    FactExtraction,
    MemoryDecision,
    bullets,
    transcript,
)
from amemgym_env.text import storable

_ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Context:
    """What an assistant has before it when it speaks or answers."""

    memories: tuple[str, ...] | None = None
    """Long-term memories, last written last; None: the agent has none and no system message."""
    window: tuple[Message, ...] = ()
    """Messages kept verbatim, in order."""

    def render(self, templates: Templates) -> list[Message]:
        """Return the system message with the memories, if any, and the window."""
        if self.memories is None:
            return list(self.window)
        listed = bullets(self.memories) if self.memories else "(nothing yet)"
        text = templates.fill(SystemMemory, {"memories": listed})
        return [message("system", text), *self.window]


class _Text(Prompt[str]):
    """A prompt whose reply is free text."""

    def parse(self, text: str) -> str:
        """Return the reply without thoughts and outer space."""
        spoken = storable(replies.without_thoughts(text)).strip()
        if not spoken:
            raise ParseError("expected text, found an empty reply", "empty")
        return spoken


class SystemMemory(_Text):
    """Not a call of its own: the system message in which every assistant finds its memories."""

    kind: ClassVar[str] = "system_memory"
    role: ClassVar[Role] = "assistant"
    placeholders: ClassVar[tuple[str, ...]] = ("memories",)
    template: ClassVar[str] = """\
You are a personal assistant who has known this user for a long time.
What you remember about the user, oldest first (where two memories disagree, the later one holds):
{memories}

Use what you remember wherever it makes your reply fit this user better."""

    def render(self, templates: Templates) -> list[Message]:
        """Raise: this template is a part of other prompts."""
        raise TypeError("system_memory is rendered as a part of other prompts")


@dataclass(frozen=True)
class AssistantReply(_Text):
    """The assistant's turn in a conversation."""

    context: Context
    shown: str
    """The user's message as the assistant sees it."""
    kind: ClassVar[str] = "assistant_reply"
    role: ClassVar[Role] = "assistant"
    placeholders: ClassVar[tuple[str, ...]] = ("message",)
    template: ClassVar[str] = "{message}"

    def render(self, templates: Templates) -> list[Message]:
        """Return memories, window and the user's message."""
        text = templates.fill(type(self), {"message": self.shown})
        return [*self.context.render(templates), message("user", text)]


@dataclass(frozen=True)
class UserFollowUp(_Text):
    """The simulated user's next turn. The schema is given only to keep its values out."""

    profile: str
    date: str
    opener: str
    dialogue: tuple[Message, ...]
    """The last two messages."""
    variables: tuple[Variable, ...]
    kind: ClassVar[str] = "user_follow_up"
    role: ClassVar[Role] = "user"
    placeholders: ClassVar[tuple[str, ...]] = (
        "profile", "date", "opener", "dialogue", "variables"
    )  # fmt: skip
    template: ClassVar[str] = """\
Play the person described here, who is talking with an assistant.

Profile:
{profile}

Today is {date}. You began this conversation with:
{opener}

The last messages were:
{dialogue}

Go on with the conversation in one or two sentences, in your own voice: answer what you are asked, or ask on about the same matter. Never state, hint at or change any of the following personal details; if you are asked about one, stay vague:
{variables}

Write only what you say next."""

    def render(self, templates: Templates) -> list[Message]:
        """Return one user message."""
        values = {
            "profile": self.profile,
            "date": self.date,
            "opener": self.opener,
            "dialogue": transcript(self.dialogue),
            "variables": shown_probe(self.variables),
        }
        return [message("user", templates.fill(type(self), values))]


@dataclass(frozen=True)
class ExamAnswer(Prompt[int]):
    """One exam question, put like a user message; the result is the index shown, from 0."""

    context: Context
    question: Question
    kind: ClassVar[str] = "exam_answer"
    role: ClassVar[Role] = "exam"
    schema: ClassVar[Mapping[str, Any] | None] = _ANSWER_SCHEMA
    placeholders: ClassVar[tuple[str, ...]] = ("question",)
    template: ClassVar[str] = """\
{question}

Which of these answers fits me best as I am now? Reply with the number of one answer as JSON and nothing else: {"answer": <number>}"""

    def render(self, templates: Templates) -> list[Message]:
        """Return memories, window and the question with its numbered choices."""
        text = templates.fill(type(self), {"question": self.question.shown})
        return [*self.context.render(templates), message("user", text)]

    def parse(self, text: str) -> int:
        """Return the index of the choice, from 0."""
        return replies.read_choice(text, len(self.question.choices))


@dataclass(frozen=True)
class InformedAnswer(ExamAnswer):
    """The upper bound: an exam question with the true values in place of a memory."""

    kind: ClassVar[str] = "informed_answer"
    role: ClassVar[Role] = "upper_bound"


@dataclass(frozen=True)
class StateQuery(Prompt[tuple[int | ParseError | None, ...]]):
    """The values of all variables of one question, asked at once (diagnosis)."""

    context: Context
    variables: tuple[Variable, ...]
    kind: ClassVar[str] = "state_query"
    role: ClassVar[Role] = "probe"
    schema: ClassVar[Mapping[str, Any] | None] = {"type": "object"}
    placeholders: ClassVar[tuple[str, ...]] = ("variables",)
    template: ClassVar[str] = """\
What do you know about me as I am now? For each of the following, choose the value that holds for me today.
{variables}

Reply with one JSON object that maps each name to exactly one of its values, or to null where you do not know it, and nothing else."""

    def render(self, templates: Templates) -> list[Message]:
        """Return memories, window and the variables with the values that they can take."""
        text = templates.fill(type(self), {"variables": shown_probe(self.variables)})
        return [*self.context.render(templates), message("user", text)]

    def parse(self, text: str) -> tuple[int | ParseError | None, ...]:
        """Return for each variable a value's index, None (not known) or why it is unreadable."""
        listed = [(variable.name, variable.values) for variable in self.variables]
        return replies.read_values(replies.read_object(text), listed)


PLAYING: tuple[type[Prompt[Any]], ...] = (
    SystemMemory,
    AssistantReply,
    UserFollowUp,
    ExamAnswer,
    InformedAnswer,
    StateQuery,
    FactExtraction,
    MemoryDecision,
    DictionaryUpdate,
)
"""All prompts of an episode."""

KINDS: dict[str, type[Prompt[Any]]] = {prompt.kind: prompt for prompt in PLAYING}


def versions() -> dict[str, int]:
    """Return the version of every prompt's text, for results."""
    return {kind: prompt.version for kind, prompt in KINDS.items()}
