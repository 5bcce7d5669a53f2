"""Decision table: what a failed request means, from what came back and what was sent.

`ROWS` is read from the top; the first row whose conditions all hold decides. Conditions that are
left out hold always. If no row matches, the outcome is infrastructure: the request is tried again,
and in the end its cell is unscored; it is never the model's answer.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from amemgym_env.errors import Cause, Reason
from amemgym_env.models.litellm.limits import fits, stated_limit
from amemgym_env.models.litellm.signals import Signals

Action = Literal["failure", "parameter", "window", "retry", "stop", "unscored"]
"""failure: the model's own, counted as wrong under its cause. parameter: left out or lowered, once
for the run. window: the limit on the reply is left out for this prompt. retry: wait and try again.
stop: no further call can pass. unscored: refused for good."""

PARAMETERS = {
    "temperature": r"\btemperature\b",
    "seed": r"\bseed\b",
    "response_format": r"response[ _]?format|json_(schema|object)|json mode|structured output"
    r"|must contain the word",
    "max_tokens": r"max_(completion_|new_|output_)?tokens|max_?output_?tokens"
    r"|maximum tokens you requested|num_predict",
}
"""Optional parameters, and the words by which refusals name them."""

_CONTEXT = (
    r"context.{0,12}(length|window|size|limit)|n_ctx|context the overflows|context_exceeded"
    r"|maximum (prompt|input) length|prompt.{0,60}(too (long|large)|exceeds|longer than|max)"
    r"|input.{0,20}too long|input length|length of input|input.{0,12}tokens?\b"
    r"|too many (input )?tokens|token (limit|count)|inputs.{0,4}tokens|inputs.{0,6}must have less"
    r"|reduce (the|your) (length|prompt)|maximum.{0,24}tokens|max size: \d+ tokens"
    r"|shorter (input|prompt)|max_tokens must be at least 1|longer than the model"
)
_REPLY = r"tokens.{0,40}(too large|at most|maximum|exceeds?|limit|less than|range|<=|> \d)"
_FILTER = (
    r"content.?(filter|policy|management|violates|exists risk)|content blocked|flagged|moderation"
    r"|inappropriate content|data.?inspection|usage guidelines|safety (reasons|system|policy|check)"
    r"|safety_check|responsible.?ai|high risk|prohibited_content|敏感内容"
)
_ACCOUNT = (
    r"credit balance is too low|insufficient (account )?(balance|credits|funds)|more credits"
    r"|余额不足|recharge your account|account.{0,40}(good standing|suspended|not active)"
)
_UNKNOWN_MODEL = (
    r"model.{0,60}(not exist|not found|not a valid|unknown)|invalid model|not a valid model"
    r"|unknown model"
)
_KEY = r"api.?key.{0,20}(not valid|expired|invalid)|(invalid|incorrect|no) api.?key"
_NO_KEY = (
    r"missing credentials|missing .{0,20}api key|api_key client option must be set|no key is set"
)


class Row(NamedTuple):
    """One line of the table."""

    name: str
    action: Action
    status: str = ""
    """Statuses, and ranges such as 5xx."""
    code: str = ""
    """Expression that a whole code of the body matches."""
    words: str = ""
    """Expression that is found in the text."""
    network: str = ""
    form: str = ""
    kind: str = ""
    """Class name of the library's error."""
    sends: str = ""
    """Parameter that the request had; `named`: any that the text names."""
    fits: str = ""
    """Whether the text says that the prompt alone fits the window: yes, no, unknown."""
    cause: Cause | None = None
    reason: Reason = "rejected"
    first: bool = False
    """With retry: before the first answer it is a mistake in the settings, and stops the run."""
    advice: str = ""


def _failed(name: str, cause: Cause, **when: Any) -> Row:
    return Row(name, "failure", cause=cause, **when)


def _retry(name: str, reason: Reason, **when: Any) -> Row:
    return Row(name, "retry", reason=reason, **when)


_OVERFLOW = "400 413 416 422 500"
_REFUSED = "400 403 422 451"

ROWS: tuple[Row, ...] = (
    Row("certificate", "stop", network="certificate", advice="the server's certificate is not "
        "trusted here; set SSL_CERT_FILE to its authority, or use another backend.api_base"),
    _retry("unknown host", "disconnect", network="host", first=True,
           advice="the host name is unknown; check backend.api_base and the network"),
    _retry("refused connection", "disconnect", network="refused", first=True,
           advice="nothing listens at this address; start the server or check backend.api_base"),
    Row("key with a line break", "stop", words=r"control character.{0,20}header|illegal header",
        advice="the API key holds a line break or control character"),
    Row("no key", "stop", words=_NO_KEY, advice="no API key in the environment"),
    Row("unknown provider", "stop", words=r"llm provider not provided", advice="backend.model "
        "needs a provider in front, such as openai/NAME"),
    _retry("no answer in time", "timeout", network="timeout"),
    Row("stream", "stop", words=r"chat\.completion\.chunk|received: 'data: ",
        advice="this server always streams; switch its streaming off"),
    Row("parameter unknown to litellm", "parameter", kind="UnsupportedParamsError", sends="named"),
    _failed("response in an unknown form", "unreadable",
            words=r"invalid response object.*valid string"),
    Row("account: code", "stop", code=r"insufficient_quota|exceeded_current_quota_error"
        r"|insufficient_balance.*|1113|arrearage|credit_balance_too_low",
        advice="the account is empty"),
    Row("account: words", "stop", words=_ACCOUNT, advice="the account is empty"),
    Row("account: 402", "stop", status="402", advice="the account is empty"),
    _retry("rate limit: 429", "rate_limit", status="429"),
    _retry("rate limit: code", "rate_limit", code=r"rate_limit.*|throttl.*|too_many_requests"
           r"|resource_exhausted"),
    _retry("rate limit: words", "rate_limit", status="400 403 413 498 503",
           words=r"tokens per (min|day)|rate limit"),
    Row("key: 401", "stop", status="401", advice="the API key was refused"),
    Row("key: code", "stop", code=r"invalid_api_key|api_key_invalid|authentication_error",
        advice="the API key was refused"),
    Row("key: words", "stop", words=_KEY, advice="the API key was refused"),
    _failed("filter: code", "filtered", code=r"content_filter|data_inspection_failed|moderation.*"
            r"|content_policy_violation|responsibleaipolicyviolation|1301"),
    _failed("filter: words", "filtered", status=_REFUSED, form="json text", words=_FILTER),
    _failed("filter: litellm", "filtered", kind="ContentPolicyViolationError", form="json text"),
    _retry("model not ready", "server_error", words=r"(is|are) (currently )?(loading|starting)"
           r"|loading model|unloaded or crashed|not.?ready", status="400 404 500 503"),
    Row("address or model: 404", "stop", status="404", advice="check backend.model and "
        "backend.api_base"),
    _retry("page of a gateway", "server_error", form="page"),
    Row("no access: 403", "stop", status="403", advice="the provider gives no access"),
    Row("unknown model", "stop", status="400 422", words=_UNKNOWN_MODEL,
        advice="check backend.model"),
    Row("region", "stop", words=r"location is not supported|unsupported_country"),
    _failed("prompt beyond the window: stated", "context_exceeded", fits="no"),
    Row("reply limit in the window", "window", status=_OVERFLOW, words=_CONTEXT,
        sends="max_tokens", fits="yes"),
    Row("reply limit: named", "parameter", status="400 416 422", words=_REPLY, sends="named",
        fits="unknown"),
    Row("reply limit and prompt", "window", status=_OVERFLOW, words=_CONTEXT, sends="max_tokens"),
    _failed("prompt beyond the window: code", "context_exceeded", code="context_length_exceeded"
            r"|exceed_context_size_error|context_exceeded|tokens_limit_reached|1261|3051"),
    Row("parameter named", "parameter", status="400 405 416 422", sends="named"),
    _failed("prompt beyond the window: words", "context_exceeded", status=_OVERFLOW,
            words=_CONTEXT),
    Row("parameter that broke the server", "parameter", status="500", words=r"validation error",
        sends="named"),
    _retry("status 408, 504", "timeout", status="408 504"),
    _retry("body beyond a limit", "rejected", status="413"),
    _retry("server", "server_error", status="200 409 423 425 498 499 5xx"),
    _retry("broken connection", "disconnect", network="broken"),
    Row("defect", "unscored", kind="TypeError|KeyError|AttributeError|ImportError|NameError"),
    Row("refused", "unscored", status="4xx"),
)  # fmt: skip
"""The table."""

OTHERWISE = Row("no row", "retry", reason="server_error")
"""What is decided where no row matches."""


class Decision(NamedTuple):
    """A row, with what it takes from the signals."""

    row: Row
    parameters: tuple[str, ...] = ()
    """With parameter and window: what to leave out."""
    limit: int | None = None
    """What to lower the limit on the reply to; None: leave it out."""


def decide(signals: Signals) -> Decision:
    """Return what a failed request means."""
    row = next((row for row in ROWS if _matches(row, signals)), OTHERWISE)
    if row.action not in ("parameter", "window"):
        return Decision(row)
    named = ("max_tokens",) if row.action == "window" else _named(signals)
    limit = stated_limit(signals.text, signals.sent.get("max_tokens"))
    return Decision(row, named, limit if "max_tokens" in named else None)


def _matches(row: Row, signals: Signals) -> bool:
    if row.status and not _has_status(row.status, signals.status):
        return False
    if row.network and signals.network != row.network:
        return False
    if row.form and signals.form not in row.form.split():
        return False
    if row.kind and not signals.kinds & set(row.kind.split("|")):
        return False
    if row.code and not any(re.fullmatch(row.code, code) for code in signals.codes):
        return False
    if row.sends == "named":
        if not _named(signals):
            return False
    elif row.sends and row.sends not in signals.sent:
        return False
    text = signals.text[:20_000]
    if row.words and not re.search(row.words, text, re.IGNORECASE | re.DOTALL):
        return False
    return not row.fits or fits(text, signals.sent.get("max_tokens")) == row.fits


def _has_status(wanted: str, status: int | None) -> bool:
    return status is not None and (
        str(status) in wanted.split() or f"{status // 100}xx" in wanted.split()
    )


def _named(signals: Signals) -> tuple[str, ...]:
    """Return the optional parameters that were sent and that the text names."""
    return tuple(
        name
        for name, words in PARAMETERS.items()
        if name in signals.sent and re.search(words, signals.text[:20_000], re.IGNORECASE)
    )
