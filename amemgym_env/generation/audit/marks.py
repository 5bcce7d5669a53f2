"""Plain marks of a text's form: length and punctuation."""

from __future__ import annotations

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
