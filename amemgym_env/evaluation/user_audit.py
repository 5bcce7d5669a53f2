"""Does each user turn of a run give away what it must, and nothing else?

A turn in the script's own words is read as the simulated model reads it. Any other turn (a real
user model's, a planted one) is read for what it says: by a judge model, or offline by `TextReader`,
which knows the topic library's wording and values and no script. What a turn must give away is the
script's truth; what it gives away beyond that is a leak that would be charged to the agent.
Paper: AMemGym, Section 3.5 (exposure quality, state integrity).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from amemgym_env.generation.audit.exposure_reader import THRESHOLD, library_reader
from amemgym_env.memory.embedding import DEFAULT, Vectors
from amemgym_env.models.journal import Event
from amemgym_env.scenarios.library import Topic, topic_index
from amemgym_env.scenarios.samples import exposures, joint_exposures
from amemgym_env.scenarios.script import Exposures, Script
from amemgym_env.simulated.recognition import Recogniser

Fault = Literal["silence", "leak", "other_value"]
Judge = Callable[[str], Mapping[str, str] | None]
"""Reads an utterance: the values that it gives away, by variable; None where it cannot tell."""


class Finding(NamedTuple):
    """One turn that gives away too little, too much or something else."""

    period: int
    session: int
    round: int
    fault: Fault
    variable: str
    expected: str | None
    found: str | None
    message: str


class TurnAudit(NamedTuple):
    """What the turns of one scenario give away."""

    turns: int
    scripted: int
    """In the script's own words."""
    read: int
    """Read for what they say."""
    unread: int
    """Neither: no judge could tell."""
    expected: int
    """Values that the read turns had to give away."""
    findings: tuple[Finding, ...]


def audit_turns(script: Script, events: Iterable[Event], judge: Judge) -> TurnAudit:
    """Return what the last play's user turns give away beyond or below the script's truth."""
    recogniser = Recogniser(script)
    latest: list[Event] = []
    for event in events:
        if event["event"] == "start":
            latest = []
        elif event["event"] == "turn":
            latest.append(event)
    scripted = read = unread = expected = 0
    findings: list[Finding] = []
    for event in latest:
        place = (event["period"], event["session"], event["round"])
        utterance = script.periods[place[0]][place[1]].utterances[place[2]]
        wanted = dict(utterance.exposures)
        message = str(event["message"])
        given: Mapping[str, str] | None
        if message == utterance.text:
            scripted += 1
            given = {
                name: value
                for found in recogniser.read(message)
                if found.source == message
                for name, value in found.exposures
            }
        else:
            given = judge(message)
            if given is None:
                unread += 1
                continue
            read += 1
            expected += len(wanted)
        findings += [
            Finding(*place, fault, name, wanted.get(name), given.get(name), message)
            for name in sorted({*wanted, *given})
            if (fault := _fault(wanted.get(name), given.get(name))) is not None
        ]
    return TurnAudit(len(latest), scripted, read, unread, expected, tuple(findings))


def _fault(wanted: str | None, given: str | None) -> Fault | None:
    if wanted == given:
        return None
    if given is None:
        return "silence"
    return "leak" if wanted is None else "other_value"


class TextReader:
    """Reads utterances about one scenario's matters by their wording, and by values named.

    Without topics of the library (files of others) it only sees values that are named, so an
    utterance without one is not judged: it may imply what it does not name.
    """

    def __init__(self, script: Script) -> None:
        self._schema = script.scenario.state_schema
        known = topic_index()
        named = dict.fromkeys(question.topic for question in script.scenario.qas)
        self._topics = [known[name] for name in named if name in known]
        self._whole = bool(named) and len(self._topics) == len(named)
        self._words = {
            variable: {value: _stems(value) for value in values}
            for variable, values in self._schema.items()
        }

    def __call__(self, text: str) -> Mapping[str, str] | None:
        """Return the values that an utterance gives away; None where wording alone cannot tell."""
        named = self._named(text)
        if not self._whole:
            return named or None
        return {**self._implied(text), **named}

    def _implied(self, text: str) -> dict[str, str]:
        """Return the value of the nearest exposure, where the text reads like a giveaway."""
        vector = DEFAULT([text])[0]
        nearest: list[tuple[float, Topic, Exposures]] = []
        for topic in self._topics:
            vectors, pairs = _exposures(topic)
            similar = vectors @ vector
            place = int(np.argmax(similar))
            nearest.append((float(similar[place]), topic, pairs[place]))
        similarity, topic, exposed = max(nearest, key=lambda row: row[0])
        if similarity <= 0 or library_reader().scores([text], topic)[0] < THRESHOLD:
            return {}
        return {name: value for name, value in exposed if name in self._schema}

    def _named(self, text: str) -> dict[str, str]:
        """Return values that the user names as their own, with a word of the variable beside."""
        if not _FIRST_PERSON.search(text):
            return {}
        said = set(_stems(text))
        found = {}
        for variable, values in self._words.items():
            topic_words = set(_stems(variable))
            hits = [
                value
                for value, stems in values.items()
                if stems and set(stems) <= said and (topic_words - set(stems)) & said
            ]
            if len(hits) == 1:
                found[variable] = hits[0]
        return found


@cache
def _exposures(topic: Topic) -> tuple[Vectors, tuple[Exposures, ...]]:
    """Return the vectors of a topic's exposing texts, and what each gives away."""
    texts: list[str] = []
    pairs: list[Exposures] = []
    for name, variable in topic.variables.items():
        for value in variable.values:
            stock = exposures(topic, name, value)
            texts += stock
            pairs += [((name, value),)] * len(stock)
    first, second = list(topic.variables)[:2]
    for one, other in product(topic.variables[first].values, topic.variables[second].values):
        pair = ((first, one), (second, other))
        stock = joint_exposures(topic, pair)
        texts += stock
        pairs += [pair] * len(stock)
    return DEFAULT(texts), tuple(pairs)


def _stems(text: str) -> list[str]:
    """Return the beginnings of a text's words: enough to see one word in two forms."""
    found: Sequence[str] = re.findall(r"[a-z0-9]+", text.lower().replace("_", " "))
    return [word[:5] for word in found if word not in _SMALL]


_FIRST_PERSON = re.compile(r"\b(i|i'm|i've|my|mine|we|our|me)\b", re.I)
_SMALL = frozenset(
    {
        "a",
        "an",
        "and",
        "at",
        "by",
        "for",
        "in",
        "no",
        "none",
        "not",
        "of",
        "on",
        "or",
        "other",
        "over",
        "per",
        "the",
        "to",
        "under",
        "up",
        "with",
    }
)
