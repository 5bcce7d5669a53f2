"""Signals of a failed request: status, codes, words, network cause, stated delay.

Read from the error that litellm raised, the errors behind it and the provider's own response. The
body may have any form: an `error` object, a text, `message`, `detail`, nested JSON, or a web page.
No provider library is imported here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import Any, Literal, NamedTuple

Network = Literal["certificate", "host", "refused", "timeout", "broken"]
Form = Literal["json", "page", "text", "none"]

_TIMEOUTS = {"Timeout", "TimeoutError", "TimeoutException", "APITimeoutError"}
_BROKEN = {"APIConnectionError", "TransportError", "ClientConnectionError", "ConnectionError"}
"""Class names of errors of litellm, openai, httpx, aiohttp and Python, and their bases."""
_HOST = re.compile(
    r"name or service not known|nodename nor servname|getaddrinfo|name resolution", re.IGNORECASE
)
_CODES = ("code", "type", "status", "reason", "error_type")
_WORDS = ("message", "msg", "error", "detail", "details", "param", "metadata", "raw", "error_msg")
_ERRORS = 8
"""Errors that one error was made of, at most."""
_DEPTH = 6
"""Nesting of a body that is read, at most."""


class Signals(NamedTuple):
    """Everything that the decision about a failed request depends on."""

    status: int | None = None
    """HTTP status, or the one that the body of a response with status 200 names."""
    text: str = ""
    """The provider's words; without a body, those of the library."""
    codes: frozenset[str] = frozenset()
    """Values of `code`, `type`, `status` and `reason` in the body, in lower case."""
    form: Form = "none"
    """Form of the body."""
    network: Network | None = None
    """Cause of a request that got no response."""
    sent: Mapping[str, Any] = {}
    """Optional parameters of the request, by name."""
    kinds: frozenset[str] = frozenset()
    """Class names of the raised error."""
    delay: float | None = None
    """Seconds that the provider asks to wait."""


def read_error(error: BaseException, sent: Mapping[str, Any]) -> Signals:
    """Return the signals of a failed request with the optional parameters `sent`."""
    chain = list(_chain(error))
    names = {name for one in chain for name in _names(one)}
    body, status, headers = _response(chain)
    if status is None:
        status = next((found for one in chain if (found := _status(one)) is not None), None)
    network = None if body else _network(names, chain, status)
    if network is not None:
        status = None  # litellm says 500 of a connection that broke
    known = read_body(body, status, sent) if body else Signals(status, str(error), sent=sent)
    return known._replace(
        network=network,
        kinds=frozenset(_names(error)),
        delay=_first(delay_in_headers(headers), delay_in_text(known.text)),
    )


def read_body(body: Any, status: int | None, sent: Mapping[str, Any]) -> Signals:
    """Return the signals of a response's body: text, or its JSON value."""
    value, form = _value(body)
    codes: set[str] = set()
    words: list[str] = []
    _collect(value, codes, words)
    if form == "page":
        words = [" ".join(re.sub(r"<[^>]*>", " ", str(body)[:4000]).split())]
    text = " | ".join(dict.fromkeys(words)) or (str(body) if body else "")
    return Signals(status, text, frozenset(codes), form, None, sent, delay=delay_in_text(text))


def _value(body: Any) -> tuple[Any, Form]:
    if not isinstance(body, str):
        return body, "json" if body else "none"
    stripped = body.strip()
    if re.match(r"<(!doctype|html|head|\?xml)", stripped, re.IGNORECASE):
        return stripped, "page"
    try:
        return json.loads(stripped), "json"
    except (ValueError, RecursionError):
        return stripped, "text" if stripped else "none"


def _collect(value: Any, codes: set[str], words: list[str], depth: int = 0) -> None:
    """Gather codes and words of a body; texts that hold JSON are read too."""
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            _collect(item, codes, words, depth + 1)
    elif isinstance(value, str):
        inner, form = _value(value)
        if form == "json" and isinstance(inner, dict | list):
            _collect(inner, codes, words, depth + 1)
        elif value.strip():
            words.append(value.strip())
    elif isinstance(value, Mapping):
        for name, part in value.items():
            if name in _CODES and isinstance(part, str | int) and not isinstance(part, bool):
                codes.add(str(part).lower())
        for name in _WORDS:
            if name in value:
                _collect(value[name], codes, words, depth + 1)
        if isinstance(value.get("retryDelay"), str):
            words.append(f"retryDelay {value['retryDelay']}")
        if isinstance(value.get("loc"), list):
            words.append(".".join(map(str, value["loc"])))
        for name in ("innererror", "provider_specific_fields", "contentFilter"):
            if name in value:
                _collect(value[name], codes, words, depth + 1)


def _chain(error: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = error
    for _ in range(_ERRORS):
        if one is None:
            return
        yield one
        one = one.__cause__ or one.__context__


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _status(error: BaseException) -> int | None:
    found = getattr(error, "status_code", None)
    return found if isinstance(found, int) else None


def _response(chain: list[BaseException]) -> tuple[str, int | None, Any]:
    """Return the provider's body, its status and its headers, as far as there are any."""
    headers: Any = None
    for error in chain:
        response = getattr(error, "response", None)
        for found in (
            getattr(error, "litellm_response_headers", None),
            getattr(response, "headers", None),
        ):
            headers = headers or found
        try:
            body = str(getattr(response, "text", "") or "")
        except Exception:  # noqa: BLE001 - a stream that was not read has no text
            body = ""
        if body:
            return body, getattr(response, "status_code", None), headers
    return "", None, headers


def _network(names: set[str], chain: list[BaseException], status: int | None) -> Network | None:
    text = " ".join(map(str, chain))
    if "SSLCertVerificationError" in names or "CERTIFICATE_VERIFY_FAILED" in text:
        return "certificate"
    if "gaierror" in names or _HOST.search(text):
        return "host"
    if "ConnectionRefusedError" in names or "Connect call failed" in text:
        return "refused"
    if names & _TIMEOUTS and status not in (504,):
        return "timeout"
    if names & _BROKEN or status is None:
        return "broken"
    return None


def delay_in_headers(headers: Any) -> float | None:
    """Return the seconds of a Retry-After header, if one came.

    A date counts from the date that the server gives with it, not from this machine's clock.
    """
    if headers is None:
        return None
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is not None and re.fullmatch(r"\d+(\.\d+)?", str(value).strip()):
            return float(value) * scale
    until, now = (_date(headers, name) for name in ("retry-after", "date"))
    return max(0.0, until - now) if until is not None and now is not None else None


def _date(headers: Any, name: str) -> float | None:
    parsed = parsedate_tz(str(headers.get(name)))
    return None if parsed is None else float(mktime_tz(parsed))


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DELAY = re.compile(
    r"(?:retryDelay|(?:re)?try(?: again)?[ _](?:in|after)|wait(?: for)?|retry_after\D{0,3}"
    r"|reset(?:s)? in)\s*:?\s*((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|minutes?"
    r"|mins?|hours?|days?|s|m|h|d)\b\s*|\d+(?:\.\d+)?[hm](?=\d))+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|s|m|h|d)", re.IGNORECASE)


def delay_in_text(text: str) -> float | None:
    """Return the seconds that a body's words state, such as `Please try again in 9m38.016s`."""
    found = _DELAY.search(text[:20_000])
    if found is None:
        return None
    return sum(
        float(number) * _UNITS["ms" if unit.lower() == "milli" else unit.lower()]
        for number, unit in _PART.findall(found[1])
    )


def _first(*found: float | None) -> float | None:
    return next((value for value in found if value is not None), None)
