"""The form of utterances, and how to draw them so that form tells nothing.

People write a question about their neighbour a little longer than one about themselves. Were texts
drawn evenly, length and punctuation alone would tell what gives something away. So texts are drawn
by weights: how much likelier a text's form is among exposing utterances than among its own kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from amemgym_env.seeding import Key, uniforms

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

_MOST = 16.0
"""Largest weight, and the inverse of the smallest: no text is drawn always or never."""
_STEPS = 12
_RIDGE = 1e-5
"""Newton steps to the weights, and the pull towards even ones where few texts leave no choice. It
is faint: words and their squares say nearly the same, and a small difference between them tells.
"""


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
        sum(not (c.isalpha() or c.isspace() or c in ".?,") for c in text),
    )


def weights(
    groups: Sequence[Sequence[str]],
    shares: Sequence[float],
    wanted: Sequence[str],
    masses: Sequence[float],
) -> dict[str, float]:
    """Return a weight for each text: drawn so, the mean form of texts is that of `wanted`.

    Somebody draws a group as often as its share says and then a text of it by weight; the texts
    of `wanted` are met as often as their `masses` say. The weights are exponential in the form,
    which among all weights that give these means is the choice nearest to drawing evenly. They are
    at most `_MOST`, and at least its inverse.
    """
    pool = [text for group in groups for text in group]
    rows = np.array([form(text) for text in [*wanted, *pool]])
    spread = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.where(spread > 1e-12, spread, np.inf)
    target = np.average(rows[: len(wanted)], axis=0, weights=np.array(masses))
    ends = len(wanted) + np.cumsum([0, *(len(group) for group in groups)])
    parts = [rows[start:end] for start, end in pairwise(ends)]
    portions = np.array(shares) / sum(shares)
    tilt = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        slope, curved = target - _RIDGE * tilt, _RIDGE * np.eye(len(tilt))
        for part, portion in zip(parts, portions, strict=True):
            odds = _odds(part @ tilt)
            mean = odds @ part
            slope = slope - portion * mean
            curved = curved + portion * ((part - mean).T * odds) @ (part - mean)
        tilt = tilt + np.linalg.solve(curved, slope)
    return {
        text: float(weight)
        for group, part in zip(groups, parts, strict=True)
        for text, weight in zip(
            group, np.clip(len(part) * _odds(part @ tilt), 1 / _MOST, _MOST), strict=True
        )
    }


def _odds(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max())
    odds: Floats = powers / powers.sum()
    return odds


def order(texts: Sequence[str], weight: Mapping[str, float], *key: Key) -> list[str]:
    """Return the texts in a random order in which heavier ones tend to come first.

    The first is drawn by weight, the next by weight among the rest, and so on; the same for the
    same key. Texts without a weight count 1.
    """
    draws = uniforms(len(texts), *key)
    waits = [
        -math.log(1 - draw) / weight.get(text, 1.0) for draw, text in zip(draws, texts, strict=True)
    ]
    return [texts[index] for index in sorted(range(len(texts)), key=waits.__getitem__)]
