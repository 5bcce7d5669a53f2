"""Which texts give a value away? A reader that judges wording, and never a script's labels.

What gives a value away says something of the speaker's own present, in the words of the matter;
what does not is about someone else, a supposition, a plan or the past, or is about nothing of the
kind. The reader learns that difference from the library's own texts: the words and pairs of words
that many topics share, and how close a text is to the exposures of its topic. A topic is judged by
a reader that has not seen it, so that what it knows is the difference and not the texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from amemgym_env.generation.audit.classifiers import FOLDS, Floats, Ints, folds
from amemgym_env.scenarios.library import Topic, topic_index
from amemgym_env.scenarios.samples import utterances

THRESHOLD = 0.7
"""A text with at least this score counts as a giveaway. Of exposures of topics that the reader has
not seen about .74 reach it, of distractors .02, of neutral openers and follow-ups .04."""

_WORD = re.compile(r"[a-z']+|[.?,]")
_TOPIC_SHARE = 0.2
"""A word counts when this share of the topics uses it: what is rarer belongs to a topic."""
_BEGINNING = 5
"""Letters by which words of the matter are compared: a stem, as good as cheap."""
_RIDGE = 8.0
_NEAREST = slice(1, 4)
"""Which of the nearest exposures count. The very nearest is the text itself, or what the text was
derived from: it would only tell who has a twin."""


class Reader:
    """Scores how much a text reads like one that gives a value of its topic away.

    About 0 for texts that do not and 1 for texts that do; trained on `library`, once for each
    fold of topics.
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

    def giveaways(self, texts: Iterable[str], topic: Topic) -> list[str]:
        """Return those of the texts that read like giveaways."""
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
        neutral = [t for t, kind in utterances(topic) if kind == "question"]
        table[:, -3] = self._closeness(texts, exposing)
        table[:, -2] = self._closeness(texts, neutral)
        table[:, -1] = 1.0
        return table

    def _closeness(self, texts: Sequence[str], others: Sequence[str]) -> Floats:
        """Return each text's mean similarity to its nearest others but one, times 3.

        Similarity is the cosine of the sets of words that belong to the topic, by their beginnings.
        """
        own, theirs = [[self._matter(text) for text in side] for side in (texts, others)]
        columns = {word: column for column, word in enumerate(sorted(set().union(*own, *theirs)))}
        rows = [np.zeros((len(side), len(columns))) for side in (own, theirs)]
        for table, side in zip(rows, (own, theirs), strict=True):
            for row, words in enumerate(side):
                table[row, [columns[word] for word in words]] = 1 / max(1, len(words)) ** 0.5
        nearest = -np.sort(-(rows[0] @ rows[1].T), axis=1)[:, _NEAREST]
        closeness: Floats = 3 * nearest.mean(axis=1)
        return closeness

    def _matter(self, text: str) -> set[str]:
        words = _WORD.findall(text.lower())
        return {word[:_BEGINNING] for word in words if word not in self._columns}


def _held_out_weights(table: Floats, targets: Floats, parts: Ints) -> list[Floats]:
    """Return for each fold the ridge regression on all other folds.

    Sums of products add up over rows, so each fold's are made once, and taken off the total.
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
def library_reader() -> Reader:
    """Return the reader trained on the topic library."""
    return Reader(tuple(topic_index().values()))


def _texts(topic: Topic) -> Iterable[str]:
    return (text for text, _ in utterances(topic))


def _grams(text: str) -> set[str]:
    words = ["^", *_WORD.findall(text.lower())]
    return {*words, *(" ".join(pair) for pair in pairwise(words)), "^^ " + " ".join(words[1:4])}
