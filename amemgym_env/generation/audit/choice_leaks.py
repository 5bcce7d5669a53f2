"""How much the choices alone tell: the score of a classifier that never sees the dialogue.

Features of a choice are its length, its stored position, how similar it is to the other choices
(a medoid is) and how often its fragments stand in them. The classifier is trained on other
scenarios with the true shares of time that each choice is right, and picks one choice a question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from amemgym_env.generation.audit.classifiers import (
    FOLDS,
    Floats,
    Ints,
    folds,
    logistic,
    standardized,
)
from amemgym_env.memory.embedding import DEFAULT, SCALE, terms
from amemgym_env.scenarios.model import Question, Scenario

FEATURES = ("words", "characters", "longest", "position", "first", "medoid", "sentences", "terms")

_SENTENCE = re.compile(r"(?<=[.?!])\s+")


class ChoiceTable(NamedTuple):
    """All choices of all questions of a set, one a row."""

    features: Floats  # (choices, len(FEATURES))
    shares: Floats  # (choices,) share of the periods in which the choice is right
    questions: Ints  # (choices,) number of the choice's question
    groups: list[str]  # (choices,) id of the scenario


class ChoiceLeak(NamedTuple):
    """What guessing from the choices scores, in expectation over questions and periods."""

    classifier: float
    chance: float
    first: float
    longest: float


def choice_table(scenarios: Iterable[Scenario]) -> ChoiceTable:
    """Return the features and truth of every choice."""
    rows: list[Floats] = []
    shares: list[float] = []
    questions: list[int] = []
    groups: list[str] = []
    number = 0
    for scenario in scenarios:
        for index, question in enumerate(scenario.qas):
            count = len(question.answer_choices)
            right = Counter(period[index] for period in scenario.right_choices)
            rows.append(_features(question))
            shares.extend(right[choice] / len(scenario.periods) for choice in range(count))
            questions.extend([number] * count)
            groups.extend([scenario.id] * count)
            number += 1
    table = np.vstack(rows) if rows else np.zeros((0, len(FEATURES)))
    return ChoiceTable(table, np.array(shares), np.array(questions, np.int64), groups)


def joined(tables: Sequence[ChoiceTable]) -> ChoiceTable:
    """Return the tables of several sets as one."""
    starts = np.cumsum([0, *(int(t.questions.max()) + 1 for t in tables)])
    return ChoiceTable(
        np.vstack([t.features for t in tables]),
        np.concatenate([t.shares for t in tables]),
        np.concatenate([t.questions + start for t, start in zip(tables, starts, strict=False)]),
        [group for t in tables for group in t.groups],
    )


def choice_leak(table: ChoiceTable) -> ChoiceLeak:
    """Return what the classifier, chance, and the simple guesses score."""
    rows = standardized(table.features)
    parts = folds(table.groups)
    scores = np.zeros(len(rows))
    for part in range(FOLDS):
        inside = parts == part
        if inside.any() and not inside.all():
            weights = logistic(rows[~inside], table.shares[~inside])
            scores[inside] = rows[inside] @ weights[:-1]
    counts = np.bincount(table.questions)
    position = FEATURES.index("position")
    return ChoiceLeak(
        classifier=_picked(scores, table),
        chance=float((1 / counts).mean()),
        first=_picked(-table.features[:, position], table),
        longest=_picked(table.features[:, FEATURES.index("words")], table),
    )


def _picked(scores: Floats, table: ChoiceTable) -> float:
    """Return the score of picking each question's highest choice; ties share their truth."""
    count = int(table.questions.max()) + 1
    best = np.full(count, -np.inf)
    np.maximum.at(best, table.questions, scores)
    top = scores >= best[table.questions] - 1e-9
    hits = np.bincount(table.questions, weights=table.shares * top, minlength=count)
    return float((hits / np.bincount(table.questions, weights=top, minlength=count)).mean())


def _features(question: Question) -> Floats:
    texts = [choice.answer for choice in question.answer_choices]
    count = len(texts)
    words = np.array([len(text.split()) for text in texts], float)
    characters = np.array([len(text) for text in texts], float)
    vectors = DEFAULT(texts).astype(np.float64)
    similar = (vectors @ vectors.T) / SCALE**2
    columns = [
        _centred(words),
        _centred(characters),
        (characters == characters.max()).astype(float),
        np.arange(count) / max(1, count - 1),
        (np.arange(count) == 0).astype(float),
        _centred((similar.sum(axis=1) - similar.diagonal()) / max(1, count - 1)),
        _centred(_commonness([_SENTENCE.split(text) for text in texts])),
        _centred(_commonness([terms(text) for text in texts])),
    ]
    return np.column_stack(columns)


def _commonness(fragments: list[list[str]]) -> Floats:
    """Return for each text in how many texts its fragments stand, on average."""
    counts = Counter(part for parts in fragments for part in set(parts))
    return np.array([np.mean([counts[part] for part in parts] or [0]) for parts in fragments])


def _centred(column: Floats) -> Floats:
    spread = column.std()
    return (column - column.mean()) / spread if spread > 1e-12 else np.zeros_like(column)
