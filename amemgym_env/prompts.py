"""Every call of a language model that playing and scoring an episode needs.

The texts are the project's own. How they are put together (what the assistant sees, and where)
follows the benchmark: a system message with the memories, the short-term window, then the user's
message. Paper: AMemGym, Section 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from amemgym_env import replies
from amemgym_env.errors import ParseError
from amemgym_env.prompt import Message, Prompt, Role, Templates, message
from amemgym_env.turn import Entry, Op, Operation, Question, Variable, shown_probe

INFORMATION_TYPES: tuple[str, ...] = (
    "facts about the user's life, home, work, health and relations",
    "habits, routines, schedules and how often things are done",
    "preferences, budgets, limits and goals",
    "sizes, numbers, places, equipment and people involved",
    "changes: what is different from before",
)
"""What a memory should hold on to, unless a memory policy says otherwise."""

_ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}


def bullets(lines: Sequence[str]) -> str:
    """Return lines as a list with a dash in front of each."""
    return "\n".join(f"- {line}" for line in lines)


def transcript(messages: Sequence[Message]) -> str:
    """Return messages as text, each with its role in front."""
    return "\n".join(f"{part['role']}: {part['content']}" for part in messages)


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
        spoken = replies.clean(replies.without_thoughts(text)).strip()
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
    """The simulated user's next turn. It is told the schema only to keep its values to itself."""

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


@dataclass(frozen=True)
class FactExtraction(Prompt[tuple[str, ...]]):
    """The facts about the user in some messages, one sentence each."""

    messages: tuple[Message, ...]
    information_types: tuple[str, ...] = INFORMATION_TYPES
    kind: ClassVar[str] = "fact_extraction"
    role: ClassVar[Role] = "memory"
    schema: ClassVar[Mapping[str, Any] | None] = {
        "type": "object",
        "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
        "required": ["facts"],
        "additionalProperties": False,
    }
    placeholders: ClassVar[tuple[str, ...]] = ("information_types", "messages")
    template: ClassVar[str] = """\
Read this part of a conversation and list what it tells about the user as they are now.

Look for:
{information_types}

Only facts about the user, also those that are implied. Nothing about other people, wishes, hypothetical or past circumstances, and nothing that the assistant merely suggests. One short, self-contained sentence for each fact.

Conversation:
{messages}

Reply with JSON and nothing else: {"facts": ["...", ...]} ({"facts": []} when there are none)."""

    def render(self, templates: Templates) -> list[Message]:
        """Return one user message."""
        values = {
            "information_types": bullets(self.information_types),
            "messages": transcript(self.messages),
        }
        return [message("user", templates.fill(type(self), values))]

    def parse(self, text: str) -> tuple[str, ...]:
        """Return the facts, without empty ones and repetitions."""
        found = replies.read_object(text).get("facts")
        if not isinstance(found, list) or not all(isinstance(fact, str) for fact in found):
            raise ParseError(f"expected a list of sentences under 'facts', found {found!r}")
        stripped = (replies.clean(fact).strip() for fact in found)
        return tuple(dict.fromkeys(fact for fact in stripped if fact))


@dataclass(frozen=True)
class MemoryDecision(Prompt[tuple[Operation, ...]]):
    """What to do with new facts, given the stored memories most similar to them."""

    facts: tuple[str, ...]
    neighbours: tuple[Entry, ...]
    kind: ClassVar[str] = "memory_decision"
    role: ClassVar[Role] = "memory"
    schema: ClassVar[Mapping[str, Any] | None] = {
        "type": "object",
        "properties": {
            "operations": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "op": {"type": "string", "enum": [op.value for op in Op]},
                        "id": {"type": ["string", "null"]},
                        "text": {"type": ["string", "null"]},
                    },
                    "required": ["op", "id", "text"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["operations"],
        "additionalProperties": False,
    }
    placeholders: ClassVar[tuple[str, ...]] = ("neighbours", "facts")
    template: ClassVar[str] = """\
You keep the memory of a personal assistant up to date. Stored memories, each with its id:
{neighbours}

New facts about the user, the latest there are:
{facts}

For each new fact choose one operation:
- ADD: nothing stored is about this; store the fact.
- UPDATE: a stored memory is about the same thing and no longer holds; replace its text by the new one.
- DELETE: a stored memory no longer holds and nothing replaces it.
- NOOP: a stored memory already says it.

Reply with JSON and nothing else: {"operations": [{"op": "ADD", "id": null, "text": "..."}, {"op": "UPDATE", "id": "<id>", "text": "..."}, ...]}"""

    def render(self, templates: Templates) -> list[Message]:
        """Return one user message."""
        stored = [f"[{entry.id}] {entry.text}" for entry in self.neighbours]
        values = {
            "neighbours": "\n".join(stored) if stored else "(none)",
            "facts": bullets(self.facts),
        }
        return [message("user", templates.fill(type(self), values))]

    def parse(self, text: str) -> tuple[Operation, ...]:
        """Return the operations; ids that do not exist are the bank's to refuse."""
        found = replies.read_object(text).get("operations")
        if not isinstance(found, list):
            raise ParseError(f"expected a list under 'operations', found {found!r}")
        return tuple(_operation(item) for item in found)


def _operation(item: Any) -> Operation:
    if not isinstance(item, dict):
        raise ParseError(f"expected an operation as a JSON object, found {item!r}")
    name, entry_id, text = item.get("op"), item.get("id"), item.get("text")
    if not isinstance(name, str) or name.strip().upper() not in Op.__members__:
        raise ParseError(f"expected 'op' to be one of {[op.value for op in Op]}, found {name!r}")
    if isinstance(entry_id, int) and not isinstance(entry_id, bool):
        entry_id = str(entry_id)
    if not isinstance(entry_id, str | None) or not isinstance(text, str | None):
        raise ParseError(f"expected 'id' and 'text' to be text or null, found {item!r}")
    entry_id = entry_id if entry_id is None else entry_id.strip().strip("[]")
    return Operation(Op(name.strip().upper()), entry_id, text and replies.clean(text).strip())


class Labelled(NamedTuple):
    """A change of an in-context memory: a label and its new text; None forgets the label."""

    label: str
    text: str | None


@dataclass(frozen=True)
class DictionaryUpdate(Prompt[tuple[Labelled, ...]]):
    """The update of an in-context memory: labels with texts, merged into the dictionary."""

    memories: tuple[str, ...]
    messages: tuple[Message, ...]
    information_types: tuple[str, ...] = INFORMATION_TYPES
    kind: ClassVar[str] = "dictionary_update"
    role: ClassVar[Role] = "memory"
    schema: ClassVar[Mapping[str, Any] | None] = {"type": "object"}
    placeholders: ClassVar[tuple[str, ...]] = ("memories", "information_types", "messages")
    template: ClassVar[str] = """\
You keep what a personal assistant remembers about its user as a dictionary of labels and texts. It holds now:
{memories}

Read the new messages and note what they tell about the user as they are now.

Look for:
{information_types}

New messages:
{messages}

Reply with one JSON object and nothing else, with only what is new or different: a known label replaces its text, a new label adds one, null forgets a label. {} when nothing is new."""

    def render(self, templates: Templates) -> list[Message]:
        """Return one user message."""
        values = {
            "memories": bullets(self.memories) if self.memories else "(nothing yet)",
            "information_types": bullets(self.information_types),
            "messages": transcript(self.messages),
        }
        return [message("user", templates.fill(type(self), values))]

    def parse(self, text: str) -> tuple[Labelled, ...]:
        """Return the changes. Values must be text, a number, a truth value or null, never nested."""
        changes = []
        for label, value in replies.read_object(text).items():
            if isinstance(value, bool):
                value = "yes" if value else "no"
            elif isinstance(value, int | float):
                value = str(value)
            if not isinstance(value, str | None):
                raise ParseError(f"expected text or null under {label!r}, found {value!r}")
            cleaned = None if value is None else replies.clean(value).strip()
            if cleaned != "":
                changes.append(Labelled(replies.clean(label).strip(), cleaned))
        return tuple(changes)


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
"""All prompts of an episode; golden texts of each stand in the tests."""

KINDS: dict[str, type[Prompt[Any]]] = {prompt.kind: prompt for prompt in PLAYING}


def versions() -> dict[str, int]:
    """Return the version of every prompt's text, for results."""
    return {kind: prompt.version for kind, prompt in KINDS.items()}
