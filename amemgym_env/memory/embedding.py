"""Embedders from text to vectors of small integers, whose inner products are exact.

A unit vector is scaled by 127 and rounded; inner products of such vectors are integers below
2**24, exact in float32 and equal in any order of summation. The default is a pure function of the
text: no corpus statistics, no weights, no network.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import snowballstemmer  # type: ignore[import-untyped]

Vectors = npt.NDArray[np.float32]
"""Integers in -127..127, shape (texts, width); float32 so that a matrix product is fast."""

SCALE = 127

_STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any anything are as ask at be because been
    before being best better between both but by can could did do does doing down during
    each ensure even ever every few find for from get getting give given go going good great
    had has have having he help helpful her here hers him his how i idea ideas if in into is
    it its just keep know let like likely lot make making many may me might mine more most
    much my need new no not now of off often on once one only or other others our ours out
    over own please provide recommend recommendations same she should since so some someone
    something still such suggest suggestions sure take than that the their theirs them then
    there these they thing things this those through tips to too try trying under until up
    us use using very want was way ways we well were s t ll re ve m d don what when where
    which while who why will wish with without would you your yours
    """.split()  # noqa: SIM905 - a list would take two hundred lines
)
_WORD = re.compile(r"[^\W_]+")
_stemmer = snowballstemmer.stemmer("english")
# The stemmer keeps the word that it works on in itself: one thread at a time.
_stemming = threading.Lock()


class Embedder(Protocol):
    """Turns texts into integer vectors; `name` identifies the function in results."""

    name: str

    @property
    def width(self) -> int:
        """Number of columns of its vectors."""
        ...

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (len(texts), width), integers in -127..127 as float32."""
        ...


def quantize(rows: npt.NDArray[np.floating]) -> Vectors:
    """Return rows scaled to length 127 and rounded; a zero row stays zero.

    Raises:
        ValueError: a row holds NaN or infinity.
    """
    if not np.isfinite(rows).all():
        raise ValueError("expected finite embeddings, found NaN or infinity")
    norms = np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    units = np.divide(rows, norms, out=np.zeros(rows.shape, np.float64), where=norms > 0)
    vectors: Vectors = np.rint(units * SCALE).astype(np.float32)
    return vectors


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the stem of a lower-case English word."""
    with _stemming:
        stemmed: str = _stemmer.stemWord(word)
    return stemmed


def terms(text: str) -> list[str]:
    """Return the stems of a text's words, without stop words, in order."""
    words = _WORD.findall(text.lower())
    return [stem(word) for word in words if word not in _STOP_WORDS]


class HashedTerms:
    """The default embedder: stems, without stop words, hashed into `width` columns.

    Terms count by their plain frequency. Texts without any term embed as zero and
    are similar to nothing.
    """

    def __init__(self, width: int = 1024) -> None:
        self.name = f"hashed-terms-{width}"
        self.width = width
        self._columns: dict[str, int] = {}
        self._embed = lru_cache(maxsize=4096)(self._embed_one)  # 16 MB at the default width

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return integer vectors of shape (len(texts), width)."""
        if not texts:
            return np.zeros((0, self.width), np.float32)
        return np.stack([self._embed(text) for text in texts])

    def __reduce__(self) -> tuple[type[HashedTerms], tuple[int]]:
        """Pickle the width alone: the caches can be made anew."""
        return HashedTerms, (self.width,)

    def _embed_one(self, text: str) -> npt.NDArray[np.float32]:
        row = np.zeros((1, self.width))
        for term, count in Counter(terms(text)).items():
            row[0, self._column(term)] += count
        vector: npt.NDArray[np.float32] = quantize(row)[0]
        vector.flags.writeable = False
        return vector

    def _column(self, term: str) -> int:
        column = self._columns.get(term)
        if column is None:
            hashed = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            column = self._columns[term] = int.from_bytes(hashed, "big") % self.width
        return column


DEFAULT = HashedTerms()
