"""Numbers of tokens in refusals: window, prompt and the largest reply that is allowed."""

from __future__ import annotations

import re
from typing import Literal

_N = r"\s*[`'\"]?\s*(\d[\d,]*)"
_WINDOW = re.compile(
    rf"(?:context.{{0,20}}(?:length|window|size|limit)|max_new_tokens.{{0,4}} must be"
    rf"|n_ctx)\D{{0,24}}{_N}",
    re.IGNORECASE | re.DOTALL,
)
_PROMPT = re.compile(
    r"(\d[\d,]*)\s*(?:`inputs`|input|prompt)? ?(?:`inputs` )?tokens from the input"
    r"|(\d[\d,]*) in the messages|prompt contains at least (\d[\d,]*)"
    r"|has (\d[\d,]*) input tokens|given: (\d[\d,]*) `?inputs`?|(\d[\d,]*) in your prompt"
    r"|limit: (\d[\d,]*) \+",
    re.IGNORECASE,
)
_SUM = re.compile(r"limit: (\d+) \+ \d+ > (\d+)", re.IGNORECASE)
_LIMIT = re.compile(
    r"(?:at most|model limit of|(?:lower|less) than|less than or equal to|must be <=|value <=)"
    rf"{_N}(?! tokens and)|\[\d+,\s*(\d+)\]|\d+ > (\d+), which",
    re.IGNORECASE,
)


def overflow(text: str) -> tuple[int | None, int | None]:
    """Return the window and the prompt's length that a refusal states, in tokens."""
    both = _SUM.search(text)
    if both:
        return int(both[2]), int(both[1])
    window, prompt = _WINDOW.search(text), _PROMPT.search(text)
    return (
        None if window is None else _number(window[1]),
        None if prompt is None else next(_number(part) for part in prompt.groups() if part),
    )


def fits(text: str, limit: int | None) -> Literal["yes", "no", "unknown"]:
    """Return whether a refusal states that the prompt alone fits the window.

    `limit` is the limit on the reply that was sent; without one, nothing else can be at fault.
    """
    window, prompt = overflow(text)
    if window is None or prompt is None or limit is None:
        return "unknown"
    return "yes" if prompt < window else "no"


def stated_limit(text: str, limit: int | None) -> int | None:
    """Return the largest reply that a refusal allows, in tokens, if it is below `limit`."""
    window, prompt = overflow(text)
    allowed = None
    if window is not None and prompt is not None:
        allowed = window - prompt
    else:
        found = _LIMIT.search(text)
        if found is not None:
            allowed = next(_number(part) for part in found.groups() if part)
    return allowed if allowed is not None and limit is not None and 0 < allowed < limit else None


def _number(text: str) -> int:
    return int(text.replace(",", ""))
