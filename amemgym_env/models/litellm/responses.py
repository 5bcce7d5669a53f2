"""Responses of providers: text, cause of a missing text, usage; broken responses are faults."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from amemgym_env.errors import Cause
from amemgym_env.models.litellm.decisions import PARAMETERS
from amemgym_env.models.litellm.faults import Fault, fault_of
from amemgym_env.models.litellm.signals import Signals, read_body
from amemgym_env.models.redaction import REDACTED, without_keys
from amemgym_env.text import storable

_REFUSED = re.compile(
    r"received_args=\{'response_object': (\{.*\}), 'model_response_object': ", re.DOTALL
)


class Answered(NamedTuple):
    """What a response in the chat-completions form says; 0 tokens: it does not say."""

    text: str
    cause: Cause | None
    finish_reason: str | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    usd: float | None
    """By litellm's price table, with what it knows about cached tokens and tiers."""
    details: Mapping[str, Any]
    """Further recorded facts: the model's version; thoughts that came apart from the text;
    the provider's sum of tokens where it is another; how many keys were taken out of the text."""


def read_response(response: Any, sent: Mapping[str, Any] | None = None) -> Answered | Fault:
    """Return what a response says. Content may be text, None, or a list of blocks.

    A response without choices, or with an error in its choice, is no answer: the provider broke
    off. `sent` are the arguments of the request.
    """
    choices = getattr(response, "choices", None) or []
    broken = _broken(choices)
    if broken is not None:
        optional = {name: value for name, value in (sent or {}).items() if name in PARAMETERS}
        return fault_of(broken._replace(sent=optional))
    message = getattr(choices[0], "message", None)
    reason = getattr(choices[0], "finish_reason", None)
    content = getattr(message, "content", None)
    said = storable(spoken(content))
    text = without_keys(said)
    cause: Cause | None = (
        None if content is None or isinstance(content, str | list) else "unreadable"
    )
    if cause is not None:
        pass
    elif reason == "content_filter" or (not text.strip() and _refusal(message)):
        cause = "filtered"
    elif not text.strip():
        cause = "empty"
    usage = getattr(response, "usage", None)
    prompt, completion, total = (
        _count(getattr(usage, f"{name}_tokens", None)) for name in ("prompt", "completion", "total")
    )
    cached = _count(getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None))
    hidden = getattr(response, "_hidden_params", None) or {}
    details: dict[str, Any] = {
        name: value
        for name, value in (
            ("model", getattr(response, "model", None)),
            ("fingerprint", getattr(response, "system_fingerprint", None)),
            ("reasoning", without_keys(storable(_thought(message)))),
        )
        if isinstance(value, str) and value
    }
    if prompt and completion and total and total != prompt + completion:
        details["total_tokens"] = total
        completion = max(completion, total - prompt)  # thoughts that are counted apart
    if text != said:
        details["redacted"] = text.count(REDACTED) - said.count(REDACTED)
    return Answered(
        text, cause, reason, prompt, completion, cached, hidden.get("response_cost"), details
    )


def spoken(content: Any) -> str:
    """Return the text of a message's content; blocks that are no text (thoughts) are left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, Mapping) and block.get("type", "text") in ("text", "output_text"):
            texts.append(str(block.get("text") or ""))
    return "".join(texts)


def refused_response(error: Exception) -> Any | None:
    """Return the response that litellm would not take, None if its error holds none.

    litellm refuses content in blocks or objects and usage in fractions, which servers send and have
    been paid for; the text of its error contains the whole response.
    """
    match = _REFUSED.search(str(error))
    try:
        found = None if match is None else ast.literal_eval(match[1])
        if found is None or not isinstance(found["choices"][0]["message"], dict):
            return None
        usage = dict(found.get("usage") or {})
        usage["prompt_tokens_details"] = _fields(usage.get("prompt_tokens_details"))
        choices = [
            _fields({**choice, "message": _fields(choice["message"])})
            for choice in found["choices"]
        ]
        return _fields({**found, "choices": choices, "usage": _fields(usage)})
    except (ValueError, SyntaxError, LookupError, TypeError, RecursionError, MemoryError):
        return None


def _broken(choices: Any) -> Signals | None:
    """Return the signals of a response in which the provider broke off."""
    if not choices:
        return Signals(200, "the response holds no choices", form="json")
    fields = getattr(choices[0], "provider_specific_fields", None) or {}
    error = fields.get("error") or getattr(choices[0], "error", None)
    native = fields.get("native_finish_reason") or getattr(choices[0], "finish_reason", None)
    if not error and native != "error":
        return None
    code = error.get("code") if isinstance(error, Mapping) else None
    status = code if isinstance(code, int) and code >= 400 else 502
    return read_body(error or "the provider broke off (finish_reason error)", status, {})


def _count(value: Any) -> int:
    """Return a number of tokens; fractions are rounded."""
    try:
        return round(float(value or 0))
    except (TypeError, ValueError, OverflowError):
        return 0


def _fields(found: Mapping[str, Any] | None) -> SimpleNamespace:
    return SimpleNamespace(**(found or {}))


def _thought(message: Any) -> str:
    """Return what a model thought, where the provider tells it apart from what it said."""
    apart = getattr(message, "reasoning_content", None)
    if isinstance(apart, str):
        return apart
    content = getattr(message, "content", None)
    blocks = content if isinstance(content, list) else []
    thoughts = [block.get("thinking") for block in blocks if isinstance(block, Mapping)]
    return "\n".join(filter(None, map(spoken, thoughts)))


def _refusal(message: Any) -> bool:
    given = getattr(message, "refusal", None)
    fields = getattr(message, "provider_specific_fields", None) or {}
    return bool(given or fields.get("refusal"))
