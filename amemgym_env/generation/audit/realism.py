"""How people talk in a set: the figures of openers, each with a band around those of `v1.base`.

Openers are the queries of sessions that expose something. Similarity is the inner product of an
embedder's vectors. All figures are means over openers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from amemgym_env.generation.audit.classifiers import Floats, auc
from amemgym_env.memory.embedding import SCALE, Embedder, terms
from amemgym_env.scenarios.form import words
from amemgym_env.scenarios.model import Question, Scenario

SAMPLE = 943
"""Openers among which common 5-grams are counted: as many as `v1.base` has."""
_COMMON = 0.01
_GRAM = 5
_SENTENCE = re.compile(r"(?<=[.?!])\s+")


class Opener(NamedTuple):
    """An opener of a scenario: its text, its period, and the values it exposes."""

    scenario: int
    period: int
    text: str
    exposed: dict[str, str]


class Similarities(NamedTuple):
    """What an opener resembles, in one embedding; NaN where there is nothing to compare."""

    earlier_same: float
    """The most similar earlier opener of a same variable."""
    earlier: float
    """The most similar earlier opener."""
    question: float
    """The most similar question."""
    answer: float
    """The right answer of the first question that needs an exposed variable: the most similar of
    those that agree with the exposed values."""


def openers(scenarios: Iterable[Scenario]) -> Iterator[Opener]:
    """Yield the openers that expose something."""
    for number, scenario in enumerate(scenarios):
        for place, period in enumerate(scenario.periods):
            for session in period.sessions:
                if session.exposed_states:
                    yield Opener(number, place, session.query, dict(session.exposed_states))


def plain_figures(scenarios: Sequence[Scenario]) -> dict[str, float]:
    """Return the figures that need no embedding."""
    found = list(openers(scenarios))
    sizes = [len(opener.text.split()) for opener in found]
    named = [names(opener.text, value) for opener in found for value in opener.exposed.values()]
    return {
        "words an opener": float(np.mean(sizes)),
        "words an opener, deviation": float(np.std(sizes)),
        "sentences an opener": float(np.mean([len(_sentences(o.text)) for o in found])),
        "openers that ask": float(np.mean(["?" in o.text for o in found])),
        "values named by their opener": float(np.mean(named)),
        "values named by the right answer": _answers_name(scenarios),
        "openers with a common 5-gram": common_grams([o.text for o in found]),
    }


def similarity_figures(scenarios: Sequence[Scenario], embed: Embedder) -> dict[str, float]:
    """Return the figures of an embedding."""
    areas: list[float] = []
    nearest: list[bool] = []
    asked: list[bool] = []
    answers: list[float] = []
    for scenario in scenarios:
        said = list(openers([scenario]))
        vectors = _vectors(embed, [opener.text for opener in said])
        questions = _vectors(embed, [question.query for question in scenario.qas])
        for place, opener in enumerate(said):
            likeness = vectors[:place] @ vectors[place]
            same = np.array([not opener.exposed.keys().isdisjoint(o.exposed) for o in said[:place]])
            if place and same.any():
                nearest.append(bool(same[int(likeness.argmax())]))
                if not same.all():
                    areas.append(auc(likeness, same))
            closest = scenario.qas[int((questions @ vectors[place]).argmax())]
            asked.append(not opener.exposed.keys().isdisjoint(closest.variables))
            answer = _right_answer(scenario, opener)
            if answer:
                answers.append(float((_vectors(embed, answer) @ vectors[place]).max()))
    return {
        "same variable more similar, AUC": float(np.mean(areas)),
        "nearest earlier opener is of the same variable": float(np.mean(nearest)),
        "nearest question needs the variable": float(np.mean(asked)),
        "similarity to the right answer": float(np.mean(answers)),
    }


def similarities(scenario: Scenario, embed: Embedder) -> list[Similarities]:
    """Return the similarities of each opener of a scenario."""
    said = list(openers([scenario]))
    vectors = _vectors(embed, [opener.text for opener in said])
    questions = _vectors(embed, [question.query for question in scenario.qas])
    found = []
    for place, opener in enumerate(said):
        likeness = vectors[:place] @ vectors[place]
        same = [not opener.exposed.keys().isdisjoint(o.exposed) for o in said[:place]]
        answer = _right_answer(scenario, opener)
        found.append(
            Similarities(
                float(likeness[same].max()) if any(same) else float("nan"),
                float(likeness.max()) if place else float("nan"),
                float((questions @ vectors[place]).max()),
                float((_vectors(embed, answer) @ vectors[place]).max()) if answer else float("nan"),
            )
        )
    return found


def names(text: str, value: str) -> bool:
    """Return whether a word stem of the value's name stands in the text."""
    return not set(terms(text)).isdisjoint(terms(re.sub(r"[_\W]+", " ", value)))


def common_grams(texts: Sequence[str]) -> float:
    """Return the share of texts with a 5-gram that 1 % of them share, over `SAMPLE` texts each."""
    rows = [_grams(text) for text in texts]
    shares = []
    for start in range(0, max(1, len(rows) - SAMPLE + 1), SAMPLE):
        part = rows[start : start + SAMPLE]
        counts = Counter(gram for row in part for gram in row)
        common = {gram for gram, count in counts.items() if count >= _COMMON * len(part)}
        shares.append(float(np.mean([not row.isdisjoint(common) for row in part])))
    return float(np.mean(shares))


def _grams(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[i : i + _GRAM]) for i in range(len(found) - _GRAM + 1)}


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.split(text.strip()) if part]


def _answers_name(scenarios: Sequence[Scenario]) -> float:
    found: list[bool] = []
    for scenario in scenarios:
        for rights in scenario.right_choices:
            for question, right in zip(scenario.qas, rights, strict=True):
                choice = question.answer_choices[right]
                found.extend(names(choice.answer, value) for value in choice.state)
    return float(np.mean(found))


def _right_answer(scenario: Scenario, opener: Opener) -> list[str]:
    for question in scenario.qas:
        if not opener.exposed.keys().isdisjoint(question.variables):
            return _agreeing(question, opener.exposed)
    return []


def _agreeing(question: Question, exposed: dict[str, str]) -> list[str]:
    return [
        choice.answer
        for choice in question.answer_choices
        if all(
            exposed.get(name, value) == value
            for name, value in zip(question.required_info, choice.state, strict=True)
        )
    ]


def _vectors(embed: Embedder, texts: Sequence[str]) -> Floats:
    rows: Floats = embed(list(texts)).astype(np.float64) / SCALE
    return rows
