"""Judge prompts that rate a finished set (meta-evaluation).

Paper: AMemGym, Section 3.5: exposure quality (0-2), state integrity of the dialogue, and agreement
with the true answers. The texts are the project's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from amemgym_env.prompts import parsing as replies
from amemgym_env.prompts.base import Role
from amemgym_env.prompts.generation.base import NUMBER, Step, listing


def _number_schema(name: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: NUMBER},
        "required": [name],
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class ExposureRating(Step[int]):
    """How well an utterance gives some values away: 0 not, 1 in part or ambiguously, 2 clearly."""

    utterance: str
    exposes: Mapping[str, str]
    schema_values: Mapping[str, tuple[str, ...]]
    """All values of the exposed variables."""
    kind: ClassVar[str] = "exposure_rating"
    role: ClassVar[Role] = "judge"
    schema: ClassVar[Mapping[str, Any] | None] = _number_schema("rating")
    placeholders: ClassVar[tuple[str, ...]] = ("utterance", "exposes")
    template: ClassVar[str] = """\
Rate how well a user's words give away some circumstances. The user said to an assistant:
{utterance}

They are meant to give away these, each of which could have the values listed:
{exposes}

The rating is 2 if an attentive listener can conclude every one of them, 1 if only in part or not for certain, 0 if not at all or something else.

Reply with JSON and nothing else: {"rating": 2}"""

    def values(self) -> Mapping[str, str]:
        """Return the utterance and what it is to give away."""
        rows = (
            {"variable": name, "value": value, "values": list(self.schema_values[name])}
            for name, value in self.exposes.items()
        )
        return {"utterance": self.utterance, "exposes": listing(rows)}

    def parse(self, text: str) -> int:
        """Return the rating."""
        return replies.read_number(text, "rating", 0, 2)


@dataclass(frozen=True)
class IntegrityRating(Step[int]):
    """Whether an utterance leaves the state as it is: 1 yes, 0 it contradicts or changes it."""

    utterance: str
    state: Mapping[str, str]
    kind: ClassVar[str] = "integrity_rating"
    role: ClassVar[Role] = "judge"
    schema: ClassVar[Mapping[str, Any] | None] = _number_schema("rating")
    placeholders: ClassVar[tuple[str, ...]] = ("utterance", "state")
    template: ClassVar[str] = """\
Rate whether a user's words leave what is known of the user as it is. The present circumstances:
{state}

The user said to an assistant:
{utterance}

The rating is 0 if a listener would conclude that one of these circumstances is different, or has changed, for this user now; 1 if not. What is said of other people, of the past, of wishes and of suppositions is no circumstance of the user now.

Reply with JSON and nothing else: {"rating": 1}"""

    def values(self) -> Mapping[str, str]:
        """Return the state and the utterance."""
        return {"utterance": self.utterance, "state": listing([dict(self.state)])}

    def parse(self, text: str) -> int:
        """Return the rating."""
        return replies.read_number(text, "rating", 0, 1)


@dataclass(frozen=True)
class AnswerAgreement(Step[int]):
    """Which choice a judge who knows the circumstances takes for right: its index from 0."""

    query: str
    circumstances: Mapping[str, str]
    choices: tuple[str, ...]
    kind: ClassVar[str] = "answer_agreement"
    role: ClassVar[Role] = "judge"
    schema: ClassVar[Mapping[str, Any] | None] = _number_schema("answer")
    placeholders: ClassVar[tuple[str, ...]] = ("query", "circumstances", "choices")
    template: ClassVar[str] = """\
Choose the answer that serves a user best. The user asked:
{query}

The circumstances of the user:
{circumstances}

The answers:
{choices}

Reply with the number of the best one as JSON and nothing else: {"answer": 1}"""

    def values(self) -> Mapping[str, str]:
        """Return the question, the circumstances and the choices, numbered from 1."""
        return {
            "query": self.query,
            "circumstances": listing([dict(self.circumstances)]),
            "choices": "\n".join(f"{n}. {text}" for n, text in enumerate(self.choices, start=1)),
        }

    def parse(self, text: str) -> int:
        """Return the choice's index."""
        return replies.read_choice(text, len(self.choices))


RATINGS = (ExposureRating, IntegrityRating, AnswerAgreement)
