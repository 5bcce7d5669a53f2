"""Audit of user turns: missing, leaked and wrong values, compared with the script.

A turn in the script's own words is read as the simulated model reads it. Any other turn is read by
a judge model, or offline by `TextReader`, which knows the topic library and no script. A value
exposed beyond the script is a leak, which would be charged to the agent.
Paper: AMemGym, Section 3.5 (exposure quality, state integrity).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from amemgym_env.generation.audit.exposure_classifier import THRESHOLD, library_classifier
from amemgym_env.memory.embedding import DEFAULT, Vectors
from amemgym_env.models.events import Event
from amemgym_env.models.last_play import last_play
from amemgym_env.scenarios.library import Topic, topic_index
from amemgym_env.scenarios.script import Exposures, Script
from amemgym_env.simulated.recognition import Recogniser

Fault = Literal["silence", "leak", "other_value"]
Judge = Callable[[str], Mapping[str, str] | None]
"""Reads an utterance: the values that it exposes, by variable; None where it cannot tell."""


class Finding(NamedTuple):
    """One turn that exposes too little, too much or something else."""

    period: int
    session: int
    round: int
    fault: Fault
    variable: str
    expected: str | None
    found: str | None
    message: str


class TurnAudit(NamedTuple):
    """What the turns of one scenario expose."""

    turns: int
    scripted: int
    """In the script's own words."""
    read: int
    """Read for what they say."""
    unread: int
    """Neither: no judge could tell."""
    expected: int
    """Values that the read turns had to expose."""
    findings: tuple[Finding, ...]


def audit_turns(script: Script, events: Sequence[Event], judge: Judge) -> TurnAudit:
    """Return what the last play's user turns expose beyond or below the script's truth."""
    recogniser = Recogniser(script)
    turns = last_play(events).turns
    scripted = read = unread = expected = 0
    findings: list[Finding] = []
    for event in turns:
        utterance = script.periods[event.period][event.session].utterances[event.round]
        wanted = dict(utterance.exposures)
        message = event.message
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
            Finding(*event.place, fault, name, wanted.get(name), given.get(name), message)
            for name in sorted({*wanted, *given})
            if (fault := _fault(wanted.get(name), given.get(name))) is not None
        ]
    return TurnAudit(len(turns), scripted, read, unread, expected, tuple(findings))


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
        """Return the values that an utterance exposes; None where wording alone cannot tell."""
        named = self._named(text)
        if not self._whole:
            return named or None
        return {**self._implied(text), **named}

    def _implied(self, text: str) -> dict[str, str]:
        """Return the value of the nearest exposure, where the text reads like an exposure."""
        vector = DEFAULT([text])[0]
        nearest: list[tuple[float, Topic, Exposures]] = []
        for topic in self._topics:
            vectors, pairs = _exposures(topic)
            similar = vectors @ vector
            place = int(np.argmax(similar))
            nearest.append((float(similar[place]), topic, pairs[place]))
        similarity, topic, exposed = max(nearest, key=lambda row: row[0])
        if similarity <= 0 or library_classifier().scores([text], topic)[0] < THRESHOLD:
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
    """Return the vectors of a topic's exposing texts, and what each exposes."""
    texts: list[str] = []
    pairs: list[Exposures] = []
    for variable, values in topic.variables.items():
        for value, material in values.items():
            texts += material.exposures
            pairs += [((variable, value),)] * len(material.exposures)
    for names, rows in topic.joint.items():
        for given, utterances in rows.items():
            texts += utterances
            pair = tuple(zip(names.split("+"), given.split("+"), strict=True))
            pairs += [pair] * len(utterances)
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
