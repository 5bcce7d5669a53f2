"""Classifier of texts that expose a value, from their wording alone.

A text that exposes a value speaks of the user's own present in the topic's words. Other texts speak
of someone else, a hypothesis, a plan or the past, or of nothing related. The features are words and
word pairs that many topics share, and the similarity to the exposures of the topic. Topics are
held out: a topic is judged by a classifier that was not trained on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from amemgym_env.generation.audit.classifiers import FOLDS, Ints, folds
from amemgym_env.scenarios.entropy_balancing import Floats
from amemgym_env.scenarios.library import Topic, topic_index, utterances

THRESHOLD = 0.7
"""Smallest score of an exposing text. On held-out topics about .74 of exposures reach it, .02 of
distractors, .04 of neutral openers and follow-ups."""

_WORD = re.compile(r"[a-z']+|[.?,]")
_TOPIC_SHARE = 0.2
"""Share of topics that must use a word for it to be a feature."""
_BEGINNING = 5
"""Prefix length used as a crude stem."""
_RIDGE = 8.0
_NEAREST = slice(1, 4)
"""Ranks of the nearest exposures that count. The nearest may be the text itself or its
minimal pair, and is skipped."""


class ExposureClassifier:
    """Ridge classifier: about 1 for texts that expose a value of their topic, about 0 for others.

    Trained on `library`, once for each fold of topics.
    """

    def __init__(self, library: Sequence[Topic]) -> None:
        rows = [(text, kind, found) for found in library for text, kind in utterances(found)]
        grams = [_grams(text) for text, _, _ in rows]
        users: dict[str, set[str]] = {}
        for row, (_, _, found) in zip(grams, rows, strict=True):
            for gram in row:
                users.setdefault(gram, set()).add(found.id)
        least = max(2, round(_TOPIC_SHARE * len(library)))
        known = sorted(gram for gram, ids in users.items() if len(ids) >= least)
        self._columns = {gram: column for column, gram in enumerate(known)}
        parts = folds([found.id for _, _, found in rows])
        table = np.vstack([self._rows(list(_texts(found)), found) for found in library])
        targets = np.array([kind in ("exposure", "joint") for _, kind, _ in rows], float)
        self._weights = _held_out_weights(table, targets, parts)

    def scores(self, texts: Sequence[str], topic: Topic) -> Floats:
        """Return the score of each text, shape (len(texts),), as an utterance about `topic`."""
        if not texts:
            return np.zeros(0)
        weights = self._weights[int(folds([topic.id])[0])]
        scores: Floats = self._rows(texts, topic) @ weights
        return scores

    def exposing(self, texts: Iterable[str], topic: Topic) -> list[str]:
        """Return the texts that are classified as exposing."""
        given = list(texts)
        scores = self.scores(given, topic)
        return [text for text, score in zip(given, scores, strict=True) if score >= THRESHOLD]

    def _rows(self, texts: Sequence[str], topic: Topic) -> npt.NDArray[np.float64]:
        table = np.zeros((len(texts), len(self._columns) + 3))
        for row, text in enumerate(texts):
            for gram in _grams(text):
                column = self._columns.get(gram)
                if column is not None:
                    table[row, column] = 1.0
        exposing = [t for t, kind in utterances(topic) if kind in ("exposure", "joint")]
        neutral = [t for t, kind in utterances(topic) if kind in ("opener", "follow_up")]
        table[:, -3] = self._closeness(texts, exposing)
        table[:, -2] = self._closeness(texts, neutral)
        table[:, -1] = 1.0
        return table

    def _closeness(self, texts: Sequence[str], others: Sequence[str]) -> Floats:
        """Return 3 times each text's mean similarity to its nearest others but one.

        Similarity is the cosine of the sets of topic words, compared by prefix.
        """
        own, theirs = [[self._topic_words(text) for text in side] for side in (texts, others)]
        columns = {word: column for column, word in enumerate(sorted(set().union(*own, *theirs)))}
        rows = [np.zeros((len(side), len(columns))) for side in (own, theirs)]
        for table, side in zip(rows, (own, theirs), strict=True):
            for row, words in enumerate(side):
                table[row, [columns[word] for word in words]] = 1 / max(1, len(words)) ** 0.5
        nearest = -np.sort(-(rows[0] @ rows[1].T), axis=1)[:, _NEAREST]
        closeness: Floats = 3 * nearest.mean(axis=1)
        return closeness

    def _topic_words(self, text: str) -> set[str]:
        words = _WORD.findall(text.lower())
        return {word[:_BEGINNING] for word in words if word not in self._columns}


def _held_out_weights(table: Floats, targets: Floats, parts: Ints) -> list[Floats]:
    """Return for each fold the ridge regression on all other folds.

    The fold's sums of products are subtracted from the totals.
    """
    inside = [parts == part for part in range(FOLDS)]
    squares = [table[rows].T @ table[rows] for rows in inside]
    products = [table[rows].T @ targets[rows] for rows in inside]
    square = sum(squares) + _RIDGE * np.eye(table.shape[1])
    product = sum(products)
    return [
        np.asarray(np.linalg.solve(square - own, product - right), np.float64)
        for own, right in zip(squares, products, strict=True)
    ]


@cache
def library_classifier() -> ExposureClassifier:
    """Return the classifier trained on the topic library."""
    return ExposureClassifier(tuple(topic_index().values()))


def _texts(topic: Topic) -> Iterable[str]:
    return (text for text, _ in utterances(topic))


def _grams(text: str) -> set[str]:
    words = ["^", *_WORD.findall(text.lower())]
    return {*words, *(" ".join(pair) for pair in pairwise(words)), "^^ " + " ".join(words[1:4])}
