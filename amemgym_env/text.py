"""Text that every file and database can store."""

from __future__ import annotations


def storable(text: str) -> str:
    """Return the text with surrogate pairs joined and lone halves as U+FFFD; else unchanged."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
