"""Redaction of secrets in errors, records and logs.

Keys come from the environment alone and stay there. What a provider or a library says may echo
them, so its words pass through here first.
"""

from __future__ import annotations

import logging
import os
import re

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_LOOKS_SECRET = re.compile(
    r"(?i:\bbearer\s+)[^\s\"',;]+|\b(?:sk|pk|rk|key|hf|gsk|xai|ghp|AIza)[-_][\w-]{8,}|AIza[\w-]{20,}"
)
_URL_USER = re.compile(r"(?<=://)[^/\s@]+@")
_SHORTEST = 8
"""Shorter values of environment variables may be ordinary words."""

REDACTED = "[redacted]"


def redacted(text: str) -> str:
    """Return a text without keys: values of the environment, and what looks like one."""
    text = _LOOKS_SECRET.sub(REDACTED, without_keys(text))
    return _URL_USER.sub(f"{REDACTED}@", text)


def without_keys(text: str) -> str:
    """Return a text without the values of the environment that are secret by name."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST and value in text and _NAMES.search(name):
            text = text.replace(value, REDACTED)
    return text


class RedactingFilter(logging.Filter):
    """Takes keys out of log records; for the loggers of libraries that talk to providers."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the record's text by one without keys; keep every record."""
        record.msg, record.args = redacted(record.getMessage()), None
        if record.exc_info:
            kind, error, _ = record.exc_info
            record.msg += f" ({getattr(kind, '__name__', kind)}: {redacted(str(error))})"
            record.exc_info = None
        return True


def guard_loggers(*names: str) -> None:
    """Take keys out of what the named loggers say, from now on; once for each."""
    for name in names:
        logger = logging.getLogger(name)
        if not any(isinstance(known, RedactingFilter) for known in logger.filters):
            logger.addFilter(RedactingFilter())
