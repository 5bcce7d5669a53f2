"""Entropy balancing: sampling weights that make the form of quiet texts match exposing texts.

Length and punctuation differ between kinds of utterances and would reveal the exposing ones.
Weights exponential in the form features equalise the means (Hainmueller, 2012).
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
"""Largest weight, and the inverse of the smallest."""
_STEPS = 12
_RIDGE = 1e-5
"""Newton steps, and the ridge penalty towards uniform weights. The penalty is weak because the
features words and words squared are nearly collinear."""


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
    """Return a weight for each text, such that the mean form equals that of `wanted`.

    A group is drawn with probability proportional to its share, then a text by its weight; the
    texts of `wanted` occur in proportion to their `masses`. The weights are exponential in the
    form, the closest to uniform with these means, and clipped to 1 / `_MOST` .. `_MOST`.
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
