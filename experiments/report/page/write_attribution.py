"""Write attribution: the operations that most likely wrote a value, by the words they share.

No model is called. A memory may state a value in other words, so the page shows the likeliest
operation with the reason, and calls a value without any unwritten "by its words".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

Reason = Literal["word for word", "names the value", "shares words"]

_STOP_WORDS = """
a an and any are as at be been but by can could do does for from get got had has have how i if in is
it its just like m me my of on or s should so some t than that the their them there these they this
to ve was we what when which while who will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

LEAST_SHARED = 0.6
"""Share of an utterance's words that a text must hold to count as written from it."""

MOST = 4
"""Operations that are kept for one value."""


class LikelyWrite(NamedTuple):
    """An operation that may have written a value: its turn, its number there, and why."""

    turn: int
    number: int
    reason: Reason
    share: float


def likely_writes(
    variable: str,
    value: str,
    utterances: Sequence[str],
    operations: Iterable[tuple[int, int, str]],
) -> list[LikelyWrite]:
    """Return the operations (turn, number, text) whose text holds a value, likeliest first."""
    flat = [_flat(text) for text in utterances]
    said = [_words(text) for text in flat]
    named, needed = _words(_flat(variable)), _words(_flat(value))
    found: list[tuple[float, LikelyWrite]] = []
    for turn, number, text in operations:
        content = _flat(text)
        words = _words(content)
        share = max((len(own & words) / len(own) for own in said if own), default=0.0)
        if any(own and own in content for own in flat):
            found.append((3.0, LikelyWrite(turn, number, "word for word", 1.0)))
        elif needed and needed <= words and len(named & words) >= 0.5 * len(named):
            share = len((named | needed) & words) / len(named | needed)
            found.append(
                (1.0 + share, LikelyWrite(turn, number, "names the value", round(share, 2)))
            )
        elif share >= LEAST_SHARED:
            found.append((share, LikelyWrite(turn, number, "shares words", round(share, 2))))
    found.sort(key=lambda item: (-item[0], item[1].turn, item[1].number))
    return [trace for _, trace in found[:MOST]]


@lru_cache(maxsize=65_536)
def _flat(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


@lru_cache(maxsize=65_536)
def _words(flat: str) -> frozenset[str]:
    return frozenset(flat.split()) - STOP_WORDS
