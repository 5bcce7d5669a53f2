"""Generation step: base of the prompts, with repair of unusable replies.

The text of a call holds its subject as JSON, one object a line. Replies are objects that hold
one list, which providers can hold a model to.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from amemgym_env.agent import Variable
from amemgym_env.errors import ParseError
from amemgym_env.prompts import parsing as replies
from amemgym_env.prompts.base import Message, Prompt, Role, Templates, message
from amemgym_env.text import storable

T = TypeVar("T")


class Repair(NamedTuple):
    """A reply that could not be used, and why."""

    reply: str
    problem: str


class RepairNote(Prompt[str]):
    """Part of other prompts: the note after a reply that could not be used."""

    kind: ClassVar[str] = "generation_repair"
    role: ClassVar[Role] = "generation"
    placeholders: ClassVar[tuple[str, ...]] = ("problem",)
    template: ClassVar[str] = """\
That reply cannot be used: {problem}.
Give the whole reply again, corrected, in the form that was asked for and nothing else."""

    def render(self, templates: Templates) -> list[Message]:
        """Raise: this template is a part of other prompts."""
        raise TypeError("generation_repair is rendered as a part of other prompts")

    def parse(self, text: str) -> str:
        """Raise: this template is a part of other prompts."""
        raise TypeError("generation_repair has no reply")


def with_repairs(
    messages: list[Message], repairs: Sequence[Repair], templates: Templates
) -> list[Message]:
    """Return the messages of a call, followed by its unusable replies and what was wrong."""
    for reply, problem in repairs:
        note = templates.fill(RepairNote, {"problem": problem.rstrip(".")})
        # Some providers refuse an empty message of the assistant.
        messages = [*messages, message("assistant", reply or "(nothing)"), message("user", note)]
    return messages


@dataclass(frozen=True)
class Step(Prompt[T]):
    """One step of the generation: a user message, and what was wrong with earlier replies."""

    repairs: tuple[Repair, ...] = field(default=(), kw_only=True)
    role: ClassVar[Role] = "generation"

    @abstractmethod
    def values(self) -> Mapping[str, str]:
        """Return the contents of the placeholders."""

    def render(self, templates: Templates) -> list[Message]:
        """Return the call's user message and the repairs."""
        text = templates.fill(type(self), self.values())
        return with_repairs([message("user", text)], self.repairs, templates)

    def repaired(self, reply: str, problem: str) -> Self:
        """Return the same call after one more unusable reply."""
        return replace(self, repairs=(*self.repairs, Repair(reply, problem)))


def listing(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as JSON, one a line."""
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows) or "(none)"


def variable_rows(variables: Iterable[Variable]) -> str:
    """Return variables with their values as JSON, one a line."""
    return listing({"variable": part.name, "values": list(part.values)} for part in variables)


def list_schema(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a reply that holds one list of objects."""
    item = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {name: {"type": "array", "items": item}},
        "required": [name],
        "additionalProperties": False,
    }


TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "integer"}
TEXTS: Mapping[str, Any] = {"type": "array", "items": TEXT}


def read_rows(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the list of objects under `name` in a reply.

    Raises:
        ParseError: there is none, or it holds something else.
    """
    found = answer.get(name)
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise ParseError(f"expected a list of objects under {name!r}, found {found!r:.200}")
    return found


def read_text(row: Mapping[str, Any], name: str) -> str:
    """Return the text under `name`, as one line.

    Raises:
        ParseError: there is none, or it is empty.
    """
    found = row.get(name)
    if not isinstance(found, str) or not found.strip():
        raise ParseError(f"expected text under {name!r} in each object, found {row!r:.200}")
    return " ".join(storable(found).split())


def numbered_texts(rows: Sequence[Mapping[str, Any]], name: str, count: int) -> tuple[str, ...]:
    """Return the texts that a reply gives for the numbers 1..count, in order, all distinct.

    Raises:
        ParseError: a number is missing, unknown or there twice, or two texts are the same.
    """
    found: dict[int, str] = {}
    for row in rows:
        number = replies.number_of(row.get("number"))
        if number is None or not 1 <= number <= count:
            raise ParseError(f"expected numbers from 1 to {count}, found {row.get('number')!r}")
        if number in found:
            raise ParseError(f"expected each number once, found {number} twice")
        found[number] = read_text(row, name)
    missing = [number for number in range(1, count + 1) if number not in found]
    if missing:
        raise ParseError(f"expected the numbers 1 to {count}, found none for {missing}")
    texts = tuple(found[number] for number in range(1, count + 1))
    if len(set(texts)) != count:
        raise ParseError("expected different texts, found one of them twice")
    return texts


def read_state(rows: Sequence[Mapping[str, Any]], variables: Sequence[Variable]) -> dict[str, str]:
    """Return the value that a reply gives each variable.

    Raises:
        ParseError: a variable is missing, unknown or there twice, or has no allowed value.
    """
    given: dict[str, Any] = {}
    known = {replies.normal(part.name) for part in variables}
    for row in rows:
        name = read_text(row, "variable")
        if replies.normal(name) not in known:
            raise ParseError(f"expected variables of {[v.name for v in variables]}, found {name!r}")
        if replies.normal(name) in map(replies.normal, given):
            raise ParseError(f"expected each variable once, found {name!r} twice")
        given[name] = row.get("value")
    state = {}
    read = replies.read_values(given, [(part.name, part.values) for part in variables])
    for part, index in zip(variables, read, strict=True):
        if isinstance(index, ParseError):
            raise index
        if index is None:
            raise ParseError(f"expected a value for {part.name!r}, found null")
        state[part.name] = part.values[index]
    return state
