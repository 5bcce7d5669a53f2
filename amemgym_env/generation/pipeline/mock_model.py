"""Mock model that answers every call of the pipeline from the topic library.

It reads the messages alone. It serves cost estimates and tests with a local server. Use
`source=library` for scenarios from the library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import Any

from amemgym_env.models.backend import Backend, Call, Completion
from amemgym_env.models.usage import Usage
from amemgym_env.scenarios.library import Topic, Value, topics
from amemgym_env.scenarios.random_stream import Draws
from amemgym_env.scenarios.samples import exposures, joint_exposures, questions
from amemgym_env.seeding import uniform

_CHARACTERS = 4
"""Approximate characters per English token."""

Rows = list[dict[str, Any]]


class MockModel(Backend):
    """Answers from the train topics; tokens are counted from characters.

    `clumsy` is the share of first texts that expose nothing; texts about the variables in `never`
    expose nothing after any refinement.
    """

    name = "rehearsal"
    simulated = True

    def __init__(self, clumsy: float = 0.0, never: frozenset[str] = frozenset()) -> None:
        self.clumsy = clumsy
        self.never = never
        self._answers: dict[str, Callable[[str, Rows], dict[str, Any]]] = {
            "question_drafts": self._drafts,
            "schema_conflicts": self._conflicts,
            "schema_refinement": self._refined,
            "initial_state": self._state,
            "period_updates": self._updates,
            "life_events": self._events,
            "opening_utterances": self._utterances,
            "exposure_judgement": self._exposures,
            "utterance_refinement": self._utterance,
            "personal_answers": self._personal,
            "answer_reading": self._reading,
            "answer_refinement": self._answer,
            "exposure_rating": self._exposure_rating,
            "integrity_rating": lambda text, rows: {"rating": 1},
            "answer_agreement": self._agreement,
        }

    def complete(self, call: Call) -> Completion:
        """Return the answer to a call of the generation."""
        text = self.answer(call.kind, call.messages)
        prompt = sum(len(part["content"]) for part in call.messages) // _CHARACTERS
        usage = Usage(1, prompt, len(text) // _CHARACTERS + 1, estimated=True)
        return Completion(text, usage, "stop")

    def answer(self, kind: str, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the answer to messages of a kind; further messages (repairs) change nothing."""
        text = str(messages[0]["content"])
        rows = [json.loads(line) for line in text.split("\n") if line.startswith("{")]
        return json.dumps(self._answers[kind](text, rows), ensure_ascii=False)

    def _drafts(self, text: str, _: Rows) -> dict[str, Any]:
        count = int(_found(r"Write (\d+) questions", text))
        chosen = Draws("rehearsal", text).sample(_fitting(text), count)
        return {"questions": [_draft(topic, _size(text)) for topic in chosen]}

    def _conflicts(self, text: str, rows: Rows) -> dict[str, Any]:
        if not self._slips("conflict", text):
            return {"conflicts": []}
        names = [variable["name"] for variable in rows[0]["variables"]]
        return {"conflicts": [{"variables": names, "reason": "the one decides the other"}]}

    def _refined(self, text: str, rows: Rows) -> dict[str, Any]:
        drafts = [row for row in rows if "question" in row]
        wrong = {name for row in rows if "reason" in row for name in row["variables"]}
        used = {variable["name"] for draft in drafts for variable in draft["variables"]}
        unused = (t for t in _fitting(text) if used.isdisjoint(t.variables))
        return {
            "questions": [
                {"question": draft["question"], "variables": draft["variables"]}
                if wrong.isdisjoint(v["name"] for v in draft["variables"])
                else _draft(next(unused), _size(text))
                for draft in drafts
            ]
        }

    def _state(self, text: str, rows: Rows) -> dict[str, Any]:
        draws = Draws("rehearsal", text)
        state = [{"variable": r["variable"], "value": draws.pick(r["values"])} for r in rows]
        return {"state": state}

    def _updates(self, text: str, rows: Rows) -> dict[str, Any]:
        draws = Draws("rehearsal", text)
        updates = []
        for row in rows:
            if "held" not in row:
                continue
            others = [value for value in row["values"] if value != row["held"][-1]]
            fresh = [value for value in others if value not in row["held"]]
            updates.append({"variable": row["variable"], "value": draws.pick(fresh or others)})
        return {"updates": updates}

    def _events(self, text: str, rows: Rows) -> dict[str, Any]:
        draws = Draws("rehearsal", text)
        events = []
        for row in rows:
            told = [
                draws.pick(_value(name, change["to"]).events).replace("{name}", "This person")
                for name, change in row["changes"].items()
            ]
            events.append({"number": row["number"], "event": " ".join(told)})
        return {"events": events}

    def _utterances(self, text: str, rows: Rows) -> dict[str, Any]:
        said = [{"number": row["number"], "text": self._said(row["exposes"], text)} for row in rows]
        return {"utterances": said}

    def _utterance(self, text: str, rows: Rows) -> dict[str, Any]:
        return {"text": self._said(rows[0]["exposes"], text)}

    def _said(self, exposes: Mapping[str, str], text: str) -> str:
        names, values = list(exposes), list(exposes.values())
        topic = _home(names[0])
        draws = Draws("rehearsal", text, *names, *values)
        if self._slips("utterance", text, *names) or not self.never.isdisjoint(names):
            return draws.pick(questions(topic))
        if len(names) == 1:
            return draws.pick(exposures(topic, names[0], values[0]))
        return draws.pick(joint_exposures(topic, tuple(zip(names, values, strict=True))))

    def _exposures(self, text: str, _: Rows) -> dict[str, Any]:
        return dict(_exposures_of_texts().get(text.split("\n")[1], {}))

    def _personal(self, text: str, rows: Rows) -> dict[str, Any]:
        answers = []
        for row in rows:
            if "circumstances" in row:
                advice = self._advice(row["circumstances"], text)
                answers.append({"number": row["number"], "text": advice})
        return {"answers": answers}

    def _answer(self, text: str, rows: Rows) -> dict[str, Any]:
        (row,) = (row for row in rows if "circumstances" in row)
        return {"text": self._advice(row["circumstances"], text)}

    def _advice(self, circumstances: Mapping[str, str], text: str) -> str:
        draws = Draws("rehearsal", text, *circumstances.values())
        said = " ".join(draws.pick(_value(*pair).advice) for pair in circumstances.items())
        if self._slips("answer", text, *circumstances.values()):
            return f"There is much to be said here, {draws.below(10**9)} times over."
        return said

    def _reading(self, text: str, rows: Rows) -> dict[str, Any]:
        answer = _found(r"The answer was:\n(.*)", text)
        fitting = [row["number"] for row in rows if _serves(answer, row["circumstances"])]
        return {"number": fitting[0] if len(fitting) == 1 else 0}

    def _exposure_rating(self, text: str, rows: Rows) -> dict[str, Any]:
        given = _exposures_of_texts().get(text.split("\n")[1], {})
        found = [given.get(row["variable"]) == row["value"] for row in rows]
        return {"rating": 2 if all(found) else int(any(found))}

    def _agreement(self, text: str, rows: Rows) -> dict[str, Any]:
        choices = re.findall(r"(?m)^(\d+)\. (.*)$", text)
        fitting = [int(n) for n, choice in choices if _serves(choice, rows[0])]
        return {"answer": fitting[0] if fitting else 1}

    def _slips(self, what: str, *key: str) -> bool:
        return uniform("rehearsal slip", what, *key) < self.clumsy


def _serves(answer: str, circumstances: Mapping[str, str]) -> bool:
    return all(
        any(sentence in answer for sentence in _value(*pair).advice)
        for pair in circumstances.items()
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, f"no {pattern!r} in {text[:200]!r}"
    return match[1]


def _size(text: str) -> int:
    return int(_found(r"exactly (\d+) variables", text))


def _fitting(text: str) -> list[Topic]:
    size, least = _size(text), int(_found(r"at least (\d+) combinations", text))
    return [
        topic
        for topic in topics("train")
        if len(topic.variables) >= size
        and prod(len(found.values) for found in list(topic.variables.values())[:size]) >= least
    ]


def _draft(topic: Topic, size: int) -> dict[str, Any]:
    variables = [
        {"name": name, "values": list(variable.values)}
        for name, variable in list(topic.variables.items())[:size]
    ]
    return {"question": topic.questions[0], "variables": variables}


@cache
def _homes() -> dict[str, Topic]:
    return {name: topic for topic in topics("train") for name in topic.variables}


def _home(name: str) -> Topic:
    return _homes()[name]


def _value(name: str, value: str) -> Value:
    return _home(name).variables[name].values[value]


@cache
def _exposures_of_texts() -> dict[str, dict[str, str]]:
    """Return the values that each exposing utterance of the library exposes."""
    return dict(_exposing())


def _exposing() -> Iterator[tuple[str, dict[str, str]]]:
    for topic in topics("train"):
        for name, variable in topic.variables.items():
            for value in variable.values:
                yield from ((text, {name: value}) for text in exposures(topic, name, value))
        first, second = list(topic.variables)[:2]
        for one, other in product(topic.variables[first].values, topic.variables[second].values):
            pairs = ((first, one), (second, other))
            yield from ((text, dict(pairs)) for text in joint_exposures(topic, pairs))
