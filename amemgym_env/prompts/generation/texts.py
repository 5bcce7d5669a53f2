"""Prompts of a scenario's texts, and readers that check them (round trip).

An utterance must yield the values that it is to give away, and an answer the combination that it is
for; a reader that sees the text alone says so. Paper: AMemGym, Section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

from amemgym_env.agent import Variable
from amemgym_env.errors import ParseError
from amemgym_env.prompts import parsing as replies
from amemgym_env.prompts.base import Message, Role, Templates
from amemgym_env.prompts.generation.base import (
    NUMBER,
    TEXT,
    Repair,
    Step,
    list_schema,
    listing,
    numbered_texts,
    read_rows,
    read_text,
    variable_rows,
    with_repairs,
)
from amemgym_env.prompts.judge import ExposureJudgement

_TEXT_SCHEMA = {
    "type": "object",
    "properties": {"text": TEXT},
    "required": ["text"],
    "additionalProperties": False,
}


class Attempt(NamedTuple):
    """A text that was not understood as it should be, and what a reader made of it."""

    text: str
    problem: str


def attempt_rows(attempts: Sequence[Attempt]) -> str:
    """Return attempts as JSON, one a line, the latest last.

    A call holds all of them. No two calls are then the same, and a model that is asked the same twice
    says the same twice.
    """
    return listing({"text": found.text, "problem": found.problem} for found in attempts)


class SessionContent(NamedTuple):
    """What one utterance is to give away, and why it came about."""

    exposes: Mapping[str, str]
    variables: tuple[Variable, ...]
    event: str | None = None

    def row(self, number: int | None = None) -> dict[str, Any]:
        """Return it as an object of JSON, numbered or not."""
        row: dict[str, Any] = {} if number is None else {"number": number}
        row["exposes"] = dict(self.exposes)
        row["values"] = {part.name: list(part.values) for part in self.variables}
        return row if self.event is None else {**row, "event": self.event}


_RULES_OF_UTTERANCES = """\
- It is one or two sentences with a request for help or advice, in the person's own voice, in {language}, as one would begin a conversation.
- From it, each value under "exposes" can be concluded as the present state and told from the other values of its variable; no other personal circumstance can.
- It does not name the variable or the value, and uses other words than their names do; it lets the value be understood from what is said.
- It is no announcement: the value comes in beside what is asked."""


@dataclass(frozen=True)
class OpeningUtterances(Step[tuple[str, ...]]):
    """The first utterances of a period's sessions."""

    profile: str
    date: str
    tellings: tuple[SessionContent, ...]
    language: str
    kind: ClassVar[str] = "opening_utterances"
    schema: ClassVar[Mapping[str, Any] | None] = list_schema(
        "utterances", {"number": NUMBER, "text": TEXT}
    )
    placeholders: ClassVar[tuple[str, ...]] = ("profile", "date", "tellings", "language")
    template: ClassVar[str] = f"""\
Write how one person begins some conversations with an assistant, in the days before {{date}}.

The person:
{{profile}}

The conversations, with what each must give away ("values" are the values that a variable can have):
{{tellings}}

For each number write one utterance:
{_RULES_OF_UTTERANCES}

Reply with JSON and nothing else: {{"utterances": [{{"number": 1, "text": "..."}}]}}"""

    def values(self) -> Mapping[str, str]:
        """Return the conversations, numbered from 1."""
        rows = listing(telling.row(n) for n, telling in enumerate(self.tellings, start=1))
        return {
            "profile": self.profile,
            "date": self.date,
            "tellings": rows,
            "language": self.language,
        }

    def parse(self, text: str) -> tuple[str, ...]:
        """Return one utterance for every conversation."""
        rows = read_rows(replies.read_object(text, "utterances"), "utterances")
        return numbered_texts(rows, "text", len(self.tellings))


@dataclass(frozen=True)
class UtteranceRefinement(Step[str]):
    """A better utterance in place of one that was not understood as it should be."""

    profile: str
    telling: SessionContent
    attempts: tuple[Attempt, ...]
    language: str
    kind: ClassVar[str] = "utterance_refinement"
    schema: ClassVar[Mapping[str, Any] | None] = _TEXT_SCHEMA
    placeholders: ClassVar[tuple[str, ...]] = (
        "profile", "telling", "attempts", "language"
    )  # fmt: skip
    template: ClassVar[str] = f"""\
Rewrite how one person begins a conversation with an assistant.

The person:
{{profile}}

What it must give away ("values" are the values that a variable can have):
{{telling}}

The attempts so far, each with what a reader made of it:
{{attempts}}

Write another.

The rules:
{_RULES_OF_UTTERANCES}

Reply with JSON and nothing else: {{"text": "..."}}"""

    def values(self) -> Mapping[str, str]:
        """Return the utterance and what is wrong with it."""
        return {
            "profile": self.profile,
            "telling": listing([self.telling.row()]),
            "attempts": attempt_rows(self.attempts),
            "language": self.language,
        }

    def parse(self, text: str) -> str:
        """Return the new utterance."""
        return read_text(replies.read_object(text, "text"), "text")


@dataclass(frozen=True)
class UtteranceReading(ExposureJudgement):
    """The judge's prompt about one utterance, repaired like a step."""

    repairs: tuple[Repair, ...] = field(default=(), kw_only=True)

    def render(self, templates: Templates) -> list[Message]:
        """Return the judge's message and the repairs."""
        return with_repairs(super().render(templates), self.repairs, templates)

    def repaired(self, reply: str, problem: str) -> Self:
        """Return the same call after one more unusable reply."""
        return replace(self, repairs=(*self.repairs, Repair(reply, problem)))


Combination = tuple[str, ...]
"""A value for each variable of a question, in order."""


def combination_rows(
    variables: Sequence[Variable], combinations: Sequence[Combination]
) -> list[dict[str, Any]]:
    """Return combinations as objects of JSON, numbered from 1."""
    names = [part.name for part in variables]
    return [
        {"number": number, "circumstances": dict(zip(names, combination, strict=True))}
        for number, combination in enumerate(combinations, start=1)
    ]


_RULES_OF_ANSWERS = """\
- It is two or three sentences of practical advice in {language}, to the person, for exactly these circumstances: it would serve worse under any of the others.
- It does not state the circumstances, and says nothing of the person; they show in what is advised.
- All answers are about equally long and in one style."""


@dataclass(frozen=True)
class PersonalAnswers(Step[tuple[str, ...]]):
    """An answer to one question for each of some combinations of circumstances."""

    profile: str
    query: str
    variables: tuple[Variable, ...]
    combinations: tuple[Combination, ...]
    language: str
    kind: ClassVar[str] = "personal_answers"
    schema: ClassVar[Mapping[str, Any] | None] = list_schema(
        "answers", {"number": NUMBER, "text": TEXT}
    )
    placeholders: ClassVar[tuple[str, ...]] = (
        "profile", "query", "variables", "combinations", "language"
    )  # fmt: skip
    template: ClassVar[str] = f"""\
Answer one person's question, for each of several circumstances.

The person:
{{profile}}

The question:
{{query}}

Variables with their possible values:
{{variables}}

The circumstances:
{{combinations}}

For each number write one answer:
{_RULES_OF_ANSWERS}

Reply with JSON and nothing else: {{"answers": [{{"number": 1, "text": "..."}}]}}"""

    def values(self) -> Mapping[str, str]:
        """Return the question and its combinations."""
        return {
            "profile": self.profile,
            "query": self.query,
            "variables": variable_rows(self.variables),
            "combinations": listing(combination_rows(self.variables, self.combinations)),
            "language": self.language,
        }

    def parse(self, text: str) -> tuple[str, ...]:
        """Return one answer for every combination."""
        rows = read_rows(replies.read_object(text, "answers"), "answers")
        return numbered_texts(rows, "text", len(self.combinations))


@dataclass(frozen=True)
class AnswerReading(Step[int | None]):
    """Which of the combinations an answer is for: its index from 0; None: none or several."""

    query: str
    variables: tuple[Variable, ...]
    combinations: tuple[Combination, ...]
    answer: str
    kind: ClassVar[str] = "answer_reading"
    role: ClassVar[Role] = "judge"
    schema: ClassVar[Mapping[str, Any] | None] = {
        "type": "object",
        "properties": {"number": NUMBER},
        "required": ["number"],
        "additionalProperties": False,
    }
    placeholders: ClassVar[tuple[str, ...]] = ("query", "combinations", "answer")
    template: ClassVar[str] = """\
A person asked:
{query}

The answer was:
{answer}

Under which of these circumstances of the person does this answer serve best?
{combinations}

Reply with its number as JSON and nothing else, 0 if none or several are served alike: {"number": 1}"""

    def values(self) -> Mapping[str, str]:
        """Return the question, the answer and the combinations."""
        rows = listing(combination_rows(self.variables, self.combinations))
        return {"query": self.query, "answer": self.answer, "combinations": rows}

    def parse(self, text: str) -> int | None:
        """Return the combination's index."""
        number = replies.read_number(text, "number", 0, len(self.combinations))
        return number - 1 if number else None


@dataclass(frozen=True)
class AnswerRefinement(Step[str]):
    """A better answer in place of one that was not understood as it should be."""

    profile: str
    query: str
    variables: tuple[Variable, ...]
    combination: Combination
    others: tuple[str, ...]
    """Answers to the same question for other circumstances."""
    attempts: tuple[Attempt, ...]
    language: str
    kind: ClassVar[str] = "answer_refinement"
    schema: ClassVar[Mapping[str, Any] | None] = _TEXT_SCHEMA
    placeholders: ClassVar[tuple[str, ...]] = (
        "profile", "query", "variables", "combination", "others", "attempts", "language"
    )  # fmt: skip
    template: ClassVar[str] = f"""\
Rewrite the answer to one person's question.

The person:
{{profile}}

The question:
{{query}}

Variables with their possible values:
{{variables}}

The circumstances that the answer is for:
{{combination}}

The attempts so far, each with what a reader made of it:
{{attempts}}

Write another.

Answers for other circumstances, from which it must differ:
{{others}}

The rules:
{_RULES_OF_ANSWERS}

Reply with JSON and nothing else: {{"text": "..."}}"""

    def values(self) -> Mapping[str, str]:
        """Return the answer and what is wrong with it."""
        names = [part.name for part in self.variables]
        circumstances = dict(zip(names, self.combination, strict=True))
        return {
            "profile": self.profile,
            "query": self.query,
            "variables": variable_rows(self.variables),
            "combination": listing([{"circumstances": circumstances}]),
            "others": "\n".join(f"- {text}" for text in self.others) or "(none)",
            "attempts": attempt_rows(self.attempts),
            "language": self.language,
        }

    def parse(self, text: str) -> str:
        """Return the new answer, another than those for other circumstances."""
        found = read_text(replies.read_object(text, "text"), "text")
        if found in self.others:
            raise ParseError("expected another answer than for other circumstances, found one")
        return found
