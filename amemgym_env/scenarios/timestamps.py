"""Scenario timestamps. No score depends on the wall clock.

A time without a zone is read as UTC; the variable `TZ` has no effect.
"""

from __future__ import annotations

import calendar
from datetime import UTC, datetime


def instant(text: str) -> datetime:
    """Return the instant that an ISO 8601 date or time names.

    Raises:
        ValueError: `text` is no ISO 8601 date or time.
    """
    moment = datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def iso(text: str) -> str:
    """Return the same date or time with a `T` between date and time (ISO 8601)."""
    return datetime.fromisoformat(text.strip()).isoformat()


def add_months(start: datetime, months: int) -> datetime:
    """Return `start` moved by whole months; a day that the month lacks becomes its last.

    Compute every period from the first start: repeated addition would turn the 31st into the
    28th for good.
    """
    index = start.year * 12 + start.month - 1 + months
    year, month = divmod(index, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return start.replace(year=year, month=month + 1, day=min(start.day, last))
