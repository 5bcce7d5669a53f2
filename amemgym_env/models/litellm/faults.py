"""Faults: failed attempts with their decision, and the delay before the next attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amemgym_env.errors import Cause, Reason
from amemgym_env.models.litellm.decisions import PARAMETERS, Action, decide
from amemgym_env.models.litellm.signals import Signals, read_error
from amemgym_env.models.redaction import redacted
from amemgym_env.seeding import uniform

LONGEST_DELAY = 60.0
"""Seconds between two attempts at most, unless the provider asks for more."""


@dataclass(frozen=True)
class Fault:
    """One failed attempt and what it means."""

    action: Action
    message: str
    """Without secrets."""
    cause: Cause | None = None
    """With failure: how the reply is counted."""
    parameters: tuple[str, ...] = ()
    """With parameter and window: what to leave out."""
    limit: int | None = None
    """What to lower the limit on the reply to; None: leave it out."""
    delay: float | None = None
    """Seconds that the provider asks to wait."""
    reason: Reason = "rejected"
    """With retry and unscored: what failed."""
    first: bool = False
    """Before the first answer this is a mistake in the settings."""
    row: str = ""
    """Row of the decision table."""


def classify(error: Exception, sent: Mapping[str, Any] | None = None) -> Fault:
    """Return what a failed attempt means; `sent` are the arguments of the request."""
    optional = {name: value for name, value in (sent or {}).items() if name in PARAMETERS}
    return fault_of(read_error(error, optional), type(error).__name__)


def fault_of(signals: Signals, name: str = "") -> Fault:
    """Return the fault that signals lead to; `name` is the class of the library's error."""
    decision = decide(signals)
    row = decision.row
    status = "" if signals.status is None else f"HTTP {signals.status}: "
    advice = f"{row.advice}: " if row.advice else ""
    return Fault(
        row.action,
        shortened(redacted(f"{advice}{status}{signals.text or name}")),
        row.cause,
        decision.parameters,
        decision.limit,
        signals.delay,
        row.reason,
        row.first,
        row.name,
    )


def out_of_time(timeout: float, wanted: str = "answer") -> Fault:
    """Return the fault of an attempt that took longer than it may (seconds)."""
    text = f"no {wanted} within {timeout:g} seconds"
    return Fault("retry", text, reason="timeout", row="no answer in time")


def delay(fault: Fault, failed: int, first: float, model: str, text: str) -> float:
    """Return the seconds to wait after the `failed`-th attempt.

    They double from `first` seconds up to a minute, with jitter drawn for the model and the text;
    never less than the provider asks for.
    """
    jitter = 0.5 + uniform("retry", model, text, failed) / 2
    doubled = first * 2.0 ** min(failed - 1, 60)
    return max(min(LONGEST_DELAY, doubled) * jitter, fault.delay or 0.0)


def shortened(text: str, most: int = 300) -> str:
    """Return a text as one line of so many characters at most."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}..."
