"""What a failed attempt means: try again, an answer of its own kind, or a mistake in the settings.

Errors are told apart by status and class name, so this file needs no provider library. Transport
(network, rate limit, server) is retried; content (filter, context too long) is the model's answer;
a refused parameter is left out; a refused key or unknown model ends the run before it costs more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from typing import Any, Literal

from amemgym_env.errors import Cause, Reason
from amemgym_env.models.redaction import redacted
from amemgym_env.seeding import uniform

Kind = Literal["transport", "permanent", "content", "parameter", "settings"]

_CONTEXT = re.compile(
    r"context.?(length|window|size)|maximum.{0,20}tokens|too many tokens|prompt is too long"
    r"|input is too long|exceeds? the (available )?context|reduce the length",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content.?(filter|policy|management)|safety|moderation", re.IGNORECASE)
_PARAMETER = re.compile(
    r"unsupported|not support|unknown|unrecognized|unexpected|invalid|not permitted|extra inputs"
    r"|must contain the word|validation error",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_TIMEOUTS = {"Timeout", "TimeoutError", "TimeoutException", "APITimeoutError"}
_BROKEN = {"APIConnectionError", "TransportError", "ClientConnectionError", "ConnectionError"}
"""Class names of errors of litellm, openai, httpx, aiohttp and Python, and their bases."""
_LONGEST_DELAY = 60.0
"""Seconds between two attempts at most, unless the provider asks for more."""
_DEPTH = 8
"""Errors that one error was made of, at most."""
OPTIONAL = ("temperature", "seed", "response_format", "max_tokens", "max_completion_tokens")
"""Parameters that a call can do without."""


@dataclass(frozen=True)
class Fault:
    """One failed attempt, classified."""

    kind: Kind
    message: str
    """Without secrets."""
    cause: Cause | None = None
    """With kind content: how the reply is counted."""
    parameters: tuple[str, ...] = ()
    """With kind parameter: what the model refused."""
    retry_after: float | None = None
    """Seconds that the provider asks to wait."""
    reason: Reason = "rejected"
    """With kind transport: what failed."""


def classify(error: Exception) -> Fault:
    """Return what a failed attempt means."""
    names = _names(error)
    text = str(error)
    message = _short(redacted(f"{type(error).__name__}: {text}"))
    status = getattr(error, "status_code", None)
    if "ContextWindowExceededError" in names:
        return Fault("content", message, "context_exceeded")
    if "ContentPolicyViolationError" in names:
        return Fault("content", message, "filtered")
    if "Invalid response object" in text and "valid string" in text:
        return Fault("content", message, "unreadable")  # answered and billed, in a form unknown
    # Some servers answer 500 where they cannot read a parameter.
    unread = status == 500 and "validation error" in text
    if "UnsupportedParamsError" in names or status in (400, 422) or unread:
        refused = tuple(name for name in OPTIONAL if re.search(rf"\b{name}\b", text))
        if "must contain the word" in text:
            refused = ("response_format",)
        if refused and ("UnsupportedParamsError" in names or _PARAMETER.search(text)):
            return Fault("parameter", message, parameters=refused)
        if _CONTEXT.search(text):
            return Fault("content", message, "context_exceeded")
        if _FILTER.search(text):
            return Fault("content", message, "filtered")
        if unread:
            return Fault("transport", message, reason="server_error")
        unknown = "LiteLLMUnknownProvider" in names or "LLM Provider NOT provided" in text
        return Fault("settings" if unknown else "permanent", message)
    if status in (401, 402, 403, 404):
        return Fault("settings", message)
    if status == 413:
        return Fault("content", message, "context_exceeded")
    if status == 429:
        if _QUOTA.search(text):
            return Fault("permanent", message)
        return Fault("transport", message, retry_after=_retry_after(error), reason="rate_limit")
    if isinstance(error, TypeError | KeyError | AttributeError | ImportError | NameError):
        return Fault("permanent", message)  # a defect, here or in a library: repeating cannot help
    return Fault("transport", message, retry_after=_retry_after(error), reason=_failed(error))


def out_of_time(timeout: float, wanted: str = "answer") -> Fault:
    """Return the fault of an attempt that took longer than it may (seconds)."""
    return Fault("transport", f"no {wanted} within {timeout:g} seconds", reason="timeout")


def delay(fault: Fault, failed: int, first: float, model: str, text: str) -> float:
    """Return the seconds to wait after the `failed`-th attempt.

    They double from `first` seconds up to a minute, with jitter drawn for the model and the text;
    never less than the provider asks for.
    """
    jitter = 0.5 + uniform("retry", model, text, failed) / 2
    doubled = first * 2.0 ** min(failed - 1, 60)
    return max(min(_LONGEST_DELAY, doubled) * jitter, fault.retry_after or 0.0)


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _failed(error: Exception) -> Reason:
    """Return what failed in transport.

    litellm says status 500 of a connection that broke, too: what it was made of tells.
    """
    names: set[str] = set()
    one: BaseException | None = error
    for _ in range(_DEPTH):
        if one is None:
            break
        names |= _names(one)
        one = one.__cause__ or one.__context__
    status = getattr(error, "status_code", None)
    if status in (408, 504) or names & _TIMEOUTS:
        return "timeout"
    if names & _BROKEN or not isinstance(status, int):
        return "disconnect"
    return "server_error"


def _retry_after(error: Exception) -> float | None:
    """Return the seconds of a Retry-After header, if one came.

    A date counts from the date that the server gives beside it, not from this machine's clock.
    """
    response = getattr(error, "response", None)
    for headers in (
        getattr(error, "litellm_response_headers", None),
        getattr(response, "headers", None),
    ):
        for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            value = None if headers is None else headers.get(name)
            if value is not None and re.fullmatch(r"\d+(\.\d+)?", str(value).strip()):
                return float(value) * scale
        until, now = (_date(headers, name) for name in ("retry-after", "date"))
        if until is not None and now is not None:
            return max(0.0, until - now)
    return None


def _date(headers: Any, name: str) -> float | None:
    parsed = parsedate_tz(str((headers or {}).get(name)))
    return None if parsed is None else float(mktime_tz(parsed))


def _short(text: str, most: int = 300) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}..."
