"""Prompts of a persona's questions and of the state schema.

Paper: AMemGym, Section 3.2 (structured data generation); the texts are the project's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, NamedTuple

from amemgym_env.agent import Variable
from amemgym_env.errors import ParseError
from amemgym_env.prompts import parsing as replies
from amemgym_env.prompts.generation.base import (
    TEXT,
    TEXTS,
    Step,
    list_schema,
    listing,
    read_rows,
    read_text,
)

MOST_VALUES = 4
"""Values of a variable at most; the arithmetic of the settings counts on it."""

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_VALUE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


class Draft(NamedTuple):
    """A question with the variables that its answer depends on."""

    query: str
    variables: tuple[Variable, ...]


def draft_rows(drafts: Sequence[Draft]) -> str:
    """Return drafts as JSON, one a line, numbered from 1."""
    return listing(
        {
            "number": number,
            "question": draft.query,
            "variables": [{"name": v.name, "values": list(v.values)} for v in draft.variables],
        }
        for number, draft in enumerate(drafts, start=1)
    )


@dataclass(frozen=True)
class DraftShape:
    """What drafts of questions must look like."""

    count: int
    size: int
    """Variables of each question."""
    min_choices: int
    """Combinations of values that a question has at least."""


_DRAFT_SCHEMA = list_schema(
    "questions",
    {
        "question": TEXT,
        "variables": list_schema("variables", {"name": TEXT, "values": TEXTS})["properties"][
            "variables"
        ],
    },
)

_FORM_OF_DRAFTS = """\
- Each question has exactly {size} variables of its own. A name is lower-case English words joined by underscores, and no two questions share one.
- A variable has 3 or 4 values that exclude each other, ordered where there is an order, named like variables; over its variables a question has at least {min_choices} combinations.
- A value is a fact of the person's present life that changes now and then within months, such as a schedule, an amount, a place, a company or a way of doing something. Never a trait, a taste for ever, or what the profile already settles.
- Good answers differ with every combination of values.
- No variable says the same as another, decides another or contradicts it."""


def read_drafts(text: str, shape: DraftShape) -> tuple[Draft, ...]:
    """Return the questions in a reply, checked against the rules.

    Raises:
        ParseError: a rule is broken; names the question.
    """
    rows = read_rows(replies.read_object(text, "questions"), "questions")
    if len(rows) != shape.count:
        raise ParseError(f"expected {shape.count} questions, found {len(rows)}")
    drafts, names, queries = [], set[str](), set[str]()
    for number, row in enumerate(rows, start=1):
        place = f"question {number}"
        query = read_text(row, "question")
        variables = tuple(_read_variable(part, place) for part in read_rows(row, "variables"))
        if len(variables) != shape.size:
            raise ParseError(f"{place}: expected {shape.size} variables, found {len(variables)}")
        for variable in variables:
            if variable.name in names:
                raise ParseError(f"{place}: the variable {variable.name!r} stands there already")
            names.add(variable.name)
        combinations = prod(len(variable.values) for variable in variables)
        if combinations < shape.min_choices:
            raise ParseError(
                f"{place}: expected at least {shape.min_choices} combinations of values, "
                f"found {combinations}"
            )
        if query in queries:
            raise ParseError(f"{place}: the same question stands there already")
        queries.add(query)
        drafts.append(Draft(query, variables))
    return tuple(drafts)


def _read_variable(row: Mapping[str, Any], place: str) -> Variable:
    name, values = row.get("name"), row.get("values")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ParseError(f"{place}: expected a name such as work_days, found {name!r:.80}")
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ParseError(f"{place}, {name}: expected a list of values, found {values!r:.80}")
    strange = [value for value in values if not _VALUE.fullmatch(value)]
    if strange:
        raise ParseError(f"{place}, {name}: expected values such as twice_a_week, found {strange}")
    if not 3 <= len(values) <= MOST_VALUES or len(set(values)) != len(values):
        raise ParseError(f"{place}, {name}: expected 3 or 4 different values, found {values}")
    return Variable(name, tuple(values))


@dataclass(frozen=True)
class QuestionDrafts(Step[tuple[Draft, ...]]):
    """Questions that the person might ask again and again, with what their answers depend on."""

    profile: str
    shape: DraftShape
    language: str
    kind: ClassVar[str] = "question_drafts"
    schema: ClassVar[Mapping[str, Any] | None] = _DRAFT_SCHEMA
    placeholders: ClassVar[tuple[str, ...]] = (
        "profile", "count", "size", "min_choices", "language"
    )  # fmt: skip
    template: ClassVar[str] = f"""\
Invent questions that one person asks an assistant for advice, and the personal circumstances that a good answer depends on.

The person:
{{profile}}

Write {{count}} questions, each about another side of this person's everyday life. A question stays worth asking over years, is short, is written in {{language}} as the person would put it, and says nothing of the circumstances. For each question name the circumstances as variables:
{_FORM_OF_DRAFTS}

Reply with JSON and nothing else: {{"questions": [{{"question": "...", "variables": [{{"name": "...", "values": ["...", "...", "..."]}}]}}]}}"""

    def values(self) -> Mapping[str, str]:
        """Return the profile and the numbers."""
        return {
            "profile": self.profile,
            "count": str(self.shape.count),
            "size": str(self.shape.size),
            "min_choices": str(self.shape.min_choices),
            "language": self.language,
        }

    def parse(self, text: str) -> tuple[Draft, ...]:
        """Return the questions, checked."""
        return read_drafts(text, self.shape)


class Conflict(NamedTuple):
    """Variables that conflict, or one that cannot be used at all."""

    variables: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class SchemaConflicts(Step[tuple[Conflict, ...]]):
    """What is wrong between the variables of a schema."""

    profile: str
    drafts: tuple[Draft, ...]
    kind: ClassVar[str] = "schema_conflicts"
    schema: ClassVar[Mapping[str, Any] | None] = list_schema(
        "conflicts", {"variables": TEXTS, "reason": TEXT}
    )
    placeholders: ClassVar[tuple[str, ...]] = ("profile", "drafts")
    template: ClassVar[str] = """\
Check the circumstances that are tracked of one person's life, each a variable with its possible values.

The person:
{profile}

Questions with their variables:
{drafts}

Name variables that say the same thing, of which one decides the other, or whose values can contradict each other; and single variables that the profile settles, that cannot change within months, or whose values do not exclude each other. Name only real conflicts.

Reply with JSON and nothing else, an empty list if there are none: {"conflicts": [{"variables": ["..."], "reason": "..."}]}"""

    def values(self) -> Mapping[str, str]:
        """Return the profile and the drafts."""
        return {"profile": self.profile, "drafts": draft_rows(self.drafts)}

    def parse(self, text: str) -> tuple[Conflict, ...]:
        """Return the conflicts; a name that the schema lacks is unreadable."""
        known = {v.name for draft in self.drafts for v in draft.variables}
        found = []
        for row in read_rows(replies.read_object(text, "conflicts"), "conflicts"):
            names = row.get("variables")
            if not isinstance(names, list) or not names or not set(map(str, names)) <= known:
                raise ParseError(f"expected names of {sorted(known)}, found {names!r:.200}")
            found.append(Conflict(tuple(map(str, names)), read_text(row, "reason")))
        return tuple(found)


@dataclass(frozen=True)
class SchemaRefinement(Step[tuple[Draft, ...]]):
    """The same questions with variables that do not conflict."""

    profile: str
    drafts: tuple[Draft, ...]
    conflicts: tuple[Conflict, ...]
    shape: DraftShape
    language: str
    kind: ClassVar[str] = "schema_refinement"
    schema: ClassVar[Mapping[str, Any] | None] = _DRAFT_SCHEMA
    placeholders: ClassVar[tuple[str, ...]] = (
        "profile", "drafts", "conflicts", "size", "min_choices", "language"
    )  # fmt: skip
    template: ClassVar[str] = f"""\
Resolve the conflicts between the circumstances that are tracked of one person's life.

The person:
{{profile}}

Questions with their variables:
{{drafts}}

Conflicts:
{{conflicts}}

Change what the conflicts ask for and leave the rest as it is; a question that cannot be saved is replaced by another, written in {{language}}. The rules:
{_FORM_OF_DRAFTS}

Reply with all questions as JSON and nothing else: {{"questions": [{{"question": "...", "variables": [{{"name": "...", "values": ["...", "...", "..."]}}]}}]}}"""

    def values(self) -> Mapping[str, str]:
        """Return the profile, the drafts and what is wrong with them."""
        conflicts = listing(
            {"variables": list(found.variables), "reason": found.reason} for found in self.conflicts
        )
        return {
            "profile": self.profile,
            "drafts": draft_rows(self.drafts),
            "conflicts": conflicts,
            "size": str(self.shape.size),
            "min_choices": str(self.shape.min_choices),
            "language": self.language,
        }

    def parse(self, text: str) -> tuple[Draft, ...]:
        """Return the questions, checked."""
        return read_drafts(text, self.shape)
