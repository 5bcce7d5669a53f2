"""Topic library: topics of everyday life with utterances for every value.

A topic file holds two or three state variables and all texts about them. This module types, checks
and loads the files, once, when they are first needed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import resources
from itertools import product
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from amemgym_env.errors import ConfigError, InputError

LIBRARY_NAME = "everyday"
LIBRARY_VERSION = 1
"""Raised whenever a text changes that generated scenarios may contain."""

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

DistractorKind = Literal["other_person", "hypothetical", "fell_through", "old_habit"]
DISTRACTOR_KINDS: tuple[DistractorKind, ...] = get_args(DistractorKind)

Need = Literal["children", "garden", "car", "pet", "job", "study", "retired", "partner"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Fits(_Part):
    """Conditions on the persona; empty means any adult."""

    min_age: int = 18
    max_age: int = 120
    needs: tuple[Need, ...] = ()

    def suits(self, age: int, has: frozenset[str]) -> bool:
        """Return whether a person of `age` years who has the things `has` may meet the topic."""
        return self.min_age <= age <= self.max_age and has.issuperset(self.needs)


class Value(_Part):
    """All text about one value of a variable."""

    exposures: tuple[str, ...]
    """User utterances that expose exactly this value, without naming it."""
    events: tuple[str, ...]
    """Sentences about the cause of the value; `{name}` is replaced by the user's name."""
    advice: tuple[str, ...]
    """Two wordings of the advice that suits this value and no other."""
    distractors: dict[DistractorKind, tuple[str, ...]]
    """Minimal pairs of the exposures that expose nothing of the user's present."""


class Topic(_Part):
    """One topic: two or three variables, questions about them, and neutral utterances."""

    id: str
    domain: str
    fits: Fits
    variables: dict[str, dict[str, Value]]
    """Values of a variable are ordered: neighbours are a gradual change."""
    joint: dict[str, dict[str, tuple[str, ...]]]
    """`"variable+variable"` -> `"value+value"` -> utterances that expose both."""
    questions: tuple[str, ...]
    openers: tuple[str, ...]
    """Neutral first utterances that expose nothing."""
    follow_ups: tuple[str, ...]
    """Neutral later utterances that fit any reply and expose nothing."""

    def __hash__(self) -> int:
        """Hash by the id, so that topics can be keys."""
        return hash(self.id)

    @cached_property
    def state_schema(self) -> dict[str, list[str]]:
        """The variables with their values, in order."""
        return {variable: list(values) for variable, values in self.variables.items()}

    def joint_utterances(self, first: str, second: str, values: tuple[str, str]) -> tuple[str, ...]:
        """Return the utterances that expose both values; empty when there are none."""
        return self.joint.get(f"{first}+{second}", {}).get("+".join(values), ())


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


def _problems(topic: Topic, name: str) -> Iterator[str]:
    if f"{topic.id}.json" != name:
        yield f"id: expected the file's name, found {topic.id!r}"
    if len(topic.variables) not in (2, 3):
        yield f"variables: expected 2 or 3, found {len(topic.variables)}"
    for variable, values in topic.variables.items():
        if not variable.startswith(f"{topic.id}_"):
            yield f"variables.{variable}: expected a name that begins with {topic.id}_"
        if len(values) not in (3, 4):
            yield f"variables.{variable}: expected 3 or 4 values, found {len(values)}"
        for value, material in values.items():
            for line in _value_problems(material):
                yield f"variables.{variable}.{value}.{line}"
    yield from _joint_problems(topic)
    for field, least in (("questions", 2), ("openers", 6), ("follow_ups", 6)):
        texts: tuple[str, ...] = getattr(topic, field)
        if len(texts) < least:
            yield f"{field}: expected at least {least}, found {len(texts)}"
    yield from (f"expected distinct utterances, found twice: {text!r}" for text in _twice(topic))


def _value_problems(value: Value) -> Iterator[str]:
    for field, least in (("exposures", 5), ("events", 2), ("advice", 2)):
        texts: tuple[str, ...] = getattr(value, field)
        if len(texts) < least:
            yield f"{field}: expected at least {least}, found {len(texts)}"
    for event in value.events:
        if "{name}" not in event or event.count("{") != event.count("{name}"):
            yield f"events: expected {{name}} and no other placeholder, found {event!r}"
    for kind in DISTRACTOR_KINDS:
        if not value.distractors.get(kind):
            yield f"distractors.{kind}: expected at least 1, found none"


def _joint_problems(topic: Topic) -> Iterator[str]:
    if len(topic.variables) < 2:
        return
    first, second = list(topic.variables)[:2]
    name = f"{first}+{second}"
    for values in product(topic.variables[first], topic.variables[second]):
        if not topic.joint_utterances(first, second, values):
            yield f"joint.{name}.{'+'.join(values)}: expected at least 1 utterance, found none"
    for pair in topic.joint:
        if pair != name:
            yield f"joint: expected {name!r} alone, found {pair!r}"


def _twice(topic: Topic) -> list[str]:
    counts = Counter(text for text, _ in utterances(topic))
    return [text for text, count in counts.items() if count > 1]


def utterances(topic: Topic) -> Iterator[tuple[str, str]]:
    """Yield every user utterance of a topic with its kind.

    Kinds: `exposure`, `joint`, `opener`, `follow_up`, and those of `DISTRACTOR_KINDS`.
    """
    for values in topic.variables.values():
        for value in values.values():
            yield from ((text, "exposure") for text in value.exposures)
            for kind, texts in value.distractors.items():
                yield from ((text, kind) for text in texts)
    for combinations in topic.joint.values():
        for texts in combinations.values():
            yield from ((text, "joint") for text in texts)
    yield from ((text, "opener") for text in topic.openers)
    yield from ((text, "follow_up") for text in topic.follow_ups)


def to_json(topic: Topic) -> dict[str, Any]:
    """Return the topic as the JSON object of its file."""
    document: dict[str, Any] = json.loads(topic.model_dump_json(exclude_unset=True))
    return document
