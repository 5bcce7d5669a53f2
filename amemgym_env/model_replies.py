"""Reading a provider's response: its text, why there is none, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from amemgym_env.errors import Cause
from amemgym_env.redaction import without_keys
from amemgym_env.replies import clean


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


def read_response(response: Any) -> Answered:
    """Return what a response says. Content may be text, None, or a list of blocks."""
    choices = getattr(response, "choices", None) or []
    message = getattr(choices[0], "message", None) if choices else None
    reason = getattr(choices[0], "finish_reason", None) if choices else None
    text = without_keys(clean(spoken(getattr(message, "content", None))))
    cause: Cause | None = None
    if reason == "content_filter" or (not text.strip() and _refusal(message)):
        cause = "filtered"
    elif not text.strip():
        cause = "empty"
    usage = getattr(response, "usage", None)
    prompt = getattr(usage, "prompt_tokens", None) or 0
    completion = getattr(usage, "completion_tokens", None) or 0
    cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None) or 0
    hidden = getattr(response, "_hidden_params", None) or {}
    details = {
        name: value
        for name, value in (
            ("model", getattr(response, "model", None)),
            ("fingerprint", getattr(response, "system_fingerprint", None)),
        )
        if isinstance(value, str) and value
    }
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


def _refusal(message: Any) -> bool:
    given = getattr(message, "refusal", None)
    fields = getattr(message, "provider_specific_fields", None) or {}
    return bool(given or fields.get("refusal"))
