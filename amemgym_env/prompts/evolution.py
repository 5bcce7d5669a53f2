"""Prompts of self-evolution: proposals of a better memory policy from feedback.

The policy is the list of information types in the prompts that write memory, or the whole text of
one such prompt. Paper: AMemGym, Section 5 (self-evolution); the texts are the project's own.

In a prompt that a model wrote, `{messages}` and the other names of the call are filled, in one
pass; every other brace is plain text, and `{{messages}}` is the filled text between two braces.
Nothing is escaped or taken back, so saving, loading and evolving again never changes a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from amemgym_env.errors import ParseError
from amemgym_env.prompts import parsing as replies
from amemgym_env.prompts.base import Message, Prompt, Role, Templates, message
from amemgym_env.prompts.memory import DictionaryUpdate, FactExtraction, bullets
from amemgym_env.text import storable

MOST_TYPES = 60
MOST_CHARACTERS = 12_000
"""A longer policy is refused: it would be paid for with every message."""

WRITES: dict[str, type[Prompt[Any]]] = {
    prompt.kind: prompt for prompt in (FactExtraction, DictionaryUpdate)
}
"""The prompts whose whole text can be evolved."""

_BLOCKS = {
    "information_types": "Look for:\n{information_types}",
    "messages": "New messages:\n{messages}",
    "memories": "The memory holds now:\n{memories}",
}


@dataclass(frozen=True)
class TypesEvolution(Prompt[tuple[str, ...]]):
    """A better list of information types."""

    types: tuple[str, ...]
    feedback: str
    number: int = 1
    """Which of `count` proposals this is, from 1."""
    count: int = 1
    kind: ClassVar[str] = "types_evolution"
    role: ClassVar[Role] = "memory"
    schema: ClassVar[Mapping[str, Any] | None] = {
        "type": "object",
        "properties": {"information_types": {"type": "array", "items": {"type": "string"}}},
        "required": ["information_types"],
        "additionalProperties": False,
    }
    placeholders: ClassVar[tuple[str, ...]] = ("types", "feedback", "number", "count")
    template: ClassVar[str] = """\
A personal assistant keeps a memory of its user. When it writes memory it looks for certain types of information. Improve the list, so that the memory holds what later questions need.

The list now:
{types}

Feedback:
{feedback}

Keep what serves, drop what does not, add what was missing. Name types of information, never the user's own values or answers. A long list makes each type matter less. This is proposal {number} of {count}: let proposals differ.

Reply with the whole new list as JSON and nothing else: {"information_types": ["...", ...]}"""

    def render(self, templates: Templates) -> list[Message]:
        """Return one user message."""
        values = {
            "types": bullets(self.types),
            "feedback": self.feedback,
            "number": str(self.number),
            "count": str(self.count),
        }
        return [message("user", templates.fill(type(self), values))]

    def parse(self, text: str) -> tuple[str, ...]:
        """Return the list, each type once, as one line."""
        found = replies.read_object(text, "information_types").get("information_types")
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise ParseError(f"expected a list of texts under 'information_types', found {found!r}")
        lines = (" ".join(storable(item).split()) for item in found)
        types = tuple(dict.fromkeys(line for line in lines if line))
        if not types:
            raise ParseError("expected at least one information type, found none", "empty")
        if len(types) > MOST_TYPES or sum(map(len, types)) > MOST_CHARACTERS:
            raise ParseError(
                f"expected at most {MOST_TYPES} types and {MOST_CHARACTERS} characters, found "
                f"{len(types)} and {sum(map(len, types))}"
            )
        return types


@dataclass(frozen=True)
class PromptEvolution(Prompt[str]):
    """A better text of a whole prompt that writes memory."""

    prompt: str
    names: tuple[str, ...]
    """Names that are filled when the prompt is used; the text must hold each."""
    feedback: str
    number: int = 1
    count: int = 1
    kind: ClassVar[str] = "prompt_evolution"
    role: ClassVar[Role] = "memory"
    schema: ClassVar[Mapping[str, Any] | None] = {
        "type": "object",
        "properties": {"prompt": {"type": "string"}},
        "required": ["prompt"],
        "additionalProperties": False,
    }
    placeholders: ClassVar[tuple[str, ...]] = ("prompt", "names", "feedback", "number", "count")
    template: ClassVar[str] = """\
A personal assistant keeps a memory of its user. A model writes it with the prompt below. Improve the prompt, so that the memory holds what later questions need.

<prompt>
{prompt}
</prompt>

Feedback:
{feedback}

Keep the form of the reply that the prompt asks for, and these names in braces, each once, where their contents belong: {names}. Name types of information, never the user's own values or answers. This is proposal {number} of {count}: let proposals differ.

Reply with the whole new prompt as JSON and nothing else: {"prompt": "..."}"""

    def render(self, templates: Templates) -> list[Message]:
        """Return one user message."""
        values = {
            "prompt": self.prompt,
            "names": ", ".join(f"{{{name}}}" for name in self.names),
            "feedback": self.feedback,
            "number": str(self.number),
            "count": str(self.count),
        }
        return [message("user", templates.fill(type(self), values))]

    def parse(self, text: str) -> str:
        """Return the prompt; names that it lacks are `repaired`'s to add."""
        found = replies.read_object(text, "prompt").get("prompt")
        if not isinstance(found, str):
            raise ParseError(f"expected text under 'prompt', found {found!r}")
        cleaned = storable(found).strip()
        if not cleaned:
            raise ParseError("expected a prompt, found an empty one", "empty")
        if len(cleaned) > MOST_CHARACTERS:
            raise ParseError(f"expected at most {MOST_CHARACTERS} characters, found {len(cleaned)}")
        return cleaned


class Repaired(NamedTuple):
    """A prompt's text with every name that its call needs."""

    text: str
    added: tuple[str, ...]
    """Names that were missing, each added once in a block of its own at the end."""


def repaired(prompt: type[Prompt[Any]], text: str) -> Repaired:
    """Return a prompt's text with the placeholders that it must have; a doubled one may stay."""
    missing = tuple(name for name in prompt.placeholders if f"{{{name}}}" not in text)
    return Repaired("\n\n".join([text, *(_BLOCKS[name] for name in missing)]), missing)


EVOLVING: tuple[type[Prompt[Any]], ...] = (TypesEvolution, PromptEvolution)
"""All prompts of an evolution."""
