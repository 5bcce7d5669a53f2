"""The form of utterances, and how to draw them so that form tells nothing.

People write a question about their neighbour a little longer than one about themselves. Were texts
drawn evenly, length and punctuation alone would tell what gives something away. So texts are drawn
by weights: how much likelier a text's form is among exposing utterances than among its own kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from amemgym_env.randomness import Key, uniform

Floats = npt.NDArray[np.float64]

FORM = (
    "words",
    "words squared",
    "characters a word",
    "ends in ?",
    "question marks",
    "full stops",
    "commas",
    "other marks",
)

_MARKS = frozenset("!;:\"'-()0123456789“”‘’—–")
_MOST = 8.0
"""Largest weight, and the inverse of the smallest: no text is drawn always or never."""


def form(text: str) -> tuple[float, ...]:
    """Return the features `FORM` of a text: counts of words, characters and punctuation."""
    words = len(text.split())
    return (
        words,
        words**2,
        len(text) / max(1, words),
        text.rstrip().endswith("?"),
        text.count("?"),
        text.count("."),
        text.count(","),
        sum(character in _MARKS for character in text),
    )


def weights(pool: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
    """Return a weight, 1/8..8, for each text of `pool`: drawn so, its form is that of `wanted`.

    The weight is the odds that a text of this form comes from `wanted`, by a logistic regression
    in which both lists count the same.
    """
    rows = np.array([form(text) for text in [*wanted, *pool]])
    spread = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.where(spread > 1e-12, spread, np.inf)
    targets = np.repeat([1.0, 0.0], [len(wanted), len(pool)])
    masses = np.repeat([0.5 / max(1, len(wanted)), 0.5 / max(1, len(pool))], [len(wanted), len(pool)])
    fitted = logistic(rows, targets, masses * len(rows))
    scores = rows[len(wanted) :] @ fitted[:-1] + fitted[-1]
    odds = np.exp(np.clip(scores, -math.log(_MOST), math.log(_MOST)))
    return dict(zip(pool, odds.tolist(), strict=True))


def order(texts: Sequence[str], weight: Mapping[str, float], *key: Key) -> list[str]:
    """Return the texts in a random order in which heavier ones tend to come first.

    The first is drawn by weight, the next by weight among the rest, and so on; the same for the
    same key. Texts without a weight count 1.
    """
    waits = [
        -math.log(1 - uniform(*key, index)) / weight.get(text, 1.0)
        for index, text in enumerate(texts)
    ]
    return [texts[index] for index in sorted(range(len(texts)), key=waits.__getitem__)]


def logistic(
    rows: Floats,
    targets: Floats,
    masses: Floats | None = None,
    ridge: float = 1.0,
    steps: int = 25,
) -> Floats:
    """Return the weights, the constant last, of a logistic regression by Newton's method.

    `rows` (N, F) standardized; `targets` (N,) in 0..1; `masses` (N,) how much each row counts
    (default 1); `ridge` the penalty of every weight but the constant.
    """
    counted = np.ones(len(rows)) if masses is None else masses
    design = np.hstack([rows, np.ones((len(rows), 1))])
    fitted = np.zeros(design.shape[1])
    penalty = ridge * np.eye(len(fitted))
    penalty[-1, -1] = 1e-6
    for _ in range(steps):
        chances = 1 / (1 + np.exp(-np.clip(design @ fitted, -30, 30)))
        slope = design.T @ (counted * (targets - chances)) - penalty @ fitted
        curved = (design * (counted * chances * (1 - chances))[:, None]).T @ design + penalty
        step = np.linalg.solve(curved, slope)
        fitted = fitted + step
        if float(np.abs(step).max()) < 1e-8:
            break
    return fitted
