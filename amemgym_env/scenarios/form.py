"""Form of messages: what remains of a text without its topic.

Features are counts of function words and marks, classes of length, and the place of the question.
They are sparse and additive, so that a linear score costs one pass over the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|[0-9]+")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+")

_WORDS = (
    "a about advice after all also an and another any anything are around as at available be "
    "because been before being best better between but by can can't could couldn't creative "
    "different do doing don't during each easy effective else especially even every everyone "
    "everything few find finding first for from get getting give go going good great had has "
    "have haven't having help her his hoping how i i'd i'll i'm i've ideas if in instead "
    "interested into is it it's its just keep keeping know lately like long looking lot make "
    "making many maybe me might more most much my need new next no not now of off often on one "
    "only or other our out over own people plan planning practical put rather really recently "
    "recommend set she should simple since so some someone something specific start started "
    "still strategies such suggest suggestions sure take than that that's the their them there "
    "there's these they things think this those time tips to too try trying two up us use using "
    "usual usually want was way ways we we'd we're we've well were what what's when where "
    "whether which while who will with without work working works would you your"
)
GENERAL_WORDS: tuple[str, ...] = tuple(_WORDS.split())
"""Words that carry no topic."""

_GENERAL = frozenset(GENERAL_WORDS)


def words(text: str) -> list[str]:
    """Return the words in lower case, curly apostrophes as plain ones."""
    return _WORD.findall(text.lower().replace("\u2019", "'"))


def features(text: str) -> Iterator[tuple[str, float]]:
    """Yield the non-zero features of a text with their values."""
    found = words(text)
    yield from ((word, 1.0) for word in found if word in _GENERAL)
    yield from ((name, 1.0) for name in _classes(text, found))
    dashes, hyphens = text.count("\u2014") + text.count(" - "), text.count("-")
    if dashes:
        yield "a dash", float(min(dashes, 3))
    if hyphens:
        yield "a hyphen", float(min(hyphens, 3))


def _classes(text: str, found: list[str]) -> tuple[str, ...]:
    sentences = _SENTENCE_END.split(text.strip())
    first = sentences[0]
    letters = sum(map(len, found)) / max(1, len(found))
    return (
        f"length {min((text.count(' ') + 1) // 4, 16)}",
        f"sentences {min(len(sentences), 4)}",
        f"questions {min(text.count('?'), 3)}",
        f"commas {min(text.count(','), 4)}",
        f"letters {min(max(int(letters * 4), 13), 22)}",
        f"first sentence {min((first.count(' ') + 1) // 5, 7) if len(sentences) > 1 else 'alone'}",
        "question first" if first.endswith("?") else "statement first",
    )


def score(text: str, weights: Mapping[str, float]) -> float:
    """Return the weighted sum of the text's features; `weights` hold none of other words."""
    get = weights.get
    found = words(text)
    total = sum(filter(None, map(get, found)))
    total += sum(filter(None, map(get, _classes(text, found))))
    dashes, hyphens = text.count("\u2014") + text.count(" - "), text.count("-")
    if dashes:
        total += get("a dash", 0.0) * min(dashes, 3)
    if hyphens:
        total += get("a hyphen", 0.0) * min(hyphens, 3)
    return total
