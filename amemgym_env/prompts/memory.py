"""Prompts that write memory: fact extraction, decisions about entries, dictionary updates.

Paper: AMemGym, Section 4.1 (AWE and AWI).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from amemgym_env.agent import Entry, Op, Operation
from amemgym_env.errors import ParseError
from amemgym_env.prompts import parsing as replies
from amemgym_env.prompts.base import Message, Prompt, Role, Templates, message
from amemgym_env.text import storable

INFORMATION_TYPES: tuple[str, ...] = (
    "facts about the user's life, home, work, health and relations",
    "habits, routines, schedules and how often things are done",
    "preferences, budgets, limits and goals",
    "sizes, numbers, places, equipment and people involved",
    "changes: what is different from before",
)
"""What a memory should hold on to, unless a memory policy says otherwise."""


_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def entry(mark: str, text: str) -> str:
    """Return one entry of a list: its mark, then the text, further lines indented.

    So no text can look like another entry, id or turn.
    """
    return f"{mark} " + _BREAK.sub("\n  ", text)


def bullets(lines: Sequence[str]) -> str:
    """Return texts as a list with a dash in front of each."""
    return "\n".join(entry("-", line) for line in lines)


def transcript(messages: Sequence[Message]) -> str:
    """Return messages as text, each with its role in front."""
    return "\n".join(entry(f"{part['role']}:", part["content"]) for part in messages)


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
        found = replies.read_object(text, "facts").get("facts")
        if not isinstance(found, list) or not all(isinstance(fact, str) for fact in found):
            raise ParseError(f"expected a list of sentences under 'facts', found {found!r}")
        stripped = (storable(fact).strip() for fact in found)
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
        stored = [entry(f"[{one.id}]", one.text) for one in self.neighbours]
        values = {
            "neighbours": "\n".join(stored) if stored else "(none)",
            "facts": bullets(self.facts),
        }
        return [message("user", templates.fill(type(self), values))]

    def parse(self, text: str) -> tuple[Operation, ...]:
        """Return the operations; ids that do not exist are the bank's to refuse."""
        found = replies.read_object(text, "operations").get("operations")
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
    return Operation(Op(name.strip().upper()), entry_id, text and storable(text).strip())


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
            cleaned = None if value is None else storable(value).strip()
            if cleaned != "":
                changes.append(Labelled(storable(label).strip(), cleaned))
        return tuple(changes)
