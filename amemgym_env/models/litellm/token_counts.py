"""Token counts without a tokenizer: estimates, and prompts that a provider cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from amemgym_env.prompts.base import Message

_PIECES = re.compile(r"\w+|[^\w\s]+")
"""Words and runs of signs: a tokenizer makes at least one token of each."""
_SHORT = 1000
"""Prompts of fewer pieces are not checked, as no window is that small."""
_MARGIN = 0.9


def about(texts: Iterable[str]) -> int:
    """Return about how many tokens texts have: four characters each."""
    return sum(len(text) + 3 for text in texts) // 4


def shortfall(messages: Sequence[Message], counted: int) -> int | None:
    """Return the least number of tokens that messages have, if a provider counted far fewer."""
    characters = sum(len(part["content"]) for part in messages)
    if not counted or characters < 2 * _SHORT or counted * 3 > characters:
        return None
    pieces = sum(1 for part in messages for _ in _PIECES.finditer(part["content"]))
    return pieces if pieces > _SHORT and counted < _MARGIN * pieces else None
