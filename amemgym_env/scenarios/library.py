"""Topic library: corners of everyday life, with the phrases from which messages are composed.

A topic file holds two or three state variables and all text about them. This module types, checks
and finds the files; `composition` joins their phrases. Files are read once, through
`importlib.resources`, at first use.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import resources
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from amemgym_env.errors import ConfigError, InputError

LIBRARY_NAME = "everyday"
LIBRARY_VERSION = 2
"""Goes up whenever a text changes that generated scenarios may hold."""

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

Need = Literal["children", "garden", "car", "pet", "job", "study", "retired", "partner"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Fits(_Part):
    """Whom a topic suits; the empty one suits any adult."""

    min_age: int = 18
    max_age: int = 120
    needs: tuple[Need, ...] = ()

    def suits(self, age: int, has: frozenset[str]) -> bool:
        """Return whether a person of `age` years who has the things `has` may meet the topic."""
        return self.min_age <= age <= self.max_age and has.issuperset(self.needs)


class Value(_Part):
    """Phrases about one value of a variable; most name it by a word of its id."""

    says: tuple[str, ...]
    """Clauses that state the value in the first person, without a final mark."""
    phrases: tuple[str, ...]
    """Ends of a question that state the value."""
    reasons: tuple[str, ...]
    """Clauses about what led to the value."""
    details: tuple[str, ...]
    """Sentences about what follows from the value."""
    quiet: tuple[str, ...]
    """Minimal pairs of `says`: the value of another person, another place or another time."""
    advice: tuple[str, ...]
    """Sentences of advice that suit this value and no other."""
    events: tuple[str, ...]
    """Sentences about what brought the value about; `{name}` is the user's name."""


class Variable(_Part):
    """Phrases about one state variable."""

    requests: tuple[str, ...]
    """Questions without the question mark that name the topic and no value."""
    oblique: tuple[str, ...]
    """Questions that name neither the topic nor the variable."""
    endings: tuple[str, ...]
    """Closing sentences that fit any value."""
    values: dict[str, Value]
    """Ordered: neighbours are a gradual change."""


class Topic(_Part):
    """One topic: two or three variables and the questions of the exams about them."""

    id: str
    domain: str
    fits: Fits
    questions: tuple[str, ...]
    variables: dict[str, Variable]

    def __hash__(self) -> int:
        """Hash by the id, so that topics can be keys."""
        return hash(self.id)

    @cached_property
    def state_schema(self) -> dict[str, list[str]]:
        """The variables with their values, in order."""
        return {name: list(variable.values) for name, variable in self.variables.items()}


@cache
def topics(split: Split) -> tuple[Topic, ...]:
    """Return the topics of a split, in the order of their ids.

    Raises:
        ConfigError: no such split.
        InputError: topic files of the split are wrong; lists every offender.
    """
    if split not in SPLITS:
        raise ConfigError(f"split: expected one of {', '.join(SPLITS)}, found {split!r}")
    folder = resources.files("amemgym_env").joinpath("scenarios", "library_data", "topics", split)
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".json")),
        key=lambda file: file.name,
    )
    return parse({file.name: file.read_text(encoding="utf-8") for file in files}, split)


def topic(topic_id: str) -> Topic:
    """Return the topic with this id, of whatever split.

    Raises:
        ConfigError: no split has it.
    """
    return topic_index()[_known(topic_id)]


def split_of(topic_id: str) -> Split:
    """Return the split that a topic belongs to.

    Raises:
        ConfigError: no split has it.
    """
    _known(topic_id)
    return _splits()[topic_id]


@cache
def _splits() -> dict[str, Split]:
    return {topic.id: split for split in SPLITS for topic in topics(split)}


@cache
def topic_index() -> dict[str, Topic]:
    """Return all topics of all splits by id."""
    return {topic.id: topic for split in SPLITS for topic in topics(split)}


def _known(topic_id: str) -> str:
    if topic_id not in topic_index():
        raise ConfigError(
            f"topic: expected one of the library {LIBRARY_NAME!r} version {LIBRARY_VERSION}, "
            f"found {topic_id!r}; the scenario comes from another library"
        )
    return topic_id


def parse(texts: dict[str, str], source: str = "topics") -> tuple[Topic, ...]:
    """Return validated topics from file names and their JSON texts.

    Raises:
        InputError: lists the offenders of all files.
    """
    found: list[Topic] = []
    offenders: list[str] = []
    for name, text in texts.items():
        try:
            read = Topic.model_validate_json(text)
        except ValidationError as error:
            for line in error.errors():
                place = ".".join(str(part) for part in line["loc"])
                offenders.append(f"{name}, {place}: {line['msg']}")
            continue
        lines = list(_problems(read, name))
        offenders.extend(f"{name}, {line}" for line in lines)
        found.append(read)
    if offenders:
        lines = [f"topic files of {source!r}: {len(offenders)} problems", *offenders]
        raise InputError("\n  - ".join(lines))
    return tuple(found)


_LEAST = {
    Topic: {"questions": 2},
    Variable: {"requests": 6, "oblique": 3, "endings": 4},
    Value: {
        "says": 4, "phrases": 2, "reasons": 3, "details": 3, "quiet": 4, "advice": 3, "events": 2
    },
}  # fmt: skip
"""Fewest phrases of each kind."""


def _problems(topic: Topic, name: str) -> Iterator[str]:
    if f"{topic.id}.json" != name:
        yield f"id: expected the file's name, found {topic.id!r}"
    if len(topic.variables) not in (2, 3):
        yield f"variables: expected 2 or 3, found {len(topic.variables)}"
    yield from _too_few(topic)
    for variable_name, variable in topic.variables.items():
        place = f"variables.{variable_name}"
        if not variable_name.startswith(f"{topic.id}_"):
            yield f"{place}: expected a name that begins with {topic.id}_"
        if len(variable.values) not in (3, 4):
            yield f"{place}: expected 3 or 4 values, found {len(variable.values)}"
        yield from (f"{place}.{line}" for line in _too_few(variable))
        for value_name, value in variable.values.items():
            yield from (f"{place}.{value_name}.{line}" for line in _too_few(value))
            for event in value.events:
                if "{name}" not in event or event.count("{") != event.count("{name}"):
                    yield f"{place}.{value_name}.events: expected {{name}} alone, found {event!r}"
    for text, count in Counter(phrases(topic)).items():
        if count > 1:
            yield f"expected distinct phrases, found twice: {text!r}"


def _too_few(part: Topic | Variable | Value) -> Iterator[str]:
    for field, least in _LEAST[type(part)].items():
        found = len(getattr(part, field))
        if found < least:
            yield f"{field}: expected at least {least}, found {found}"


def phrases(topic: Topic) -> Iterator[str]:
    """Yield every phrase that a user's message may hold."""
    for variable in topic.variables.values():
        yield from (*variable.requests, *variable.oblique, *variable.endings)
        for value in variable.values.values():
            yield from (*value.says, *value.phrases, *value.reasons, *value.details, *value.quiet)


def to_json(topic: Topic) -> dict[str, Any]:
    """Return the topic as the JSON object of its file."""
    document: dict[str, Any] = json.loads(topic.model_dump_json(exclude_unset=True))
    return document
